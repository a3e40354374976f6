//! The envelope of an ordinary message in one pass over its bytes.
//!
//! ```text
//! {"jsonrpc":"2.0","id":1,"result":{ … skipped … }}
//!            ─────      ─          ───────────────
//! ```
//!
//! It knows the whole grammar of JSON, but gives up where anything is unusual: a key with escapes, one that stands twice,
//! deep nesting, and all that is not JSON. `serde_json` is the judge of those. What is found here is what it would find.

use super::envelope::{Envelope, Key};

/// The envelope of `text`; `None` where `serde_json` should look at it.
pub(super) fn envelope(text: &str) -> Option<Envelope<'_>> {
    let mut scan = Scan { bytes: text.as_bytes(), at: 0 };
    let mut envelope = Envelope::default();
    scan.space();
    scan.expect(b'{')?;
    scan.space();
    if !scan.eat(b'}') {
        loop {
            let start = scan.at + 1;
            scan.string(Escapes::GiveUp)?;
            let key = Key::read(&scan.bytes[start..scan.at - 1]);
            scan.colon()?;
            let start = scan.at;
            scan.value()?;
            if !envelope.set(key, text.get(start..scan.at)?) {
                return None;
            }
            scan.space();
            match scan.next()? {
                b',' => scan.space(),
                b'}' => break,
                _ => return None,
            }
        }
    }
    scan.space();
    (scan.at == text.len()).then_some(envelope)
}

/// What to do about a backslash.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Escapes {
    Skip,
    GiveUp,
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// The same byte eight times.
const fn eight(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.eat(byte).then_some(())
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn colon(&mut self) -> Option<()> {
        self.space();
        self.expect(b':')?;
        self.space();
        Some(())
    }

    /// Skips a value, however it is made up.
    fn value(&mut self) -> Option<()> {
        let mut inside = Nesting::default();
        loop {
            match self.peek()? {
                b'"' => self.string(Escapes::Skip)?,
                b'{' => {
                    self.at += 1;
                    self.space();
                    if !self.eat(b'}') {
                        inside.enter(Container::Object)?;
                        self.key()?;
                        continue;
                    }
                }
                b'[' => {
                    self.at += 1;
                    self.space();
                    if !self.eat(b']') {
                        inside.enter(Container::Array)?;
                        continue;
                    }
                }
                b't' => self.literal(b"true")?,
                b'f' => self.literal(b"false")?,
                b'n' => self.literal(b"null")?,
                _ => self.number()?,
            }
            // A value has ended, and with it maybe what it stands in.
            loop {
                let Some(container) = inside.innermost() else { return Some(()) };
                self.space();
                match (self.next()?, container) {
                    (b',', Container::Object) => {
                        self.space();
                        self.key()?;
                        break;
                    }
                    (b',', Container::Array) => {
                        self.space();
                        break;
                    }
                    (b'}', Container::Object) | (b']', Container::Array) => inside.leave(),
                    _ => return None,
                }
            }
        }
    }

    fn key(&mut self) -> Option<()> {
        self.string(Escapes::Skip)?;
        self.colon()
    }

    fn string(&mut self, escapes: Escapes) -> Option<()> {
        self.expect(b'"')?;
        loop {
            self.plain();
            match self.next()? {
                b'"' => return Some(()),
                b'\\' if escapes == Escapes::Skip => match self.next()? {
                    b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {}
                    b'u' => {
                        let digits = self.bytes.get(self.at..self.at + 4)?;
                        if !digits.iter().all(u8::is_ascii_hexdigit) {
                            return None;
                        }
                        self.at += 4;
                    }
                    _ => return None,
                },
                _ => return None,
            }
        }
    }

    /// Skips what means nothing inside a string: all but quotes, backslashes and control characters.
    fn plain(&mut self) {
        while let Some(chunk) = self.bytes.get(self.at..self.at + 8) {
            let chunk = u64::from_le_bytes(chunk.try_into().expect("eight bytes"));
            let zero = |bytes: u64| bytes.wrapping_sub(eight(1)) & !bytes;
            let control = chunk.wrapping_sub(eight(b' ')) & !chunk;
            // The lowest bit is right; those above it may be set by a borrow.
            let special = (zero(chunk ^ eight(b'"')) | zero(chunk ^ eight(b'\\')) | control) & eight(0x80);
            if special != 0 {
                self.at += special.trailing_zeros() as usize / 8;
                return;
            }
            self.at += 8;
        }
        while self.peek().is_some_and(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
            self.at += 1;
        }
    }

    fn literal(&mut self, word: &[u8]) -> Option<()> {
        self.bytes[self.at..].starts_with(word).then(|| self.at += word.len())
    }

    fn number(&mut self) -> Option<()> {
        self.eat(b'-');
        if !self.eat(b'0') {
            self.digits()?;
        }
        if self.eat(b'.') {
            self.digits()?;
        }
        if self.eat(b'e') || self.eat(b'E') {
            let _sign = self.eat(b'+') || self.eat(b'-');
            self.digits()?;
        }
        Some(())
    }

    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }
}

#[derive(Clone, Copy)]
enum Container {
    Object,
    Array,
}

/// What we are inside of, innermost last: one bit each.
#[derive(Default)]
struct Nesting {
    objects: u64,
    depth: u32,
}

impl Nesting {
    fn enter(&mut self, container: Container) -> Option<()> {
        self.depth += 1;
        self.objects = self.objects << 1 | u64::from(matches!(container, Container::Object));
        (self.depth <= u64::BITS).then_some(())
    }

    fn innermost(&self) -> Option<Container> {
        let container = if self.objects & 1 == 1 { Container::Object } else { Container::Array };
        (self.depth > 0).then_some(container)
    }

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
    fn ordinary_messages_need_no_judge() {
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"a \"b\" \u00e9 é"}],"isError":false}}"#,
            r#" { "jsonrpc" : "2.0" , "id" : "x" , "method" : "tools/call" , "params" : { } , "more" : [ ] } "#,
            r#"{"jsonrpc":"2.0","id":-7,"error":{"code":-32602,"message":"no","data":[1.5e-3,0,true,null,[[]]]}}"#,
            "{}",
        ] {
            let found = envelope(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(found, serde_json::from_str(text).unwrap(), "{text}");
        }
    }

    #[test]
    fn the_unusual_is_left_to_the_judge() {
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
            assert_eq!(envelope(text), None, "{text}");
        }
    }

    fn agree(text: &str) -> Result<(), TestCaseError> {
        if let Some(found) = envelope(text) {
            let judged: Result<Envelope<'_>, _> = serde_json::from_str(text);
            prop_assert_eq!(judged.ok(), Some(found), "{}", text);
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn whatever_is_found_in_any_text_is_what_the_judge_finds(text: String) {
            agree(&text)?;
            agree(&format!("{{{text}}}"))?;
            agree(&format!(r#"{{"id":{text}}}"#))?;
            agree(&format!(r#"{{"id":"{text}"}}"#))?;
        }

        #[test]
        fn whatever_is_found_in_any_mixture_is_what_the_judge_finds(
            pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..14),
        ) {
            let text = pieces.concat();
            agree(&text)?;
            agree(&format!(r#"{{"id":{text}}}"#))?;
            agree(&format!(r#"{{"result":[{text}],"id":"12345678{text}"}}"#))?;
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
