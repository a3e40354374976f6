//! A recording turned into something that people edit.

mod mock_yaml;

pub use mock_yaml::mock_yaml;
