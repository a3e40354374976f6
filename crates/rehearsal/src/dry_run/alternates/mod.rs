//! Other values in place of invented ones: what differs between two runs depends on them.
//!
//! ```text
//! value ──► places, each with what the schema states ──► changes ──► all at once, else bisected ──► a valid value
//! ```

mod alternate;
mod constraints;
mod dice;
mod number;
#[cfg(test)]
mod tests;
mod text;

pub(super) use alternate::{Alternate, alternate, compared_rounds};
