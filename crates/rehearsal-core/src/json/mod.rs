//! Additions to `serde_json`: the exact text of values, canonical text, paths, types, and excerpts for messages.

mod canonical;
mod excerpt;
mod json_type;
mod path;
mod path_set;
mod query;
mod raw;
mod string;

pub use canonical::{canonical, canonical_object, compare};
pub use excerpt::{DEFAULT_EXCERPT, difference, excerpt};
pub use json_type::JsonType;
pub use path::{Path, Segment};
pub use path_set::PathSet;
pub use query::{PathQuery, PathQueryError};
pub(crate) use query::{PathStep, leads_to};
pub use raw::RawJson;
pub(crate) use raw::read_value;
pub(crate) use string::{Unescaped, repeat_byte, special_bytes};
