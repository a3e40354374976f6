//! Faults: a fault and the answer without it are converted into steps.
//!
//! ```text
//! FaultRule ──compile──► Faults ──which (method, number of the call)──► FaultKind
//! FaultKind + the answer ──missteps──► Misstep … ──► a transport carries it out
//! ```
//!
//! This module has no clock and no random numbers. Chance is a hash of a seed and the number of the call, so every run
//! fails at the same calls.

mod misdeed;
mod misstep;
mod rules;
mod spoil;

pub use misdeed::{Aftermath, Misdeed, Moment, Refused, half};
pub use misstep::{Honest, Misstep, missteps};
pub use rules::{Faults, between, happens};
