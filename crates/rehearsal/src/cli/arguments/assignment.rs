//! One argument as it was written.

use serde_json::Value;

use super::super::json_input::{Source, parsed};
use super::error::ArgumentsError;

/// `key=value` or `key:=JSON`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Assignment {
    /// What it is passed by.
    pub(super) key: String,
    /// What it is.
    pub(super) value: Written,
}

/// A value as it was written.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Written {
    /// Text that means what the tool's schema says.
    Text(String),
    /// JSON, whatever the schema says.
    Json(Value),
}

impl Assignment {
    /// Reads one word of the command line.
    pub(super) fn read(word: &str) -> Result<Assignment, ArgumentsError> {
        let not = || ArgumentsError::NotAssignment { word: word.to_owned() };
        let (key, value) = word.split_once('=').filter(|(key, _)| !key.is_empty() && *key != ":").ok_or_else(not)?;
        let Some(key) = key.strip_suffix(':') else {
            return Ok(Assignment { key: key.to_owned(), value: Written::Text(value.to_owned()) });
        };
        let value = parsed(Source::Key(key.to_owned()), value)?;
        Ok(Assignment { key: key.to_owned(), value: Written::Json(value) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_equals_sign_parts_key_and_value() {
        let read = |word| Assignment::read(word).unwrap();
        let text = |key: &str, value: &str| Assignment { key: key.into(), value: Written::Text(value.into()) };
        assert_eq!(read("q=a=b"), text("q", "a=b"));
        assert_eq!(read("q="), text("q", ""));
        let forced = Assignment { key: "tags".into(), value: Written::Json(json!(["a=b"])) };
        assert_eq!(read(r#"tags:=["a=b"]"#), forced);
    }

    #[test]
    fn a_word_without_key_is_no_assignment() {
        for word in ["npx", "=x", ":=1", ""] {
            assert!(matches!(Assignment::read(word), Err(ArgumentsError::NotAssignment { .. })), "{word}");
        }
    }
}
