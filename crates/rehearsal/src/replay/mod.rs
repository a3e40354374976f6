//! A trace becomes a server again.
//!
//! ```text
//! trace ──build──► Index, a file beside it ─┐
//! request ──► key ──► which recording ──────┴─► Recorded ──► RecordedPlay ──► the serving loop of the mock
//!                └──► none ──► refuse with the closest, the first of its kind, or the real server
//! ```
//!
//! Of the trace nothing is in memory but what is being played.

mod answers;
mod forward;
mod index;
mod ledger;
mod line;
mod lists;
mod openings;
mod options;
mod parked;
mod progress;
#[expect(clippy::module_inception, reason = "a file is named after the one thing in it")]
mod replay;
mod sidecar;
mod tape;
mod unmatched;

pub use forward::Upstream;
pub use index::IndexError;
pub use ledger::{Ledger, LedgerLine};
pub use options::{Indexed, OnIndex, Options, Repeat, Sessions, Unknown};
pub use replay::{Replay, ReplayError};
pub use sidecar::Beside;
