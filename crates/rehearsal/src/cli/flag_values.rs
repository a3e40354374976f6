//! Values of flags that several verbs share: JSON, matchers, paths and redaction rules.

use std::fmt;
use std::io::Read;
use std::path::PathBuf;

use rehearsal::core::matcher::Matcher;
use rehearsal::core::redact::{Redaction, RedactionRule};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use super::exit::Failure;

/// Reads the value of a flag: JSON, `@FILE`, or `-` for stdin.
pub(super) fn json_input<T: DeserializeOwned>(flag: &'static str, written: &str) -> Result<T, Failure> {
    if written == "-" {
        let mut text = String::new();
        return match std::io::stdin().lock().read_to_string(&mut text) {
            Ok(_) => parsed(JsonSource::Stdin, &text),
            Err(cause) => Err(unreadable(&JsonSource::Stdin, &cause)),
        };
    }
    let Some(path) = written.strip_prefix('@') else { return parsed(JsonSource::Flag(flag), written) };
    let source = JsonSource::File(path.into());
    match std::fs::read_to_string(path) {
        Ok(text) => parsed(source, &text),
        Err(cause) => Err(unreadable(&source, &cause)),
    }
}

/// Parses JSON. The error names the source, the line and the column.
pub(super) fn parsed<T: DeserializeOwned>(input: JsonSource, text: &str) -> Result<T, Failure> {
    serde_json::from_str(text).map_err(|cause| {
        let (line, column) = (cause.line(), cause.column());
        let reason = cause.to_string();
        // The message begins with the line and the column, so the reason is printed without them.
        let reason = reason.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&reason).to_owned();
        Failure::bad_input(format_args!("{input}, line {line}, column {column}: not JSON: {reason}"))
            .hints(input.hint())
    })
}

fn unreadable(input: &JsonSource, cause: &std::io::Error) -> Failure {
    Failure::bad_input(format_args!("cannot read {input}: {cause}"))
}

/// Reads the JSON value of a flag and keeps its text: every digit, and duplicate keys. Line ends become spaces,
/// because a message is one line.
pub(super) fn raw_input(flag: &'static str, written: &str) -> Result<Box<RawValue>, Failure> {
    let raw: Box<RawValue> = json_input(flag, written)?;
    let line = raw.get().replace(['\n', '\r'], " ");
    Ok(RawValue::from_string(line).unwrap_or(raw))
}

/// Where JSON was read from.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum JsonSource {
    /// The value of a flag, such as `--args`.
    Flag(&'static str),
    /// A file.
    File(PathBuf),
    /// The stdin of this program.
    Stdin,
    /// An argument `key:=JSON`.
    Key(String),
}

impl fmt::Display for JsonSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JsonSource::Flag(flag) => f.write_str(flag),
            JsonSource::File(path) => write!(f, "{}", path.display()),
            JsonSource::Stdin => f.write_str("stdin"),
            JsonSource::Key(key) => write!(f, "argument `{key}`"),
        }
    }
}

impl JsonSource {
    /// The hint for a value that is not JSON.
    fn hint(&self) -> Option<String> {
        match self {
            JsonSource::Flag(flag @ "--answer") => {
                Some(format!("quote it for the shell: {flag} METHOD='{{\"key\": \"value\"}}'"))
            }
            JsonSource::Flag(flag) => {
                Some(format!("quote it for the shell: {flag} '{{\"key\": \"value\"}}'; {flag} @FILE reads a file"))
            }
            JsonSource::Key(key) => {
                Some(format!("`{key}=TEXT` takes text; strings in JSON have quotes: {key}:='\"TEXT\"'"))
            }
            JsonSource::File(_) | JsonSource::Stdin => None,
        }
    }
}

/// Parses a `--match PATH=MATCHER`. `example` is shown in the hints; `take` gets both and returns what is wrong with the
/// path.
pub(super) fn matching<T>(
    word: &str,
    example: &'static str,
    take: impl FnOnce(&str, Matcher) -> Result<T, String>,
) -> Result<T, Failure> {
    let wrong = |reason| {
        Failure::bad_input(format_args!("--match {word}: {reason}")).hint(format!("write it like --match '{example}'"))
    };
    let (path, matcher) = word.split_once('=').ok_or_else(|| wrong("there is no `=` in it".to_owned()))?;
    let matcher = Matcher::parse(&parse_matcher(matcher).map_err(wrong)?).map_err(|error| wrong(error.to_string()))?;
    take(path, matcher).map_err(|why| {
        Failure::bad_input(format_args!("--match {path}: not a JSONPath: {why}"))
            .hint(format!("a path begins with `$`, as in --match '{example}'"))
    })
}

/// Parses a matcher: JSON, or a text without quotes. `Err` is the syntax error of a text that begins like JSON.
///
/// ```text
/// not JSON: EOF while parsing an object, at column 17 of {"type":"integer"
/// ```
fn parse_matcher(matcher: &str) -> Result<Value, String> {
    match serde_json::from_str(matcher) {
        Ok(value) => Ok(value),
        Err(error) if matcher.trim_start().starts_with(['{', '[']) => {
            let (text, column) = (error.to_string(), error.column());
            let reason = text.split(" at line").next().unwrap_or_default();
            Err(format!("not JSON: {reason}, at column {column} of {matcher}"))
        }
        Err(_) => Ok(Value::from(matcher)),
    }
}

/// The error for a value of `--ignore` that is not a JSONPath; `example` is a valid one.
pub(super) fn not_a_path(written: &str, why: &str, example: &str) -> Failure {
    Failure::bad_input(format_args!("--ignore {written}: not a JSONPath: {why}"))
        .hint(format!("a path begins with `$`: {example}, or $..timestamp for all of them"))
}

/// Builds the redaction: the standard secrets unless `no_redact`, and the rules of `--redact`.
pub(super) fn redaction(no_redact: bool, rules: &[RedactionRule]) -> Redaction {
    let redaction = if no_redact { Redaction::none() } else { Redaction::standard() };
    rules.iter().cloned().fold(redaction, Redaction::with)
}
