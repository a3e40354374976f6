//! Writes YAML for users: short values on one line, long ones in blocks, duplicate values as aliases, comments above
//! their keys.
//!
//! # Why not the serializer of serde-saphyr
//!
//! It cannot write comments between the elements of a list, nor `{ type: string }` on one line if it fits.

use std::collections::HashMap;
use std::fmt::Write;

use serde_json::{Map, Value};

/// Maximum length of a line; a longer value gets lines of its own.
const MAX_LINE_LENGTH: usize = 120;
/// Maximum length of a list or an object on one line.
const MAX_INLINE_LENGTH: usize = 88;
/// Maximum length of a key before a colon, in bytes. YAML parsers search at most 1024 characters for the colon.
const MAX_SIMPLE_KEY: usize = 1000;

/// A value of a file with its layout.
#[derive(Clone, Debug)]
pub(crate) enum YamlNode {
    /// Any value.
    Value(Value),
    /// Keys, in a block.
    Keys(Vec<YamlKey>),
    /// Elements, in a block.
    List(Vec<Element>),
}

/// A key with its value.
#[derive(Clone, Debug)]
pub(crate) struct YamlKey {
    /// The comment above it, one line for each line of the text; empty for none.
    pub(crate) comment: String,
    pub(crate) name: String,
    pub(crate) node: YamlNode,
}

/// An element of a list.
#[derive(Clone, Debug)]
pub(crate) struct Element {
    /// The comment above it.
    pub(crate) comment: String,
    pub(crate) node: YamlNode,
}

impl YamlKey {
    /// A key without a comment.
    pub(crate) fn new(name: &str, node: impl Into<YamlNode>) -> YamlKey {
        YamlKey { comment: String::new(), name: name.to_owned(), node: node.into() }
    }
}

impl<T: Into<Value>> From<T> for YamlNode {
    fn from(value: T) -> YamlNode {
        YamlNode::Value(value.into())
    }
}

/// Writes the text of a file of these keys.
pub(crate) fn to_yaml(keys: &[YamlKey]) -> String {
    let mut writer = YamlWriter { text: String::new(), anchors: Anchors::from_keys(keys) };
    writer.keys(keys, 0, LineStart::No);
    writer.text
}

/// Whether the first key is on a line that already has its indentation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineStart {
    Yes,
    No,
}

struct YamlWriter {
    text: String,
    anchors: Anchors,
}

impl YamlWriter {
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

    fn keys(&mut self, keys: &[YamlKey], depth: usize, start: LineStart) {
        for (at, key) in keys.iter().enumerate() {
            if at > 0 || start == LineStart::No {
                self.comment(&key.comment, depth);
                self.indent(depth);
            }
            self.key(&key.name, depth);
            self.node(&key.node, depth);
        }
    }

    fn fields(&mut self, fields: &Map<String, Value>, depth: usize, start: LineStart) {
        for (at, (name, value)) in fields.iter().enumerate() {
            if at > 0 || start == LineStart::No {
                self.indent(depth);
            }
            self.key(name, depth);
            self.value(value, depth);
        }
    }

    /// Writes `name:`. A key that is too long for that is written with a `?`:
    ///
    /// ```text
    /// ? "a very long name"
    /// :
    /// ```
    fn key(&mut self, name: &str, depth: usize) {
        let name = key_text(name);
        if name.len() > MAX_SIMPLE_KEY {
            self.text.push_str("? ");
            self.text.push_str(&name);
            self.text.push('\n');
            self.indent(depth);
        } else {
            self.text.push_str(&name);
        }
        self.text.push(':');
    }

    /// Writes the value behind a colon at `depth`.
    fn node(&mut self, node: &YamlNode, depth: usize) {
        match node {
            YamlNode::Value(value) => self.value(value, depth),
            YamlNode::Keys(keys) if keys.is_empty() => self.text.push_str(" {}\n"),
            YamlNode::Keys(keys) => {
                self.text.push('\n');
                self.keys(keys, depth + 1, LineStart::No);
            }
            YamlNode::List(elements) if elements.is_empty() => self.text.push_str(" []\n"),
            YamlNode::List(elements) => {
                self.text.push('\n');
                for Element { comment, node } in elements {
                    self.comment(comment, depth + 1);
                    self.indent(depth + 1);
                    self.text.push('-');
                    match node {
                        YamlNode::Keys(keys) if !keys.is_empty() => {
                            self.text.push(' ');
                            self.keys(keys, depth + 2, LineStart::Yes);
                        }
                        YamlNode::Value(value) => self.element(value, depth),
                        YamlNode::Keys(_) | YamlNode::List(_) => self.node(node, depth + 1),
                    }
                }
            }
        }
    }

    /// Writes a value behind the `-` of a list at `depth`.
    fn element(&mut self, value: &Value, depth: usize) {
        match value {
            Value::Object(fields) if !self.has_room(value) && !self.anchors.has(value) => {
                self.text.push(' ');
                self.fields(fields, depth + 2, LineStart::Yes);
            }
            _ => self.value(value, depth + 1),
        }
    }

    fn value(&mut self, value: &Value, depth: usize) {
        match self.anchors.take(value) {
            Some(AnchorUse::Alias(name)) => {
                self.text.push_str(&format!(" *{name}\n"));
                return;
            }
            Some(AnchorUse::Define(name)) => self.text.push_str(&format!(" &{name}")),
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
                None => self.line(&scalar(text, ScalarContext::Block)),
            },
            Value::Object(fields) if !fields.is_empty() && !self.has_room(value) => {
                self.text.push('\n');
                self.fields(fields, depth + 1, LineStart::No);
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

    /// Writes the rest of a line.
    fn line(&mut self, rest: &str) {
        self.text.push(' ');
        self.text.push_str(rest);
        self.text.push('\n');
    }

    /// Whether a list or an object fits on the current line.
    fn has_room(&self, value: &Value) -> bool {
        let start = self.text.rsplit('\n').next().map_or(0, |line| line.chars().count());
        let room = MAX_LINE_LENGTH.saturating_sub(start + 1).min(MAX_INLINE_LENGTH);
        // A long value is not rendered for this check.
        is_short(value, room) && flow(value).chars().count() <= room
    }
}

/// Minimum length of a duplicate value that is written as an alias.
const MIN_ALIASED_LENGTH: usize = 160;
/// Maximum number of aliased values. YAML readers limit the use of aliases.
const MAX_ANCHORS: usize = 200;
/// Maximum number of values that aliases repeat.
const MAX_REPEATED_VALUES: usize = 50_000;

/// The long values that occur more than once, and their anchors.
#[derive(Debug)]
pub(super) struct Anchors {
    names: HashMap<String, (String, bool)>,
}

/// A value with an anchor.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AnchorUse {
    /// The first occurrence, with its anchor: `&same-1`.
    Define(String),
    /// A later occurrence, as an alias: `*same-1`.
    Alias(String),
}

impl Anchors {
    /// Finds the values that occur more than once under these keys.
    pub(super) fn from_keys(keys: &[YamlKey]) -> Anchors {
        let mut seen = ValueCounts::default();
        keys.iter().for_each(|key| seen.node(&key.node));
        let ValueCounts { counts, order } = seen;
        let mut left = MAX_REPEATED_VALUES;
        let affordable = |(text, nodes): &(String, usize)| {
            let again = counts.get(text).map_or(0, |count| count - 1);
            let rest = left.checked_sub(again * nodes).filter(|_| again > 0);
            left = rest.unwrap_or(left);
            rest.is_some()
        };
        let named = order.into_iter().filter(affordable).take(MAX_ANCHORS).enumerate();
        let named = named.map(|(at, (text, _))| (text, (format!("same-{}", at + 1), false)));
        Anchors { names: named.collect() }
    }

    /// Whether a value has an anchor.
    pub(super) fn has(&self, value: &Value) -> bool {
        !self.names.is_empty() && alias_key(value).is_some_and(|key| self.names.contains_key(&key))
    }

    /// The anchor or alias of a value that is about to be written, if it has one.
    pub(super) fn take(&mut self, value: &Value) -> Option<AnchorUse> {
        if self.names.is_empty() {
            return None;
        }
        let (name, written) = self.names.get_mut(&alias_key(value)?)?;
        if std::mem::replace(written, true) {
            return Some(AnchorUse::Alias(name.clone()));
        }
        Some(AnchorUse::Define(name.clone()))
    }
}

#[derive(Default)]
struct ValueCounts {
    counts: HashMap<String, usize>,
    order: Vec<(String, usize)>,
}

impl ValueCounts {
    fn node(&mut self, node: &YamlNode) {
        match node {
            YamlNode::Value(value) => self.value(value),
            YamlNode::Keys(keys) => keys.iter().for_each(|key| self.node(&key.node)),
            YamlNode::List(elements) => elements.iter().for_each(|element| self.node(&element.node)),
        }
    }

    /// Counts a value that is long enough for an alias. The contents of a value that was counted before are skipped,
    /// because they are not written again.
    fn value(&mut self, value: &Value) {
        if let Some(key) = alias_key(value) {
            let seen = self.counts.entry(key.clone()).or_insert(0);
            *seen += 1;
            if *seen > 1 {
                return;
            }
            self.order.push((key, nodes(value)));
        }
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.value(item)),
            Value::Object(fields) => fields.values().for_each(|item| self.value(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

fn nodes(value: &Value) -> usize {
    match value {
        Value::Array(items) => 2 + items.iter().map(nodes).sum::<usize>(),
        Value::Object(fields) => 2 + fields.values().map(|value| 1 + nodes(value)).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

/// The key of a value, if it is long enough for an alias.
fn alias_key(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => (text.len() >= MIN_ALIASED_LENGTH).then(|| format!("\"{text}")),
        Value::Array(_) | Value::Object(_) => {
            let text = value.to_string();
            (text.len() >= MIN_ALIASED_LENGTH).then_some(text)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// The context of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScalarContext {
    /// On a line of its own, or behind a key.
    Block,
    /// Between brackets.
    Line,
}

/// Writes a value on one line: `{ type: object, required: [city] }`.
pub(super) fn flow(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => scalar(text, ScalarContext::Line),
        Value::Array(elements) => format!("[{}]", elements.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) if fields.is_empty() => "{}".to_owned(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| format!("{}: {}", key_text(name), flow(value)));
            format!("{{ {} }}", fields.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Whether a value may fit on one line, and contains nothing that needs several lines.
pub(super) fn is_short(value: &Value, room: usize) -> bool {
    fn left(value: &Value, room: usize) -> Option<usize> {
        match value {
            Value::String(text) => room.checked_sub(text.len().div_ceil(4)).filter(|_| literal_block(text).is_none()),
            Value::Array(elements) => elements.iter().try_fold(room, |room, element| left(element, room)),
            Value::Object(fields) => fields.values().try_fold(room, |room, value| left(value, room)),
            Value::Null | Value::Bool(_) | Value::Number(_) => room.checked_sub(1),
        }
    }
    left(value, room).is_some()
}

/// Writes the name of a key.
pub(super) fn key_text(name: &str) -> String {
    let legal = |c: char| c.is_ascii_alphanumeric() || "_-./$".contains(c);
    let first = |c: char| c.is_ascii_alphabetic() || "_$".contains(c);
    if name.starts_with(first) && name.chars().all(legal) && !is_ambiguous(name) {
        name.to_owned()
    } else {
        quoted(name)
    }
}

/// Writes a text without quotes if it is unambiguous, and otherwise in quotes.
pub(super) fn scalar(text: &str, context: ScalarContext) -> String {
    let quiet = |c: char| c.is_alphanumeric() || " _-./()'+=;!@".contains(c);
    let loud = |c: char| context == ScalarContext::Block && ",?$&*".contains(c);
    let plain = text.starts_with(|c: char| c.is_alphabetic() || "_/".contains(c))
        && !text.ends_with(' ')
        && text.chars().all(|c| quiet(c) || loud(c));
    if plain && !is_ambiguous(text) || is_time(text) { text.to_owned() } else { quoted(text) }
}

/// Whether a word is a duration such as `20ms`, which is not a number in any version of YAML.
fn is_time(text: &str) -> bool {
    text.strip_suffix("ms").is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit()))
}

/// Whether a word without quotes would not be a text, in this version of YAML or in an older one.
fn is_ambiguous(word: &str) -> bool {
    let words = ["null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf", "infinity", "none"];
    words.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// Writes a text in double quotes. YAML supports the escapes of JSON; a few more characters need an escape in YAML.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    for c in Value::from(text).to_string().chars() {
        if is_hidden(c) {
            // Writing to a `String` never fails.
            let _ = match u32::from(c) {
                code @ ..=0xffff => write!(quoted, "\\u{code:04x}"),
                code => write!(quoted, "\\U{code:08x}"),
            };
        } else {
            quoted.push(c);
        }
    }
    quoted
}

/// Whether a character is invisible, or would end a line.
fn is_hidden(c: char) -> bool {
    c.is_control() || matches!(u32::from(c), 0x2028 | 0x2029 | 0xfeff | 0xfffe | 0xffff | 0xe000..=0xf8ff)
}

/// The lines of a text that can be a literal block, and the indicator before them.
pub(super) fn literal_block(text: &str) -> Option<(&'static str, std::str::Split<'_, char>)> {
    let body = text.trim_end_matches('\n');
    let (mark, lines) = match text.len() - body.len() {
        0 => (" |-\n", body),
        1 => (" |\n", body),
        more => (" |+\n", &text[..body.len() + more - 1]),
    };
    let blank = |line: &str| !line.is_empty() && line.chars().all(|c| c == ' ' || c == '\t');
    let fits = body.contains('\n')
        && !body.starts_with(['\n', ' ', '\t'])
        && !body.chars().any(|c| c != '\n' && c != '\t' && is_hidden(c))
        && !body.split('\n').any(blank);
    fits.then(|| (mark, lines.split('\n')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::read;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    #[test]
    fn short_values_are_on_one_line_and_long_ones_in_blocks() {
        let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
        let long = json!({"type": "object", "properties": {"city": {"type": "string", "description": "x".repeat(60)}, "no": {"enum": [1, 2.5, "yes", "1"]}}});
        let keys = [
            YamlKey { comment: "Two lines\n\nof text".to_owned(), ..YamlKey::new("input_schema", schema) },
            YamlKey::new("output_schema", long),
            YamlKey::new("text", "one\n\n  two\n"),
            YamlKey::new(
                "answers",
                YamlNode::List(vec![Element {
                    comment: "The first".to_owned(),
                    node: YamlNode::Keys(vec![
                        YamlKey::new("when", json!({"a b": "x: y"})),
                        YamlKey::new("text", "{{ a }}"),
                    ]),
                }]),
            ),
        ];
        insta::assert_snapshot!(to_yaml(&keys), @r#"
        # Two lines
        #
        # of text
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
    fn a_key_of_any_length_survives_a_round_trip() {
        let long = "x".repeat(5000);
        let marks = ["", "a", "\n", "\"", "'", ": ", " #", "- ", "? ", "-", "?", ":", "😀", "&a", "*", "{", "[", "%"];
        for mark in marks {
            for key in [format!("{mark}{long}"), format!("{long}{mark}"), mark.repeat(600), mark.to_owned()] {
                let value = json!({key.clone(): {key.clone(): [{key.clone(): 1, "b": key}, [{key.clone(): "a\nb"}]]}});
                let keys = [YamlKey::new(&key, value.clone()), YamlKey::new("same", json!([value, value]))];
                let written = to_yaml(&keys);
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
        fn any_value_survives_a_round_trip(value in any_json(), text in "(\\PC|[ \n\t#:'\"-])*") {
            let keys = [
                YamlKey::new("value", value.clone()),
                YamlKey::new("text", text.as_str()),
                YamlKey::new("list", json!([[value], {text.clone(): [text.clone()]}])),
            ];
            let written = to_yaml(&keys);
            let again: Value = read("m.yaml", &written).map_err(|error| TestCaseError::fail(format!("{error}\n{written}")))?;
            prop_assert_eq!(again, json!({"value": value, "text": text, "list": [[value], {text.clone(): [text]}]}), "{}", written);
        }
    }

    #[test]
    fn a_long_duplicate_value_is_written_as_an_alias() {
        let image = "iVBORw0KGgo".repeat(20);
        let schema = json!({"type": "object", "properties": {"a": {"description": "word ".repeat(40)}}});
        let list = json!([{"n": 1, "data": image, "schema": schema}, {"n": 2, "data": image, "schema": schema}]);
        let text = to_yaml(&[YamlKey::new("list", list.clone())]);
        assert_eq!(text.matches("iVBORw0KGgo").count(), 20, "{text}");
        assert!(text.contains("data: &same-1 ") && text.contains("data: *same-1\n"), "{text}");
        assert_eq!(read::<Value>("m.yaml", &text).unwrap(), json!({"list": list}));
    }

    #[test]
    fn any_text_survives_a_round_trip() {
        let marks =
            ["", " ", "\n", "\t", "a", "- ", ": ", "#", "'", "\"", "\\", "{{ x }}", "%", "&a", "*", "|", ">", "!"];
        let more =
            ["\r", "\u{85}", "\u{2028}", "\u{feff}", "\0", "é", "😀", "\u{7f}", "---\n", "...\n", "0x1f", "1e3", "~"];
        let marks: Vec<&str> = marks.into_iter().chain(more).collect();
        for one in &marks {
            for two in &marks {
                for three in ["", "a", "\n", "\n\n", " b\n c", "\na"] {
                    let text = format!("{one}{two}{three}");
                    let value = json!({text.clone(): [text, {"in": text}]});
                    let written = to_yaml(&[YamlKey::new("k", text.as_str()), YamlKey::new("v", value.clone())]);
                    let again: Value = read("m.yaml", &written).unwrap_or_else(|error| panic!("{error}\n{written}"));
                    assert_eq!(again, json!({"k": text, "v": value}), "{text:?}");
                }
            }
        }
    }
}
