//! Finds parts of a mock file that can never match a request, or that refer to members that no request has.

use minijinja::Environment;
use serde_json::Value;

use super::check::Checker;
use super::parse::{has_property, properties};
use super::{AnswerRule, FaultRule, ToolEntry};
use crate::json::{JsonType, Path};
use crate::matcher::{Matcher, Schema};
use crate::message::Method;
use crate::protocol::Revision;
use crate::script::{Located, Parsed, Span, When};
use crate::suggest::closest;

/// The operators for a string, a number or a list.
const OPERATORS: [&str; 9] = ["matches", "contains", "any_of", "not", "type", "length", "each", "exact", "schema"];

impl Checker {
    /// Compares a `when` and the templates of a tool's answers with the `input_schema`: a call that does not match the
    /// schema is refused before its answers are evaluated.
    pub(super) fn check_input_schema(&mut self, tool: &ToolEntry) {
        let Some(schema) = tool.input_schema.as_ref().map(|schema| &schema.written) else { return };
        for answer in &tool.answers {
            if let Some(when) = &answer.when
                && let Ok(When(Matcher::Object(wanted))) = when.parsed()
            {
                self.fields_fit(when, wanted, schema, &Path::root());
            }
            if names_all_properties(schema) {
                self.arguments_exist(answer, schema);
            }
        }
    }

    fn fields_fit(&mut self, when: &Located<Parsed<When>>, wanted: &[(String, Matcher)], schema: &Value, path: &Path) {
        for (key, matcher) in wanted {
            let Some(property) = schema.get("properties").and_then(|properties| properties.get(key)) else { continue };
            let path = path.clone().join(key.as_str());
            if let Some((message, hint)) = contradiction(key, matcher, property) {
                self.inside(when.at, path, message, hint);
            } else if let Matcher::Object(wanted) = matcher {
                self.fields_fit(when, wanted, property, &path);
            }
        }
    }

    /// Reports each argument in a template that the `input_schema` does not have.
    fn arguments_exist(&mut self, answer: &AnswerRule, schema: &Value) {
        for (at, value) in values(answer) {
            let mut names = Vec::new();
            templates(&value, &Path::root(), &mut |path, text| {
                names.extend(arguments_in(text).into_iter().map(|name| (path.clone(), name)));
            });
            for (path, name) in names.into_iter().filter(|(_, name)| !has_property(schema, name)) {
                let known = properties(schema);
                let hint = match closest(&name, known.iter().copied()) {
                    Some(meant) => format!("did you mean `arguments.{meant}`?"),
                    None => format!(
                        "the input_schema has {}; add `| default(…)` if the argument may be absent",
                        known.join(", ")
                    ),
                };
                self.inside(at, path, format!("the tool has no argument `{name}`"), hint);
            }
        }
        answer.choose.iter().chain(&answer.in_turn).for_each(|answer| self.arguments_exist(answer, schema));
    }

    /// Reports a matcher for the version that matches no protocol version.
    pub(super) fn version_exists(&mut self, version: &Located<Parsed<Matcher>>) {
        let Ok(matcher) = version.parsed() else { return };
        if !Revision::ALL.iter().any(|revision| matcher.matches(&revision.as_str().into())) {
            let known = Revision::ALL.map(Revision::as_str).join(", ");
            self.problem_with_hint(
                version.at,
                "no protocol version matches this",
                format!("the known versions are {known}"),
            );
        }
    }

    /// Reports a method of a fault that is nearly one of the protocol's, and that no request of the file has.
    pub(super) fn method_exists<'a>(&mut self, fault: &FaultRule, own: impl IntoIterator<Item = &'a str>) {
        let Some(method) = &fault.method else { return };
        let Ok(Matcher::Exact(Value::String(name))) = method.parsed() else { return };
        if Method::KNOWN.contains(&name.as_str()) || own.into_iter().any(|own| own == name) {
            return;
        }
        if let Some(meant) = closest(name, Method::KNOWN.iter().copied()) {
            self.problem_with_hint(method.at, format!("unknown method `{name}`"), format!("did you mean `{meant}`?"));
        }
    }

    /// Reports a text that is not sent, because the answer has content blocks.
    pub(super) fn text_is_sent(&mut self, answer: &AnswerRule) {
        if let (Some(text), Some(_)) = (&answer.text, &answer.content) {
            let hint = "move the text into `content`, as a block of type `text`";
            self.problem_with_hint(text.at, "`text` is not sent, because there is `content`", hint);
        }
    }
}

/// Why no value that matches a schema can match this matcher, with a hint.
fn contradiction(key: &str, matcher: &Matcher, schema: &Value) -> Option<(String, String)> {
    if let Matcher::Exact(constant) = matcher {
        // A part of a schema may refer to the whole, which is not part of this compiled schema.
        if schema.to_string().contains("\"$ref\"") {
            return None;
        }
        let mismatch = Schema::compile(schema).ok()?.check(constant).into_iter().next()?;
        let hint = "change one of the two, or accept such calls with `validate: off`".to_owned();
        return Some((format!("the input_schema does not accept this value of `{key}`: {mismatch}"), hint));
    }
    let kinds = kinds(schema)?;
    let wanted = kind(matcher)?;
    let overlaps = |kind: &JsonType| {
        *kind == wanted
            || matches!((*kind, wanted), (JsonType::Integer, JsonType::Number) | (JsonType::Number, JsonType::Integer))
    };
    if kinds.iter().any(overlaps) {
        return None;
    }
    let names: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
    let message = format!(
        "`{key}` has type {} in the input_schema, but this matches only type {}",
        names.join(" or "),
        wanted.name()
    );
    let hint = match matcher {
        Matcher::Object(fields) => {
            let meant = fields.iter().find_map(|(key, _)| closest(key, OPERATORS));
            meant.map(|meant| format!("did you mean the operator `{meant}`?"))
        }
        _ => None,
    };
    Some((message, hint.unwrap_or_else(|| "change one of the two".to_owned())))
}

/// The JSON types that a schema names.
fn kinds(schema: &Value) -> Option<Vec<JsonType>> {
    let kind = |name: &Value| JsonType::ALL.into_iter().find(|kind| Some(kind.name()) == name.as_str());
    match schema.get("type")? {
        Value::Array(names) => names.iter().map(kind).collect(),
        name => Some(vec![kind(name)?]),
    }
}

/// The only JSON type that matches a matcher, if there is one.
fn kind(matcher: &Matcher) -> Option<JsonType> {
    match matcher {
        Matcher::Object(_) => Some(JsonType::Object),
        Matcher::Array(_) | Matcher::Each(_) => Some(JsonType::Array),
        Matcher::Pattern(_) => Some(JsonType::String),
        Matcher::Range(_) => Some(JsonType::Number),
        Matcher::Type(kind) => Some(*kind),
        Matcher::AllOf(all) => all.iter().find_map(kind),
        Matcher::Any
        | Matcher::Absent
        | Matcher::Exact(_)
        | Matcher::Contains(_)
        | Matcher::Schema(_)
        | Matcher::Length(_)
        | Matcher::At(_)
        | Matcher::AnyOf(_)
        | Matcher::Not(_) => None,
    }
}

/// True if a schema names its properties and does not explicitly allow others.
fn names_all_properties(schema: &Value) -> bool {
    let others =
        ["additionalProperties", "unevaluatedProperties", "patternProperties", "propertyNames", "$ref", "$dynamicRef"];
    let allows = |word: &str| schema.get(word).is_some_and(|value| value != &Value::Bool(false));
    !properties(schema).is_empty() && !others.into_iter().any(allows)
}

/// The values that an answer sends, with their places.
fn values(answer: &AnswerRule) -> Vec<(Span, Value)> {
    let mut values = Vec::new();
    values.extend(answer.text.iter().map(|text| (text.at, Value::from(text.value.as_str()))));
    let blocks = answer.content.iter().flat_map(|content| &content.value);
    values.extend(blocks.filter_map(|block| block.text.as_ref()).map(|text| (text.at, text.value.as_str().into())));
    values.extend(answer.structured_content.iter().map(|content| (content.at, content.value.clone())));
    values.extend(answer.result.iter().map(|result| (result.at, Value::Object(result.value.clone()))));
    for error in answer.error.iter().map(|error| &error.value) {
        values.push((error.message.at, error.message.value.as_str().into()));
        values.extend(error.data.iter().map(|data| (data.at, data.value.clone())));
    }
    values
}

/// Visits each text of a value.
fn templates(value: &Value, path: &Path, visit: &mut dyn FnMut(&Path, &str)) {
    match value {
        Value::String(text) => visit(path, text),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| templates(item, &path.clone().join(index), visit));
        }
        Value::Object(fields) => {
            fields.iter().for_each(|(key, value)| templates(value, &path.clone().join(key.as_str()), visit));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The arguments that a template uses. A template that handles an absent value is skipped.
fn arguments_in(text: &str) -> Vec<String> {
    let allows = ["default", "|d", "| d", "defined", "if "].iter().any(|word| text.contains(word));
    if allows || !text.contains("arguments.") {
        return Vec::new();
    }
    let environment = Environment::new();
    let Ok(template) = environment.template_from_str(text) else { return Vec::new() };
    let paths = template.undeclared_variables(true);
    let mut names: Vec<_> =
        paths.iter().filter_map(|path| path.strip_prefix("arguments.")?.split('.').next()).map(str::to_owned).collect();
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use crate::script::mock::{MissingAnswers, parse};

    fn check(file: &str) -> String {
        parse("m", file, MissingAnswers::Refused).map_or_else(|error| error.to_string(), |_| String::new())
    }

    fn check_answer(answer: &str) -> String {
        let properties = "city: { type: string }, unit: { enum: [c, f] }, days: { type: integer }, \
                          at: { type: object, properties: { n: { type: [number, 'null'] } } }, any: {}";
        let schema = format!("input_schema: {{ type: object, properties: {{ {properties} }} }}");
        check(&format!("tools: [{{ name: a, {schema}, answers: [{answer}] }}]"))
    }

    #[test]
    fn a_matcher_that_no_valid_argument_fits_is_a_problem() {
        for (when, expected) in [
            (
                "city: { match: '^a' }",
                "`city` has type string in the input_schema, but this matches only type object; did you mean the operator `matches`?",
            ),
            ("city: 5", "the input_schema does not accept this value of `city`: "),
            ("unit: k", "the input_schema does not accept this value of `unit`: "),
            ("unit: { exact: k }", "the input_schema does not accept this value of `unit`: "),
            (
                "days: { matches: x }",
                "`days` has type integer in the input_schema, but this matches only type string; change one",
            ),
            ("days: [1]", "`days` has type integer in the input_schema, but this matches only type array"),
            ("city: { gte: 1 }", "`city` has type string in the input_schema, but this matches only type number"),
            ("at: { n: x }", "the input_schema does not accept this value of `n`: "),
            (
                "city: { type: boolean }",
                "`city` has type string in the input_schema, but this matches only type boolean",
            ),
        ] {
            let found = check_answer(&format!("{{ when: {{ {when} }}, text: a }}"));
            assert!(found.contains(expected), "{when}: {found}");
        }
        for when in [
            "city: Oslo",
            "city: { matches: x }",
            "unit: c",
            "days: { gte: 1 }",
            "days: 1.0",
            "at: { n: null }",
            "at: { m: 1 }",
            "any: { match: x }",
            "city: { any_of: [Oslo, 5] }",
            "days: { type: number }",
            "other: 5",
            "city: { not: 5 }",
        ] {
            assert_eq!(check_answer(&format!("{{ when: {{ {when} }}, text: a }}")), "", "{when}");
        }
    }

    #[test]
    fn a_schema_with_references_or_without_validation_is_not_compared() {
        let tool = |more: &str| {
            let schema =
                "input_schema: { properties: { a: { $ref: '#/$defs/b' }, c: { type: string } }, $defs: { b: {} } }";
            check(&format!("tools: [{{ name: a, {schema}, {more} }}]"))
        };
        assert_eq!(tool("answers: [{ when: { a: 5 }, text: a }]"), "");
        assert_eq!(tool("validate: off, answers: [{ when: { c: 5 }, text: a }]"), "");
        assert_ne!(tool("answers: [{ when: { c: 5 }, text: a }]"), "");
    }

    #[test]
    fn a_template_with_an_unknown_argument_is_a_problem() {
        for answer in [
            "{ text: '{{ arguments.ctiy }}' }",
            "{ content: [{ type: text, text: 'in {{ arguments.ctiy | upper }}' }] }",
            "{ structured_content: { a: ['{{ arguments.ctiy }}'] } }",
            "{ error: { code: 1, message: '{{ arguments.ctiy }}' } }",
            "{ in_turn: [{ text: '{{ arguments.ctiy }}' }] }",
        ] {
            let found = check_answer(answer);
            let expected = "the tool has no argument `ctiy`; did you mean `arguments.city`?";
            assert!(found.contains(expected), "{answer}: {found}");
        }
        for text in
            ["{{ arguments.city }}", "{{ arguments.ctiy | default('x') }}", "{{ arguments }}", "{{ arguments.at.x }}"]
        {
            assert_eq!(check_answer(&format!("{{ text: \"{text}\" }}")), "", "{text}");
        }
        let open = "input_schema: { properties: { a: {} }, additionalProperties: true }";
        assert_eq!(
            check(&format!("tools: [{{ name: a, {open}, answers: [{{ text: '{{{{ arguments.b }}}}' }}] }}]")),
            ""
        );
    }

    #[test]
    fn a_version_or_method_that_does_not_exist_is_a_problem() {
        let version = |version: &str| check_answer(&format!("{{ given: {{ version: {version} }}, text: a }}"));
        assert!(version("'2025-06-19'").contains("no protocol version matches this; the known versions are "));
        assert!(version("{ matches: '^2023' }").contains("no protocol version matches this"));
        assert_eq!(version("'2025-06-18'") + &version("{ matches: '^2025' }"), "");
        let fault = |method: &str| {
            check(&format!(
                "requests: [{{ method: tools/kall, answers: [{{ result: {{}} }}] }}]\nfaults: [{{ fault: hang, method: {method} }}]"
            ))
        };
        assert!(
            fault("tool/call").contains("m:2:33: unknown method `tool/call`; did you mean `tools/call`?"),
            "{}",
            fault("tool/call")
        );
        assert_eq!(fault("tools/call") + &fault("tools/kall") + &fault("acme/x") + &fault("{ matches: tool }"), "");
    }

    #[test]
    fn a_text_in_addition_to_content_is_a_problem() {
        let found = check_answer("{ text: a, content: [b] }");
        assert!(found.contains("`text` is not sent, because there is `content`; move the text into"), "{found}");
    }
}
