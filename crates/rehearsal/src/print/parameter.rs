//! The arguments of a tool or a prompt in their printed form.

use rehearsal::core::json::{JsonType, excerpt};
use rehearsal::core::protocol::Prompt;
use rehearsal::core::protocol::list_item::PromptArgument;
use serde_json::Value;

/// Maximum length of a list of choices, in characters.
const CHOICES_WIDTH: usize = 32;
/// Maximum number of references from a property to its type.
pub(super) const DEPTH: usize = 16;

/// One property of a tool's input schema.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parameter {
    /// The name of the argument.
    pub(crate) name: String,
    /// The types of its value; empty if the schema has none.
    pub(crate) kinds: Vec<JsonType>,
    /// True if the argument is required.
    pub(crate) required: bool,
    /// The description.
    pub(crate) description: Option<String>,
    /// The allowed values; empty if every value of its types is allowed.
    choices: Vec<Value>,
    label: String,
}

/// Returns every property of an input schema, the required ones first, also those that are required without being
/// described.
pub(crate) fn parameters(schema: &Value) -> Vec<Parameter> {
    parameters_within(schema, schema)
}

/// Returns every property of a schema inside the schema `root`, in which its references are looked up.
pub(super) fn parameters_within(schema: &Value, root: &Value) -> Vec<Parameter> {
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    let described = properties.into_iter().flatten().map(|(name, property)| Parameter {
        name: name.clone(),
        kinds: kinds(property, root, DEPTH),
        required: required.contains(&name.as_str()),
        description: property.get("description").and_then(Value::as_str).map(str::to_owned),
        choices: choices(resolved(property, root, DEPTH)).to_vec(),
        label: label(property, root),
    });
    let undescribed =
        required.iter().filter(|name| properties.is_none_or(|properties| !properties.contains_key(**name)));
    let undescribed = undescribed.map(|name| Parameter {
        name: (*name).to_owned(),
        kinds: Vec::new(),
        required: true,
        description: None,
        choices: Vec::new(),
        label: "any".to_owned(),
    });
    let mut parameters: Vec<Parameter> = described.chain(undescribed).collect();
    parameters.sort_by_key(|parameter| !parameter.required);
    parameters
}

/// Returns every argument of a prompt, the required ones first. All of them are text.
pub(crate) fn prompt_parameters(prompt: &Prompt) -> Vec<Parameter> {
    let described = prompt.raw.get("arguments").and_then(Value::as_array);
    let description = |name: &str| {
        let argument = described?.iter().find(|argument| argument.get("name").and_then(Value::as_str) == Some(name))?;
        argument.get("description").and_then(Value::as_str).map(str::to_owned)
    };
    let parameter = |argument: &PromptArgument| Parameter {
        name: argument.name.clone(),
        kinds: vec![JsonType::String],
        required: argument.required,
        description: description(&argument.name),
        choices: Vec::new(),
        label: JsonType::String.name().to_owned(),
    };
    let mut parameters: Vec<Parameter> = prompt.arguments.iter().map(parameter).collect();
    parameters.sort_by_key(|parameter| !parameter.required);
    parameters
}

/// True if a schema allows properties that it does not list. A schema with `properties` and without
/// `additionalProperties` allows them too, but an unlisted argument is more likely a typing error, so this is false.
pub(crate) fn accepts_unknown(schema: &Value) -> bool {
    let by_pattern = schema.get("patternProperties").is_some();
    match schema.get("additionalProperties") {
        Some(Value::Bool(false)) => by_pattern,
        Some(_) => true,
        None => by_pattern || schema.get("properties").is_none(),
    }
}

impl Parameter {
    /// The argument on a command line: `city=string`, or `[days=integer]` if it is optional.
    pub(crate) fn usage(&self) -> String {
        let Parameter { name, label, .. } = self;
        if self.required {
            return format!("{name}={label}");
        }
        // An optional argument may usually be null too, so `null` is not printed.
        let without_null = || label.split('|').filter(|kind| *kind != "null").collect::<Vec<_>>().join("|");
        let label = if self.kinds.len() > 1 && self.choices.is_empty() { without_null() } else { label.clone() };
        format!("[{name}={label}]")
    }

    /// The types or choices: `integer`, `string[]`, `metric|imperial`, `integer|null`.
    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    /// True unless the value is missing in the list of choices.
    pub(crate) fn allows(&self, value: &Value) -> bool {
        self.choices.is_empty() || self.choices.contains(value)
    }

    /// The choices; empty if there are none.
    pub(crate) fn choices(&self) -> Vec<String> {
        self.choices.iter().map(choice).collect()
    }

    /// The types with articles: `an integer or null`.
    pub(crate) fn expected(&self) -> String {
        let kinds: Vec<&str> = self.kinds.iter().map(|kind| kind.with_article()).collect();
        kinds.join(" or ")
    }
}

fn label(property: &Value, root: &Value) -> String {
    let property = resolved(property, root, DEPTH);
    if let choices @ [_, ..] = choices(property) {
        return choices_label(choices);
    }
    let kinds = kinds(property, root, DEPTH);
    if kinds.is_empty() {
        return "any".to_owned();
    }
    let name = |kind: &JsonType| match (kind, property.get("items")) {
        (JsonType::Array, Some(items)) => match self::kinds(items, root, DEPTH)[..] {
            [item] => format!("{item}[]"),
            _ => kind.name().to_owned(),
        },
        _ => kind.name().to_owned(),
    };
    kinds.iter().map(name).collect::<Vec<_>>().join("|")
}

fn choices(property: &Value) -> &[Value] {
    match (property.get("const"), property.get("enum").and_then(Value::as_array)) {
        (Some(only), _) => std::slice::from_ref(only),
        (None, Some(values)) => values,
        (None, None) => &[],
    }
}

/// `metric|imperial|…`
fn choices_label(values: &[Value]) -> String {
    let mut shown = String::new();
    for (at, choice) in values.iter().map(choice).enumerate() {
        if at > 0 && shown.len() + choice.len() > CHOICES_WIDTH {
            shown.push_str("|…");
            break;
        }
        shown = if at == 0 { choice } else { format!("{shown}|{choice}") };
    }
    shown
}

fn choice(value: &Value) -> String {
    value.as_str().map_or_else(|| excerpt(value, CHOICES_WIDTH), str::to_owned)
}

/// The types that a schema allows; empty for any type.
fn kinds(schema: &Value, root: &Value, depth: usize) -> Vec<JsonType> {
    let schema = resolved(schema, root, depth);
    let Some(deeper) = depth.checked_sub(1) else { return Vec::new() };
    let mut found: Vec<JsonType> = match (schema.get("type"), schema.get("const"), schema.get("enum")) {
        (Some(Value::String(name)), ..) => JsonType::named(name).into_iter().collect(),
        (Some(Value::Array(names)), ..) => names.iter().filter_map(|name| JsonType::named(name.as_str()?)).collect(),
        (_, Some(only), _) => vec![JsonType::from_value(only)],
        (_, None, Some(Value::Array(values))) => values.iter().map(JsonType::from_value).collect(),
        _ => {
            let branches = |key| schema.get(key).and_then(Value::as_array).map(Vec::as_slice);
            if let Some(branches) = branches("anyOf").or_else(|| branches("oneOf")) {
                let each: Vec<_> = branches.iter().map(|branch| kinds(branch, root, deeper)).collect();
                // If one branch allows any type, the schema does.
                if each.iter().any(Vec::is_empty) { Vec::new() } else { each.concat() }
            } else {
                let all = branches("allOf").into_iter().flatten().map(|branch| kinds(branch, root, deeper));
                all.into_iter().find(|kinds| !kinds.is_empty()).unwrap_or_default()
            }
        }
    };
    let mut seen = Vec::new();
    found.retain(|kind| {
        !seen.contains(kind) && {
            seen.push(*kind);
            true
        }
    });
    found
}

/// Follows the local `$ref` of a schema.
pub(super) fn resolved<'a>(schema: &'a Value, root: &'a Value, depth: usize) -> &'a Value {
    let mut schema = schema;
    for _ in 0..depth {
        let place = schema.get("$ref").and_then(Value::as_str).and_then(|place| place.strip_prefix('#'));
        match place.and_then(|place| root.pointer(place)) {
            Some(target) => schema = target,
            None => break,
        }
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn usage(property: Value) -> String {
        let units = json!({"type": "string", "enum": ["metric", "imperial"]});
        let schema =
            json!({"properties": {"x": property}, "$defs": {"Units": units, "Loop": {"$ref": "#/$defs/Loop"}}});
        parameters(&schema)[0].usage()
    }

    #[test]
    fn a_property_is_printed_with_its_types_or_choices() {
        let table = [
            (json!({"type": "integer"}), "[x=integer]"),
            (json!({"type": ["string", "null"]}), "[x=string]"),
            (json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}), "[x=integer]"),
            (json!({"type": "array", "items": {"type": "string"}}), "[x=string[]]"),
            (json!({"type": "array"}), "[x=array]"),
            (json!({"$ref": "#/$defs/Units"}), "[x=metric|imperial]"),
            (json!({"$ref": "#/$defs/Loop"}), "[x=any]"),
            (json!({"enum": [1, 2]}), "[x=1|2]"),
            (json!({"anyOf": [{"type": "integer"}, {}]}), "[x=any]"),
            (json!({"allOf": [{"description": "y"}, {"type": "boolean"}]}), "[x=boolean]"),
            (json!(true), "[x=any]"),
            (json!({"enum": ["a".repeat(20), "b".repeat(20)]}), "[x=aaaaaaaaaaaaaaaaaaaa|…]"),
        ];
        for (property, expected) in table {
            assert_eq!(usage(property.clone()), expected, "{property}");
        }
    }

    #[test]
    fn required_arguments_come_first_even_without_a_description() {
        let schema = json!({"properties": {"a": {}, "b": {"type": "string"}}, "required": ["b", "c"]});
        let names: Vec<_> = parameters(&schema).iter().map(Parameter::usage).collect();
        assert_eq!(names, ["b=string", "c=any", "[a=any]"]);
    }

    #[test]
    fn unlisted_properties_are_refused_unless_the_schema_allows_them() {
        assert!(!accepts_unknown(&json!({"type": "object", "properties": {"a": {}}})));
        assert!(!accepts_unknown(&json!({"type": "object", "additionalProperties": false})));
        assert!(accepts_unknown(&json!({"type": "object", "additionalProperties": {"type": "string"}})));
        assert!(accepts_unknown(&json!({"type": "object"})));
        assert!(accepts_unknown(&json!(null)));
    }
}
