//! The verbs as people type them.
//!
//! ```text
//! words ──► CommandLine ──► ServerOptions ──► Client ──► verb ──► stdout: data
//!                                                         │
//!                                             Failure ──► stderr: error, evidence, hint ──► Exit
//! ```

mod arguments;
mod call;
mod command_line;
mod context;
mod duration;
mod exit;
mod failure;
mod list;
mod output;
mod run;
mod server;
mod signals;

pub(crate) use context::Context;
pub(crate) use run::run;
