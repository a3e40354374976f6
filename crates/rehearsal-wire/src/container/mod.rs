//! A server in a container, by the command line of whichever engine is there.
//!
//! ```text
//! Dockerfile ──► image ──► run -i --rm ──► Connection            one container a server
//!                     └──► Detached ──► exec -i ──► Connection   one container for many servers
//! ```
//!
//! Ending the engine's client does not end what runs in the container. Every container of ours has a name of ours, is removed
//! by that name, and carries a label by which those left by a crash are found; a server in a container that stays has a
//! mark of ours, by which it is found and ended. Whatever an engine is told has a time limit.

mod cleanup;
mod engine;
mod guest;
mod server;

pub use engine::{Engine, EngineError, build};
pub use server::{Container, Detached, Place, spawn};
