//! The problems in a user's file.

use std::fmt;

/// A place in a file: its beginning and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The first byte, counted from the start of the file.
    pub start: usize,
    /// The length in bytes.
    pub length: usize,
}

impl Span {
    /// The beginning of the file, for a problem without a better place.
    pub const START: Span = Span { line: 1, column: 1, start: 0, length: 0 };

    pub(super) fn from_location(location: serde_saphyr::Location) -> Span {
        if location == serde_saphyr::Location::UNKNOWN {
            return Span::START;
        }
        let span = location.span();
        let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        Span {
            line: number(location.line()),
            column: number(location.column()),
            start: number(span.byte_offset().unwrap_or(span.offset())),
            length: number(span.byte_len().unwrap_or(span.len())),
        }
    }
}

/// One problem in a file, with its place and a hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptProblem {
    /// The place.
    pub at: Span,
    /// What is wrong: a lowercase fragment without a full stop.
    pub message: String,
    /// A correction, if there is a likely one.
    pub hint: Option<String>,
}

impl ScriptProblem {
    /// Builds a problem without a hint.
    pub fn new(at: Span, message: impl Into<String>) -> ScriptProblem {
        ScriptProblem { at, message: message.into(), hint: None }
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> ScriptProblem {
        self.hint = Some(hint.into());
        self
    }
}

/// The problems of a file that cannot be used.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub struct ScriptError {
    /// The file as the user named it.
    pub file: String,
    /// The problems, in the order of the file.
    pub problems: Vec<ScriptProblem>,
}

debug_as_display!(ScriptError);

impl fmt::Display for ScriptError {
    /// `weather.mock.yaml:4:11: unknown key `nam`; did you mean `name`?`, a line each
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.problems.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{}:{}:{}: {}", self.file, problem.at.line, problem.at.column, problem.message)?;
            if let Some(hint) = &problem.hint {
                write!(f, "; {hint}")?;
            }
        }
        Ok(())
    }
}
