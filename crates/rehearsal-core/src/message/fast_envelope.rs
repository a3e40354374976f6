//! Scans the envelope of an ordinary message in one pass over its bytes.
//!
//! ```text
//! {"jsonrpc":"2.0","id":1,"result":{ … skipped … }}
//!            ─────      ─          ───────────────
//! ```
//!
//! The scanner implements the whole grammar of JSON, but returns `None` for anything unusual: a key with escapes, a
//! duplicate key, deep nesting, and invalid JSON. `serde_json` parses those. For other messages both find the same.

use std::ops::Range;

use super::envelope::{Envelope, EnvelopeKey};
use crate::json::{repeat_byte, special_bytes};

/// The envelope of `bytes`, which are JSON if they are UTF-8; `None` if `serde_json` must parse them.
pub(super) fn envelope(bytes: &[u8]) -> Option<(Envelope<'_>, TextEncoding)> {
    let mut scan = EnvelopeScan { bytes, beyond: 0 };
    let mut envelope = Envelope::default();
    let mut at = 0;
    if bytes.starts_with(COMMON_PREFIX) {
        envelope.jsonrpc = Some(&bytes[USUAL_VERSION]);
        at = COMMON_PREFIX.len();
    } else {
        at = scan.byte(scan.space(at), b'{')?;
    }
    at = scan.space(at);
    if scan.peek(at)? == b'}' && envelope.jsonrpc.is_none() {
        at += 1;
    } else {
        loop {
            let start = scan.byte(at, b'"')?;
            at = scan.string(start, Escapes::Stop)?;
            let key = EnvelopeKey::read(&bytes[start..at - 1]);
            let start = scan.colon(at)?;
            at = scan.value(start)?;
            if !envelope.set(key, &bytes[start..at]) {
                return None;
            }
            at = scan.space(at);
            match scan.peek(at)? {
                b',' => at = scan.space(at + 1),
                b'}' => break at += 1,
                _ => return None,
            }
        }
    }
    let letters = if scan.beyond & repeat_byte(0x80) == 0 { TextEncoding::Ascii } else { TextEncoding::Any };
    (scan.space(at) == bytes.len()).then_some((envelope, letters))
}

/// The usual beginning of a message, up to the next key.
const COMMON_PREFIX: &[u8] = br#"{"jsonrpc":"2.0","#;
/// The range of the version in it.
const USUAL_VERSION: Range<usize> = 11..16;

/// Which characters were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextEncoding {
    /// Only ASCII.
    Ascii,
    /// Any bytes inside of strings; they must be checked to be UTF-8.
    Any,
}

/// How a backslash is treated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Escapes {
    Skip,
    Stop,
}

/// The scanner. Each function takes the position where an element begins, and returns the position after it.
struct EnvelopeScan<'a> {
    bytes: &'a [u8],
    /// All bytes of all strings, combined with `|`.
    beyond: u64,
}

impl EnvelopeScan<'_> {
    #[inline(always)]
    fn peek(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    #[inline(always)]
    fn byte(&self, at: usize, byte: u8) -> Option<usize> {
        (self.peek(at)? == byte).then_some(at + 1)
    }

    #[inline(always)]
    fn space(&self, at: usize) -> usize {
        if self.peek(at).is_some_and(|byte| byte > b' ') { at } else { self.much_space(at) }
    }

    #[cold]
    fn much_space(&self, mut at: usize) -> usize {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.peek(at) {
            at += 1;
        }
        at
    }

    #[inline(always)]
    fn colon(&self, at: usize) -> Option<usize> {
        Some(self.space(self.byte(self.space(at), b':')?))
    }

    #[inline(always)]
    fn key(&mut self, at: usize) -> Option<usize> {
        let at = self.byte(at, b'"')?;
        let at = self.string(at, Escapes::Skip)?;
        self.colon(at)
    }

    /// Skips a value of any type.
    fn value(&mut self, mut at: usize) -> Option<usize> {
        let mut inside = Nesting::default();
        loop {
            match self.peek(at)? {
                b'"' => at = self.string(at + 1, Escapes::Skip)?,
                b'{' => {
                    at = self.space(at + 1);
                    if self.peek(at)? == b'}' {
                        at += 1;
                    } else {
                        inside.enter(ContainerKind::Object)?;
                        at = self.key(at)?;
                        continue;
                    }
                }
                b'[' => {
                    at = self.space(at + 1);
                    if self.peek(at)? == b']' {
                        at += 1;
                    } else {
                        inside.enter(ContainerKind::Array)?;
                        continue;
                    }
                }
                b't' => at = self.literal(at, b"true")?,
                b'f' => at = self.literal(at, b"false")?,
                b'n' => at = self.literal(at, b"null")?,
                _ => at = self.number(at)?,
            }
            // A value has ended; the array or object around it may end, too.
            loop {
                let Some(container) = inside.innermost() else { return Some(at) };
                at = self.space(at);
                match (self.peek(at)?, container) {
                    (b',', ContainerKind::Object) => {
                        at = self.key(self.space(at + 1))?;
                        break;
                    }
                    (b',', ContainerKind::Array) => {
                        at = self.space(at + 1);
                        break;
                    }
                    (b'}', ContainerKind::Object) | (b']', ContainerKind::Array) => inside.leave(),
                    _ => return None,
                }
                at += 1;
            }
        }
    }

    /// Skips the rest of a string.
    #[inline(always)]
    fn string(&mut self, mut at: usize, escapes: Escapes) -> Option<usize> {
        loop {
            // Skips characters without a meaning in a string, eight at a time.
            while let Some(chunk) = self.bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
                let chunk = u64::from_le_bytes(*chunk);
                self.beyond |= chunk;
                let special = special_bytes(chunk);
                if special != 0 {
                    at += special.trailing_zeros() as usize / 8;
                    break;
                }
                at += 8;
            }
            match self.peek(at)? {
                b'"' => return Some(at + 1),
                b'\\' if escapes == Escapes::Skip => at = self.escape(at + 1)?,
                ..b' ' | b'\\' => return None,
                letter => {
                    self.beyond |= u64::from(letter);
                    at += 1;
                }
            }
        }
    }

    #[cold]
    fn escape(&self, at: usize) -> Option<usize> {
        match self.peek(at)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(at + 1),
            b'u' => {
                let digits = self.bytes.get(at + 1..at + 5)?;
                digits.iter().all(u8::is_ascii_hexdigit).then_some(at + 5)
            }
            _ => None,
        }
    }

    fn literal(&self, at: usize, word: &[u8]) -> Option<usize> {
        self.bytes[at..].starts_with(word).then_some(at + word.len())
    }

    fn number(&self, mut at: usize) -> Option<usize> {
        at += usize::from(self.peek(at)? == b'-');
        at = if self.peek(at)? == b'0' { at + 1 } else { self.digits(at)? };
        if self.peek(at) == Some(b'.') {
            at = self.digits(at + 1)?;
        }
        if let Some(b'e' | b'E') = self.peek(at) {
            at += 1;
            at += usize::from(matches!(self.peek(at)?, b'+' | b'-'));
            at = self.digits(at)?;
        }
        Some(at)
    }

    fn digits(&self, start: usize) -> Option<usize> {
        let mut at = start;
        while self.peek(at).is_some_and(|byte| byte.is_ascii_digit()) {
            at += 1;
        }
        (at > start).then_some(at)
    }
}

#[derive(Clone, Copy)]
enum ContainerKind {
    Object,
    Array,
}

/// The arrays and objects around the current position, innermost last: one bit each.
#[derive(Default)]
struct Nesting {
    objects: u64,
    depth: u32,
}

impl Nesting {
    #[inline(always)]
    fn enter(&mut self, container: ContainerKind) -> Option<()> {
        self.depth += 1;
        self.objects = self.objects << 1 | u64::from(matches!(container, ContainerKind::Object));
        (self.depth <= u64::BITS).then_some(())
    }

    #[inline(always)]
    fn innermost(&self) -> Option<ContainerKind> {
        let container = if self.objects & 1 == 1 { ContainerKind::Object } else { ContainerKind::Array };
        (self.depth > 0).then_some(container)
    }

    #[inline(always)]
    fn leave(&mut self) {
        self.depth -= 1;
        self.objects >>= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ordinary_messages_are_scanned_without_serde() {
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"a \"b\" \u00e9 é"}],"isError":false}}"#,
            r#" { "jsonrpc" : "2.0" , "id" : "x" , "method" : "tools/call" , "params" : { } , "more" : [ ] } "#,
            r#"{"jsonrpc":"2.0","id":-7,"error":{"code":-32602,"message":"no","data":[1.5e-3,0,true,null,[[]]]}}"#,
            "{}",
        ] {
            let (found, _) = envelope(text.as_bytes()).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(found, serde_json::from_str(text).unwrap(), "{text}");
        }
    }

    #[test]
    fn unusual_messages_are_left_to_serde() {
        let deep = format!(r#"{{"result":{}{}}}"#, "[".repeat(66), "]".repeat(66));
        for text in [
            r#"{"i\u0064":1}"#,
            r#"{"id":1,"id":2}"#,
            r#"{"id":01}"#,
            r#"{"id":1.}"#,
            r#"{"id":1e}"#,
            r#"{"id":-}"#,
            r#"{"id":"\x"}"#,
            r#"{"id":"\u12g4"}"#,
            r#"{"id":tru}"#,
            r#"{"id":[1,]}"#,
            r#"{"id":{"a":1,}}"#,
            r#"{"id":{"a"}}"#,
            r#"{"id":[1}}"#,
            r#"{"id":1,}"#,
            r#"{"id":1} x"#,
            "{\"id\":\"a\tb\"}",
            "{",
            "{\"",
            &deep,
        ] {
            assert_eq!(envelope(text.as_bytes()), None, "{text}");
        }
    }

    fn agree(text: impl AsRef<[u8]>) -> Result<(), TestCaseError> {
        let bytes = text.as_ref();
        if let Some((found, letters)) = envelope(bytes) {
            prop_assert!(letters == TextEncoding::Any || bytes.is_ascii());
            if let Ok(text) = std::str::from_utf8(bytes) {
                let parsed: Result<Envelope<'_>, _> = serde_json::from_str(text);
                prop_assert_eq!(parsed.ok(), Some(found), "{}", text);
            }
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn any_text_is_read_like_serde_reads_it(text: String) {
            agree(&text)?;
            agree(format!("{{{text}}}"))?;
            agree(format!(r#"{{"id":{text}}}"#))?;
            agree(format!(r#"{{"id":"{text}"}}"#))?;
        }

        #[test]
        fn any_bytes_are_read_like_serde_reads_them(bytes: Vec<u8>) {
            agree(&bytes)?;
            agree([br#"{"id":""#, &bytes[..], br#""}"#].concat())?;
        }

        #[test]
        fn any_mixture_is_read_like_serde_reads_it(
            pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..14),
        ) {
            let text = pieces.concat();
            agree(&text)?;
            agree(format!(r#"{{"id":{text}}}"#))?;
            agree(format!(r#"{{"result":[{text}],"id":"12345678{text}"}}"#))?;
        }
    }

    const PIECES: &[&str] = &[
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\\",
        "\\u00",
        "a0",
        "\\\"",
        "\"id\":",
        "\"method\":",
        "\"result\":{",
        "1",
        "0",
        "-",
        ".",
        "e",
        "+",
        "true",
        "false",
        "null",
        " ",
        "\n",
        "\t",
        "\u{1}",
        "\u{7f}",
        "é",
        "\u{1f600}",
        "\"text\"",
        "{}",
    ];
}
