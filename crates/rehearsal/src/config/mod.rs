//! The files in which clients keep their servers: `.mcp.json` and its relatives.
//!
//! ```text
//! text ──► JsonNode, with places ──► ConfigFile ──► ServerRef, … ──► ServerEntry   what to start or to connect to
//! ```
//!
//! Commands that start a server from such a file and commands that edit one find the same servers in it.

mod document;
mod entry;
mod file;

pub use document::{JsonNode, JsonSyntaxError, NodeKind};
pub use entry::{ServerEntry, read_config};
pub use file::{ConfigError, ConfigFile, ServerRef};
