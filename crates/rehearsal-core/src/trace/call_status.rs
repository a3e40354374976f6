//! The subject and the outcome of a call.

use std::fmt;

use super::RecordedCall;
use crate::message::{Body, Message, Reply};

/// The outcome of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallStatus {
    /// The response is a result.
    Ok,
    /// The response is a tool's result with `isError`.
    ToolFailed {
        /// The first text in its content, if there is one.
        text: Option<String>,
    },
    /// The server answered `input_required` (2026-07-28).
    InputRequired,
    /// The response is an error.
    Error {
        /// The code of the error.
        code: i64,
        /// The message of the error.
        message: String,
    },
    /// The response is garbled.
    Garbled {
        /// The reason.
        reason: String,
    },
    /// The request has no response.
    Unanswered,
}

impl CallStatus {
    /// The outcome of this call.
    pub fn from_call(call: &RecordedCall) -> CallStatus {
        let Some(response) = &call.response else { return CallStatus::Unanswered };
        match response.message.body() {
            Body::Response(response) => match &response.reply {
                Reply::Error(error) => CallStatus::Error { code: error.code, message: error.message.clone() },
                Reply::Result(result) => {
                    // Both keys are rare, so the bytes are searched before the JSON is parsed.
                    let has = |key: &str| memchr::memmem::find(result.bytes(), key.as_bytes()).is_some();
                    let is = |key: &str, text: &str| result.field(key).is_some_and(|value| value.as_str() == text);
                    if has("\"isError\"") && is("isError", "true") {
                        CallStatus::ToolFailed { text: first_text(result) }
                    } else if has("\"input_required\"") && is("resultType", "\"input_required\"") {
                        CallStatus::InputRequired
                    } else {
                        CallStatus::Ok
                    }
                }
            },
            Body::Garbled(garbled) => CallStatus::Garbled { reason: garbled.to_string() },
            Body::Request(_) | Body::Notification(_) | Body::Batch(_) => {
                CallStatus::Garbled { reason: "no response".to_owned() }
            }
        }
    }

    /// Whether the tool, the protocol or the connection failed.
    pub fn is_failure(&self) -> bool {
        match self {
            CallStatus::Ok | CallStatus::InputRequired => false,
            CallStatus::ToolFailed { .. }
            | CallStatus::Error { .. }
            | CallStatus::Garbled { .. }
            | CallStatus::Unanswered => true,
        }
    }

    /// A word for programs.
    pub fn word(&self) -> &'static str {
        match self {
            CallStatus::Ok => "ok",
            CallStatus::ToolFailed { .. } => "tool_failed",
            CallStatus::InputRequired => "input_required",
            CallStatus::Error { .. } => "error",
            CallStatus::Garbled { .. } => "garbled",
            CallStatus::Unanswered => "unanswered",
        }
    }
}

impl fmt::Display for CallStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallStatus::Ok => f.write_str("ok"),
            CallStatus::ToolFailed { text: Some(text) } => write!(f, "the tool failed: {text}"),
            CallStatus::ToolFailed { text: None } => f.write_str("the tool failed"),
            CallStatus::InputRequired => f.write_str("input required"),
            CallStatus::Error { code, message } => write!(f, "error {code}: {message}"),
            CallStatus::Garbled { reason } => write!(f, "garbled answer: {reason}"),
            CallStatus::Unanswered => f.write_str("no answer"),
        }
    }
}

fn first_text(result: &crate::json::RawJson) -> Option<String> {
    let content = result.field("content")?.value().ok()?;
    let texts = content.as_array()?.iter();
    texts.filter_map(|block| block.get("text")?.as_str()).next().map(str::to_owned)
}

/// The subject of a request or notification in addition to its method: the name of a tool or prompt, the URI of a
/// resource.
pub fn subject(message: &Message) -> Option<String> {
    let keys: &[&str] = match message.method()?.as_str() {
        "tools/call" | "prompts/get" => &["name"],
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" | "notifications/resources/updated" => {
            &["uri"]
        }
        "logging/setLevel" => &["level"],
        "tasks/get" | "tasks/result" | "tasks/update" | "tasks/cancel" | "notifications/tasks/status" => &["taskId"],
        "completion/complete" => {
            let reference = message.params()?.field("ref")?;
            return reference.field("name").or_else(|| reference.field("uri"))?.text();
        }
        _ => return None,
    };
    message.params()?.at(keys)?.text()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::Side;
    use crate::trace::PlacedMessage;
    use std::time::Duration;

    #[test]
    fn every_answer_has_its_status() {
        let table = [
            (r#"{"jsonrpc":"2.0","id":1,"result":{"a":"\"isError\""}}"#, "ok"),
            (r#"{"jsonrpc":"2.0","id":1,"result":{"isError":false}}"#, "ok"),
            (
                r#"{"jsonrpc":"2.0","id":1,"result":{"isError":true,"content":[{"type":"text","text":"no rain"}]}}"#,
                "the tool failed: no rain",
            ),
            (r#"{"jsonrpc":"2.0","id":1,"result":{"isError":true}}"#, "the tool failed"),
            (r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required"}}"#, "input required"),
            (r#"{"jsonrpc":"2.0","id":1,"error":{"code":-5,"message":"no"}}"#, "error -5: no"),
            (r#"{"id":1,"result":{}}"#, "garbled answer: no `\"jsonrpc\": \"2.0\"`"),
        ];
        let request = Message::parse(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rain"}}"#);
        assert_eq!(subject(&request).as_deref(), Some("rain"));
        let call = |response| RecordedCall {
            asker: Side::Client,
            request: PlacedMessage::new(0, Duration::ZERO, request.clone()),
            response,
        };
        for (text, expected) in table {
            let response = PlacedMessage::new(1, Duration::ZERO, Message::parse(text));
            assert_eq!(CallStatus::from_call(&call(Some(response))).to_string(), expected, "{text}");
        }
        assert_eq!(CallStatus::from_call(&call(None)), CallStatus::Unanswered);
    }

    #[test]
    fn a_message_is_about_a_tool_a_prompt_a_resource_or_nothing() {
        let table = [
            (r#""method":"resources/read","params":{"uri":"file:///a"}"#, Some("file:///a")),
            (r#""method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"greet"}}"#, Some("greet")),
            (r#""method":"tools/call","params":{"name":5}"#, None),
            (r#""method":"tools/list""#, None),
        ];
        for (members, expected) in table {
            let message = Message::parse(format!(r#"{{"jsonrpc":"2.0","id":1,{members}}}"#));
            assert_eq!(subject(&message).as_deref(), expected, "{members}");
        }
    }
}
