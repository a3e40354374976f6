//! The answers of a mock that a test declares in Rust.

use std::time::Duration;

use serde_json::Value;

/// An answer of a [`MockBuilder`](super::MockBuilder): what [`text`], [`tool_error`], [`error`], [`template`] and
/// [`result`] return.
///
/// A JSON value becomes structured content of a tool, or the text of a resource. A string becomes [`text`].
#[derive(Clone, Debug, PartialEq)]
pub struct MockAnswer {
    pub(super) reply: MockReply,
    pub(super) delay: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum MockReply {
    Text(String),
    Template(String),
    ToolError(String),
    Structured(Value),
    Result(Value),
    Error { code: i64, message: String, data: Option<Value> },
}

impl MockAnswer {
    fn new(reply: MockReply) -> MockAnswer {
        MockAnswer { reply, delay: None }
    }

    /// Waits this long before the answer is sent.
    #[must_use]
    pub fn delay(self, delay: Duration) -> MockAnswer {
        MockAnswer { delay: Some(delay), ..self }
    }

    /// Adds `data` to an [`error`]; other answers have none.
    #[must_use]
    pub fn data(mut self, value: Value) -> MockAnswer {
        if let MockReply::Error { data, .. } = &mut self.reply {
            *data = Some(value);
        }
        self
    }
}

/// Text: of a tool's content, of a resource, or of a prompt's one message. It is literal; [`template`] is not.
pub fn text(text: impl Into<String>) -> MockAnswer {
    MockAnswer::new(MockReply::Text(text.into()))
}

/// Text in which expressions such as `{{ arguments.city }}` are replaced, as in a mock file.
pub fn template(text: impl Into<String>) -> MockAnswer {
    MockAnswer::new(MockReply::Template(text.into()))
}

/// The result of a tool that failed: this text, with `isError`.
pub fn tool_error(text: impl Into<String>) -> MockAnswer {
    MockAnswer::new(MockReply::ToolError(text.into()))
}

/// A JSON-RPC error instead of a result.
pub fn error(code: i64, message: impl Into<String>) -> MockAnswer {
    MockAnswer::new(MockReply::Error { code, message: message.into(), data: None })
}

/// A whole result as it is on the wire: `json!({"content": [{"type": "image", …}]})`.
pub fn result(result: Value) -> MockAnswer {
    MockAnswer::new(MockReply::Result(result))
}

impl From<Value> for MockAnswer {
    fn from(value: Value) -> MockAnswer {
        MockAnswer::new(MockReply::Structured(value))
    }
}

impl From<&str> for MockAnswer {
    fn from(value: &str) -> MockAnswer {
        text(value)
    }
}

impl From<String> for MockAnswer {
    fn from(value: String) -> MockAnswer {
        text(value)
    }
}
