//! Records conversations with no change to who has them.
//!
//! ```text
//! bytes ──► What ──► Tape ──► redaction ──► journal (one entry a line, in the kernel before the bytes go on)
//!                     │                        └─ when the session ends: fold ──► trace (one session a line)
//!                     └─ hooks
//! ```
//!
//! A [`Recorder`] says where to and how; a [`Tape`] is one session of it. While a session runs, its journal stands beside
//! the trace file as `TRACE.SESSION.journal`. When it ends it is put into the trace. Where it never ends, because
//! somebody was killed, the next one to look finds the journal and does it then.
//!
//! A recording never disturbs what it records: a full disk, a file that may not be written or a hook that panics
//! are told to whoever listens to [notices](Notice), and the conversation goes on.

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
pub use recover::{Fate, Recovered, journals, recover};
pub use recover::{Unrecovered, unrecovered};
pub use stdio::StdioRecording;
pub use tape::Tape;
