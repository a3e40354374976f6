//! What can be wrong with the arguments of a tool or a prompt.

use std::fmt;

use rehearsal::core::json::{DEFAULT_EXCERPT, Kind, excerpt};
use rehearsal::core::suggest::closest;
use serde_json::Value;

use super::super::json_input::JsonInputError;
use super::super::suggestion::{quoted, suggestion};
use crate::print::Parameter;

/// Why arguments cannot be sent.
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
    /// What should be JSON is none.
    #[error(transparent)]
    Json(#[from] JsonInputError),
    /// Arguments cannot be added to what `--args` gives.
    #[error("--args must be an object where key=value adds to it, but it is {}", excerpt(found, DEFAULT_EXCERPT))]
    NotObject {
        /// What it is.
        found: Value,
    },
    /// The server has nothing of that name.
    #[error("the server has no {taker} `{name}`")]
    UnknownName {
        /// What was looked for.
        taker: Taker,
        /// By which name.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// The tool has no such argument.
    #[error("`{name}` has no argument `{key}`")]
    UnknownKey {
        /// The tool.
        name: String,
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
    /// The value is none of those that the schema lists.
    #[error("argument `{key}` cannot be `{found}`")]
    WrongChoice {
        /// The key.
        key: String,
        /// What was written.
        found: String,
        /// What it can be.
        choices: Vec<String>,
    },
    /// The tool cannot do without.
    #[error("`{name}` needs {}{}", quoted(missing, " and "), Required(required))]
    Missing {
        /// The tool.
        name: String,
        /// What was not given.
        missing: Vec<String>,
        /// Everything that it cannot do without.
        required: Vec<Parameter>,
    },
}

/// What takes arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taker {
    /// A tool.
    Tool,
    /// A prompt.
    Prompt,
}

impl fmt::Display for Taker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Taker::Tool => "tool",
            Taker::Prompt => "prompt",
        })
    }
}

impl ArgumentsError {
    /// What to do about it.
    pub(crate) fn hints(&self) -> Vec<String> {
        match self {
            ArgumentsError::NotAssignment { .. } => vec![
                "arguments are written key=value or key:=JSON; the command of a server comes after `--`".to_owned(),
            ],
            ArgumentsError::Twice { key } => vec![format!("write several values as one list: {key}:='[…]'")],
            ArgumentsError::Json(error) => error.hints(),
            ArgumentsError::NotObject { .. } => Vec::new(),
            ArgumentsError::UnknownName { taker, name, known } => vec![suggestion(name, known, &format!("{taker}s"))],
            ArgumentsError::UnknownKey { key, known, .. } => {
                vec![suggestion(key, known, "arguments"), "--args JSON is sent unchecked".to_owned()]
            }
            ArgumentsError::WrongChoice { key, found, choices } => {
                let unchecked = format!("`{key}:=JSON` is sent whatever it is");
                match closest(found, choices.iter().map(String::as_str)) {
                    Some(close) => vec![format!("did you mean `{close}`?"), unchecked],
                    None => vec![format!("it can be {}", quoted(choices, ", ")), unchecked],
                }
            }
            ArgumentsError::WrongType { key, expected, found } if expected == Kind::Array.with_article() => {
                vec![format!("a list is written as JSON: {key}='{}'", Value::from(vec![found.as_str()]))]
            }
            ArgumentsError::WrongType { key, .. } => vec![format!("`{key}:=JSON` is sent whatever its type")],
            ArgumentsError::Missing { .. } => {
                vec!["to leave something out on purpose, write all arguments as --args JSON".to_owned()]
            }
        }
    }
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
