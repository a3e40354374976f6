//! The HTTP client: Streamable HTTP and HTTP+SSE.
//!
//! ```text
//! Streamable HTTP    request ──► POST ──► JSON or a stream of events ──► messages on the request's own channel
//!                    notification, response ──► POST ──► 202
//!                    GET stream ◄── GET ──► messages on Channel::MAIN
//! HTTP+SSE           client's messages ──► POST to the endpoint
//!                    server's messages ◄── one stream of events, on Channel::MAIN
//! ```
//!
//! The transport takes the session and the version from the messages it sends and receives, and repeats them. It never
//! overwrites a header of the caller: a test may send a wrong one on purpose.

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
pub use options::{Authorize, ConnectError, HttpClientOptions, RetryDecision};
pub use streamable::connect;
