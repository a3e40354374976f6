//! Times as Python's `datetime.isoformat()` writes them, usually without a zone.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::json_tree::JsonTree;

/// Reads a time in Python's form or in a common other one; a time without a zone is UTC.
pub(super) fn read(tree: &JsonTree) -> Option<Timestamp> {
    if tree.is_object() {
        return ["value", "isoformat", "iso"].iter().find_map(|key| tree.get(key)).and_then(read);
    }
    let text = tree.text();
    let text = match &text {
        Some(text) => text.trim(),
        None => return since_1970(tree.number()?),
    };
    let civil = || -> Option<Timestamp> {
        let civil: DateTime = text.parse().ok()?;
        Some(civil.to_zoned(TimeZone::UTC).ok()?.timestamp())
    };
    let mail = || Some(jiff::fmt::rfc2822::parse(text).ok()?.timestamp());
    text.parse().ok().or_else(civil).or_else(mail).or_else(|| since_1970(text.parse().ok()?))
}

/// Seconds since 1970, or a smaller unit if the number is too great for seconds.
fn since_1970(number: f64) -> Option<Timestamp> {
    if !number.is_finite() {
        return None;
    }
    let micros = match number.abs() {
        ..1e11 => number * 1e6,
        1e11..1e14 => number * 1e3,
        1e14..1e17 => number,
        _ => number / 1e3,
    };
    // A double has no more precision.
    Timestamp::from_microsecond(micros.round() as i64).ok()
}

/// Writes a time as `datetime.utcnow().isoformat()` does: `2025-10-30T10:30:45.123456`.
pub(super) fn write(time: Timestamp) -> JsonTree {
    let civil = time.to_zoned(TimeZone::UTC).datetime();
    let micros = civil.subsec_nanosecond() / 1000;
    let whole = civil.strftime("%Y-%m-%dT%H:%M:%S");
    JsonTree::string(&if micros == 0 { whole.to_string() } else { format!("{whole}.{micros:06}") })
}

/// Converts the times of a session to durations since its start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PythonClock {
    /// When the session started, if the file has it.
    pub(super) started: Option<Timestamp>,
    /// The first time in the session; used if the file has no start.
    first: Option<Timestamp>,
    last: Duration,
}

impl PythonClock {
    pub(super) fn new(started: Option<Timestamp>) -> PythonClock {
        PythonClock { started, ..PythonClock::default() }
    }

    /// The time since the start; without a time, that of the previous event.
    pub(super) fn at(&mut self, time: Option<&JsonTree>) -> Duration {
        if let Some(time) = time.and_then(read) {
            let origin = *self.started.as_ref().unwrap_or(self.first.get_or_insert(time));
            self.last = Duration::try_from(time.duration_since(origin)).unwrap_or(self.last);
        }
        self.last
    }
}

/// A number of milliseconds as a time span.
pub(super) fn milliseconds(number: f64) -> Duration {
    Duration::try_from_secs_f64(number / 1e3).unwrap_or_default()
}

/// A time span as milliseconds, to the microsecond.
pub(super) fn in_milliseconds(span: Duration) -> JsonTree {
    let micros = span.as_micros();
    let text = format!("{}.{:03}", micros / 1000, micros % 1000);
    JsonTree::Leaf(text.trim_end_matches('0').trim_end_matches('.').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_without_a_zone_is_read_and_written_back() {
        for text in ["2025-10-30T10:30:45.123456", "2025-10-30T10:30:45"] {
            assert_eq!(write(read(&JsonTree::string(text)).unwrap()), JsonTree::string(text));
        }
        let same = read(&JsonTree::string("2025-10-30T10:30:45.5")).unwrap();
        for text in [
            "2025-10-30T10:30:45.500000+00:00",
            "2025-10-30T11:30:45.5+01:00",
            "2025-10-30 10:30:45.500",
            "2025-10-30T10:30:45.5Z",
        ] {
            assert_eq!(read(&JsonTree::string(text)), Some(same), "{text}");
        }
        for number in ["1761820245.5", "\"1761820245.5\"", "1761820245500", "1761820245500000", "1761820245500000000"] {
            assert_eq!(read(&JsonTree::Leaf(number.into())), Some(same), "{number}");
        }
        assert_eq!(read(&JsonTree::Leaf("1761820245.1".into())).unwrap().to_string(), "2025-10-30T10:30:45.1Z");
        assert_eq!(read(&JsonTree::known(r#"{"_type":"datetime","value":"2025-10-30T10:30:45.5"}"#)), Some(same));
        let mail = JsonTree::string("Thu, 30 Oct 2025 10:30:45 GMT");
        assert_eq!(read(&mail).unwrap().to_string(), "2025-10-30T10:30:45Z");
        assert_eq!(read(&JsonTree::Leaf("1e300".into())), None);
        for text in ["yesterday", "nan", "NaN", "inf", "-infinity"] {
            assert_eq!(read(&JsonTree::string(text)), None, "{text}");
        }
        assert_eq!(in_milliseconds(Duration::from_micros(111_230)), JsonTree::Leaf("111.23".into()));
        assert_eq!(in_milliseconds(Duration::from_millis(100)), JsonTree::Leaf("100".into()));
    }
}
