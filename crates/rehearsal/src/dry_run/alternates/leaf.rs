//! Other strings and numbers of the same form.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use serde_json::Number;

use super::Alternate;
use super::hints::Hints;

/// How many characters of a string change at least, if it may grow: enough to find the string in no other place.
const MIN_CHANGED: usize = 10;
/// By how many characters a longer string is longer. It is odd, so that a condition on the parity of the length changes, too.
const LONGER: usize = 31;
/// Maximum length of the extension of a file.
const MAX_EXTENSION: usize = 5;
/// The distance of a near number: conditions on 0, 1 or 2 see another number, and a loop over it ends soon.
const NEAR: RangeInclusive<u64> = 10..=97;
/// How many steps further a number is looked for that no other place has.
const MAX_STEPS: u32 = 100;
/// What is added to a large number. For a small one the sum is below 2000, because a loop over it has to end.
const LARGE: RangeInclusive<u64> = 1000..=1900;
/// How far an exclusive bound is from the numbers that it allows: less than a step between them.
const EXCLUSIVE: f64 = 1e-9;
/// The largest integer that JavaScript has exactly.
const MAX_SAFE: f64 = 9_007_199_254_740_991.0;

/// A sequence of numbers that a seed fixes: a linear congruential generator.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, range: RangeInclusive<u64>) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        range.start() + (self.0 >> 33) % (range.end() - range.start() + 1)
    }

    /// A character of a range, other than `not`.
    fn character(&mut self, range: RangeInclusive<u8>, not: char) -> char {
        let last = *range.end();
        let rolled = self.roll(u64::from(*range.start())..=u64::from(last) - 1) as u8;
        char::from(if char::from(rolled) == not { last } else { rolled })
    }
}

/// Replaces the letters and digits of a string by other ones, and keeps the rest: punctuation, the scheme of a URI, the
/// extension of a file. A string without letters, such as a date, keeps its length; others grow up to `max_length`.
pub(super) fn other_text(text: &str, alternate: Alternate, max_length: usize, seed: u64) -> String {
    let mut dice = Dice(seed);
    let is_scheme = |end: &usize| text[..*end].bytes().all(|byte| byte.is_ascii_alphabetic());
    let start = text.find("://").filter(is_scheme).map_or(0, |end| end + "://".len());
    let end = text.rfind('.').filter(|dot| *dot > start && is_extension(&text[dot + 1..])).unwrap_or(text.len());
    let body = &text[start..end];
    let is_digit = |at: usize| body.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
    let mut changed = text[..start].to_owned();
    let (mut letters, mut digits, mut last_change) = (0, 0, start);
    for (at, character) in body.char_indices() {
        let follows_digit = is_digit(at.wrapping_sub(1));
        let other = match character {
            // Two digits may be a month, a day, an hour or a minute: 01 to 09 is each of them.
            '0'..='9' if !follows_digit && is_digit(at + 1) && !is_digit(at + 2) => '0',
            '0'..='9' => dice.character(b'1'..=b'9', character),
            // The `T` and the `Z` of a time.
            'A'..='Z' if follows_digit => character,
            // Hexadecimal digits stay hexadecimal.
            'a'..='f' => dice.character(b'a'..=b'f', character),
            'g'..='z' => dice.character(b'g'..=b'z', character),
            'A'..='F' => dice.character(b'A'..=b'F', character),
            'G'..='Z' => dice.character(b'G'..=b'Z', character),
            _ => character,
        };
        changed.push(other);
        if other != character {
            letters += usize::from(other.is_ascii_alphabetic());
            digits += usize::from(other.is_ascii_digit());
            last_change = changed.len();
        }
    }
    let missing = MIN_CHANGED.saturating_sub(letters + digits);
    let wanted = match alternate {
        _ if digits > 0 && letters == 0 => 0,
        Alternate::Near => missing,
        Alternate::More => missing + LONGER,
        Alternate::Less | Alternate::Compared(_) => 0,
    };
    let room = max_length.saturating_sub(text.chars().count());
    let added: String = (0..wanted.min(room)).map(|_| dice.character(b'a'..=b'z', ' ')).collect();
    changed.insert_str(last_change, &added);
    changed + &text[end..]
}

fn is_extension(text: &str) -> bool {
    text.len() <= MAX_EXTENSION
        && text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Another number within the bounds of the schema; an integer stays one. `used` has the near numbers so far.
pub(super) fn other_number(
    number: &Number,
    alternate: Alternate,
    hints: &Hints<'_>,
    seed: u64,
    used: &mut HashSet<u64>,
) -> Option<Number> {
    let mut dice = Dice(seed);
    let value = number.as_f64()?;
    let is_whole = !number.is_f64();
    let step = match hints.at_least("multipleOf") {
        step if step > 0.0 => step,
        _ if is_whole => 1.0,
        _ => 1e-3,
    };
    // The rounding removes the error of `3 * 0.1`.
    let multiple = |count: f64| if step < 1.0 { (count * step * 1e6).round() / 1e6 } else { count * step };
    let nearest = |number: f64| multiple((number / step).round());
    let low = hints.at_least("minimum").max(hints.at_least("exclusiveMinimum") + EXCLUSIVE);
    let high = hints.at_most("maximum").min(hints.at_most("exclusiveMaximum") - EXCLUSIVE);
    let (low, high) = (multiple((low / step).ceil()), multiple((high / step).floor()));
    if low > high {
        return None;
    }
    let other = match alternate {
        Alternate::Less => nearest(0.0).clamp(low, high),
        Alternate::More => nearest(2.0 * value.abs() + dice.roll(LARGE) as f64).clamp(low, high),
        Alternate::Near | Alternate::Compared(_) => {
            // A share or a probability stays one.
            let share = dice.roll(1..=998) as f64 / 1000.0;
            let distance = if !is_whole && value.abs() < 1.0 { share - value.abs() } else { dice.roll(NEAR) as f64 };
            let further = (0..MAX_STEPS).map(|steps| value + (distance + f64::from(steps) * step) * value.signum());
            let others = [value - distance, low + share * (high - low), value + step, value - step];
            let is_other = |other: &f64| (low..=high).contains(other) && *other != value;
            let possible = further.chain(others).map(nearest).filter(is_other);
            let unused = possible.clone().find(|other| !used.contains(&other.to_bits()));
            let other = unused.or_else(|| possible.clone().next())?;
            used.insert(other.to_bits());
            other
        }
    };
    match is_whole {
        true => (other.abs() <= MAX_SAFE).then(|| Number::from(other as i64)),
        false => Number::from_f64(other),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_text_keeps_its_form() {
        for (text, form) in [
            ("title", "^[a-z]{10}$"),
            ("", "^[a-z]{10}$"),
            ("Fix the build (#17)", r"^[A-Z][a-z]{2} [a-z]{3} [a-z]{5} \(#0\d\)$"),
            ("42", r"^0\d$"),
            ("2026-12-31", r"^\d{4}-0[1-9]-0[1-9]$"),
            ("2026-12-31T23:59:59.123Z", r"^\d{4}-0[1-9]-0[1-9]T0\d:0\d:0\d\.\d{3}Z$"),
            ("6f1c9a2e-3b4d-4c5e-8f70-123456789abc", "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"),
            ("/tmp/a.txt", r"^/[a-z]{3}/[a-z]{7}\.txt$"),
            ("https://example.com/a%2Fb?c=1", r"^https://[a-z]{7}\.[a-z]{3}/[a-z]%\dF[a-z]\?[a-z]=\d$"),
            ("ada@example.com", r"^[a-z]{3}@[a-z]{7}\.com$"),
            ("see https://example.com", r"^[a-z]{3} [a-z]{5}://[a-z]{7}\.com$"),
            ("\u{e9}\u{1f600}", "^[a-z]{10}\u{e9}\u{1f600}$"),
        ] {
            for seed in 0..50 {
                let other = other_text(text, Alternate::Near, usize::MAX, seed);
                assert!(other != text && regex::Regex::new(form).unwrap().is_match(&other), "{text}: {other}");
            }
        }
        assert_eq!(other_text("title", Alternate::More, usize::MAX, 1).len(), 41);
        assert_eq!(other_text("title", Alternate::More, 8, 1).len(), 8);
    }

    #[test]
    fn a_number_stays_within_its_bounds() {
        for (schema, value, near) in [
            (json!({}), json!(1), 11.0..=98.0),
            (json!({}), json!(-5), -102.0..=-15.0),
            (json!({}), json!(0.5), 0.0..=1.0),
            (json!({"minimum": 0, "maximum": 3}), json!(1), 0.0..=3.0),
            (json!({"multipleOf": 7, "minimum": 15}), json!(21), 28.0..=126.0),
            (json!({"exclusiveMinimum": 0, "exclusiveMaximum": 0.1}), json!(0.05), 0.001..=0.099),
        ] {
            let hints = Hints::new(&schema, vec![&schema]);
            let compiled = rehearsal_core::matcher::Schema::compile(&schema).unwrap();
            for seed in 0..50 {
                for kind in [Alternate::Near, Alternate::More, Alternate::Less] {
                    let number = value.as_number().unwrap();
                    let other = other_number(number, kind, &hints, seed, &mut HashSet::new()).unwrap();
                    let is_near = || near.contains(&other.as_f64().unwrap()) && other != *number;
                    assert!(kind != Alternate::Near || is_near(), "{schema}: {other}");
                    assert!(
                        other.as_f64().unwrap() <= 2000.0 && other.is_f64() == number.is_f64(),
                        "{schema}: {other}"
                    );
                    assert!(compiled.is_valid(&Value::Number(other.clone())), "{schema}: {other}");
                }
            }
        }
    }
}
