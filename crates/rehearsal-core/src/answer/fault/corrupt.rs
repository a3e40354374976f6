//! Corrupt answers, independent of the transport.

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::{Map, Value, json};

use crate::matcher::Matcher;
use crate::message::{Message, Reply, RequestId};

/// The longest generated answer: 1 GiB.
const OVERSIZE_LIMIT: u64 = 1 << 30;

/// The answer without its last brace.
pub(super) fn malformed(answer: &Bytes) -> Bytes {
    let end = answer.iter().rposition(|byte| *byte == b'}').unwrap_or(answer.len() / 2);
    answer.slice(..end)
}

/// The answer with a byte in its last string that is never valid in UTF-8.
pub(super) fn invalid_utf8(answer: &Bytes) -> Bytes {
    let end = answer.iter().rposition(|byte| *byte == b'"').unwrap_or(answer.len());
    let mut bytes = BytesMut::with_capacity(answer.len() + 2);
    bytes.put_slice(&answer[..end]);
    bytes.put_slice(b"\xff\xfe");
    bytes.put_slice(&answer[end..]);
    bytes.freeze()
}

/// The answer with spaces before its last brace, which change only its length.
pub(super) fn oversize(answer: &Bytes, length: u64) -> Bytes {
    let length = usize::try_from(length.min(OVERSIZE_LIMIT)).unwrap_or(usize::MAX);
    let end = answer.iter().rposition(|byte| *byte == b'}').unwrap_or(answer.len());
    let mut bytes = BytesMut::with_capacity(answer.len().max(length));
    bytes.put_slice(&answer[..end]);
    bytes.put_bytes(b' ', length.saturating_sub(answer.len()));
    bytes.put_slice(&answer[end..]);
    bytes.freeze()
}

/// The answer with the id of a request that was never sent.
pub(super) fn wrong_id(answer: &Message, id: &RequestId) -> Bytes {
    let wrong = match id {
        RequestId::Number(number) => RequestId::Number(number.wrapping_add(1_000_003)),
        RequestId::Text(text) => RequestId::Text(format!("{text}-wrong")),
    };
    match answer.as_response() {
        Some(response) => Message::reply(wrong, &response.reply).raw().clone(),
        None => answer.raw().clone(),
    }
}

/// The answer with invalid base64 in each image, audio and blob.
pub(super) fn invalid_base64(answer: &Message) -> Bytes {
    change_result(answer, |result| {
        for list in ["content", "contents", "messages"] {
            if let Some(Value::Array(blocks)) = result.get_mut(list) {
                blocks.iter_mut().for_each(break_block);
            }
        }
    })
}

fn break_block(block: &mut Value) {
    let Value::Object(fields) = block else { return };
    for key in ["data", "blob"] {
        if let Some(Value::String(base64)) = fields.get_mut(key) {
            let middle = (0..=base64.len() / 2).rev().find(|at| base64.is_char_boundary(*at)).unwrap_or_default();
            base64.insert_str(middle, "*not base64*");
        }
    }
    for key in ["resource", "content"] {
        match fields.get_mut(key) {
            Some(Value::Array(blocks)) => blocks.iter_mut().for_each(break_block),
            Some(inner) => break_block(inner),
            None => {}
        }
    }
}

/// The answer with structured content that its schema does not accept.
pub(super) fn wrong_structured_content(answer: &Message, schema: Option<&Value>) -> Bytes {
    let schema = schema.and_then(|schema| Matcher::schema(schema).ok());
    change_result(answer, |result| {
        let normal = result.get("structuredContent").cloned().unwrap_or_else(|| json!({}));
        let candidates = [with_other_types(&normal), json!({}), json!({"unexpected": null}), with_other_type(&normal)];
        let wrong = |value: &Value| schema.as_ref().map_or(*value != normal, |schema| !schema.matches(value));
        let [.., last] = &candidates;
        let chosen = candidates.iter().find(|value| wrong(value)).unwrap_or(last).clone();
        result.insert("structuredContent".to_owned(), chosen);
    })
}

/// Replaces each value of an object with one of another type.
fn with_other_types(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(key, value)| (key.clone(), with_other_type(value))).collect())
        }
        other => with_other_type(other),
    }
}

fn with_other_type(value: &Value) -> Value {
    match value {
        Value::Null => json!("not null"),
        Value::Bool(_) | Value::Number(_) => json!("neither a number nor a boolean"),
        Value::String(_) => json!(-1.5),
        Value::Array(_) => json!({"not": "an array"}),
        Value::Object(_) => json!(["not an object"]),
    }
}

/// The answer with another result; an error is unchanged.
fn change_result(answer: &Message, change: impl FnOnce(&mut Map<String, Value>)) -> Bytes {
    let Some(response) = answer.as_response() else { return answer.raw().clone() };
    let (Some(id), Reply::Result(result)) = (&response.id, &response.reply) else { return answer.raw().clone() };
    let Ok(Value::Object(mut result)) = result.value() else { return answer.raw().clone() };
    change(&mut result);
    match Message::result(id.clone(), &Value::Object(result)) {
        Ok(message) => message.raw().clone(),
        Err(_) => answer.raw().clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{ErrorReply, GarbledReason};
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    fn answer(result: &Value) -> Message {
        Message::result(7.into(), result).unwrap()
    }

    fn result(bytes: &Bytes) -> Value {
        serde_json::from_slice::<Value>(bytes).unwrap()["result"].clone()
    }

    #[test]
    fn a_malformed_answer_is_invalid_json_on_one_line() {
        let corrupt = malformed(answer(&json!({"text": "a\nb"})).raw());
        assert!(serde_json::from_slice::<Value>(&corrupt).is_err());
        assert!(!corrupt.contains(&b'\n'));
    }

    #[test]
    fn invalid_utf8_is_the_only_corruption() {
        let corrupt = invalid_utf8(answer(&json!({"text": "abc"})).raw());
        assert!(matches!(Message::parse(corrupt.clone()).as_garbled().unwrap().reason, GarbledReason::NotUtf8 { .. }));
        let repaired: Vec<u8> = corrupt.iter().copied().filter(|byte| *byte < 0xfe).collect();
        assert_eq!(result(&repaired.into()), json!({"text": "abc"}));
    }

    #[test]
    fn an_oversize_answer_has_the_same_result() {
        let normal = answer(&json!({"text": "abc"}));
        let large = oversize(normal.raw(), 10_000);
        assert_eq!(large.len(), 10_000);
        assert_eq!(result(&large), json!({"text": "abc"}));
        assert_eq!(oversize(normal.raw(), 3), normal.raw(), "it never gets shorter");
    }

    #[test]
    fn a_wrong_id_has_the_type_of_the_id() {
        let normal = answer(&json!({}));
        assert_eq!(wrong_id(&normal, &7.into()), r#"{"jsonrpc":"2.0","id":1000010,"result":{}}"#);
        let text = Message::error(Some("a".into()), &ErrorReply::new(-5, "x"));
        assert!(wrong_id(&text, &"a".into()).starts_with(br#"{"jsonrpc":"2.0","id":"a-wrong","error""#));
        assert!(Message::parse(wrong_id(&normal, &i64::MAX.into())).as_response().is_some());
    }

    #[test]
    fn base64_is_invalid_in_every_block() {
        let good = "aGVsbG8gd29ybGQ=";
        let blocks = json!([
            {"type": "text", "text": good},
            {"type": "image", "data": good, "mimeType": "image/png"},
            {"type": "audio", "data": "", "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "x:y", "blob": good}},
        ]);
        let corrupt = result(&invalid_base64(&answer(&json!({"content": blocks}))));
        assert_eq!(corrupt["content"][0]["text"], good, "text is text");
        for place in ["/content/1/data", "/content/2/data", "/content/3/resource/blob"] {
            assert!(STANDARD.decode(corrupt.pointer(place).unwrap().as_str().unwrap()).is_err(), "{place}");
        }
        let read = result(&invalid_base64(&answer(&json!({"contents": [{"uri": "x:y", "blob": good}]}))));
        assert!(STANDARD.decode(read["contents"][0]["blob"].as_str().unwrap()).is_err());
        let image = json!({"messages": [{"role": "user", "content": {"type": "image", "data": good}}]});
        let prompt = result(&invalid_base64(&answer(&image)));
        assert!(STANDARD.decode(prompt["messages"][0]["content"]["data"].as_str().unwrap()).is_err());
    }

    #[test]
    fn wrong_structured_content_matches_no_schema() {
        let normal = json!({"content": [], "structuredContent": {"celsius": 3, "city": "Oslo"}});
        let schemas = [
            json!({"type": "object", "properties": {"celsius": {"type": "number"}}}),
            json!({"type": "object", "required": ["city"]}),
            json!({"type": "object", "additionalProperties": false, "properties": {"city": {}, "celsius": {}}}),
            json!({"type": "object"}),
        ];
        for schema in schemas {
            let corrupt = result(&wrong_structured_content(&answer(&normal), Some(&schema)));
            assert!(!Matcher::schema(&schema).unwrap().matches(&corrupt["structuredContent"]), "{schema}");
        }
        let corrupt = result(&wrong_structured_content(&answer(&normal), None));
        assert!(corrupt["structuredContent"]["celsius"].is_string());
        let refused = Message::error(Some(7.into()), &ErrorReply::new(-5, "x"));
        assert_eq!(wrong_structured_content(&refused, None), refused.raw(), "an error has none");
    }
}
