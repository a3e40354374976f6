//! The transports of MCP messages.
//!
//! ```text
//! child process, own stdio, Streamable HTTP, HTTP+SSE, container, memory ──► Connection { sender, receiver }
//! ```
//!
//! Transports do not interpret messages. A transport delivers every message with its exact bytes and its
//! [channel](rehearsal_core::exchange::Channel), and reports how the connection ended.

#[macro_use(debug_as_display)]
extern crate rehearsal_core as _;

mod connection;
pub mod container;
#[cfg(feature = "http")]
pub mod http;
pub mod memory;
pub mod stdio;

pub use connection::{
    BoxFuture, ChannelEnd, Connection, ConnectionEnd, Event, HttpMeta, Outgoing, Receiver, SendError, Sender,
    StopOutcome,
};

/// The default limit for the length of a received message: 16 MiB.
pub const MESSAGE_LIMIT: usize = 16 * 1024 * 1024;
