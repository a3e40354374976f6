//! What is wrong with a matcher as it was written.

use crate::json::{Path, PathQueryError};

/// A written matcher that cannot be understood, with the place inside it.
///
/// ```text
/// $.city.matches: not a regular expression: unclosed group
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct MatcherError {
    /// Where inside what was written.
    pub path: Path,
    /// What is wrong there.
    pub problem: Problem,
    /// What to write instead, when that can be guessed.
    pub hint: Option<String>,
}

/// What can be wrong with a written matcher.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what it means")]
pub enum Problem {
    #[error("operator `{operator}` stands beside the ordinary key `{key}`")]
    Mixed { operator: String, key: String },
    #[error("`{operator}` takes {wanted}, not {got}")]
    WrongOperand { operator: &'static str, wanted: &'static str, got: String },
    #[error("`{operator}` goes only with {partners}")]
    Alone { operator: &'static str, partners: &'static str },
    #[error("`{name}` is not a type")]
    UnknownType { name: String },
    #[error("not a regular expression: {reason}")]
    BadPattern { reason: String },
    #[error("not a JSON Schema: {reason}")]
    BadSchema { reason: String },
    #[error("not a JSON path: {0}")]
    BadPath(PathQueryError),
    #[error("no number is {range}")]
    EmptyRange { range: String },
    #[error("nested more than {limit} levels deep")]
    TooDeep { limit: usize },
}

impl Problem {
    /// This problem at a place, without a hint.
    pub(super) fn at(self, path: &Path) -> MatcherError {
        MatcherError { path: path.clone(), problem: self, hint: None }
    }
}

impl MatcherError {
    /// Whether the key at the place is wrong, not what stands under it.
    pub(crate) fn is_about_key(&self) -> bool {
        matches!(self.problem, Problem::BadPath(_))
    }

    /// The same error with advice.
    #[must_use]
    pub(super) fn hint(mut self, hint: impl Into<String>) -> MatcherError {
        self.hint = Some(hint.into());
        self
    }
}
