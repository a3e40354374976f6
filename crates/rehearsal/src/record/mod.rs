//! Records connections without changing them for either side.
//!
//! ```text
//! bytes ──► EntryBody ──► SessionRecorder ──► redaction ──► journal (one entry a line, in the kernel before the bytes
//!                          │                                 │        are forwarded)
//!                          └─ hooks                          └─ when the session ends: fold ──► trace (one session a line)
//! ```
//!
//! A [`Recorder`] holds the settings; a [`SessionRecorder`] records one session. While a session runs, its journal is
//! next to the trace file as `TRACE.SESSION.journal`. When it ends, it is appended to the trace. If the recorder is killed
//! before that, the next recorder finds the journal and appends it.
//!
//! A recording never disturbs what it records. A full disk, a file that cannot be written and a hook that panics are
//! reported as [notices](Notice), and the connection continues.

mod clock;
mod hooks;
mod http;
#[cfg(feature = "rmcp")]
mod intercept;
mod journal;
mod line_splitter;
mod multiline_secrets;
mod notice;
mod partial_message;
mod recorder;
mod recover;
mod session_recorder;
mod stdio;
mod trace_append;

pub use hooks::{RequestHook, ResponseHook};
pub use http::HttpRecording;
#[cfg(feature = "rmcp")]
pub use intercept::{Intercepted, intercept};
pub use notice::Notice;
pub use notice::Summary;
pub use recorder::{Recorder, RecorderBuilder};
pub use recover::{Recovered, RecoveryOutcome, journals, recover};
pub use recover::{UnrecoveredSessions, unrecovered};
pub use session_recorder::SessionRecorder;
pub use stdio::StdioRecording;
pub(crate) use trace_append::last_line;
