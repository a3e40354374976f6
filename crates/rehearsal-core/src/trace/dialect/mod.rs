//! Recordings of other tools: each is read into parts, and some are written from parts.
//!
//! ```text
//! any file ──► detect ──► RecordingReader ──► Part, Part, … ──► RecordingWriter ──► any file
//! ```
//!
//! Some data in a file of the Python interceptor has no place in a trace. It is kept in the member `_imported` of the
//! message or of the session's metadata, as the difference between that file and what we would have written. So an
//! export contains it again.

mod cassettes;
mod external_sort;
mod har;
mod json_records;
mod json_tree;
mod mcporter;
mod patch;
mod python_call;
mod python_embedded;
mod python_log;
mod python_names;
mod python_time;
mod python_trace;
mod reader;
mod session_info;
mod writer;

pub use patch::IMPORTED;
pub use python_call::is_code_recorded;
pub use python_trace::invalid_calls;
pub use reader::RecordingReader;
pub use writer::{RecordingWriter, WriteError};
