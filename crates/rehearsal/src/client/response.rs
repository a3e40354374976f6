//! What a server answered.

use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use rehearsal_core::exchange::{Exchange, TimedMessage};
use rehearsal_core::json::RawJson;
#[cfg(feature = "dry-run")]
use rehearsal_core::message::RequestId;
use rehearsal_core::message::{ErrorReply, Message, Method, Reply};
use rehearsal_core::protocol::Content;
use rehearsal_core::protocol::content::ResourceContents;
use serde_json::Value;

use super::connection::CompletedRequest;

/// A response: a result, or an error of the protocol.
///
/// A tool that fails *responds*: its result has `isError`. That is distinct from a protocol error, but neither is a
/// [success](ServerResponse::success).
#[derive(Debug)]
pub struct ServerResponse {
    answered: CompletedRequest,
    /// `Err` if a `Value` cannot hold it.
    result: OnceLock<Result<Value, String>>,
}

impl ServerResponse {
    pub(super) fn new(answered: CompletedRequest) -> ServerResponse {
        ServerResponse { answered, result: OnceLock::new() }
    }

    /// Whether the request succeeded: a complete result that is not a tool's failure.
    pub fn success(&self) -> bool {
        matches!(self.reply(), Some(Reply::Result(_)))
            && self.read().is_ok()
            && !self.is_tool_error()
            && !self.is_input_required()
    }

    /// All text, joined: of the content blocks of a tool, the contents of a resource, or the messages of a prompt.
    pub fn content(&self) -> String {
        let blocks = self.blocks();
        if !blocks.is_empty() {
            return blocks.iter().filter_map(Content::as_text).collect();
        }
        self.resource_contents().iter().filter_map(ResourceContents::as_text).collect()
    }

    /// The code of a protocol error.
    pub fn error_code(&self) -> Option<i64> {
        self.error().map(|error| error.code)
    }

    /// The message of a protocol error or of a failed tool.
    pub fn error_message(&self) -> Option<String> {
        match self.error() {
            Some(error) => Some(error.message.clone()),
            None if self.is_tool_error() => Some(self.content()),
            None if self.read().is_err() => self.read().as_ref().err().cloned(),
            None if self.is_input_required() => {
                Some("the server requires input that has no scripted answer".to_owned())
            }
            None => None,
        }
    }

    /// The whole message, read; `null` in the rare case that it is nested too deep for a [`Value`]: see [`ServerResponse::bytes`],
    /// which also has every digit of every number.
    pub fn raw(&self) -> Value {
        RawJson::parse(self.bytes()).and_then(|raw| raw.value()).unwrap_or_default()
    }

    /// The exact bytes of the whole message.
    pub fn bytes(&self) -> &Bytes {
        self.message().raw()
    }

    /// The protocol error, if it is one.
    pub fn error(&self) -> Option<&ErrorReply> {
        if let Some(Reply::Error(error)) = self.reply() { Some(error) } else { None }
    }

    /// Whether the tool failed: the result has `isError`. A protocol error is no tool error.
    pub fn is_tool_error(&self) -> bool {
        self.result().get("isError").and_then(Value::as_bool).unwrap_or(false)
    }

    /// Whether the server answered with a JSON-RPC error.
    pub fn is_protocol_error(&self) -> bool {
        self.error().is_some()
    }

    /// Whether the result is `input_required` (2026-07-28), because an input request had no scripted answer.
    pub fn is_input_required(&self) -> bool {
        self.reply().is_some_and(Reply::is_input_required)
    }

    /// The result; `null` for an error, and for a result that a [`Value`] cannot hold.
    pub fn result(&self) -> &Value {
        self.read().as_ref().unwrap_or(&Value::Null)
    }

    fn read(&self) -> &Result<Value, String> {
        self.result.get_or_init(|| match self.reply() {
            Some(Reply::Result(result)) => {
                result.value().map_err(|error| format!("the result cannot be read, though it is JSON: {error}"))
            }
            Some(Reply::Error(_)) | None => Ok(Value::Null),
        })
    }

    /// The structured content of a tool.
    pub fn structured_content(&self) -> Option<&Value> {
        self.result().get("structuredContent")
    }

    /// The content blocks of a tool, or of the messages of a prompt.
    pub fn blocks(&self) -> Vec<Content> {
        let result = self.result();
        if let Some(blocks) = result.get("content").and_then(Value::as_array) {
            return blocks.iter().map(Content::read).collect();
        }
        let messages = result.get("messages").and_then(Value::as_array).into_iter().flatten();
        messages.filter_map(|message| message.get("content")).map(Content::read).collect()
    }

    /// The contents of a resource.
    pub fn resource_contents(&self) -> Vec<ResourceContents> {
        let contents = self.result().get("contents").and_then(Value::as_array);
        contents.into_iter().flatten().filter_map(ResourceContents::read).collect()
    }

    /// The time from request to response.
    pub fn took(&self) -> Duration {
        self.answered.exchange.took().unwrap_or_default()
    }

    /// The HTTP status of the response; `None` without HTTP.
    pub fn http_status(&self) -> Option<u16> {
        self.answered.status
    }

    /// The method of the request.
    pub fn method(&self) -> Option<&Method> {
        self.answered.exchange.request.message.method()
    }

    /// The notifications that came before the answer and belong to it, in order.
    pub fn notifications(&self) -> &[TimedMessage] {
        &self.answered.exchange.notifications
    }

    /// The progress notifications that arrived before the response.
    pub fn progress(&self) -> Vec<ProgressUpdate> {
        self.answered
            .exchange
            .notifications
            .iter()
            .filter_map(|stamped| ProgressUpdate::read(&stamped.message))
            .collect()
    }

    /// The log messages that came before the answer.
    pub fn logs(&self) -> Vec<LogMessage> {
        self.answered.exchange.notifications.iter().filter_map(|stamped| LogMessage::read(&stamped.message)).collect()
    }

    /// The exchange: request, notifications and outcome.
    pub fn exchange(&self) -> &Exchange {
        &self.answered.exchange
    }

    /// The id of the request.
    #[cfg(feature = "dry-run")]
    pub(crate) fn request_id(&self) -> Option<&RequestId> {
        self.answered.exchange.request.message.as_request().map(|request| &request.id)
    }

    /// The reply.
    pub(crate) fn reply(&self) -> Option<&Reply> {
        self.answered.exchange.reply()
    }

    fn message(&self) -> &Message {
        self.answered.exchange.answer().map_or(&self.answered.exchange.request.message, |answer| &answer.message)
    }
}

/// The progress of a request: a `notifications/progress`.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgressUpdate {
    /// Grows with every notification.
    pub progress: f64,
    /// The final value of `progress`, if it is known.
    pub total: Option<f64>,
    /// A description, since 2025-03-26.
    pub message: Option<String>,
}

impl ProgressUpdate {
    /// Reads a `notifications/progress`; `None` for anything else.
    pub fn read(message: &Message) -> Option<ProgressUpdate> {
        let notification = message.as_notification().filter(|message| message.method == Method::PROGRESS)?;
        let params = notification.params.as_ref()?.value().ok()?;
        Some(ProgressUpdate {
            progress: params.get("progress")?.as_f64()?,
            total: params.get("total").and_then(Value::as_f64),
            message: params.get("message").and_then(Value::as_str).map(str::to_owned),
        })
    }
}

/// A log message of a server: a `notifications/message`.
#[derive(Clone, Debug, PartialEq)]
pub struct LogMessage {
    /// One of the eight levels of syslog.
    pub level: String,
    /// The name of the logger.
    pub logger: Option<String>,
    /// The logged value.
    pub data: Value,
}

impl LogMessage {
    /// Reads a `notifications/message`; `None` for anything else.
    pub fn read(message: &Message) -> Option<LogMessage> {
        let notification = message.as_notification().filter(|message| message.method == Method::LOG_MESSAGE)?;
        let params = notification.params.as_ref()?.value().ok()?;
        Some(LogMessage {
            level: params.get("level")?.as_str()?.to_owned(),
            logger: params.get("logger").and_then(Value::as_str).map(str::to_owned),
            data: params.get("data").cloned().unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rehearsal_core::exchange::{Channel, Pairing, PairingEvent, Side};
    use serde_json::json;

    fn response(answer: Value) -> ServerResponse {
        let mut pairing = Pairing::<()>::default();
        let request = Message::request(1.into(), Method::TOOLS_CALL, None::<&()>).unwrap();
        pairing.step(Side::Client, Channel::MAIN, Duration::ZERO, request);
        let message = Message::parse(answer.to_string());
        match pairing.step(Side::Server, Channel::MAIN, Duration::from_millis(7), message) {
            PairingEvent::Completed { exchange, .. } => {
                ServerResponse::new(CompletedRequest { exchange, status: None })
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn text_blocks_are_joined_and_the_bytes_are_kept() {
        let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {"content": [
            {"type": "text", "text": "a"}, {"type": "image", "data": "", "mimeType": "image/png"}, {"type": "text", "text": "b"},
        ], "structuredContent": {"n": 1}}});
        let response = response(answer.clone());
        assert!(response.success());
        assert_eq!(response.content(), "ab");
        assert_eq!(response.raw(), answer);
        assert_eq!(response.bytes(), &answer.to_string());
        assert_eq!(response.structured_content(), Some(&json!({"n": 1})));
        assert_eq!(response.took(), Duration::from_millis(7));
    }

    #[test]
    fn a_tools_failure_is_neither_a_success_nor_a_protocol_error() {
        let response = response(
            json!({"jsonrpc": "2.0", "id": 1, "result": {"isError": true, "content": [{"type": "text", "text": "no"}]}}),
        );
        assert!(!response.success() && response.is_tool_error());
        assert_eq!(response.error_code(), None);
        assert_eq!(response.error_message().as_deref(), Some("no"));
    }

    #[test]
    fn a_result_that_is_too_deep_is_an_error_with_its_bytes() {
        let mut pairing = Pairing::<()>::default();
        let request = Message::request(1.into(), Method::TOOLS_CALL, None::<&()>).unwrap();
        pairing.step(Side::Client, Channel::MAIN, Duration::ZERO, request);
        let deep = "[".repeat(200) + &"]".repeat(200);
        let message = Message::parse(format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"n":{deep}}}}}"#));
        let PairingEvent::Completed { exchange, .. } =
            pairing.step(Side::Server, Channel::MAIN, Duration::ZERO, message)
        else {
            panic!("not settled")
        };
        let response = ServerResponse::new(CompletedRequest { exchange, status: None });
        assert!(!response.success());
        let text = response.error_message().unwrap();
        assert!(text.starts_with("the result cannot be read, though it is JSON: recursion limit"), "{text}");
        assert!(response.bytes().ends_with(b"]]}}"));
    }

    #[test]
    fn a_protocol_error_has_a_code_and_no_content() {
        let response =
            response(json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "unknown tool"}}));
        assert!(!response.success() && !response.is_tool_error());
        assert_eq!(response.error_code(), Some(-32602));
        assert_eq!(response.error_message().as_deref(), Some("unknown tool"));
        assert_eq!(response.content(), "");
    }
}
