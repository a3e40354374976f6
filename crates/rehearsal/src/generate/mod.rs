//! A recording turned into something that people edit.
//!
//! ```text
//! Recording ──► Learned (who the server is, what it offers, what it answers) ──► mock file, Rust, Python
//! ```

mod before;
mod beyond;
mod completion;
mod declared;
mod fate;
mod generated;
mod group;
mod learn;
mod learned;
mod levels;
mod listed;
mod looked_at;
mod mock;
mod mock_answer;
mod narrow;
mod python;
mod recorded;
mod refusals;
mod result;
mod rule_name;
mod rust;
mod secret;
mod told;

pub use declared::Declared;
pub use generated::{Generated, TemplateError};
pub use learn::{Learner, TooLarge};
pub use learned::{Answered, Before, Learned, Question, Request, Said};
pub use listed::Listed;
pub use mock::generate_mock;
pub use python::generate_python;
pub use rust::generate_rust;
