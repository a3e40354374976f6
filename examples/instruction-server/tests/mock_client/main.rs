//! Every usage example of the specification of a mock MCP client, against a real server.
//!
//! Each runs over stdio and over HTTP, with a handshake and without one; see `fixture`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod basic_routing;
mod error_handling;
mod fixture;
mod learning_loop;
mod matchers;
mod program;
mod protocol;
mod tools;
