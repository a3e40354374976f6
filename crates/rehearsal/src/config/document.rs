//! A JSON parser that keeps the place of each value, and accepts comments.

use std::ops::Range;

use serde_json::Value;

/// A value and its place in the text.
#[derive(Clone, Debug)]
pub struct JsonNode {
    /// The place of the value, in bytes.
    pub span: Range<usize>,
    /// The value.
    pub kind: NodeKind,
}

/// A JSON value.
#[derive(Clone, Debug)]
pub enum NodeKind {
    /// The fields of an object, in their order.
    Object(Vec<(String, JsonNode)>),
    /// The elements of a list.
    Array(Vec<JsonNode>),
    /// A string.
    Text(String),
    /// `null`.
    Null,
    /// A number, `true` or `false`.
    Other(Value),
}

/// A syntax error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonSyntaxError {
    /// The place of the error, in bytes.
    pub at: usize,
    /// What the parser expected there.
    pub expected: &'static str,
}

/// Maximum depth of a configuration.
const MAX_DEPTH: usize = 128;

impl JsonNode {
    /// Parses a text. Comments and trailing commas are accepted, because editors write them.
    pub fn parse(text: &str) -> Result<JsonNode, JsonSyntaxError> {
        let mut reader = JsonNodeReader { text, at: if text.starts_with('\u{feff}') { 3 } else { 0 } };
        let node = reader.value(0)?;
        reader.white()?;
        match reader.at == text.len() {
            true => Ok(node),
            false => Err(reader.bad("the end of the file")),
        }
    }

    /// A field of an object.
    pub fn field(&self, name: &str) -> Option<&JsonNode> {
        self.fields()?.iter().rfind(|(key, _)| key == name).map(|(_, node)| node)
    }

    /// The fields of an object.
    pub fn fields(&self) -> Option<&[(String, JsonNode)]> {
        if let NodeKind::Object(fields) = &self.kind { Some(fields) } else { None }
    }

    /// The elements of a list.
    pub fn elements(&self) -> Option<&[JsonNode]> {
        if let NodeKind::Array(elements) = &self.kind { Some(elements) } else { None }
    }

    /// The text of a string.
    pub fn text(&self) -> Option<&str> {
        if let NodeKind::Text(text) = &self.kind { Some(text) } else { None }
    }

    /// The value without places; of two fields with the same name, the last is used.
    pub fn value(&self) -> Value {
        match &self.kind {
            NodeKind::Object(fields) => fields.iter().map(|(key, node)| (key.clone(), node.value())).collect(),
            NodeKind::Array(elements) => elements.iter().map(JsonNode::value).collect(),
            NodeKind::Text(text) => text.as_str().into(),
            NodeKind::Null => Value::Null,
            NodeKind::Other(value) => value.clone(),
        }
    }
}

struct JsonNodeReader<'a> {
    text: &'a str,
    at: usize,
}

impl JsonNodeReader<'_> {
    fn bad(&self, expected: &'static str) -> JsonSyntaxError {
        JsonSyntaxError { at: self.at, expected }
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// Skips white space and comments.
    fn white(&mut self) -> Result<(), JsonSyntaxError> {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches([' ', '\t', '\r', '\n']);
            let comment = if trimmed.starts_with("//") {
                trimmed.find('\n').unwrap_or(trimmed.len())
            } else if trimmed.starts_with("/*") {
                trimmed.find("*/").map(|end| end + 2).ok_or_else(|| self.bad("the end of the comment"))?
            } else {
                0
            };
            self.at += rest.len() - trimmed.len() + comment;
            if comment == 0 {
                return Ok(());
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<JsonNode, JsonSyntaxError> {
        self.white()?;
        if depth > MAX_DEPTH {
            return Err(self.bad("fewer levels"));
        }
        let start = self.at;
        let kind = match self.rest().bytes().next() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.array(depth)?,
            Some(b'"') => NodeKind::Text(self.string()?),
            _ => self.other()?,
        };
        Ok(JsonNode { span: start..self.at, kind })
    }

    fn object(&mut self, depth: usize) -> Result<NodeKind, JsonSyntaxError> {
        let mut fields = Vec::new();
        self.at += 1;
        loop {
            self.white()?;
            if self.skip('}') {
                return Ok(NodeKind::Object(fields));
            }
            if !self.rest().starts_with('"') {
                return Err(self.bad("a key in quotes or `}`"));
            }
            let key = self.string()?;
            self.white()?;
            if !self.skip(':') {
                return Err(self.bad("`:`"));
            }
            fields.push((key, self.value(depth + 1)?));
            self.white()?;
            if !self.skip(',') && !self.rest().starts_with('}') {
                return Err(self.bad("`,` or `}`"));
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<NodeKind, JsonSyntaxError> {
        let mut elements = Vec::new();
        self.at += 1;
        loop {
            self.white()?;
            if self.skip(']') {
                return Ok(NodeKind::Array(elements));
            }
            elements.push(self.value(depth + 1)?);
            self.white()?;
            if !self.skip(',') && !self.rest().starts_with(']') {
                return Err(self.bad("`,` or `]`"));
            }
        }
    }

    fn string(&mut self) -> Result<String, JsonSyntaxError> {
        let rest = self.rest();
        let mut escaped = false;
        let end = rest.bytes().skip(1).position(|byte| match byte {
            _ if escaped => {
                escaped = false;
                false
            }
            b'\\' => {
                escaped = true;
                false
            }
            byte => byte == b'"',
        });
        let length = end.ok_or_else(|| self.bad("the end of the string"))? + 2;
        let text = serde_json::from_str(&rest[..length]).map_err(|_| self.bad("a string without broken escapes"))?;
        self.at += length;
        Ok(text)
    }

    fn other(&mut self) -> Result<NodeKind, JsonSyntaxError> {
        let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.');
        let length = self.rest().find(|c| !word(c)).unwrap_or(self.rest().len());
        let read = serde_json::from_str(&self.rest()[..length]);
        let kind = match read {
            Ok(Value::Null) => NodeKind::Null,
            Ok(value) => NodeKind::Other(value),
            Err(_) => return Err(self.bad("a value")),
        };
        self.at += length;
        Ok(kind)
    }

    fn skip(&mut self, expected: char) -> bool {
        let found = self.rest().starts_with(expected);
        if found {
            self.at += expected.len_utf8();
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_trailing_commas_are_skipped() {
        let text = "\u{feff}// one\n{ /* two */ \"a\": [1, -2.5e3, true,], \"b\\u0041\": \"x\\\"y\", } // end";
        let node = JsonNode::parse(text).unwrap();
        assert_eq!(node.field("a").unwrap().elements().unwrap().len(), 3);
        assert_eq!(node.field("bA").unwrap().text(), Some("x\"y"));
        assert_eq!(&text[node.field("bA").unwrap().span.clone()], "\"x\\\"y\"");
    }

    #[test]
    fn a_syntax_error_has_its_place() {
        let table = [
            ("", 0, "a value"),
            ("{", 1, "a key in quotes or `}`"),
            ("{\"a\" 1}", 5, "`:`"),
            ("{\"a\":1 \"b\":2}", 7, "`,` or `}`"),
            ("[1 2]", 3, "`,` or `]`"),
            ("{} x", 3, "the end of the file"),
            ("\"a", 0, "the end of the string"),
            ("nul", 0, "a value"),
            ("/* x", 0, "the end of the comment"),
        ];
        for (text, at, expected) in table {
            assert_eq!(JsonNode::parse(text).unwrap_err(), JsonSyntaxError { at, expected }, "{text}");
        }
        assert_eq!(JsonNode::parse(&"[".repeat(100_000)).unwrap_err().expected, "fewer levels");
    }
}
