//! Aligns two arrays: finds their common elements, and pairs the rest.
//!
//! ```text
//! before  a b c d  ──common──►  a ─ a          ──pieces──►  b went
//! after   a c X d               c ─ c, d ─ d                X came
//! ```
//!
//! Elements between two common elements are paired by index. If more than [`MAX_EDITS`] elements were added or removed,
//! all elements are paired by index.

use std::collections::HashMap;
use std::ops::Range;

use serde_json::Value;

use crate::json::canonical;

/// Maximum number of added and removed elements; beyond it the rest is paired by index.
const MAX_EDITS: usize = 512;

/// A difference between two arrays, with the indexes of its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ElementChange {
    /// The element was removed.
    Removed(usize),
    /// The element was added.
    Added(usize),
    /// The element was changed.
    Changed(usize, usize),
}

/// The elements that are not in both arrays, in their order.
pub(super) fn pieces(before: &[Value], after: &[Value]) -> Vec<ElementChange> {
    let mut names = HashMap::new();
    let (named_before, named_after) = (named(before, &mut names), named(after, &mut names));
    let mut found = Vec::new();
    let (mut done_before, mut done_after) = (0, 0);
    for (at_before, at_after) in common(&named_before, &named_after).into_iter().chain([(before.len(), after.len())]) {
        by_place(done_before..at_before, done_after..at_after, &mut found);
        (done_before, done_after) = (at_before + 1, at_after + 1);
    }
    if before.len() == after.len() {
        // The two numbers of a point have changed; none was added or removed.
        let differs = |at: &usize| named_before[*at] != named_after[*at];
        let changed: Vec<ElementChange> =
            (0..before.len()).filter(differs).map(|at| ElementChange::Changed(at, at)).collect();
        if changed.len() <= found.len() {
            return changed;
        }
    }
    found
}

/// Pairs the elements of two ranges that have no common element.
fn by_place(before: Range<usize>, after: Range<usize>, found: &mut Vec<ElementChange>) {
    let both = before.len().min(after.len());
    found.extend(before.clone().zip(after.clone()).map(|(was, is)| ElementChange::Changed(was, is)));
    found.extend(before.skip(both).map(ElementChange::Removed));
    found.extend(after.skip(both).map(ElementChange::Added));
}

/// A number for each element; equal elements have the same number.
fn named(elements: &[Value], names: &mut HashMap<String, usize>) -> Vec<usize> {
    let mut named = Vec::with_capacity(elements.len());
    for element in elements {
        let mut text = String::new();
        canonical(element, &mut text);
        let next = names.len();
        named.push(*names.entry(text).or_insert(next));
    }
    named
}

type Pairs = Vec<(usize, usize)>;

/// The indexes of equal elements, in order: those at both ends, and of the rest a longest common subsequence, unless
/// too many elements differ.
fn common(before: &[usize], after: &[usize]) -> Pairs {
    let start = before.iter().zip(after).take_while(|(one, other)| one == other).count();
    let (before_rest, after_rest) = (&before[start..], &after[start..]);
    let ends = before_rest.iter().rev().zip(after_rest.iter().rev());
    let end = ends.take_while(|(one, other)| one == other).count();
    let (before_end, after_end) = (before.len() - end, after.len() - end);
    let (before_middle, after_middle) = (&before[start..before_end], &after[start..after_end]);
    let middle = longest(before_middle, after_middle).unwrap_or_default();
    let first = (0..start).map(|at| (at, at));
    let middle = middle.into_iter().map(|(before, after)| (before + start, after + start));
    let last = (0..end).map(|at| (before_end + at, after_end + at));
    first.chain(middle).chain(last).collect()
}

/// A longest common subsequence by E. Myers, "An O(ND) difference algorithm and its variations" (1986); `None` if more
/// than [`MAX_EDITS`] elements are not part of it.
fn longest(before: &[usize], after: &[usize]) -> Option<Pairs> {
    let most = MAX_EDITS.min(before.len() + after.len());
    // The furthest index in `before` on each diagonal; the middle diagonal has equal indexes.
    let middle = most + 1;
    let mut reached = vec![0_usize; 2 * middle + 1];
    let mut rounds: Vec<Vec<usize>> = Vec::new();
    for edits in 0..=most {
        rounds.push(reached[middle - edits..=middle + edits].to_vec());
        for diagonal in (middle - edits..=middle + edits).step_by(2) {
            let comes = comes(&reached, diagonal, middle - edits..middle + edits);
            let mut at = if comes { reached[diagonal + 1] } else { reached[diagonal - 1] + 1 };
            let mut at_after = at + middle - diagonal;
            while at < before.len() && at_after < after.len() && before[at] == after[at_after] {
                (at, at_after) = (at + 1, at_after + 1);
            }
            reached[diagonal] = at;
            if at >= before.len() && at_after >= after.len() {
                return Some(way_back(before.len(), after.len(), &rounds));
            }
        }
    }
    None
}

/// Whether the last step to a diagonal is an added element; otherwise it is a removed one. `within` contains the
/// outermost diagonals of the round.
fn comes(reached: &[usize], diagonal: usize, within: Range<usize>) -> bool {
    diagonal == within.start || (diagonal != within.end && reached[diagonal - 1] < reached[diagonal + 1])
}

/// The equal elements on the path to the end of both arrays, from the furthest indexes before each round.
fn way_back(before: usize, after: usize, rounds: &[Vec<usize>]) -> Pairs {
    let (mut at, mut at_after) = (before, after);
    let mut pairs = Vec::new();
    for (edits, reached) in rounds.iter().enumerate().rev() {
        let (from, from_after) = if edits == 0 {
            (0, 0)
        } else {
            // This round has the diagonals of the round before: the middle one is number `edits`.
            let diagonal = at + edits - at_after;
            let previous = if comes(reached, diagonal, 0..2 * edits) { diagonal + 1 } else { diagonal - 1 };
            (reached[previous], reached[previous] + edits - previous)
        };
        while at > from && at_after > from_after {
            (at, at_after) = (at - 1, at_after - 1);
            pairs.push((at, at_after));
        }
        (at, at_after) = (from, from_after);
    }
    pairs.reverse();
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The length of the longest common subsequence, by dynamic programming.
    fn plainly(before: &[usize], after: &[usize]) -> usize {
        let mut row = vec![0; after.len() + 1];
        for one in before {
            let mut corner = 0;
            for (at, other) in after.iter().enumerate() {
                let here = if one == other { corner + 1 } else { row[at + 1].max(row[at]) };
                corner = std::mem::replace(&mut row[at + 1], here);
            }
        }
        row[after.len()]
    }

    #[test]
    fn arrays_that_differ_too_much_have_their_ends_in_common() {
        let before: Vec<usize> = (0..3000).map(|at| at % 2).collect();
        let mut after: Vec<usize> = (0..3000).map(|at| 2 + at % 3).collect();
        (after[0], after[2999]) = (0, 1);
        assert_eq!(common(&before, &after), [(0, 0), (2999, 2999)]);
    }

    proptest! {
        #[test]
        fn as_many_are_in_common_as_can_be(
            before in proptest::collection::vec(0..5_usize, 0..40),
            after in proptest::collection::vec(0..5_usize, 0..40),
        ) {
            let pairs = common(&before, &after);
            prop_assert!(pairs.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 < two[1].1));
            prop_assert!(pairs.iter().all(|(one, other)| before[*one] == after[*other]));
            prop_assert_eq!(pairs.len(), plainly(&before, &after));
        }
    }
}
