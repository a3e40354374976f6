//! A JSON value with its exact text.

use std::fmt;
use std::marker::PhantomData;

use bytes::Bytes;
use serde::Deserialize;
use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::string::Unescaped;

/// A JSON value with its exact text, usually a slice of its message.
///
/// Numbers keep their digits, objects their order and their spacing. The text is valid JSON with one value, so parsing
/// it into a [`Value`] fails only for more than 128 levels of nesting.
///
/// # Why not `serde_json`'s `arbitrary_precision`
///
/// It is a feature of the whole build: every crate that depends on us would get it, and with it numbers inside untagged
/// enums stop deserializing, `rmcp`'s among them. Keeping the text costs nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct RawJson {
    text: Bytes,
}

impl RawJson {
    /// The text of a value.
    pub fn from_value(value: &Value) -> RawJson {
        RawJson { text: Bytes::from(value.to_string()) }
    }

    /// Accepts `text` if it is one JSON value; white space around it is dropped.
    pub fn parse(text: &[u8]) -> Result<RawJson, serde_json::Error> {
        let raw: &RawValue = serde_json::from_slice(text)?;
        Ok(RawJson { text: Bytes::copy_from_slice(raw.get().as_bytes()) })
    }

    /// A piece of `whole`, without copying it.
    pub(crate) fn slice(whole: &Bytes, piece: &[u8]) -> RawJson {
        RawJson { text: whole.slice_ref(piece) }
    }

    /// A piece of `whole` that we have just written.
    pub(crate) fn from_written(text: Bytes) -> RawJson {
        RawJson { text }
    }

    /// The exact bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.text
    }

    /// The exact text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.text).expect("JSON text was checked to be UTF-8 when it was taken")
    }

    /// Parses the value: a number beyond any float becomes the largest one, and a lone surrogate becomes U+FFFD. Fails
    /// only if the nesting is too deep.
    pub fn value(&self) -> Result<Value, serde_json::Error> {
        read_value(&self.text)
    }

    /// Parses the value, changes it and writes it.
    pub fn edit(&self, change: impl FnOnce(&mut Value)) -> Result<RawJson, serde_json::Error> {
        let mut value = self.value()?;
        change(&mut value);
        Ok(RawJson::from_value(&value))
    }

    /// Parses the value as a `T`.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.text)
    }

    /// A field of this object, without parsing the rest; the last one of a duplicate key, as in a [`Value`].
    pub fn field(&self, name: &str) -> Option<RawJson> {
        let mut deserializer = serde_json::Deserializer::from_slice(&self.text);
        let found = Field { name, lifetime: PhantomData }.deserialize(&mut deserializer).ok()??;
        Some(RawJson::slice(&self.text, found.get().as_bytes()))
    }

    /// The field at the end of a chain of keys.
    pub fn at(&self, keys: &[&str]) -> Option<RawJson> {
        keys.iter().try_fold(self.clone(), |value, key| value.field(key))
    }

    /// This value as a string, if it is one.
    pub fn text(&self) -> Option<String> {
        self.read().ok()
    }

    /// Whether this is the literal `null`.
    pub fn is_null(&self) -> bool {
        &self.text[..] == b"null"
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl serde::Serialize for RawJson {
    /// Serializes the exact text.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_slice(&self.text).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

/// Parses JSON text, even if a [`Value`] cannot hold its contents, such as `1e400` or `"\ud800"`.
pub(crate) fn read_value(json: &[u8]) -> Result<Value, serde_json::Error> {
    serde_json::from_slice(json)
        .or_else(|error| representable(json).map_or(Err(error), |text| serde_json::from_str(&text)))
}

/// JSON text in which every number and string is replaced by the nearest one that a [`Value`] can hold.
fn representable(json: &[u8]) -> Option<String> {
    let json = std::str::from_utf8(json).ok()?;
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => string_length(rest)?,
            '-' | '0'..='9' => rest.find(|c: char| !c.is_ascii_digit() && !"+-.eE".contains(c)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let (token, after) = rest.split_at_checked(length)?;
        match (serde_json::from_str::<Value>(token), token.parse::<f64>()) {
            (Err(_), Ok(number)) => out.push_str(&Value::from(number.clamp(f64::MIN, f64::MAX)).to_string()),
            (Err(_), Err(_)) if first == '"' => {
                out.push_str(&Value::from(Unescaped::new(&token[1..length - 1]).text).to_string());
            }
            (_, _) => out.push_str(token),
        }
        rest = after;
    }
    Some(out)
}

/// The length of the string that begins here, with its quotes, in bytes.
fn string_length(json: &str) -> Option<usize> {
    let mut escaped = false;
    let is_end = |byte: u8| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    };
    json.bytes().skip(1).position(is_end).map(|end| end + 2)
}

/// Finds one field of an object, as text.
struct Field<'n, 'de> {
    name: &'n str,
    lifetime: PhantomData<&'de ()>,
}

impl<'de> DeserializeSeed<'de> for Field<'_, 'de> {
    type Value = Option<&'de RawValue>;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Field<'_, 'de> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(is_it) = map.next_key_seed(KeyIs(self.name))? {
            if is_it {
                found = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// Compares a key without allocating.
struct KeyIs<'n>(&'n str);

impl<'de> DeserializeSeed<'de> for KeyIs<'_> {
    type Value = bool;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeyIs<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<bool, E> {
        Ok(key == self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_key_order_survive() {
        let text = br#"{"b":1.0,"a":12345678901234567890123, "c":1e400}"#;
        let raw = RawJson::parse(text).unwrap();
        assert_eq!(raw.bytes(), &text[..]);
        assert_eq!(raw.field("a").unwrap().as_str(), "12345678901234567890123");
        assert_eq!(raw.field("c").unwrap().as_str(), "1e400");
    }

    #[test]
    fn a_number_or_string_that_a_value_cannot_hold_is_approximated() {
        let text = r#"{"a": [1e400, -1E+400, 1e-400, 12345678901234567890123, "\"\\"], "\udfff\n": "a\ud800é\ud83d\ude00 \\ud800"}"#;
        let value = RawJson::parse(text.as_bytes()).unwrap().value().unwrap();
        let expected = serde_json::json!({
            "a": [f64::MAX, f64::MIN, 0.0, 12_345_678_901_234_567_890_123.0, "\"\\"],
            "\u{fffd}\n": "a\u{fffd}é😀 \\ud800",
        });
        assert_eq!(value, expected);
        assert!(read_value(b"[1e400").is_err());
        assert!(read_value(b"\"\\ud800").is_err());
    }

    #[test]
    fn a_field_is_found_by_its_decoded_key() {
        let raw = RawJson::parse(br#"{"a\u0062c":{"x":[1,2]}}"#).unwrap();
        assert_eq!(raw.at(&["abc", "x"]).unwrap().as_str(), "[1,2]");
        assert!(raw.field("missing").is_none());
        assert!(RawJson::parse(b"[1]").unwrap().field("a").is_none());
    }

    #[test]
    fn the_last_of_two_equal_keys_counts() {
        let raw = RawJson::parse(br#"{"a":1,"a":2}"#).unwrap();
        assert_eq!(raw.field("a").unwrap().as_str(), "2");
    }

    #[test]
    fn json_deeper_than_a_value_allows_is_kept() {
        let deep = [b"[".repeat(100_000), b"]".repeat(100_000)].concat();
        let raw = RawJson::parse(&deep).unwrap();
        assert_eq!(raw.bytes().len(), 200_000);
        assert!(raw.value().is_err());
    }
}
