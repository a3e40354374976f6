//! Facts about MCP: its versions, codes, headers and shapes.

pub mod code;
pub mod content;
pub mod header;
pub mod meta;
mod revision;
pub mod tool;

pub use content::Content;
pub use revision::{Era, Revision, UnknownRevision};
pub use tool::{Prompt, Resource, ResourceTemplate, Tool};
