//! Records connections without changing them for either side.
//!
//! ```text
//! bytes ──► What ──► Tape ──► redaction ──► journal (one entry a line, in the kernel before the bytes are forwarded)
//!                     │                        └─ when the session ends: fold ──► trace (one session a line)
//!                     └─ hooks
//! ```
//!
//! A [`Recorder`] holds the settings; a [`SessionRecorder`] records one session. While a session runs, its journal is next to the
//! trace file as `TRACE.SESSION.journal`. When it ends, it is appended to the trace. If the recorder is killed before
//! that, the next recorder finds the journal and appends it.
//!
//! A recording never disturbs what it records. A full disk, a file that cannot be written and a hook that panics are
//! reported as [notices](Notice), and the connection continues.

mod across_lines;
mod append;
mod clock;
mod hooks;
mod http;
#[cfg(feature = "rmcp")]
mod intercept;
mod journal;
mod lines;
mod notice;
mod recorder;
mod recover;
mod stdio;
mod tape;
mod unfinished;

pub(crate) use append::last_line;
pub use hooks::{RequestHook, ResponseHook};
pub use http::HttpRecording;
#[cfg(feature = "rmcp")]
pub use intercept::{Intercepted, intercept};
pub use notice::Notice;
pub use notice::Summary;
pub use recorder::{Recorder, RecorderBuilder};
pub use recover::{Recovered, RecoveryOutcome, journals, recover};
pub use recover::{UnrecoveredSessions, unrecovered};
pub use stdio::StdioRecording;
pub use tape::SessionRecorder;
