//! Builds a small, plausible value that a schema accepts.

use serde_json::{Map, Number, Value, json};

use super::string_example::{of_format, of_pattern};
use crate::matcher::Schema;

/// Maximum depth of references between schemas.
const DEPTH: usize = 16;
/// Maximum number of generated elements and keys, even if the schema requires more.
const MAX_VALUES: usize = 1000;
/// Maximum number of combinations that are tried.
const TRIES: usize = 64;

/// A value that the schema accepts; `None` if none was found. The same schema always gives the same value.
///
/// The schema's own suggestions come first: `const`, `default`, `examples`, `enum`. A generated value is checked
/// against the whole schema before it is returned.
pub fn example(schema: &Value) -> Option<Value> {
    let checked = Schema::compile(schema).ok()?;
    let maker = ExampleGenerator { root: schema };
    maker.candidates(schema, None, 0).into_iter().take(TRIES).find(|candidate| checked.is_valid(candidate))
}

struct ExampleGenerator<'a> {
    root: &'a Value,
}

impl ExampleGenerator<'_> {
    /// Values that may be valid, the likeliest first.
    fn candidates(&self, schema: &Value, name: Option<&str>, depth: usize) -> Vec<Value> {
        let Some(fields) = schema.as_object() else {
            // `true` accepts any value, `false` accepts none.
            return if *schema == Value::Bool(false) { Vec::new() } else { vec![json!("text"), json!({})] };
        };
        if depth > DEPTH {
            return Vec::new();
        }
        let mut found = Vec::new();
        found.extend(fields.get("const").cloned());
        found.extend(fields.get("default").cloned());
        found.extend(fields.get("examples").and_then(Value::as_array).into_iter().flatten().cloned());
        found.extend(fields.get("example").cloned());
        found.extend(fields.get("enum").and_then(Value::as_array).into_iter().flatten().cloned());
        for merged in self.merged(fields, depth) {
            self.typed(&merged, name, depth, &mut found);
        }
        found.dedup();
        found
    }

    /// The schema merged with its references and with `allOf`; one for each alternative.
    fn merged(&self, fields: &Map<String, Value>, depth: usize) -> Vec<Map<String, Value>> {
        let mut whole = fields.clone();
        let referred = ["$ref", "$dynamicRef"].iter().filter_map(|key| fields.get(*key)?.as_str());
        let mut parts: Vec<Value> = referred.filter_map(|reference| self.resolve(reference)).cloned().collect();
        parts.extend(fields.get("allOf").and_then(Value::as_array).into_iter().flatten().cloned());
        for key in ["$ref", "$dynamicRef", "allOf"] {
            whole.shift_remove(key);
        }
        let mut all = vec![whole];
        for part in parts {
            let Some(part) = part.as_object() else { continue };
            let expanded = if depth < DEPTH { self.merged(part, depth + 1) } else { vec![part.clone()] };
            all = all.iter().flat_map(|left| expanded.iter().map(|right| merge(left, right))).take(TRIES).collect();
        }
        for key in ["oneOf", "anyOf"] {
            let split = |mut whole: Map<String, Value>| match whole.shift_remove(key) {
                Some(Value::Array(choices)) if depth < DEPTH => {
                    let chosen = choices.iter().filter_map(Value::as_object);
                    chosen
                        .flat_map(|choice| self.merged(choice, depth + 1))
                        .map(|choice| merge(&whole, &choice))
                        .collect::<Vec<_>>()
                }
                Some(_) | None => vec![whole],
            };
            all = all.into_iter().flat_map(split).take(TRIES).collect();
        }
        // Either the condition and `then` hold, or `else` holds.
        let conditional = |mut whole: Map<String, Value>| {
            let [condition, then, otherwise] = ["if", "then", "else"].map(|key| whole.shift_remove(key));
            let object = |value: Option<Value>| value.and_then(|value| value.as_object().cloned()).unwrap_or_default();
            match condition {
                None => vec![whole],
                Some(condition) => {
                    let holds = merge(&merge(&whole, &object(Some(condition))), &object(then));
                    vec![holds, merge(&whole, &object(otherwise))]
                }
            }
        };
        all.into_iter().flat_map(conditional).take(TRIES).collect()
    }

    fn resolve(&self, reference: &str) -> Option<&Value> {
        let fragment = reference.strip_prefix('#')?;
        if fragment.is_empty() || fragment.starts_with('/') {
            return self.root.pointer(fragment);
        }
        fn anchored<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
            let is_it = |key: &str| schema.get(key).and_then(Value::as_str) == Some(name);
            if is_it("$anchor") || is_it("$dynamicAnchor") {
                return Some(schema);
            }
            match schema {
                Value::Object(fields) => fields.values().find_map(|value| anchored(value, name)),
                Value::Array(elements) => elements.iter().find_map(|value| anchored(value, name)),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
            }
        }
        anchored(self.root, fragment)
    }

    fn typed(&self, schema: &Map<String, Value>, name: Option<&str>, depth: usize, found: &mut Vec<Value>) {
        found.extend(schema.get("const").cloned());
        found.extend(schema.get("default").cloned());
        found.extend(schema.get("enum").and_then(Value::as_array).into_iter().flatten().cloned());
        let types: Vec<&str> = match schema.get("type") {
            Some(Value::String(one)) => vec![one.as_str()],
            Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
            Some(_) | None => likely_types(schema),
        };
        for kind in types {
            match kind {
                "object" => found.extend(self.objects(schema, depth)),
                "array" => found.extend(self.arrays(schema, depth)),
                "string" => found.extend(strings(schema, name)),
                "integer" => found.extend(numbers(schema, 1.0)),
                "number" => found.extend(numbers(schema, 0.5)),
                "boolean" => found.extend([json!(true), json!(false)]),
                "null" => found.push(Value::Null),
                _ => {}
            }
        }
    }

    fn first(&self, schema: &Value, name: Option<&str>, depth: usize) -> Option<Value> {
        let candidates = self.candidates(schema, name, depth + 1);
        // A part of a schema can be checked alone only if it has no references to the outside.
        match Schema::compile(schema) {
            Ok(checked) => candidates.into_iter().find(|candidate| checked.is_valid(candidate)),
            Err(_) => candidates.into_iter().next(),
        }
    }

    fn objects(&self, schema: &Map<String, Value>, depth: usize) -> Vec<Value> {
        let properties = schema.get("properties").and_then(Value::as_object);
        let texts = |value: Option<&Value>| -> Vec<String> {
            value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let required = texts(schema.get("required"));
        let all: Vec<String> = properties.into_iter().flat_map(|it| it.keys().cloned()).collect();
        let mut found = Vec::new();
        // All properties first, because a reader of an example expects to see them.
        for wanted in [all.iter().chain(&required).cloned().collect::<Vec<_>>(), required.clone()] {
            let mut object = Map::new();
            let mut wanted: std::collections::VecDeque<String> = wanted.into();
            while let Some(key) = wanted.pop_front() {
                if object.contains_key(&key) || object.len() >= MAX_VALUES {
                    continue;
                }
                let part = properties.and_then(|it| it.get(&key)).or_else(|| patterned(schema, &key));
                let value = match part.or_else(|| schema.get("additionalProperties")) {
                    Some(part) => self.first(part, Some(&key), depth),
                    None => Some(json!("text")),
                };
                match value {
                    Some(value) => {
                        object.insert(key.clone(), value);
                        for rule in ["dependentRequired", "dependencies"] {
                            wanted.extend(texts(schema.get(rule).and_then(|rule| rule.get(&key))));
                        }
                    }
                    None if required.contains(&key) => return found,
                    None => {}
                }
            }
            let least = schema.get("minProperties").and_then(Value::as_u64).unwrap_or(0);
            let names = schema.get("propertyNames");
            let more = (0..MAX_VALUES).map(|number| match names.and_then(|names| self.first(names, None, depth)) {
                Some(Value::String(name)) if number == 0 => name,
                Some(_) | None => format!("key{number}"),
            });
            for key in more {
                if object.len() as u64 >= least {
                    break;
                }
                let part = patterned(schema, &key).or_else(|| schema.get("additionalProperties"));
                let value = part.map_or(Some(json!("text")), |part| self.first(part, Some(&key), depth));
                if let Some(value) = value {
                    object.insert(key, value);
                }
            }
            found.push(Value::Object(object));
        }
        found
    }

    fn arrays(&self, schema: &Map<String, Value>, depth: usize) -> Vec<Value> {
        let bound = |key: &str| schema.get(key).and_then(Value::as_u64).and_then(|it| usize::try_from(it).ok());
        let (least, most) = (bound("minItems").unwrap_or(0).min(MAX_VALUES), bound("maxItems").unwrap_or(MAX_VALUES));
        // Draft-07 has its tuples as a list in `items`, and the rest in `additionalItems`.
        let (tuple, rest) = match (schema.get("prefixItems"), schema.get("items")) {
            (Some(Value::Array(tuple)), rest) => (tuple.as_slice(), rest),
            (_, Some(Value::Array(tuple))) => (tuple.as_slice(), schema.get("additionalItems")),
            (_, rest) => (&[][..], rest),
        };
        let mut elements: Vec<Value> = tuple.iter().filter_map(|part| self.first(part, None, depth)).collect();
        if let Some(contained) = schema.get("contains").and_then(|part| self.first(part, None, depth)) {
            let times = bound("minContains").unwrap_or(1).min(MAX_VALUES);
            elements.extend(std::iter::repeat_n(contained, times));
        }
        let anything = json!(true);
        let part = rest.unwrap_or(&anything);
        let unique = schema.get("uniqueItems") == Some(&Value::Bool(true));
        let usual = usize::from(rest.is_some_and(|rest| *rest != Value::Bool(false))).max(least).min(most);
        let choices = self.candidates(part, None, depth + 1);
        let mut number = 0;
        while elements.len() < usual && number < MAX_VALUES {
            let choice = if unique { distinct(&choices, number) } else { self.first(part, None, depth) };
            number += 1;
            match choice {
                Some(element) if !unique || !elements.contains(&element) => elements.push(element),
                Some(_) => {}
                None => break,
            }
        }
        vec![Value::Array(elements), json!([])]
    }
}

/// Merges two schemas; of two limits for a number or a length the stricter one is used.
fn merge(left: &Map<String, Value>, right: &Map<String, Value>) -> Map<String, Value> {
    let mut merged = left.clone();
    for (key, value) in right {
        let both = match (merged.get(key), value) {
            (None, value) => value.clone(),
            (Some(Value::Object(one)), Value::Object(other)) => Value::Object(merge(one, other)),
            (Some(Value::Array(one)), Value::Array(other)) if key == "required" => {
                let new = other.iter().filter(|it| !one.contains(it));
                one.iter().chain(new).cloned().collect()
            }
            (Some(Value::Array(one)), Value::Array(other)) if key == "enum" || key == "type" => {
                one.iter().filter(|it| other.contains(it)).cloned().collect()
            }
            (Some(one), other) if key.starts_with("min") || key == "exclusiveMinimum" => {
                if one.as_f64() >= other.as_f64() { one.clone() } else { other.clone() }
            }
            (Some(one), other) if key.starts_with("max") || key == "exclusiveMaximum" => {
                if one.as_f64() <= other.as_f64() { one.clone() } else { other.clone() }
            }
            (Some(_), other) => other.clone(),
        };
        merged.insert(key.clone(), both);
    }
    merged
}

/// The likely types of a schema without a `type`.
fn likely_types(schema: &Map<String, Value>) -> Vec<&'static str> {
    let has = |keys: &[&str]| keys.iter().any(|key| schema.contains_key(*key));
    let mut types = Vec::new();
    if has(&["properties", "required", "additionalProperties", "minProperties", "patternProperties", "propertyNames"]) {
        types.push("object");
    }
    if has(&["items", "prefixItems", "minItems", "contains", "uniqueItems"]) {
        types.push("array");
    }
    if has(&["pattern", "format", "minLength", "maxLength"]) {
        types.push("string");
    }
    if has(&["minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"]) {
        types.push("number");
    }
    types.extend(["string", "object", "array", "integer", "boolean", "null"]);
    types
}

fn strings(schema: &Map<String, Value>, name: Option<&str>) -> Vec<Value> {
    let bound = |key: &str| schema.get(key).and_then(Value::as_u64).and_then(|it| usize::try_from(it).ok());
    let (least, most) =
        (bound("minLength").unwrap_or(0).min(MAX_VALUES * 10), bound("maxLength").unwrap_or(usize::MAX));
    let mut found: Vec<String> = Vec::new();
    found.extend(schema.get("format").and_then(Value::as_str).and_then(of_format).map(str::to_owned));
    found.extend(schema.get("pattern").and_then(Value::as_str).and_then(of_pattern));
    let usual = name.unwrap_or("text");
    let fitted = |text: &str| {
        let text: String = text.chars().take(most).collect();
        let missing = least.saturating_sub(text.chars().count());
        format!("{text}{}", "x".repeat(missing))
    };
    found.extend(found.clone().iter().map(|text| fitted(text)));
    found.push(fitted(usual));
    found.into_iter().map(Value::from).collect()
}

/// Numbers within the bounds, beginning near 1.
fn numbers(schema: &Map<String, Value>, step: f64) -> Vec<Value> {
    let number = |key: &str| schema.get(key).and_then(Value::as_f64);
    let step = number("multipleOf").filter(|it| *it > 0.0).unwrap_or(step);
    let least = number("exclusiveMinimum").map(|it| it + step).or(number("minimum"));
    let most = number("exclusiveMaximum").map(|it| it - step).or(number("maximum"));
    let up = |value: f64| (value / step).ceil() * step;
    let down = |value: f64| (value / step).floor() * step;
    let mut found = vec![1.0, 0.0];
    found.splice(0..0, least.map(up));
    found.extend(most.map(down));
    found.extend([number("minimum"), number("maximum")].into_iter().flatten());
    found.extend([up(1.0), step]);
    if let (Some(low), Some(high)) = (number("exclusiveMinimum"), number("exclusiveMaximum")) {
        found.push(low.midpoint(high));
    }
    found.into_iter().filter_map(written).collect()
}

/// `1` for 1.0.
fn written(value: f64) -> Option<Value> {
    let whole = value as i64;
    if whole as f64 == value { Some(whole.into()) } else { Number::from_f64(value).map(Value::Number) }
}

/// The schema of a key that a pattern describes.
fn patterned<'a>(schema: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    let patterns = schema.get("patternProperties")?.as_object()?;
    let fits = |pattern: &String| regex::Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(key));
    patterns.iter().find(|(pattern, _)| fits(pattern)).map(|(_, part)| part)
}

/// A different value for each number.
fn distinct(choices: &[Value], number: usize) -> Option<Value> {
    if let Some(choice) = choices.get(number) {
        return Some(choice.clone());
    }
    match choices.first()? {
        Value::String(text) => Some(format!("{text}{number}").into()),
        Value::Number(first) => written(first.as_f64()? + number as f64),
        Value::Object(fields) => {
            let mut fields = fields.clone();
            let (key, value) = fields.iter().next().map(|(key, value)| (key.clone(), value.clone()))?;
            fields.insert(key, distinct(&[value], number)?);
            Some(Value::Object(fields))
        }
        Value::Array(_) => Some(json!([number])),
        Value::Null | Value::Bool(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_the_schema_suggests_come_first() {
        for (schema, expected) in [
            (json!({"const": 7}), json!(7)),
            (json!({"type": "string", "default": "d", "examples": ["e"]}), json!("d")),
            (json!({"type": "string", "examples": ["e"]}), json!("e")),
            (json!({"enum": ["a", "b"]}), json!("a")),
            (json!({"type": "integer", "default": "wrong", "minimum": 5}), json!(5)),
            (
                json!({"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}),
                json!({"city": "city", "days": 1}),
            ),
        ] {
            assert_eq!(example(&schema), Some(expected), "{schema}");
        }
    }

    #[test]
    fn every_example_is_accepted_by_its_schema() {
        for schema in [
            json!(true),
            json!({}),
            json!({"type": ["null", "string"]}),
            json!({"type": "string", "minLength": 5, "maxLength": 7}),
            json!({"type": "string", "format": "date-time"}),
            json!({"type": "string", "pattern": "^[A-Z]{2}\\d+$"}),
            json!({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.1}),
            json!({"type": "integer", "multipleOf": 7, "minimum": 15}),
            json!({"type": "integer", "maximum": -3}),
            json!({"type": "array", "items": {"type": "integer"}, "minItems": 3, "uniqueItems": true}),
            json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "boolean"}], "items": false}),
            json!({"type": "array", "contains": {"const": 5}, "minContains": 2}),
            json!({"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": {"type": "object", "required": ["c"], "properties": {"c": {"type": "number"}}}}}),
            json!({"allOf": [{"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}, {"required": ["b"], "properties": {"b": {"minimum": 4, "type": "integer"}}}]}),
            json!({"oneOf": [{"type": "string", "maxLength": 0}, {"type": "integer"}]}),
            json!({"anyOf": [false, {"type": "object", "minProperties": 2}]}),
            json!({"type": "object", "properties": {"a": {"const": 1}}, "dependentRequired": {"a": ["b"]}}),
            json!({"type": "object", "properties": {"next": {"$ref": "#"}, "n": {"type": "integer"}}, "required": ["n"]}),
            json!({"type": "object", "minProperties": 2, "additionalProperties": {"type": "integer"}}),
            json!({"type": "object", "patternProperties": {"^k": {"type": "boolean"}}, "minProperties": 1}),
            json!({"if": {"properties": {"a": {"const": 1}}, "required": ["a"]}, "then": {"required": ["b"]}, "else": {"required": ["c"]}, "type": "object"}),
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "array", "items": [{"type": "integer"}], "additionalItems": false, "minItems": 1}),
        ] {
            let value = example(&schema).unwrap_or_else(|| panic!("nothing for {schema}"));
            assert!(Schema::compile(&schema).unwrap().is_valid(&value), "{schema}: {value}");
            assert_eq!(example(&schema), Some(value), "the same again");
        }
    }

    #[test]
    fn nothing_is_given_where_nothing_fits() {
        for schema in [json!(false), json!({"type": "integer", "minimum": 2, "maximum": 1}), json!({"not": {}})] {
            assert_eq!(example(&schema), None, "{schema}");
        }
    }
}
