//! The client against a scripted peer: plays in which `>` is what the client says and `<` what it hears.

mod calls;
mod handshake;
mod peer;
mod processes;
mod questions;
