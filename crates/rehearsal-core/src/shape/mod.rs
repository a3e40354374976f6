//! What the messages of each version look like, and where one does not.
//!
//! ```text
//! table.txt ──► Table ──► message, who says it, version ──► Finding, Finding, …
//! Moment, Moment, … ──► Conversation (which version is spoken) ──┘
//! ```
//!
//! One table describes all versions: each type, field and method says since when and until when it is known. Keys that the
//! table does not know are allowed, as the protocol allows them.

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
