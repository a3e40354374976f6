//! JSON strings: unescapes them with the position of each byte, and finds their end.

/// The unescaped text of a JSON string.
pub(crate) struct Unescaped {
    pub(crate) text: String,
    /// For each byte of the text, and for its end, the position in the escaped form.
    places: Vec<usize>,
}

impl Unescaped {
    /// Unescapes the text between the quotes. Never fails: an invalid escape is kept as text.
    pub(crate) fn new(escaped: &str) -> Unescaped {
        let mut unescaped =
            Unescaped { text: String::with_capacity(escaped.len()), places: Vec::with_capacity(escaped.len() + 1) };
        let mut at = 0;
        while let Some(first) = escaped[at..].chars().next() {
            let (character, length) = match first {
                '\\' => escape(&escaped[at..]).unwrap_or((first, 1)),
                _ => (first, first.len_utf8()),
            };
            unescaped.text.push(character);
            unescaped.places.extend(std::iter::repeat_n(at, character.len_utf8()));
            at += length;
        }
        unescaped.places.push(escaped.len());
        unescaped
    }

    /// The position in the escaped form of a byte of the text, or of its end.
    pub(crate) fn place(&self, at: usize) -> usize {
        self.places[at]
    }
}

/// The character of an escape, and the length of the escape in bytes.
fn escape(text: &str) -> Option<(char, usize)> {
    let simple = match text.as_bytes().get(1)? {
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return unicode(text),
        _ => return None,
    };
    Some((simple, 2))
}

fn unicode(text: &str) -> Option<(char, usize)> {
    let unit = |at: usize| -> Option<u32> {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        let hexadecimal = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        u32::from_str_radix(digits, 16).ok().filter(|_| hexadecimal)
    };
    let first = unit(0)?;
    if let Some(character) = char::from_u32(first) {
        return Some((character, 6));
    }
    let pair = unit(6).filter(|second| (0xd800..0xdc00).contains(&first) && (0xdc00..0xe000).contains(second));
    let joined = pair.and_then(|second| char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)));
    // A lone surrogate is no character; it becomes U+FFFD and keeps its position.
    Some(joined.map_or((char::REPLACEMENT_CHARACTER, 6), |character| (character, 12)))
}

/// Repeats a byte eight times.
pub(crate) const fn repeat_byte(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// The bytes of a word with a meaning inside a string: a quote, a backslash, a control character. Each has its highest
/// bit set. The lowest set bit is correct; those above it may be set by a borrow.
#[inline(always)]
pub(crate) const fn special_bytes(word: u64) -> u64 {
    (zero(word ^ repeat_byte(b'"')) | zero(word ^ repeat_byte(b'\\')) | word.wrapping_sub(repeat_byte(b' ')) & !word)
        & repeat_byte(0x80)
}

#[inline(always)]
const fn zero(bytes: u64) -> u64 {
    bytes.wrapping_sub(repeat_byte(1)) & !bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_decoded_byte_has_its_offset_in_the_escaped_text() {
        let unescaped = Unescaped::new(r#"a\"\u00e9\ud83d\ude00\ud800z\x"#);
        assert_eq!(unescaped.text, "a\"é😀\u{fffd}z\\x");
        assert_eq!(unescaped.place(1), 1);
        assert_eq!(unescaped.place(2), 3);
        assert_eq!(unescaped.place(4), 9);
        assert_eq!(unescaped.place(unescaped.text.len()), 30);
    }

    proptest! {
        #[test]
        fn serialized_strings_are_decoded_to_the_same_text(text: String) {
            let json = serde_json::Value::from(text.as_str()).to_string();
            let unescaped = Unescaped::new(&json[1..json.len() - 1]);
            prop_assert_eq!(unescaped.text, text);
        }

        #[test]
        fn no_input_panics(text in r#"[\\u0-9a-fD"é]{0,20}"#) {
            let unescaped = Unescaped::new(&text);
            prop_assert_eq!(unescaped.place(unescaped.text.len()), text.len());
        }
    }
}
