//! What can be wrong with the arguments of a tool.

use std::fmt;
use std::path::PathBuf;

use rehearsal::core::json::{DEFAULT_EXCERPT, excerpt};
use rehearsal::core::suggest::closest;
use serde_json::Value;

use crate::print::Parameter;

/// Why a tool's arguments cannot be sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArgumentsError {
    /// A word is not an argument.
    #[error("`{word}` is not key=value")]
    NotAssignment {
        /// The word.
        word: String,
    },
    /// A key was given twice.
    #[error("argument `{key}` is given twice")]
    Twice {
        /// The key.
        key: String,
    },
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
    /// Arguments cannot be added to what `--args` gives.
    #[error("--args must be an object where key=value adds to it, but it is {}", excerpt(found, DEFAULT_EXCERPT))]
    NotObject {
        /// What it is.
        found: Value,
    },
    /// The server has no such tool.
    #[error("the server has no tool `{tool}`")]
    UnknownTool {
        /// What was asked for.
        tool: String,
        /// What there is.
        known: Vec<String>,
    },
    /// The tool has no such argument.
    #[error("`{tool}` has no argument `{key}`")]
    UnknownKey {
        /// The tool.
        tool: String,
        /// What was given.
        key: String,
        /// What there is.
        known: Vec<String>,
    },
    /// The value is not what the schema wants.
    #[error("argument `{key}`: expected {expected}, got `{found}`")]
    WrongType {
        /// The key.
        key: String,
        /// What it should be.
        expected: String,
        /// What was written.
        found: String,
    },
    /// The tool cannot do without.
    #[error("`{tool}` needs {}{}", quoted(missing, " and "), Required(required))]
    Missing {
        /// The tool.
        tool: String,
        /// What was not given.
        missing: Vec<String>,
        /// Everything that it cannot do without.
        required: Vec<Parameter>,
    },
}

/// Where JSON was read from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The command line.
    Args,
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
            Source::Args => f.write_str("--args"),
            Source::File(path) => write!(f, "{}", path.display()),
            Source::Stdin => f.write_str("stdin"),
            Source::Key(key) => write!(f, "argument `{key}`"),
        }
    }
}

impl ArgumentsError {
    pub(super) fn bad_json(input: Source, cause: &serde_json::Error) -> ArgumentsError {
        let (line, column) = (cause.line(), cause.column());
        let what = cause.to_string();
        // The place is told once, and before what is wrong there.
        let what = what.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&what).to_owned();
        ArgumentsError::NotJson { input, line, column, what }
    }

    /// What to do about it.
    pub(crate) fn hints(&self) -> Vec<String> {
        match self {
            ArgumentsError::NotAssignment { .. } => vec![
                "arguments are written key=value or key:=JSON; the command of a server comes after `--`".to_owned(),
            ],
            ArgumentsError::Twice { key } => vec![format!("write several values as one list: {key}:='[…]'")],
            ArgumentsError::Unreadable { .. } | ArgumentsError::NotObject { .. } => Vec::new(),
            ArgumentsError::NotJson { input: Source::Args, .. } => {
                vec!["quote it for the shell: --args '{\"key\": \"value\"}'; --args @FILE reads a file".to_owned()]
            }
            ArgumentsError::NotJson { input: Source::Key(key), .. } => {
                vec![format!("`{key}=TEXT` takes text; strings in JSON have quotes: {key}:='\"TEXT\"'")]
            }
            ArgumentsError::NotJson { .. } => Vec::new(),
            ArgumentsError::UnknownTool { tool, known } => vec![suggestion(tool, known, "tools")],
            ArgumentsError::UnknownKey { key, known, .. } => {
                vec![suggestion(key, known, "arguments"), "--args JSON is sent unchecked".to_owned()]
            }
            ArgumentsError::WrongType { key, .. } => vec![format!("`{key}:=JSON` is sent whatever its type")],
            ArgumentsError::Missing { .. } => {
                vec!["to leave something out on purpose, write all arguments as --args JSON".to_owned()]
            }
        }
    }
}

/// `did you mean `echo`?`, or what there is.
fn suggestion(word: &str, known: &[String], what: &str) -> String {
    match closest(word, known.iter().map(String::as_str)) {
        Some(close) => format!("did you mean `{close}`?"),
        None if known.is_empty() => format!("it has no {what} at all"),
        None => format!("it has {}", quoted(known, ", ")),
    }
}

fn quoted(names: &[String], between: &str) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(between)
}

/// The arguments that a tool cannot do without, one a line.
struct Required<'a>(&'a [Parameter]);

impl fmt::Display for Required<'_> {
    /// ```text
    ///
    ///   required arguments:
    ///     city  string  Where
    /// ```
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |text: fn(&Parameter) -> &str| self.0.iter().map(|one| text(one).len()).max().unwrap_or_default();
        let (names, labels) = (width(|one| &one.name), width(Parameter::label));
        f.write_str("\n  required arguments:")?;
        for parameter in self.0 {
            let description = parameter.description.as_deref().unwrap_or_default();
            let description = description.trim().lines().next().unwrap_or_default();
            let line = format!("{:names$}  {:labels$}  {description}", parameter.name, parameter.label());
            write!(f, "\n    {}", line.trim_end())?;
        }
        Ok(())
    }
}
