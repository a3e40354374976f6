//! Recorded sessions: their events, the order of the events, and their file formats.
//!
//! ```text
//! Entry, Entry, … ──► journal (one a line, as it happens) ──► fold ──► trace (one session a line)
//! any file ──► reader ──► Part, Part, … ──► writer ──► any file
//! ```

#[cfg(test)]
pub(crate) mod arbitrary;
mod attribution;
mod call_status;
mod compare;
mod detect;
pub mod dialect;
mod error;
mod fields;
mod fold;
mod format;
mod journal_reader;
mod journal_sessions;
mod journal_writer;
mod json_line_reader;
mod json_writer;
mod message_layout;
mod part;
mod request_identity;
mod stats;
mod timeline;
mod trace_reader;
mod trace_writer;

pub use attribution::{EventLink, LinkBuilder, OrderedEvent, TimelineBuilder};
pub use call_status::{CallStatus, subject};
pub use compare::{CallComparison, CallDigest, CallPairs};
pub use detect::{DETECT_BYTES, Format, detect};
pub use error::{FileLayout, ReadError};
pub use fold::{FoldLimit, JournalFold};
pub use format::{FORMAT, JOURNAL_FORMAT};
pub use journal_reader::{JournalLine, JournalReader, LINE_LIMIT};
pub use journal_sessions::JournalSessions;
pub use journal_writer::{SharedLog, write_entry, write_lines, write_start};
pub use part::{Entry, EntryBody, Headers, HttpHead, Part, PlacedMessage, RecordedCall, SessionEnd, SessionStart};
pub use request_identity::{ClosestRequest, RequestIdentity, RequestKey};
pub use stats::{CallStats, Latency, StatKey, StatKind, Stats};
pub use timeline::{RelatedEvent, Timeline, TimelineItem};
pub use trace_reader::{FileSpan, TraceReader};
pub use trace_writer::TraceWriter;
