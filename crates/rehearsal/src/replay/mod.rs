//! Replays a trace as a server.
//!
//! ```text
//! trace ──build──► Index, a file next to it ─┐
//! request ──► key ──► which recording ───────┴─► RecordedAnswer
//!                └──► none ──► refused with the closest, the first of its kind, or forwarded
//! ```
//!
//! The answer chain is recording ─► protocol, and the loop is that of [`serve`](crate::serve). Only the most recently
//! used exchanges of the trace are in memory.

mod handshakes;
mod index;
mod indexed_trace;
mod ledger;
mod lists;
mod options;
mod recorded_source;
#[expect(clippy::module_inception, reason = "a file is named after the one thing in it")]
mod replay;
mod replay_position;
mod replay_server;
mod sidecar;
mod unmatched;

pub use index::IndexError;
pub use ledger::{Ledger, LedgerLine};
pub use options::{IndexCallback, IndexProgress, OnUnmatched, Repeat, ReplayOptions, SessionFilter};
pub use replay::{Replay, ReplayError};
pub use replay_server::{ReplayServer, ReplayServerError};
pub use sidecar::SidecarFile;
