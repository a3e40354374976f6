//! A JSON Schema, compiled once.

use std::sync::Arc;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;

use super::mismatch_sink::{Mismatch, first_mismatches};
use super::parse::{MatcherError, MatcherProblem};
use crate::json::{DEFAULT_EXCERPT, Path, excerpt};

/// Maximum number of backtracking steps of one `pattern`; ECMAScript patterns are not linear.
const BACKTRACK_LIMIT: usize = 100_000;
/// Maximum size of a compiled `pattern`, in bytes.
const PATTERN_SIZE_LIMIT: usize = 1 << 20;

/// A compiled JSON Schema. It fetches nothing: a reference to another document is an error.
#[derive(Debug, Clone)]
pub struct Schema {
    written: Arc<Value>,
    validator: Arc<Validator>,
}

impl Schema {
    /// Compiles a schema. One without a `$schema`, or with an unknown one, is read as 2020-12, as MCP requires.
    pub fn compile(schema: &Value) -> Result<Schema, MatcherError> {
        let validator = match schema_options().build(schema) {
            Err(error) if is_unknown_dialect(&error) && schema.get("$schema").is_some_and(Value::is_string) => {
                schema_options().build(&without_dialect(schema))
            }
            built => built,
        };
        match validator {
            Ok(validator) => Ok(Schema { written: Arc::new(schema.clone()), validator: Arc::new(validator) }),
            Err(error) => {
                let path = Path::from_pointer(error.instance_path().as_str(), schema);
                let reason = error.to_string();
                Err(MatcherProblem::BadSchema { reason }.at(&path))
            }
        }
    }

    /// The schema before compilation.
    pub fn as_value(&self) -> &Value {
        &self.written
    }

    /// Whether the schema accepts a value.
    pub fn is_valid(&self, actual: &Value) -> bool {
        self.validator.is_valid(actual)
    }

    /// The [first](first_mismatches) places where a value is invalid; fast if it is valid.
    pub fn objections(&self, actual: &Value) -> Vec<String> {
        if self.is_valid(actual) { Vec::new() } else { first_mismatches(&self.check(actual)) }
    }

    /// Every mismatch between the schema and a value.
    pub fn check(&self, actual: &Value) -> Vec<Mismatch> {
        let errors = self.validator.iter_errors(actual);
        errors.flat_map(|error| mismatches(&error, actual)).collect()
    }
}

/// One rule of a schema that a value breaks, in the terms of JSON Schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaViolation {
    /// The path of the value, or of the member that is missing or not allowed.
    pub path: Path,
    /// The keyword of the schema, such as `type`, `required` or `oneOf`.
    pub keyword: String,
    /// What the schema expects: for types their names, such as `string` or `string or null`.
    pub expected: String,
    /// The type of the value if the type is wrong, else an excerpt of the value; `missing` for a missing member.
    pub found: String,
}

impl Schema {
    /// Every rule that a value breaks.
    pub fn violations(&self, actual: &Value) -> Vec<SchemaViolation> {
        self.validator.iter_errors(actual).flat_map(|error| violations(&error, &self.written, actual)).collect()
    }
}

/// Converts one error of the validator; an error about several keys becomes one violation for each key.
fn violations(error: &ValidationError<'_>, schema: &Value, whole: &Value) -> Vec<SchemaViolation> {
    use ValidationErrorKind as Kind;
    let keyword = error.kind().keyword().to_owned();
    let violation = |mismatch: Mismatch| {
        let Mismatch { path, expected, got } = mismatch;
        SchemaViolation { path, keyword: keyword.clone(), expected, found: got.unwrap_or_else(|| "missing".to_owned()) }
    };
    let mut found: Vec<SchemaViolation> = mismatches(error, whole).into_iter().map(violation).collect();
    match error.kind() {
        Kind::Type { kind } => {
            let mut names: Vec<String> = match kind {
                TypeKind::Single(kind) => vec![kind.to_string()],
                TypeKind::Multiple(kinds) => kinds.iter().map(|kind| kind.to_string()).collect(),
            };
            // The validator keeps a set, without the order of the schema.
            names.sort_by_key(|name| (name == "null", name.clone()));
            for violation in &mut found {
                violation.expected = names.join(" or ");
                violation.found = type_name(error.instance(), &names).to_owned();
            }
        }
        Kind::Required { property } => {
            let types = property_types(schema, error.schema_path().as_str(), property.as_str().unwrap_or_default());
            for violation in &mut found {
                violation.expected = types.clone().unwrap_or_else(|| "a value".to_owned());
            }
        }
        Kind::AdditionalProperties { .. } | Kind::UnevaluatedProperties { .. } => {
            found.iter_mut().for_each(|violation| violation.expected = "no such member".to_owned());
        }
        Kind::AnyOf { .. } | Kind::OneOfNotValid { .. } => {
            if let Some(names) = branch_types(schema, error.schema_path().as_str()) {
                let has_type = names.iter().filter_map(|name| crate::json::JsonType::named(name));
                let is_typed = has_type.into_iter().any(|kind| kind.includes(error.instance()));
                for violation in &mut found {
                    violation.expected = names.join(" or ");
                    if !is_typed {
                        violation.found = type_name(error.instance(), &names).to_owned();
                    }
                }
            }
        }
        _ => {}
    }
    found
}

/// `number` for an integer, unless the schema expects an integer elsewhere.
fn type_name(value: &Value, expected: &[String]) -> &'static str {
    match crate::json::JsonType::from_value(value) {
        crate::json::JsonType::Integer if !expected.iter().any(|name| name == "integer") => "number",
        kind => kind.name(),
    }
}

/// The types and constants that the branches of `anyOf` or `oneOf` accept, if all of them name some.
fn branch_types(schema: &Value, path: &str) -> Option<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    for branch in schema.pointer(path)?.as_array()? {
        let values: Vec<String> = match (branch.get("type"), branch.get("const"), branch.get("enum")) {
            (Some(Value::String(name)), _, _) => vec![name.clone()],
            (Some(Value::Array(several)), _, _) => {
                several.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            (_, Some(value), _) => vec![excerpt(value, DEFAULT_EXCERPT)],
            (_, _, Some(Value::Array(values))) => values.iter().map(|value| excerpt(value, DEFAULT_EXCERPT)).collect(),
            _ => return None,
        };
        names.extend(values);
    }
    names.sort_by_key(|name| name == "null");
    names.dedup();
    Some(names)
}

/// The types that the schema beside `required` gives for a member.
fn property_types(schema: &Value, required: &str, property: &str) -> Option<String> {
    let owner = schema.pointer(required.strip_suffix("/required")?)?;
    match owner.get("properties")?.get(property)?.get("type")? {
        Value::String(name) => Some(name.clone()),
        Value::Array(names) => Some(names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")),
        _ => None,
    }
}

/// The settings of all validators: nothing is fetched, and patterns have limits.
pub(crate) fn schema_options() -> jsonschema::ValidationOptions<'static> {
    let patterns = PatternOptions::fancy_regex().backtrack_limit(BACKTRACK_LIMIT).size_limit(PATTERN_SIZE_LIMIT);
    jsonschema::options().offline().with_pattern_options(patterns)
}

fn is_unknown_dialect(error: &ValidationError<'_>) -> bool {
    matches!(error.kind(), ValidationErrorKind::Referencing(_))
}

fn without_dialect(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(fields) = schema.as_object_mut() {
        fields.shift_remove("$schema");
    }
    schema
}

/// Converts one error of the validator; an error about several keys becomes one mismatch for each key.
fn mismatches(error: &ValidationError<'_>, whole: &Value) -> Vec<Mismatch> {
    use ValidationErrorKind as Kind;
    let path = Path::from_pointer(error.instance_path().as_str(), whole);
    let here = |expected: String| {
        let got = Some(excerpt(error.instance(), DEFAULT_EXCERPT));
        let path = path.clone();
        vec![Mismatch { path, expected, got }]
    };
    match error.kind() {
        Kind::Required { property } => vec![Mismatch {
            path: path.join(property.as_str().unwrap_or_default()),
            expected: "what the schema requires".to_owned(),
            got: None,
        }],
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let surplus = unexpected.iter().map(|key| Mismatch {
                path: path.join(key.as_str()),
                expected: "nothing".to_owned(),
                got: error.instance().get(key).map(|value| excerpt(value, DEFAULT_EXCERPT)),
            });
            surplus.collect()
        }
        Kind::Type { kind } => here(match kind {
            TypeKind::Single(kind) => with_article(&kind.to_string()),
            TypeKind::Multiple(kinds) => {
                let names: Vec<_> = kinds.iter().map(|kind| with_article(&kind.to_string())).collect();
                names.join(" or ")
            }
        }),
        Kind::Enum { options } => here(format!("one of {}", excerpt(options, DEFAULT_EXCERPT))),
        Kind::Constant { expected_value } => here(excerpt(expected_value, DEFAULT_EXCERPT)),
        Kind::Pattern { pattern } => here(format!("a string matching /{pattern}/")),
        Kind::Format { format } => here(format!("a string in the format `{format}`")),
        Kind::Minimum { limit } => here(format!("a number >= {limit}")),
        Kind::Maximum { limit } => here(format!("a number <= {limit}")),
        Kind::ExclusiveMinimum { limit } => here(format!("a number > {limit}")),
        Kind::ExclusiveMaximum { limit } => here(format!("a number < {limit}")),
        Kind::MinLength { limit } | Kind::MinItems { limit } | Kind::MinProperties { limit } => {
            here(format!("a length >= {limit}"))
        }
        Kind::MaxLength { limit } | Kind::MaxItems { limit } | Kind::MaxProperties { limit } => {
            here(format!("a length <= {limit}"))
        }
        // The validator has more kinds of errors than are worth texts of their own, and may add more.
        _ => here(format!("the schema to hold ({})", error.masked())),
    }
}

fn with_article(name: &str) -> String {
    match crate::json::JsonType::named(name) {
        Some(kind) => kind.with_article().to_owned(),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_error_of_the_schema_is_a_mismatch_with_its_path() {
        let schema = Schema::compile(&json!({
            "type": "object",
            "required": ["city", "unit"],
            "properties": {
                "city": {"type": "string", "minLength": 2},
                "days": {"type": ["integer", "null"], "minimum": 1},
                "unit": {"enum": ["C", "F"]},
                "tags": {"uniqueItems": true},
                "odd key": {"items": {"pattern": "^a"}},
            },
            "additionalProperties": false,
        }))
        .unwrap();
        let messages_for =
            |actual: Value| -> Vec<String> { schema.check(&actual).iter().map(Mismatch::to_string).collect() };
        for (actual, expected) in [
            (json!({"city": "Oslo", "unit": "C"}), vec![]),
            (json!({"city": "Oslo"}), vec!["$.unit: missing, expected what the schema requires"]),
            (json!({"city": 1, "unit": "C"}), vec!["$.city: expected a string, got 1"]),
            (
                json!({"city": "O", "unit": "K"}),
                vec!["$.city: expected a length >= 2, got \"O\"", "$.unit: expected one of [\"C\",\"F\"], got \"K\""],
            ),
            (
                json!({"city": "Oslo", "unit": "C", "x": 1, "y": 2}),
                vec!["$.x: expected nothing, got 1", "$.y: expected nothing, got 2"],
            ),
            (
                json!({"city": "Oslo", "unit": "C", "odd key": ["a", "b"]}),
                vec!["$[\"odd key\"][1]: expected a string matching /^a/, got \"b\""],
            ),
            (
                json!({"city": "Oslo", "unit": "C", "tags": [1, 1]}),
                vec!["$.tags: expected the schema to hold (value has non-unique elements), got [1,1]"],
            ),
            (json!({"city": "Oslo", "unit": "C", "days": 1.5}), vec!["$.days: expected null or an integer, got 1.5"]),
        ] {
            assert_eq!(messages_for(actual.clone()), expected, "{actual}");
            assert_eq!(schema.is_valid(&actual), expected.is_empty());
        }
    }

    #[test]
    fn a_schema_of_an_unknown_dialect_is_read_as_2020_12() {
        let schema = Schema::compile(&json!({
            "$schema": "https://example.com/my-own",
            "prefixItems": [{"type": "string"}],
        }))
        .unwrap();
        assert!(!schema.is_valid(&json!([1])));
        let known = json!({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]});
        let schema = Schema::compile(&known).unwrap();
        assert!(!schema.is_valid(&json!([1])));
    }

    #[test]
    fn a_bad_schema_is_refused_with_its_place() {
        let error = Schema::compile(&json!({"properties": {"a": {"type": "strng"}}})).unwrap_err();
        assert_eq!(error.path.to_string(), "$.properties.a.type");
        assert!(error.to_string().contains("not a JSON Schema: \"strng\""), "{error}");
    }

    #[test]
    fn a_schema_never_reaches_for_the_network_or_the_disk() {
        for reference in ["https://example.com/a.json", "file:///etc/hostname"] {
            assert!(Schema::compile(&json!({"$ref": reference})).is_err(), "{reference}");
        }
    }

    #[test]
    fn endless_backtracking_is_stopped() {
        let schema = Schema::compile(&json!({"pattern": r"^(a*)*\1$"})).unwrap();
        let actual = Value::from("a".repeat(40) + "b");
        assert!(!schema.is_valid(&actual));
        assert_eq!(schema.check(&actual).len(), 1);
    }

    #[test]
    fn a_violation_names_types_as_json_schema_does() {
        let schema = Schema::compile(&json!({
            "type": "object",
            "required": ["path"],
            "properties": {"path": {"type": "string"}, "content": {"type": ["string", "null"]}, "depth": {"maximum": 3}, "since": {"anyOf": [{"type": "null"}, {"type": "string"}]}},
            "additionalProperties": false,
        }))
        .unwrap();
        let violations = schema.violations(&json!({"content": 7, "depth": 9, "mode": "x", "since": 5}));
        let mut lines: Vec<String> =
            violations.iter().map(|it| format!("{} {} {} {}", it.path, it.keyword, it.expected, it.found)).collect();
        lines.sort();
        assert_eq!(
            lines,
            [
                "$.content type string or null number",
                "$.depth maximum a number <= 3 9",
                "$.mode additionalProperties no such member \"x\"",
                "$.path required string missing",
                "$.since anyOf string or null number",
            ]
        );
    }
}
