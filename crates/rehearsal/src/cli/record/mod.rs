//! `rehearse record`
//!
//! ```text
//! words ──► Recorder ──► a server behind pipes: stdio
//!              └──────► trace, journal; how it went is said on stderr, and by the exit status
//! ```

mod options;
mod stdio;

pub(super) use options::Record;
