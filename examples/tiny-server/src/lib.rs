//! A small, honest MCP server on Rehearsal's own wire, in all five versions of the protocol.
//!
//! ```text
//! Connection ──► serve ──► Terms (which version?) ──► answer, tools, subscriptions ──► Connection
//!                                                        │
//!                                                        └─► ask: the server needs something from the client
//! ```
//!
//! The two eras meet in three places only: `Terms` of the core decide in which version a request is answered, `ask` turns a
//! question to the client into a request of its own or into an `input_required` result, and `subscriptions` tells
//! about changes on the standing stream or on that of `subscriptions/listen`.

mod answer;
mod arguments;
mod ask;
mod call;
mod handshake;
mod instead;
mod list;
mod logging;
mod prompts;
mod resources;
mod serve;
mod server;
mod session;
mod subscriptions;
mod tools;

pub use server::{Options, Server};

use rehearsal_wire::{Connection, Ending};

/// Serves one client until either end closes the connection, and says how it ended.
///
/// Servers that share subscribers, such as all the sessions of one HTTP listener, come from one [`Server`].
pub async fn serve(connection: Connection) -> Ending {
    Server::new(Options::default()).serve(connection).await
}
