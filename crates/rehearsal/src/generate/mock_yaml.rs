//! A mock file as YAML that people like to read.
//!
//! ```text
//! Value ──► blocks of keys and lists; what is short in one line; long texts line by line; what stands twice named once
//! ```

use std::collections::HashMap;
use std::fmt::Write;

use serde_json::{Map, Value};

/// How long a list or an object may be to stand in one line.
const LINE: usize = 80;
/// From which length on something that stands more than once is written once and referred to.
const WORTH_NAMING: usize = 160;
/// How many different things are named, and how many values referring to them may bring in again; a reader has limits.
const NAMES: usize = 200;
const BROUGHT_IN: usize = 50_000;

/// The value as YAML. Keys keep their order.
///
/// ```text
/// tools:
///   - name: echo
///     input_schema: { type: object }
///     answers:
///       - when: { message: hello }
///         text: |-
///           two
///           lines
/// ```
pub fn mock_yaml(value: &Value) -> String {
    let mut writer = Writer { out: String::new(), names: Names::of(value) };
    match value {
        Value::Object(fields) if !fields.is_empty() => writer.fields(fields, 0, Begun::No),
        Value::Array(items) if !items.is_empty() => writer.items(items, 0),
        scalar => writer.out.push_str(&one_line(scalar)),
    }
    if !writer.out.ends_with('\n') {
        writer.out.push('\n');
    }
    writer.out
}

/// Whether the first field stands on a line that has begun, behind `- `.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Begun {
    Yes,
    No,
}

struct Writer {
    out: String,
    names: Names,
}

impl Writer {
    fn fields(&mut self, fields: &Map<String, Value>, depth: usize, begun: Begun) {
        for (at, (key, value)) in fields.iter().enumerate() {
            if at > 0 || begun == Begun::No {
                self.indent(depth);
            }
            self.out.push_str(&text_in(key, Place::Block));
            self.out.push(':');
            self.value(value, depth + 1);
        }
    }

    fn items(&mut self, items: &[Value], depth: usize) {
        for item in items {
            self.indent(depth);
            self.out.push('-');
            match item {
                Value::Object(fields) if !fields.is_empty() && !fits(item) && !self.names.has(item) => {
                    self.out.push(' ');
                    self.fields(fields, depth + 1, Begun::Yes);
                }
                _ => self.value(item, depth + 1),
            }
        }
    }

    /// What stands behind `key:` or `-`, with the end of the line.
    fn value(&mut self, value: &Value, depth: usize) {
        match self.names.take(value) {
            Some(Named::Again(name)) => {
                let _ = writeln!(self.out, " *{name}");
                return;
            }
            Some(Named::First(name)) => {
                let _ = write!(self.out, " &{name}");
            }
            None => {}
        }
        match value {
            Value::String(text) if is_literal(text) => self.literal(text, depth),
            Value::Object(fields) if !fields.is_empty() && !fits(value) => {
                self.out.push('\n');
                self.fields(fields, depth, Begun::No);
            }
            Value::Array(items) if !items.is_empty() && !fits(value) => {
                self.out.push('\n');
                self.items(items, depth);
            }
            short => {
                let _ = writeln!(self.out, " {}", one_line(short));
            }
        }
    }

    /// A text line by line.
    fn literal(&mut self, text: &str, depth: usize) {
        let body = text.trim_end_matches('\n');
        let mark = match text.len() - body.len() {
            0 => " |-",
            1 => " |",
            _ => " |+",
        };
        self.out.push_str(mark);
        self.out.push('\n');
        for line in body.split('\n') {
            if !line.is_empty() {
                self.indent(depth);
                self.out.push_str(line);
            }
            self.out.push('\n');
        }
        for _ in 1..text.len() - body.len() {
            self.out.push('\n');
        }
    }

    fn indent(&mut self, depth: usize) {
        (0..depth).for_each(|_| self.out.push_str("  "));
    }
}

/// Long values that stand more than once, and what they are called.
struct Names {
    names: HashMap<String, (String, bool)>,
}

enum Named {
    First(String),
    Again(String),
}

impl Names {
    fn of(value: &Value) -> Names {
        let (mut counts, mut order) = (HashMap::new(), Vec::new());
        count(value, &mut counts, &mut order);
        let mut left = BROUGHT_IN;
        let affordable = |(text, nodes): &(String, usize)| {
            let again = counts.get(text).map_or(0, |count| count - 1);
            let rest = left.checked_sub(again * nodes).filter(|_| again > 0);
            left = rest.unwrap_or(left);
            rest.is_some()
        };
        let named = order.into_iter().filter(affordable).take(NAMES).enumerate();
        let named = named.map(|(at, (text, _))| (text, (format!("same-{}", at + 1), false)));
        Names { names: named.collect() }
    }

    fn has(&self, value: &Value) -> bool {
        !self.names.is_empty() && key(value).is_some_and(|key| self.names.contains_key(&key))
    }

    fn take(&mut self, value: &Value) -> Option<Named> {
        if self.names.is_empty() {
            return None;
        }
        let (name, written) = self.names.get_mut(&key(value)?)?;
        if std::mem::replace(written, true) {
            return Some(Named::Again(name.clone()));
        }
        Some(Named::First(name.clone()))
    }
}

/// Counts what is worth a name. What is inside of something that was counted before is not counted again: it is not
/// written again either.
fn count(value: &Value, counts: &mut HashMap<String, usize>, order: &mut Vec<(String, usize)>) {
    if let Some(key) = key(value) {
        let seen = counts.entry(key.clone()).or_insert(0);
        *seen += 1;
        if *seen > 1 {
            return;
        }
        order.push((key, nodes(value)));
    }
    match value {
        Value::Array(items) => items.iter().for_each(|item| count(item, counts, order)),
        Value::Object(fields) => fields.values().for_each(|item| count(item, counts, order)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn nodes(value: &Value) -> usize {
    match value {
        Value::Array(items) => 2 + items.iter().map(nodes).sum::<usize>(),
        Value::Object(fields) => 2 + fields.values().map(|value| 1 + nodes(value)).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

/// What a value is known by, where it is worth a name.
fn key(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => (text.len() >= WORTH_NAMING).then(|| format!("\"{text}")),
        Value::Array(_) | Value::Object(_) => {
            let text = value.to_string();
            (text.len() >= WORTH_NAMING).then_some(text)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Whether a list or an object is short enough for one line, and has nothing in it that wants several.
fn fits(value: &Value) -> bool {
    fn plain(value: &Value) -> bool {
        match value {
            Value::String(text) => !is_literal(text),
            Value::Array(items) => items.iter().all(plain),
            Value::Object(fields) => fields.values().all(plain),
            Value::Null | Value::Bool(_) | Value::Number(_) => true,
        }
    }
    plain(value) && size(value, LINE).is_some() && one_line(value).chars().count() <= LINE
}

/// About how long a value is on one line; `None` where that is more than there is room for.
fn size(value: &Value, room: usize) -> Option<usize> {
    let inner = |lengths: &mut dyn Iterator<Item = (usize, &Value)>| {
        let mut left = room;
        for (key, value) in lengths {
            left = left.checked_sub(key)?;
            left = left.checked_sub(size(value, left)?)?;
        }
        Some(room - left)
    };
    match value {
        Value::String(text) => (text.len() <= room).then_some(text.len()),
        Value::Array(items) => inner(&mut items.iter().map(|item| (0, item))),
        Value::Object(fields) => inner(&mut fields.iter().map(|(key, value)| (key.len(), value))),
        Value::Null | Value::Bool(_) | Value::Number(_) => Some(1).filter(|size| *size <= room),
    }
}

/// A value in one line: `{ city: Oslo, days: [1, 2] }`.
fn one_line(value: &Value) -> String {
    fn write(value: &Value, place: Place, out: &mut String) {
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                out.push_str("{ ");
                for (at, (key, value)) in fields.iter().enumerate() {
                    out.push_str(if at > 0 { ", " } else { "" });
                    out.push_str(&text_in(key, Place::Line));
                    out.push_str(": ");
                    write(value, Place::Line, out);
                }
                out.push_str(" }");
            }
            Value::Array(items) if !items.is_empty() => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    out.push_str(if at > 0 { ", " } else { "" });
                    write(item, Place::Line, out);
                }
                out.push(']');
            }
            Value::String(text) => out.push_str(&text_in(text, place)),
            other => out.push_str(&other.to_string()),
        }
    }
    let mut out = String::new();
    write(value, Place::Block, &mut out);
    out
}

/// Where a scalar stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// On a line of its own, or behind a key.
    Block,
    /// Between brackets.
    Line,
}

/// Words that some reader of YAML takes for something else.
const WORDS: [&str; 13] =
    ["true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf", "infinity", "none"];

/// A text without quotes where it can be, otherwise with.
fn text_in(text: &str, place: Place) -> String {
    let mut chars = text.chars();
    let first = chars.next().is_some_and(|first| first.is_alphabetic() || "_/".contains(first));
    let quiet = |c: char| c.is_alphanumeric() || "_-./()'+=@ ".contains(c);
    let loud = |c: char| place == Place::Block && ",!?;$&*".contains(c);
    let plain = first
        && chars.all(|c| quiet(c) || loud(c))
        && !text.ends_with(' ')
        && !WORDS.contains(&text.to_ascii_lowercase().as_str());
    if plain { text.to_owned() } else { quoted(text) }
}

/// Between double quotes, as JSON does it, and with the characters that YAML allows only so.
fn quoted(text: &str) -> String {
    let mut out = String::new();
    for c in Value::from(text).to_string().chars() {
        if is_hidden(c) {
            let _ = match u32::from(c) {
                code @ ..=0xffff => write!(out, "\\u{code:04x}"),
                code => write!(out, "\\U{code:08x}"),
            };
        } else {
            out.push(c);
        }
    }
    out
}

/// What cannot be seen, or would end a line.
fn is_hidden(c: char) -> bool {
    c.is_control() || matches!(u32::from(c), 0x2028 | 0x2029 | 0xfeff | 0xfffe | 0xffff | 0xe000..=0xf8ff)
}

/// Whether a text is written line by line, and comes back as it was.
fn is_literal(text: &str) -> bool {
    let body = text.trim_end_matches('\n');
    let blank = |line: &str| !line.is_empty() && line.chars().all(|c| c == ' ' || c == '\t');
    body.contains('\n')
        && !body.starts_with(['\n', ' ', '\t'])
        && !text.chars().any(|c| c != '\n' && c != '\t' && is_hidden(c))
        && !body.split('\n').any(blank)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read_back(value: &Value) -> Value {
        let text = mock_yaml(value);
        rehearsal_core::script::read("m.yaml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    #[test]
    fn what_is_short_stands_in_one_line_and_what_has_lines_in_several() {
        let long = "a long text that says more than fits in a line and therefore stands in one of its own";
        let mock = json!({
            "server": {"name": "weather", "version": "1.0"},
            "tools": [{"name": "echo", "answers": [
                {"when": {"message": "hello", "days": [1, 2.5], "deep": {"a": null}}, "text": "two\nlines\n"},
                {"text": "yes"},
                {"text": "a: b # c"},
                {"text": "x\n\n  y"},
                {"text": long},
                {"text": ""},
            ]}],
        });
        insta::assert_snapshot!(mock_yaml(&mock), @r#"
        server: { name: weather, version: "1.0" }
        tools:
          - name: echo
            answers:
              - when: { message: hello, days: [1, 2.5], deep: { a: null } }
                text: |
                  two
                  lines
              - { text: "yes" }
              - { text: "a: b # c" }
              - text: |-
                  x

                    y
              - text: a long text that says more than fits in a line and therefore stands in one of its own
              - { text: "" }
        "#);
        assert_eq!(read_back(&mock), mock);
    }

    #[test]
    fn what_stands_twice_is_written_once() {
        let picture = "iVBORw0KGgo".repeat(20);
        let schema = json!({"type": "object", "properties": {"a": {"description": "word ".repeat(40)}}});
        let mock = json!([{"n": 1, "data": picture, "schema": schema}, {"n": 2, "data": picture, "schema": schema}]);
        let text = mock_yaml(&mock);
        assert_eq!(text.matches("iVBORw0KGgo").count(), 20, "{text}");
        assert!(text.contains("data: &same-1 ") && text.contains("data: *same-1\n"), "{text}");
        assert_eq!(read_back(&mock), mock);
    }

    #[test]
    fn every_text_comes_back_as_it_was() {
        let marks =
            ["", " ", "\n", "\t", "a", "- ", ": ", "#", "'", "\"", "\\", "{{ x }}", "%", "&a", "*", "|", ">", "!"];
        let more =
            ["\r", "\u{85}", "\u{2028}", "\u{feff}", "\0", "é", "😀", "\u{7f}", "---\n", "...\n", "0x1f", "1e3", "~"];
        let marks: Vec<&str> = marks.into_iter().chain(more).collect();
        for one in &marks {
            for two in &marks {
                for three in ["", "a", "\n", "\n\n", " b\n c", "\na"] {
                    let text = format!("{one}{two}{three}");
                    let value = json!({"k": text, text.clone(): [text, {"in": text}]});
                    assert_eq!(read_back(&value), value, "{text:?}");
                }
            }
        }
    }
}
