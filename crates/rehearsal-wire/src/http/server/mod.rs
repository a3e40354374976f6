//! The server's side of HTTP: both eras of Streamable HTTP and the older HTTP+SSE, on one listener.
//!
//! ```text
//! socket ──► router ──► guard ──► read_post ──► ladder ──┬─ stateless POST ─────► the one Connection of all of them
//!              │                                         └─ POST in a session ──► the Connection of that session
//!              ├─ GET, DELETE in a session
//!              ├─ /sse, /message ──► one Connection for each stream
//!              └─ Routes of the application
//!
//! Sender::send ──► channel_writer (one per channel) ──► JSON body, or a stream of events ──► socket
//! ```
//!
//! The application sees [`Connection`](crate::Connection)s. Every POST with a request is a
//! [`Channel`](rehearsal_core::exchange::Channel) of its own; notifications come on
//! [`Channel::MAIN`](rehearsal_core::exchange::Channel::MAIN), which in a session is also the stream that the client
//! opens with GET. A response that the client posts comes on the channel that its question was sent on.
//!
//! A POST ends when each request in it is answered. If the answer is the first thing that is sent on the channel, it
//! travels as JSON; anything sent before it turns the POST into a stream of events.
//!
//! A client that goes away cancels only since 2026-07-28: there the application is told with
//! [`ChannelEnded`](crate::Event::ChannelEnded). Before, a stream that broke, or that
//! [`close_channel`](crate::Sender::close_channel) closed, keeps its channel open: what is sent on it waits for the
//! client to come back with `Last-Event-ID`. A client that left before its first event has nothing to come back with,
//! and sending to it fails with [`NoChannel`](crate::SendError::NoChannel).
//!
//! ```no_run
//! use rehearsal_wire::http::server::{HttpServer, Options};
//!
//! # async fn example() -> Result<(), rehearsal_wire::http::server::BindError> {
//! # async fn talk(_: rehearsal_wire::Connection) {}
//! let mut server = HttpServer::bind(Options::default()).await?;
//! println!("listening on {}", server.url());
//! while let Some(connection) = server.accept().await {
//!     tokio::spawn(talk(connection));
//! }
//! # Ok(())
//! # }
//! ```

mod channel_writer;
mod event_stream;
mod fault;
mod get;
mod http_server;
mod http_sse;
mod ladder;
mod options;
mod post;
mod read_post;
mod refusal;
mod registry;
mod router;
mod session;
#[cfg(test)]
mod tests;

pub use http_server::{BindError, Handle, HttpServer};
pub use options::{Answers, Hosts, Limits, Options, Sessions, ToolSchema};
pub use router::Routes;
