//! Recorded exchanges as answers.

mod compile;
mod recorded_exchange;
#[cfg(test)]
mod tests;
mod unmatched;

pub use compile::{ContinuedRound, RecordedAnswer, ReplayPace};
pub use recorded_exchange::{EventPhase, RecordedExchange, ReplayEvent};
pub use unmatched::Unmatched;
