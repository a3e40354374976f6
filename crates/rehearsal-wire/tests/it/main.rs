//! The wire with real peers at the other end.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod proxy;
mod stdio;
