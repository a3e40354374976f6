//! Facts about MCP: its versions, codes, headers and shapes.

mod claim;
pub mod code;
pub mod content;
pub mod header;
mod log_level;
pub mod meta;
mod revision;
pub mod tool;

pub use claim::Claim;
pub use content::Content;
pub use log_level::LogLevel;
pub use revision::{Era, PerRevision, Revision, UnknownRevision};
pub use tool::{Prompt, Resource, ResourceTemplate, Tool};
