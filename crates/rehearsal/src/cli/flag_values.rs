//! Values of flags that several verbs share: JSON, matchers, paths, rules of redaction.

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

/// Reads JSON, and says where it comes from if it is none.
pub(super) fn parsed<T: DeserializeOwned>(input: JsonSource, text: &str) -> Result<T, Failure> {
    serde_json::from_str(text).map_err(|cause| {
        let (line, column) = (cause.line(), cause.column());
        let what = cause.to_string();
        // The place is told once, and before what is wrong there.
        let what = what.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&what).to_owned();
        Failure::bad_input(format_args!("{input}, line {line}, column {column}: not JSON: {what}")).hints(input.hint())
    })
}

fn unreadable(input: &JsonSource, cause: &std::io::Error) -> Failure {
    Failure::bad_input(format_args!("cannot read {input}: {cause}"))
}

/// Reads the value of a flag as it is written: every digit, and keys that stand twice. Only line ends, which a message
/// cannot have, become spaces.
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
    /// Our stdin.
    Stdin,
    /// One `key:=JSON`.
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
    /// What to do if it is not JSON.
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
pub(super) fn redaction(no_redact: bool, rules: &[RedactionRule]) -> Redaction {
    let redaction = if no_redact { Redaction::none() } else { Redaction::standard() };
    rules.iter().cloned().fold(redaction, Redaction::with)
}
