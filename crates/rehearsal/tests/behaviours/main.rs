//! What a mock does, message by message, over stdio and HTTP+SSE, and that everything it says is as the protocol has it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod gallery;
mod handshake;
mod over_every_transport;
mod peer;
mod play;
mod stateless;
