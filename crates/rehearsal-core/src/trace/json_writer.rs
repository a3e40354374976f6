//! Writes messages as members of a line, `"id":1,"method":"ping"`, copied from the message, and rebuilds them when they
//! are read. It also writes the small pieces of JSON around them.

use std::ops::Range;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use memchr::memchr2;

use super::fields::Fields;
use super::message_layout::{EnvelopeMember, EnvelopeSpans, fill};
use crate::json::special_bytes;
use crate::message::{Body, GarbledReason, Message, Reply, Truncation};

/// Writes a message as members, each after a comma. An id that is equal to `known_id` is left out.
///
/// Values are copied and not parsed again. White space that would end the line is written as a space, and `lf` and `cr`
/// hold its positions.
pub(super) fn write_message(out: &mut Vec<u8>, message: &Message, known_id: Option<&[u8]>) {
    let raw = message.raw();
    match message.body() {
        Body::Request(_) | Body::Notification(_) | Body::Response(_) => {
            match EnvelopeSpans::scan(raw, payload(message)) {
                Some(envelope) => put_envelope(out, raw, &envelope, known_id),
                None => put_whole(out, raw),
            };
        }
        Body::Batch(_) if raw.starts_with(b"[") && raw.ends_with(b"]") => {
            out.extend_from_slice(b",\"batch\":");
            put_payload(out, raw);
        }
        Body::Batch(_) => put_whole(out, raw),
        Body::Garbled(garbled) => {
            out.extend_from_slice(b",\"reason\":");
            write_string(out, &garbled.to_string());
            match garbled.reason.truncation() {
                Some(Truncation::PartialLine) => out.extend_from_slice(b",\"half_line\":true"),
                Some(Truncation::TooLong { limit }) => {
                    out.extend_from_slice(b",\"limit\":");
                    write_number(out, limit as u64);
                }
                None => {}
            }
            put_whole(out, raw);
        }
    }
}

/// The text of a message's id.
pub(super) fn id_text(message: &Message) -> Option<&[u8]> {
    let envelope = EnvelopeSpans::scan(message.raw(), payload(message))?;
    let (_, range) = envelope.members().find(|(key, _)| *key == EnvelopeMember::Id)?;
    Some(&message.raw()[range])
}

/// The range of the value that may be large.
fn payload(message: &Message) -> Option<Range<usize>> {
    let value = match message.body() {
        Body::Request(request) => request.params.as_ref()?,
        Body::Notification(notification) => notification.params.as_ref()?,
        Body::Response(response) => match &response.reply {
            Reply::Result(result) => result,
            Reply::Error(_) => return None,
        },
        Body::Batch(_) | Body::Garbled(_) => return None,
    };
    let (raw, value) = (message.raw().as_ptr_range(), value.bytes().as_ptr_range());
    // A message that we wrote ourselves may hold a value of another.
    let inside = raw.start <= value.start && value.end <= raw.end;
    inside.then(|| value.start as usize - raw.start as usize..value.end as usize - raw.start as usize)
}

fn put_envelope(out: &mut Vec<u8>, raw: &[u8], envelope: &EnvelopeSpans, known_id: Option<&[u8]>) {
    for (key, range) in envelope.members() {
        let value = &raw[range];
        match key {
            EnvelopeMember::Jsonrpc => {}
            EnvelopeMember::Id if known_id == Some(value) => {}
            EnvelopeMember::Id | EnvelopeMember::Method => {
                put_name(out, key.name());
                out.extend_from_slice(value);
            }
            EnvelopeMember::Params | EnvelopeMember::Result | EnvelopeMember::Error => {
                put_name(out, key.name());
                put_payload(out, value);
            }
        }
    }
    if let Some(layout) = envelope.layout(raw) {
        put_name(out, "layout");
        write_string(out, &layout);
    }
}

fn put_name(out: &mut Vec<u8>, name: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

/// Copies a value, on one line.
fn put_payload(out: &mut Vec<u8>, value: &[u8]) {
    let start = out.len();
    out.extend_from_slice(value);
    if memchr2(b'\n', b'\r', value).is_none() {
        return;
    }
    for byte in &mut out[start..] {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    for (name, wanted) in [("lf", b'\n'), ("cr", b'\r')] {
        let mut places = memchr::memchr_iter(wanted, value).peekable();
        if places.peek().is_none() {
            continue;
        }
        put_name(out, name);
        let mut before = 0;
        let mut separator = b'[';
        for place in places {
            out.push(separator);
            write_number(out, (place - before) as u64);
            (before, separator) = (place, b',');
        }
        out.push(b']');
    }
}

/// Writes the whole message as a string.
pub(super) fn put_whole(out: &mut Vec<u8>, raw: &[u8]) {
    match std::str::from_utf8(raw) {
        Ok(text) => {
            put_name(out, "text");
            write_string(out, text);
        }
        Err(_) => {
            put_name(out, "base64");
            out.push(b'"');
            let start = out.len();
            out.resize(start + raw.len().div_ceil(3) * 4, 0);
            STANDARD.encode_slice(raw, &mut out[start..]).expect("room for four characters for each three bytes");
            out.push(b'"');
        }
    }
}

/// The message of the members of a line; `known_id` is its id if the line has none. `Err` describes what is wrong.
pub(super) fn message(fields: &Fields<'_>, known_id: Option<&[u8]>) -> Result<Message, String> {
    let raw = match (whole(fields)?, fields.batch) {
        (Some(raw), None) => raw,
        (None, Some(batch)) => broken_up(batch.get(), fields)?,
        (Some(_), Some(_)) => return Err("`text`, `base64` or `batch`, not two of them".to_owned()),
        (None, None) => {
            let payload = fields.params.or(fields.result).or(fields.error);
            let payload = payload.map(|payload| broken_up(payload.get(), fields)).transpose()?;
            let id = fields.id.map(|id| id.get().as_bytes()).or(known_id);
            fill(fields.layout.as_deref(), |key| match key {
                EnvelopeMember::Jsonrpc => None,
                EnvelopeMember::Id => id,
                EnvelopeMember::Method => fields.method.map(|method| method.get().as_bytes()),
                EnvelopeMember::Params => fields.params.and(payload.as_deref()),
                EnvelopeMember::Result => fields.result.and(payload.as_deref()),
                EnvelopeMember::Error => fields.error.and(payload.as_deref()),
            })?
        }
    };
    match (fields.half_line, fields.limit) {
        (Some(true), _) => Ok(Message::garbled(raw, GarbledReason::PartialLine)),
        (_, Some(limit)) => Ok(Message::garbled(raw, GarbledReason::TooLong { limit })),
        (Some(false) | None, None) => Ok(Message::parse(raw)),
    }
}

/// The bytes of a message that was written as a string.
pub(super) fn whole(fields: &Fields<'_>) -> Result<Option<Vec<u8>>, String> {
    match (&fields.text, &fields.base64) {
        (None, None) => Ok(None),
        (Some(text), None) => Ok(Some(text.clone().into_bytes())),
        (None, Some(base64)) => {
            let bytes = STANDARD.decode(base64.as_bytes());
            bytes.map(Some).map_err(|error| format!("base64 in `base64`, but: {error}"))
        }
        (Some(_), Some(_)) => Err("`text` or `base64`, not both".to_owned()),
    }
}

/// A value with its line breaks restored.
fn broken_up(text: &str, fields: &Fields<'_>) -> Result<Vec<u8>, String> {
    let mut value = text.as_bytes().to_vec();
    for (name, byte, places) in [("lf", b'\n', &fields.lf), ("cr", b'\r', &fields.cr)] {
        let mut at = 0_usize;
        for place in places.iter().flatten() {
            at = at.saturating_add(*place);
            match value.get_mut(at) {
                Some(space @ b' ') => *space = byte,
                Some(_) | None => return Err(format!("a space at byte {at} of the value, as `{name}` says")),
            }
        }
    }
    Ok(value)
}

/// Writes a number.
pub(super) fn write_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Writes a string.
pub(super) fn write_string(out: &mut Vec<u8>, text: &str) {
    // Nearly every text needs no escapes.
    match is_plain(text.as_bytes()) {
        true => write_plain_string(out, text),
        false => write_value(out, text),
    }
}

/// Writes a string in which nothing needs an escape.
pub(super) fn write_plain_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

/// Whether nothing in a text needs an escape. Eight bytes are checked at a time.
pub(super) fn is_plain(text: &[u8]) -> bool {
    let (words, rest) = text.as_chunks::<8>();
    let mut last = [b' '; 8];
    last[..rest.len()].copy_from_slice(rest);
    words.iter().chain([&last]).all(|word| special_bytes(u64::from_ne_bytes(*word)) == 0)
}

/// Writes a value that serde can always write.
pub(super) fn write_value(out: &mut Vec<u8>, value: &(impl serde::Serialize + ?Sized)) {
    serde_json::to_writer(out, value).expect("strings, numbers and maps of values can always be written");
}

/// Writes milliseconds, exact to the microsecond: `1532.25`.
pub(super) fn write_milliseconds(out: &mut Vec<u8>, duration: Duration) {
    let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    write_number(out, micros / 1000);
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

/// Parses milliseconds; digits beyond a microsecond are dropped. `None` if 64 bits cannot hold the number.
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
    // Other programs may write 1.5e3.
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
    fn milliseconds_are_read_in_every_usual_form() {
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
            write_milliseconds(&mut out, Duration::from_micros(micros));
            let text = String::from_utf8(out).unwrap();
            prop_assert_eq!(milliseconds(&text), Some(Duration::from_micros(micros)));
        }

        #[test]
        fn strings_are_written_like_serde_json(text in "[ -~\"\\\\\\x00-\\x1fé😀]{0,40}") {
            let mut out = Vec::new();
            write_string(&mut out, &text);
            prop_assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string(&text).unwrap());
        }

        #[test]
        fn numbers_are_written_like_serde_json(number: u64) {
            let mut out = Vec::new();
            write_number(&mut out, number);
            prop_assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
        }
    }
}
