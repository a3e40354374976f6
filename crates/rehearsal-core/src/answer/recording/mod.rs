//! Recorded exchanges as answers.

mod compile;
mod recorded;
#[cfg(test)]
mod tests;
mod unmatched;

pub use compile::{ContinuedRound, Pace, RecordedAnswer};
pub use recorded::{Place, Recorded, Thing};
pub use unmatched::Unmatched;
