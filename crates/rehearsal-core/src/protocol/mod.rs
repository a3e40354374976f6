//! Facts about MCP: its versions, codes, headers and shapes.

mod claim;
pub mod code;
pub mod content;
pub mod header;
pub mod list_item;
mod log_level;
pub mod meta;
mod revision;

pub use claim::Claim;
pub use content::Content;
pub use list_item::{Prompt, Resource, ResourceTemplate, Tool};
pub use log_level::LogLevel;
pub use revision::{Era, PerRevision, Revision, UnknownRevision};
