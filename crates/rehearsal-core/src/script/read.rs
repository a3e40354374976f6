//! YAML into what it describes.

use serde::de::DeserializeOwned;
use serde_saphyr::{Error, UserMessageFormatter};

use super::{Problem, ScriptError, Span};
use crate::suggest::closest;

/// How many values a file may have.
const NODE_LIMIT: usize = 2_000_000;
/// How many values aliases may bring in again.
const ALIAS_LIMIT: usize = 100_000;

/// Reads a file strictly: an unknown key, a wrong type or a key that stands twice is an error with its place.
///
/// JSON is YAML, so a file may be either.
pub fn read<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, ScriptError> {
    let options = serde_saphyr::options! {
        strict_booleans: true,
        with_snippet: false,
        budget: serde_saphyr::budget! { max_nodes: NODE_LIMIT, max_events: 2 * NODE_LIMIT },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: ALIAS_LIMIT },
    };
    serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| ScriptError { file: file.to_owned(), problems: vec![problem(&error)] })
}

fn problem(error: &Error) -> Problem {
    let at = error.location().map_or(Span::START, Span::of);
    match error {
        Error::SerdeUnknownField { field, expected, .. } => {
            Problem::new(at, format!("unknown key `{field}`")).hint(suggestion(field, expected, "key"))
        }
        Error::SerdeUnknownVariant { variant, expected, .. } => {
            Problem::new(at, format!("unknown value `{variant}`")).hint(suggestion(variant, expected, "value"))
        }
        Error::SerdeMissingField { field, .. } => Problem::new(at, format!("`{field}` is missing here")),
        Error::SerdeInvalidType { unexpected, expected, .. }
        | Error::SerdeInvalidValue { unexpected, expected, .. } => {
            Problem::new(at, format!("expected {expected}, got {unexpected}"))
        }
        Error::DuplicateMappingKey { key, .. } => {
            let key = key.as_deref().unwrap_or("a key");
            Problem::new(at, format!("`{key}` stands twice")).hint("keep one of the two")
        }
        other => Problem::new(at, in_our_words(&other.render_with_formatter(&UserMessageFormatter))),
    }
}

/// The parser's words without the place, which is shown anyway, and without the names of Rust's types.
fn in_our_words(message: &str) -> String {
    let message = message.rfind(" at line ").map_or(message, |at| &message[..at]);
    let numbers = ["u8", "u16", "u32", "u64", "usize", "i8", "i16", "i32", "i64", "isize"];
    match message.strip_prefix("invalid ") {
        Some(kind) if numbers.contains(&kind) => "expected a whole number that is not too large".to_owned(),
        Some("f32" | "f64") => "expected a number".to_owned(),
        Some("bool" | "boolean") => "expected true or false".to_owned(),
        _ => match message {
            "expected sequence start" => "expected a list".to_owned(),
            "expected mapping start" => "expected keys and values".to_owned(),
            "expected string scalar" => "expected text".to_owned(),
            _ => message.to_owned(),
        },
    }
}

fn suggestion(word: &str, expected: &[&'static str], kind: &str) -> String {
    match closest(word, expected.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("a {kind} here is one of {}", expected.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::mock::MockFile;

    fn error(text: &str) -> String {
        read::<MockFile>("m.yaml", text).unwrap_err().to_string()
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place_and_what_to_do() {
        let table = [
            ("server: { nam: x }", "1:11: unknown key `nam`; did you mean `name`?"),
            ("server: { name: x }\ntool: []", "2:1: unknown key `tool`; did you mean `tools`?"),
            ("tools:\n  - nme: x", "2:5: unknown key `nme`; did you mean `name`?"),
            ("tools: 5", "1:8: expected a list"),
            ("server: 5", "1:9: expected keys and values"),
            ("tools:\n  - name: a\n    name: b", "3:5: `name` stands twice; keep one of the two"),
            ("tools:\n  - description: x", "2:5: `name` is missing here"),
            ("page_size: -1", "1:12: expected a whole number that is not too large"),
            (
                "tools:\n  - name: a\n    answers: [{ content: [{ type: txt }] }]",
                "3:35: unknown value `txt`; did you mean `text`?",
            ),
            (
                "tools:\n  - name: a\n    answers: [{ delay: soon }]",
                "3:24: write seconds such as 30 or 0.5, or a number with ms, s, m or h",
            ),
            (
                "tools:\n  - name: a\n    answers: [{ fault: hangg }]",
                "3:24: unknown value `hangg`; did you mean `hang`?",
            ),
            ("server: { name: x", "1:9: unclosed bracket '{'"),
        ];
        for (text, expected) in table {
            assert_eq!(error(text), format!("m.yaml:{expected}"), "{text}");
        }
    }

    #[test]
    fn no_is_a_word_and_not_a_boolean() {
        let mock: MockFile = read("m.yaml", "instructions: no").unwrap();
        assert_eq!(mock.instructions.as_deref(), Some("no"));
    }

    #[test]
    fn aliases_that_multiply_are_stopped() {
        let text = "a: &a [x, x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\n\
                    c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]\n\
                    e: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]\nf: [*e, *e, *e, *e, *e, *e, *e, *e, *e, *e]\n\
                    g: [*e, *e, *e, *e, *e, *e, *e, *e, *e, *e]";
        assert!(read::<serde_json::Value>("m.yaml", &format!("state:\n  {}", text.replace('\n', "\n  "))).is_err());
    }
}
