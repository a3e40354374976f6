//! The layout of a message: its text around the values of JSON-RPC.
//!
//! ```text
//! {"method":"ping","jsonrpc":"2.0","id":1} ──► id 1, method "ping", layout "method,jsonrpc,id" ──► the same text
//! ```

use std::ops::Range;

use memchr::memchr2;

/// A member of the envelope, in the order that needs no layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EnvelopeMember {
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
}

impl EnvelopeMember {
    /// All of them, in order.
    pub(super) const ALL: [EnvelopeMember; 6] = [
        EnvelopeMember::Jsonrpc,
        EnvelopeMember::Id,
        EnvelopeMember::Method,
        EnvelopeMember::Params,
        EnvelopeMember::Result,
        EnvelopeMember::Error,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            EnvelopeMember::Jsonrpc => "jsonrpc",
            EnvelopeMember::Id => "id",
            EnvelopeMember::Method => "method",
            EnvelopeMember::Params => "params",
            EnvelopeMember::Result => "result",
            EnvelopeMember::Error => "error",
        }
    }

    fn quoted(text: &[u8]) -> Option<EnvelopeMember> {
        match text {
            br#""jsonrpc""# => Some(EnvelopeMember::Jsonrpc),
            br#""id""# => Some(EnvelopeMember::Id),
            br#""method""# => Some(EnvelopeMember::Method),
            br#""params""# => Some(EnvelopeMember::Params),
            br#""result""# => Some(EnvelopeMember::Result),
            br#""error""# => Some(EnvelopeMember::Error),
            _ => None,
        }
    }
}

/// The positions of the members of an envelope.
#[derive(Debug)]
pub(super) struct EnvelopeSpans {
    members: [(EnvelopeMember, usize, usize); 6],
    count: usize,
    /// Whether it has only members of JSON-RPC, and no white space between them.
    plain: bool,
}

impl EnvelopeSpans {
    /// Finds the members of an object that is valid JSON. `payload` is a value whose range is already known, so it is
    /// not scanned again.
    pub(super) fn scan(raw: &[u8], payload: Option<Range<usize>>) -> Option<EnvelopeSpans> {
        let mut envelope = EnvelopeSpans { members: [(EnvelopeMember::Jsonrpc, 0, 0); 6], count: 0, plain: true };
        let mut at = envelope.white(raw, 0);
        if raw.get(at) != Some(&b'{') {
            return None;
        }
        at += 1;
        loop {
            at = envelope.white(raw, at);
            let key_end = string_end(raw, at)?;
            let key = EnvelopeMember::quoted(&raw[at..key_end]);
            at = envelope.white(raw, key_end);
            if raw.get(at) != Some(&b':') {
                return None;
            }
            let value = envelope.white(raw, at + 1);
            let end = match &payload {
                Some(payload) if payload.start == value => payload.end,
                Some(_) | None => value_end(raw, value)?,
            };
            match key {
                Some(key) => {
                    *envelope.members.get_mut(envelope.count)? = (key, value, end);
                    envelope.count += 1;
                }
                None => envelope.plain = false,
            }
            at = envelope.white(raw, end);
            match raw.get(at)? {
                b',' => at += 1,
                b'}' => break,
                _ => return None,
            }
        }
        (envelope.white(raw, at + 1) == raw.len()).then_some(envelope)
    }

    fn white(&mut self, raw: &[u8], from: usize) -> usize {
        let at = skip_white(raw, from);
        self.plain &= at == from;
        at
    }

    /// The members in the order of the text.
    pub(super) fn members(&self) -> impl Iterator<Item = (EnvelopeMember, Range<usize>)> {
        self.members[..self.count].iter().map(|&(key, start, end)| (key, start..end))
    }

    /// How the text differs from the usual one: `None` if it does not, otherwise a list of keys, or the whole text with
    /// a `#` in place of each value.
    pub(super) fn layout(&self, raw: &[u8]) -> Option<String> {
        let members = &self.members[..self.count];
        if self.plain && members.is_sorted_by(|left, right| left.0 < right.0) {
            return None;
        }
        let mut layout = String::with_capacity(64);
        if self.plain {
            for (key, ..) in members {
                if !layout.is_empty() {
                    layout.push(',');
                }
                layout.push_str(key.name());
            }
            return Some(layout);
        }
        let mut from = 0;
        let text = |range: Range<usize>| String::from_utf8_lossy(&raw[range]);
        for (key, value) in self.members().filter(|(key, _)| *key != EnvelopeMember::Jsonrpc) {
            debug_assert!(key != EnvelopeMember::Jsonrpc);
            layout.push_str(&text(from..value.start));
            layout.push('#');
            from = value.end;
        }
        layout.push_str(&text(from..raw.len()));
        Some(layout)
    }
}

/// Inserts the values into a layout. `Err` describes what does not fit.
pub(super) fn fill<'a>(
    layout: Option<&str>,
    value: impl Fn(EnvelopeMember) -> Option<&'a [u8]>,
) -> Result<Vec<u8>, String> {
    let mut raw =
        Vec::with_capacity(64 + EnvelopeMember::ALL.into_iter().filter_map(&value).map(<[u8]>::len).sum::<usize>());
    match layout {
        None => {
            raw.extend_from_slice(br#"{"jsonrpc":"2.0""#);
            for key in &EnvelopeMember::ALL[1..] {
                if let Some(value) = value(*key) {
                    member(&mut raw, *key, value);
                }
            }
            raw.push(b'}');
        }
        Some(template) if template.trim_start().starts_with('{') => {
            let text = template.as_bytes();
            let envelope = EnvelopeSpans::scan(text, None).ok_or("a layout that is no object")?;
            let mut from = 0;
            let mut used = 0;
            for (key, place) in envelope.members().filter(|(_, place)| &text[place.clone()] == b"#") {
                let value = value(key).ok_or_else(|| format!("a layout with `{}`, which is not there", key.name()))?;
                raw.extend_from_slice(&text[from..place.start]);
                raw.extend_from_slice(value);
                from = place.end;
                used += 1;
            }
            raw.extend_from_slice(&text[from..]);
            all_used(used, &value)?;
        }
        Some(order) => {
            let mut used = 0;
            for name in order.split(',') {
                let key = EnvelopeMember::ALL.into_iter().find(|key| key.name() == name);
                let key = key.ok_or_else(|| format!("a layout with the unknown key `{name}`"))?;
                if key == EnvelopeMember::Jsonrpc {
                    member(&mut raw, key, br#""2.0""#);
                    continue;
                }
                let value = value(key).ok_or_else(|| format!("a layout with `{name}`, which is not there"))?;
                member(&mut raw, key, value);
                used += 1;
            }
            all_used(used, &value)?;
            raw[0] = b'{';
            raw.push(b'}');
        }
    }
    Ok(raw)
}

fn all_used<'a>(used: usize, value: impl Fn(EnvelopeMember) -> Option<&'a [u8]>) -> Result<(), String> {
    let there = EnvelopeMember::ALL[1..].iter().filter(|key| value(**key).is_some()).count();
    if used == there { Ok(()) } else { Err(format!("a layout with {used} of {there} values")) }
}

fn member(raw: &mut Vec<u8>, key: EnvelopeMember, value: &[u8]) {
    raw.extend_from_slice(b",\"");
    raw.extend_from_slice(key.name().as_bytes());
    raw.extend_from_slice(b"\":");
    raw.extend_from_slice(value);
}

fn skip_white(raw: &[u8], mut at: usize) -> usize {
    while matches!(raw.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

/// The end of the string that begins at `at`.
fn string_end(raw: &[u8], at: usize) -> Option<usize> {
    if raw.get(at) != Some(&b'"') {
        return None;
    }
    let mut at = at + 1;
    loop {
        at += memchr2(b'"', b'\\', raw.get(at..)?)?;
        if raw[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

/// The end of the value that begins at `at`.
fn value_end(raw: &[u8], at: usize) -> Option<usize> {
    match raw.get(at)? {
        b'"' => string_end(raw, at),
        b'{' | b'[' => {
            let mut depth = 0_usize;
            let mut at = at;
            loop {
                match raw.get(at)? {
                    b'"' => {
                        at = string_end(raw, at)?;
                        continue;
                    }
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => depth -= 1,
                    _ => {}
                }
                at += 1;
                if depth == 0 {
                    return Some(at);
                }
            }
        }
        _ => {
            let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
            let length = raw[at..].iter().position(ends)?;
            (length > 0).then_some(at + length)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the layout of a text, and asserts that the text can be rebuilt from it.
    #[track_caller]
    fn layout(text: &str) -> Option<String> {
        let raw = text.as_bytes();
        let envelope = EnvelopeSpans::scan(raw, None).expect("an object");
        let layout = envelope.layout(raw);
        let value = |wanted: EnvelopeMember| {
            let found = envelope.members().find(|(key, _)| *key == wanted && wanted != EnvelopeMember::Jsonrpc);
            found.map(|(_, range)| &raw[range])
        };
        assert_eq!(fill(layout.as_deref(), value).map(|raw| String::from_utf8(raw).unwrap()), Ok(text.to_owned()));
        layout
    }

    #[test]
    fn a_layout_contains_only_the_unusual() {
        let table = [
            (r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":[1,"}"]}}"#, None),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, None),
            (r#"{"method":"x","jsonrpc":"2.0","id":1}"#, Some("method,jsonrpc,id")),
            (r#"{"result":{"a":"\"}"},"jsonrpc":"2.0","id":"b"}"#, Some("result,jsonrpc,id")),
            (r#"{"jsonrpc": "2.0", "id": 1, "result": {}}"#, Some(r##"{"jsonrpc": "2.0", "id": #, "result": #}"##)),
            (
                "{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"trace\":{\"#\":\"#\"}}\r",
                Some("{\"jsonrpc\":\"2.0\",\"method\":#,\"trace\":{\"#\":\"#\"}}\r"),
            ),
            (r#"{"jsonrpc":"2.0","\u0069d":1,"method":"x"}"#, Some(r##"{"jsonrpc":"2.0","\u0069d":1,"method":#}"##)),
        ];
        for (text, expected) in table {
            assert_eq!(layout(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_layout_that_does_not_fit_its_values_is_refused() {
        let value = |key| (key == EnvelopeMember::Method).then_some(&b"\"x\""[..]);
        for layout in ["method,id", "jsonrpc", "", "nonsense", "{", "{\"id\":#}", r#"{"jsonrpc":"2.0"}"#, "[]"] {
            assert!(fill(Some(layout), value).is_err(), "{layout}");
        }
    }

    #[test]
    fn a_value_with_a_known_position_is_not_scanned() {
        let raw = br#"{"jsonrpc":"2.0","id":1,"result":[[[[,"method":"x"}"#;
        assert!(EnvelopeSpans::scan(raw, None).is_none());
        let envelope = EnvelopeSpans::scan(raw, Some(33..37)).unwrap();
        assert_eq!(envelope.members().map(|(key, _)| key).last(), Some(EnvelopeMember::Method));
    }
}
