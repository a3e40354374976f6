//! What becomes of a mismatch: the first one settles it, or they are counted, or they are collected.

use std::ops::ControlFlow;

use super::mismatch::Mismatch;
use crate::json::{Path, Segment};

/// Hears every mismatch of one walk over a value.
pub(super) enum Judge {
    /// Whether anything mismatches at all; nothing is allocated for it.
    First,
    /// How much mismatches, by weight.
    Count(usize),
    /// Everything that mismatches.
    Collect(Vec<Mismatch>),
}

/// Whether the walk goes on.
pub(super) type Walk = ControlFlow<()>;

/// The words of a mismatch, made only for a judge that keeps them.
pub(super) struct Words {
    pub(super) expected: String,
    pub(super) got: Option<String>,
}

impl Judge {
    /// Hears one mismatch. It counts at least 1.
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

/// The way from the root to where the walk is, kept on the stack so that a walk that finds nothing allocates nothing.
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
}
