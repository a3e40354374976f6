//! Writes one Python file on the official package `mcp`.

use minijinja::context;
use serde_json::{Map, Value};

use super::program_data::{ProgramData, TemplateError, comment_text, notes, rendered};
use super::server_model::{Generated, ListedItems, ServerModel};

const TEMPLATE: &str = include_str!("templates/server.py.jinja");

/// Maximum length of a line.
const WIDTH: usize = 88;

/// Writes the server that answers like the recording; `source` is the name of the recording.
pub fn generate_python(model: &ServerModel, source: &str) -> Result<Generated, TemplateError> {
    let data = ProgramData::new(model);
    // A client that received an empty list may not know from the capabilities that there is one.
    let is_listed = |list: &ListedItems| list.was_requested || !list.items.is_empty();
    let list = |items: &[Value]| literal(&Value::from(items.to_vec()));
    let text = |key: &str| model.server.get(key).and_then(Value::as_str).map(|text| literal(&text.into()));
    let context = context! {
        source => comment_text(source),
        name => literal(&model.name().into()),
        version => literal(&model.version().into()),
        title => text("title"),
        description => text("description"),
        website_url => text("websiteUrl"),
        icons => model.server.get("icons").filter(|icons| icons.is_array()).map(literal),
        instructions => model.instructions.as_deref().map(|text| literal(&text.into())),
        capabilities => data.capabilities.clone().map(|declared| literal(&declared.into())),
        refuses => (!data.refuses.is_empty()).then(|| literal(&data.refuses.clone().into())),
        tools => (is_listed(&model.tools) || data.has("tools", &["tools/call"])).then(|| list(&data.tools)),
        resources => list(&data.resources),
        resource_templates => list(&model.resource_templates.items),
        prompts => (is_listed(&model.prompts) || data.has("prompts", &["prompts/get"])).then(|| list(&data.prompts)),
        has_resources => is_listed(&model.resources)
            || is_listed(&model.resource_templates)
            || data.has("resources", &["resources/read", "resources/subscribe", "resources/unsubscribe"]),
        subscribes => data.subscribes(),
        notifies_changes => data.notifies_changes(),
        completes => data.has("completions", &["completion/complete"]),
        has_preceding => data.has_preceding,
        secrets => data.secrets,
        logs => data.has("logging", &[]),
        responses => literal(&data.responses.clone().into()),
        notes => notes("#", &data.left_out),
    };
    let files = vec![(file_name(model), rendered(TEMPLATE, &context)?)];
    Ok(Generated { files, left_out: data.left_out })
}

fn file_name(model: &ServerModel) -> String {
    let name = module_name(model.name());
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

/// A value as a Python literal, in the layout of the usual formatter.
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

/// Whether a text has more than one line.
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

/// Whether a character is invisible, or changes the direction of the text.
fn is_unseen(c: char) -> bool {
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
