//! Decides whether an object in a written matcher is data or an operator.
//!
//! An object that mixes operator words with ordinary keys is an error, because the author meant only one of them.
//! `type` is the exception: content blocks and schemas have a key of that name. So it is data in an object with
//! ordinary keys, or if its value does not name a JSON type (`{"type": "image"}`).

use serde_json::{Map, Value};

use super::parse;
use super::parse::{MatcherError, MatcherProblem};
use crate::json::{JsonType, Path};

/// Whether an object is data or an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectKind {
    Data,
    Operators,
}

impl ObjectKind {
    /// Classifies an object; the path of an error is relative to it.
    pub(super) fn from_fields(fields: &Map<String, Value>) -> Result<ObjectKind, MatcherError> {
        let is_operator =
            |(key, value): &(&String, &Value)| parse::named(key).is_some() && (*key != "type" || names_types(value));
        let (operators, ordinary): (Vec<_>, Vec<_>) = fields.iter().partition(is_operator);
        match (operators.as_slice(), ordinary.as_slice()) {
            ([], [(key, Value::String(name))]) if *key == "type" => match parse::closest_type(name) {
                Some(meant) => Err(unknown_type(name, meant)),
                None => Ok(ObjectKind::Data),
            },
            ([], _) => Ok(ObjectKind::Data),
            (_, []) => Ok(ObjectKind::Operators),
            ([(operator, _), others @ ..], [(key, _), ..]) => {
                let mut keys = ordinary.iter().map(|(key, _)| key.as_str());
                let misspelled = keys.find_map(|key| Some((key, parse::closest(key)?)));
                if *operator == "type" && others.is_empty() && misspelled.is_none() {
                    return Ok(ObjectKind::Data);
                }
                let hint = match misspelled {
                    Some((_, meant)) => format!("did you mean the operator `{meant}`?"),
                    None => wrapped(operator, key),
                };
                let key = misspelled.map_or(key.as_str(), |(key, _)| key);
                let problem = MatcherProblem::MixedKeys { operator: (*operator).clone(), key: key.to_owned() };
                Err(problem.at(&Path::root()).hint(hint))
            }
        }
    }

    /// Classifies an object whose keys are arguments, some of them known by name.
    pub(super) fn of_arguments(
        fields: &Map<String, Value>,
        is_name: impl Fn(&str) -> bool,
    ) -> Result<ObjectKind, MatcherError> {
        let mut names = fields.keys().filter(|key| !parse::OBJECT_OPERATORS.contains(&key.as_str()) || is_name(key));
        let combination = |key: &&String| parse::COMBINATIONS.contains(&key.as_str()) && !is_name(key);
        match (names.next(), fields.keys().find(combination)) {
            (None, _) if !fields.is_empty() => Ok(ObjectKind::Operators),
            (Some(key), Some(operator)) => {
                let problem = MatcherProblem::MixedKeys { operator: operator.clone(), key: key.clone() };
                Err(problem.at(&Path::root()).hint(format!(
                    "join the two: {{ all_of: [{{ {operator}: … }}, {{ {key}: … }}] }}; {}",
                    wrapped(operator, key)
                )))
            }
            (None | Some(_), _) => Ok(ObjectKind::Data),
        }
    }
}

fn wrapped(operator: &str, key: &str) -> String {
    format!("if `{operator}` is a key of the data, wrap the object: {{ subset: {{ {operator}: …, {key}: … }} }}")
}

fn unknown_type(name: &str, meant: &str) -> MatcherError {
    let name = name.to_owned();
    let hint = format!("did you mean `{meant}`? {}", as_data("type"));
    MatcherProblem::UnknownType { name }.at(&Path::root().join("type")).hint(hint)
}

/// A hint on how to write a key that is an operator word.
pub(super) fn as_data(operator: &str) -> String {
    format!("if `{operator}` is a key of the data, write {{ subset: {{ {operator}: … }} }}")
}

/// The JSON type of this name; YAML reads an unquoted `null` as the value.
pub(super) fn kind_named(written: &Value) -> Option<JsonType> {
    match written {
        Value::Null => Some(JsonType::Null),
        Value::String(name) => JsonType::named(name),
        _ => None,
    }
}

fn names_types(written: &Value) -> bool {
    match written {
        Value::Array(names) => !names.is_empty() && names.iter().all(|name| kind_named(name).is_some()),
        single => kind_named(single).is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_object_is_an_operator_only_if_all_its_keys_are() {
        for (written, meaning) in [
            (json!({}), Some(ObjectKind::Data)),
            (json!({"city": "Oslo"}), Some(ObjectKind::Data)),
            (json!({"contians": "x"}), Some(ObjectKind::Data)),
            (json!({"contains": "x"}), Some(ObjectKind::Operators)),
            (json!({"gte": 1, "type": "integer"}), Some(ObjectKind::Operators)),
            (json!({"type": null}), Some(ObjectKind::Operators)),
            (json!({"type": ["string", "null"]}), Some(ObjectKind::Operators)),
            (json!({"type": "text"}), Some(ObjectKind::Data)),
            (json!({"type": "string", "title": "City"}), Some(ObjectKind::Data)),
            (json!({"type": "text", "length": 3}), None),
            (json!({"type": "strng"}), None),
            (json!({"contains": "x", "city": "Oslo"}), None),
        ] {
            let fields = written.as_object().unwrap();
            assert_eq!(ObjectKind::from_fields(fields).ok(), meaning, "{written}");
        }
    }
}
