//! JSON-RPC: one message and its exact bytes.
//!
//! ```text
//! bytes ──► parse ──► Message { raw, body }      never fails: invalid bytes are Body::Garbled, with a reason
//! ```

mod body;
mod build;
mod envelope;
mod fast_envelope;
mod garbled;
mod method;
mod parse;
mod reply;

pub use body::RequestId;
pub use body::{Body, Message, Notification, Request, Response};
pub use garbled::{Garbled, GarbledReason, Truncation};
pub use method::Method;
pub use reply::{ErrorReply, ExtraMembers, Reply};
