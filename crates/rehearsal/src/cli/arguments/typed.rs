//! What was written, as the tool's schema wants it.

use rehearsal::core::json::Kind;
use rehearsal::core::protocol::Tool;
use serde_json::{Map, Value};

use super::assignment::Written;
use super::error::ArgumentsError;
use super::given::Assignments;
use crate::print::{Parameter, accepts_unknown, parameters};

/// The arguments to send, or what is wrong with them.
pub(crate) fn typed(tool: &Tool, rest: Map<String, Value>, assignments: Assignments) -> Result<Value, ArgumentsError> {
    let known = parameters(&tool.input_schema);
    let mut arguments = rest;
    for assignment in assignments.0 {
        let parameter = known.iter().find(|parameter| parameter.name == assignment.key);
        if parameter.is_none() && !accepts_unknown(&tool.input_schema) {
            let known = known.into_iter().map(|parameter| parameter.name).collect();
            return Err(ArgumentsError::UnknownKey { tool: tool.name.clone(), key: assignment.key, known });
        }
        let value = match assignment.value {
            Written::Json(value) => value,
            Written::Text(text) => {
                let kinds = parameter.map_or(&[][..], |parameter| &parameter.kinds);
                converted(&text, kinds).ok_or_else(|| ArgumentsError::WrongType {
                    key: assignment.key.clone(),
                    expected: parameter.map(Parameter::expected).unwrap_or_default(),
                    found: text,
                })?
            }
        };
        arguments.insert(assignment.key, value);
    }
    let required: Vec<Parameter> = known.into_iter().filter(|parameter| parameter.required).collect();
    let is_missing = |parameter: &&Parameter| !arguments.contains_key(&parameter.name);
    let missing: Vec<String> = required.iter().filter(is_missing).map(|parameter| parameter.name.clone()).collect();
    if missing.is_empty() {
        Ok(Value::Object(arguments))
    } else {
        Err(ArgumentsError::Missing { tool: tool.name.clone(), missing, required })
    }
}

/// A text as one of these kinds of value; no kinds means any.
///
/// Where a string is one of several possibilities, the others are tried first: `5` for `string|integer` is a number.
fn converted(text: &str, kinds: &[Kind]) -> Option<Value> {
    if kinds == [Kind::String] {
        return Some(text.into());
    }
    let fits = |value: &Value| match kinds {
        [] => true,
        kinds => kinds.iter().any(|kind| *kind != Kind::String && kind.includes(value)),
    };
    let json = serde_json::from_str(text).ok().filter(fits);
    let takes_text = kinds.is_empty() || kinds.contains(&Kind::String);
    json.or_else(|| takes_text.then(|| text.into()))
}

#[cfg(test)]
mod tests {
    use super::super::given::Given;
    use super::*;
    use rehearsal::core::protocol::tool::Listed;
    use serde_json::json;

    fn forecast() -> Tool {
        Tool::read(json!({
            "name": "forecast",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "Where"},
                    "days": {"type": "integer"},
                    "rain": {"type": "boolean"},
                    "tags": {"type": "array"},
                    "id": {"type": ["string", "integer"]},
                    "note": {},
                },
                "required": ["city"],
            },
        }))
        .unwrap()
    }

    fn arguments(words: &[&str]) -> Result<Value, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let Ok(Given::Checked { rest, assignments }) = Given::read(&words, None) else { panic!("{words:?}") };
        typed(&forecast(), rest, assignments).map_err(|error| error.to_string())
    }

    #[test]
    fn the_schema_says_what_a_text_means() {
        let table = [
            (vec!["city=5"], json!({"city": "5"})),
            (vec!["city=Oslo", "days=5"], json!({"city": "Oslo", "days": 5})),
            (vec!["city=Oslo", "rain=true"], json!({"city": "Oslo", "rain": true})),
            (vec!["city=Oslo", r#"tags=["a"]"#], json!({"city": "Oslo", "tags": ["a"]})),
            (vec!["city=Oslo", "id=5"], json!({"city": "Oslo", "id": 5})),
            (vec!["city=Oslo", "id=x"], json!({"city": "Oslo", "id": "x"})),
            (vec!["city=Oslo", "id=true"], json!({"city": "Oslo", "id": "true"})),
            (vec!["city=Oslo", "note={\"a\":1}"], json!({"city": "Oslo", "note": {"a": 1}})),
            (vec!["city=Oslo", "note=hello"], json!({"city": "Oslo", "note": "hello"})),
            (vec!["city:=5"], json!({"city": 5})),
        ];
        for (words, expected) in table {
            assert_eq!(arguments(&words), Ok(expected), "{words:?}");
        }
    }

    #[test]
    fn what_the_schema_does_not_take_is_refused() {
        let wrong = |words: &[&str]| arguments(words).unwrap_err();
        assert_eq!(wrong(&["city=Oslo", "days=many"]), "argument `days`: expected an integer, got `many`");
        assert_eq!(wrong(&["city=Oslo", "days=1.5"]), "argument `days`: expected an integer, got `1.5`");
        assert_eq!(wrong(&["cty=Oslo"]), "`forecast` has no argument `cty`");
        assert_eq!(wrong(&["days=1"]), "`forecast` needs `city`\n  required arguments:\n    city  string  Where");
    }
}
