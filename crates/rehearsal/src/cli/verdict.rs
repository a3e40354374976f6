//! A result that is not a success: the error, or the server requests that it asks the client to answer.

use std::fmt;

use rehearsal::client::ServerResponse;
use rehearsal::core::message::{ErrorReply, Method};
use serde_json::{Map, Value, json};

use super::exit::Exit;
use crate::print::{StderrPrinter, sanitize_line};

/// A question of the server's, in either era.
#[derive(Debug)]
pub(super) struct ShownInputRequest {
    /// Such as `elicitation/create`.
    pub(super) method: Method,
    /// With what.
    pub(super) params: Value,
}

impl ShownInputRequest {
    /// Everything that an `input_required` result asks.
    pub(super) fn all(answer: &ServerResponse) -> Vec<ShownInputRequest> {
        let asked = answer.result().get("inputRequests").and_then(Value::as_object);
        let question = |request: &Value| ShownInputRequest {
            method: request.get("method").and_then(Value::as_str).unwrap_or("no method").into(),
            params: request.get("params").cloned().unwrap_or_default(),
        };
        asked.into_iter().flat_map(Map::values).map(question).collect()
    }

    /// What a server would ask if only we had said that it may.
    pub(super) fn undeclared_requests(error: &ErrorReply) -> Vec<ShownInputRequest> {
        let required = error.data.as_ref().and_then(|data| data.value().ok()).unwrap_or_default();
        let question = |(capability, method): (&str, Method)| {
            let wanted = required.get("requiredCapabilities").and_then(|all| all.get(capability)).is_some();
            wanted.then_some(ShownInputRequest { method, params: Value::Null })
        };
        let capabilities =
            [("elicitation", Method::ELICITATION), ("sampling", Method::SAMPLING), ("roots", Method::ROOTS_LIST)];
        capabilities.into_iter().filter_map(question).collect()
    }

    /// ``answer it: --answer elicitation/create='{"action":"accept","content":{"name":"…"}}'``
    pub(super) fn how_to_answer(&self) -> String {
        if self.method == Method::ROOTS_LIST {
            return "answer it: --roots DIR".to_owned();
        }
        let example = match self.method.as_str() {
            // There is no form to fill in where a person is sent to a web page.
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
    /// `elicitation/create: What is your name?`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", sanitize_line(self.method.as_str()))?;
        let said =
            ["/message", "/messages/0/content/text"].iter().find_map(|place| self.params.pointer(place)?.as_str());
        match said.and_then(|said| said.trim().lines().next()).filter(|line| !line.is_empty()) {
            Some(line) => write!(f, " ({})", sanitize_line(line)),
            None => Ok(()),
        }
    }
}

/// A form filled in with its defaults, first choices, and placeholders that a person would replace.
fn filled_form(schema: &Value) -> Value {
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let wanted = fields.filter(|(key, _)| required.is_empty() || required.contains(&key.as_str()));
    wanted.map(|(key, field)| (key.clone(), filled_field(field))).collect::<Map<_, _>>().into()
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

/// Says what is wrong with an answer, if anything.
///
/// ```text
/// error: -32602: unknown tool
///   data: {"tool":"ecoh"}
/// ```
pub(super) fn exit_for(answer: &ServerResponse, talk: &StderrPrinter) -> Exit {
    if let Some(error) = answer.error() {
        let data = error
            .data
            .as_ref()
            .filter(|data| !data.is_null())
            .map(|data| format!("\n  data: {}", data.as_str()))
            .unwrap_or_default();
        talk.error(format_args!("{error}{data}"));
        ShownInputRequest::undeclared_requests(error).iter().for_each(|question| talk.hint(question.how_to_answer()));
    } else if answer.is_tool_error() {
        talk.error("the tool failed");
    } else if answer.is_input_required() {
        let questions = ShownInputRequest::all(answer);
        let asked: String = questions.iter().map(|question| format!("\n  {question}")).collect();
        talk.error(format_args!("the server wants input that nobody here can give{asked}"));
        questions.iter().for_each(|question| talk.hint(question.how_to_answer()));
    } else if let Some(message) = answer.error_message() {
        talk.error(message);
    } else if let Some(wrong) = invalid_result(answer) {
        talk.error(wrong);
    } else {
        return Exit::Ok;
    }
    Exit::ChecksFailed
}

/// What is wrong with the result of a tool that can say nothing.
fn invalid_result(answer: &ServerResponse) -> Option<String> {
    let result = answer.result();
    let may_be = answer.method() != Some(&Method::TOOLS_CALL)
        || result["content"].is_array()
        || ["structuredContent", "task"].iter().any(|key| result.get(*key).is_some());
    let found = match result.get("content") {
        Some(_) => "a `content` that is no list",
        None => "no `content`",
    };
    (!may_be).then(|| format!("the result of tools/call has {found}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_a_form_that_one_can_fill_in() {
        let schema = json!({
            "properties": {
                "name": {"type": "string"}, "age": {"type": "integer", "minimum": 18}, "ok": {"type": "boolean"},
                "unit": {"type": "string", "enum": ["C", "F"]}, "note": {"type": "string"},
            },
            "required": ["name", "age", "ok", "unit"],
        });
        let question = ShownInputRequest {
            method: Method::ELICITATION,
            params: json!({"message": "Who's there?\nReally?", "requestedSchema": schema}),
        };
        assert_eq!(question.to_string(), "elicitation/create (Who's there?)");
        let form = r#"{"action":"accept","content":{"name":"…","age":18,"ok":true,"unit":"C"}}"#;
        assert_eq!(question.how_to_answer(), format!("answer it: --answer elicitation/create='{form}'"));
    }
}
