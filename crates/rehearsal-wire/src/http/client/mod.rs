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

mod channel_tasks;
mod client_state;
mod context;
mod event_reader;
mod get_stream;
mod http_client;
mod http_sse;
mod options;
mod post;
mod response;
mod streamable;
#[cfg(test)]
mod tests;

pub(in crate::http) use http_client::tls;
pub use http_client::{FETCH_LIMIT, fetch, join_causes};
pub use http_sse::{connect_sse, resolve as resolve_endpoint};
pub use options::{Authorize, ConnectError, HttpClientOptions, RetryDecision};
pub use response::refusal;
pub use streamable::connect;
