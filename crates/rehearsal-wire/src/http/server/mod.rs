//! The HTTP server: both eras of Streamable HTTP and the older HTTP+SSE, on one listener.
//!
//! ```text
//! socket ──► router ──► origin_check ──► read_post ──► classify ──┬─ stateless POST ─────► the one Connection of all of them
//!              │                                                  └─ POST in a session ──► the Connection of that session
//!              ├─ GET, DELETE in a session
//!              ├─ /sse, /message ──► one Connection for each stream
//!              └─ CustomRoutes of the application
//!
//! Sender::send ──► channel_writer (one per channel) ──► JSON body, or a stream of events ──► socket
//! ```
//!
//! The application receives [`Connection`](crate::Connection)s. Every POST with a request is a
//! [`Channel`](rehearsal_core::exchange::Channel) of its own. Notifications arrive on
//! [`Channel::MAIN`](rehearsal_core::exchange::Channel::MAIN), which in a session is also the stream that the client
//! opens with GET. A response from the client arrives on the channel of its server request.
//!
//! A POST ends when each request in it has its response. If the response is the first message on the channel, it is
//! sent as JSON; any message before it turns the POST into a stream of events.
//!
//! A disconnect cancels the request only since 2026-07-28: there the application receives
//! [`ChannelEnded`](crate::Event::ChannelEnded). Before, a stream that broke, or that
//! [`close_channel`](crate::Sender::close_channel) closed, keeps its channel open: messages wait there for the client
//! to resume with `Last-Event-ID`. A client that disconnected before its first event has no id to resume from, and
//! sending to it fails with [`NoChannel`](crate::SendError::NoChannel).
//!
//! ```no_run
//! use rehearsal_wire::http::server::{HttpServer, HttpServerOptions};
//!
//! # async fn example() -> Result<(), rehearsal_wire::http::server::BindError> {
//! # async fn talk(_: rehearsal_wire::Connection) {}
//! let mut server = HttpServer::bind(HttpServerOptions::default()).await?;
//! println!("listening on {}", server.url());
//! while let Some(connection) = server.accept().await {
//!     tokio::spawn(talk(connection));
//! }
//! # Ok(())
//! # }
//! ```

mod channel_writer;
mod classify;
mod event_stream;
mod fault;
mod get;
mod http_server;
mod http_sse;
mod options;
mod post;
mod read_post;
mod rejection;
mod router;
mod session;
mod sessions;
#[cfg(test)]
mod tests;

pub use http_server::{BindError, Handle, HttpServer};
pub use options::{AllowedHosts, HttpServerLimits, HttpServerOptions, ResponseMode, SessionMode, ToolSchema};
pub use router::CustomRoutes;
