//! What is wrong with a file that somebody wrote.

use std::fmt;

/// A place in a file: where it begins and how long it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The first byte, counted from the start of the file.
    pub start: usize,
    /// How many bytes.
    pub length: usize,
}

impl Span {
    /// The beginning of the file, for what has no better place.
    pub const START: Span = Span { line: 1, column: 1, start: 0, length: 0 };

    pub(super) fn of(location: serde_saphyr::Location) -> Span {
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

/// One thing that is wrong with a file, where, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub at: Span,
    /// What is wrong: a lowercase fragment without a full stop.
    pub message: String,
    /// What to write instead, where that can be guessed.
    pub hint: Option<String>,
}

impl Problem {
    /// A problem without advice.
    pub fn new(at: Span, message: impl Into<String>) -> Problem {
        Problem { at, message: message.into(), hint: None }
    }

    /// The same with advice.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Problem {
        self.hint = Some(hint.into());
        self
    }
}

/// A file that cannot be used, and everything that is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ScriptError {
    /// The file as the user named it.
    pub file: String,
    /// What is wrong, in the order of the file.
    pub problems: Vec<Problem>,
}

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
