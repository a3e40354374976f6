//! A JSON document whose leaves keep their text: numbers keep their digits, strings their escapes, and Python's `NaN`
//! its name.

use std::fmt;

/// A JSON value. Keys keep their escapes; an object keeps the order of its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum JsonTree {
    /// A string with its quotes, a number, `true`, `false`, `null`, or Python's `NaN` and infinities.
    Leaf(String),
    /// An array.
    List(Vec<JsonTree>),
    /// An object.
    Object(Vec<(String, JsonTree)>),
}

/// Where a text stops being JSON, in bytes from its beginning, and what was expected there.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TreeError {
    pub(super) at: usize,
    pub(super) expected: &'static str,
}

/// Maximum depth of a document. Python's own limit is about a thousand; real messages are far below.
const DEPTH: usize = 512;

/// Python's `json` writes these for floats that JSON has no number for.
const NOT_NUMBERS: [&str; 3] = ["NaN", "Infinity", "-Infinity"];

impl JsonTree {
    /// `null`
    pub(super) fn null() -> JsonTree {
        JsonTree::Leaf("null".to_owned())
    }

    /// A string.
    pub(super) fn string(text: &str) -> JsonTree {
        JsonTree::Leaf(serde_json::Value::from(text).to_string())
    }

    /// An object of these members.
    pub(super) fn object<const N: usize>(members: [(&str, JsonTree); N]) -> JsonTree {
        JsonTree::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }

    /// Parses one value and nothing after it.
    pub(super) fn parse(text: &str) -> Result<JsonTree, TreeError> {
        let mut parser = Parser { text, at: 0 };
        let tree = parser.value(0)?;
        parser.space();
        if parser.at < text.len() { Err(parser.expected("the end of the value")) } else { Ok(tree) }
    }

    /// Parses text that is known to be JSON; `null` if it is not.
    pub(super) fn known(text: &str) -> JsonTree {
        JsonTree::parse(text).unwrap_or_else(|_| JsonTree::null())
    }

    /// A member of an object; of several with the same name the last, as most parsers return it.
    pub(super) fn get(&self, key: &str) -> Option<&JsonTree> {
        match self {
            JsonTree::Object(members) => members.iter().rfind(|(name, _)| name == key).map(|(_, value)| value),
            JsonTree::Leaf(_) | JsonTree::List(_) => None,
        }
    }

    /// A member that is present and not `null`.
    pub(super) fn some(&self, key: &str) -> Option<&JsonTree> {
        self.get(key).filter(|value| !value.is_null())
    }

    /// Removes a member from an object.
    pub(super) fn remove(&mut self, key: &str) -> Option<JsonTree> {
        match self {
            JsonTree::Object(members) => {
                let at = members.iter().rposition(|(name, _)| name == key)?;
                let removed = members.remove(at).1;
                members.retain(|(name, _)| name != key);
                Some(removed)
            }
            JsonTree::Leaf(_) | JsonTree::List(_) => None,
        }
    }

    /// Sets a member of an object, in place of one of that name if there is one.
    pub(super) fn set(&mut self, key: &str, value: JsonTree) {
        if let JsonTree::Object(members) = self {
            match members.iter_mut().rfind(|(name, _)| name == key) {
                Some((_, place)) => *place = value,
                None => members.push((key.to_owned(), value)),
            }
        }
    }

    /// Adds a member to an object, even if it has one of that name.
    pub(super) fn push(&mut self, key: String, value: JsonTree) {
        if let JsonTree::Object(members) = self {
            members.push((key, value));
        }
    }

    /// Whether two members have the same name.
    pub(super) fn has_twins(&self) -> bool {
        let mut names = std::collections::HashSet::new();
        !self.members().iter().all(|(name, _)| names.insert(name))
    }

    /// The members of an object.
    pub(super) fn members(&self) -> &[(String, JsonTree)] {
        match self {
            JsonTree::Object(members) => members,
            JsonTree::Leaf(_) | JsonTree::List(_) => &[],
        }
    }

    /// The elements of an array.
    pub(super) fn elements(&self) -> &[JsonTree] {
        match self {
            JsonTree::List(elements) => elements,
            JsonTree::Leaf(_) | JsonTree::Object(_) => &[],
        }
    }

    /// The value of a string; a lone surrogate, which Python writes, is read as `�`.
    pub(super) fn text(&self) -> Option<String> {
        let JsonTree::Leaf(leaf) = self else { return None };
        leaf.starts_with('"').then(|| unescape(leaf))
    }

    /// A number, or the number in a string.
    pub(super) fn number(&self) -> Option<f64> {
        let JsonTree::Leaf(leaf) = self else { return None };
        leaf.parse().ok().filter(|number: &f64| number.is_finite())
    }

    /// Whether this is `null`.
    pub(super) fn is_null(&self) -> bool {
        matches!(self, JsonTree::Leaf(leaf) if leaf == "null")
    }

    /// Whether this is an object.
    pub(super) fn is_object(&self) -> bool {
        matches!(self, JsonTree::Object(_))
    }

    /// Python's `NaN` or infinity.
    pub(super) fn not_a_number(&self) -> Option<&str> {
        match self {
            JsonTree::Leaf(leaf) if NOT_NUMBERS.contains(&leaf.as_str()) => Some(leaf),
            JsonTree::Leaf(_) | JsonTree::List(_) | JsonTree::Object(_) => None,
        }
    }

    /// The value in valid JSON: `NaN` becomes `"NaN"`.
    pub(super) fn valid(&self) -> JsonTree {
        match self {
            JsonTree::Leaf(leaf) => {
                JsonTree::Leaf(self.not_a_number().map_or_else(|| leaf.clone(), |name| format!("\"{name}\"")))
            }
            JsonTree::List(elements) => JsonTree::List(elements.iter().map(JsonTree::valid).collect()),
            JsonTree::Object(members) => {
                JsonTree::Object(members.iter().map(|(key, value)| (key.clone(), value.valid())).collect())
            }
        }
    }

    /// Converts to a [`serde_json::Value`]; what it cannot hold is changed as little as possible.
    pub(super) fn value(&self) -> serde_json::Value {
        use serde_json::Value;
        match self {
            JsonTree::Leaf(leaf) if leaf.starts_with('"') => Value::from(unescape(leaf)),
            JsonTree::Leaf(leaf) => serde_json::from_str(leaf).unwrap_or_else(|_| Value::from(leaf.as_str())),
            JsonTree::List(elements) => Value::from(elements.iter().map(JsonTree::value).collect::<Vec<_>>()),
            JsonTree::Object(members) => Value::Object(
                members.iter().map(|(key, value)| (unescape(&format!("\"{key}\"")), value.value())).collect(),
            ),
        }
    }

    /// Converts from a [`serde_json::Value`].
    pub(super) fn from_value(value: &serde_json::Value) -> JsonTree {
        JsonTree::known(&value.to_string())
    }

    /// Writes the canonical text, which is the same for every way to write this value: members sorted by name, standard
    /// escapes.
    pub(super) fn canonical(&self, out: &mut String) {
        match self {
            JsonTree::Leaf(leaf) => match self.text() {
                Some(text) => out.push_str(&serde_json::Value::from(text).to_string()),
                None => out.push_str(leaf),
            },
            JsonTree::List(elements) => {
                out.push('[');
                for element in elements {
                    element.canonical(out);
                    out.push(',');
                }
                out.push(']');
            }
            JsonTree::Object(members) => {
                let mut members: Vec<(String, &JsonTree)> =
                    members.iter().map(|(key, value)| (unescape(&format!("\"{key}\"")), value)).collect();
                members.sort_by(|(one, _), (other, _)| one.cmp(other));
                out.push('{');
                for (key, value) in members {
                    out.push_str(&serde_json::Value::from(key).to_string());
                    out.push(':');
                    value.canonical(out);
                    out.push(',');
                }
                out.push('}');
            }
        }
    }

    /// Writes the value as Python's `json.dumps(indent=2)` does, for files that users read.
    pub(super) fn pretty(&self, out: &mut String, indent: usize) {
        let line = |out: &mut String, indent: usize| {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent));
        };
        match self {
            JsonTree::List(elements) if !elements.is_empty() => {
                for (at, element) in elements.iter().enumerate() {
                    out.push(if at == 0 { '[' } else { ',' });
                    line(out, indent + 2);
                    element.pretty(out, indent + 2);
                }
                line(out, indent);
                out.push(']');
            }
            JsonTree::Object(members) if !members.is_empty() => {
                for (at, (key, value)) in members.iter().enumerate() {
                    out.push(if at == 0 { '{' } else { ',' });
                    line(out, indent + 2);
                    out.push('"');
                    out.push_str(key);
                    out.push_str("\": ");
                    value.pretty(out, indent + 2);
                }
                line(out, indent);
                out.push('}');
            }
            JsonTree::Leaf(_) | JsonTree::List(_) | JsonTree::Object(_) => out.push_str(&self.to_string()),
        }
    }
}

impl From<u64> for JsonTree {
    fn from(number: u64) -> JsonTree {
        JsonTree::Leaf(number.to_string())
    }
}

impl From<bool> for JsonTree {
    fn from(flag: bool) -> JsonTree {
        JsonTree::Leaf(flag.to_string())
    }
}

impl fmt::Display for JsonTree {
    /// On one line, without white space.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JsonTree::Leaf(leaf) => f.write_str(leaf),
            JsonTree::List(elements) => {
                f.write_str("[")?;
                for (at, element) in elements.iter().enumerate() {
                    write!(f, "{}{element}", if at == 0 { "" } else { "," })?;
                }
                f.write_str("]")
            }
            JsonTree::Object(members) => {
                f.write_str("{")?;
                for (at, (key, value)) in members.iter().enumerate() {
                    write!(f, "{}\"{key}\":{value}", if at == 0 { "" } else { "," })?;
                }
                f.write_str("}")
            }
        }
    }
}

/// The value of a quoted string.
fn unescape(quoted: &str) -> String {
    serde_json::from_str(quoted).unwrap_or_else(|_| crate::json::Unescaped::new(&quoted[1..quoted.len() - 1]).text)
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Parser<'t> {
    fn expected(&self, expected: &'static str) -> TreeError {
        TreeError { at: self.at, expected }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while self.peek().is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Result<JsonTree, TreeError> {
        if depth > DEPTH {
            return Err(self.expected("fewer levels of nesting"));
        }
        self.space();
        match self.peek() {
            Some(b'{') => {
                let mut members = Vec::new();
                self.each(b'}', |parser| {
                    let key = parser.string()?;
                    parser.space();
                    if parser.peek() != Some(b':') {
                        return Err(parser.expected("`:`"));
                    }
                    parser.at += 1;
                    members.push((key[1..key.len() - 1].to_owned(), parser.value(depth + 1)?));
                    Ok(())
                })?;
                Ok(JsonTree::Object(members))
            }
            Some(b'[') => {
                let mut elements = Vec::new();
                self.each(b']', |parser| {
                    elements.push(parser.value(depth + 1)?);
                    Ok(())
                })?;
                Ok(JsonTree::List(elements))
            }
            Some(b'"') => Ok(JsonTree::Leaf(self.string()?.to_owned())),
            Some(_) | None => {
                let rest = &self.text[self.at..];
                let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.')));
                let word = &rest[..end.unwrap_or(rest.len())];
                let known = NOT_NUMBERS.contains(&word) || serde_json::from_str::<serde::de::IgnoredAny>(word).is_ok();
                if !known {
                    return Err(self.expected("a value"));
                }
                self.at += word.len();
                Ok(JsonTree::Leaf(word.to_owned()))
            }
        }
    }

    fn each(&mut self, close: u8, mut item: impl FnMut(&mut Self) -> Result<(), TreeError>) -> Result<(), TreeError> {
        self.at += 1;
        self.space();
        if self.peek() == Some(close) {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.space();
            item(self)?;
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(byte) if byte == close => {
                    self.at += 1;
                    return Ok(());
                }
                Some(_) | None => return Err(self.expected(if close == b'}' { "`,` or `}`" } else { "`,` or `]`" })),
            }
        }
    }

    /// A string with its quotes.
    fn string(&mut self) -> Result<&'t str, TreeError> {
        let start = self.at;
        if self.peek() != Some(b'"') {
            return Err(self.expected("a key"));
        }
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => self.at += 2,
                Some(byte) if byte >= b' ' => self.at += 1,
                Some(_) | None => return Err(self.expected("the end of the string")),
            }
        }
        self.at += 1;
        let text: &'t str = self.text;
        let quoted = &text[start..self.at];
        let raw: Result<&serde_json::value::RawValue, _> = serde_json::from_str(quoted);
        raw.map(|_| quoted).map_err(|_| TreeError { at: start, expected: "a string without bad escapes" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_keep_their_text() {
        for text in [
            r#"{"a":1.50,"b":[12345678901234567890123,-0.0,1e400],"c":"\u00e9\/\ud800","":null}"#,
            "[NaN,Infinity,-Infinity,true,{},[]]",
            r#"{"a":1,"a":2}"#,
        ] {
            assert_eq!(JsonTree::parse(text).unwrap().to_string(), text);
        }
        let spaced = JsonTree::parse("{ \"a\" :\n [ 1 , 2 ] }").unwrap();
        assert_eq!(spaced.to_string(), r#"{"a":[1,2]}"#);
        let mut pretty = String::new();
        spaced.pretty(&mut pretty, 0);
        assert_eq!(pretty, "{\n  \"a\": [\n    1,\n    2\n  ]\n}");
        assert_eq!(JsonTree::known(r#""\ud800x""#).text().unwrap(), "\u{fffd}x");
        assert_eq!(JsonTree::known("[NaN]").valid().to_string(), r#"["NaN"]"#);
    }

    #[test]
    fn invalid_json_is_refused_with_its_position() {
        for (text, at, expected) in [
            ("{\"a\" 1}", 5, "`:`"),
            ("[1 2]", 3, "`,` or `]`"),
            ("{a:1}", 1, "a key"),
            ("[1,]", 3, "a value"),
            ("\"a", 2, "the end of the string"),
            ("\"\\x\"", 0, "a string without bad escapes"),
            ("1 2", 2, "the end of the value"),
            ("nan", 0, "a value"),
            ("", 0, "a value"),
        ] {
            assert_eq!(JsonTree::parse(text), Err(TreeError { at, expected }), "{text}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(JsonTree::parse(&deep).unwrap_err().expected, "fewer levels of nesting");
    }
}
