//! The shapes of each version's messages, and checks against them.
//!
//! ```text
//! table.txt ──► Table ──► message, its sender, version ──► Finding, Finding, …
//! Moment, Moment, … ──► Conversation (finds the version) ──┘
//! ```
//!
//! One table describes all versions: each type, field and method has its first and its last version. Keys that the
//! table does not contain are allowed, as the protocol allows them.

mod check;
mod choice;
mod conversation;
mod forget;
mod headers;
mod message;
#[cfg(test)]
mod mutations;
mod parse;
mod table;

pub(crate) use forget::{forget_in_notification, forget_in_result, has_code, may_be_said};

pub(crate) use check::misspelt;

pub use conversation::{Conversation, Located};
pub use forget::{forget_unknown, may_be_asked};
pub use message::{MAX_FINDINGS, check_notification, check_request, check_response};
pub use table::Versions;
