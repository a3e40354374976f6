//! Infers a JSON Schema from values.

use serde_json::{Map, Value, json};

use crate::json::JsonType;

/// Maximum number of members of an object that a schema describes; an object with more is a map.
const MAX_MEMBERS: usize = 200;

/// The narrowest schema of types, members and elements that accepts all values: a member is required if every object has it.
/// Without values it is the schema that accepts everything.
///
/// ```
/// # use rehearsal_core::schema::infer;
/// # use serde_json::json;
/// let schema = infer(&[json!({"id": 1, "name": "a"}), json!({"id": 2})]);
/// assert_eq!(schema["required"], json!(["id"]));
/// assert_eq!(schema["properties"]["name"], json!({"type": "string"}));
/// ```
pub fn infer(values: &[Value]) -> Value {
    infer_all(&values.iter().collect::<Vec<_>>())
}

fn infer_all(values: &[&Value]) -> Value {
    let mut types: Vec<JsonType> = Vec::new();
    for kind in values.iter().map(|value| JsonType::from_value(value)) {
        if !types.contains(&kind) {
            types.push(kind);
        }
    }
    if types.contains(&JsonType::Number) {
        types.retain(|kind| *kind != JsonType::Integer);
    }
    let mut schema = Map::new();
    match &types[..] {
        [] => return json!({}),
        [only] => schema.insert("type".to_owned(), json!(only.name())),
        several => schema.insert("type".to_owned(), several.iter().map(|kind| kind.name()).collect()),
    };
    let elements: Vec<&Value> = values.iter().filter_map(|value| value.as_array()).flatten().collect();
    if !elements.is_empty() {
        schema.insert("items".to_owned(), infer_all(&elements));
    }
    let objects: Vec<&Map<String, Value>> = values.iter().filter_map(|value| value.as_object()).collect();
    if !objects.is_empty() {
        infer_members(&objects, &mut schema);
    }
    Value::Object(schema)
}

fn infer_members(objects: &[&Map<String, Value>], schema: &mut Map<String, Value>) {
    let mut names: Vec<&String> = Vec::new();
    for name in objects.iter().flat_map(|object| object.keys()) {
        if !names.contains(&name) {
            names.push(name);
        }
        if names.len() > MAX_MEMBERS {
            return;
        }
    }
    let values = |name: &String| objects.iter().filter_map(|object| object.get(name)).collect::<Vec<_>>();
    let properties: Map<String, Value> = names.iter().map(|name| ((*name).clone(), infer_all(&values(name)))).collect();
    let is_required = |name: &&&String| objects.iter().all(|object| object.contains_key(**name));
    let required: Vec<Value> = names.iter().filter(is_required).map(|name| json!(name)).collect();
    schema.insert("properties".to_owned(), properties.into());
    if !required.is_empty() {
        schema.insert("required".to_owned(), required.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matcher::Schema;

    #[test]
    fn the_schema_accepts_every_value_it_was_inferred_from() {
        let values = [
            json!({"files": [{"name": "a", "size": 1}, {"name": "b", "size": 1.5, "tags": []}], "next": null}),
            json!({"files": [], "next": "c"}),
            json!("text"),
        ];
        let schema = infer(&values);
        let compiled = Schema::compile(&schema).unwrap();
        for value in &values {
            assert!(compiled.is_valid(value), "{value}: {schema}");
        }
        assert!(!compiled.is_valid(&json!({"files": [{"size": 1}], "next": null})), "`name` is in every file");
        assert!(!compiled.is_valid(&json!(7)));
    }

    #[test]
    fn integers_and_numbers_are_numbers() {
        assert_eq!(infer(&[json!(1), json!(1.5)]), json!({"type": "number"}));
        assert_eq!(infer(&[]), json!({}));
    }
}
