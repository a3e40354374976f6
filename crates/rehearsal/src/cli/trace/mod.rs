//! `rehearse trace`
//!
//! ```text
//! files ──► Recording ──► Moment, Moment, … ──► show, grep, check
//!                     ──► Part, Part, …     ──► stats, diff, merge, split, redact, convert
//! ```

mod check;
mod convert;
mod diff;
mod error;
mod from;
mod grep;
mod merge;
mod output;
mod reading;
mod recover;
mod redact;
mod show;
mod split;
mod stats;
mod verb;

pub(super) use error::{FORWARD, TraceError, on_lines};
pub(super) use output::{Writing, is_written_into, plain};
pub(super) use reading::{Reading, input, put_back};
pub(super) use verb::Trace;
