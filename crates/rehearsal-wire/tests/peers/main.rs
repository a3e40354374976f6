//! Tests of the transports with real sockets and processes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod proxy;
mod stdio;
