//! Messages that could not be understood.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::value::RawValue;

use super::envelope::Envelope;
use super::{ErrorReply, ExtraMembers, Message, Reply, RequestId};
use crate::json::RawJson;

/// Bytes that are no valid message, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Garbled {
    /// What is wrong with it.
    pub reason: GarbledReason,
    /// The id in the message, if it could be read: the pending request with this id can fail at once.
    pub id: Option<RequestId>,
}

/// What is wrong with a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GarbledReason {
    /// Nothing but white space.
    Blank,
    /// Not UTF-8 from this byte on.
    NotUtf8 {
        /// Offset of the first bad byte.
        at: usize,
    },
    /// Text that is not JSON: a log line, a banner, a traceback.
    NotJson {
        /// The JSON parser's message, with the position.
        detail: String,
    },
    /// The stream ended in the middle of a message.
    PartialLine,
    /// More bytes than the limit; the rest was dropped.
    TooLong {
        /// The limit in bytes.
        limit: usize,
    },
    /// JSON, but neither an object nor a batch.
    NotAnObject {
        /// What it is instead, such as `a number`.
        kind: &'static str,
    },
    /// A batch without messages.
    EmptyBatch,
    /// A key of JSON-RPC that occurs twice: parsers differ in which one they use.
    DuplicateKey {
        /// The key.
        key: &'static str,
    },
    /// `jsonrpc` is absent or not `"2.0"`.
    NotVersion2 {
        /// The value of the member, if there is one.
        found: Option<String>,
    },
    /// An id that is `null`, a fraction, beyond 64 bits, or neither a number nor a string.
    BadId {
        /// The text of the id.
        found: String,
    },
    /// `method` is not a string.
    BadMethod {
        /// The value of the member.
        found: String,
    },
    /// `params` is neither an object nor an array.
    BadParams {
        /// The value of the member.
        found: String,
    },
    /// `error` has no integer `code` or no text `message`.
    BadError {
        /// The value of the member.
        found: String,
    },
    /// A response with both `result` and `error`.
    ResultAndError,
    /// Both a request and a response: `method` in addition to `result` or `error`.
    RequestAndResponse,
    /// No `method`, no `result` and no `error`.
    NoMethodOrResult,
    /// A result or error without an id, so it belongs to no request.
    NoId,
}

/// How a transport cut a message. The bytes alone do not contain this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truncation {
    /// The stream ended in the middle of the message.
    PartialLine,
    /// The message was longer than the limit.
    TooLong {
        /// The limit in bytes.
        limit: usize,
    },
}

impl GarbledReason {
    /// How the transport cut the message, if that is the reason. Every other reason can be found replaced by parsing the
    /// bytes.
    pub fn truncation(&self) -> Option<Truncation> {
        match self {
            GarbledReason::PartialLine => Some(Truncation::PartialLine),
            GarbledReason::TooLong { limit } => Some(Truncation::TooLong { limit: *limit }),
            GarbledReason::Blank
            | GarbledReason::NotUtf8 { .. }
            | GarbledReason::NotJson { .. }
            | GarbledReason::NotAnObject { .. }
            | GarbledReason::EmptyBatch
            | GarbledReason::DuplicateKey { .. }
            | GarbledReason::NotVersion2 { .. }
            | GarbledReason::BadId { .. }
            | GarbledReason::BadMethod { .. }
            | GarbledReason::BadParams { .. }
            | GarbledReason::BadError { .. }
            | GarbledReason::ResultAndError
            | GarbledReason::RequestAndResponse
            | GarbledReason::NoMethodOrResult
            | GarbledReason::NoId => None,
        }
    }
}

impl fmt::Display for GarbledReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GarbledReason::Blank => f.write_str("a blank line"),
            GarbledReason::NotUtf8 { at } => write!(f, "not UTF-8 from byte {at} on"),
            GarbledReason::NotJson { detail } => write!(f, "not JSON: {detail}"),
            // Traces contain this text.
            GarbledReason::PartialLine => f.write_str("half a line: the stream ended in the middle of a message"),
            GarbledReason::TooLong { limit } => write!(f, "longer than the limit of {limit} bytes"),
            GarbledReason::NotAnObject { kind } => write!(f, "JSON, but {kind} instead of an object"),
            GarbledReason::EmptyBatch => f.write_str("an empty batch"),
            GarbledReason::DuplicateKey { key } => write!(f, "`{key}` appears twice"),
            GarbledReason::NotVersion2 { found: None } => f.write_str("no `\"jsonrpc\": \"2.0\"`"),
            GarbledReason::NotVersion2 { found: Some(found) } => write!(f, "`jsonrpc` is {found} instead of \"2.0\""),
            GarbledReason::BadId { found } => write!(f, "`id` is {found} instead of a string or a 64-bit integer"),
            GarbledReason::BadMethod { found } => write!(f, "`method` is {found} instead of a string"),
            GarbledReason::BadParams { found } => write!(f, "`params` is {found} instead of an object"),
            GarbledReason::BadError { found } => {
                write!(f, "`error` is {found} instead of an object with `code` and `message`")
            }
            GarbledReason::ResultAndError => f.write_str("both `result` and `error`"),
            GarbledReason::RequestAndResponse => f.write_str("both `method` and a result or error"),
            GarbledReason::NoMethodOrResult => f.write_str("no `method`, no `result`, no `error`"),
            GarbledReason::NoId => f.write_str("a response without `id`"),
        }
    }
}

impl fmt::Display for Garbled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

/// The code of an error without a valid code: JSON-RPC's "internal error".
const MISSING_CODE: i64 = -32603;

impl Message {
    /// The reply that a lenient client reads from a garbled response: a result with an error that is `null`, an error
    /// without a code or a message or that is just a text, any response without `jsonrpc`.
    pub fn read_leniently(&self) -> Option<Reply> {
        self.as_garbled()?;
        let envelope: Envelope<'_> = serde_json::from_slice(&self.raw).ok()?;
        let present = |value: &&[u8]| *value != b"null";
        match (envelope.result, envelope.error.filter(present)) {
            _ if envelope.method.is_some() || envelope.duplicate.is_some() => None,
            (Some(result), None) => Some(Reply::Result(RawJson::slice(&self.raw, result))),
            (result, Some(error)) if result.filter(present).is_none() => Some(Reply::Error(self.lenient_error(error))),
            (_, _) => None,
        }
    }

    fn lenient_error(&self, error: &[u8]) -> ErrorReply {
        let Ok(members) = serde_json::from_slice::<BTreeMap<String, &RawValue>>(error) else {
            let whole = RawJson::slice(&self.raw, error);
            return ErrorReply::new(MISSING_CODE, whole.text().unwrap_or_else(|| whole.to_string()));
        };
        let piece = |value: &RawValue| RawJson::slice(&self.raw, value.get().as_bytes());
        let member = |key: &str| members.get(key).map(|value| piece(value));
        let code = member("code").and_then(|code| whole(code.as_str())).unwrap_or(MISSING_CODE);
        let message = member("message").and_then(|message| message.text());
        let more = members.iter().filter(|(key, _)| !["code", "message", "data"].contains(&key.as_str()));
        let more = more.map(|(key, value)| (key.clone(), piece(value)));
        ErrorReply {
            code,
            message: message.unwrap_or_default(),
            data: member("data"),
            more: ExtraMembers::from_members(more.collect()),
        }
    }

    /// Returns the message with another id; `None` if the message has no id to replace.
    #[must_use]
    pub fn with_id(&self, id: &RequestId) -> Option<Message> {
        let envelope: Envelope<'_> = serde_json::from_slice(&self.raw).ok()?;
        let old = self.raw.slice_ref(envelope.id?);
        let start = old.as_ptr() as usize - self.raw.as_ptr() as usize;
        let mut text = self.raw[..start].to_vec();
        text.extend(serde_json::to_vec(id).ok()?);
        text.extend_from_slice(&self.raw[start + old.len()..]);
        Some(Message::parse(text))
    }
}

/// The integer that is written as a number with a fraction, such as `1.0`.
fn whole(number: &str) -> Option<i64> {
    number.parse().ok().or_else(|| number.strip_suffix(".0")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lenient_reply(text: &str) -> Option<String> {
        let message = Message::parse(text.to_owned());
        message
            .read_leniently()
            .map(|reply| String::from_utf8_lossy(Message::reply(7.into(), &reply).raw()).into_owned())
    }

    #[test]
    fn a_response_that_breaks_a_rule_is_read_leniently() {
        for (text, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"result":{"a":1.50},"error":null}"#, r#""result":{"a":1.50}"#),
            (r#"{"id":1,"result":{}}"#, r#""result":{}"#),
            (r#"{"jsonrpc":"2.0","id":1,"error":{"code":-5}}"#, r#""error":{"code":-5,"message":""}"#),
            (
                r#"{"id":1,"result":null,"error":{"code":-5,"message":"x","data":[]}}"#,
                r#""error":{"code":-5,"message":"x","data":[]}"#,
            ),
            (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1.0,"message":"x"}}"#, r#""error":{"code":1,"message":"x"}"#),
            (r#"{"jsonrpc":"2.0","id":1,"error":{"message":"x"}}"#, r#""error":{"code":-32603,"message":"x"}"#),
            (r#"{"jsonrpc":"2.0","id":1,"error":"oops"}"#, r#""error":{"code":-32603,"message":"oops"}"#),
            (r#"{"jsonrpc":"2.0","id":1,"error":[1]}"#, r#""error":{"code":-32603,"message":"[1]"}"#),
        ] {
            assert_eq!(lenient_reply(text), Some(format!(r#"{{"jsonrpc":"2.0","id":7,{expected}}}"#)), "{text}");
        }
    }

    #[test]
    fn a_message_with_both_or_no_reply_has_no_lenient_reply() {
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"x","result":{}}"#,
            "noise",
        ] {
            assert_eq!(lenient_reply(text), None, "{text}");
        }
    }

    #[test]
    fn an_id_is_replaced_and_nothing_else() {
        let message = Message::parse(r#"{ "result": {"id":1}, "error":null, "id" : 1 }"#);
        let replaced = message.with_id(&"b".into()).unwrap();
        assert_eq!(replaced.raw(), r#"{ "result": {"id":1}, "error":null, "id" : "b" }"#.as_bytes());
        assert_eq!(Message::parse(r#"{"result":{}}"#).with_id(&1.into()), None);
    }
}
