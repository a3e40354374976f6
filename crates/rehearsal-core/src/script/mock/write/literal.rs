//! Texts that say themselves, though they look like templates.

use serde_json::Value;

/// What a template begins something with.
const MARKS: [&str; 3] = ["{{", "{%", "{#"];

/// A text for a mock file that says exactly this.
pub fn literal(text: &str) -> String {
    if !MARKS.iter().any(|mark| text.contains(mark)) {
        return text.to_owned();
    }
    if !text.contains("endraw") {
        return format!("{{% raw %}}{text}{{% endraw %}}");
    }
    // Every brace that could begin something is said by an expression.
    text.replace('{', "{{ '{' }}")
}

/// The same for all texts in a value; keys are never templates.
pub fn literal_value(value: &Value) -> Value {
    match value {
        Value::String(text) => literal(text).into(),
        Value::Array(elements) => elements.iter().map(literal_value).collect(),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(key, value)| (key.clone(), literal_value(value))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// A text for a mock file that says this, with expressions where their marks stand:
/// `("MARK", "arguments.city")` puts `{{ arguments.city }}` in the place of `MARK`.
pub fn with_expressions(text: &str, marks: &[(String, String)]) -> String {
    let found = marks.iter().filter_map(|(mark, expression)| Some((text.find(mark.as_str())?, mark, expression)));
    // Of two marks at one place the longer one is meant.
    let first = found.min_by_key(|(at, mark, _)| (*at, std::cmp::Reverse(mark.len())));
    match first {
        None => literal(text),
        Some((at, mark, expression)) => {
            let rest = with_expressions(&text[at + mark.len()..], marks);
            format!("{}{{{{ {expression} }}}}{rest}", literal(&text[..at]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_looks_like_a_template_is_put_in_raw() {
        assert_eq!(literal("plain { text }"), "plain { text }");
        assert_eq!(literal("use {{ x }}"), "{% raw %}use {{ x }}{% endraw %}");
        assert_eq!(literal("{% endraw %}"), "{{ '{' }}% endraw %}");
    }

    #[test]
    fn marks_become_expressions() {
        let marks = [("<a>".to_owned(), "arguments.a".to_owned()), ("<a>b".to_owned(), "arguments.b".to_owned())];
        assert_eq!(
            with_expressions("x <a> {{ <a>b", &marks),
            "x {{ arguments.a }}{% raw %} {{ {% endraw %}{{ arguments.b }}"
        );
    }
}
