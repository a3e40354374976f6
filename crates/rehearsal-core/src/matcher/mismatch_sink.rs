//! Mismatches, and what a walk does with them: it stops at the first one, counts them, or collects them.

use std::fmt;
use std::ops::ControlFlow;

use serde::Serialize;

use crate::json::{Path, Segment};

/// Takes every mismatch of one walk over a value.
pub(super) enum MismatchSink {
    /// Finds whether there is any mismatch; allocates nothing.
    First,
    /// Counts the mismatches, by weight.
    Count(usize),
    /// Collects every mismatch.
    Collect(Vec<Mismatch>),
}

/// Whether the walk continues.
pub(super) type Walk = ControlFlow<()>;

/// The text of a mismatch, built only for a sink that keeps it.
pub(super) struct MismatchText {
    pub(super) expected: String,
    pub(super) got: Option<String>,
}

impl MismatchSink {
    /// Takes one mismatch. It counts at least 1.
    pub(super) fn report(
        &mut self,
        trail: &PathTrail<'_>,
        weight: impl FnOnce() -> usize,
        text: impl FnOnce() -> MismatchText,
    ) -> Walk {
        match self {
            MismatchSink::First => return Walk::Break(()),
            MismatchSink::Count(total) => *total = total.saturating_add(weight().max(1)),
            MismatchSink::Collect(mismatches) => {
                let MismatchText { expected, got } = text();
                mismatches.push(Mismatch { path: trail.to_path(), expected, got });
            }
        }
        Walk::Continue(())
    }
}

/// The path from the root to the current value, kept on the stack so that a walk without mismatches allocates nothing.
pub(super) enum PathTrail<'walk> {
    Root,
    Below(&'walk PathTrail<'walk>, &'walk Path),
    Key(&'walk PathTrail<'walk>, &'walk str),
    Index(&'walk PathTrail<'walk>, usize),
}

impl PathTrail<'_> {
    pub(super) fn to_path(&self) -> Path {
        match self {
            PathTrail::Root => Path::root(),
            PathTrail::Below(parent, path) => parent.to_path().concat(path),
            PathTrail::Key(parent, key) => extended(parent, (*key).into()),
            PathTrail::Index(parent, index) => extended(parent, (*index).into()),
        }
    }
}

fn extended(parent: &PathTrail<'_>, segment: Segment) -> Path {
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
        let first = PathTrail::Key(&PathTrail::Root, "a");
        let second = PathTrail::Below(&first, &inner);
        let third = PathTrail::Index(&second, 3);
        assert_eq!(third.to_path().to_string(), "$.a.b[2][3]");
    }

    #[test]
    fn text_is_built_only_for_a_sink_that_keeps_it() {
        let no_text = || -> MismatchText { panic!("this sink keeps no text") };
        assert!(MismatchSink::First.report(&PathTrail::Root, || 1, no_text).is_break());
        let mut count = MismatchSink::Count(0);
        assert!(count.report(&PathTrail::Root, || 0, no_text).is_continue());
        assert!(matches!(count, MismatchSink::Count(1)));
    }

    #[test]
    fn a_mismatch_displays_its_path_and_both_values() {
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
