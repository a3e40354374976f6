//! Server requests and input requests that have no answer: how they are printed, and the option that answers them.

use std::fmt;

use rehearsal::client::ServerResponse;
use rehearsal::core::message::{ErrorReply, Method};
use serde_json::{Map, Value, json};

use crate::print::sanitize_line;

/// A server request, or an input request of an `input_required` result.
#[derive(Debug)]
pub(super) struct ShownInputRequest {
    /// `elicitation/create`, for example.
    pub(super) method: Method,
    /// Its params.
    pub(super) params: Value,
}

impl ShownInputRequest {
    /// Returns the input requests of an `input_required` result.
    pub(super) fn all(answer: &ServerResponse) -> Vec<ShownInputRequest> {
        let requests = answer.result().get("inputRequests").and_then(Value::as_object);
        let shown = |request: &Value| ShownInputRequest {
            method: request.get("method").and_then(Value::as_str).unwrap_or("no method").into(),
            params: request.get("params").cloned().unwrap_or_default(),
        };
        requests.into_iter().flat_map(Map::values).map(shown).collect()
    }

    /// Returns the requests that a server would send if the client declared the capabilities that the error names.
    pub(super) fn undeclared_requests(error: &ErrorReply) -> Vec<ShownInputRequest> {
        let required = error.data.as_ref().and_then(|data| data.value().ok()).unwrap_or_default();
        let undeclared = |(capability, method): (&str, Method)| {
            let is_required = required.get("requiredCapabilities").and_then(|all| all.get(capability)).is_some();
            is_required.then_some(ShownInputRequest { method, params: Value::Null })
        };
        let capabilities =
            [("elicitation", Method::ELICITATION), ("sampling", Method::SAMPLING), ("roots", Method::ROOTS_LIST)];
        capabilities.into_iter().filter_map(undeclared).collect()
    }

    /// ``answer it: --answer elicitation/create='{"action":"accept","content":{"name":"…"}}'``
    pub(super) fn how_to_answer(&self) -> String {
        if self.method == Method::ROOTS_LIST {
            return "answer it: --roots DIR".to_owned();
        }
        let example = match self.method.as_str() {
            // In URL mode the user fills in a web page, so the result has no content.
            "elicitation/create" if self.params.get("mode").is_some_and(|mode| mode == "url") => {
                json!({"action": "accept"})
            }
            "elicitation/create" => {
                let schema = self.params.get("requestedSchema").unwrap_or(&Value::Null);
                json!({"action": "accept", "content": filled_form(schema)})
            }
            "sampling/createMessage" => {
                json!({"role": "assistant", "content": {"type": "text", "text": "…"}, "model": "me"})
            }
            _ => json!({}),
        };
        format!("answer it: --answer {}='{}'", self.method, example.to_string().replace('\'', r"'\''"))
    }
}

impl fmt::Display for ShownInputRequest {
    /// `elicitation/create (What is your name?)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", sanitize_line(self.method.as_str()))?;
        let text = ["/message", "/messages/0/content/text"].iter().find_map(|path| self.params.pointer(path)?.as_str());
        match text.and_then(|text| text.trim().lines().next()).filter(|line| !line.is_empty()) {
            Some(line) => write!(f, " ({})", sanitize_line(line)),
            None => Ok(()),
        }
    }
}

/// Fills in a form with its defaults, first choices, and placeholders for the user to replace.
fn filled_form(schema: &Value) -> Value {
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let shown = fields.filter(|(key, _)| required.is_empty() || required.contains(&key.as_str()));
    shown.map(|(key, field)| (key.clone(), filled_field(field))).collect::<Map<_, _>>().into()
}

fn filled_field(field: &Value) -> Value {
    let first = |key: &str| field.get(key)?.get(0).cloned();
    let choice = || first("enum").or_else(|| first("oneOf")?.get("const").cloned());
    if let Some(value) = field.get("default").cloned().or_else(choice) {
        return value;
    }
    match field.get("type").and_then(Value::as_str) {
        Some("integer" | "number") => field.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some(_) | None => json!("…"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_for_an_elicitation_has_a_filled_in_form() {
        let schema = json!({
            "properties": {
                "name": {"type": "string"}, "age": {"type": "integer", "minimum": 18}, "ok": {"type": "boolean"},
                "unit": {"type": "string", "enum": ["C", "F"]}, "note": {"type": "string"},
            },
            "required": ["name", "age", "ok", "unit"],
        });
        let request = ShownInputRequest {
            method: Method::ELICITATION,
            params: json!({"message": "Who's there?\nReally?", "requestedSchema": schema}),
        };
        assert_eq!(request.to_string(), "elicitation/create (Who's there?)");
        let form = r#"{"action":"accept","content":{"name":"…","age":18,"ok":true,"unit":"C"}}"#;
        assert_eq!(request.how_to_answer(), format!("answer it: --answer elicitation/create='{form}'"));
    }
}
