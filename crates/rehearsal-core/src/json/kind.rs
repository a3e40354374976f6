//! The types of JSON values.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

/// The type of a value, with the names of JSON Schema.
///
/// `1.0` is an integer, because JSON has one number type and `1` and `1.0` are the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
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

impl Kind {
    /// Every type, in the order in which messages list them.
    pub const ALL: [Kind; 7] =
        [Kind::Null, Kind::Boolean, Kind::Integer, Kind::Number, Kind::String, Kind::Array, Kind::Object];

    /// The narrowest type of a value: [`Kind::Integer`] rather than [`Kind::Number`].
    pub fn of(value: &Value) -> Kind {
        match value {
            Value::Null => Kind::Null,
            Value::Bool(_) => Kind::Boolean,
            Value::Number(number) => match number.as_f64() {
                Some(float) if number.is_f64() && float.fract() != 0.0 => Kind::Number,
                _ => Kind::Integer,
            },
            Value::String(_) => Kind::String,
            Value::Array(_) => Kind::Array,
            Value::Object(_) => Kind::Object,
        }
    }

    /// Whether a value is of this type; integers are numbers.
    pub fn includes(self, value: &Value) -> bool {
        let kind = Kind::of(value);
        kind == self || (self == Kind::Number && kind == Kind::Integer)
    }

    /// The name in JSON Schema: `string`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Null => "null",
            Kind::Boolean => "boolean",
            Kind::Integer => "integer",
            Kind::Number => "number",
            Kind::String => "string",
            Kind::Array => "array",
            Kind::Object => "object",
        }
    }

    /// The name with its article: `a string`, `an object`, `null`.
    pub fn with_article(self) -> &'static str {
        match self {
            Kind::Null => "null",
            Kind::Boolean => "a boolean",
            Kind::Integer => "an integer",
            Kind::Number => "a number",
            Kind::String => "a string",
            Kind::Array => "an array",
            Kind::Object => "an object",
        }
    }

    /// The type with this name, if there is one.
    pub fn named(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for Kind {
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
            (json!(null), Kind::Null),
            (json!(true), Kind::Boolean),
            (json!(1), Kind::Integer),
            (json!(1.0), Kind::Integer),
            (json!(u64::MAX), Kind::Integer),
            (json!(1.5), Kind::Number),
            (json!("1"), Kind::String),
            (json!([]), Kind::Array),
            (json!({}), Kind::Object),
        ] {
            assert_eq!(Kind::of(&value), kind, "{value}");
            assert!(kind.includes(&value), "{value}");
        }
    }

    #[test]
    fn integers_are_numbers_but_numbers_need_not_be_integers() {
        assert!(Kind::Number.includes(&json!(1)));
        assert!(!Kind::Integer.includes(&json!(1.5)));
    }

    #[test]
    fn every_kind_is_found_by_its_name() {
        for kind in Kind::ALL {
            assert_eq!(Kind::named(kind.name()), Some(kind));
        }
        assert_eq!(Kind::named("text"), None);
    }
}
