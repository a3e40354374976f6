//! What may happen instead of a result.

use rehearsal_core::message::ErrorReply;
use rehearsal_core::protocol::code;
use serde_json::Value;

/// What a request gets instead of the result that it asked for.
#[derive(Debug)]
pub(crate) enum Instead {
    /// A JSON-RPC error: the request made no sense.
    Error(ErrorReply),
    /// A result with `isError`: the tool was found and failed, and the model may read why.
    ToolFailed(String),
    /// Since 2026-07-28: what the client must find out before it asks again.
    InputRequired(Value),
    /// Nothing: it was cancelled.
    Silence,
}

impl Instead {
    /// The params make no sense.
    pub(crate) fn invalid_params(message: impl Into<String>) -> Instead {
        Instead::Error(ErrorReply::new(code::INVALID_PARAMS, message))
    }
}

impl From<ErrorReply> for Instead {
    fn from(error: ErrorReply) -> Instead {
        Instead::Error(error)
    }
}
