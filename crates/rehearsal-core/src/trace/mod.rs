//! Recorded conversations: what happened, in what order, and how it is kept in files.
//!
//! ```text
//! Entry, Entry, … ──► journal (one a line, as it happens) ──► fold ──► trace (one session a line)
//! any file ──► reader ──► Part, Part, … ──► writer ──► any file
//! ```

mod entry;
mod part;

pub use entry::{End, Entry, HttpHead, What};
pub use part::{Call, Part, Placed, Start};
