//! A recording as one Python file on the official package `mcp`.

use minijinja::context;
use rehearsal_core::json::RawJson;
use rehearsal_core::message::ErrorReply;
use rehearsal_core::protocol::Era;
use serde_json::{Map, Value};

use super::generated::{Generated, TemplateError};
use super::learned::Learned;
use super::listed::Listed;
use super::narrow::narrows;
use super::recorded::{Lists, Recorded, notes, plain_words, rendered};
use super::told::{logs_null, untold};

const TEMPLATE: &str = include_str!("templates/server.py.jinja");

/// How long a line may be.
const WIDTH: usize = 88;

/// Writes the server that answers like the recording; `source` is what to call the recording.
pub fn generate_python(learned: &Learned, source: &str) -> Result<Generated, TemplateError> {
    let recorded = Recorded::of(learned);
    let mut left_out = recorded.left_out.clone();
    if learned.errors().any(has_null) {
        left_out.push("`null` as the data of an error, which the package mcp does not say".to_owned());
    }
    if logs_null(learned) {
        left_out.push("`null` as the data of a log message, which the package mcp does not say".to_owned());
    }
    left_out.extend(untold(learned));
    // Whoever was given an empty list may never have been told that there is one.
    let is_listed = |listed: &Listed| listed.was_asked || !listed.items.is_empty();
    let list = |items: &[Value]| literal(&Value::from(items.to_vec()));
    let declared = |era| learned.capabilities.of(era).map(|declared| literal(&declared.clone().into()));
    let text = |key: &str| learned.server.get(key).and_then(Value::as_str).map(|text| literal(&text.into()));
    let Lists { tools, resources, prompts } = Lists::of(learned);
    let templates = &learned.resource_templates.items;
    let asked_for_resources = ["resources/read", "resources/subscribe", "resources/unsubscribe"];
    let responses = Value::Object(recorded.responses.clone());
    let context = context! {
        source => plain_words(source),
        name => literal(&learned.name().into()),
        version => literal(&learned.version().into()),
        title => text("title"),
        description => text("description"),
        website_url => text("websiteUrl"),
        icons => learned.server.get("icons").filter(|icons| icons.is_array()).map(literal),
        instructions => learned.instructions.as_deref().map(|text| literal(&text.into())),
        capabilities => declared(Era::Legacy),
        stateless_capabilities => declared(Era::Modern).filter(|_| !learned.capabilities.differing().is_empty()),
        refuses => (!recorded.refuses.is_empty()).then(|| literal(&recorded.refuses.clone().into())),
        tools => (is_listed(&learned.tools) || recorded.has("tools", &["tools/call"])).then(|| list(&tools)),
        resources => list(&resources),
        resource_templates => list(templates),
        prompts => (is_listed(&learned.prompts) || recorded.has("prompts", &["prompts/get"])).then(|| list(&prompts)),
        has_resources => is_listed(&learned.resources)
            || is_listed(&learned.resource_templates)
            || recorded.has("resources", &asked_for_resources),
        subscribes => recorded.responses.contains_key("resources/subscribe") || subscribes(learned),
        tells_changes => recorded.tells_changes(),
        completes => recorded.has("completions", &["completion/complete"]),
        speaks => recorded.speaks,
        rises => recorded.rises,
        narrows => narrows(learned),
        secrets => recorded.secrets,
        without_state => recorded.without_state,
        odd_prompts => recorded.odd_prompts,
        logs => learned.takes_levels || recorded.has("logging", &[]),
        responses => literal(&responses),
        notes => notes("#", &left_out),
    };
    Ok(Generated::new(vec![(file_name(learned), rendered(TEMPLATE, &context)?)], &left_out))
}

/// Whether the server declared that its resources can be subscribed to.
pub(super) fn subscribes(learned: &Learned) -> bool {
    learned
        .capabilities
        .all()
        .and_then(|all| all.get("resources")?.get("subscribe").cloned())
        .is_some_and(|it| it == true)
}

/// Whether an error has data, and that says nothing.
fn has_null(error: &ErrorReply) -> bool {
    error.data.as_ref().is_some_and(RawJson::is_null)
}

fn file_name(learned: &Learned) -> String {
    let name = module_name(learned.name());
    if name.ends_with("server") { format!("{name}.py") } else { format!("{name}_server.py") }
}

/// A name that a module may have.
pub(super) fn module_name(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars().take(40) {
        let c = if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
        if c != '_' || !out.ends_with('_') {
            out.push(c);
        }
    }
    let out = out.trim_matches('_');
    if out.is_empty() || out.starts_with(|c: char| c.is_ascii_digit()) { format!("mock_{out}") } else { out.to_owned() }
}

/// A value as Python writes it, in the layout of the usual formatter.
fn literal(value: &Value) -> String {
    let mut out = String::new();
    // The name in front of it, about.
    write(value, 0, 32, &mut out);
    out
}

/// Writes a value; `used` is how much of the line is taken already.
fn write(value: &Value, depth: usize, used: usize, out: &mut String) {
    let line = one_line(value);
    let fits = used + line.chars().count() < WIDTH;
    let inner = "    ".repeat(depth + 1);
    match value {
        Value::Array(items) if !fits && !items.is_empty() => {
            out.push_str("[\n");
            for item in items {
                out.push_str(&inner);
                write(item, depth + 1, inner.len(), out);
                out.push_str(",\n");
            }
            out.push_str(&"    ".repeat(depth));
            out.push(']');
        }
        Value::Object(fields) if !fits && !fields.is_empty() => {
            out.push_str("{\n");
            for (key, value) in fields {
                let key = string(key);
                out.push_str(&inner);
                out.push_str(&key);
                out.push_str(": ");
                write(value, depth + 1, inner.len() + key.chars().count() + 2, out);
                out.push_str(",\n");
            }
            out.push_str(&"    ".repeat(depth));
            out.push('}');
        }
        Value::String(text) if !fits && has_lines(text) => {
            out.push_str("(\n");
            for line in text.split_inclusive('\n') {
                out.push_str(&inner);
                out.push_str(&string(line));
                out.push('\n');
            }
            out.push_str(&"    ".repeat(depth));
            out.push(')');
        }
        _ => out.push_str(&line),
    }
}

/// Whether a text goes on after the end of a line.
fn has_lines(text: &str) -> bool {
    text.trim_end_matches('\n').contains('\n')
}

fn one_line(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => string(text),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(one_line).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) => object(fields),
    }
}

fn object(fields: &Map<String, Value>) -> String {
    let fields: Vec<_> = fields.iter().map(|(key, value)| format!("{}: {}", string(key), one_line(value))).collect();
    format!("{{{}}}", fields.join(", "))
}

/// A string in the quotes that need fewer backslashes, double ones where that is the same.
fn string(text: &str) -> String {
    let quote = if text.matches('"').count() > text.matches('\'').count() { '\'' } else { '"' };
    let mut out = String::from(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() || is_unseen(c) => match u32::from(c) {
                code @ ..=0xff => out.push_str(&format!("\\x{code:02x}")),
                code @ ..=0xffff => out.push_str(&format!("\\u{code:04x}")),
                code => out.push_str(&format!("\\U{code:08x}")),
            },
            c => out.push(c),
        }
    }
    out.push(quote);
    out
}

/// What changes how a line reads, or does not show.
pub(super) fn is_unseen(c: char) -> bool {
    matches!(u32::from(c), 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0xfeff | 0xfff0..=0xffff | 0xe000..=0xf8ff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_written_as_python_writes_them() {
        let table = [
            (json!(null), "None"),
            (json!([true, false, 1.5, -3]), "[True, False, 1.5, -3]"),
            (json!({"a": {}, "b": []}), r#"{"a": {}, "b": []}"#),
            (json!("it's"), r#""it's""#),
            (json!("say \"hi\""), r#"'say "hi"'"#),
            (json!("both ' and \""), r#""both ' and \"""#),
            (json!("a\n\\\t\0\u{2028}é"), "\"a\\n\\\\\\t\\x00\\u2028é\""),
        ];
        for (value, expected) in table {
            assert_eq!(literal(&value), expected);
        }
        let long = json!({"first": "x".repeat(60), "second": ["y".repeat(60), 1]});
        let (x, y) = ("x".repeat(60), "y".repeat(60));
        let expected = format!("{{\n    \"first\": \"{x}\",\n    \"second\": [\"{y}\", 1],\n}}");
        assert_eq!(literal(&long), expected);
    }

    #[test]
    fn a_text_of_many_lines_is_written_line_by_line() {
        let (x, y) = ("x".repeat(60), "y".repeat(60));
        let text = json!({"text": format!("{x}\n\n{y} \"quoted\"\n")});
        let expected = format!(
            "{{\n    \"text\": (\n        \"{x}\\n\"\n        \"\\n\"\n        '{y} \"quoted\"\\n'\n    ),\n}}"
        );
        assert_eq!(literal(&text), expected);
        assert_eq!(literal(&json!("two\nlines")), r#""two\nlines""#);
    }

    #[test]
    fn a_module_has_a_name_that_can_be_imported() {
        for (name, expected) in [("My Server", "my_server"), ("3d", "mock_3d"), ("天気", "mock_"), ("a--b", "a_b")] {
            assert_eq!(module_name(name), expected);
        }
    }
}
