//! The shapes of each version's messages, and checks against them.
//!
//! ```text
//! table.txt ──► ShapeTable ──► message, its sender, version ──► Finding, Finding, …
//! TimelineItem, … ──► SessionCheck (finds the version) ──────┘
//! ```
//!
//! One table describes all versions: each type, field and method has its first and its last version. Keys that the
//! table does not contain are allowed, as the protocol allows them.

mod check;
mod choice;
mod headers;
mod message;
#[cfg(test)]
mod mutation_tests;
mod parse;
mod session_check;
mod strip;
mod table;

pub(crate) use strip::{has_code, server_may_send, strip_notification, strip_result};

pub(crate) use check::misspelled_keys;
pub(crate) use message::check_written_result;

pub use message::{MAX_FINDINGS, check_notification, check_request, check_response};
pub use session_check::{LocatedFinding, SessionCheck};
pub use strip::{client_may_request, strip_unknown};
pub use table::Versions;
