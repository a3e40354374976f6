//! A server in a container, by the command line of whichever engine is there.
//!
//! ```text
//! Dockerfile ──► image ──► run -i --rm ──► Connection            one container a server
//!                     └──► Detached ──► exec -i ──► Connection   one container for many servers
//! ```
//!
//! Ending the engine's client does not end what runs in the container, so every container has a name of ours, is removed
//! by that name, and carries a label by which those left by a crash are found.

mod detached;
mod engine;
mod image;
mod server;

pub use detached::Detached;
pub use engine::{Engine, EngineError};
pub use image::build;
pub use server::{Container, Place, spawn};
