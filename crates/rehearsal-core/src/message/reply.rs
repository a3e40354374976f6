//! What a request was answered with.

use std::fmt;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::json::RawJson;

/// A result or an error, never both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The request succeeded, as far as JSON-RPC is concerned: a tool's own failure is in here too.
    Result(RawJson),
    /// The request was refused.
    Error(ErrorReply),
}

impl Reply {
    /// Whether the client is sent away until it has answered something (2026-07-28).
    pub fn is_input_required(&self) -> bool {
        // Every call of the stateless era asks this, so it must not cost reading the whole result.
        let Reply::Result(result) = self else { return false };
        static WORD: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("input_required"));
        // With escapes it could be written in many ways.
        if WORD.find(result.bytes()).is_none() && memchr::memchr(b'\\', result.bytes()).is_none() {
            return false;
        }
        result.field("resultType").and_then(|kind| kind.text()).is_some_and(|kind| kind == "input_required")
    }
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
