//! MCP over HTTP: Streamable HTTP and the older HTTP+SSE.

pub mod client;
pub mod oauth_callback;
mod origin_check;
pub mod proxy;
pub mod server;
pub mod sse;
