//! One JSON-RPC message: its exact bytes and their parsed meaning.

use std::fmt;

use bytes::Bytes;
use serde::{Serialize, Serializer};

use super::{Garbled, GarbledReason, Method, Reply};
use crate::json::RawJson;

/// One message: forward [`raw`](Message::raw), inspect [`body`](Message::body).
///
/// Parsing never fails and never changes a byte; the parts in the body are slices of the raw bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Message {
    pub(super) raw: Bytes,
    pub(super) body: Body,
}

/// The kind of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// A request.
    Request(Request),
    /// A notification.
    Notification(Notification),
    /// A response.
    Response(Response),
    /// A batch of messages, valid in 2025-03-26 only.
    Batch(Vec<Message>),
    /// Bytes that are no valid message, kept with a reason.
    Garbled(Garbled),
}

/// A request, which gets exactly one response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Unique among the requests that its sender has in flight.
    pub id: RequestId,
    /// The requested method.
    pub method: Method,
    /// The params, if there are any.
    pub params: Option<RawJson>,
}

/// A notification, which never gets a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The method.
    pub method: Method,
    /// The params, if there are any.
    pub params: Option<RawJson>,
}

/// The response to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The id of the request. `None` is JSON-RPC's `null`: an error about a message whose id could not be read.
    pub id: Option<RequestId>,
    /// The result or the error.
    pub reply: Reply,
}

impl Message {
    /// The exact bytes, without the framing of the transport.
    pub fn raw(&self) -> &Bytes {
        &self.raw
    }

    /// The parsed message.
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// The raw bytes as text; bytes that are not UTF-8 are shown as `�`.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.raw)
    }

    /// The request, if it is one.
    pub fn as_request(&self) -> Option<&Request> {
        if let Body::Request(request) = &self.body { Some(request) } else { None }
    }

    /// The notification, if it is one.
    pub fn as_notification(&self) -> Option<&Notification> {
        if let Body::Notification(notification) = &self.body { Some(notification) } else { None }
    }

    /// The response, if it is one.
    pub fn as_response(&self) -> Option<&Response> {
        if let Body::Response(response) = &self.body { Some(response) } else { None }
    }

    /// Why the message is garbled, if it is.
    pub fn as_garbled(&self) -> Option<&Garbled> {
        if let Body::Garbled(garbled) = &self.body { Some(garbled) } else { None }
    }

    /// The method of a request or notification.
    pub fn method(&self) -> Option<&Method> {
        match &self.body {
            Body::Request(request) => Some(&request.method),
            Body::Notification(notification) => Some(&notification.method),
            Body::Response(_) | Body::Batch(_) | Body::Garbled(_) => None,
        }
    }

    /// The params of a request or notification.
    pub fn params(&self) -> Option<&RawJson> {
        match &self.body {
            Body::Request(request) => request.params.as_ref(),
            Body::Notification(notification) => notification.params.as_ref(),
            Body::Response(_) | Body::Batch(_) | Body::Garbled(_) => None,
        }
    }

    /// Builds a message from bytes that the transport knows to be broken, such as a line that was cut off.
    pub fn garbled(raw: impl Into<Bytes>, reason: GarbledReason) -> Message {
        Message { raw: raw.into(), body: Body::Garbled(Garbled { reason, id: None }) }
    }

    /// Builds a message from a last line without a line end: a whole message, or the beginning of one.
    pub fn unterminated(raw: impl Into<Bytes>) -> Message {
        let message = Message::parse(raw.into());
        match message.as_garbled().map(|garbled| &garbled.reason) {
            Some(GarbledReason::NotJson { .. } | GarbledReason::NotUtf8 { .. }) => {
                Message::garbled(message.raw, GarbledReason::PartialLine)
            }
            _ => message,
        }
    }
}

impl Request {
    /// A field of the params, such as `["_meta", "progressToken"]`.
    pub fn param(&self, keys: &[&str]) -> Option<RawJson> {
        self.params.as_ref()?.at(keys)
    }
}

impl Notification {
    /// A field of the params.
    pub fn param(&self, keys: &[&str]) -> Option<RawJson> {
        self.params.as_ref()?.at(keys)
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.body {
            Body::Garbled(garbled) => write!(f, "garbled ({garbled}): {}", self.text()),
            Body::Request(_) | Body::Notification(_) | Body::Response(_) | Body::Batch(_) => f.write_str(&self.text()),
        }
    }
}

/// An id exactly as its sender wrote it: `1` and `"1"` are different requests.
///
/// JSON-RPC also knows `null` and fractions; MCP forbids both, so a message that has one is
/// [`Garbled`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RequestId {
    /// An integer.
    Number(i64),
    /// A string.
    Text(String),
}

impl fmt::Display for RequestId {
    /// As JSON: `1` or `"1"`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestId::Number(number) => write!(f, "{number}"),
            RequestId::Text(text) => f.write_str(&serde_json::Value::from(text.as_str()).to_string()),
        }
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            RequestId::Number(number) => serializer.serialize_i64(*number),
            RequestId::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl From<i64> for RequestId {
    fn from(number: i64) -> RequestId {
        RequestId::Number(number)
    }
}

impl From<&str> for RequestId {
    fn from(text: &str) -> RequestId {
        RequestId::Text(text.to_owned())
    }
}
