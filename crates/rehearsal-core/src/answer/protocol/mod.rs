//! The protocol source's answers: handshakes, lists, subscriptions, tasks.

mod handshake;
mod lists;
mod source;

pub use handshake::Introduction;
pub use lists::{ListKind, ListedForm, Lists, SurfaceItem};
pub use source::ProtocolSource;

pub(super) use source::no_resource;

use serde_json::Value;

use super::request_context::IncomingRequest;
use crate::message::ErrorReply;
use crate::protocol::code;

/// A param that must be a string.
pub(super) fn text_param<'a>(request: &'a IncomingRequest, name: &str) -> Result<&'a str, ErrorReply> {
    let text = request.params.get(name).and_then(Value::as_str);
    text.ok_or_else(|| invalid(format!("{} needs a string `{name}`", request.method)))
}

/// The error for invalid params.
pub(super) fn invalid(message: String) -> ErrorReply {
    ErrorReply::new(code::INVALID_PARAMS, message)
}
