//! What a plan gets for the result of a tool.

use serde_json::Value;

/// The value of a result: its structured content, else its text (parsed, if it is JSON), else its content blocks.
///
/// Several text blocks are one text, joined with line breaks.
pub(super) fn result_value(result: &Value) -> Value {
    if let Some(structured) = result.get("structuredContent").filter(|content| !content.is_null()) {
        return structured.clone();
    }
    let blocks = result.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    match text_of(blocks) {
        Some(text) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        None => blocks.into(),
    }
}

/// The message of a tool error: its text, else its content as JSON.
pub(super) fn error_message(result: &Value) -> String {
    let blocks = result.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    match text_of(blocks).filter(|text| !text.is_empty()) {
        Some(text) => text,
        None => result_value(result).to_string(),
    }
}

/// The text of blocks that are all text.
fn text_of(blocks: &[Value]) -> Option<String> {
    let texts: Option<Vec<&str>> = blocks.iter().map(|block| block.get("text").and_then(Value::as_str)).collect();
    texts.filter(|texts| !texts.is_empty()).map(|texts| texts.join("\n"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn structured_content_comes_before_text_and_text_before_blocks() {
        for (result, value) in [
            (json!({"structuredContent": {"a": 1}, "content": [{"type": "text", "text": "x"}]}), json!({"a": 1})),
            (json!({"content": [{"type": "text", "text": "{\"a\": 1}"}]}), json!({"a": 1})),
            (json!({"content": [{"type": "text", "text": "hello"}]}), json!("hello")),
            (json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}), json!("a\nb")),
            (
                json!({"content": [{"type": "image", "data": "AA==", "mimeType": "image/png"}]}),
                json!([{"type": "image", "data": "AA==", "mimeType": "image/png"}]),
            ),
            (json!({"content": []}), json!([])),
        ] {
            assert_eq!(result_value(&result), value, "{result}");
        }
    }
}
