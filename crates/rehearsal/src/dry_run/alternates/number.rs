//! Other numbers within the bounds of a schema.

use std::collections::HashSet;

use serde_json::Number;

use super::dice::Dice;

/// How many numbers are tried until one is new.
const MAX_TRIES: usize = 64;
/// So many numbers of one value differ at most: more do not fit into the range of near numbers.
const MANY: usize = 500;
/// The smallest distance of a near number, so that a condition on 0, 1 or 2 sees another one.
const MIN_DISTANCE: i128 = 10;
/// The range of near numbers. It is small, because a number can be the count of a loop.
const NEAR_RANGE: i128 = 88;
/// Minimum of a large number.
const LARGE: i128 = 1000;
/// The largest integer that JavaScript has exactly.
const MAX_SAFE: i128 = (1 << 53) - 1;

/// Which other number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberGoal {
    /// One of the same size that no other place has.
    Near,
    /// A large one.
    Large,
    /// Zero, or the number next to it that the bounds allow.
    Zero,
}

/// The bounds of a number, as far as a schema states them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bounds {
    pub(super) low: Option<f64>,
    pub(super) high: Option<f64>,
    pub(super) step: Option<f64>,
}

/// Another number, of the same kind: an integer stays one. `used` has the near numbers of the value so far.
pub(super) fn vary_number(
    number: &Number,
    bounds: Bounds,
    goal: NumberGoal,
    dice: &mut Dice,
    used: &mut HashSet<u64>,
) -> Option<Number> {
    let whole = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    match whole {
        Some(whole) => vary_whole(whole, bounds, goal, dice, used),
        None => vary_fraction(number.as_f64()?, bounds, goal, dice, used),
    }
}

fn vary_whole(
    value: i128,
    bounds: Bounds,
    goal: NumberGoal,
    dice: &mut Dice,
    used: &mut HashSet<u64>,
) -> Option<Number> {
    let step = bounds.step.filter(|step| *step >= 1.0 && step.fract() == 0.0).map_or(1, |step| step as i128);
    // Most numbers have no step, and these divisions are slow.
    let up = |value: i128| if step == 1 { value } else { value + (step - value.rem_euclid(step)) % step };
    let down = |value: i128| if step == 1 { value } else { value - value.rem_euclid(step) };
    let low = bounds.low.map_or(i128::from(i64::MIN), |low| up(low.ceil() as i128));
    let high = bounds.high.map_or(i128::from(u64::MAX), |high| down(high.floor() as i128));
    if low > high {
        return None;
    }
    let (zero, size) = (up(0).clamp(low, high), value.abs());
    let mut roll = |count: i128| i128::from(dice.next()) % count.max(1);
    match goal {
        NumberGoal::Zero => to_number(zero),
        NumberGoal::Large => {
            let limit = MAX_SAFE.max(size);
            to_number(down((size * 10).max(LARGE) + roll(LARGE)).min(down(limit)).clamp(low, high))
        }
        NumberGoal::Near => {
            let range = NEAR_RANGE.max(size / 16);
            let mut found = None;
            for _ in 0..MAX_TRIES {
                let distance = MIN_DISTANCE.max(step) + roll(range) * if step > 1 { step } else { 1 };
                let wanted = up(if value < 0 { value - distance } else { value + distance });
                let inside = if (low..=high).contains(&wanted) {
                    wanted
                } else {
                    let (low, high) = (low.max(high - range * step), high.min(low.saturating_add(range * step)));
                    low + roll((high - low) / step + 1) * step
                };
                if inside != value {
                    found = Some(inside);
                    if used.len() >= MANY || used.insert((inside as f64).to_bits()) {
                        break;
                    }
                }
            }
            to_number(found?)
        }
    }
}

fn vary_fraction(
    value: f64,
    bounds: Bounds,
    goal: NumberGoal,
    dice: &mut Dice,
    used: &mut HashSet<u64>,
) -> Option<Number> {
    let (low, high) = (bounds.low.unwrap_or(f64::MIN), bounds.high.unwrap_or(f64::MAX));
    if low > high {
        return None;
    }
    let rounded = |number: f64| match bounds.step {
        Some(step) if step > 0.0 => to_multiple(number, step),
        _ => (number * 1e4).round() / 1e4,
    };
    match goal {
        NumberGoal::Zero => Number::from_f64(rounded(0f64.clamp(low, high))),
        NumberGoal::Large => {
            let large = (value.abs() * 10.0).max(LARGE as f64) + dice.below(LARGE as usize) as f64 + 0.5;
            Number::from_f64(rounded(large.clamp(low, high)))
        }
        NumberGoal::Near => {
            let mut found = None;
            for _ in 0..MAX_TRIES {
                let share = (1 + dice.below(9971)) as f64 / 9973.0;
                let wanted = match value.abs() {
                    // A share or a probability stays one.
                    size if size < 1.0 => share.copysign(value),
                    size => (size + 1.0 + share * (size / 16.0).max(NEAR_RANGE as f64)).copysign(value),
                };
                let is_inside = (low..=high).contains(&wanted);
                let wanted = rounded(if is_inside { wanted } else { inside(low, high, value, share) });
                if wanted != value && (low..=high).contains(&wanted) {
                    found = Some(wanted);
                    if used.len() >= MANY || used.insert(wanted.to_bits()) {
                        break;
                    }
                }
            }
            Number::from_f64(found?)
        }
    }
}

/// A number between bounds, of which one may be missing.
fn inside(low: f64, high: f64, value: f64, share: f64) -> f64 {
    match (low == f64::MIN, high == f64::MAX) {
        (false, false) => low + (high - low) * share,
        (false, true) => low + share * value.abs().max(1.0),
        (true, _) => high - share * value.abs().max(1.0),
    }
}

/// The multiple of `step` next to a number, without the error of `3 * 0.1`.
fn to_multiple(number: f64, step: f64) -> f64 {
    let text = step.to_string();
    let decimals = text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let multiple = (number / step).round() * step;
    format!("{multiple:.decimals$}").parse().unwrap_or(multiple)
}

fn to_number(whole: i128) -> Option<Number> {
    let signed = i64::try_from(whole).ok().map(Number::from);
    signed.or_else(|| u64::try_from(whole).ok().map(Number::from))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn vary(value: &Value, bounds: Bounds, goal: NumberGoal, seed: u64) -> f64 {
        let number = value.as_number().unwrap();
        let varied = vary_number(number, bounds, goal, &mut Dice::new(seed), &mut HashSet::new()).unwrap();
        assert_eq!(varied.is_f64(), number.is_f64(), "{value}: {varied}");
        varied.as_f64().unwrap()
    }

    #[test]
    fn a_near_number_is_another_one_of_the_same_size() {
        for seed in 0..100 {
            for (value, low, high) in [
                (json!(1), 11.0, 98.0),
                (json!(0), 10.0, 97.0),
                (json!(-5), -102.0, -15.0),
                (json!(1_700_000_000), 1_700_000_010.0, 1_810_000_000.0),
                (json!(0.5), 0.0, 1.0),
                (json!(2.5), 3.5, 92.0),
            ] {
                let varied = vary(&value, Bounds::default(), NumberGoal::Near, seed);
                assert!((low..=high).contains(&varied), "{value}: {varied}");
            }
        }
    }

    #[test]
    fn bounds_and_steps_are_kept() {
        let between = |low: f64, high: f64| Bounds { low: Some(low), high: Some(high), step: None };
        for seed in 0..100 {
            for (value, bounds) in [
                (json!(1), between(0.0, 3.0)),
                (json!(9), Bounds { high: Some(9.0), ..Bounds::default() }),
                (json!(-9), Bounds { low: Some(-9.0), high: Some(-2.0), step: None }),
                (json!(0.1), between(0.05, 0.15)),
                (json!(21), Bounds { low: Some(15.0), high: None, step: Some(7.0) }),
                (json!(2.5), Bounds { low: Some(0.0), high: Some(5.0), step: Some(0.5) }),
            ] {
                for goal in [NumberGoal::Near, NumberGoal::Large, NumberGoal::Zero] {
                    let varied = vary(&value, bounds, goal, seed);
                    let (low, high) = (bounds.low.unwrap_or(f64::MIN), bounds.high.unwrap_or(f64::MAX));
                    assert!((low..=high).contains(&varied), "{value} {goal:?}: {varied}");
                    let step = bounds.step.unwrap_or(f64::MIN_POSITIVE);
                    assert!(varied % step == 0.0, "{value} {goal:?}: {varied}");
                    assert!(goal != NumberGoal::Near || Some(varied) != value.as_f64(), "{value}: {varied}");
                }
            }
        }
    }

    #[test]
    fn near_numbers_of_one_value_differ() {
        let mut used = HashSet::new();
        let number = Number::from(1);
        for seed in 0..60 {
            let before = used.len();
            vary_number(&number, Bounds::default(), NumberGoal::Near, &mut Dice::new(seed), &mut used);
            assert_eq!(used.len(), before + 1);
        }
    }

    #[test]
    fn large_numbers_stay_exact_in_javascript() {
        assert!(vary(&json!(1), Bounds::default(), NumberGoal::Large, 1) >= 1000.0);
        assert!(vary(&json!(4_000_000_000_000_000_u64), Bounds::default(), NumberGoal::Large, 1) <= MAX_SAFE as f64);
        let _ = vary(&json!(u64::MAX), Bounds::default(), NumberGoal::Near, 1);
        let _ = vary(&json!(i64::MIN), Bounds::default(), NumberGoal::Near, 1);
    }
}
