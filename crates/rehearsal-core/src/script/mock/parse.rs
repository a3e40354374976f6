//! Parses and checks a mock file, and sets the names of each tool's arguments.

use serde_json::Value;

use super::identifiers::variables;
use super::{AnswerRule, MissingAnswers, MockFile, check};
use crate::script::span_tree::SpanTree;
use crate::script::{ScriptError, ScriptProblem, Span, read};

/// The hint for an empty file.
const EMPTY_FILE_HINT: &str =
    "a mock needs `tools`, `resources` or `prompts`; `rehearse init` writes an example of each";

/// Parses and checks a mock file for a use; all problems are returned at once, in the order of the file.
pub fn parse(file: &str, text: &str, missing: MissingAnswers) -> Result<MockFile, ScriptError> {
    if is_empty(text) {
        let problem = ScriptProblem::new(Span::START, "this file is empty").hint(EMPTY_FILE_HINT);
        return Err(ScriptError { file: file.to_owned(), problems: vec![problem] });
    }
    let mock: MockFile = read(file, text)?;
    set_argument_names(&mock);
    let found = check::check(&mock, missing);
    if found.is_empty() {
        return Ok(mock);
    }
    let tree = SpanTree::parse(text);
    let mut problems: Vec<_> = found
        .into_iter()
        .map(|check::NestedProblem { mut problem, path, about }| {
            let exact = |tree: &SpanTree| match about {
                check::ProblemTarget::Value => tree.find(problem.at, &path),
                check::ProblemTarget::Key => tree.find_key(problem.at, &path),
            };
            problem.at = tree.as_ref().map_or(problem.at, exact);
            problem
        })
        .collect();
    problems.sort_by_key(|problem| problem.at.start);
    Err(ScriptError { file: file.to_owned(), problems })
}

/// Whether a file has only comments, or an empty value.
fn is_empty(text: &str) -> bool {
    let lines = text.trim_start_matches('\u{feff}').lines().map(str::trim);
    let mut content = lines.filter(|line| !line.is_empty() && !line.starts_with('#') && !["---", "..."].contains(line));
    match (content.next(), content.next()) {
        (None, _) => true,
        (Some(word), None) => word == "~" || word.eq_ignore_ascii_case("null"),
        (Some(_), Some(_)) => false,
    }
}

/// Sets the names of the arguments for every `when`, so that an argument with the name of an operator is an argument.
pub(super) fn set_argument_names(mock: &MockFile) {
    for tool in &mock.tools {
        let schema = tool.input_schema.as_ref().map(|schema| &schema.written);
        set_names(&tool.answers, &|key| schema.is_some_and(|schema| has_property(schema, key)));
    }
    for prompt in &mock.prompts {
        set_names(&prompt.answers, &|key| prompt.arguments.iter().any(|argument| argument.name.value == key));
    }
    for resource in &mock.resources {
        set_names(&resource.answers, &|_| false);
    }
    for template in &mock.resource_templates {
        let variables = variables(&template.uri_template).unwrap_or_default();
        set_names(&template.answers, &|key| variables.contains(key));
    }
}

fn set_names(answers: &[AnswerRule], is_name: &dyn Fn(&str) -> bool) {
    for answer in answers {
        if let Some(when) = &answer.when {
            when.set_argument_names(is_name);
        }
        let is_input =
            |key: &str| answer.steps.iter().flat_map(|step| step.value.input_requests()).any(|(name, _)| *name == key);
        set_names(&answer.choose, &is_input);
        set_names(&answer.in_turn, is_name);
    }
}

/// Whether a schema mentions this property of an object.
pub(super) fn has_property(schema: &Value, key: &str) -> bool {
    properties(schema).contains(&key)
}

/// The properties that a schema mentions.
pub(super) fn properties(schema: &Value) -> Vec<&str> {
    let own = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let joined = ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|word| schema.get(word)?.as_array()).flatten();
    own.map(|(key, _)| key.as_str()).chain(joined.flat_map(properties)).collect()
}

#[cfg(test)]
mod tests {
    use crate::script::mock::{MissingAnswers, parse};

    #[test]
    fn an_empty_file_is_a_problem_with_a_hint() {
        for text in ["", "\n", "# weather\n", "---\n", "null\n", "~", "\u{feff}# x"] {
            let error = parse("m.yaml", text, MissingAnswers::Allowed).unwrap_err().to_string();
            assert!(error.starts_with("m.yaml:1:1: this file is empty; a mock needs"), "{text:?}: {error}");
        }
        assert!(parse("m.yaml", "server: { name: x }", MissingAnswers::Refused).is_ok());
    }

    #[test]
    fn null_is_data_of_an_error() {
        let error = |more: &str| {
            let text = format!("tools: [{{ name: a, answers: [{{ error: {{ code: 1, message: no{more} }} }}] }}]");
            let mock = parse("m.yaml", &text, MissingAnswers::Refused).unwrap();
            mock.tools[0].answers[0].error.as_ref().unwrap().data.as_ref().map(|data| data.value.clone())
        };
        assert_eq!(error(", data: null"), Some(serde_json::Value::Null));
        assert_eq!(error(""), None);
    }

    fn check(tool: &str) -> Result<(), String> {
        let file = format!("tools:\n  - {{ name: a, {tool} }}\n");
        parse("m.yaml", &file, MissingAnswers::Refused).map(drop).map_err(|error| error.to_string())
    }

    #[test]
    fn an_operator_is_an_argument_name_if_the_schema_has_it() {
        let wrong = "answers: [{ when: { any_of: 5 }, text: x }]";
        let error = check(wrong).unwrap_err();
        assert!(error.starts_with("m.yaml:2:44: `any_of` takes a list with at least one matcher, not 5"), "{error}");
        assert_eq!(check(&format!("input_schema: {{ properties: {{ any_of: {{}} }} }}, {wrong}")), Ok(()));
    }
}
