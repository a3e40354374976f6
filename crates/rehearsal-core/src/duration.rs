//! Durations as users write them.

use std::time::Duration;

/// The longest accepted duration: one year.
const LONGEST: Duration = Duration::from_secs(60 * 60 * 24 * 365);

/// Parses `30`, `0.5`, `500ms`, `30s`, `2m` or `1h`; a number without a unit is in seconds.
pub fn read(text: &str) -> Result<Duration, String> {
    let wrong = || "write seconds such as 30 or 0.5, or a number with ms, s, m or h".to_owned();
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let seconds = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let number: f64 = number.trim().parse().map_err(|_| wrong())?;
    let duration = Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())?;
    if duration.is_zero() || duration > LONGEST {
        return Err("it must be longer than nothing and no longer than a year".to_owned());
    }
    Ok(duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_without_a_unit_is_seconds() {
        let table = [("30", 30_000), ("0.5", 500), ("2m", 120_000), ("1h", 3_600_000), ("250ms", 250), ("1.5 s", 1500)];
        for (text, milliseconds) in table {
            assert_eq!(read(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
    }

    #[test]
    fn an_invalid_duration_is_refused() {
        for text in ["", "soon", "-1", "5 days", "0", "1e300", "inf", "nan", "9000h"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
