//! Builds the messages that we send.

use bytes::Bytes;
use serde::Serialize;

use super::{Body, ErrorReply, Message, Method, Notification, Reply, Request, RequestId, Response};
use crate::json::RawJson;

impl Message {
    /// Builds a request.
    ///
    /// Fails only if `params` cannot be written as JSON, for instance a map whose keys are not strings.
    pub fn request(
        id: RequestId,
        method: Method,
        params: Option<&impl Serialize>,
    ) -> Result<Message, serde_json::Error> {
        let mut text = ObjectWriter::new();
        text.field("id", &id)?;
        text.method(&method)?;
        let params = params.map(|params| text.field("params", params)).transpose()?;
        let raw = text.finish();
        let params = params.map(|range| RawJson::from_written(raw.slice(range)));
        Ok(Message { raw, body: Body::Request(Request { id, method, params }) })
    }

    /// Builds a request whose params are given as pieces of JSON text that are concatenated.
    ///
    /// For callers that send nearly the same request often. The pieces must form one object; this is not checked.
    pub fn request_in_pieces(id: RequestId, method: Method, params: &[&[u8]]) -> Message {
        let length: usize = params.iter().map(|piece| piece.len()).sum();
        let mut text = ObjectWriter::with_capacity(length + 96);
        let written = text.field("id", &id).and_then(|_| text.method(&method));
        written.expect("strings and integers can always be written");
        text.0.extend_from_slice(b",\"params\":");
        let start = text.0.len();
        params.iter().for_each(|piece| text.0.extend_from_slice(piece));
        let raw = text.finish();
        let params = Some(RawJson::from_written(raw.slice(start..start + length)));
        let message = Message { raw, body: Body::Request(Request { id, method, params }) };
        debug_assert_eq!(Message::parse(message.raw.clone()), message, "the params are not an object");
        message
    }

    /// Builds a notification.
    pub fn notification(method: Method, params: Option<&impl Serialize>) -> Result<Message, serde_json::Error> {
        let mut text = ObjectWriter::new();
        text.method(&method)?;
        let params = params.map(|params| text.field("params", params)).transpose()?;
        let raw = text.finish();
        let params = params.map(|range| RawJson::from_written(raw.slice(range)));
        Ok(Message { raw, body: Body::Notification(Notification { method, params }) })
    }

    /// Builds a response with a result.
    pub fn result(id: RequestId, result: &impl Serialize) -> Result<Message, serde_json::Error> {
        let mut text = ObjectWriter::new();
        text.field("id", &id)?;
        let range = text.field("result", result)?;
        let raw = text.finish();
        let reply = Reply::Result(RawJson::from_written(raw.slice(range)));
        Ok(Message { raw, body: Body::Response(Response { id: Some(id), reply }) })
    }

    /// Builds a response with a serialized result; its bytes are copied, not parsed again.
    pub fn raw_result(id: RequestId, result: &RawJson) -> Message {
        let mut text = ObjectWriter::new();
        text.field("id", &id).expect("an id can always be written");
        text.0.extend_from_slice(b",\"result\":");
        let start = text.0.len();
        text.0.extend_from_slice(result.bytes());
        let end = text.0.len();
        let raw = text.finish();
        let reply = Reply::Result(RawJson::from_written(raw.slice(start..end)));
        Message { raw, body: Body::Response(Response { id: Some(id), reply }) }
    }

    /// Builds a response with an error. It has no id if the request's id could not be read.
    pub fn error(id: Option<RequestId>, error: &ErrorReply) -> Message {
        let mut text = ObjectWriter::new();
        let written = text.field("id", &id).and_then(|_| text.field("error", &ErrorFields(error)));
        written.expect("strings, integers and checked JSON can always be written");
        let raw = text.finish();
        Message { raw, body: Body::Response(Response { id, reply: Reply::Error(error.clone()) }) }
    }

    /// Builds a response with a result or an error.
    pub fn reply(id: RequestId, reply: &Reply) -> Message {
        match reply {
            Reply::Result(result) => Message::raw_result(id, result),
            Reply::Error(error) => Message::error(Some(id), error),
        }
    }
}

/// The fields of an error object, unchanged.
struct ErrorFields<'a>(&'a ErrorReply);

impl Serialize for ErrorFields<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let ErrorReply { code, message, data, .. } = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("code", code)?;
        map.serialize_entry("message", message)?;
        if let Some(data) = data {
            map.serialize_entry("data", data)?;
        }
        for (key, value) in self.0.extra_members() {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

/// A JSON object under construction, with the ranges of its values.
struct ObjectWriter(Vec<u8>);

impl ObjectWriter {
    fn new() -> ObjectWriter {
        ObjectWriter::with_capacity(128)
    }

    fn with_capacity(capacity: usize) -> ObjectWriter {
        let mut text = Vec::with_capacity(capacity);
        text.extend_from_slice(br#"{"jsonrpc":"2.0""#);
        ObjectWriter(text)
    }

    fn method(&mut self, method: &Method) -> Result<(), serde_json::Error> {
        if method.is_known() {
            // Nothing in it needs an escape.
            [&b",\"method\":\""[..], method.as_str().as_bytes(), b"\""]
                .iter()
                .for_each(|piece| self.0.extend_from_slice(piece));
            return Ok(());
        }
        self.field("method", method.as_str()).map(drop)
    }

    fn field(
        &mut self,
        key: &str,
        value: &(impl Serialize + ?Sized),
    ) -> Result<std::ops::Range<usize>, serde_json::Error> {
        let start = self.key(key);
        serde_json::to_writer(&mut self.0, value)?;
        Ok(start..self.0.len())
    }

    fn key(&mut self, key: &str) -> usize {
        self.0.extend_from_slice(b",\"");
        self.0.extend_from_slice(key.as_bytes());
        self.0.extend_from_slice(b"\":");
        self.0.len()
    }

    fn finish(mut self) -> Bytes {
        self.0.push(b'}');
        Bytes::from(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ids_methods_and_messages_are_written_as_strings() {
        let text = "\u{fdd0}0";
        let request = Message::request(text.into(), text.into(), None::<&()>).unwrap();
        let error = Message::error(Some(text.into()), &ErrorReply::new(-1, text));
        for message in [request, error] {
            assert_eq!(Message::parse(message.raw.clone()), message);
        }
    }

    #[test]
    fn built_messages_are_parsed_to_the_same_message() {
        let params = json!({"name": "echo", "arguments": {"b": 1.5, "a": "\n"}});
        let messages = [
            Message::request(1.into(), Method::TOOLS_CALL, Some(&params)).unwrap(),
            Message::request("x\"y".into(), "odd/\"method".into(), None::<&()>).unwrap(),
            Message::notification(Method::PROGRESS, Some(&params)).unwrap(),
            Message::result(2.into(), &params).unwrap(),
            Message::raw_result("2".into(), &RawJson::from_value(&params)),
            Message::error(Some(3.into()), &ErrorReply::new(-32602, "no \"such\" tool").with_data(&params)),
            Message::error(None, &ErrorReply::new(-32700, "parse error")),
        ];
        for message in messages {
            assert_eq!(Message::parse(message.raw().clone()), message);
        }
    }

    #[test]
    fn params_in_pieces_are_the_same_request() {
        let pieces: [&[u8]; 2] = [br#"{"name":"echo""#, br#","arguments":{}}"#];
        let params = json!({"name": "echo", "arguments": {}});
        for (id, method) in [(RequestId::from(7), Method::TOOLS_CALL), ("\"".into(), "\n".into())] {
            let whole = Message::request(id.clone(), method.clone(), Some(&params)).unwrap();
            assert_eq!(Message::request_in_pieces(id, method, &pieces), whole);
        }
    }
}
