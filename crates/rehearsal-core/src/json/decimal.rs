//! The worth of a number, from its digits.

use std::cmp::Ordering;

/// The exact worth of a number that is written in JSON, whatever its length: two that are equal are equal here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    is_negative: bool,
    /// Without zeros at either end; empty for zero.
    digits: Vec<u8>,
    /// How many places the point stands behind the beginning of the digits: 2 for `12.5`, -1 for `0.05`.
    point: i64,
}

/// Whole numbers of up to so many digits are written without an exponent: all that 64 bits hold.
const PLAIN_DIGITS: i64 = 20;

impl Decimal {
    /// `None` if this is no number as JSON writes it.
    pub(crate) fn of(text: &str) -> Option<Decimal> {
        let (is_negative, rest) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, power(exponent)?),
            None => (rest, 0),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((_, "")) => return None,
            Some(parts) => parts,
            None => (mantissa, ""),
        };
        let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let is_number = are_digits(whole) && are_digits(fraction) && (whole == "0" || !whole.starts_with('0'));
        if !is_number || whole.is_empty() {
            return None;
        }
        let all = [whole.as_bytes(), fraction.as_bytes()].concat();
        let leading = all.iter().take_while(|digit| **digit == b'0').count();
        let end = all.iter().rposition(|digit| *digit != b'0').map_or(leading, |last| last + 1);
        let digits = all[leading..end].to_vec();
        if digits.is_empty() {
            return Some(Decimal { is_negative: false, digits, point: 0 });
        }
        let places = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let point = exponent.saturating_add(places(whole.len())).saturating_sub(places(leading));
        Some(Decimal { is_negative, digits, point })
    }

    /// Whether it has no fraction.
    pub(crate) fn is_whole(&self) -> bool {
        i64::try_from(self.digits.len()).is_ok_and(|count| count <= self.point) || self.digits.is_empty()
    }

    /// Appends the same text for equal numbers.
    pub(crate) fn canonical(&self, out: &mut String) {
        if self.digits.is_empty() {
            return out.push('0');
        }
        if self.is_negative {
            out.push('-');
        }
        out.extend(self.digits.iter().map(|digit| char::from(*digit)));
        if self.is_whole() && self.point <= PLAIN_DIGITS {
            let zeros = usize::try_from(self.point).unwrap_or(0).saturating_sub(self.digits.len());
            out.extend(std::iter::repeat_n('0', zeros));
        } else {
            out.push_str(&format!("e{}", self.point));
        }
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Decimal) -> Ordering {
        let sign = |it: &Decimal| match (it.digits.is_empty(), it.is_negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        let size = || self.point.cmp(&other.point).then_with(|| self.digits.cmp(&other.digits));
        match sign(self).cmp(&sign(other)) {
            Ordering::Equal if self.is_negative => size().reverse(),
            Ordering::Equal => size(),
            different => different,
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// An exponent; one beyond all measure is as large as can be.
fn power(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let most = i64::MAX / 4;
    let size = digits.parse().map_or(most, |size: i64| size.min(most));
    Some(if text.starts_with('-') { -size } else { size })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(text: &str) -> Decimal {
        Decimal::of(text).unwrap_or_else(|| panic!("{text} is a number"))
    }

    fn canonical(text: &str) -> String {
        let mut out = String::new();
        of(text).canonical(&mut out);
        out
    }

    #[test]
    fn one_worth_has_one_text() {
        for (texts, expected) in [
            (&["0", "-0", "0.0", "0e99", "-0.00e-5"][..], "0"),
            (&["1", "1.0", "10e-1", "0.1e1", "1E0", "1e+0"], "1"),
            (&["-12.5", "-1.25e1", "-1250e-2"], "-125e2"),
            (&["0.05", "5e-2"], "5e-1"),
            (&["100000000000000000000", "1e20", "1.0E+20"], "1e21"),
            (&["18446744073709551615", "18446744073709551615.0"], "18446744073709551615"),
            (&["1e99999999999999999999"], "1e2305843009213693952"),
        ] {
            for text in texts {
                assert_eq!(canonical(text), expected, "{text}");
            }
        }
    }

    #[test]
    fn what_is_no_number_in_json_is_none_here() {
        for text in ["", "-", "+1", "01", ".5", "5.", "1e", "1e+", "0x1", "1_000", "NaN", "1 ", "--1", "1.e5", "1.5.5"]
        {
            assert_eq!(Decimal::of(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_of_any_length_are_ordered() {
        let ordered = [
            "-1e400",
            "-12345678901234567890124",
            "-12345678901234567890123",
            "-1",
            "-0.5",
            "0",
            "1e-400",
            "0.5",
            "0.50000000000000000000001",
            "3",
            "20",
            "12345678901234567890123",
            "12345678901234567890123.5",
            "12345678901234567890124",
            "1e400",
        ];
        for (at, one) in ordered.iter().enumerate() {
            for (place, other) in ordered.iter().enumerate() {
                assert_eq!(of(one).cmp(&of(other)), at.cmp(&place), "{one} {other}");
            }
        }
    }

    proptest! {
        #[test]
        fn integers_are_ordered_as_integers(one: i128, other: i128) {
            prop_assert_eq!(of(&one.to_string()).cmp(&of(&other.to_string())), one.cmp(&other));
        }
    }
}
