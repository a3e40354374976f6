//! Keys and lists, one below the other.

use serde_json::{Map, Value};

use super::names::{Named, Names};
use super::text::{Place, flow, is_short, key_text, literal_block, scalar};

/// How long a line may be before what is in it gets lines of its own.
const WIDTH: usize = 120;
/// How long a list or an object on one line may be.
const ON_ONE_LINE: usize = 88;
/// How long a key before a colon may be, in bytes. YAML looks no further than 1024 characters for the colon.
const SIMPLE_KEY: usize = 1000;

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
    let mut page = Page { text: String::new(), names: Names::of(keys) };
    page.keys(keys, 0, Begun::No);
    page.text
}

/// Whether the first key stands on a line that has its indentation already.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Begun {
    Yes,
    No,
}

struct Page {
    text: String,
    names: Names,
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

    fn keys(&mut self, keys: &[Key], depth: usize, begun: Begun) {
        for (at, key) in keys.iter().enumerate() {
            if at > 0 || begun == Begun::No {
                self.comment(&key.comment, depth);
                self.indent(depth);
            }
            self.key(&key.name, depth);
            self.node(&key.node, depth);
        }
    }

    fn fields(&mut self, fields: &Map<String, Value>, depth: usize, begun: Begun) {
        for (at, (name, value)) in fields.iter().enumerate() {
            if at > 0 || begun == Begun::No {
                self.indent(depth);
            }
            self.key(name, depth);
            self.value(value, depth);
        }
    }

    /// `name:`, or for one that is too long for that
    ///
    /// ```text
    /// ? "a very long name"
    /// :
    /// ```
    fn key(&mut self, name: &str, depth: usize) {
        let name = key_text(name);
        if name.len() > SIMPLE_KEY {
            self.text.push_str("? ");
            self.text.push_str(&name);
            self.text.push('\n');
            self.indent(depth);
        } else {
            self.text.push_str(&name);
        }
        self.text.push(':');
    }

    /// What stands behind a colon at `depth`.
    fn node(&mut self, node: &Node, depth: usize) {
        match node {
            Node::Value(value) => self.value(value, depth),
            Node::Keys(keys) if keys.is_empty() => self.text.push_str(" {}\n"),
            Node::Keys(keys) => {
                self.text.push('\n');
                self.keys(keys, depth + 1, Begun::No);
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
                            self.keys(keys, depth + 2, Begun::Yes);
                        }
                        Node::Value(value) => self.element(value, depth),
                        Node::Keys(_) | Node::List(_) => self.node(node, depth + 1),
                    }
                }
            }
        }
    }

    /// A value behind the `-` of a list at `depth`.
    fn element(&mut self, value: &Value, depth: usize) {
        match value {
            Value::Object(fields) if !self.has_room(value) && !self.names.has(value) => {
                self.text.push(' ');
                self.fields(fields, depth + 2, Begun::Yes);
            }
            _ => self.value(value, depth + 1),
        }
    }

    fn value(&mut self, value: &Value, depth: usize) {
        match self.names.take(value) {
            Some(Named::Again(name)) => {
                self.text.push_str(&format!(" *{name}\n"));
                return;
            }
            Some(Named::First(name)) => self.text.push_str(&format!(" &{name}")),
            None => {}
        }
        match value {
            Value::String(text) => match literal_block(text) {
                Some((mark, lines)) => {
                    self.text.push_str(mark);
                    for line in lines {
                        if !line.is_empty() {
                            self.indent(depth + 1);
                            self.text.push_str(line);
                        }
                        self.text.push('\n');
                    }
                }
                None => self.line(&scalar(text, Place::Block)),
            },
            Value::Object(fields) if !fields.is_empty() && !self.has_room(value) => {
                self.text.push('\n');
                self.fields(fields, depth + 1, Begun::No);
            }
            Value::Array(elements) if !elements.is_empty() && !self.has_room(value) => {
                self.text.push('\n');
                for element in elements {
                    self.indent(depth + 1);
                    self.text.push('-');
                    self.element(element, depth);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) | Value::Array(_) => {
                self.line(&flow(value));
            }
        }
    }

    /// The rest of a line.
    fn line(&mut self, rest: &str) {
        self.text.push(' ');
        self.text.push_str(rest);
        self.text.push('\n');
    }

    /// Whether a list or an object has room on the line that was begun.
    fn has_room(&self, value: &Value) -> bool {
        let begun = self.text.rsplit('\n').next().map_or(0, |line| line.chars().count());
        let room = WIDTH.saturating_sub(begun + 1).min(ON_ONE_LINE);
        // What is long is not written down to see that it is.
        is_short(value, room) && flow(value).chars().count() <= room
    }
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

    #[test]
    fn a_key_of_any_length_is_read_again() {
        let long = "x".repeat(5000);
        let marks = ["", "a", "\n", "\"", "'", ": ", " #", "- ", "? ", "-", "?", ":", "😀", "&a", "*", "{", "[", "%"];
        for mark in marks {
            for key in [format!("{mark}{long}"), format!("{long}{mark}"), mark.repeat(600), mark.to_owned()] {
                let value = json!({key.clone(): {key.clone(): [{key.clone(): 1, "b": key}, [{key.clone(): "a\nb"}]]}});
                let keys = [Key::new(&key, value.clone()), Key::new("same", json!([value, value]))];
                let written = written(&keys);
                let again: Value = read("m.yaml", &written).unwrap_or_else(|error| panic!("{error}\n{written}"));
                assert_eq!(again, json!({key: value, "same": [value, value]}), "{written}");
            }
        }
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
