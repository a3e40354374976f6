//! The client's side of HTTP.
//!
//! ```text
//! Streamable HTTP    request ──► POST ──► JSON or a stream of events ──► messages on the request's own channel
//!                    notification, answer ──► POST ──► 202
//!                    standing stream ◄── GET ──► messages on Channel::MAIN
//! HTTP+SSE           everything ──► POST to the endpoint; everything ◄── one stream of events, on Channel::MAIN
//! ```
//!
//! The transport learns what it must repeat (session, version) from the messages that pass by, and nothing that the
//! caller sets in a header is ever overwritten: sending a wrong one on purpose is what testers do.

mod answer;
mod call;
mod channel_tasks;
mod context;
mod event_reader;
mod http_client;
mod http_sse;
mod memory;
mod options;
mod standing;
mod streamable;
#[cfg(test)]
mod tests;

pub use answer::refusal;
pub(in crate::http) use http_client::tls;
pub use http_client::{FETCH_LIMIT, fetch, in_words};
pub use http_sse::{connect_sse, resolve as resolve_endpoint};
pub use options::{Again, Authorize, ConnectError, Options};
pub use streamable::connect;
