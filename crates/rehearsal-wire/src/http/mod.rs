//! MCP over HTTP: Streamable HTTP and the older HTTP+SSE.

pub mod client;
pub mod server;
pub mod sse;
