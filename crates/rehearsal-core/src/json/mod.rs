//! What JSON needs beyond `serde_json`: the exact text, one text for equal values, places, kinds, exact numbers, and values shown on one line.

mod canonical;
mod decimal;
mod edit;
mod excerpt;
mod kind;
mod long;
mod number;
mod path;
mod places;
mod raw;
mod special;
mod unescape;

pub use canonical::canonical;
pub use excerpt::{DEFAULT_EXCERPT, difference, excerpt};
pub use kind::Kind;
pub(crate) use long::{exact, is_long, nearest, number, spoken};
pub use long::{has_half_letter, has_long, long, rounded, text, to_json, write_json};
pub use number::{compare, compare_values};
pub use path::{Path, PathError, Segment};
pub use places::Places;
pub use raw::RawJson;
pub(crate) use special::{eight, special};
pub(crate) use unescape::Unescaped;
