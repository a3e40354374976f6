//! Plays: a client of ours and a server that says exactly what the test tells it to.
//!
//! ```text
//! > POST /mcp                     what arrived at the server: the headers of MCP, then the body
//!   mcp-session-id: s1
//!   {"jsonrpc":"2.0",…}
//! 1 < 200 {"jsonrpc":"2.0",…}     what our client made of the answer: channel, status, message
//! 1 ended: done
//! ```

mod handshake;
mod http_sse;
mod refusals;
mod resumption;
mod stage;
mod stateless;
mod tls;
