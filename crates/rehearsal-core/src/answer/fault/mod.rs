//! Faults: a fault and the answer without it are converted into steps.
//!
//! ```text
//! FaultRule ──compile──► FaultRules ──next_fault (method, number of the call)──► FaultKind
//! FaultKind + the answer ──fault_steps──► FaultStep … ──► a transport carries it out
//! ```
//!
//! This module has no clock and no random numbers. Chance is a hash of a seed and the number of the call, so every run
//! fails at the same calls.

mod corrupt;
mod fault_step;
mod rules;

pub use crate::transport_fault::{AfterFault, DisconnectAt, HttpRefusal, TransportFault, first_half};
pub use fault_step::{FaultStep, NormalAnswer, fault_steps};
pub use rules::{FaultRules, delay_at, happens};
