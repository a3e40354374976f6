//! A whole MCP server from a file: what [`core::answer`](rehearsal_core::answer) decides is carried out here.
//!
//! ```text
//! files ──load──► Mock ──► Server ──serve──► Connection (stdio, HTTP, memory)
//!                            │                  │
//!                            │                  └─ request ──► begin ──► answered at once, on the spot
//!                            │                                   └────► a task: waits, tells, asks, answers
//!                            └─ state, tasks, journal, changes: shared by all conversations
//! ```
//!
//! What a request is answered from is a `Source`: a mock, or whatever else `Answers`, such as a
//! recording. The loop, the transports and the acts are the same.
//!
//! Faults are carried out by [`Sender::misbehave`](rehearsal_wire::Sender::misbehave); over HTTP there are paths to control a
//! mock with, beside those of MCP.
//!
//! [`MockServer`] is the fixture for tests: a server on a free port that is gone when it is dropped.

mod call;
mod control;
mod draft;
mod load;
mod mock_server;
mod news;
mod perform;
#[cfg(test)]
mod plays;
mod serve;
mod server;
mod session;
mod source;
mod subscriptions;
mod tasks;
mod wrong;

pub use draft::{Drafted, Surface, draft};
pub use load::{Files, LoadError, Reload, check, watch};
pub use mock_server::{MockError, MockServer, Parameters, Times, http_options};
pub use rehearsal_core::answer::{CallOutcome, Called, ExpectedCall, UnmetCall};
pub use rehearsal_core::script::mock::Otherwise;
pub use server::Server;
pub(crate) use server::random;
pub(crate) use source::{Answers, Forwards, Live, Standing};
