//! What a schema says about the `when` and the answers of its tool.

use serde_json::Value;

use super::checker::Checker;
use crate::json::Path;
use crate::matcher::{Matcher, Schema, closest_operator};
use crate::script::mock::parse::{has_property, properties};
use crate::script::mock::{AnswerRule, Tool, Validate};
use crate::script::{Located, Meant, When};
use crate::suggest::closest;

impl Checker {
    /// What the schemas of a tool have to say about its answers.
    pub(super) fn against_schemas(&mut self, tool: &Tool, validate: Validate) {
        let input = tool.input_schema.as_ref().map(|schema| &schema.written);
        for answer in &tool.answers {
            if let Some(when) = &answer.when {
                // Elsewhere a call may have whatever it likes.
                if let (Validate::Strict, Some(input)) = (validate, input) {
                    self.names_in_schema(when, input);
                }
                self.misspelled(when, &when.written, &Path::root(), input);
            }
        }
        if let (Validate::Strict, Some(schema)) = (validate, &tool.output_schema)
            && let Ok(schema) = schema.meaning()
        {
            tool.answers.iter().for_each(|answer| self.fits_output(answer, schema));
        }
    }

    /// A `when` for an argument that no call can have.
    fn names_in_schema(&mut self, when: &Located<Meant<When>>, schema: &Value) {
        let Ok(When(Matcher::Object(wanted))) = when.meaning() else { return };
        let closed = schema.get("additionalProperties") == Some(&Value::Bool(false))
            && schema.get("patternProperties").is_none()
            && ["allOf", "anyOf", "oneOf", "$ref"].iter().all(|word| schema.get(word).is_none());
        for (key, _) in wanted.iter().filter(|(key, _)| !has_property(schema, key)) {
            let names = properties(schema);
            let meant = closest(key, names.iter().copied());
            if closed || meant.is_some() {
                let hint = match meant {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => format!("the input_schema has {}", names.join(", ")),
                };
                let message = format!("the tool has no argument `{key}`");
                self.inside(when.at, Path::root().join(key.as_str()), message, hint);
            }
        }
    }

    /// An object with one key that is nearly an operator.
    fn misspelled(&mut self, when: &Located<Meant<When>>, written: &Value, path: &Path, schema: Option<&Value>) {
        let Value::Object(fields) = written else { return };
        for (key, value) in fields {
            let inner = path.clone().join(key.as_str());
            // What stands in these is data.
            if ["exact", "subset", "schema"].contains(&key.as_str()) {
                continue;
            }
            let schema = schema.and_then(|schema| schema.get("properties")?.get(key));
            if let Value::Object(only) = value
                && let [key] = only.keys().collect::<Vec<_>>()[..]
                && let Some(meant) = closest_operator(key)
                && !schema.is_some_and(|schema| has_property(schema, key))
            {
                let message = format!("`{key}` is no operator");
                let hint = format!(
                    "did you mean `{meant}`? if `{key}` is a key of the data, write {{ subset: {{ {key}: … }} }}"
                );
                self.inside(when.at, inner.clone().join(key.as_str()), message, hint);
            }
            self.misspelled(when, value, &inner, schema);
        }
    }

    /// An answer that could never be given.
    fn fits_output(&mut self, answer: &AnswerRule, schema: &Schema) {
        answer.choose.iter().chain(&answer.in_turn).for_each(|answer| self.fits_output(answer, schema));
        if answer.is_error == Some(true) || answer.fault.is_some() || answer.result.is_some() || answer.error.is_some()
        {
            return;
        }
        match (&answer.structured_content, answer.text.as_ref().map(|text| text.at)) {
            (Some(content), _) if is_fixed(content) => {
                for mismatch in schema.check(content) {
                    let message = format!("the output_schema refuses this: {mismatch}");
                    let hint = "change one of the two, or send it all the same with `validate: off`".to_owned();
                    self.inside(content.at, mismatch.path, message, hint);
                }
            }
            (None, Some(at)) => self.advise(
                at,
                "the tool has an output_schema, and this answer has no structured content",
                "give it `structured_content`, or `is_error: true` where it failed",
            ),
            (Some(_), _) | (None, None) => {}
        }
    }
}

/// Whether nothing in a value is a template.
fn is_fixed(value: &Value) -> bool {
    match value {
        Value::String(text) => !["{{", "{%", "{#"].iter().any(|mark| text.contains(mark)),
        Value::Array(items) => items.iter().all(is_fixed),
        Value::Object(fields) => fields.values().all(is_fixed),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use crate::script::mock::{Otherwise, parse};

    fn check(tool: &str) -> String {
        let file = format!("tools: [{{ name: a, {tool} }}]\n");
        parse("m", &file, Otherwise::Refuse).map_or_else(|error| error.to_string(), |_| String::new())
    }

    #[test]
    fn what_can_never_fit_is_told() {
        let input = "input_schema: { properties: { city: { properties: { mathces: {} } } } }";
        let closed = "input_schema: { properties: { city: {} }, additionalProperties: false }";
        let output = "output_schema: { properties: { n: { type: integer } }, required: [n] }";
        for (tool, expected) in [
            (
                format!("{input}, answers: [{{ when: {{ ctiy: x }}, text: a }}]"),
                "the tool has no argument `ctiy`; did you",
            ),
            (
                format!("{closed}, answers: [{{ when: {{ zip: 1 }}, text: a }}]"),
                "no argument `zip`; the input_schema has city",
            ),
            (format!("{input}, answers: [{{ when: {{ zip: 1 }}, text: a }}]"), ""),
            (
                "answers: [{ when: { a: { mathces: x } }, text: a }]".to_owned(),
                "`mathces` is no operator; did you mean `matches`?",
            ),
            (format!("{input}, answers: [{{ when: {{ city: {{ mathces: x }} }}, text: a }}]"), ""),
            ("answers: [{ when: { a: { subset: { mathces: x } } }, text: a }]".to_owned(), ""),
            (
                format!("{output}, answers: [{{ structured_content: {{ n: x }} }}]"),
                "the output_schema refuses this: $.n: expected",
            ),
            (format!("{output}, answers: [{{ text: x }}]"), "this answer has no structured content"),
            (format!("{output}, validate: off, answers: [{{ text: x }}]"), ""),
            (format!("{output}, answers: [{{ text: x, is_error: true }}]"), ""),
            (format!("{output}, answers: [{{ structured_content: {{ n: \"{{{{ call }}}}\" }} }}]"), ""),
        ] {
            let said = check(&tool);
            assert!(said.contains(expected) && said.is_empty() == expected.is_empty(), "{tool}: {said}");
        }
    }
}
