//! A server in a container, started with the command line of the installed engine.
//!
//! ```text
//! Dockerfile ──► image ──► run -i --rm ──► Connection                          one container a server
//!                     └──► BackgroundContainer ──► exec -i ──► Connection   one container for many servers
//! ```
//!
//! Stopping the engine's client does not stop the processes in the container. Each container that we start has a unique
//! name, by which it is removed, and a label, by which containers left by a crash are found. A server in a container
//! that stays has a unique mark, by which it is found and killed. Every engine command has a time limit.

mod cleanup;
mod engine;
mod exec_process;
mod server;

pub use engine::{Engine, EngineError, build};
pub use server::{BackgroundContainer, Container, ContainerTarget, spawn};
