//! Transcripts of our client and a server that sends exactly what the test specifies.
//!
//! ```text
//! > POST /mcp                     what arrived at the server: the headers of MCP, then the body
//!   mcp-session-id: s1
//!   {"jsonrpc":"2.0",…}
//! 1 < 200 {"jsonrpc":"2.0",…}     the event at our client: channel, status, message
//! 1 ended: done
//! ```

mod fixture;
mod handshake;
mod http_sse;
mod refusals;
mod resumption;
mod stateless;
mod tls;
