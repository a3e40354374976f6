//! The arguments of a call, checked against the input schema of its tool.

use rehearsal_core::json::{Path, Segment};
use rehearsal_core::matcher::Schema;
use serde_json::Value;

/// One rule of an input schema that the arguments break.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(super) path: Path,
    pub(super) keyword: String,
    pub(super) expected: String,
    pub(super) got: String,
}

/// The rules that arguments break.
fn check_arguments(schema: &Schema, arguments: &Value) -> Vec<Violation> {
    if schema.is_valid(arguments) {
        return Vec::new();
    }
    let violations = schema.violations(arguments).into_iter().map(|violation| Violation {
        path: violation.path,
        keyword: violation.keyword,
        expected: violation.expected,
        got: violation.found,
    });
    violations.collect()
}

/// Arguments as far as they are known.
pub(super) struct KnownArguments<'a> {
    /// The arguments; at the unknown paths stands any value.
    pub(super) value: &'a Value,
    /// The paths of parts that are not known.
    pub(super) unknown: &'a [Path],
    /// The paths of objects that may have more members.
    pub(super) open: &'a [Path],
}

/// The rules that arguments break whatever their unknown parts are. A violation at an unknown part or inside it is dropped,
/// and one above it is dropped if its keyword combines schemas or values. A member that may still be there is not missing.
pub(super) fn check_known_parts(schema: &Schema, arguments: &KnownArguments<'_>) -> Vec<Violation> {
    let depends_on_unknown = |violation: &Violation| {
        let combines = matches!(
            violation.keyword.as_str(),
            "oneOf" | "anyOf" | "not" | "if" | "allOf" | "contains" | "uniqueItems" | "enum" | "const"
        );
        let unknown = |path: &Path| violation.path.is_within(path) || (combines && path.is_within(&violation.path));
        arguments.unknown.iter().any(unknown)
    };
    let may_be_there = |violation: &Violation| {
        let mut owner = violation.path.clone();
        owner.pop();
        violation.keyword == "required" && arguments.open.contains(&owner)
    };
    let mut violations = check_arguments(schema, arguments.value);
    violations.retain(|violation| !depends_on_unknown(violation) && !may_be_there(violation));
    violations
}

impl Violation {
    /// The argument: the path without `$.`.
    pub(super) fn argument(&self) -> String {
        let text = self.path.to_string();
        match self.path.segments() {
            [] => "(arguments)".to_owned(),
            [Segment::Index(_), ..] => text,
            _ => text.strip_prefix("$.").unwrap_or(&text).to_owned(),
        }
    }

    /// `$.content: expected string, got number`
    pub(super) fn message(&self) -> String {
        match self.keyword.as_str() {
            "additionalProperties" | "unevaluatedProperties" => format!("{}: the tool has no such argument", self.path),
            "required" => format!("{}: missing, expected {}", self.path, self.expected),
            _ => format!("{}: expected {}, got {}", self.path, self.expected, self.got),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Schema {
        Schema::compile(&json!({
            "type": "object",
            "required": ["path"],
            "properties": {
                "path": {"type": "string", "minLength": 1},
                "content": {"type": "string"},
                "mode": {"anyOf": [{"type": "string"}, {"type": "object", "required": ["a"]}]},
            },
            "additionalProperties": false,
        }))
        .unwrap()
    }

    #[test]
    fn every_violation_has_its_argument() {
        let violations = check_arguments(&schema(), &json!({"content": 7, "mod": 1}));
        let mut messages: Vec<String> = violations.iter().map(Violation::message).collect();
        messages.sort();
        assert_eq!(
            messages,
            [
                "$.content: expected string, got number",
                "$.mod: the tool has no such argument",
                "$.path: missing, expected string",
            ]
        );
        assert!(violations.iter().any(|violation| violation.argument() == "content"));
    }

    #[test]
    fn an_unknown_part_breaks_no_rule() {
        let unknown = [Path::root().join("path"), Path::root().join("mode").join("b")];
        let value = json!({"path": null, "mode": {"b": null}, "content": 7});
        let violations = check_known_parts(&schema(), &KnownArguments { value: &value, unknown: &unknown, open: &[] });
        assert_eq!(violations.iter().map(Violation::argument).collect::<Vec<_>>(), ["content"]);
    }
}
