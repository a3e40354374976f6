//! What two arrays have in common, and which of the rest belong together.
//!
//! ```text
//! before  a b c d  ──common──►  a ─ a          ──pieces──►  b went
//! after   a c X d               c ─ c, d ─ d                X came
//! ```
//!
//! Arrays may be long, so none of this takes more than a limited time for each element. Up to [`EDITS`] elements that came or
//! went are found exactly, whatever they are. Where there are more, elements that are there once in both arrays are held
//! together, and each stretch between two of them is looked at in the same way. In a stretch with more than that many
//! differences, everything is held together by its place alone.

use std::collections::HashMap;
use std::iter::once;
use std::ops::Range;

use serde_json::Value;

use super::check::walk_exact;
use super::judge::{Judge, Trail};
use super::matcher::leaves;
use crate::json::{Kind, canonical};

/// How many elements may have come or gone in one stretch.
const EDITS: usize = 512;

/// How many pairs of elements are compared to see which belong together.
const COMPARED: usize = 4096;

/// What became of an element, by its place in either array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// It is not there any more.
    Went(usize),
    /// It was not there before.
    Came(usize),
    /// It is another than it was.
    Changed(usize, usize),
}

/// What became of the elements that are not in both arrays, in their order.
pub(super) fn pieces(before: &[Value], after: &[Value]) -> Vec<Piece> {
    let mut names = HashMap::new();
    let (named_before, named_after) = (named(before, &mut names), named(after, &mut names));
    let mut found = Vec::new();
    let (mut done_before, mut done_after) = (0, 0);
    let ends = once((before.len(), after.len()));
    for (at_before, at_after) in common(&named_before, &named_after, held_together).into_iter().chain(ends) {
        if done_before < at_before || done_after < at_after {
            stretch(before, after, done_before..at_before, done_after..at_after, &mut found);
        }
        (done_before, done_after) = (at_before + 1, at_after + 1);
    }
    if before.len() == after.len() {
        // Elements that count by their place are told by it, unless there is less to tell otherwise.
        let by_place = (0..before.len()).filter(|at| named_before[*at] != named_after[*at]);
        let by_place: Vec<Piece> = by_place.map(|at| Piece::Changed(at, at)).collect();
        let told = |pieces: &[Piece]| {
            pieces.iter().fold(0_usize, |sum, piece| {
                sum.saturating_add(match piece {
                    Piece::Went(_) | Piece::Came(_) => 1,
                    Piece::Changed(was, is) => distance(&before[*was], &after[*is]),
                })
            })
        };
        if told(&by_place) <= told(&found) {
            return by_place;
        }
    }
    found
}

/// A number for each element, the same for those that are equal.
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

/// Places of elements that are equal, in order: those at both ends, and of the rest as many as there can be. `otherwise`
/// says what to do where too many differ.
fn common(before: &[usize], after: &[usize], otherwise: impl FnOnce(&[usize], &[usize]) -> Pairs) -> Pairs {
    let start = before.iter().zip(after).take_while(|(one, other)| one == other).count();
    let (before_rest, after_rest) = (&before[start..], &after[start..]);
    let ends = before_rest.iter().rev().zip(after_rest.iter().rev());
    let end = ends.take_while(|(one, other)| one == other).count();
    let (before_end, after_end) = (before.len() - end, after.len() - end);
    let (before_middle, after_middle) = (&before[start..before_end], &after[start..after_end]);
    let middle = longest(before_middle, after_middle).unwrap_or_else(|| otherwise(before_middle, after_middle));
    let first = (0..start).map(|at| (at, at));
    let middle = middle.into_iter().map(|(before, after)| (before + start, after + start));
    let last = (0..end).map(|at| (before_end + at, after_end + at));
    first.chain(middle).chain(last).collect()
}

/// As many equal elements as there are in the same order in both, by E. Myers, "An O(ND) difference algorithm and its
/// variations" (1986); `None` where more than [`EDITS`] elements are not among them.
fn longest(before: &[usize], after: &[usize]) -> Option<Pairs> {
    let most = EDITS.min(before.len() + after.len());
    // How far into `before` one comes on each diagonal; the middle one is that of equal places.
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

/// Whether the last step to a diagonal is an element that came; otherwise it is one that went. `within` has the outermost
/// diagonals of the round.
fn comes(reached: &[usize], diagonal: usize, within: Range<usize>) -> bool {
    diagonal == within.start || (diagonal != within.end && reached[diagonal - 1] < reached[diagonal + 1])
}

/// The equal elements on the way to the end of both, from how far one had come before each round.
fn way_back(before: usize, after: usize, rounds: &[Vec<usize>]) -> Pairs {
    let (mut at, mut at_after) = (before, after);
    let mut pairs = Vec::new();
    for (edits, reached) in rounds.iter().enumerate().rev() {
        let (from, from_after) = if edits == 0 {
            (0, 0)
        } else {
            // Of this round only the diagonals of the round before were known: the middle one is number `edits`.
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

/// Where too many differ: the elements that are there once in both hold the rest together.
fn held_together(before: &[usize], after: &[usize]) -> Pairs {
    let mut pairs = Vec::new();
    let (mut done_before, mut done_after) = (0, 0);
    for (at_before, at_after) in
        in_order(&only_once(before, after)).into_iter().chain(once((before.len(), after.len())))
    {
        let between = common(&before[done_before..at_before], &after[done_after..at_after], |_, _| Vec::new());
        pairs.extend(between.into_iter().map(|(before, after)| (before + done_before, after + done_after)));
        if at_before < before.len() {
            pairs.push((at_before, at_after));
        }
        (done_before, done_after) = (at_before + 1, at_after + 1);
    }
    pairs
}

/// The places of what is there once in both, in the order of the first.
fn only_once(before: &[usize], after: &[usize]) -> Pairs {
    let places = |elements: &[usize]| {
        let mut places: HashMap<usize, Option<usize>> = HashMap::new();
        for (at, element) in elements.iter().enumerate() {
            places.entry(*element).and_modify(|place| *place = None).or_insert(Some(at));
        }
        places
    };
    let (before_places, after_places) = (places(before), places(after));
    let once = before.iter().enumerate().filter_map(|(at, element)| {
        let here = before_places.get(element).copied().flatten().filter(|here| *here == at)?;
        Some((here, after_places.get(element).copied().flatten()?))
    });
    once.collect()
}

/// Of pairs in the order of their first places, as many as are in the order of their second places too.
fn in_order(pairs: &[(usize, usize)]) -> Pairs {
    // For each length, which pair ends the sequence that ends lowest.
    let mut ends: Vec<usize> = Vec::new();
    let mut earlier: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (at, (_, after)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].1 < *after);
        earlier.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut kept = Vec::with_capacity(ends.len());
    let mut next = ends.last().copied();
    while let Some(at) = next {
        kept.push(pairs[at]);
        next = earlier[at];
    }
    kept.reverse();
    kept
}

/// What became of the elements of a stretch in which two arrays have nothing in common: so that it takes as little as can be,
/// where a change takes twice what differs, and what comes or goes all that is in it. What has nothing in common with another
/// is not taken for it unless nothing else is left.
fn stretch(
    before: &[Value],
    after: &[Value],
    before_range: Range<usize>,
    after_range: Range<usize>,
    found: &mut Vec<Piece>,
) {
    let (rows, columns) = (before_range.len(), after_range.len());
    if rows.saturating_mul(columns) > COMPARED {
        let both = rows.min(columns);
        found.extend(before_range.clone().zip(after_range.clone()).map(|(was, is)| Piece::Changed(was, is)));
        found.extend(before_range.skip(both).map(Piece::Went));
        found.extend(after_range.skip(both).map(Piece::Came));
        return;
    }
    let lost: Vec<usize> = before[before_range.clone()].iter().map(leaves).collect();
    let gained: Vec<usize> = after[after_range.clone()].iter().map(leaves).collect();
    // From the end: the least that it takes from each place on, and the first step of it.
    let place = |row: usize, column: usize| row * (columns + 1) + column;
    let mut least = vec![(0_usize, Step::Change); (rows + 1) * (columns + 1)];
    for row in (0..=rows).rev() {
        for column in (0..=columns).rev() {
            let after_that = |row: usize, column: usize| least[place(row, column)].0;
            let change = (row < rows && column < columns).then(|| {
                let (was, is) = (&before[before_range.start + row], &after[after_range.start + column]);
                let differs = match kind(was) == kind(is) {
                    true => distance(was, is).saturating_mul(2),
                    false => lost[row].saturating_add(gained[column]),
                };
                (differs.saturating_add(after_that(row + 1, column + 1)), Step::Change)
            });
            let lose = (row < rows).then(|| (lost[row].saturating_add(after_that(row + 1, column)), Step::Lose));
            let gain =
                (column < columns).then(|| (gained[column].saturating_add(after_that(row, column + 1)), Step::Gain));
            // Of those that take as much, the first: what can be a change is one.
            let steps = [change, lose, gain].into_iter().flatten();
            if let Some(step) = steps.min_by_key(|(weight, _)| *weight) {
                least[place(row, column)] = step;
            }
        }
    }
    let (mut row, mut column) = (0, 0);
    while row < rows || column < columns {
        let (was, is) = (before_range.start + row, after_range.start + column);
        let piece = match least[place(row, column)].1 {
            Step::Change => Piece::Changed(was, is),
            Step::Lose => Piece::Went(was),
            Step::Gain => Piece::Came(is),
        };
        found.push(piece);
        row += usize::from(!matches!(piece, Piece::Came(_)));
        column += usize::from(!matches!(piece, Piece::Went(_)));
    }
}

/// How much of one value is not as it is in another.
fn distance(before: &Value, after: &Value) -> usize {
    let mut judge = Judge::Count(0);
    // It goes on to the end, whatever it finds.
    let _ = walk_exact(before, after, &Trail::Root, &mut judge);
    match judge {
        Judge::Count(distance) => distance,
        Judge::First | Judge::Collect(_) => 0,
    }
}

/// The JSON type, in which all numbers are one.
pub(super) fn kind(value: &Value) -> Kind {
    match Kind::of(value) {
        Kind::Integer => Kind::Number,
        other => other,
    }
}

#[derive(Clone, Copy)]
enum Step {
    Change,
    Lose,
    Gain,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The length of the longest common subsequence, in the plainest way.
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

    fn is_right(before: &[usize], after: &[usize], pairs: &[(usize, usize)]) -> bool {
        let rises = pairs.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 < two[1].1);
        rises && pairs.iter().all(|(one, other)| before[*one] == after[*other])
    }

    #[test]
    fn what_is_there_once_holds_together_what_differs_too_much() {
        // Every other element went, and twice as many came as may be looked for.
        let before: Vec<usize> = (0..4 * EDITS).collect();
        let after: Vec<usize> = before.iter().flat_map(|it| [it * 2 % (8 * EDITS), 10_000 + it]).collect();
        assert_eq!(longest(&before, &after), None);
        let pairs = common(&before, &after, held_together);
        assert!(is_right(&before, &after, &pairs));
        assert_eq!(pairs.len(), plainly(&before, &after));
    }

    #[test]
    fn what_differs_too_much_and_repeats_has_its_ends_in_common() {
        let before: Vec<usize> = (0..3000).map(|at| at % 2).collect();
        let mut after: Vec<usize> = (0..3000).map(|at| 2 + at % 3).collect();
        (after[0], after[2999]) = (0, 1);
        assert_eq!(common(&before, &after, held_together), [(0, 0), (2999, 2999)]);
    }

    proptest! {
        #[test]
        fn as_many_are_in_common_as_can_be(
            before in proptest::collection::vec(0..5_usize, 0..40),
            after in proptest::collection::vec(0..5_usize, 0..40),
        ) {
            let pairs = common(&before, &after, held_together);
            prop_assert!(is_right(&before, &after, &pairs));
            prop_assert_eq!(pairs.len(), plainly(&before, &after));
            prop_assert!(is_right(&before, &after, &held_together(&before, &after)));
        }
    }
}
