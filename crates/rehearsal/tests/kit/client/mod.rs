//! The client against a scripted peer, against mocks and against processes.

mod both_ends;
mod calls;
mod faults;
mod handshake;
mod harness;
mod http;
mod peer;
mod processes;
mod server_requests;
