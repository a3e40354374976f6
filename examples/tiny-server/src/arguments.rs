//! The arguments of a tool, checked as they are taken.
//!
//! What is wrong with an argument is a result with `isError`, not a JSON-RPC error, so that a model reads it and tries
//! again.

use std::ops::RangeInclusive;

use serde_json::{Map, Number, Value};

use crate::call::Call;
use crate::instead::Instead;

/// The arguments of a `tools/call`.
#[derive(Debug)]
pub(crate) struct Arguments<'a>(Option<&'a Map<String, Value>>);

impl<'a> Arguments<'a> {
    /// The arguments of a call; a call without has none.
    pub(crate) fn of(call: &'a Call) -> Result<Arguments<'a>, Instead> {
        match call.params.get("arguments") {
            None => Ok(Arguments(None)),
            Some(Value::Object(arguments)) => Ok(Arguments(Some(arguments))),
            Some(_) => Err(Instead::invalid_params("`arguments` must be an object")),
        }
    }

    /// A string that must be there.
    pub(crate) fn text(&self, name: &str) -> Result<&'a str, Instead> {
        let value = self.required(name, "a string")?;
        value.as_str().ok_or_else(|| wrong(name, "a string", value))
    }

    /// A number that must be there.
    pub(crate) fn number(&self, name: &str) -> Result<&'a Number, Instead> {
        let value = self.required(name, "a number")?;
        value.as_number().ok_or_else(|| wrong(name, "a number", value))
    }

    /// An integer that must be there and within `range`.
    pub(crate) fn integer(&self, name: &str, range: RangeInclusive<u64>) -> Result<u64, Instead> {
        let expected = format!("an integer from {} to {}", range.start(), range.end());
        let value = self.required(name, &expected)?;
        whole(value).filter(|number| range.contains(number)).ok_or_else(|| wrong(name, &expected, value))
    }

    /// An integer that may be absent.
    pub(crate) fn optional_integer(&self, name: &str, range: RangeInclusive<u64>) -> Result<Option<u64>, Instead> {
        self.get(name).map(|_| self.integer(name, range)).transpose()
    }

    fn get(&self, name: &str) -> Option<&'a Value> {
        self.0?.get(name)
    }

    fn required(&self, name: &str, expected: &str) -> Result<&'a Value, Instead> {
        let missing = || Instead::ToolFailed(format!("argument `{name}` is missing; it must be {expected}"));
        self.get(name).ok_or_else(missing)
    }
}

/// A whole number; `3.0` is one in JSON Schema.
fn whole(value: &Value) -> Option<u64> {
    let exact = |number: f64| (number >= 0.0 && number.fract() == 0.0 && number < 1e15).then_some(number as u64);
    value.as_u64().or_else(|| value.as_f64().and_then(exact))
}

fn wrong(name: &str, expected: &str, found: &Value) -> Instead {
    let kind = match found {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "a boolean".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(_) => "a string".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    };
    Instead::ToolFailed(format!("argument `{name}` must be {expected}, not {kind}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_wrong_is_said_in_words() {
        let given = json!({"steps": 0, "half": 0.5, "whole": 3.0, "message": 7, "a": null});
        let arguments = Arguments(given.as_object());
        let why = |outcome: Result<u64, Instead>| match outcome {
            Err(Instead::ToolFailed(why)) => why,
            other => panic!("{other:?}"),
        };
        let expected = "argument `steps` must be an integer from 1 to 9, not 0";
        assert_eq!(why(arguments.integer("steps", 1..=9)), expected);
        let expected = "argument `half` must be an integer from 0 to 9, not 0.5";
        assert_eq!(why(arguments.integer("half", 0..=9)), expected);
        assert_eq!(why(arguments.text("message").map(|_| 0)), "argument `message` must be a string, not 7");
        assert_eq!(why(arguments.number("a").map(|_| 0)), "argument `a` must be a number, not null");
        assert_eq!(why(arguments.text("b").map(|_| 0)), "argument `b` is missing; it must be a string");
        assert_eq!(arguments.integer("whole", 1..=9).unwrap(), 3);
        assert_eq!(arguments.optional_integer("absent", 1..=9).unwrap(), None);
    }
}
