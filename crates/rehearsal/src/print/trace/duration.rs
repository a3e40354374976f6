//! How long something took.

use std::time::Duration;

/// A duration with three digits or so: `842 µs`, `12.1 ms`, `1.28 s`, `2 min 5 s`.
pub(crate) fn took(duration: Duration) -> String {
    let micros = duration.as_micros();
    let seconds = duration.as_secs();
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..999_950 => digits(duration.as_secs_f64() * 1e3, "ms"),
        999_950..59_999_500 => digits(duration.as_secs_f64(), "s"),
        _ if seconds < 3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

fn digits(number: f64, unit: &str) -> String {
    let decimals = if number < 9.995 { 2 } else { usize::from(number < 99.95) };
    format!("{number:.decimals$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_the_unit_that_suits_it() {
        let table = [
            (0, "0 µs"),
            (842, "842 µs"),
            (1_000, "1.00 ms"),
            (12_120, "12.1 ms"),
            (345_600, "346 ms"),
            (999_949, "1000 ms"),
            (999_950, "1.00 s"),
            (1_280_000, "1.28 s"),
            (59_999_499, "60.0 s"),
            (125_000_000, "2 min 5 s"),
            (7_380_000_000, "2 h 3 min"),
        ];
        for (micros, expected) in table {
            assert_eq!(took(Duration::from_micros(micros)), expected);
        }
    }
}
