//! What goes wrong on purpose: a fault and an honest answer in, misdeeds out.
//!
//! ```text
//! FaultRule ──compile──► Faults ──which (method, number of the call)──► FaultKind
//! FaultKind + the honest answer ──missteps──► Misstep … ──► a transport misbehaves
//! ```
//!
//! Nothing here has a clock or a die. Chance is a hash of a seed and the number of the call, so the same run fails in the
//! same places.

mod misdeed;
mod misstep;
mod rules;
mod spoil;

pub use misdeed::{Aftermath, Misdeed, Moment, Refused, half};
pub use misstep::{Honest, Misstep, missteps};
pub use rules::{Faults, between, happens};
