//! Numbers that a [`Value`] cannot hold, kept in it by their digits.
//!
//! `serde_json` reads `12345678901234567890123` as the float nearest to it, and refuses `1e400`, as it does letters that are
//! cut in two. Whoever passes on what
//! others have said, or tells one request from another, must not change it. Here such a number is a string that begins
//! with a character which Unicode keeps for the inside of programs; all that we write turns it into a number again, and
//! all that we compare sees the number.

use std::borrow::Cow;
use std::io;

use serde::Serialize;
use serde_json::ser::{CharEscape, CompactFormatter, Formatter};
use serde_json::{Number, Value};

use super::decimal::Decimal;

/// A noncharacter: no text that people exchange has it.
const MARK: char = '\u{fdd0}';

/// The digits of a number that a [`Value`] cannot hold, if this is one.
pub fn long(value: &Value) -> Option<&str> {
    value.as_str().and_then(digits)
}

/// The text of a string; a number is none, however long.
pub fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| digits(text).is_none())
}

/// The value with all its digits.
pub(crate) fn exact(json: &[u8]) -> Result<Value, serde_json::Error> {
    let plain = serde_json::from_slice(json);
    match &plain {
        Ok(value) if !is_suspect(value) => return plain,
        Ok(_) => {}
        // Nothing else about a number can be wrong, once it is JSON.
        Err(error) if error.is_syntax() && serde_json::from_slice::<serde::de::IgnoredAny>(json).is_ok() => {}
        Err(_) => return plain,
    }
    match marked(json) {
        Some(marked) => serde_json::from_slice(&marked),
        None => plain,
    }
}

/// A number by its digits.
pub(crate) fn number(digits: &str) -> Value {
    match serde_json::from_str(digits) {
        Ok(value) if !is_long(digits) => value,
        Ok(_) | Err(_) => Value::String(format!("{MARK}{digits}")),
    }
}

/// Whether a [`Value`] would lose something of the number that is written like this.
pub(crate) fn is_long(digits: &str) -> bool {
    let is_whole = !digits.contains(['.', 'e', 'E']);
    if digits.len() < 16 && (is_whole || !digits.contains(['e', 'E'])) {
        return false;
    }
    match serde_json::from_str::<Number>(digits) {
        Ok(number) if is_whole => number.is_f64() && digits != "-0",
        Ok(number) => Decimal::of(&number.to_string()) != Decimal::of(digits),
        Err(_) => Decimal::of(digits).is_some(),
    }
}

/// The value as everybody else reads it: with the nearest number that a [`Value`] can hold.
pub fn rounded(value: &Value) -> Cow<'_, Value> {
    if !has_long(value) {
        return Cow::Borrowed(value);
    }
    Cow::Owned(match value {
        Value::Array(items) => items.iter().map(|item| rounded(item).into_owned()).collect(),
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), rounded(value).into_owned())).collect(),
        other => long(other).map_or_else(|| other.clone(), |digits| Value::from(nearest(digits))),
    })
}

/// The nearest float; the largest where none is near.
pub(crate) fn nearest(digits: &str) -> f64 {
    digits.parse().map_or(0.0, |float: f64| float.clamp(f64::MIN, f64::MAX))
}

/// A text for people, in which a long number may stand.
pub(crate) fn spoken(text: String) -> String {
    if text.contains(MARK) { text.replace(MARK, "") } else { text }
}

/// Writes a value; long numbers with their digits.
pub fn write_json(out: impl io::Write, value: &(impl Serialize + ?Sized)) -> Result<(), serde_json::Error> {
    value
        .serialize(&mut serde_json::Serializer::with_formatter(out, Digits { quote: Quote::None, held: String::new() }))
}

/// A value as text; long numbers with their digits.
pub fn to_json(value: &Value) -> String {
    let mut text = Vec::with_capacity(128);
    write_json(&mut text, value).expect("a value can always be written");
    String::from_utf8(text).expect("JSON is UTF-8")
}

fn digits(text: &str) -> Option<&str> {
    text.strip_prefix(MARK).filter(|digits| Decimal::of(digits).is_some())
}

/// Whether a text would be taken for a number, or was kept from it by another mark.
fn is_ambiguous(text: &str) -> bool {
    text.starts_with(MARK) && Decimal::of(text.trim_start_matches(MARK)).is_some()
}

/// Whether a number in this is kept by its digits.
pub fn has_long(value: &Value) -> bool {
    match value {
        Value::String(text) => digits(text).is_some(),
        Value::Array(items) => items.iter().any(has_long),
        Value::Object(fields) => fields.values().any(has_long),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether something may have been lost, or looks as if it were marked.
fn is_suspect(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::String(text) => text.starts_with(MARK),
        Value::Array(items) => items.iter().any(is_suspect),
        Value::Object(fields) => fields.values().any(is_suspect),
        Value::Null | Value::Bool(_) => false,
    }
}

/// JSON in which long numbers are marked strings, if it has any. Strings that look like one get a second mark.
fn marked(json: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(json.len() + 64);
    let mut is_changed = false;
    let mut at = 0;
    while let Some(byte) = json.get(at) {
        let end = match byte {
            b'"' => at + string_length(&json[at..]),
            b'-' | b'0'..=b'9' => at + number_length(&json[at..]),
            _ => at + 1,
        };
        let whole = whole_letters(&json[at..end]);
        is_changed |= matches!(whole, Cow::Owned(_));
        let token = &*whole;
        match byte {
            b'"' if !is_key(&json[end..]) && looks_marked(token) => {
                is_changed = true;
                out.push(b'"');
                out.extend_from_slice(MARK.encode_utf8(&mut [0; 4]).as_bytes());
                out.extend_from_slice(&token[1..]);
            }
            b'-' | b'0'..=b'9' if std::str::from_utf8(token).is_ok_and(is_long) => {
                is_changed = true;
                out.push(b'"');
                out.extend_from_slice(MARK.encode_utf8(&mut [0; 4]).as_bytes());
                out.extend_from_slice(token);
                out.push(b'"');
            }
            _ => out.extend_from_slice(token),
        }
        at = end;
    }
    is_changed.then_some(out)
}

/// A string in which no letter is cut in two: half of a pair, which JavaScript writes, becomes `\u{fffd}`.
fn whole_letters(token: &[u8]) -> Cow<'_, [u8]> {
    if !token.starts_with(b"\"") || memchr::memmem::find(token, b"\\u").is_none() {
        return Cow::Borrowed(token);
    }
    let mut whole = Cow::Borrowed(token);
    for at in halves(token) {
        whole.to_mut()[at..at + 6].copy_from_slice(b"\\ufffd");
    }
    whole
}

/// JSON in which each half of a letter is spelled out, so that a [`Value`] tells one from another.
///
/// ```text
/// {"text": "\ud83d"}      {"text": "\\ud83d"}
/// ```
pub(super) fn spelled_out(json: &[u8]) -> Cow<'_, [u8]> {
    let (mut out, mut done) = (Vec::new(), 0);
    for at in halves(json) {
        out.extend_from_slice(&json[done..at]);
        out.push(b'\\');
        // Whose digits are capitals means the same.
        out.extend_from_slice(&json[at..at + 6].to_ascii_lowercase());
        done = at + 6;
    }
    if done == 0 {
        return Cow::Borrowed(json);
    }
    out.extend_from_slice(&json[done..]);
    Cow::Owned(out)
}

/// Whether a JSON text has half of a letter, which no [`Value`] can hold.
pub fn has_half_letter(json: &[u8]) -> bool {
    halves(json).next().is_some()
}

/// Where the escapes are that stand for half of a letter, without the other half beside them.
fn halves(json: &[u8]) -> impl Iterator<Item = usize> {
    let mut next = 0;
    std::iter::from_fn(move || {
        while let Some(found) = memchr::memchr(b'\\', &json[next..]) {
            let at = next + found;
            let (length, is_half) = match (half(&json[at..]), half(&json[(at + 6).min(json.len())..])) {
                (Some(Half::First), Some(Half::Second)) => (12, false),
                (Some(_), _) => (6, true),
                (None, _) => (2, false),
            };
            next = (at + length).min(json.len());
            if is_half {
                return Some(at);
            }
        }
        None
    })
}

enum Half {
    First,
    Second,
}

/// Whether an escape stands for half of a letter.
fn half(escape: &[u8]) -> Option<Half> {
    let digits = escape.strip_prefix(b"\\u")?.get(..4)?;
    match u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()? {
        0xd800..=0xdbff => Some(Half::First),
        0xdc00..=0xdfff => Some(Half::Second),
        _ => None,
    }
}

/// How many bytes a string has, with its quotes.
fn string_length(json: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = json.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    json.len()
}

fn number_length(json: &[u8]) -> usize {
    json.iter().take_while(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')).count()
}

/// Whether what stands before this is a key.
fn is_key(rest: &[u8]) -> bool {
    rest.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':')
}

fn looks_marked(token: &[u8]) -> bool {
    let may_be = token[1..].starts_with(MARK.encode_utf8(&mut [0; 4]).as_bytes()) || token[1..].starts_with(b"\\u");
    may_be && serde_json::from_slice::<Cow<'_, str>>(token).is_ok_and(|text| is_ambiguous(&text))
}

/// Writes JSON as everybody does, but for long numbers.
struct Digits {
    quote: Quote,
    /// A piece that is a number if the string ends with it.
    held: String,
}

impl Digits {
    /// Writes what was kept back, and the quote before it: it is text.
    fn open<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.quote = Quote::Open;
        writer.write_all(b"\"")?;
        writer.write_all(std::mem::take(&mut self.held).as_bytes())
    }
}

/// What has been written of a string.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quote {
    /// We are in none.
    None,
    /// The next one is a key.
    Key,
    /// Nothing: what follows tells what it is.
    Pending,
    /// The quote before it, and all since.
    Open,
}

impl Formatter for Digits {
    fn begin_string<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.quote == Quote::Key {
            return self.open(writer);
        }
        self.quote = Quote::Pending;
        Ok(())
    }

    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        if self.quote == Quote::Pending {
            if self.held.is_empty() && is_ambiguous(fragment) {
                self.held.push_str(fragment);
                return Ok(());
            }
            self.open(writer)?;
        }
        writer.write_all(fragment.as_bytes())
    }

    fn write_char_escape<W: ?Sized + io::Write>(&mut self, writer: &mut W, escape: CharEscape) -> io::Result<()> {
        if self.quote == Quote::Pending {
            self.open(writer)?;
        }
        CompactFormatter.write_char_escape(writer, escape)
    }

    fn end_string<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if let Some(number) = digits(&self.held) {
            writer.write_all(number.as_bytes())?;
            self.held.clear();
            return Ok(());
        }
        if self.quote == Quote::Pending {
            // Of several marks one is ours.
            self.held.drain(..self.held.chars().next().map_or(0, char::len_utf8));
            self.open(writer)?;
        }
        writer.write_all(b"\"")
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.quote = Quote::Key;
        CompactFormatter.begin_object_key(writer, first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn again(json: &str) -> String {
        to_json(&exact(json.as_bytes()).unwrap_or_else(|error| panic!("{json}: {error}")))
    }

    #[test]
    fn half_a_letter_is_told_from_another_where_it_is_spelled_out() {
        let out = |json: &str| String::from_utf8(spelled_out(json.as_bytes()).into_owned()).unwrap();
        assert_eq!(out(r#"["\ud83d", "\uDE00\n"]"#), r#"["\\ud83d", "\\ude00\n"]"#);
        for half in [r#""\ud83d""#, r#""a\\\uDE00""#, r#""\ud83d\ud83d\ude00""#, r#""\ud83d \ude00""#, r#""\ud83dé""#]
        {
            assert!(has_half_letter(half.as_bytes()), "{half}");
        }
        for same in [r#"["\ufffd \ud83d\ude00 \\ud83d"]"#, "[]", r#""\u00""#] {
            assert_eq!(out(same), same);
            assert!(!has_half_letter(same.as_bytes()), "{same}");
        }
    }

    #[test]
    fn every_digit_survives() {
        for json in [
            "12345678901234567890123",
            "-12345678901234567890123",
            "18446744073709551616",
            "100000000000000000000",
            "1e400",
            "-1E+400",
            "1e-400",
            "0.1234567890123456789",
            "123456789012345678.0",
            r#"{"a":[1e400,{"b":12345678901234567890123}],"c":1.5}"#,
            "18446744073709551615",
            "-9223372036854775808",
            "0.1",
            "3.5e-10",
            "\"\"",
            r#"["","a\nb","\n",{"":"","k\n":1}]"#,
        ] {
            assert_eq!(again(json), json);
        }
    }

    #[test]
    fn only_what_a_value_cannot_hold_is_kept_by_its_digits() {
        for (json, expected) in [
            ("1", false),
            ("1.5", false),
            ("1e20", false),
            ("0.10", false),
            ("-0", false),
            ("-0.0000000000000000000", false),
            ("18446744073709551615", false),
            ("5e-324", false),
            ("1.7976931348623157e308", false),
            ("18446744073709551616", true),
            ("0.1000000000000000055511151231257827", true),
            ("1e309", true),
        ] {
            assert_eq!(is_long(json), expected, "{json}");
            assert_eq!(long(&number(json)), expected.then_some(json));
        }
    }

    #[test]
    fn a_string_that_looks_marked_stays_a_string() {
        for (json, expected) in [
            ("\"\u{fdd0}12\"", "\"\u{fdd0}12\""),
            (r#""\ufdd012""#, "\"\u{fdd0}12\""),
            (r#""\uFDD0\ufdd012""#, "\"\u{fdd0}\u{fdd0}12\""),
            ("\"\u{fdd0}a\"", "\"\u{fdd0}a\""),
            ("{\"\u{fdd0}12\" :\"\u{fdd0}12\"}", "{\"\u{fdd0}12\":\"\u{fdd0}12\"}"),
        ] {
            assert_eq!(again(json), expected);
            assert_eq!(long(&exact(json.as_bytes()).unwrap()), None);
        }
    }

    #[test]
    fn half_a_letter_hides_nothing_else() {
        for (json, expected) in [
            (r#"["cut \ud83d",1e400]"#, "[\"cut \u{fffd}\",1e400]"),
            (
                r#"{"\udc00":"\uD83D\uDE00 \ud83d\ud83d\ude00 \\ud83d"}"#,
                "{\"\u{fffd}\":\"\u{1f600} \u{fffd}\u{1f600} \\\\ud83d\"}",
            ),
            (r#""\ud83d\n""#, "\"\u{fffd}\\n\""),
        ] {
            assert_eq!(again(json), expected);
        }
    }

    #[test]
    fn others_see_the_nearest_number() {
        let value = exact(br#"{"a":[12345678901234567890123,-1e400],"b":"x"}"#).unwrap();
        assert_eq!(*rounded(&value), serde_json::json!({"a": [12345678901234567890123.0, f64::MIN], "b": "x"}));
    }

    proptest! {
        #[test]
        fn any_json_is_written_as_it_was_read(value in any::<f64>(), digits in "-?[1-9][0-9]{0,40}(\\.[0-9]{1,30})?(e-?[0-9]{1,3})?") {
            let json = format!("[{},{digits}]", Value::from(value));
            let read = exact(json.as_bytes()).unwrap();
            let again = to_json(&read);
            prop_assert_eq!(exact(again.as_bytes()).unwrap(), read);
            let end = again.rsplit(',').next().unwrap().trim_end_matches(']');
            prop_assert_eq!(Decimal::of(end), Decimal::of(&digits));
        }

        #[test]
        fn any_string_comes_back(text in "[\u{fdd0}0-9a\\\\\"\n]{0,6}") {
            let json = Value::from(text.as_str()).to_string();
            prop_assert_eq!(again(&json), json);
        }
    }
}
