//! What should happen: answers that we supply, and what is wrong with them on purpose.

pub mod fault;
pub mod harness;
mod journal;

pub use journal::{Call, CallJournal, CallOutcome, ExpectedCall, UnmetCall};
