//! Recorded exchanges as answers.

mod compile;
mod recorded;
#[cfg(test)]
mod tests;
mod unmatched;

pub use compile::{ContinuedRound, RecordedAnswer, ReplayPace};
pub use recorded::{EventPhase, RecordedExchange, ReplayEvent};
pub use unmatched::Unmatched;
