//! `rehearse record`
//!
//! ```text
//! words ──► Recorder ──┬─► a server behind pipes: stdio
//!              │       └─► a server behind a URL: http
//!              └──────► trace, journal; how it went is said on stderr, and by the exit status
//! ```

mod http;
mod options;
mod stdio;

pub(super) use options::{Record, pair};
