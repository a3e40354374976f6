//! Parses YAML into a type, strictly.

use std::collections::HashSet;

use serde::de::DeserializeOwned;
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{Error, UserMessageFormatter};

use super::collect::{self, UnknownKey};
use super::span_tree::SpanTree;
use super::strict::Strict;
use super::{ScriptError, ScriptProblem, Span};
use crate::suggest::closest;

/// Maximum number of wrong values that are reported together.
const MAX_PASSES: usize = 20;
/// Maximum number of values in a file.
const NODE_LIMIT: usize = 2_000_000;
/// Maximum depth of a file. A debug build needs 20 KB of stack for each level.
pub const DEPTH_LIMIT: usize = 64;
/// Maximum number of values that aliases repeat.
const ALIAS_LIMIT: usize = 100_000;

/// Parses a file strictly: unknown keys, wrong types and duplicate keys are errors with a place. All unknown keys and
/// wrong values are reported together.
///
/// JSON is YAML, so a file may be either.
pub fn read<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, ScriptError> {
    let mut problems: Vec<ScriptProblem> = Vec::new();
    let mut ignored = HashSet::new();
    for _ in 0..MAX_PASSES {
        let (parsed, pass) = collect::run(ignored.clone(), || parse(text));
        for UnknownKey { key, allowed } in pass.unknown {
            add(&mut problems, unknown_key(key.at, &key.value, allowed));
        }
        let error = match parsed {
            Ok(parsed) if problems.is_empty() => return Ok(parsed),
            Ok(_) => break,
            Err(error) => error,
        };
        // A key may be missing because it was ignored, or misspelt and reported as unknown.
        let is_missing = matches!(error, Error::SerdeMissingField { .. });
        if is_missing && !problems.is_empty() || !add(&mut problems, problem(&error, text)) {
            break;
        }
        let is_budget = matches!(error, Error::Budget { .. });
        if is_budget || !pass.failed.is_some_and(|key| ignored.insert(key)) {
            break;
        }
    }
    problems.sort_by_key(|problem| problem.at.start);
    Err(ScriptError { file: file.to_owned(), problems })
}

/// Adds a problem; `false` if it was reported before.
fn add(problems: &mut Vec<ScriptProblem>, problem: ScriptProblem) -> bool {
    let is_new = !problems.contains(&problem);
    if is_new {
        problems.push(problem);
    }
    is_new
}

fn unknown_key(at: Span, key: &str, allowed: &[&'static str]) -> ScriptProblem {
    ScriptProblem::new(at, format!("unknown key `{key}`")).hint(suggestion(key, allowed, "key"))
}

pub(super) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    let options = serde_saphyr::options! {
        strict_booleans: true,
        with_snippet: false,
        budget: serde_saphyr::budget! { max_nodes: NODE_LIMIT, max_events: 2 * NODE_LIMIT, max_depth: DEPTH_LIMIT },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: ALIAS_LIMIT },
    };
    serde_saphyr::with_deserializer_from_str_with_options(text, options, |reader| T::deserialize(Strict(reader)))
}

fn problem(error: &Error, text: &str) -> ScriptProblem {
    let at = error.location().map_or(Span::START, Span::from_location);
    if let Some(hint) = unquoted_template(text, at) {
        return ScriptProblem::new(at, "a template that begins with `{` needs quotes").hint(hint);
    }
    match error {
        Error::SerdeUnknownField { field, expected, .. } => unknown_key(at, field, expected),
        Error::SerdeUnknownVariant { variant, expected, .. } => {
            let at = if text_at(text, at) == variant { at } else { value_at(text, at) };
            ScriptProblem::new(at, format!("unknown value `{variant}`")).hint(suggestion(variant, expected, "value"))
        }
        Error::SerdeMissingField { field, .. } => ScriptProblem::new(at, format!("the key `{field}` is missing")),
        Error::SerdeInvalidType { unexpected, expected, .. }
        | Error::SerdeInvalidValue { unexpected, expected, .. } => {
            wrong_type(value_at(text, at), unexpected, expected, text)
        }
        Error::DuplicateMappingKey { key, .. } => {
            let key = key.as_deref().unwrap_or("a key");
            ScriptProblem::new(at, format!("duplicate key `{key}`")).hint("keep one of the two")
        }
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => {
            let message = format!("this is nested more than {DEPTH_LIMIT} levels deep");
            ScriptProblem::new(at, message)
                .hint("write the inner levels as JSON in a string; for recorded answers use `rehearse replay`")
        }
        other => {
            let message = plain_message(&other.render_with_formatter(&UserMessageFormatter));
            match message.split_once("; ") {
                Some((message, hint)) => ScriptProblem::new(at, message).hint(hint),
                None => ScriptProblem { at, hint: syntax_hint(&message).map(str::to_owned), message },
            }
        }
    }
}

fn wrong_type(at: Span, unexpected: &str, expected: &str, text: &str) -> ScriptProblem {
    let numbers = ["u8", "u16", "u32", "u64", "usize", "i8", "i16", "i32", "i64", "isize"];
    let expected = match expected {
        "a string" => "text",
        "a boolean" => "true or false",
        "f32" | "f64" => "a number",
        number if numbers.contains(&number) => "a whole number that is not too large",
        other if other.starts_with("struct ") || other == "a map" => "keys and values",
        "a sequence" => "a list",
        other => other,
    };
    let got = match unexpected.split_once(' ').map_or(unexpected, |(kind, _)| kind) {
        "string" => unexpected.replacen("string", "the text", 1),
        "integer" => unexpected.replacen("integer", "the number", 1),
        "floating" => unexpected.replacen("floating point", "the number", 1),
        "boolean" => unexpected.replacen("boolean ", "", 1),
        "unit" | "Option" => "nothing".to_owned(),
        "map" => "keys and values".to_owned(),
        "sequence" => "a list".to_owned(),
        _ => unexpected.to_owned(),
    };
    let problem = ScriptProblem::new(at, format!("expected {expected}, got {got}"));
    let written = text_at(text, at);
    let bare = written.trim_matches(['"', '\'']);
    match expected {
        "text" if written == bare && serde_json::from_str::<serde_json::Value>(bare).is_ok_and(|it| !it.is_null()) => {
            problem.hint(format!("in quotes it is text: \"{bare}\""))
        }
        "true or false" if written != bare && ["true", "false"].contains(&bare) => {
            problem.hint(format!("write it without quotes: {bare}"))
        }
        "a number" | "a whole number that is not too large" if written != bare && bare.parse::<f64>().is_ok() => {
            problem.hint(format!("write it without quotes: {bare}"))
        }
        _ => problem,
    }
}

/// The text at a place.
fn text_at(text: &str, at: Span) -> &str {
    text.get(at.start..at.start.saturating_add(at.length)).unwrap_or_default()
}

/// The place of a key's value, if the place is that of a key.
fn value_at(text: &str, at: Span) -> Span {
    SpanTree::parse(text).ok().and_then(|tree| tree.value_of_key(at)).unwrap_or(at)
}

/// The hint for a template without quotes: YAML parses its braces as a mapping.
fn unquoted_template(text: &str, at: Span) -> Option<String> {
    let line = text.lines().nth(at.line.checked_sub(1)?)?;
    let begin = [": {{", "- {{"].into_iter().find_map(|mark| line.find(mark))? + 2;
    let end = line.rfind("}}").map_or(line.len(), |end| end + 2);
    let template = line.get(begin..end.max(begin))?;
    (!line[..begin].contains(['"', '\''])).then(|| format!("write \"{}\"", template.replace('"', "'")))
}

/// A hint for common errors in the syntax of YAML.
fn syntax_hint(message: &str) -> Option<&'static str> {
    let table = [
        ("mapping values are not allowed", "put text that has `: ` in it into quotes"),
        ("tab", "indent with spaces: YAML takes no tabs"),
        ("quoted scalar", "close the quote, or write longer text as a block: `text: |`"),
        ("unexpected end of stream", "close the quote or the bracket"),
        ("unclosed bracket", "close it, or put text that begins with a bracket into quotes"),
        ("flow mapping", "put a `,` between two keys, and a `}` at the end"),
        ("flow sequence", "put a `,` between two items, and a `]` at the end"),
        ("'-' indicator", "begin all keys of an item in one column"),
        ("multiple found", "keep one document: remove the line `---`"),
    ];
    table.into_iter().find_map(|(part, hint)| message.contains(part).then_some(hint))
}

/// The parser's message without the place, which is shown separately, and without the names of Rust types.
fn plain_message(message: &str) -> String {
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

/// The bytes of a file as text. Invalid UTF-8 is an error with its place, which is the same in a lossy conversion.
pub fn text(file: &str, bytes: Vec<u8>) -> Result<String, ScriptError> {
    String::from_utf8(bytes).map_err(|error| {
        let (valid, bad) = error.as_bytes().split_at(error.utf8_error().valid_up_to());
        let before = String::from_utf8_lossy(valid);
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        let at = Span {
            line: before.matches('\n').count() + 1,
            column: before[start..].chars().count() + 1,
            start: before.len(),
            length: char::REPLACEMENT_CHARACTER.len_utf8(),
        };
        let byte = bad.first().copied().unwrap_or_default();
        let hint = match error.as_bytes() {
            [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => "this looks like UTF-16; save the file as UTF-8",
            _ => "save the file as UTF-8",
        };
        let problem = ScriptProblem::new(at, format!("not UTF-8: invalid byte 0x{byte:02X}")).hint(hint);
        ScriptError { file: file.to_owned(), problems: vec![problem] }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::mock::MockFile;

    fn error(text: &str) -> String {
        read::<MockFile>("m.yaml", text).unwrap_err().to_string()
    }

    #[test]
    fn every_error_has_its_place_and_a_hint() {
        let table = [
            ("server: { nam: x }", "1:11: unknown key `nam`; did you mean `name`?"),
            ("server: { name: x }\ntool: []", "2:1: unknown key `tool`; did you mean `tools`?"),
            ("tools:\n  - nme: x", "2:5: unknown key `nme`; did you mean `name`?"),
            ("tools: 5", "1:8: expected a list"),
            ("server: 5", "1:9: expected keys and values"),
            ("tools:\n  - name: a\n    name: b", "3:5: duplicate key `name`; keep one of the two"),
            ("tools:\n  - description: x", "2:5: the key `name` is missing"),
            ("page_size: -1", "1:12: expected a whole number that is not too large, got the number `-1`"),
            (
                "page_size: \"10\"",
                "1:12: expected a whole number that is not too large, got the text \"10\"; write it without quotes: 10",
            ),
            ("server: { name: 1 }", "1:17: expected text, got the number `1`; in quotes it is text: \"1\""),
            (
                "server: { name: x, version: 1.0 }",
                "1:29: expected text, got the number `1.0`; in quotes it is text: \"1.0\"",
            ),
            (
                "tools:\n  - name: a\n    annotations: { read_only_hint: \"true\" }",
                "3:36: expected true or false, got the text \"true\"; write it without quotes: true",
            ),
            (
                "tools:\n  - name: a\n    answers: [{ times: \"3\" }]",
                "3:24: expected a whole number that is not too large, got the text \"3\"; write it without quotes: 3",
            ),
            (
                "tools:\n  - name: a\n    answers:\n      - text: {{ arguments.city }}",
                "4:15: a template that begins with `{` needs quotes; write \"{{ arguments.city }}\"",
            ),
            (
                "tools:\n  - name: a\n    answers: [{ fault: exit, text: a }]",
                "3:24: `exit` needs a value; write `exit: …`",
            ),
            (
                "tools:\n  - name: a\n    answers: [{ fault: { hang: 1 } }]",
                "3:32: expected `hang` without a value, got the number `1`",
            ),
            ("tools:\n  - name: a\n    answers: [{ steps: [wait] }]", "3:25: `wait` needs a value; write `wait: …`"),
            (
                "tools:\n  - name: a\n    answers: [{ steps: [{ wait: 1s, empty_round: {} }] }]",
                "3:25: `wait` and `empty_round` exclude each other here; in a list, write one item for each",
            ),
            (
                "tools:\n  - name: a\n    answers: [{ steps: [{ wiat: 1s }] }]",
                "3:27: unknown value `wiat`; did you mean `wait`?",
            ),
            (
                "instructions: a: b",
                "1:16: mapping values are not allowed in this context; put text that has `: ` in it into quotes",
            ),
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
            (
                "server: { name: x",
                "1:9: unclosed bracket '{'; close it, or put text that begins with a bracket into quotes",
            ),
        ];
        for (text, expected) in table {
            assert_eq!(error(text), format!("m.yaml:{expected}"), "{text}");
        }
    }

    #[test]
    fn all_unknown_keys_and_wrong_values_are_reported_together() {
        let text = "server: { name: x, nme: y }\npage_size: many\ntools:\n  - name: a\n    answers: [{ times: \"3\", txt: b }]\n  \
                    - name: b\n    descripton: c\n    answers: [{ text: 5, delay: soon }]\n";
        let places: Vec<&str> = [
            "m.yaml:1:20: unknown key `nme`; did you mean `name`?",
            "m.yaml:2:12: expected a whole number that is not too large, got the text \"many\"",
            "m.yaml:5:24: expected a whole number that is not too large, got the text \"3\"; write it without quotes: 3",
            "m.yaml:5:29: unknown key `txt`; did you mean `text`?",
            "m.yaml:7:5: unknown key `descripton`; did you mean `description`?",
            "m.yaml:8:23: expected text, got the number `5`; in quotes it is text: \"5\"",
            "m.yaml:8:33: write seconds such as 30 or 0.5, or a number with ms, s, m or h",
        ]
        .to_vec();
        assert_eq!(error(text).lines().collect::<Vec<_>>(), places);
    }

    #[test]
    fn a_file_that_is_nested_too_deep_is_an_error() {
        let nested = |levels: usize| {
            let value = (0..levels).fold("1".to_owned(), |inner, _| format!("[{inner}]"));
            format!("state: {{ a: {value} }}")
        };
        assert!(read::<MockFile>("m.yaml", &nested(DEPTH_LIMIT - 2)).is_ok());
        let expected = "m.yaml:1:75: this is nested more than 64 levels deep; write the inner levels as JSON in a string; \
                        for recorded answers use `rehearse replay`";
        assert_eq!(error(&nested(DEPTH_LIMIT - 1)), expected);
    }

    #[test]
    fn a_variant_without_a_value_accepts_an_empty_object() {
        let text = "tools: [{ name: a, answers: [{ fault: { hang: {} }, steps: [{ ask: { r: { roots: {} } } }] }] }]";
        assert!(read::<MockFile>("m.yaml", text).is_ok());
    }

    #[test]
    fn no_is_text_and_not_a_boolean() {
        let mock: MockFile = read("m.yaml", "instructions: no").unwrap();
        assert_eq!(mock.instructions.as_deref(), Some("no"));
    }

    #[test]
    fn aliases_above_the_limit_are_an_error() {
        let text = "a: &a [x, x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\n\
                    c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]\n\
                    e: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]\nf: [*e, *e, *e, *e, *e, *e, *e, *e, *e, *e]\n\
                    g: [*e, *e, *e, *e, *e, *e, *e, *e, *e, *e]";
        assert!(read::<serde_json::Value>("m.yaml", &format!("state:\n  {}", text.replace('\n', "\n  "))).is_err());
    }

    #[test]
    fn invalid_utf8_is_an_error_with_its_place() {
        let error = text("a.yaml", b"server: x\n# \xc3\xa4 caf\xe9\n".to_vec()).unwrap_err();
        assert_eq!(error.to_string(), "a.yaml:2:8: not UTF-8: invalid byte 0xE9; save the file as UTF-8");
        let error = text("a.yaml", b"\xff\xfes\0".to_vec()).unwrap_err();
        assert!(error.to_string().ends_with("UTF-16; save the file as UTF-8"), "{error}");
        assert_eq!(text("a.yaml", b"x".to_vec()).unwrap(), "x");
    }
}
