//! A JSON document whose leaves keep their text: numbers keep their digits, strings their escapes, and Python's `NaN`
//! its name.

use std::fmt;

/// A JSON value. Keys keep their escapes; an object keeps the order of its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tree {
    /// A string with its quotes, a number, `true`, `false`, `null`, or Python's `NaN` and infinities.
    Leaf(String),
    /// An array.
    List(Vec<Tree>),
    /// An object.
    Object(Vec<(String, Tree)>),
}

/// Where a text stops being JSON, in bytes from its beginning, and what was expected there.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotJson {
    pub(super) at: usize,
    pub(super) expected: &'static str,
}

/// Maximum depth of a document. Python's own limit is about a thousand; real messages are far below.
const DEPTH: usize = 512;

/// Python's `json` writes these for floats that JSON has no number for.
const NOT_NUMBERS: [&str; 3] = ["NaN", "Infinity", "-Infinity"];

impl Tree {
    /// `null`
    pub(super) fn null() -> Tree {
        Tree::Leaf("null".to_owned())
    }

    /// A string.
    pub(super) fn string(text: &str) -> Tree {
        Tree::Leaf(serde_json::Value::from(text).to_string())
    }

    /// An object of these members.
    pub(super) fn object<const N: usize>(members: [(&str, Tree); N]) -> Tree {
        Tree::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }

    /// Parses one value and nothing after it.
    pub(super) fn parse(text: &str) -> Result<Tree, NotJson> {
        let mut parser = Parser { text, at: 0 };
        let tree = parser.value(0)?;
        parser.space();
        if parser.at < text.len() { Err(parser.expected("the end of the value")) } else { Ok(tree) }
    }

    /// Parses text that is known to be JSON; `null` if it is not.
    pub(super) fn known(text: &str) -> Tree {
        Tree::parse(text).unwrap_or_else(|_| Tree::null())
    }

    /// A member of an object; of several with the same name the last, as most parsers return it.
    pub(super) fn get(&self, key: &str) -> Option<&Tree> {
        match self {
            Tree::Object(members) => members.iter().rfind(|(name, _)| name == key).map(|(_, value)| value),
            Tree::Leaf(_) | Tree::List(_) => None,
        }
    }

    /// A member that is present and not `null`.
    pub(super) fn some(&self, key: &str) -> Option<&Tree> {
        self.get(key).filter(|value| !value.is_null())
    }

    /// Removes a member from an object.
    pub(super) fn remove(&mut self, key: &str) -> Option<Tree> {
        match self {
            Tree::Object(members) => {
                let at = members.iter().rposition(|(name, _)| name == key)?;
                let removed = members.remove(at).1;
                members.retain(|(name, _)| name != key);
                Some(removed)
            }
            Tree::Leaf(_) | Tree::List(_) => None,
        }
    }

    /// Sets a member of an object, in place of one of that name if there is one.
    pub(super) fn set(&mut self, key: &str, value: Tree) {
        if let Tree::Object(members) = self {
            match members.iter_mut().rfind(|(name, _)| name == key) {
                Some((_, place)) => *place = value,
                None => members.push((key.to_owned(), value)),
            }
        }
    }

    /// Adds a member to an object, even if it has one of that name.
    pub(super) fn push(&mut self, key: String, value: Tree) {
        if let Tree::Object(members) = self {
            members.push((key, value));
        }
    }

    /// Whether two members have the same name.
    pub(super) fn has_twins(&self) -> bool {
        let mut names = std::collections::HashSet::new();
        !self.members().iter().all(|(name, _)| names.insert(name))
    }

    /// The members of an object.
    pub(super) fn members(&self) -> &[(String, Tree)] {
        match self {
            Tree::Object(members) => members,
            Tree::Leaf(_) | Tree::List(_) => &[],
        }
    }

    /// The elements of an array.
    pub(super) fn elements(&self) -> &[Tree] {
        match self {
            Tree::List(elements) => elements,
            Tree::Leaf(_) | Tree::Object(_) => &[],
        }
    }

    /// The value of a string; a lone surrogate, which Python writes, is read as `�`.
    pub(super) fn text(&self) -> Option<String> {
        let Tree::Leaf(leaf) = self else { return None };
        leaf.starts_with('"').then(|| unescape(leaf))
    }

    /// A number, or the number in a string.
    pub(super) fn number(&self) -> Option<f64> {
        let Tree::Leaf(leaf) = self else { return None };
        leaf.parse().ok().filter(|number: &f64| number.is_finite())
    }

    /// Whether this is `null`.
    pub(super) fn is_null(&self) -> bool {
        matches!(self, Tree::Leaf(leaf) if leaf == "null")
    }

    /// Whether this is an object.
    pub(super) fn is_object(&self) -> bool {
        matches!(self, Tree::Object(_))
    }

    /// Python's `NaN` or infinity.
    pub(super) fn not_a_number(&self) -> Option<&str> {
        match self {
            Tree::Leaf(leaf) if NOT_NUMBERS.contains(&leaf.as_str()) => Some(leaf),
            Tree::Leaf(_) | Tree::List(_) | Tree::Object(_) => None,
        }
    }

    /// The value in valid JSON: `NaN` becomes `"NaN"`.
    pub(super) fn valid(&self) -> Tree {
        match self {
            Tree::Leaf(leaf) => {
                Tree::Leaf(self.not_a_number().map_or_else(|| leaf.clone(), |name| format!("\"{name}\"")))
            }
            Tree::List(elements) => Tree::List(elements.iter().map(Tree::valid).collect()),
            Tree::Object(members) => {
                Tree::Object(members.iter().map(|(key, value)| (key.clone(), value.valid())).collect())
            }
        }
    }

    /// Converts to a [`serde_json::Value`]; what it cannot hold is changed as little as possible.
    pub(super) fn value(&self) -> serde_json::Value {
        use serde_json::Value;
        match self {
            Tree::Leaf(leaf) if leaf.starts_with('"') => Value::from(unescape(leaf)),
            Tree::Leaf(leaf) => serde_json::from_str(leaf).unwrap_or_else(|_| Value::from(leaf.as_str())),
            Tree::List(elements) => Value::from(elements.iter().map(Tree::value).collect::<Vec<_>>()),
            Tree::Object(members) => Value::Object(
                members.iter().map(|(key, value)| (unescape(&format!("\"{key}\"")), value.value())).collect(),
            ),
        }
    }

    /// Converts from a [`serde_json::Value`].
    pub(super) fn of(value: &serde_json::Value) -> Tree {
        Tree::known(&value.to_string())
    }

    /// Writes the canonical text, which is the same for every way to write this value: members sorted by name, standard
    /// escapes.
    pub(super) fn canonical(&self, out: &mut String) {
        match self {
            Tree::Leaf(leaf) => match self.text() {
                Some(text) => out.push_str(&serde_json::Value::from(text).to_string()),
                None => out.push_str(leaf),
            },
            Tree::List(elements) => {
                out.push('[');
                for element in elements {
                    element.canonical(out);
                    out.push(',');
                }
                out.push(']');
            }
            Tree::Object(members) => {
                let mut members: Vec<(String, &Tree)> =
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
            Tree::List(elements) if !elements.is_empty() => {
                for (at, element) in elements.iter().enumerate() {
                    out.push(if at == 0 { '[' } else { ',' });
                    line(out, indent + 2);
                    element.pretty(out, indent + 2);
                }
                line(out, indent);
                out.push(']');
            }
            Tree::Object(members) if !members.is_empty() => {
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
            Tree::Leaf(_) | Tree::List(_) | Tree::Object(_) => out.push_str(&self.to_string()),
        }
    }
}

impl From<u64> for Tree {
    fn from(number: u64) -> Tree {
        Tree::Leaf(number.to_string())
    }
}

impl From<bool> for Tree {
    fn from(flag: bool) -> Tree {
        Tree::Leaf(flag.to_string())
    }
}

impl fmt::Display for Tree {
    /// On one line, without white space.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tree::Leaf(leaf) => f.write_str(leaf),
            Tree::List(elements) => {
                f.write_str("[")?;
                for (at, element) in elements.iter().enumerate() {
                    write!(f, "{}{element}", if at == 0 { "" } else { "," })?;
                }
                f.write_str("]")
            }
            Tree::Object(members) => {
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
    fn expected(&self, expected: &'static str) -> NotJson {
        NotJson { at: self.at, expected }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while self.peek().is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Result<Tree, NotJson> {
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
                Ok(Tree::Object(members))
            }
            Some(b'[') => {
                let mut elements = Vec::new();
                self.each(b']', |parser| {
                    elements.push(parser.value(depth + 1)?);
                    Ok(())
                })?;
                Ok(Tree::List(elements))
            }
            Some(b'"') => Ok(Tree::Leaf(self.string()?.to_owned())),
            Some(_) | None => {
                let rest = &self.text[self.at..];
                let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.')));
                let word = &rest[..end.unwrap_or(rest.len())];
                let known = NOT_NUMBERS.contains(&word) || serde_json::from_str::<serde::de::IgnoredAny>(word).is_ok();
                if !known {
                    return Err(self.expected("a value"));
                }
                self.at += word.len();
                Ok(Tree::Leaf(word.to_owned()))
            }
        }
    }

    fn each(&mut self, close: u8, mut item: impl FnMut(&mut Self) -> Result<(), NotJson>) -> Result<(), NotJson> {
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
    fn string(&mut self) -> Result<&'t str, NotJson> {
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
        raw.map(|_| quoted).map_err(|_| NotJson { at: start, expected: "a string without bad escapes" })
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
            assert_eq!(Tree::parse(text).unwrap().to_string(), text);
        }
        let spaced = Tree::parse("{ \"a\" :\n [ 1 , 2 ] }").unwrap();
        assert_eq!(spaced.to_string(), r#"{"a":[1,2]}"#);
        let mut pretty = String::new();
        spaced.pretty(&mut pretty, 0);
        assert_eq!(pretty, "{\n  \"a\": [\n    1,\n    2\n  ]\n}");
        assert_eq!(Tree::known(r#""\ud800x""#).text().unwrap(), "\u{fffd}x");
        assert_eq!(Tree::known("[NaN]").valid().to_string(), r#"["NaN"]"#);
    }

    #[test]
    fn what_is_no_json_is_refused_with_its_place() {
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
            assert_eq!(Tree::parse(text), Err(NotJson { at, expected }), "{text}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(Tree::parse(&deep).unwrap_err().expected, "fewer levels of nesting");
    }
}
