//! Small pieces of JSON, written without a detour.

use std::time::Duration;

/// A number.
pub(super) fn put_number(out: &mut Vec<u8>, number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = number;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// A string.
pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    put_value(out, text);
}

/// Anything that serde can always write.
pub(super) fn put_value(out: &mut Vec<u8>, value: &(impl serde::Serialize + ?Sized)) {
    serde_json::to_writer(out, value).expect("strings, numbers and maps of values can always be written");
}

/// Milliseconds, exact to the microsecond: `1532.25`.
pub(super) fn put_milliseconds(out: &mut Vec<u8>, duration: Duration) {
    let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    put_number(out, micros / 1000);
    let rest = (micros % 1000) as u32;
    if rest > 0 {
        let digits = [b'.', b'0' + (rest / 100) as u8, b'0' + (rest / 10 % 10) as u8, b'0' + (rest % 10) as u8];
        let length = if rest.is_multiple_of(100) {
            2
        } else if rest.is_multiple_of(10) {
            3
        } else {
            4
        };
        out.extend_from_slice(&digits[..length]);
    }
}

/// Reads milliseconds; what is beyond a microsecond is dropped.
pub(super) fn milliseconds(text: &str) -> Option<Duration> {
    let exact = || {
        let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let sound = digits(whole) && (rest.is_empty() && !text.contains('.') || digits(rest));
        let whole: u64 = whole.parse().ok().filter(|_| sound)?;
        let micros = rest.bytes().chain(std::iter::repeat(b'0')).take(3);
        let micros = micros.fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
        whole.checked_mul(1000)?.checked_add(micros)
    };
    match exact() {
        Some(micros) => Some(Duration::from_micros(micros)),
        // Others may write 1.5e3.
        None => Duration::try_from_secs_f64(text.parse::<f64>().ok()? / 1000.0).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn milliseconds_are_read_as_people_and_programs_write_them() {
        let table = [
            ("0", Some(0)),
            ("1.5", Some(1500)),
            ("1532.250", Some(1_532_250)),
            ("0.0019", Some(1)),
            ("1e3", Some(1_000_000)),
            ("-1", None),
            ("null", None),
            ("1e400", None),
        ];
        for (text, micros) in table {
            assert_eq!(milliseconds(text), micros.map(Duration::from_micros), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_microsecond_survives(micros in 0..u64::MAX / 1000) {
            let mut out = Vec::new();
            put_milliseconds(&mut out, Duration::from_micros(micros));
            let text = String::from_utf8(out).unwrap();
            prop_assert_eq!(milliseconds(&text), Some(Duration::from_micros(micros)));
        }

        #[test]
        fn numbers_are_written_as_everybody_does(number: u64) {
            let mut out = Vec::new();
            put_number(&mut out, number);
            prop_assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
        }
    }
}
