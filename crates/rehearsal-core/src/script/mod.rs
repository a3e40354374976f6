//! YAML files of users: parsed strictly, with a place in every error.
//!
//! ```text
//! text ──read──► Mock (as written, with places) ──check──► problems, each with a place and a hint
//! ```

mod collect;
mod in_order;
mod located;
mod meant;
pub mod mock;
mod page;
mod problem;
mod read;
mod schema_of;
mod strict;
mod tree;

pub use in_order::WithKeyOrder;
pub use located::Located;
pub use located::NamedMap;
pub use meant::{ParseValue, Parsed, When};
pub use problem::{ScriptError, ScriptProblem, Span};
pub use read::{DEPTH_LIMIT, read, text};
