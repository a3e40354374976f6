//! JSON as it was written, and where things are inside it.

mod raw;

pub use raw::RawJson;
