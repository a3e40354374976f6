//! Matchers: expectations about a JSON value, and the mismatches of a value.
//!
//! ```text
//! written matcher ──parse──► Matcher ──check──► mismatches, each with its path
//!                                    ──distance──► how far off, so that the closest candidate can be reported
//! two values ──differences──► added, removed and changed values, with the elements of arrays aligned
//! ```
//!
//! One matcher serves a mock's `when`, a test's `expect`, the look-up of a recorded exchange and the comparison of
//! traces. `docs/reference/matchers.md` is the reference for users, and a test compares it with the code.

mod align;
#[cfg(test)]
mod arbitrary;
mod check;
mod data_or_operators;
mod describe;
mod diff;
#[expect(clippy::module_inception, reason = "a file is named after the one thing in it")]
mod matcher;
mod mismatch_sink;
mod parse;
mod pattern;
mod range;
#[cfg(test)]
mod reference_tests;
#[cfg(feature = "json-schema")]
mod schema;
#[cfg(not(feature = "json-schema"))]
#[path = "no_schema.rs"]
mod schema;
mod to_value;

pub use diff::{Difference, DifferenceKind, differences};
pub use matcher::{JsonPathMatcher, Matcher};
pub(crate) use mismatch_sink::MAX_MISMATCHES;
pub use mismatch_sink::{Mismatch, first_mismatches};
pub use parse::DEPTH_LIMIT;
pub(crate) use parse::closest as closest_operator;
pub use parse::{MatcherError, MatcherProblem};
pub use pattern::{Contains, Pattern, SearchText};
pub use range::Range;
pub use schema::Schema;
#[cfg(feature = "json-schema")]
pub use schema::SchemaViolation;
#[cfg(feature = "json-schema")]
pub(crate) use schema::schema_options;
