//! `--match PATH=MATCHER`

use rehearsal::core::matcher::Matcher;
use serde_json::Value;

/// Why something is no matcher for a path.
#[derive(Debug, thiserror::Error)]
pub(super) enum MatchError {
    /// The path is none.
    #[error("--match {path}: not a JSONPath: {why}")]
    Path {
        /// What was written.
        path: String,
        /// What is wrong with it.
        why: String,
        /// How it is written.
        example: &'static str,
    },
    /// The matcher is none.
    #[error("--match {word}: {why}")]
    Matcher {
        /// What was written.
        word: String,
        /// What is wrong with it.
        why: String,
        /// How it is written.
        example: &'static str,
    },
}

impl MatchError {
    /// What to do about it.
    pub(super) fn hint(&self) -> String {
        match self {
            MatchError::Path { example, .. } => {
                format!("a path begins with `$`, as in --match '{example}'")
            }
            MatchError::Matcher { example, .. } => format!("write it like --match '{example}'"),
        }
    }
}

/// A path and its matcher as they were written; `example` is what one looks like, and `take` says what is wrong with the path.
pub(super) fn matching<T>(
    word: &str,
    example: &'static str,
    take: impl FnOnce(&str, Matcher) -> Result<T, String>,
) -> Result<T, MatchError> {
    let wrong = |why| MatchError::Matcher { word: word.to_owned(), why, example };
    let (path, matcher) = word.split_once('=').ok_or_else(|| wrong("there is no `=` in it".to_owned()))?;
    let matcher = Matcher::parse(&written(matcher).map_err(wrong)?).map_err(|error| wrong(error.to_string()))?;
    take(path, matcher).map_err(|why| MatchError::Path { path: path.to_owned(), why, example })
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
