//! The arguments of a tool or a prompt, from the command line.
//!
//! ```text
//! key=value, key:=JSON ──► Assignment ──┐
//! --args JSON|@file|- ──────────────────┴► ArgumentInput ──► typed by the tool's schema ──► ToolArguments
//! ```

use std::fmt;

use rehearsal::core::json::{DEFAULT_EXCERPT, JsonType, excerpt};
use rehearsal::core::protocol::{Prompt, Tool};
use rehearsal::core::suggest::{closest, is_misspelling};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::exit::Failure;
use super::flag_values::{JsonSource, json_input, parsed, raw_input};
use crate::print::{Parameter, accepts_unknown, parameters, prompt_parameters};

/// `key=value` or `key:=JSON`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Assignment {
    /// The name of the argument.
    pub(super) key: String,
    /// The value.
    pub(super) value: Verbatim,
}

/// A value from the command line.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Verbatim {
    /// Text, which is typed by the tool's schema.
    Text(String),
    /// JSON, which is sent unchanged.
    Json(Value),
}

impl Assignment {
    /// Parses one word of the command line.
    pub(super) fn read(word: &str) -> Result<Assignment, Failure> {
        let not = || {
            let hint = "write arguments as key=value or key:=JSON, and the command of a server after `--`";
            Failure::bad_input(format_args!("`{word}` is not key=value")).hint(hint)
        };
        let (key, value) = word.split_once('=').filter(|(key, _)| !key.is_empty() && *key != ":").ok_or_else(not)?;
        let Some(key) = key.strip_suffix(':') else {
            return Ok(Assignment { key: key.to_owned(), value: Verbatim::Text(value.to_owned()) });
        };
        let value = parsed(JsonSource::Key(key.to_owned()), value)?;
        Ok(Assignment { key: key.to_owned(), value: Verbatim::Json(value) })
    }
}

/// The arguments from the command line.
#[derive(Debug)]
pub(super) enum ArgumentInput {
    /// JSON that is sent unchecked.
    Verbatim(Box<RawValue>),
    /// Arguments that are typed and checked by the schema of the tool.
    Checked {
        /// The object of `--args`, which is sent unchanged.
        rest: Map<String, Value>,
        /// The `key=value` arguments, which override it.
        assignments: Assignments,
    },
}

/// The arguments that are sent.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum ToolArguments {
    /// JSON from the command line.
    Verbatim(Box<RawValue>),
    /// Values of the types in the schema.
    Typed(Value),
}

/// Every `key=value`, each key once.
#[derive(Debug, Default)]
pub(super) struct Assignments(pub(super) Vec<Assignment>);

impl ArgumentInput {
    /// Reads the words `key=value` and the value of `--args`: JSON, `@file`, or `-` for stdin.
    pub(super) fn read(words: &[String], args: Option<&str>) -> Result<ArgumentInput, Failure> {
        let mut assignments = Vec::new();
        for word in words {
            let assignment = Assignment::read(word)?;
            if assignments.iter().any(|other: &Assignment| other.key == assignment.key) {
                let key = &assignment.key;
                return Err(Failure::bad_input(format_args!("argument `{key}` is given twice"))
                    .hint(format!("write several values as one list: {key}:='[…]'")));
            }
            assignments.push(assignment);
        }
        let assignments = Assignments(assignments);
        match args {
            None => Ok(ArgumentInput::Checked { rest: Map::new(), assignments }),
            Some(args) if assignments.0.is_empty() => Ok(ArgumentInput::Verbatim(raw_input("--args", args)?)),
            Some(args) => match json_input("--args", args)? {
                Value::Object(rest) => Ok(ArgumentInput::Checked { rest, assignments }),
                found => Err(Failure::bad_input(format_args!(
                    "--args must be an object if there is a key=value, but it is {}",
                    excerpt(&found, DEFAULT_EXCERPT)
                ))),
            },
        }
    }
}

/// The name and the parameters of a tool or a prompt.
#[derive(Debug)]
pub(super) struct Signature {
    name: String,
    parameters: Vec<Parameter>,
    others: UnknownArguments,
}

/// How arguments without a description are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnknownArguments {
    /// Unknown arguments are sent.
    Sent,
    /// Unknown arguments are refused as typing errors.
    Refused,
}

impl Signature {
    /// Reads the input schema of a tool.
    pub(super) fn from_tool(tool: &Tool) -> Signature {
        let others =
            if accepts_unknown(&tool.input_schema) { UnknownArguments::Sent } else { UnknownArguments::Refused };
        Signature { name: tool.name.clone(), parameters: parameters(&tool.input_schema), others }
    }

    /// Reads the arguments of a prompt; all of them are text.
    pub(super) fn from_prompt(prompt: &Prompt) -> Signature {
        Signature {
            name: prompt.name.clone(),
            parameters: prompt_parameters(prompt),
            others: UnknownArguments::Refused,
        }
    }

    /// Finds a signature by its name; the error suggests another name.
    pub(super) fn find(
        owner: ArgumentOwner,
        name: &str,
        offered: impl IntoIterator<Item = Signature>,
    ) -> Result<Signature, Failure> {
        let mut known = Vec::new();
        for signature in offered {
            if signature.name == name {
                return Ok(signature);
            }
            known.push(signature.name);
        }
        // The lists of a server may depend on the client's capabilities. A name that differs in a few characters is a
        // typing error.
        let is_typing_error =
            closest(name, known.iter().map(String::as_str)).is_some_and(|close| is_misspelling(name, close));
        let depends =
            (!is_typing_error).then(|| format!("some servers list a {owner} only to clients with --roots or --answer"));
        let hint = suggestion(name, &known, &format!("{owner}s"));
        Err(Failure::bad_input(format_args!("the server has no {owner} `{name}`")).hint(hint).hints(depends))
    }

    /// Types and checks the arguments by the schema.
    pub(super) fn type_arguments(self, rest: Map<String, Value>, assignments: Assignments) -> Result<Value, Failure> {
        let Signature { name, parameters: known, others } = self;
        let mut arguments = rest;
        for assignment in assignments.0 {
            let parameter = known.iter().find(|parameter| parameter.name == assignment.key);
            if parameter.is_none() && others == UnknownArguments::Refused {
                let (key, known) = (assignment.key, known.into_iter().map(|parameter| parameter.name));
                return Err(Failure::bad_input(format_args!("`{name}` has no argument `{key}`"))
                    .hint(suggestion(&key, &known.collect::<Vec<_>>(), "arguments"))
                    .hint("`--args JSON` is sent unchecked"));
            }
            let value = match assignment.value {
                Verbatim::Json(value) => value,
                Verbatim::Text(text) => {
                    let kinds = parameter.map_or(&[][..], |parameter| &parameter.kinds);
                    let value =
                        typed_value(&text, kinds).ok_or_else(|| wrong_type(&assignment.key, parameter, &text))?;
                    if let Some(parameter) = parameter.filter(|parameter| !parameter.allows(&value)) {
                        return Err(wrong_choice(&assignment.key, &text, &parameter.choices()));
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
            let missing = quoted(&missing, " and ");
            Err(Failure::bad_input(format_args!("`{name}` needs {missing}{}", Required(&required)))
                .hint("`--args JSON` is sent unchecked"))
        }
    }
}

/// The error for a text that is not a value of the parameter's type.
fn wrong_type(key: &str, parameter: Option<&Parameter>, found: &str) -> Failure {
    let expected = parameter.map(Parameter::expected).unwrap_or_default();
    let hint = if expected == JsonType::Array.with_article() {
        format!("write a list as JSON: {key}='{}'", Value::from(vec![found]))
    } else {
        format!("`{key}:=JSON` is sent unchecked")
    };
    Failure::bad_input(format_args!("argument `{key}`: expected {expected}, got `{found}`")).hint(hint)
}

/// The error for a value that the schema does not list.
fn wrong_choice(key: &str, found: &str, choices: &[String]) -> Failure {
    let close = closest(found, choices.iter().map(String::as_str));
    let hint = close.map(|close| format!("did you mean `{close}`?"));
    Failure::bad_input(format_args!("argument `{key}` cannot be `{found}`"))
        .hint(hint.unwrap_or_else(|| format!("it can be {}", quoted(choices, ", "))))
        .hint(format!("`{key}:=JSON` is sent unchecked"))
}

/// Reads a text as a value of one of these types; no types means any type.
///
/// If a string is one of several types, the others are tried first: `5` for `string|integer` is a number.
pub(super) fn typed_value(text: &str, kinds: &[JsonType]) -> Option<Value> {
    if kinds == [JsonType::String] {
        return Some(text.into());
    }
    let fits = |value: &Value| match kinds {
        [] => true,
        kinds => kinds.iter().any(|kind| *kind != JsonType::String && kind.includes(value)),
    };
    let json = serde_json::from_str(text).ok().filter(fits);
    let takes_text = kinds.is_empty() || kinds.contains(&JsonType::String);
    json.or_else(|| takes_text.then(|| text.into()))
}

/// What the arguments belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArgumentOwner {
    /// A tool.
    Tool,
    /// A prompt.
    Prompt,
}

impl fmt::Display for ArgumentOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ArgumentOwner::Tool => "tool",
            ArgumentOwner::Prompt => "prompt",
        })
    }
}

/// Prints the required arguments of a tool, one per line.
struct Required<'a>(&'a [Parameter]);

impl fmt::Display for Required<'_> {
    /// ```text
    ///
    ///   required arguments:
    ///     city  string  Where
    /// ```
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |text: fn(&Parameter) -> &str| {
            self.0.iter().map(|parameter| text(parameter).len()).max().unwrap_or_default()
        };
        let (names, labels) = (width(|one| &one.name), width(Parameter::label));
        f.write_str("\n  required arguments:")?;
        for parameter in self.0 {
            let description = parameter.description.as_deref().unwrap_or_default();
            let description = description.trim().lines().next().unwrap_or_default();
            let line = format!("{:names$}  {:labels$}  {description}", parameter.name, parameter.label());
            write!(f, "\n    {}", line.trim_end())?;
        }
        Ok(())
    }
}

/// Maximum number of names in a hint.
const MAX_NAMES: usize = 20;

/// ``did you mean `echo`?``, or a list of the known names.
pub(super) fn suggestion(word: &str, known: &[String], what: &str) -> String {
    match closest(word, known.iter().map(String::as_str)) {
        Some(close) => format!("did you mean `{close}`?"),
        None if known.is_empty() => format!("it has no {what}"),
        None if known.len() > MAX_NAMES => {
            format!("it has {}, and {} more", quoted(&known[..MAX_NAMES], ", "), known.len() - MAX_NAMES)
        }
        None => format!("it has {}", quoted(known, ", ")),
    }
}

/// `` `one` and `other` ``
pub(super) fn quoted(names: &[String], between: &str) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(between)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rehearsal::core::protocol::list_item::ListItem;
    use serde_json::json;

    #[test]
    fn the_first_equals_sign_separates_key_and_value() {
        let read = |word| Assignment::read(word).unwrap();
        let text = |key: &str, value: &str| Assignment { key: key.into(), value: Verbatim::Text(value.into()) };
        assert_eq!(read("q=a=b"), text("q", "a=b"));
        assert_eq!(read("q="), text("q", ""));
        let forced = Assignment { key: "tags".into(), value: Verbatim::Json(json!(["a=b"])) };
        assert_eq!(read(r#"tags:=["a=b"]"#), forced);
    }

    #[test]
    fn a_word_without_a_key_is_refused() {
        for word in ["npx", "=x", ":=1", ""] {
            assert!(Assignment::read(word).is_err(), "{word}");
        }
    }

    fn read(words: &[&str], args: Option<&str>) -> Result<ArgumentInput, Failure> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        ArgumentInput::read(&words, args)
    }

    #[test]
    fn args_alone_are_sent_verbatim_even_if_they_are_no_object() {
        assert!(matches!(read(&[], Some("[1]")), Ok(ArgumentInput::Verbatim(value)) if value.get() == "[1]"));
        let odd = "{\"a\": 1.10,\n \"a\": 12345678901234567890123}";
        let sent = "{\"a\": 1.10,  \"a\": 12345678901234567890123}";
        assert!(matches!(read(&[], Some(odd)), Ok(ArgumentInput::Verbatim(value)) if value.get() == sent));
        assert!(read(&["a=1"], Some("[1]")).is_err());
    }

    #[test]
    fn assignments_are_added_to_args() {
        let Ok(ArgumentInput::Checked { rest, assignments }) = read(&["a=1"], Some(r#"{"b": 2}"#)) else { panic!() };
        assert_eq!((Value::Object(rest), assignments.0.len()), (json!({"b": 2}), 1));
    }

    #[test]
    fn a_duplicate_key_is_refused() {
        assert_eq!(read(&["a=1", "a:=2"], None).unwrap_err().to_string(), "argument `a` is given twice");
    }

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
        let Ok(ArgumentInput::Checked { rest, assignments }) = ArgumentInput::read(&words, None) else {
            panic!("{words:?}")
        };
        Signature::from_tool(&forecast()).type_arguments(rest, assignments).map_err(|error| error.to_string())
    }

    #[test]
    fn texts_are_typed_by_the_schema() {
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
    fn values_that_the_schema_does_not_allow_are_refused() {
        let wrong = |words: &[&str]| arguments(words).unwrap_err();
        assert_eq!(wrong(&["city=Oslo", "days=many"]), "argument `days`: expected an integer, got `many`");
        assert_eq!(wrong(&["city=Oslo", "days=1.5"]), "argument `days`: expected an integer, got `1.5`");
        assert_eq!(wrong(&["city=Oslo", "unit=metrik"]), "argument `unit` cannot be `metrik`");
        assert_eq!(wrong(&["cty=Oslo"]), "`forecast` has no argument `cty`");
        assert_eq!(wrong(&["days=1"]), "`forecast` needs `city`\n  required arguments:\n    city  string  Where");
    }
}
