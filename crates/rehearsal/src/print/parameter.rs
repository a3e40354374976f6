//! The arguments of a tool or a prompt in their printed form.

use rehearsal::core::json::{JsonType, excerpt};
use rehearsal::core::protocol::Prompt;
use rehearsal::core::protocol::tool::PromptArgument;
use serde_json::Value;

/// Maximum length of a list of choices, in characters.
const CHOICES_WIDTH: usize = 32;
/// Maximum number of references from a property to its type.
pub(super) const DEPTH: usize = 16;

/// One property of a tool's input schema.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parameter {
    /// What to pass it by.
    pub(crate) name: String,
    /// The types of its value; empty if the schema has none.
    pub(crate) kinds: Vec<JsonType>,
    /// Whether the tool cannot do without.
    pub(crate) required: bool,
    /// What it is for.
    pub(crate) description: Option<String>,
    /// The values that it may have; empty where any of its kinds will do.
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

/// Every argument of a prompt, the required ones first. In the protocol all of them are text.
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

/// Whether a schema takes more than it lists. Where it lists something, silence is not consent: a typo is likelier.
pub(crate) fn accepts_unknown(schema: &Value) -> bool {
    let by_pattern = schema.get("patternProperties").is_some();
    match schema.get("additionalProperties") {
        Some(Value::Bool(false)) => by_pattern,
        Some(_) => true,
        None => by_pattern || schema.get("properties").is_none(),
    }
}

impl Parameter {
    /// As it is written on a command line: `city=string`, or `[days=integer]` where it may be left out.
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

    /// What it may be, in one word: `integer`, `string[]`, `metric|imperial`, `integer|null`.
    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    /// Whether it may be that, as far as it can only be one of some values.
    pub(crate) fn allows(&self, value: &Value) -> bool {
        self.choices.is_empty() || self.choices.contains(value)
    }

    /// What it may be, one by one, where it can only be one of these.
    pub(crate) fn choices(&self) -> Vec<String> {
        self.choices.iter().map(choice).collect()
    }

    /// What it may be, in a sentence: `an integer or null`.
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

/// What a schema allows; empty for anything.
fn kinds(schema: &Value, root: &Value, depth: usize) -> Vec<JsonType> {
    let schema = resolved(schema, root, depth);
    let Some(deeper) = depth.checked_sub(1) else { return Vec::new() };
    let mut found: Vec<JsonType> = match (schema.get("type"), schema.get("const"), schema.get("enum")) {
        (Some(Value::String(name)), ..) => JsonType::named(name).into_iter().collect(),
        (Some(Value::Array(names)), ..) => names.iter().filter_map(|name| JsonType::named(name.as_str()?)).collect(),
        (_, Some(only), _) => vec![JsonType::of(only)],
        (_, None, Some(Value::Array(values))) => values.iter().map(JsonType::of).collect(),
        _ => {
            let branches = |key| schema.get(key).and_then(Value::as_array).map(Vec::as_slice);
            if let Some(branches) = branches("anyOf").or_else(|| branches("oneOf")) {
                let each: Vec<_> = branches.iter().map(|branch| kinds(branch, root, deeper)).collect();
                // One branch that takes anything makes the whole take anything.
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

/// The schema that a local `$ref` leads to.
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
    fn types_are_shown_as_people_would_say_them() {
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
    fn required_ones_come_first_even_where_they_are_not_described() {
        let schema = json!({"properties": {"a": {}, "b": {"type": "string"}}, "required": ["b", "c"]});
        let names: Vec<_> = parameters(&schema).iter().map(Parameter::usage).collect();
        assert_eq!(names, ["b=string", "c=any", "[a=any]"]);
    }

    #[test]
    fn silence_about_other_properties_is_not_consent() {
        assert!(!accepts_unknown(&json!({"type": "object", "properties": {"a": {}}})));
        assert!(!accepts_unknown(&json!({"type": "object", "additionalProperties": false})));
        assert!(accepts_unknown(&json!({"type": "object", "additionalProperties": {"type": "string"}})));
        assert!(accepts_unknown(&json!({"type": "object"})));
        assert!(accepts_unknown(&json!(null)));
    }
}
