//! What JSON needs beyond `serde_json`: the exact text, places, kinds, exact numbers, and values shown on one line.

mod excerpt;
mod kind;
mod number;
mod path;
mod raw;
mod unescape;

pub use excerpt::{DEFAULT_EXCERPT, difference, excerpt};
pub use kind::Kind;
pub use number::compare;
pub use path::{Path, PathError, Segment};
pub use raw::RawJson;
pub(crate) use unescape::Unescaped;
