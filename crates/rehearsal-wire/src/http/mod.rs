//! MCP over HTTP.

pub mod server;
