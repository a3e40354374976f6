//! YAML files of users: parsed strictly, with a place in every error.
//!
//! ```text
//! text ──read──► Mock (as written, with places) ──check──► problems, each with a place and a hint
//! ```

mod collect;
mod key_order;
mod located;
pub mod mock;
mod parsed;
mod problem;
mod read;
mod schema_of;
mod span_tree;
mod strict;
pub mod workflow;
mod yaml;

pub use key_order::WithKeyOrder;
pub use located::Located;
pub use located::NamedMap;
pub use parsed::{ParseValue, Parsed, When};
pub use problem::{ScriptError, ScriptProblem, Span};
pub use read::{DEPTH_LIMIT, read, text};
