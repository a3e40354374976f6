//! Builds a small, plausible value that a schema accepts.

use serde_json::Value;

use super::generator::{Effort, ExampleGenerator};
use super::subschema::Document;
use crate::matcher::Schema;

/// Maximum number of steps of the search without checks of the parts, which finds a value for most schemas.
const MAX_QUICK_STEPS: usize = 20_000;
/// Maximum number of steps of the search that checks each part; a step is a schema or a candidate.
const MAX_CHECKED_STEPS: usize = 50_000;

/// Why a schema has no example.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoExample {
    /// The value is not a JSON Schema.
    #[error("{reason}")]
    NotASchema {
        /// What the validator reported.
        reason: String,
    },
    /// The schema refers to another document, and no document is fetched.
    #[error("refers to another document: {reason}")]
    OtherDocument {
        /// Which reference cannot be resolved.
        reason: String,
    },
    /// The schema rejects every value that was tried.
    #[error("rejects each of {tried} candidates")]
    NothingFits {
        /// How many candidates the schema rejected.
        tried: usize,
    },
    /// Required values are nested too deeply, or without an end.
    #[error("requires values that are nested too deeply")]
    TooDeep,
    /// The schema requires more elements, keys or characters than an example has.
    #[error("requires more elements, keys or characters than an example has")]
    TooLarge,
    /// The search was stopped at its limit.
    #[error("needs a search of more than {steps} steps")]
    TooMuchWork {
        /// The maximum number of steps.
        steps: usize,
    },
}

debug_as_display!(NoExample);

/// Returns a value that the schema accepts, or `None`: [`example_or_reason`] without the reason.
pub fn example(schema: &Value) -> Option<Value> {
    example_or_reason(schema).ok()
}

/// Returns a value that the schema accepts. The same schema always gives the same value.
///
/// The schema's own suggestions come first: `const`, `default`, `examples`, `enum`. Each value is validated against
/// the whole schema before it is returned.
pub fn example_or_reason(schema: &Value) -> Result<Value, NoExample> {
    let checked = match Schema::compile(schema) {
        Ok(checked) => checked,
        Err(error) => {
            return Err(match Document::new(schema) {
                Err(jsonschema::ReferencingError::Unretrievable { uri, .. }) => {
                    NoExample::OtherDocument { reason: uri }
                }
                Ok(_) | Err(_) => NoExample::NotASchema { reason: error.to_string() },
            });
        }
    };
    let document = match Document::new(schema) {
        Ok(document) => document,
        Err(error) => return Err(NoExample::OtherDocument { reason: error.to_string() }),
    };
    let mut tried = 0;
    let mut reason = NoExample::NothingFits { tried };
    for (effort, max_steps) in [(Effort::Quick, MAX_QUICK_STEPS), (Effort::Checked, MAX_CHECKED_STEPS)] {
        let generator = ExampleGenerator::new(&document, effort, max_steps);
        let found = generator.find(&mut |candidate| {
            tried += 1;
            checked.is_valid(candidate)
        });
        if let Some(found) = found {
            return Ok(found);
        }
        reason = if generator.is_too_large() {
            NoExample::TooLarge
        } else if generator.is_too_deep() {
            NoExample::TooDeep
        } else if generator.is_exhausted() {
            NoExample::TooMuchWork { steps: max_steps }
        } else {
            NoExample::NothingFits { tried }
        };
    }
    Err(reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
    fn hard_schemas_have_valid_examples() {
        for schema in [
            // References: by `$id`, by anchor, recursive, in draft-07 and in the dynamic scope.
            json!({"$id": "https://example.com/root", "$ref": "a", "$defs": {
                "a": {"$id": "a", "type": "object", "properties": {"b": {"$ref": "b#x"}}, "required": ["b"]},
                "b": {"$id": "b", "$defs": {"x": {"$anchor": "x", "type": "string", "minLength": 3}}},
            }}),
            json!({"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "object", "required": ["left", "right"], "properties": {
                "left": {"anyOf": [{"$ref": "#/$defs/tree"}, {"type": "null"}]},
                "right": {"anyOf": [{"$ref": "#/$defs/tree"}, {"type": "null"}]},
            }}}}),
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"n": {"type": "integer"}}, "type": "object", "required": ["p"],
                "properties": {"p": {"items": [{"$ref": "#/definitions/n"}, {"type": "string"}], "additionalItems": {"type": "boolean"}, "minItems": 4}},
                "dependencies": {"p": ["q"], "q": {"required": ["r"]}}}),
            json!({"$id": "https://example.com/list", "$ref": "#/$defs/list", "$defs": {
                "element": {"$dynamicAnchor": "element", "type": "integer"},
                "list": {"$id": "generic", "type": "array", "items": {"$dynamicRef": "#element"}, "minItems": 1,
                    "$defs": {"element": {"$dynamicAnchor": "element"}}},
            }}),
            // Strings.
            json!({"type": "string", "pattern": "^(?=.*[A-Z])(?=.*\\d)(?=.*[a-z]).{8,}$"}),
            json!({"type": "string", "pattern": "^[a-z]+$", "minLength": 12, "maxLength": 14}),
            json!({"allOf": [{"pattern": "^a"}, {"pattern": "z$"}], "type": "string"}),
            // Numbers.
            json!({"type": "number", "multipleOf": 0.01, "exclusiveMinimum": 0.1, "maximum": 0.13}),
            json!({"allOf": [{"multipleOf": 4}, {"multipleOf": 6}], "type": "integer", "minimum": 13}),
            json!({"oneOf": [{"type": "number", "multipleOf": 5}, {"type": "number", "multipleOf": 3}], "minimum": 15}),
            // Arrays.
            json!({"items": {"type": "string", "pattern": "^[a-c]\\d?$"}, "type": "array", "minItems": 20, "uniqueItems": true}),
            json!({"items": {"properties": {"id": {"type": "integer"}}, "required": ["id"], "type": "object"}, "type": "array", "minItems": 5, "uniqueItems": true}),
            json!({"type": "array", "contains": {"type": "integer", "minimum": 5}, "minContains": 2, "maxContains": 2, "prefixItems": [{"type": "string"}], "minItems": 5}),
            json!({"type": "array", "prefixItems": [{"const": 1}], "unevaluatedItems": {"type": "boolean"}, "minItems": 3}),
            // Objects.
            json!({"type": "object", "minProperties": 3, "propertyNames": {"pattern": "^x-[a-z]+$"}, "additionalProperties": {"type": "integer"}}),
            json!({"type": "object", "minProperties": 3, "patternProperties": {"^S_": {"type": "string"}}, "additionalProperties": false}),
            json!({"type": "object", "maxProperties": 1, "properties": {"a": {}, "b": {}}, "required": ["b"]}),
            json!({"type": "object", "properties": {"a": true}, "allOf": [{"properties": {"b": {"type": "integer"}}, "required": ["b"]}], "unevaluatedProperties": false}),
            json!({"type": "object", "properties": {"card": true, "address": false}, "dependentSchemas": {"card": {"required": ["address"]}}}),
            json!({"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"], "not": {"properties": {"a": {"const": 1}}}}),
            // Combinations.
            json!({"allOf": [{"anyOf": [{"type": "string"}, {"type": "integer"}]}, {"anyOf": [{"type": "boolean"}, {"type": "integer"}]}]}),
            json!({"type": "object", "properties": {"country": {"enum": ["CA", "US"]}, "zip": {"type": "string"}}, "required": ["country", "zip"],
                "if": {"properties": {"country": {"const": "US"}}}, "then": {"properties": {"zip": {"pattern": "^\\d{5}$"}}}, "else": false}),
            json!({"not": {"type": ["string", "object"]}}),
            json!({"not": {"not": {"type": "integer", "minimum": 7}}}),
        ] {
            let value = example_or_reason(&schema).unwrap_or_else(|reason| panic!("{schema}: {reason}"));
            assert!(Schema::compile(&schema).unwrap().is_valid(&value), "{schema}: {value}");
        }
    }

    #[test]
    fn optional_recursion_ends_early() {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}, "next": {"$ref": "#"}}});
        assert_eq!(example(&schema), Some(json!({"n": 1})));
    }

    #[test]
    fn a_schema_without_an_example_has_a_reason() {
        let chain = |depth: usize| {
            let link = |index: usize| json!({"allOf": vec![json!({"$ref": format!("#/$defs/{}", index + 1)}); 2]});
            let mut links: serde_json::Map<_, _> = (0..depth).map(|index| (index.to_string(), link(index))).collect();
            links.insert(depth.to_string(), json!({"type": "string"}));
            json!({"$ref": "#/$defs/0", "$defs": links})
        };
        let name = |schema: &Value| match example_or_reason(schema) {
            Ok(value) => value.to_string(),
            Err(NoExample::NotASchema { .. }) => "not a schema".to_owned(),
            Err(NoExample::OtherDocument { .. }) => "other document".to_owned(),
            Err(NoExample::NothingFits { .. }) => "nothing fits".to_owned(),
            Err(NoExample::TooDeep) => "too deep".to_owned(),
            Err(NoExample::TooLarge) => "too large".to_owned(),
            Err(NoExample::TooMuchWork { .. }) => "too much work".to_owned(),
        };
        for (schema, expected) in [
            (json!({"type": "strng"}), "not a schema"),
            (json!({"$ref": "https://example.com/other.json"}), "other document"),
            (json!({"type": "integer", "minimum": 2, "maximum": 1}), "nothing fits"),
            (json!({"items": {"enum": [1, 2]}, "type": "array", "minItems": 3, "uniqueItems": true}), "nothing fits"),
            (json!({"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}}), "too deep"),
            (json!({"type": "array", "minItems": 100_000_000}), "too large"),
            (json!({"type": "string", "minLength": 100_000_000}), "too large"),
            (chain(30), "too much work"),
        ] {
            assert_eq!(name(&schema), expected, "{schema}");
        }
    }

    #[test]
    fn nothing_is_given_where_nothing_fits() {
        for schema in [json!(false), json!({"type": "integer", "minimum": 2, "maximum": 1}), json!({"not": {}})] {
            assert_eq!(example(&schema), None, "{schema}");
        }
    }
}
