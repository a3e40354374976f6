//! Mismatches, and what a walk does with them: it stops at the first one, counts them, or collects them.

use std::fmt;
use std::ops::ControlFlow;

use serde::Serialize;

use crate::json::{Path, Segment};

/// Takes every mismatch of one walk over a value.
pub(super) enum Judge {
    /// Finds whether there is any mismatch; allocates nothing.
    First,
    /// Counts the mismatches, by weight.
    Count(usize),
    /// Collects every mismatch.
    Collect(Vec<Mismatch>),
}

/// Whether the walk continues.
pub(super) type Walk = ControlFlow<()>;

/// The text of a mismatch, built only for a judge that keeps it.
pub(super) struct Words {
    pub(super) expected: String,
    pub(super) got: Option<String>,
}

impl Judge {
    /// Takes one mismatch. It counts at least 1.
    pub(super) fn refuse(
        &mut self,
        trail: &Trail<'_>,
        weight: impl FnOnce() -> usize,
        words: impl FnOnce() -> Words,
    ) -> Walk {
        match self {
            Judge::First => return Walk::Break(()),
            Judge::Count(total) => *total = total.saturating_add(weight().max(1)),
            Judge::Collect(mismatches) => {
                let Words { expected, got } = words();
                mismatches.push(Mismatch { path: trail.to_path(), expected, got });
            }
        }
        Walk::Continue(())
    }
}

/// The path from the root to the current value, kept on the stack so that a walk without mismatches allocates nothing.
pub(super) enum Trail<'walk> {
    Root,
    Below(&'walk Trail<'walk>, &'walk Path),
    Key(&'walk Trail<'walk>, &'walk str),
    Index(&'walk Trail<'walk>, usize),
}

impl Trail<'_> {
    pub(super) fn to_path(&self) -> Path {
        match self {
            Trail::Root => Path::root(),
            Trail::Below(parent, path) => parent.to_path().concat(path),
            Trail::Key(parent, key) => extended(parent, (*key).into()),
            Trail::Index(parent, index) => extended(parent, (*index).into()),
        }
    }
}

fn extended(parent: &Trail<'_>, segment: Segment) -> Path {
    let mut path = parent.to_path();
    path.push(segment);
    path
}

/// One place where a value does not match.
///
/// ```text
/// $.name: expected "weather", got "wether"
/// $.city: missing, expected a string
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mismatch {
    /// The path in the value.
    pub path: Path,
    /// A description of the expected value.
    pub expected: String,
    /// The actual value, shortened for a message; `None` if there is none.
    pub got: Option<String>,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mismatch { path, expected, got } = self;
        match got {
            Some(got) => write!(f, "{path}: expected {expected}, got {got}"),
            None => write!(f, "{path}: missing, expected {expected}"),
        }
    }
}

/// The most mismatches of one comparison that are printed or sent: two values can differ in as many places as they have members.
pub(crate) const MAX_MISMATCHES: usize = 100;

/// The first mismatches as text, and how many others there are: `and 50 more places`.
pub fn first_mismatches(mismatches: &[impl fmt::Display]) -> Vec<String> {
    let mut lines: Vec<String> = mismatches.iter().take(MAX_MISMATCHES).map(ToString::to_string).collect();
    if let Some(more) = mismatches.len().checked_sub(MAX_MISMATCHES).filter(|more| *more > 0) {
        lines.push(format!("and {more} more places"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trail_becomes_a_path_from_the_root() {
        let inner = Path::root().join("b").join(2);
        let first = Trail::Key(&Trail::Root, "a");
        let second = Trail::Below(&first, &inner);
        let third = Trail::Index(&second, 3);
        assert_eq!(third.to_path().to_string(), "$.a.b[2][3]");
    }

    #[test]
    fn words_are_made_only_for_a_judge_that_keeps_them() {
        let no_words = || -> Words { panic!("nobody keeps these") };
        assert!(Judge::First.refuse(&Trail::Root, || 1, no_words).is_break());
        let mut count = Judge::Count(0);
        assert!(count.refuse(&Trail::Root, || 0, no_words).is_continue());
        assert!(matches!(count, Judge::Count(1)));
    }

    #[test]
    fn a_mismatch_says_where_expected_and_got() {
        let mut mismatch = Mismatch {
            path: Path::root().join("name"),
            expected: "\"weather\"".to_owned(),
            got: Some("\"wether\"".to_owned()),
        };
        assert_eq!(mismatch.to_string(), r#"$.name: expected "weather", got "wether""#);
        mismatch.got = None;
        assert_eq!(mismatch.to_string(), r#"$.name: missing, expected "weather""#);
    }

    #[test]
    fn a_mismatch_is_plain_json_for_programs() {
        let mismatch = Mismatch { path: Path::root().join(0), expected: "nothing".to_owned(), got: None };
        let json = serde_json::to_string(&mismatch).unwrap();
        assert_eq!(json, r#"{"path":"$[0]","expected":"nothing","got":null}"#);
    }
}
