//! Recorded sessions: their events, the order of the events, and their file formats.
//!
//! ```text
//! Entry, Entry, … ──► journal (one a line, as it happens) ──► fold ──► trace (one session a line)
//! any file ──► reader ──► Part, Part, … ──► writer ──► any file
//! ```

#[cfg(test)]
pub(crate) mod arbitrary;
mod attribution;
mod compare;
mod detect;
pub mod dialect;
mod error;
mod fate;
mod fields;
mod fold;
mod format;
mod journal;
mod journal_parts;
mod json_writer;
mod layout;
mod likeness;
mod part;
mod pull;
mod stats;
mod timeline;
mod trace_reader;
mod trace_writer;
mod write;

pub use attribution::{Tie, Ties, Weave, Woven};
pub use compare::{Compare, Pairs, Sketch};
pub use detect::{DETECT_BYTES, Format, detect};
pub use error::{LaidOut, ReadError};
pub use fate::{Fate, subject};
pub use fold::{Fold, FoldLimit};
pub use format::{FORMAT, JOURNAL_FORMAT};
pub use journal::{JournalLine, JournalReader, LINE_LIMIT};
pub use journal_parts::JournalParts;
pub use likeness::{Closest, Likeness, RequestKey};
pub use part::{Call, End, Entry, Headers, HttpHead, Part, Placed, Start, What};
pub use stats::{Counts, Group, IsCall, Latency, Stats};
pub use timeline::{Inside, Moment, Timeline};
pub use trace_reader::{Span, TraceReader};
pub use trace_writer::TraceWriter;
pub use write::{InLog, write_entry, write_lines, write_start};
