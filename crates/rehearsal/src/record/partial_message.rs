//! The recorded part of a partial message.

use bytes::Bytes;

/// Maximum number of bytes of a partial message that are recorded if they are redacted.
const PARTIAL_LIMIT: usize = 64 * 1024;

/// Which part of a partial message is recorded when it is forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartialPolicy {
    /// Every byte.
    Raw,
    /// Up to the last whole value: a partial secret is not recognized as one.
    Redacted,
}

/// How much of a partial message is recorded already.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KeptPrefix {
    /// The number of bytes that had arrived.
    length: usize,
    /// The number of these that were whole values.
    whole: usize,
}

impl KeptPrefix {
    /// The next part to record of a message that has `length` bytes so far, with its offset. `some` returns the bytes
    /// from an offset, at most the given number.
    pub(super) fn piece(
        &mut self,
        pieces: PartialPolicy,
        length: usize,
        some: impl Fn(usize, usize) -> Bytes,
    ) -> Option<(usize, Bytes)> {
        let offset = std::mem::replace(&mut self.length, length);
        match pieces {
            _ if length <= offset => None,
            PartialPolicy::Raw => Some((offset, some(offset, length - offset))),
            PartialPolicy::Redacted if offset >= PARTIAL_LIMIT => None,
            PartialPolicy::Redacted => {
                let head = some(0, PARTIAL_LIMIT);
                let end = complete_length(&head);
                let more = end > self.whole;
                self.whole = self.whole.max(end);
                more.then(|| (0, close_open_values(&head[..end]).into()))
            }
        }
    }
}

/// The length of a message up to the last value that has ended. Text that is not JSON is whole up to its last white
/// space.
fn complete_length(partial: &[u8]) -> usize {
    match is_json(partial) {
        true => scan(partial).end,
        false => partial.iter().rposition(u8::is_ascii_whitespace).unwrap_or_default(),
    }
}

/// Closes the objects and arrays that are open at the end of the whole part of a message.
///
/// ```text
/// {"method":"x","params":{"a":1,"password":"hun   ──►   {"method":"x","params":{"a":1}}
/// ```
fn close_open_values(whole: &[u8]) -> Vec<u8> {
    let open = if is_json(whole) { scan(whole).open } else { Vec::new() };
    whole.iter().copied().chain(open.into_iter().rev()).collect()
}

fn is_json(text: &[u8]) -> bool {
    matches!(text.iter().find(|byte| !byte.is_ascii_whitespace()), Some(b'{' | b'['))
}

struct Scanned {
    /// The end of the last value that has ended.
    end: usize,
    /// The closing brackets of all open objects and arrays, outermost first.
    open: Vec<u8>,
}

fn scan(text: &[u8]) -> Scanned {
    let mut scanned = Scanned { end: 0, open: Vec::new() };
    let (mut in_string, mut escaped) = (false, false);
    for (at, byte) in text.iter().enumerate() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' => {
                scanned.open.push(b'}');
                scanned.end = at + 1;
            }
            b'[' => {
                scanned.open.push(b']');
                scanned.end = at + 1;
            }
            b'}' | b']' => {
                scanned.open.pop();
                scanned.end = at + 1;
            }
            b',' => scanned.end = at,
            _ => {}
        }
    }
    scanned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_value_is_dropped_and_open_objects_are_closed() {
        let table = [
            (r#"{"a":1,"b":"sec"#, r#"{"a":1}"#),
            (r#"{"a":1,"b":"sec","#, r#"{"a":1,"b":"sec"}"#),
            (r#"{"a":{"token":"x"#, r#"{"a":{}}"#),
            (r#"{"a":[1,2,{"b":"\"},{","c":[3"#, r#"{"a":[1,2,{"b":"\"},{","c":[]}]}"#),
            (r#"{"a":[1,2]"#, r#"{"a":[1,2]}"#),
            (r#"[{"a":1},{"b""#, r#"[{"a":1},{}]"#),
            ("Bearer abc", "Bearer"),
            ("abc", ""),
            ("", ""),
        ];
        for (partial, expected) in table {
            let partial = partial.as_bytes();
            let found = close_open_values(&partial[..complete_length(partial)]);
            assert_eq!(String::from_utf8_lossy(&found), expected);
            if expected.starts_with('{') {
                serde_json::from_slice::<serde_json::Value>(&found).unwrap();
            }
        }
    }
}
