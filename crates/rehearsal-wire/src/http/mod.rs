//! MCP over HTTP: Streamable HTTP and the older HTTP+SSE.

pub mod client;
mod guard;
pub mod proxy;
pub mod redirect;
pub mod server;
pub mod sse;
