//! What was written, as the tool or the prompt wants it.

use rehearsal::core::json::Kind;
use rehearsal::core::protocol::{Prompt, Tool};
use serde_json::{Map, Value};

use super::assignment::Written;
use super::error::{ArgumentsError, Taker};
use super::given::Assignments;
use crate::print::{Parameter, accepts_unknown, parameters, prompt_parameters};

/// What a tool or a prompt says about its arguments.
#[derive(Debug)]
pub(crate) struct Signature {
    name: String,
    parameters: Vec<Parameter>,
    others: Others,
}

/// What becomes of arguments that are not described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Others {
    /// They are sent.
    Sent,
    /// They are taken for typing errors.
    Refused,
}

impl Signature {
    /// Of a tool, by its input schema.
    pub(crate) fn of_tool(tool: &Tool) -> Signature {
        let others = if accepts_unknown(&tool.input_schema) { Others::Sent } else { Others::Refused };
        Signature { name: tool.name.clone(), parameters: parameters(&tool.input_schema), others }
    }

    /// Of a prompt; all of its arguments are text.
    pub(crate) fn of_prompt(prompt: &Prompt) -> Signature {
        Signature { name: prompt.name.clone(), parameters: prompt_parameters(prompt), others: Others::Refused }
    }

    /// The one of this name, or what is there instead.
    pub(crate) fn named(
        taker: Taker,
        name: &str,
        offered: impl IntoIterator<Item = Signature>,
    ) -> Result<Signature, ArgumentsError> {
        let mut known = Vec::new();
        for signature in offered {
            if signature.name == name {
                return Ok(signature);
            }
            known.push(signature.name);
        }
        Err(ArgumentsError::UnknownName { taker, name: name.to_owned(), known })
    }

    /// The arguments to send, or what is wrong with them.
    pub(crate) fn typed(self, rest: Map<String, Value>, assignments: Assignments) -> Result<Value, ArgumentsError> {
        let Signature { name, parameters: known, others } = self;
        let mut arguments = rest;
        for assignment in assignments.0 {
            let parameter = known.iter().find(|parameter| parameter.name == assignment.key);
            if parameter.is_none() && others == Others::Refused {
                let known = known.into_iter().map(|parameter| parameter.name).collect();
                return Err(ArgumentsError::UnknownKey { name, key: assignment.key, known });
            }
            let value = match assignment.value {
                Written::Json(value) => value,
                Written::Text(text) => {
                    let kinds = parameter.map_or(&[][..], |parameter| &parameter.kinds);
                    let value = converted(&text, kinds).ok_or_else(|| ArgumentsError::WrongType {
                        key: assignment.key.clone(),
                        expected: parameter.map(Parameter::expected).unwrap_or_default(),
                        found: text.clone(),
                    })?;
                    if let Some(parameter) = parameter.filter(|parameter| !parameter.allows(&value)) {
                        let choices = parameter.choices();
                        return Err(ArgumentsError::WrongChoice { key: assignment.key, found: text, choices });
                    }
                    value
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
            Err(ArgumentsError::Missing { name, missing, required })
        }
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
                    "unit": {"enum": ["metric", "imperial", 5]},
                },
                "required": ["city"],
            },
        }))
        .unwrap()
    }

    fn arguments(words: &[&str]) -> Result<Value, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let Ok(Given::Checked { rest, assignments }) = Given::read(&words, None) else { panic!("{words:?}") };
        Signature::of_tool(&forecast()).typed(rest, assignments).map_err(|error| error.to_string())
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
        assert_eq!(wrong(&["city=Oslo", "unit=metrik"]), "argument `unit` cannot be `metrik`");
        assert_eq!(wrong(&["cty=Oslo"]), "`forecast` has no argument `cty`");
        assert_eq!(wrong(&["days=1"]), "`forecast` needs `city`\n  required arguments:\n    city  string  Where");
    }
}
