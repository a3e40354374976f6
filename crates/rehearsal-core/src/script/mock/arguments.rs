//! Which keys of a `when` are names.

use serde_json::Value;

use super::names::variables;
use super::{AnswerRule, MockFile};

/// Tells every `when` the names of the arguments it may speak of, so that an argument called like an operator is one.
pub(super) fn name_arguments(mock: &MockFile) {
    for tool in &mock.tools {
        let schema = tool.input_schema.as_ref().map(|schema| &schema.written);
        name(&tool.answers, &|key| schema.is_some_and(|schema| has_property(schema, key)));
    }
    for prompt in &mock.prompts {
        name(&prompt.answers, &|key| prompt.arguments.iter().any(|argument| argument.name.value == key));
    }
    for resource in &mock.resources {
        name(&resource.answers, &|_| false);
    }
    for template in &mock.resource_templates {
        let variables = variables(&template.uri_template).unwrap_or_default();
        name(&template.answers, &|key| variables.contains(key));
    }
}

fn name(answers: &[AnswerRule], is_name: &dyn Fn(&str) -> bool) {
    for answer in answers {
        if let Some(when) = &answer.when {
            when.with_names(is_name);
        }
        let asked =
            |key: &str| answer.steps.iter().flat_map(|step| step.value.questions()).any(|(name, _)| *name == key);
        name(&answer.choose, &asked);
        name(&answer.in_turn, is_name);
    }
}

/// Whether a schema speaks of this property of an object.
pub(super) fn has_property(schema: &Value, key: &str) -> bool {
    properties(schema).contains(&key)
}

/// The properties that a schema speaks of.
pub(super) fn properties(schema: &Value) -> Vec<&str> {
    let own = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let joined = ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|word| schema.get(word)?.as_array()).flatten();
    own.map(|(key, _)| key.as_str()).chain(joined.flat_map(properties)).collect()
}

#[cfg(test)]
mod tests {
    use crate::script::mock::{Otherwise, parse};

    fn check(tool: &str) -> Result<(), String> {
        let file = format!("tools:\n  - {{ name: a, {tool} }}\n");
        parse("m.yaml", &file, Otherwise::Refuse).map(drop).map_err(|error| error.to_string())
    }

    #[test]
    fn an_operator_is_a_name_where_the_schema_has_it() {
        let wrong = "answers: [{ when: { any_of: 5 }, text: x }]";
        let error = check(wrong).unwrap_err();
        assert!(error.starts_with("m.yaml:2:44: `any_of` takes a list with at least one matcher, not 5"), "{error}");
        assert_eq!(check(&format!("input_schema: {{ properties: {{ any_of: {{}} }} }}, {wrong}")), Ok(()));
    }
}
