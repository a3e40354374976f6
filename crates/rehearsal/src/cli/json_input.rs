//! JSON that somebody wrote on the command line, in a file or on stdin.

use std::fmt;
use std::io::Read;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// Reads the value of a flag: JSON, `@FILE`, or `-` for stdin.
pub(super) fn json_input<T: DeserializeOwned>(flag: &'static str, written: &str) -> Result<T, JsonInputError> {
    if written == "-" {
        let mut text = String::new();
        return match std::io::stdin().lock().read_to_string(&mut text) {
            Ok(_) => parsed(Source::Stdin, &text),
            Err(cause) => Err(JsonInputError::Unreadable { input: Source::Stdin, cause }),
        };
    }
    let Some(path) = written.strip_prefix('@') else { return parsed(Source::Flag(flag), written) };
    let source = Source::File(path.into());
    match std::fs::read_to_string(path) {
        Ok(text) => parsed(source, &text),
        Err(cause) => Err(JsonInputError::Unreadable { input: source, cause }),
    }
}

/// Reads JSON, and says where it comes from if it is none.
pub(super) fn parsed<T: DeserializeOwned>(input: Source, text: &str) -> Result<T, JsonInputError> {
    serde_json::from_str(text).map_err(|cause| {
        let (line, column) = (cause.line(), cause.column());
        let what = cause.to_string();
        // The place is told once, and before what is wrong there.
        let what = what.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&what).to_owned();
        JsonInputError::NotJson { input, line, column, what }
    })
}

/// Reads the value of a flag as it is written: every digit, and keys that stand twice. Only line ends, which a message
/// cannot have, become spaces.
pub(super) fn raw_input(flag: &'static str, written: &str) -> Result<Box<RawValue>, JsonInputError> {
    let raw: Box<RawValue> = json_input(flag, written)?;
    let line = raw.get().replace(['\n', '\r'], " ");
    Ok(RawValue::from_string(line).unwrap_or(raw))
}

/// Why there is no JSON to use.
#[derive(Debug, thiserror::Error)]
pub(super) enum JsonInputError {
    /// A file or stdin cannot be read.
    #[error("cannot read {input}: {cause}")]
    Unreadable {
        /// Which.
        input: Source,
        /// Why not.
        cause: std::io::Error,
    },
    /// Something should be JSON.
    #[error("{input}, line {line}, column {column}: not JSON: {what}")]
    NotJson {
        /// What was read.
        input: Source,
        /// Where.
        line: usize,
        /// Where.
        column: usize,
        /// What is wrong.
        what: String,
    },
}

/// Where JSON was read from.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The value of a flag, such as `--args`.
    Flag(&'static str),
    /// A file.
    File(PathBuf),
    /// Our stdin.
    Stdin,
    /// One `key:=JSON`.
    Key(String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Flag(flag) => f.write_str(flag),
            Source::File(path) => write!(f, "{}", path.display()),
            Source::Stdin => f.write_str("stdin"),
            Source::Key(key) => write!(f, "argument `{key}`"),
        }
    }
}

impl JsonInputError {
    /// What to do about it.
    pub(super) fn hints(&self) -> Vec<String> {
        match self {
            JsonInputError::NotJson { input: Source::Flag(flag @ "--answer"), .. } => {
                vec![format!("quote it for the shell: {flag} METHOD='{{\"key\": \"value\"}}'")]
            }
            JsonInputError::NotJson { input: Source::Flag(flag), .. } => {
                vec![format!("quote it for the shell: {flag} '{{\"key\": \"value\"}}'; {flag} @FILE reads a file")]
            }
            JsonInputError::NotJson { input: Source::Key(key), .. } => {
                vec![format!("`{key}=TEXT` takes text; strings in JSON have quotes: {key}:='\"TEXT\"'")]
            }
            JsonInputError::NotJson { input: Source::File(_) | Source::Stdin, .. }
            | JsonInputError::Unreadable { .. } => Vec::new(),
        }
    }
}
