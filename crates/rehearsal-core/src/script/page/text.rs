//! Texts as YAML has them: as they are, in quotes, or line by line.

use std::fmt::Write;

use serde_json::Value;

/// Where a text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// On a line of its own, or behind a key.
    Block,
    /// Between brackets.
    Line,
}

/// A value on one line: `{ type: object, required: [city] }`.
pub(super) fn flow(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => scalar(text, Place::Line),
        Value::Array(elements) => format!("[{}]", elements.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) if fields.is_empty() => "{}".to_owned(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| format!("{}: {}", key_text(name), flow(value)));
            format!("{{ {} }}", fields.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Whether a value may have room on one line, and has nothing in it that wants several.
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

/// The name of a key.
pub(super) fn key_text(name: &str) -> String {
    let legal = |c: char| c.is_ascii_alphanumeric() || "_-./$".contains(c);
    let first = |c: char| c.is_ascii_alphabetic() || "_$".contains(c);
    if name.starts_with(first) && name.chars().all(legal) && !means_something(name) {
        name.to_owned()
    } else {
        quoted(name)
    }
}

/// A text as it is where nobody can take it for something else, and in quotes otherwise.
pub(super) fn scalar(text: &str, place: Place) -> String {
    let quiet = |c: char| c.is_alphanumeric() || " _-./()'+=;!@".contains(c);
    let loud = |c: char| place == Place::Block && ",?$&*".contains(c);
    let plain = text.starts_with(|c: char| c.is_alphabetic() || "_/".contains(c))
        && !text.ends_with(' ')
        && text.chars().all(|c| quiet(c) || loud(c));
    if plain && !means_something(text) || is_time(text) { text.to_owned() } else { quoted(text) }
}

/// `20ms`, which is no number in any version of YAML.
fn is_time(text: &str) -> bool {
    text.strip_suffix("ms").is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit()))
}

/// Whether a word without quotes would be no text, in this version of YAML or in an older one.
fn means_something(word: &str) -> bool {
    let words = ["null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf", "infinity", "none"];
    words.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// In double quotes. What JSON escapes YAML understands; a few more characters would not be read as they are.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    for c in Value::from(text).to_string().chars() {
        if is_hidden(c) {
            // Writing to a text does not fail.
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

/// What cannot be seen, or would end a line.
fn is_hidden(c: char) -> bool {
    c.is_control() || matches!(u32::from(c), 0x2028 | 0x2029 | 0xfeff | 0xfffe | 0xffff | 0xe000..=0xf8ff)
}

/// The lines of a text that can stand as they are, and the mark before them.
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
    use super::super::{Key, written};
    use crate::script::read;
    use serde_json::{Value, json};

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
                    let value = json!({text.clone(): [text, {"in": text}]});
                    let written = written(&[Key::new("k", text.as_str()), Key::new("v", value.clone())]);
                    let again: Value = read("m.yaml", &written).unwrap_or_else(|error| panic!("{error}\n{written}"));
                    assert_eq!(again, json!({"k": text, "v": value}), "{text:?}");
                }
            }
        }
    }
}
