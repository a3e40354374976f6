//! `rehearse trace`
//!
//! ```text
//! files ──► Recording ──► TimelineItem, … ──► show, grep, check
//!                     ──► Part, …         ──► stats, diff, merge, split, redact, convert
//! ```

mod check;
mod convert;
mod diff;
mod grep;
mod input;
mod merge;
mod output;
mod recover;
mod redact;
mod show;
mod split;
mod stats;
mod verb;

pub(super) use input::{CONVERT, InputArgs, no_file, not_trace, on_lines, recover_sessions, unreadable};
pub(super) use output::{AtomicOutput, is_written_into, plain};
pub(super) use verb::TraceArgs;
