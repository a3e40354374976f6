//! The fields of a form, as far as a version has them.

use serde_json::Value;

/// Whether a form lets somebody choose several things, or among things with titles: nobody could before 2025-11-25.
pub(super) fn has_choices(schema: &Value) -> bool {
    let fields = schema.get("properties").and_then(Value::as_object);
    fields.is_some_and(|fields| fields.values().any(is_choice))
}

fn is_choice(field: &Value) -> bool {
    field["type"] == "array" || field.get("oneOf").is_some()
}

/// A form without the fields that nobody had before 2025-11-25.
pub(super) fn forget_choices(schema: &mut Value) {
    let Some(fields) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    let forgotten: Vec<String> = fields.iter().filter(|(_, it)| is_choice(it)).map(|(name, _)| name.clone()).collect();
    fields.retain(|name, _| !forgotten.contains(name));
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| !forgotten.iter().any(|it| name == it));
    }
}
