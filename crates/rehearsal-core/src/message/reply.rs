//! What a request was answered with.

use std::fmt;

use crate::json::RawJson;

/// A result or an error, never both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The request succeeded, as far as JSON-RPC is concerned: a tool's own failure is in here too.
    Result(RawJson),
    /// The request was refused.
    Error(ErrorReply),
}

/// A JSON-RPC error object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorReply {
    /// What kind of failure, for programs.
    pub code: i64,
    /// What happened, for people.
    pub message: String,
    /// Whatever else the sender wanted to say.
    pub data: Option<RawJson>,
}

impl ErrorReply {
    /// An error without data.
    pub fn new(code: i64, message: impl Into<String>) -> ErrorReply {
        ErrorReply { code, message: message.into(), data: None }
    }

    /// The same error with data.
    pub fn with_data(self, data: &serde_json::Value) -> ErrorReply {
        ErrorReply { data: Some(RawJson::from_value(data)), ..self }
    }
}

impl fmt::Display for ErrorReply {
    /// `-32602: unknown tool`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}
