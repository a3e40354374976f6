//! The fields of a form, as far as a version has them.

use serde_json::{Map, Value};

/// Whether a form lets somebody choose several things, or among things with titles: nobody could before 2025-11-25.
pub(super) fn has_choices(schema: &Value) -> bool {
    let fields = schema.get("properties").and_then(Value::as_object);
    fields.is_some_and(|fields| fields.values().any(is_choice))
}

fn is_choice(field: &Value) -> bool {
    field["type"] == "array" || field.get("oneOf").is_some()
}

/// A form without the fields that nobody had before 2025-11-25. A choice of one thing with a title is one in the words of then.
pub(super) fn forget_choices(schema: &mut Value) {
    let Some(fields) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    fields.values_mut().for_each(name_choices);
    let forgotten: Vec<String> = fields.iter().filter(|(_, it)| is_choice(it)).map(|(name, _)| name.clone()).collect();
    fields.retain(|name, _| !forgotten.contains(name));
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| !forgotten.iter().any(|it| name == it));
    }
}

/// ```text
/// {"oneOf": [{"const": "a", "title": "A"}]} ──► {"enum": ["a"], "enumNames": ["A"]}
/// ```
fn name_choices(field: &mut Value) {
    let choices = field.get("oneOf").and_then(Value::as_array).filter(|choices| !choices.is_empty());
    let Some(choices) = choices else { return };
    let text = |choice: &Value, key: &str| choice.get(key).filter(|it| it.is_string()).cloned();
    let named: Option<Vec<(Value, Value)>> = choices
        .iter()
        .map(|choice| {
            let word = text(choice, "const")?;
            let title = text(choice, "title").unwrap_or_else(|| word.clone());
            Some((word, title))
        })
        .collect();
    if let (Some(named), Value::Object(members)) = (named, field) {
        let (words, titles): (Vec<Value>, Vec<Value>) = named.into_iter().unzip();
        // In their place.
        *members = std::mem::take(members)
            .into_iter()
            .flat_map(|(key, value)| match key.as_str() {
                "oneOf" => {
                    vec![("enum".to_owned(), words.clone().into()), ("enumNames".to_owned(), titles.clone().into())]
                }
                _ => vec![(key, value)],
            })
            .collect::<Map<_, _>>();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_choice_with_titles_is_one_in_older_words_and_what_has_none_is_forgotten() {
        let one = json!({"type": "string", "oneOf": [{"const": "a", "title": "A"}, {"const": "b"}], "title": "One"});
        let mut schema = json!({"type": "object", "properties": {
            "one": one, "several": {"type": "array", "items": {"enum": ["a"]}}, "odd": {"oneOf": [{"const": 1}]}, "plain": {"type": "string"},
        }, "required": ["one", "several", "odd"]});
        forget_choices(&mut schema);
        let one = json!({"type": "string", "enum": ["a", "b"], "enumNames": ["A", "b"], "title": "One"});
        assert_eq!(
            schema,
            json!({"type": "object", "properties": {"one": one, "plain": {"type": "string"}}, "required": ["one"]})
        );
    }
}
