//! Numbers for a schema, near 1 or near the bounds.

use serde_json::{Number, Value};

use super::generator::MAX_VALUES;
use super::shape::SchemaShape;

/// Returns numbers within the bounds, the likeliest first.
pub(super) fn numbers(shape: &SchemaShape<'_>, is_integer: bool) -> impl Iterator<Item = Value> {
    let multiples: Vec<f64> = shape.all("multipleOf").filter_map(Value::as_f64).filter(|step| *step > 0.0).collect();
    let step = multiples.iter().copied().reduce(common_multiple);
    let usual = step.unwrap_or(if is_integer { 1.0 } else { 0.5 });
    let (low, high) = (shape.greatest("minimum"), shape.smallest("maximum"));
    let (above, below) = (shape.greatest("exclusiveMinimum"), shape.smallest("exclusiveMaximum"));
    let up = |value: f64| (value / usual).ceil() * usual;
    let down = |value: f64| (value / usual).floor() * usual;
    let mut found = Vec::new();
    found.extend(above.map(|above| up(above + usual)));
    found.extend(low.map(up));
    found.extend([1.0, 0.0]);
    found.extend(below.map(|below| down(below - usual)));
    found.extend(high.map(down));
    found.extend([low, high].into_iter().flatten());
    found.extend([up(1.0), usual]);
    if let (Some(low), Some(high)) = (above.or(low), below.or(high)) {
        found.push(low.midpoint(high));
    }
    let bounds = low.or(above).map(up).or(high.or(below).map(|high| -down(high)));
    let start = bounds.unwrap_or(0.0);
    let direction = if low.or(above).is_none() && high.or(below).is_some() { -1.0 } else { 1.0 };
    let series = (0..MAX_VALUES).map(move |count| direction * (start + count as f64 * usual));
    found.into_iter().chain(series).filter_map(move |value| to_number(rounded(value, usual)))
}

/// The least common multiple of whole numbers, the product of others.
fn common_multiple(left: f64, right: f64) -> f64 {
    if left.fract() != 0.0 || right.fract() != 0.0 || left > 1e9 || right > 1e9 {
        return if left % right == 0.0 {
            left
        } else if right % left == 0.0 {
            right
        } else {
            left * right
        };
    }
    let (mut divisor, mut remainder) = (left, right);
    while remainder != 0.0 {
        (divisor, remainder) = (remainder, divisor % remainder);
    }
    left / divisor * right
}

/// Removes the error of `3 * 0.1`, which is not 0.3: a multiple has no more decimals than its step.
fn rounded(value: f64, step: f64) -> f64 {
    let text = step.to_string();
    let decimals = text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let is_multiple = ((value / step).round() * step - value).abs() <= step * 1e-6;
    if decimals == 0 || decimals > 15 || !is_multiple {
        return value;
    }
    format!("{value:.decimals$}").parse().unwrap_or(value)
}

/// Converts 1.0 to `1`.
fn to_number(value: f64) -> Option<Value> {
    let whole = value as i64;
    if whole as f64 == value { Some(whole.into()) } else { Number::from_f64(value).map(Value::Number) }
}
