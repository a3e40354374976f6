//! Why a recording cannot be read.

use std::io;

/// Why a recording cannot be read, and where.
#[derive(thiserror::Error)]
pub enum ReadError {
    /// A line does not have the expected contents.
    #[error("line {line}, column {column}: expected {expected}")]
    Bad {
        /// From 1.
        line: u64,
        /// In bytes, from 1.
        column: u64,
        /// The expected contents, and the actual ones if they help.
        expected: String,
    },
    /// A line is not JSON, or a value has the wrong type.
    #[error("line {line}, column {column}: {what}")]
    NotJson {
        /// From 1.
        line: u64,
        /// In bytes, from 1.
        column: u64,
        /// The message of the JSON parser.
        what: String,
    },
    /// The file has a newer format than this program knows.
    #[error("line {line}: cannot read trace format {found}; this rehearse reads up to {known}")]
    Format {
        /// From 1.
        line: u64,
        /// The format of the line.
        found: u64,
        /// The newest format that can be read.
        known: u64,
    },
    /// A value is longer than the limit.
    #[error("line {line}, column {column}: a value is longer than the limit of {limit} bytes")]
    TooLong {
        /// From 1.
        line: u64,
        /// In bytes, from 1.
        column: u64,
        /// The limit.
        limit: usize,
    },
    /// The file could not be read.
    #[error("{0}")]
    Io(#[from] io::Error),
}

debug_as_display!(ReadError);

/// The expectation that fails if the lines of a file were indented.
pub(super) const KEY_ON_ANOTHER_LINE: &str = "a key instead of the end of the line";

/// The expectation that fails if a file is one array.
pub(super) const SESSION_NOT_ARRAY: &str = "a session instead of an array";

/// Layouts of a whole file that cannot be read line by line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileLayout {
    /// A session takes several lines.
    MultiLine,
    /// All sessions are in one array.
    InArray,
}

impl ReadError {
    /// The layout of the whole file, if that is the cause: then no other line can be read either.
    pub fn file_layout(&self) -> Option<FileLayout> {
        match self {
            ReadError::Bad { expected, .. } if expected == KEY_ON_ANOTHER_LINE => Some(FileLayout::MultiLine),
            ReadError::Bad { expected, .. } if expected == SESSION_NOT_ARRAY => Some(FileLayout::InArray),
            ReadError::Bad { .. }
            | ReadError::NotJson { .. }
            | ReadError::Format { .. }
            | ReadError::TooLong { .. }
            | ReadError::Io(_) => None,
        }
    }

    /// Converts an error of `serde_json` about a piece of a line that began at `column`, counted from 1.
    pub fn json(line: u64, column: u64, error: &serde_json::Error) -> ReadError {
        let what = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        let what = what.strip_suffix(&place).unwrap_or(&what);
        let what = match what.rsplit_once(", expected ") {
            Some((got, "u32" | "u64" | "usize")) => format!("{got}, expected a whole number from 0"),
            Some(_) | None => what.to_owned(),
        };
        // Its columns count from 1 if there is text, and are 0 for the place before it.
        let column = column + (error.column() as u64).saturating_sub(1);
        ReadError::NotJson { line, column, what }
    }

    /// Returns the error with another line number.
    #[must_use]
    pub fn on_line(mut self, elsewhere: impl Fn(u64) -> u64) -> ReadError {
        match &mut self {
            ReadError::Bad { line, .. }
            | ReadError::NotJson { line, .. }
            | ReadError::Format { line, .. }
            | ReadError::TooLong { line, .. } => *line = elsewhere(*line),
            ReadError::Io(_) => {}
        }
        self
    }

    /// The number of the bad line, from 1.
    pub fn line(&self) -> Option<u64> {
        match self {
            ReadError::Bad { line, .. }
            | ReadError::NotJson { line, .. }
            | ReadError::Format { line, .. }
            | ReadError::TooLong { line, .. } => Some(*line),
            ReadError::Io(_) => None,
        }
    }
}
