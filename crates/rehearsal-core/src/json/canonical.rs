//! Canonical text for equal values, and the order of numbers.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// Appends the canonical text of a value: keys in order, `1.0` as `1`. Equal values have the same text.
///
/// It is stored in the keys of indexes, so a change of the text needs a new version of the indexes.
pub fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(object) => canonical_object(object, out),
        Value::Array(items) => {
            out.push('[');
            for item in items {
                canonical(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            // Exact: up to this size, `i128` holds every float without a fraction.
            Some(float) if float.fract() == 0.0 && float.abs() < 1e20 => out.push_str(&(float as i128).to_string()),
            Some(_) | None => out.push_str(&number.to_string()),
        },
        Value::String(text) => quoted(text, out),
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
    }
}

/// Appends the text of an object with these members.
pub fn canonical_object<'a>(members: impl IntoIterator<Item = (&'a String, &'a Value)>, out: &mut String) {
    let mut members: Vec<_> = members.into_iter().collect();
    members.sort_unstable_by_key(|(key, _)| *key);
    out.push('{');
    for (key, value) in members {
        quoted(key, out);
        out.push(':');
        canonical(value, out);
        out.push(',');
    }
    out.push('}');
}

/// Appends a quoted text. Quotes and backslashes are escaped, so that no text can contain the end of one.
fn quoted(text: &str, out: &mut String) {
    out.push('"');
    if text.contains(['"', '\\']) {
        out.push_str(&text.replace('\\', "\\\\").replace('"', "\\\""));
    } else {
        out.push_str(text);
    }
    out.push('"');
}

/// Orders two numbers exactly: `1` and `1.0` are equal, and integers beyond 2^53 are not rounded.
pub fn compare(left: &Number, right: &Number) -> Ordering {
    match (integer(left), integer(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        (Some(left), None) => compare_float(float(right), left).reverse(),
        (None, Some(right)) => compare_float(float(left), right),
        (None, None) => compare_floats(float(left), float(right)),
    }
}

/// The value of a number that was written as an integer; both `i64` and `u64` fit.
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

/// Compares floats. Unlike with `f64::total_cmp`, `-0.0` and `0.0` are equal; JSON has no NaN.
fn compare_floats(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right).unwrap_or(Ordering::Equal)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn text(value: Value) -> String {
        let mut text = String::new();
        canonical(&value, &mut text);
        text
    }

    #[test]
    fn equal_values_have_one_text_and_others_another() {
        assert_eq!(text(json!({"b": 1.0, "a": [true, null, 1.5]})), r#"{"a":[true,null,1.5,],"b":1,}"#);
        assert_eq!(text(json!(-0.0)), "0");
        assert_eq!(text(json!(1e15)), "1000000000000000");
        assert_eq!(text(json!(1e18)), text(json!(1_000_000_000_000_000_000_u64)));
        assert_ne!(text(json!(18_446_744_073_709_551_616.0)), text(json!(u64::MAX)));
        assert_ne!(text(json!({"a": "b\":\"c"})), text(json!({"a": "b", "c": ""})));
        assert_ne!(text(json!("1")), text(json!(1)));
        assert_ne!(text(json!(["a", "b"])), text(json!([["a"], "b"])));
        assert_ne!(text(json!("\\")), text(json!("\\\\")));
    }

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
