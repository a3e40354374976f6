//! A range of numbers, each end open, included or excluded.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Bound;

use serde_json::{Number, Value};

use crate::json::compare;

/// The numbers between two bounds; compared exactly, so `1` and `1.0` are the same number.
///
/// ```text
/// >= 1 and < 10
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    low: Bound<Number>,
    high: Bound<Number>,
}

impl Range {
    /// The numbers between two bounds.
    pub fn new(low: Bound<Number>, high: Bound<Number>) -> Range {
        Range { low, high }
    }

    /// This number and those above.
    pub fn at_least(number: impl Into<Number>) -> Range {
        Range::new(Bound::Included(number.into()), Bound::Unbounded)
    }

    /// This number and those below.
    pub fn at_most(number: impl Into<Number>) -> Range {
        Range::new(Bound::Unbounded, Bound::Included(number.into()))
    }

    /// Only this number.
    pub fn only(number: impl Into<Number>) -> Range {
        let number = number.into();
        Range::new(Bound::Included(number.clone()), Bound::Included(number))
    }

    /// Whether a number is in the range.
    pub fn contains(&self, number: &Number) -> bool {
        let above = match &self.low {
            Bound::Included(low) => compare(number, low) != Ordering::Less,
            Bound::Excluded(low) => compare(number, low) == Ordering::Greater,
            Bound::Unbounded => true,
        };
        above
            && match &self.high {
                Bound::Included(high) => compare(number, high) != Ordering::Greater,
                Bound::Excluded(high) => compare(number, high) == Ordering::Less,
                Bound::Unbounded => true,
            }
    }

    /// Whether a value is a number in the range.
    pub fn has(&self, value: &Value) -> bool {
        value.as_number().is_some_and(|number| self.contains(number))
    }

    /// The lower end.
    pub fn low(&self) -> &Bound<Number> {
        &self.low
    }

    /// The upper end.
    pub fn high(&self) -> &Bound<Number> {
        &self.high
    }

    /// The only number of the range, if it was written as one number.
    pub(super) fn single(&self) -> Option<&Number> {
        match (&self.low, &self.high) {
            (Bound::Included(low), Bound::Included(high)) if low == high => Some(low),
            _ => None,
        }
    }

    /// Whether the range contains no number because its ends are reversed.
    pub(super) fn is_empty(&self) -> bool {
        match (&self.low, &self.high) {
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
            (Bound::Included(low), Bound::Included(high)) => compare(low, high).is_gt(),
            (Bound::Included(low) | Bound::Excluded(low), Bound::Excluded(high))
            | (Bound::Excluded(low), Bound::Included(high)) => compare(low, high).is_ge(),
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.low {
            Bound::Included(low) => write!(f, ">= {low}")?,
            Bound::Excluded(low) => write!(f, "> {low}")?,
            Bound::Unbounded => {}
        }
        let bounded = [&self.low, &self.high].map(|bound| !matches!(bound, Bound::Unbounded));
        match bounded {
            [true, true] => f.write_str(" and ")?,
            [false, false] => f.write_str("of any size")?,
            [true, false] | [false, true] => {}
        }
        match &self.high {
            Bound::Included(high) => write!(f, "<= {high}"),
            Bound::Excluded(high) => write!(f, "< {high}"),
            Bound::Unbounded => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(low: Bound<i64>, high: Bound<i64>) -> Range {
        Range::new(low.map(Number::from), high.map(Number::from))
    }

    #[test]
    fn a_bound_is_inside_only_when_it_is_included() {
        let half_open = range(Bound::Included(1), Bound::Excluded(10));
        for (number, inside) in [(0, false), (1, true), (9, true), (10, false)] {
            assert_eq!(half_open.contains(&Number::from(number)), inside, "{number}");
        }
        assert_eq!(half_open.to_string(), ">= 1 and < 10");
    }

    #[test]
    fn a_range_whose_ends_have_crossed_is_empty() {
        assert!(range(Bound::Included(5), Bound::Included(4)).is_empty());
        assert!(range(Bound::Included(5), Bound::Excluded(5)).is_empty());
        assert!(!range(Bound::Included(5), Bound::Included(5)).is_empty());
        assert!(!Range::at_least(5).is_empty());
    }

    #[test]
    fn big_integers_are_not_rounded_into_the_range() {
        let below = Range::at_most(9_007_199_254_740_992_u64);
        assert!(!below.contains(&Number::from(9_007_199_254_740_993_u64)));
    }
}
