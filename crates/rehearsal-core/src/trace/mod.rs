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

pub use attribution::{EventLink, LinkBuilder, OrderedEvent, TimelineBuilder};
pub use compare::{CallComparison, CallDigest, CallPairs};
pub use detect::{DETECT_BYTES, Format, detect};
pub use error::{FileLayout, ReadError};
pub use fate::{CallStatus, subject};
pub use fold::{FoldLimit, JournalFold};
pub use format::{FORMAT, JOURNAL_FORMAT};
pub use journal::{JournalLine, JournalReader, LINE_LIMIT};
pub use journal_parts::JournalSessions;
pub use likeness::{ClosestRequest, RequestIdentity, RequestKey};
pub use part::{Entry, EntryBody, Headers, HttpHead, Part, PlacedMessage, RecordedCall, SessionEnd, SessionStart};
pub use stats::{CallStats, Latency, StatKey, StatKind, Stats};
pub use timeline::{RelatedEvent, Timeline, TimelineItem};
pub use trace_reader::{FileSpan, TraceReader};
pub use trace_writer::TraceWriter;
pub use write::{SharedLog, write_entry, write_lines, write_start};
