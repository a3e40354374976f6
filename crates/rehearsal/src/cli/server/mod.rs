//! Which server, how to talk to it, and what to answer when it asks.

mod answers;
mod container;
mod error;
mod heard;
mod options;
mod which;

pub(super) use error::ServerError;
pub(super) use options::{OUTPUT, ServerOptions, ShownAs};
