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
mod authorize;
mod call;
mod connector;
mod context;
mod endpoint;
mod error;
mod fetch;
mod http_sse;
mod memory;
mod options;
mod peer;
#[cfg(test)]
mod plays;
mod posted;
mod reader;
mod receiver;
mod resumption;
mod standing;
mod streamable;
mod tasks;

pub use answer::refusal;
pub use authorize::{Again, Authorize};
pub use endpoint::resolve as resolve_endpoint;
pub use error::ConnectError;
pub use fetch::{FETCH_LIMIT, fetch};
pub use http_sse::connect_sse;
pub use options::Options;
pub use peer::in_words;
pub(in crate::http) use peer::tls;
pub use streamable::connect;
