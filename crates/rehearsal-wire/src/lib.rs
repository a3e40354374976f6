//! Bytes in, bytes out: how MCP messages travel.
//!
//! ```text
//! child process, own stdio, Streamable HTTP, HTTP+SSE, container, memory ──► Connection { sender, receiver }
//! ```
//!
//! Nothing here decides what a message should say. A transport delivers every message with its exact bytes, says which
//! [channel](rehearsal_core::exchange::Channel) it came on, and explains how the conversation ended.

mod connection;
pub mod http;
pub mod memory;

pub use connection::{
    BoxFuture, ChannelEnd, Connection, Ending, Event, HttpHead, Outgoing, Receiver, SendError, Sender, Stopped,
};

/// The longest message that is read unless the caller says otherwise: 16 MiB.
pub const MESSAGE_LIMIT: usize = 16 * 1024 * 1024;
