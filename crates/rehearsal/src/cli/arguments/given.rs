//! All that was written about the arguments.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::super::json_input::{json_input, raw_input};
use super::assignment::Assignment;
use super::error::ArgumentsError;

/// The arguments as they were written.
#[derive(Debug)]
pub(crate) enum Given {
    /// To be sent as it is, right or wrong.
    Exactly(Box<RawValue>),
    /// To be typed and checked by what the server says about them.
    Checked {
        /// The object of `--args`, sent as it is.
        rest: Map<String, Value>,
        /// What was written as `key=value`, on top of that.
        assignments: Assignments,
    },
}

/// The arguments as they are sent.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Arguments {
    /// As they were written.
    Written(Box<RawValue>),
    /// As what the server wants them to be.
    Typed(Value),
}

/// Every `key=value`, each key once.
#[derive(Debug, Default)]
pub(crate) struct Assignments(pub(super) Vec<Assignment>);

impl Given {
    /// Reads the words `key=value` and the value of `--args`: JSON, `@file`, or `-` for stdin.
    pub(crate) fn read(words: &[String], args: Option<&str>) -> Result<Given, ArgumentsError> {
        let mut assignments = Vec::new();
        for word in words {
            let assignment = Assignment::read(word)?;
            if assignments.iter().any(|other: &Assignment| other.key == assignment.key) {
                return Err(ArgumentsError::Twice { key: assignment.key });
            }
            assignments.push(assignment);
        }
        let assignments = Assignments(assignments);
        match args {
            None => Ok(Given::Checked { rest: Map::new(), assignments }),
            Some(args) if assignments.0.is_empty() => Ok(Given::Exactly(raw_input("--args", args)?)),
            Some(args) => match json_input("--args", args)? {
                Value::Object(rest) => Ok(Given::Checked { rest, assignments }),
                found => Err(ArgumentsError::NotObject { found }),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(words: &[&str], args: Option<&str>) -> Result<Given, ArgumentsError> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Given::read(&words, args)
    }

    #[test]
    fn args_alone_are_sent_exactly_even_where_they_are_no_object() {
        assert!(matches!(read(&[], Some("[1]")), Ok(Given::Exactly(value)) if value.get() == "[1]"));
        let odd = "{\"a\": 1.10,\n \"a\": 12345678901234567890123}";
        let sent = "{\"a\": 1.10,  \"a\": 12345678901234567890123}";
        assert!(matches!(read(&[], Some(odd)), Ok(Given::Exactly(value)) if value.get() == sent));
        assert!(matches!(read(&["a=1"], Some("[1]")), Err(ArgumentsError::NotObject { .. })));
    }

    #[test]
    fn args_with_assignments_are_what_the_assignments_add_to() {
        let Ok(Given::Checked { rest, assignments }) = read(&["a=1"], Some(r#"{"b": 2}"#)) else { panic!() };
        assert_eq!((Value::Object(rest), assignments.0.len()), (json!({"b": 2}), 1));
    }

    #[test]
    fn a_key_is_given_once() {
        assert!(matches!(read(&["a=1", "a:=2"], None), Err(ArgumentsError::Twice { key }) if key == "a"));
    }
}
