//! The fields of a JSON Schema at every depth, with their types, defaults and limits.

use rehearsal::core::json::excerpt;
use serde_json::Value;

use super::parameter::{DEPTH, Parameter, parameters_within, resolved};

/// Maximum depth of nested fields.
const MAX_NESTING: usize = 8;
/// Maximum length of a default or a limit, in characters.
const VALUE_WIDTH: usize = 60;

/// One field of a schema, for one line of output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SchemaField {
    /// The number of fields around it.
    pub(super) depth: usize,
    /// `city=string`, or `[days=integer]` if it is optional.
    pub(super) usage: String,
    /// The description, the default and the limits.
    pub(super) text: String,
}

impl SchemaField {
    /// Builds a field without nested fields, such as an argument of a prompt.
    pub(super) fn flat(parameter: &Parameter) -> SchemaField {
        let text = parameter.description.as_deref().map(one_line).unwrap_or_default();
        SchemaField { depth: 0, usage: parameter.usage(), text }
    }
}

/// Returns the fields of a schema; nested fields follow the field that they are in.
///
/// ```text
/// filter=object
///   city=string     Where; at most 80 characters
///   [days=integer]  How many; from 1 to 10; default 3
/// ```
pub(super) fn schema_fields(schema: &Value) -> Vec<SchemaField> {
    let mut fields = Fields { root: schema, around: Vec::new(), found: Vec::new() };
    fields.nested(schema, 0);
    fields.found
}

struct Fields<'a> {
    root: &'a Value,
    /// The schemas that are being read. A recursive schema is read once.
    around: Vec<&'a Value>,
    found: Vec<SchemaField>,
}

impl<'a> Fields<'a> {
    /// Adds the fields of the objects that a schema allows, of their variants, and of the elements of its lists.
    fn nested(&mut self, schema: &'a Value, depth: usize) {
        let schema = resolved(schema, self.root, DEPTH);
        if depth > MAX_NESTING || self.around.iter().any(|outer| std::ptr::eq(*outer, schema)) {
            return;
        }
        self.around.push(schema);
        self.properties(schema, depth);
        for key in ["items", "additionalProperties"] {
            if let Some(inner) = schema.get(key).filter(|inner| inner.is_object()) {
                self.nested(inner, depth);
            }
        }
        for part in list(schema, "allOf") {
            self.nested(part, depth);
        }
        let variants = list(schema, "anyOf").chain(list(schema, "oneOf"));
        let variants: Vec<&Value> = variants.filter(|variant| self.has_fields(variant)).collect();
        let several = variants.len() > 1;
        for (number, variant) in (1..).zip(variants) {
            if several {
                let title = resolved(variant, self.root, DEPTH).get("title").and_then(Value::as_str);
                let text = title.map(one_line).unwrap_or_default();
                self.found.push(SchemaField { depth, usage: format!("variant {number}:"), text });
            }
            self.nested(variant, depth + usize::from(several));
        }
        self.around.pop();
    }

    fn properties(&mut self, schema: &'a Value, depth: usize) {
        for parameter in parameters_within(schema, self.root) {
            let property = schema.get("properties").and_then(|properties| properties.get(&parameter.name));
            let text = property.map(|property| self.text(property, &parameter)).unwrap_or_default();
            self.found.push(SchemaField { depth, usage: parameter.usage(), text });
            if let Some(property) = property {
                self.nested(property, depth + 1);
            }
        }
    }

    fn has_fields(&self, schema: &Value) -> bool {
        let schema = resolved(schema, self.root, DEPTH);
        ["properties", "items", "allOf", "anyOf", "oneOf"].iter().any(|key| schema.get(key).is_some())
    }

    fn text(&self, property: &Value, parameter: &Parameter) -> String {
        let mut parts: Vec<String> = parameter.description.as_deref().map(one_line).into_iter().collect();
        // The usage has no room for all choices.
        if parameter.usage().contains('…') {
            parts.push(format!("one of {}", parameter.choices().join(", ")));
        }
        let property = resolved(property, self.root, DEPTH);
        parts.extend(limits(property));
        let branches = ["anyOf", "oneOf", "allOf"].into_iter().flat_map(|key| list(property, key));
        parts.extend(branches.flat_map(|branch| limits(resolved(branch, self.root, DEPTH))));
        if let Some(items) = property.get("items") {
            let items = resolved(items, self.root, DEPTH);
            let choices = list(items, "enum").map(shown).collect::<Vec<_>>();
            if !choices.is_empty() {
                parts.push(format!("each one of {}", choices.join(", ")));
            }
            parts.extend(limits(items).into_iter().map(|limit| format!("each {limit}")));
        }
        parts.extend(property.get("default").map(|value| format!("default {}", shown(value))));
        if property.get("deprecated") == Some(&Value::Bool(true)) {
            parts.push("deprecated".to_owned());
        }
        parts.retain(|part| !part.is_empty());
        parts.join("; ")
    }
}

/// The limits of a value: `from 1 to 10`, `at most 80 characters`, `format date`.
fn limits(schema: &Value) -> Vec<String> {
    let value = |key: &str| schema.get(key).map(shown);
    let range = |least: &str, most: &str, unit: &str| match (value(least), value(most)) {
        (Some(least), Some(most)) if least == most => Some(format!("exactly {least}{unit}")),
        (Some(least), Some(most)) => Some(format!("from {least} to {most}{unit}")),
        (Some(least), None) => Some(format!("at least {least}{unit}")),
        (None, Some(most)) => Some(format!("at most {most}{unit}")),
        (None, None) => None,
    };
    let labelled = |key: &str, label: &str| value(key).map(|value| format!("{label} {value}"));
    let text = |key: &str, label: &str| schema.get(key)?.as_str().map(|text| format!("{label} {}", one_line(text)));
    let unique = (schema.get("uniqueItems") == Some(&Value::Bool(true))).then(|| "no duplicates".to_owned());
    let limits = [
        range("minimum", "maximum", ""),
        labelled("exclusiveMinimum", "more than"),
        labelled("exclusiveMaximum", "less than"),
        labelled("multipleOf", "a multiple of"),
        range("minLength", "maxLength", " characters"),
        range("minItems", "maxItems", " items"),
        range("minProperties", "maxProperties", " keys"),
        unique,
        text("pattern", "pattern"),
        text("format", "format"),
    ];
    limits.into_iter().flatten().collect()
}

fn list<'a>(schema: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    schema.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn shown(value: &Value) -> String {
    excerpt(value, VALUE_WIDTH)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(schema: &Value) -> String {
        let line = |field: &SchemaField| {
            format!("{:1$}{2} {3}", "", field.depth * 2, field.usage, field.text).trim_end().to_owned()
        };
        schema_fields(schema).iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn nested_fields_defaults_and_limits_are_shown() {
        let schema = json!({
            "type": "object",
            "properties": {
                "filter": {
                    "type": "object",
                    "description": "What to\nmatch",
                    "properties": {
                        "city": {"type": "string", "minLength": 1, "maxLength": 80, "pattern": "^[A-Z]"},
                        "days": {"type": "integer", "minimum": 1, "maximum": 10, "default": 3},
                    },
                    "required": ["city"],
                },
                "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "uniqueItems": true},
                "points": {"type": "array", "items": {"$ref": "#/$defs/Point"}, "minItems": 2},
                "limit": {"anyOf": [{"type": "integer", "exclusiveMinimum": 0}, {"type": "null"}], "default": null},
            },
            "required": ["filter"],
            "$defs": {"Point": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}},
        });
        let expected = "\
filter=object What to match
  city=string from 1 to 80 characters; pattern ^[A-Z]
  [days=integer] from 1 to 10; default 3
[tags=string[]] no duplicates; each one of \"a\", \"b\"
[points=object[]] at least 2 items
  x=number
[limit=integer] more than 0; default null";
        assert_eq!(shown(&schema), expected);
    }

    #[test]
    fn variants_of_an_object_are_numbered() {
        let schema = json!({"properties": {"target": {"oneOf": [
            {"title": "A file", "properties": {"path": {"type": "string"}}},
            {"properties": {"url": {"type": "string", "format": "uri"}}},
        ]}}});
        let expected = "\
[target=any]
  variant 1: A file
    [path=string]
  variant 2:
    [url=string] format uri";
        assert_eq!(shown(&schema), expected);
    }

    #[test]
    fn a_recursive_schema_ends() {
        let node = json!({"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}});
        let schema = json!({"properties": {"first": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}});
        assert_eq!(shown(&schema), "[first=object]\n  [next=object]");
    }
}
