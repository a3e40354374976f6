//! Parses bytes as a message; never fails.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::envelope::Envelope;
use super::fast_envelope::{self, TextEncoding};
use super::{
    Body, ErrorReply, ExtraMembers, Garbled, GarbledReason, Message, Method, Notification, Reply, Request, RequestId,
    Response,
};
use crate::json::RawJson;

impl Message {
    /// Parses one message.
    ///
    /// The envelope is read in one pass without copying; `params`, `result` and `data` are parsed on demand.
    pub fn parse(raw: impl Into<Bytes>) -> Message {
        let raw = raw.into();
        let body = body(&raw).unwrap_or_else(Body::Garbled);
        Message { raw, body }
    }
}

fn body(raw: &Bytes) -> Result<Body, Garbled> {
    let found = match fast_envelope::envelope(raw) {
        Some((envelope, TextEncoding::Ascii)) => return body_of(raw, &envelope),
        found => found,
    };
    let text = std::str::from_utf8(raw)
        .map_err(|error| garbled_without_id(GarbledReason::NotUtf8 { at: error.valid_up_to() }))?;
    if let Some((envelope, TextEncoding::Ascii | TextEncoding::Any)) = found {
        return body_of(raw, &envelope);
    }
    match text.trim_ascii_start().as_bytes().first() {
        None => Err(garbled_without_id(GarbledReason::Blank)),
        Some(b'{') => parse_with_serde(raw, text),
        Some(b'[') => batch(raw, text),
        Some(first) => Err(garbled_without_id(match serde_json::from_str::<IgnoredAny>(text) {
            Ok(_) => GarbledReason::NotAnObject { kind: kind(*first) },
            Err(error) => not_json(&error),
        })),
    }
}

fn batch(raw: &Bytes, text: &str) -> Result<Body, Garbled> {
    let items: Vec<&RawValue> = serde_json::from_str(text).map_err(|error| garbled_without_id(not_json(&error)))?;
    if items.is_empty() {
        return Err(garbled_without_id(GarbledReason::EmptyBatch));
    }
    let message = |item: &RawValue| {
        let raw = raw.slice_ref(item.get().as_bytes());
        let body = match item.get().as_bytes().first() {
            Some(b'{') => object(&raw, item.get()),
            // No version allows a batch inside a batch; this also bounds the recursion.
            first => Err(garbled_without_id(GarbledReason::NotAnObject {
                kind: first.map_or("nothing", |first| kind(*first)),
            })),
        };
        Message { body: body.unwrap_or_else(Body::Garbled), raw }
    };
    Ok(Body::Batch(items.into_iter().map(message).collect()))
}

fn object(raw: &Bytes, text: &str) -> Result<Body, Garbled> {
    match fast_envelope::envelope(text.as_bytes()) {
        Some((envelope, TextEncoding::Ascii | TextEncoding::Any)) => body_of(raw, &envelope),
        None => parse_with_serde(raw, text),
    }
}

/// Parses an unusual message with `serde_json`.
fn parse_with_serde(raw: &Bytes, text: &str) -> Result<Body, Garbled> {
    body_of(raw, &serde_json::from_str(text).map_err(|error| garbled_without_id(not_json(&error)))?)
}

fn body_of(raw: &Bytes, envelope: &Envelope<'_>) -> Result<Body, Garbled> {
    let id = envelope.id.map(request_id);
    // A garbled message keeps its id, so that the pending request with this id can fail with the reason.
    let refuse = |reason| Garbled { reason, id: envelope.id.and_then(nearest_id) };

    if let Some(key) = envelope.duplicate {
        return Err(refuse(GarbledReason::DuplicateKey { key }));
    }
    match envelope.jsonrpc {
        Some(br#""2.0""#) => {}
        found => return Err(refuse(GarbledReason::NotVersion2 { found: found.map(excerpt) })),
    }
    let answers = envelope.result.is_some() || envelope.error.is_some();
    match (envelope.method, answers) {
        (Some(_), true) => Err(refuse(GarbledReason::RequestAndResponse)),
        (None, false) => Err(refuse(GarbledReason::NoMethodOrResult)),
        (Some(method), false) => {
            let method = method_name(method).map_err(refuse)?;
            let params = params(raw, envelope.params).map_err(refuse)?;
            match id {
                Some(Ok(id)) => Ok(Body::Request(Request { id, method, params })),
                Some(Err(bad)) => Err(refuse(bad.reason())),
                None => Ok(Body::Notification(Notification { method, params })),
            }
        }
        (None, true) => {
            let reply = match (envelope.result, envelope.error) {
                (Some(_), Some(_)) => return Err(refuse(GarbledReason::ResultAndError)),
                (Some(result), None) => Reply::Result(RawJson::slice(raw, result)),
                (None, error) => Reply::Error(error_reply(raw, error).map_err(refuse)?),
            };
            match (id, &reply) {
                (Some(Ok(id)), _) => Ok(Body::Response(Response { id: Some(id), reply })),
                (Some(Err(InvalidId(b"null"))), Reply::Error(_)) => Ok(Body::Response(Response { id: None, reply })),
                (Some(Err(bad)), _) => Err(refuse(bad.reason())),
                (None, _) => Err(refuse(GarbledReason::NoId)),
            }
        }
    }
}

fn method_name(method: &[u8]) -> Result<Method, GarbledReason> {
    if let Some(name) = plain_text(method) {
        return Ok(Method::from(name));
    }
    // `Cow` borrows only with this attribute, and a method with escapes cannot be borrowed.
    #[derive(Deserialize)]
    struct Name<'a>(#[serde(borrow)] Cow<'a, str>);
    match serde_json::from_slice::<Name<'_>>(method) {
        Ok(Name(name)) => Ok(Method::from(&*name)),
        Err(_) => Err(GarbledReason::BadMethod { found: excerpt(method) }),
    }
}

fn params(raw: &Bytes, params: Option<&[u8]>) -> Result<Option<RawJson>, GarbledReason> {
    match params.map(|params| (params, params.first())) {
        // JSON-RPC does not allow `null` params, but many peers send it, and its meaning is clear.
        None | Some((_, Some(b'n'))) => Ok(None),
        Some((params, Some(b'{' | b'['))) => Ok(Some(RawJson::slice(raw, params))),
        Some((params, _)) => Err(GarbledReason::BadParams { found: excerpt(params) }),
    }
}

fn error_reply(raw: &Bytes, error: Option<&[u8]>) -> Result<ErrorReply, GarbledReason> {
    #[derive(Deserialize)]
    struct Fields<'a> {
        code: i64,
        #[serde(borrow)]
        message: Cow<'a, str>,
        #[serde(borrow, default, deserialize_with = "present")]
        data: Option<&'a RawValue>,
    }
    /// Deserializes a value that is present, though it may be `null`.
    fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
        Deserialize::deserialize(deserializer).map(Some)
    }
    let text = error.unwrap_or(b"absent");
    let fields: Fields<'_> =
        serde_json::from_slice(text).map_err(|_| GarbledReason::BadError { found: excerpt(text) })?;
    let data = fields.data.map(|data| RawJson::slice(raw, data.get().as_bytes()));
    let all: BTreeMap<String, &RawValue> = serde_json::from_slice(text).unwrap_or_default();
    let more = all.into_iter().filter(|(key, _)| !["code", "message", "data"].contains(&key.as_str()));
    let more = more.map(|(key, value)| (key, RawJson::slice(raw, value.get().as_bytes())));
    let more = ExtraMembers::from_members(more.collect());
    Ok(ErrorReply { code: fields.code, message: fields.message.into_owned(), data, more })
}

fn request_id(text: &[u8]) -> Result<RequestId, InvalidId<'_>> {
    match text.first() {
        Some(b'"') => match plain_text(text) {
            Some(name) => Ok(RequestId::from(name)),
            None => serde_json::from_slice(text).map(RequestId::Text).map_err(|_| InvalidId(text)),
        },
        Some(b'-' | b'0'..=b'9') => number(text).map(RequestId::Number).ok_or(InvalidId(text)),
        _ => Err(InvalidId(text)),
    }
}

fn number(text: &[u8]) -> Option<i64> {
    let digit = |number: i64, letter: &u8| letter.is_ascii_digit().then(|| number * 10 + i64::from(letter - b'0'));
    // Eighteen digits always fit.
    let short = if text.len() <= 18 { text.iter().try_fold(0, digit) } else { None };
    short.or_else(|| std::str::from_utf8(text).ok()?.parse().ok())
}

/// The id of a garbled message; an id that MCP does not allow is converted if possible.
fn nearest_id(text: &[u8]) -> Option<RequestId> {
    request_id(text).map_or_else(|bad| bad.nearest(), Some)
}

/// The text of an id that MCP does not allow.
struct InvalidId<'a>(&'a [u8]);

impl InvalidId<'_> {
    fn reason(&self) -> GarbledReason {
        GarbledReason::BadId { found: excerpt(self.0) }
    }

    /// The valid id closest to this one. Some languages have only one type of number and answer request `1` with `1.0`.
    fn nearest(&self) -> Option<RequestId> {
        let number: f64 = std::str::from_utf8(self.0).ok()?.parse().ok()?;
        let whole = number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0;
        whole.then_some(RequestId::Number(number as i64))
    }
}

/// The contents of a string without escapes.
fn plain_text(text: &[u8]) -> Option<&str> {
    let inside = text.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if inside.contains(&b'\\') { None } else { std::str::from_utf8(inside).ok() }
}

fn garbled_without_id(reason: GarbledReason) -> Garbled {
    Garbled { reason, id: None }
}

fn not_json(error: &serde_json::Error) -> GarbledReason {
    GarbledReason::NotJson { detail: error.to_string() }
}

fn kind(first: u8) -> &'static str {
    match first {
        b'"' => "a string",
        b't' | b'f' => "a boolean",
        b'n' => "null",
        b'[' => "an array",
        b'{' => "an object",
        _ => "a number",
    }
}

/// The beginning of a value, for an error message.
fn excerpt(text: &[u8]) -> String {
    const EXCERPT_CHARACTERS: usize = 60;
    let text = String::from_utf8_lossy(text);
    match text.char_indices().nth(EXCERPT_CHARACTERS) {
        None => text.into_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reason(text: &str) -> String {
        Message::parse(text.to_owned()).as_garbled().map(|garbled| garbled.to_string()).unwrap_or_default()
    }

    #[test]
    fn extra_members_of_an_error_are_kept() {
        let text = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"x","data":2,"hint":{"a":1.5}}}"#;
        let message = Message::parse(text);
        let Reply::Error(error) = &message.as_response().unwrap().reply else { panic!("{message:?}") };
        assert_eq!(error.extra_members().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["hint"]);
        assert_eq!(Message::reply(1.into(), &Reply::Error(error.clone())).raw(), text.as_bytes());
        assert_eq!(ErrorReply::new(0, "").with_object(error.object()), *error);
    }

    #[test]
    fn null_is_data_of_an_error() {
        let text = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"x","data":null}}"#;
        let message = Message::parse(text);
        let Reply::Error(error) = &message.as_response().unwrap().reply else { panic!("{message:?}") };
        assert!(error.data.as_ref().unwrap().is_null());
        assert_eq!(Message::reply(1.into(), &Reply::Error(error.clone())).raw(), text.as_bytes());
    }

    #[test]
    fn each_kind_of_message_is_recognized_by_its_keys() {
        let request = Message::parse(r#"{"id":2 ,"jsonrpc":"2.0","method":"tools\/list","params":{"cursor":null}}"#);
        let body = request.as_request().unwrap();
        assert_eq!((&body.id, &body.method), (&RequestId::Number(2), &Method::TOOLS_LIST));
        assert_eq!(body.params.as_ref().unwrap().as_str(), r#"{"cursor":null}"#);

        let notification = Message::parse(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        assert_eq!(notification.as_notification().unwrap().method, Method::INITIALIZED);

        let result = Message::parse(r#"{"jsonrpc":"2.0","id":"a","result":{"n":1.0}}"#);
        let Reply::Result(result) = &result.as_response().unwrap().reply else { panic!("{result:?}") };
        assert_eq!(result.as_str(), r#"{"n":1.0}"#);

        let error = Message::parse(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}"#);
        assert_eq!(error.as_response().unwrap().id, None);
    }

    #[test]
    fn every_garbled_message_has_a_reason() {
        let table = [
            ("", "a blank line"),
            (" \r", "a blank line"),
            ("Server running on stdio", "not JSON: expected value at line 1 column 1"),
            (r#"{"jsonrpc":"2.0","id":1,"#, "not JSON: EOF while parsing a value at line 1 column 24"),
            (r#"{"jsonrpc":"2.0"} trailing"#, "not JSON: trailing characters at line 1 column 19"),
            ("42", "JSON, but a number instead of an object"),
            ("\"hello\"", "JSON, but a string instead of an object"),
            ("null", "JSON, but null instead of an object"),
            ("[]", "an empty batch"),
            ("{}", "no `\"jsonrpc\": \"2.0\"`"),
            (r#"{"jsonrpc":"1.0","method":"x"}"#, "`jsonrpc` is \"1.0\" instead of \"2.0\""),
            (r#"{"jsonrpc":"2.0","id":1}"#, "no `method`, no `result`, no `error`"),
            (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}"#, "`id` appears twice"),
            (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#, "both `result` and `error`"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"x","result":{}}"#, "both `method` and a result or error"),
            (r#"{"jsonrpc":"2.0","result":{}}"#, "a response without `id`"),
            (r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#, "`id` is null instead of a string or a 64-bit integer"),
            (r#"{"jsonrpc":"2.0","id":1.5,"result":{}}"#, "`id` is 1.5 instead of a string or a 64-bit integer"),
            (
                r#"{"jsonrpc":"2.0","id":9223372036854775808,"method":"x"}"#,
                "`id` is 9223372036854775808 instead of a string or a 64-bit integer",
            ),
            (r#"{"jsonrpc":"2.0","id":1,"method":5}"#, "`method` is 5 instead of a string"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"x","params":5}"#, "`params` is 5 instead of an object"),
            (
                r#"{"jsonrpc":"2.0","id":1,"error":"no"}"#,
                "`error` is \"no\" instead of an object with `code` and `message`",
            ),
        ];
        for (text, expected) in table {
            assert_eq!(reason(text), expected, "{text}");
        }
        let invalid = Message::parse(&b"{\"jsonrpc\":\"\xff\"}"[..]);
        assert_eq!(invalid.as_garbled().unwrap().reason, GarbledReason::NotUtf8 { at: 12 });
    }

    #[test]
    fn a_garbled_response_keeps_its_id() {
        let table = [
            (r#"{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1,"message":""}}"#, Some(RequestId::Number(7))),
            (r#"{"id":"x","result":{}}"#, Some(RequestId::from("x"))),
            (r#"{"jsonrpc":"2.0","id":7.0,"result":{}}"#, Some(RequestId::Number(7))),
            (r#"{"jsonrpc":"2.0","id":{},"result":{}}"#, None),
        ];
        for (text, id) in table {
            assert_eq!(Message::parse(text).as_garbled().unwrap().id, id, "{text}");
        }
    }

    #[test]
    fn a_batch_holds_messages_and_keeps_the_broken_ones() {
        let batch = Message::parse(r#"[ {"jsonrpc":"2.0","id":1,"method":"ping"}, 5, [[1]] ]"#);
        let Body::Batch(messages) = batch.body() else { panic!("{batch:?}") };
        assert_eq!(messages[0].as_request().unwrap().method, Method::PING);
        assert_eq!(messages[0].raw(), r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
        assert!(messages[1].as_garbled().is_some() && messages[2].as_garbled().is_some());
    }

    #[test]
    fn no_depth_overflows_the_stack() {
        for open in ["[", r#"{"a":"#, r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"#] {
            Message::parse(open.repeat(1_000_000));
        }
        let nested = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"a":{}{}}}}}"#,
            "[".repeat(500_000),
            "]".repeat(500_000)
        );
        assert!(Message::parse(nested).as_request().is_some());
    }

    proptest! {
        #[test]
        fn any_bytes_parse_and_stay_unchanged(bytes: Vec<u8>) {
            let message = Message::parse(bytes.clone());
            prop_assert_eq!(&message.raw()[..], &bytes[..]);
        }

        #[test]
        fn any_mixture_of_json_rpc_pieces_parses(pieces in proptest::collection::vec(piece(), 0..12)) {
            let text = pieces.concat();
            let message = Message::parse(text.clone());
            prop_assert_eq!(message.raw(), &text);
        }
    }

    fn piece() -> impl Strategy<Value = &'static str> {
        proptest::sample::select(vec![
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"jsonrpc\":\"2.0\"",
            "\"id\":",
            "1",
            "null",
            "1.5",
            "\"x\"",
            "\"method\":",
            "\"params\":",
            "{}",
            "\"result\":",
            "\"error\":",
            "{\"code\":1,\"message\":\"m\"}",
            " ",
            "\u{e9}",
            "\n",
        ])
    }
}
