//! Small pieces of JSON, written without a detour.

use std::time::Duration;

use crate::json::special;

/// A number.
pub(super) fn put_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// A string.
pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    // Nearly every text can be written as it is.
    match is_plain(text.as_bytes()) {
        true => put_plain(out, text),
        false => put_value(out, text),
    }
}

/// A string in which nothing needs an escape.
pub(super) fn put_plain(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

/// Whether nothing in a text needs an escape; eight bytes are looked at together.
pub(super) fn is_plain(text: &[u8]) -> bool {
    let (words, rest) = text.as_chunks::<8>();
    let mut last = [b' '; 8];
    last[..rest.len()].copy_from_slice(rest);
    words.iter().chain([&last]).all(|word| special(u64::from_ne_bytes(*word)) == 0)
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

/// Reads milliseconds; what is finer than a microsecond is dropped, and what 64 bits of them cannot hold is none.
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
    // Others may write 1.5e3.
    let rounded = || {
        let micros = text.parse::<f64>().ok()? * 1e3;
        (0.0..u64::MAX as f64).contains(&micros).then_some(micros as u64)
    };
    exact().or_else(rounded).map(Duration::from_micros)
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
            ("1.00004e1", Some(10_000)),
            ("18446744073709551.615", Some(u64::MAX)),
            ("122222222222222223", None),
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
        fn texts_are_written_as_everybody_does(text in "[ -~\"\\\\\\x00-\\x1fé😀]{0,40}") {
            let mut out = Vec::new();
            put_text(&mut out, &text);
            prop_assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string(&text).unwrap());
        }

        #[test]
        fn numbers_are_written_as_everybody_does(number: u64) {
            let mut out = Vec::new();
            put_number(&mut out, number);
            prop_assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
        }
    }
}
