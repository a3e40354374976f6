//! JavaScript and TypeScript in, tool calls out, nothing else.

mod compile;
mod place;
mod protocol;

pub use compile::{CompiledPlan, Diagnostic, MAX_SOURCE_BYTES, StaticArguments, StaticCall, compile};
pub use place::Place;
