//! The client against a scripted peer: plays in which `>` is what the client says and `<` what it hears.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod both_ends;
mod calls;
mod faults;
mod handshake;
mod harness;
mod http;
mod peer;
mod processes;
mod questions;
