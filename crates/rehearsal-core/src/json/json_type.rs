//! The types of JSON values.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

/// The type of a value, with the names of JSON Schema.
///
/// `1.0` is an integer, because JSON has one number type and `1` and `1.0` are the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum JsonType {
    /// `null`
    Null,
    /// `true` or `false`
    Boolean,
    /// A number without a fraction; every integer is a number too.
    Integer,
    /// Any number.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl JsonType {
    /// Every type, in the order in which messages list them.
    pub const ALL: [JsonType; 7] = [
        JsonType::Null,
        JsonType::Boolean,
        JsonType::Integer,
        JsonType::Number,
        JsonType::String,
        JsonType::Array,
        JsonType::Object,
    ];

    /// The narrowest type of a value: [`JsonType::Integer`] rather than [`JsonType::Number`].
    pub fn from_value(value: &Value) -> JsonType {
        match value {
            Value::Null => JsonType::Null,
            Value::Bool(_) => JsonType::Boolean,
            Value::Number(number) => match number.as_f64() {
                Some(float) if number.is_f64() && float.fract() != 0.0 => JsonType::Number,
                _ => JsonType::Integer,
            },
            Value::String(_) => JsonType::String,
            Value::Array(_) => JsonType::Array,
            Value::Object(_) => JsonType::Object,
        }
    }

    /// Whether a value is of this type; integers are numbers.
    pub fn includes(self, value: &Value) -> bool {
        let kind = JsonType::from_value(value);
        kind == self || (self == JsonType::Number && kind == JsonType::Integer)
    }

    /// The name in JSON Schema: `string`.
    pub fn name(self) -> &'static str {
        match self {
            JsonType::Null => "null",
            JsonType::Boolean => "boolean",
            JsonType::Integer => "integer",
            JsonType::Number => "number",
            JsonType::String => "string",
            JsonType::Array => "array",
            JsonType::Object => "object",
        }
    }

    /// The name with its article: `a string`, `an object`, `null`.
    pub fn with_article(self) -> &'static str {
        match self {
            JsonType::Null => "null",
            JsonType::Boolean => "a boolean",
            JsonType::Integer => "an integer",
            JsonType::Number => "a number",
            JsonType::String => "a string",
            JsonType::Array => "an array",
            JsonType::Object => "an object",
        }
    }

    /// The type with this name, if there is one.
    pub fn named(name: &str) -> Option<JsonType> {
        JsonType::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for JsonType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_value_has_the_narrowest_kind() {
        for (value, kind) in [
            (json!(null), JsonType::Null),
            (json!(true), JsonType::Boolean),
            (json!(1), JsonType::Integer),
            (json!(1.0), JsonType::Integer),
            (json!(u64::MAX), JsonType::Integer),
            (json!(1.5), JsonType::Number),
            (json!("1"), JsonType::String),
            (json!([]), JsonType::Array),
            (json!({}), JsonType::Object),
        ] {
            assert_eq!(JsonType::from_value(&value), kind, "{value}");
            assert!(kind.includes(&value), "{value}");
        }
    }

    #[test]
    fn integers_are_numbers_but_numbers_need_not_be_integers() {
        assert!(JsonType::Number.includes(&json!(1)));
        assert!(!JsonType::Integer.includes(&json!(1.5)));
    }

    #[test]
    fn every_kind_is_found_by_its_name() {
        for kind in JsonType::ALL {
            assert_eq!(JsonType::named(kind.name()), Some(kind));
        }
        assert_eq!(JsonType::named("text"), None);
    }
}
