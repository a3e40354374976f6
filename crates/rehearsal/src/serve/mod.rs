//! The serving loop: a chain of answer sources on a connection of any transport.
//!
//! ```text
//! connection ──► receive ──► handler? ──► Chain::begin ──► Answer: sent at once
//!                                              ├──► Respond: a task carries out its actions
//!                                              ├──► Listen: a subscription; Task: about a task
//!                                              └──► Unanswered: refused, or forwarded to the upstream
//! ```
//!
//! The chain decides; waiting, sending, requesting input and forwarding happen here. [`mock`](crate::mock) and
//! [`replay`](crate::replay) only build a chain.

mod active_request;
mod batches;
mod change_broadcast;
mod connection;
mod execute;
mod faulty_answer;
mod fixture;
mod handler;
mod outbox;
mod receive;
mod server;
mod subscriptions;
mod tasks;
mod upstream;

pub use rehearsal_core::answer::{Chain, IncomingRequest, InputRequest, RequestLog};

pub use fixture::{ServerFixture, StartError, http_options, serve_http};
pub use handler::{ConnectionHandle, Handler, RequestHandle};
pub use server::{Observer, Otherwise, Server, ServerOptions};
pub use upstream::Upstream;

pub(crate) use server::{now_ms, random};
