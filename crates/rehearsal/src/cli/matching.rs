//! Flags that several verbs share: `--match PATH=MATCHER`, `--ignore PATH`, `--redact` and `--no-redact`.

use rehearsal::core::matcher::Matcher;
use rehearsal::core::redact::{Redaction, Rule};
use serde_json::Value;

use super::failure::Failure;

/// A path and its matcher as they were written; `example` is what one looks like, and `take` says what is wrong with the path.
pub(super) fn matching<T>(
    word: &str,
    example: &'static str,
    take: impl FnOnce(&str, Matcher) -> Result<T, String>,
) -> Result<T, Failure> {
    let wrong = |why| {
        Failure::bad_input(format_args!("--match {word}: {why}")).hint(format!("write it like --match '{example}'"))
    };
    let (path, matcher) = word.split_once('=').ok_or_else(|| wrong("there is no `=` in it".to_owned()))?;
    let matcher = Matcher::parse(&written(matcher).map_err(wrong)?).map_err(|error| wrong(error.to_string()))?;
    take(path, matcher).map_err(|why| {
        Failure::bad_input(format_args!("--match {path}: not a JSONPath: {why}"))
            .hint(format!("a path begins with `$`, as in --match '{example}'"))
    })
}

/// A matcher as it was written: JSON, or a text that needs no quotes. `Err` says where JSON that was begun is none.
///
/// ```text
/// not JSON: EOF while parsing an object, at column 17 of {"type":"integer"
/// ```
fn written(matcher: &str) -> Result<Value, String> {
    match serde_json::from_str(matcher) {
        Ok(value) => Ok(value),
        Err(error) if matcher.trim_start().starts_with(['{', '[']) => {
            let (words, column) = (error.to_string(), error.column());
            let why = words.split(" at line").next().unwrap_or_default();
            Err(format!("not JSON: {why}, at column {column} of {matcher}"))
        }
        Err(_) => Ok(Value::from(matcher)),
    }
}

/// A value of `--ignore` that is not a JSONPath; `example` shows one.
pub(super) fn not_a_path(written: &str, why: &str, example: &str) -> Failure {
    Failure::bad_input(format_args!("--ignore {written}: not a JSONPath: {why}"))
        .hint(format!("a path begins with `$`: {example}, or $..timestamp for all of them"))
}

/// What is redacted: the standard secrets unless `no_redact`, and what `--redact` names.
pub(super) fn redaction(no_redact: bool, rules: &[Rule]) -> Redaction {
    let redaction = if no_redact { Redaction::none() } else { Redaction::standard() };
    rules.iter().cloned().fold(redaction, Redaction::with)
}
