//! Parses one queued response and converts it to its wire form.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::directive::HarnessError;
use crate::answer::fault;
use crate::json::{RawJson, read_value};
use crate::message::ErrorReply;
use crate::script::mock::{ContentBlock, Delay, ErrorAnswer, FaultKind};
use crate::script::{Located, read};

/// One queued response.
#[derive(Clone, Debug, PartialEq)]
pub struct QueuedResponse {
    /// The result or the error.
    pub body: ResponseBody,
    /// The delay before it is sent.
    pub delay: Option<Delay>,
    /// The fault that it is sent with.
    pub fault: Option<FaultKind>,
}

/// The reply of a response.
#[derive(Clone, Debug, PartialEq)]
pub enum ResponseBody {
    /// A result, with the keys of the wire.
    Result(Map<String, Value>),
    /// A JSON-RPC error.
    Error(ErrorReply),
}

impl QueuedResponse {
    /// The delay at this call.
    pub fn delay(&self, call: u64) -> Option<Duration> {
        self.delay.map(|delay| fault::delay_at(delay, 0, call))
    }
}

/// The keys of a response, parsed strictly. Their values are copied unchanged from the JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the fields are only parsed, for the check")]
struct ResponseFields {
    text: Option<String>,
    content: Option<Vec<ContentBlock>>,
    #[serde(alias = "structuredContent")]
    structured_content: Option<Value>,
    #[serde(alias = "isError")]
    is_error: Option<bool>,
    result: Option<Map<String, Value>>,
    error: Option<ErrorAnswer>,
    #[serde(alias = "_meta")]
    meta: Option<Map<String, Value>>,
    #[serde(alias = "toolArgs")]
    tool_args: Option<Value>,
    delay: Option<Delay>,
    fault: Option<Located<FaultKind>>,
}

/// Parses the responses of a test case, a JSON list.
pub(super) fn responses(test_case: &str, json: &[u8]) -> Result<Vec<QueuedResponse>, HarnessError> {
    let not_json = |why: String| HarnessError::NotJson { test_case: test_case.to_owned(), why };
    let list = read_value(json).map_err(|error| not_json(error.to_string()))?;
    let Value::Array(list) = list else {
        return Err(not_json("expected a list of responses, such as [{\"text\": \"hello\"}]".to_owned()));
    };
    let response = |(at, value): (usize, Value)| {
        let bad = |why| HarnessError::BadResponse { test_case: test_case.to_owned(), number: at + 1, why };
        response(value).map_err(bad)
    };
    list.into_iter().enumerate().map(response).collect()
}

fn response(value: Value) -> Result<QueuedResponse, String> {
    let written = check(&value)?;
    let Value::Object(mut fields) = value else { return Err("expected an object".to_owned()) };
    let mut take = |names: [&str; 2]| names.iter().find_map(|name| fields.shift_remove(*name));
    let text = take(["text", "text"]);
    let content = take(["content", "content"]);
    let structured = take(["structured_content", "structuredContent"]);
    let is_error = take(["is_error", "isError"]);
    let result = take(["result", "result"]);
    let error = take(["error", "error"]);
    let meta = take(["meta", "_meta"]);
    let tool_args = take(["tool_args", "toolArgs"]);
    let is_given = |one: &Option<Value>| one.is_some();
    let parts = [&text, &content, &structured, &is_error, &meta, &tool_args].into_iter().any(is_given);
    let kinds = usize::from(parts) + usize::from(is_given(&result)) + usize::from(is_given(&error));
    if kinds > 1 {
        return Err("`error`, `result` and the other keys exclude each other".to_owned());
    }
    if is_given(&text) && is_given(&content) {
        return Err("`text` is short for `content`; write one of them".to_owned());
    }
    if kinds == 0 && written.fault.is_none() {
        let keys = "text, content, structured_content, is_error, result, error";
        return Err(format!("the response is empty; write one of {keys}"));
    }
    let body = match (result, error) {
        (Some(Value::Object(result)), _) => ResponseBody::Result(result),
        (_, Some(error)) => ResponseBody::Error(error_of(error)),
        (_, None) => {
            let mut result = Map::new();
            let blocks = match (text, content) {
                (Some(text), _) => json!([{"type": "text", "text": text}]),
                (None, Some(Value::Array(blocks))) => Value::Array(blocks.into_iter().map(block).collect()),
                (None, _) => match &structured {
                    // Clients without support for structured content get it as text.
                    Some(structured) => json!([{"type": "text", "text": structured.to_string()}]),
                    None => json!([]),
                },
            };
            result.insert("content".to_owned(), blocks);
            let others =
                [("structuredContent", structured), ("isError", is_error), ("_meta", meta), ("toolArgs", tool_args)];
            let others = others.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
            result.extend(others);
            ResponseBody::Result(result)
        }
    };
    Ok(QueuedResponse { body, delay: written.delay, fault: written.fault.map(|fault| fault.value) })
}

/// Parses a response strictly, so that an unknown key is reported with the closest known one.
fn check(value: &Value) -> Result<ResponseFields, String> {
    let problem = |error: crate::script::ScriptError| {
        let problem = error.problems.into_iter().next();
        problem.map_or_else(String::new, |it| match it.hint {
            Some(hint) => format!("{}; {hint}", it.message),
            None => it.message,
        })
    };
    let written: ResponseFields = read("", &skeleton(value).to_string()).map_err(problem)?;
    if let Some(file) = written.content.iter().flatten().find_map(|block| block.file.as_ref()) {
        return Err(format!("a queued response cannot read the file {:?}; write its bytes as `data`", file.value));
    }
    if let Some(fault) = &written.fault {
        fault.check()?;
    }
    Ok(written)
}

/// The value without characters that JSON allows and YAML does not.
fn skeleton(value: &Value) -> Value {
    match value {
        Value::String(text) if text.bytes().any(|byte| !(b' '..=b'~').contains(&byte)) => json!("x"),
        Value::Array(items) => Value::Array(items.iter().map(skeleton).collect()),
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), skeleton(value))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

fn error_of(mut error: Value) -> ErrorReply {
    let code = error["code"].as_i64().unwrap_or_default();
    let message = error["message"].as_str().unwrap_or_default();
    let reply = ErrorReply::new(code, message);
    match error["data"].take() {
        Value::Null => reply,
        data => ErrorReply { data: Some(RawJson::from_value(&data)), ..reply },
    }
}

/// A content block with the keys of the wire. The user's data is unchanged.
fn block(block: Value) -> Value {
    let fields = match block {
        Value::Object(fields) => fields,
        Value::String(text) => return json!({"type": "text", "text": text}),
        other => return other,
    };
    let renamed = fields.into_iter().map(|(key, value)| match key.as_str() {
        "mime_type" => ("mimeType".to_owned(), value),
        "last_modified" => ("lastModified".to_owned(), value),
        "meta" => ("_meta".to_owned(), value),
        "resource" | "annotations" => (key, self::block(value)),
        _ => (key, value),
    });
    Value::Object(renamed.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(value: Value) -> Result<QueuedResponse, String> {
        responses("t", json!([value]).to_string().as_bytes()).map(|mut it| it.remove(0)).map_err(|it| it.to_string())
    }

    fn result(value: Value) -> Value {
        match one(value).unwrap().body {
            ResponseBody::Result(result) => Value::Object(result),
            ResponseBody::Error(error) => panic!("{error}"),
        }
    }

    #[test]
    fn only_keys_of_the_protocol_become_camel_case() {
        let given = json!({
            "content": [
                {"type": "image", "data": "iVBOR", "mime_type": "image/png", "annotations": {"last_modified": "2025-01-01T00:00:00Z"}},
                {"type": "resource", "resource": {"uri": "x:y", "mime_type": "text/csv", "text": "a_b,c_d"}, "meta": {"my_key": 1}},
                {"type": "resource_link", "uri": "x:z", "name": "mime_type"},
                "plain",
            ],
            "structured_content": {"mime_type": "mine", "is_error": {"meta": 1}, "deep": [{"last_modified": 2}]},
            "is_error": false,
            "meta": {"a_b/c_d": {"mime_type": 1}},
            "tool_args": {"task_id": {"mime_type": 1}},
        });
        let expected = json!({
            "content": [
                {"type": "image", "data": "iVBOR", "mimeType": "image/png", "annotations": {"lastModified": "2025-01-01T00:00:00Z"}},
                {"type": "resource", "resource": {"uri": "x:y", "mimeType": "text/csv", "text": "a_b,c_d"}, "_meta": {"my_key": 1}},
                {"type": "resource_link", "uri": "x:z", "name": "mime_type"},
                {"type": "text", "text": "plain"},
            ],
            "structuredContent": {"mime_type": "mine", "is_error": {"meta": 1}, "deep": [{"last_modified": 2}]},
            "isError": false,
            "_meta": {"a_b/c_d": {"mime_type": 1}},
            "toolArgs": {"task_id": {"mime_type": 1}},
        });
        assert_eq!(result(given), expected);
        assert_eq!(
            result(json!({"content": [{"type": "image", "data": "", "mimeType": "image/png"}]}))["content"][0]["mimeType"],
            "image/png"
        );
    }

    #[test]
    fn text_is_never_a_template_and_keeps_every_character() {
        let odd = "{{ arguments.x }} \u{7f}\u{1F600}\u{2028}\u{0} [test_case_id=x] \"\\";
        assert_eq!(result(json!({"text": odd}))["content"], json!([{"type": "text", "text": odd}]));
        let escaped = br#"[{"text": "\ud83d\ude00\/"}]"#;
        let read = responses("t", escaped).unwrap();
        assert_eq!(read[0].body, one(json!({"text": "\u{1F600}/"})).unwrap().body);
        let large = responses("t", br#"[{"structured_content": {"n": 12345678901234567890, "f": 1.50}}]"#).unwrap();
        let ResponseBody::Result(large) = &large[0].body else { panic!("no result") };
        assert_eq!(large["structuredContent"].to_string(), r#"{"n":12345678901234567890,"f":1.5}"#);
    }

    #[test]
    fn errors_faults_and_delays_are_responses_too() {
        let error = one(json!({"error": {"code": -32000, "message": "down", "data": {"a_b": 1}}})).unwrap();
        let ResponseBody::Error(error) = error.body else { panic!("no error") };
        assert_eq!((error.code, error.data.unwrap().as_str()), (-32000, r#"{"a_b":1}"#));
        let slow = one(json!({"text": "x", "delay": "20ms"})).unwrap();
        assert_eq!(slow.delay(1), Some(Duration::from_millis(20)));
        assert_eq!(one(json!({"fault": "hang"})).unwrap().fault, Some(FaultKind::Hang));
        assert_eq!(result(json!({"result": {"anything": {"mime_type": 1}}})), json!({"anything": {"mime_type": 1}}));
        assert_eq!(
            result(json!({"content": [{"type": "image", "data": "not base64!", "mime_type": "image/png"}]}))["content"]
                [0]["data"],
            "not base64!"
        );
    }

    #[test]
    fn an_invalid_response_is_an_error_with_its_number() {
        let table = [
            (json!({"txt": "x"}), "response 1 of test case \"t\": unknown key `txt`; did you mean `text`?"),
            (
                json!({"content": [{"type": "image", "data": "", "mimetype": "x"}]}),
                "unknown key `mimetype`; did you mean",
            ),
            (json!({"content": [{"type": "picture"}]}), "unknown value `picture`"),
            (json!({}), "the response is empty"),
            (json!({"text": "a", "content": []}), "`text` is short for `content`"),
            (json!({"text": "a", "error": {"code": 1, "message": "x"}}), "exclude each other"),
            (
                json!({"content": [{"type": "image", "file": "x.png", "mime_type": "image/png"}]}),
                "cannot read the file \"x.png\"",
            ),
            (json!({"fault": {"exit": 300}}), "an exit status is from 0 to 255"),
            (json!("text"), "response 1"),
        ];
        for (value, expected) in table {
            let error = one(value.clone()).unwrap_err();
            assert!(error.contains(expected), "{value}: {error}");
        }
        let error = responses("t", b"{\"text\": \"x\"}").unwrap_err().to_string();
        assert!(error.contains("expected a list of responses"), "{error}");
        let error = responses("t", b"[{\"text\": ]").unwrap_err().to_string();
        assert!(error.contains("are not JSON: expected value at line 1 column 11"), "{error}");
    }
}
