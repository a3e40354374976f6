//! YAML as people would write it: short things on one line, long ones in blocks, comments above what they are about.
//!
//! # Why not the serializer of serde-saphyr
//!
//! It has no comments between the elements of a list, and no way to write `{ type: string }` on one line where it fits.

use serde_json::Value;

/// How long a line may be before what is in it gets lines of its own.
const WIDTH: usize = 120;
/// How long a list or an object on one line may be.
const ON_ONE_LINE: usize = 88;

/// What stands in a file.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// Any value.
    Value(Value),
    /// Keys, in a block.
    Keys(Vec<Key>),
    /// Elements, in a block.
    List(Vec<Element>),
}

/// A key with what stands behind it.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    /// Stands above it, a line each; empty for none.
    pub(crate) comment: String,
    pub(crate) name: String,
    pub(crate) node: Node,
}

/// An element of a list.
#[derive(Clone, Debug)]
pub(crate) struct Element {
    /// Stands above it.
    pub(crate) comment: String,
    pub(crate) node: Node,
}

impl Key {
    /// A key without a comment.
    pub(crate) fn new(name: &str, node: impl Into<Node>) -> Key {
        Key { comment: String::new(), name: name.to_owned(), node: node.into() }
    }
}

impl<T: Into<Value>> From<T> for Node {
    fn from(value: T) -> Node {
        Node::Value(value.into())
    }
}

/// The text of a file of these keys.
pub(crate) fn written(keys: &[Key]) -> String {
    let mut page = Page { text: String::new() };
    page.keys(keys, 0, false);
    page.text
}

struct Page {
    text: String,
}

impl Page {
    fn indent(&mut self, depth: usize) {
        self.text.extend(std::iter::repeat_n("  ", depth));
    }

    fn comment(&mut self, comment: &str, depth: usize) {
        for line in comment.lines() {
            self.indent(depth);
            self.text.push_str(if line.is_empty() { "#" } else { "# " });
            self.text.push_str(line);
            self.text.push('\n');
        }
    }

    /// `begun`: the first key stands on a line that has its indentation already.
    fn keys(&mut self, keys: &[Key], depth: usize, begun: bool) {
        for (at, key) in keys.iter().enumerate() {
            if !(begun && at == 0) {
                self.comment(&key.comment, depth);
                self.indent(depth);
            }
            self.text.push_str(&key_text(&key.name));
            self.text.push(':');
            self.node(&key.node, depth);
        }
    }

    /// What stands behind a colon at `depth`.
    fn node(&mut self, node: &Node, depth: usize) {
        match node {
            Node::Value(value) => self.value(value, depth),
            Node::Keys(keys) if keys.is_empty() => self.text.push_str(" {}\n"),
            Node::Keys(keys) => {
                self.text.push('\n');
                self.keys(keys, depth + 1, false);
            }
            Node::List(elements) if elements.is_empty() => self.text.push_str(" []\n"),
            Node::List(elements) => {
                self.text.push('\n');
                for Element { comment, node } in elements {
                    self.comment(comment, depth + 1);
                    self.indent(depth + 1);
                    self.text.push('-');
                    match node {
                        Node::Keys(keys) if !keys.is_empty() => {
                            self.text.push(' ');
                            self.keys(keys, depth + 2, true);
                        }
                        Node::Keys(_) | Node::Value(_) | Node::List(_) => self.node(node, depth + 1),
                    }
                }
            }
        }
    }

    fn value(&mut self, value: &Value, depth: usize) {
        if let Value::String(text) = value
            && let Some((mark, lines)) = literal_block(text)
        {
            self.text.push_str(mark);
            for line in lines {
                if !line.is_empty() {
                    self.indent(depth + 1);
                    self.text.push_str(line);
                }
                self.text.push('\n');
            }
            return;
        }
        let (limit, whole) = (self.room(value), flow(value));
        if whole.chars().count() <= limit {
            self.text.push(' ');
            self.text.push_str(&whole);
            self.text.push('\n');
            return;
        }
        match value {
            Value::Object(fields) => {
                let key = |(name, value): (&String, &Value)| Key::new(name, value.clone());
                self.node(&Node::Keys(fields.iter().map(key).collect()), depth);
            }
            Value::Array(elements) => {
                let element = |value: &Value| match value {
                    Value::Object(fields) if flow(value).len() > ON_ONE_LINE => {
                        let key = |(name, value): (&String, &Value)| Key::new(name, value.clone());
                        Node::Keys(fields.iter().map(key).collect())
                    }
                    _ => value.clone().into(),
                };
                let elements = elements.iter().map(|it| Element { comment: String::new(), node: element(it) });
                self.node(&Node::List(elements.collect()), depth);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                self.text.push(' ');
                self.text.push_str(&whole);
                self.text.push('\n');
            }
        }
    }

    /// How much of a value has room on the line that was begun.
    fn room(&self, value: &Value) -> usize {
        let begun = self.text.rsplit('\n').next().map_or(0, |line| line.chars().count());
        let left = WIDTH.saturating_sub(begun + 1);
        if value.is_object() || value.is_array() { left.min(ON_ONE_LINE) } else { left }
    }
}

/// A value on one line: `{ type: object, required: [city] }`.
fn flow(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => scalar(text),
        Value::Array(elements) => format!("[{}]", elements.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) if fields.is_empty() => "{}".to_owned(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| format!("{}: {}", key_text(name), flow(value)));
            format!("{{ {} }}", fields.collect::<Vec<_>>().join(", "))
        }
    }
}

fn key_text(name: &str) -> String {
    let legal = |c: char| c.is_ascii_alphanumeric() || "_-./$".contains(c);
    let first = |c: char| c.is_ascii_alphabetic() || "_$".contains(c);
    if name.starts_with(first) && name.chars().all(legal) && !means_something(name) {
        name.to_owned()
    } else {
        quoted(name)
    }
}

/// A text as it is where nobody can take it for something else, and in quotes otherwise.
fn scalar(text: &str) -> String {
    let legal = |c: char| c.is_alphanumeric() || " _-./()'+=;!".contains(c);
    let plain = text.starts_with(char::is_alphabetic) && !text.ends_with(' ') && text.chars().all(legal);
    if plain && !means_something(text) || is_time(text) { text.to_owned() } else { quoted(text) }
}

/// `20ms`, which is no number in any version of YAML.
fn is_time(text: &str) -> bool {
    text.strip_suffix("ms").is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit()))
}

/// Whether a word without quotes would be no text, in this version of YAML or in an older one.
fn means_something(word: &str) -> bool {
    let words = ["null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf", "infinity"];
    words.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// In double quotes. What JSON escapes YAML understands; a few more characters would not be read as they are.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    for c in Value::from(text).to_string().chars() {
        match c {
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            _ => quoted.push(c),
        }
    }
    quoted
}

/// The lines of a text that can stand as they are, and the mark before them.
fn literal_block(text: &str) -> Option<(&'static str, std::str::Split<'_, char>)> {
    let (mark, body) = match text.strip_suffix('\n') {
        Some(body) => (" |\n", body),
        None => (" |-\n", text),
    };
    let readable = |c: char| c == '\n' || !(c.is_control() || "\u{2028}\u{2029}\u{feff}\u{fffe}\u{ffff}".contains(c));
    let bare = |line: &str| line.is_empty() || !line.trim().is_empty();
    let fits = body.contains('\n')
        && !body.ends_with('\n')
        && !body.starts_with([' ', '\n'])
        && body.chars().all(readable)
        && body.split('\n').all(bare);
    fits.then(|| (mark, body.split('\n')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::read;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn short_things_stand_on_one_line_and_long_ones_in_blocks() {
        let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
        let long = json!({"type": "object", "properties": {"city": {"type": "string", "description": "x".repeat(60)}, "no": {"enum": [1, 2.5, "yes", "1"]}}});
        let keys = [
            Key { comment: "Two lines\n\nof words".to_owned(), ..Key::new("input_schema", schema) },
            Key::new("output_schema", long),
            Key::new("text", "one\n\n  two\n"),
            Key::new(
                "answers",
                Node::List(vec![Element {
                    comment: "The first".to_owned(),
                    node: Node::Keys(vec![Key::new("when", json!({"a b": "x: y"})), Key::new("text", "{{ a }}")]),
                }]),
            ),
        ];
        insta::assert_snapshot!(written(&keys), @r#"
        # Two lines
        #
        # of words
        input_schema: { type: object, properties: { city: { type: string } }, required: [city] }
        output_schema:
          type: object
          properties:
            city:
              type: string
              description: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
            "no": { enum: [1, 2.5, "yes", "1"] }
        text: |
          one

            two
        answers:
          # The first
          - when: { "a b": "x: y" }
            text: "{{ a }}"
        "#);
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let words = [
            "", "no", "1", "~", "a b", "a: b", "- a", "#", "{{ x }}", "é", "\u{2028}", "it's", "a\nb", "\t", "null",
            "0x1f", "1e3",
        ];
        let scalar = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_filter("JSON has no others", |it| it.is_finite()).prop_map(Value::from),
            prop::sample::select(words.to_vec()).prop_map(Value::from),
            "\\PC*".prop_map(Value::from),
        ];
        scalar.prop_recursive(4, 24, 4, |inner| {
            let fields = prop::collection::btree_map("\\PC{0,12}", inner.clone(), 0..4);
            prop_oneof![
                prop::collection::vec(inner, 0..4).prop_map(Value::from),
                fields.prop_map(|fields| fields.into_iter().collect::<serde_json::Map<_, _>>().into()),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(value in any_json(), text in "(\\PC|[ \n\t#:'\"-])*") {
            let keys = [
                Key::new("value", value.clone()),
                Key::new("text", text.as_str()),
                Key::new("list", json!([[value], {text.clone(): [text.clone()]}])),
            ];
            let written = written(&keys);
            let again: Value = read("m.yaml", &written).map_err(|error| TestCaseError::fail(format!("{error}\n{written}")))?;
            prop_assert_eq!(again, json!({"value": value, "text": text, "list": [[value], {text.clone(): [text]}]}), "{}", written);
        }
    }
}
