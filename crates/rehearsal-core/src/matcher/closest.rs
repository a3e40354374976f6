//! The one of several that came closest.

use std::cmp::Reverse;

use serde_json::Value;

use super::check::words;
use super::judge::{Judge, Trail, Walk};
use super::matcher::Matcher;

/// One of several ways in which a matcher could have been satisfied.
pub(super) struct Candidate<'walk> {
    pub(super) matcher: &'walk Matcher,
    pub(super) actual: Option<&'walk Value>,
    /// Which element of the array this is about, if it is.
    pub(super) index: Option<usize>,
}

/// One candidate must match. If none does, the one that came closest speaks, provided that it got something right;
/// otherwise naming one of them would mislead, and the whole is named.
pub(super) fn walk_closest<'walk>(
    whole: &Matcher,
    mut candidates: impl Iterator<Item = Candidate<'walk>>,
    actual: Option<&Value>,
    trail: &Trail<'_>,
    judge: &mut Judge,
) -> Walk {
    if let Judge::First = judge {
        let found = candidates.any(|candidate| candidate.matcher.matches_optional(candidate.actual));
        return if found { Walk::Continue(()) } else { Walk::Break(()) };
    }
    let mut closest: Option<(Closeness, Candidate<'_>)> = None;
    for candidate in candidates {
        let distance = candidate.matcher.distance_optional(candidate.actual);
        if distance == 0 {
            return Walk::Continue(());
        }
        let right = candidate.matcher.weight().saturating_sub(distance);
        let closeness = (distance, Reverse(right));
        if closest.as_ref().is_none_or(|(best, _)| closeness < *best) {
            closest = Some((closeness, candidate));
        }
    }
    match (judge, closest) {
        (Judge::Count(total), Some(((distance, _), _))) => {
            *total = total.saturating_add(distance);
            Walk::Continue(())
        }
        (judge, Some(((_, Reverse(1..)), closest))) => match closest.index {
            Some(index) => {
                let trail = Trail::Index(trail, index);
                closest.matcher.walk(closest.actual, &trail, judge)
            }
            None => closest.matcher.walk(closest.actual, trail, judge),
        },
        (judge, _) => judge.refuse(trail, || whole.weight(), || words(whole, actual)),
    }
}

/// How much is wrong, and of those equally wrong, how much is right.
type Closeness = (usize, Reverse<usize>);
