//! TypeScript to the code that a worker runs, with the way back to places in the source.
//!
//! ```text
//! source ─► parse ─► checks, static calls ─► edits, probes ─► parse ─► transform ─► code + source map ─► CompiledPlan
//! ```
//! The host compiles; the worker receives JavaScript only.

pub(crate) mod arguments;
pub(crate) mod calls;
mod caught;
pub(crate) mod diagnostic;
pub(crate) mod edits;
mod expressions;
mod flows;
pub(crate) mod globals;
mod names;
mod probes;
mod rejected;
mod stack;
mod transform;

pub use arguments::StaticArguments;
pub use calls::{StaticCall, ToolReference};
pub use diagnostic::Diagnostic;
pub use probes::{ProbeKind, ProbeSite};
pub use stack::MAX_SOURCE_BYTES;
pub use transform::{CompiledPlan, compile};
