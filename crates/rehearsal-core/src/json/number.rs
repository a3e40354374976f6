//! Numbers compared by what they are worth, not by how they were written.

use std::cmp::Ordering;

use serde_json::Number;

/// Orders two numbers exactly: `1` and `1.0` are equal, and integers beyond 2^53 are not rounded.
pub fn compare(left: &Number, right: &Number) -> Ordering {
    match (integer(left), integer(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        (Some(left), None) => compare_float(float(right), left).reverse(),
        (None, Some(right)) => compare_float(float(left), right),
        (None, None) => compare_floats(float(left), float(right)),
    }
}

/// The integer that was written as an integer; both `i64` and `u64` fit.
fn integer(number: &Number) -> Option<i128> {
    let signed = number.as_i64().map(i128::from);
    signed.or_else(|| number.as_u64().map(i128::from))
}

fn float(number: &Number) -> f64 {
    number.as_f64().expect("a number that is no integer is a float")
}

fn compare_float(float: f64, integer: i128) -> Ordering {
    // The cast saturates, and every integer here has at most 65 bits, so the order survives it.
    let whole = float.trunc() as i128;
    whole.cmp(&integer).then_with(|| compare_floats(float.fract(), 0.0))
}

/// Unlike `f64::total_cmp`, `-0.0` and `0.0` are equal; NaN cannot be written in JSON.
fn compare_floats(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right).unwrap_or(Ordering::Equal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn number(text: &str) -> Number {
        match serde_json::from_str(text).unwrap() {
            Value::Number(number) => number,
            other => panic!("not a number: {other}"),
        }
    }

    #[test]
    fn numbers_are_ordered_by_their_worth() {
        for (left, right, order) in [
            ("1", "1.0", Ordering::Equal),
            ("0", "-0.0", Ordering::Equal),
            ("1", "1.5", Ordering::Less),
            ("-1", "-1.5", Ordering::Greater),
            ("9007199254740993", "9007199254740992", Ordering::Greater),
            ("9007199254740993", "9007199254740992.0", Ordering::Greater),
            ("18446744073709551615", "18446744073709551616", Ordering::Less),
            ("1e300", "18446744073709551615", Ordering::Greater),
            ("-1e300", "-9223372036854775808", Ordering::Less),
            ("0.5", "0.25", Ordering::Greater),
        ] {
            assert_eq!(compare(&number(left), &number(right)), order, "{left} {right}");
            assert_eq!(compare(&number(right), &number(left)), order.reverse());
        }
    }

    proptest! {
        #[test]
        fn integers_compare_as_integers(left: i64, right: u64) {
            let order = i128::from(left).cmp(&i128::from(right));
            prop_assert_eq!(compare(&Number::from(left), &Number::from(right)), order);
        }
    }
}
