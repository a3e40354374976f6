//! Logging in, against an authorization server and a server that wants its tokens, both started here.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod authorization;
mod clients;
mod house;
mod program;
mod stored;
