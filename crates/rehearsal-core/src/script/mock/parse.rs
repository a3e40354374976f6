//! Text into a mock without mistakes.

use super::arguments::name_arguments;
use super::{MockFile, Otherwise, check};
use crate::script::tree::Tree;
use crate::script::{Problem, ScriptError, Span, read};

/// What to do about an empty file.
const EMPTY: &str =
    "a mock has at least `tools`, `resources` or `prompts`; `rehearse init` writes one of everything to start from";

/// Reads and checks a mock file that is used like this; everything that is wrong with it is told at once, in the order of the file.
pub fn parse(file: &str, text: &str, otherwise: Otherwise) -> Result<MockFile, ScriptError> {
    if is_empty(text) {
        let problem = Problem::new(Span::START, "nothing stands in this file").hint(EMPTY);
        return Err(ScriptError { file: file.to_owned(), problems: vec![problem] });
    }
    let mock: MockFile = read(file, text)?;
    name_arguments(&mock);
    let found = check::check(&mock, otherwise);
    if found.is_empty() {
        return Ok(mock);
    }
    let tree = Tree::of(text);
    let mut problems: Vec<_> = found
        .into_iter()
        .map(|check::Inner { mut problem, path, about }| {
            let exact = |tree: &Tree| match about {
                check::About::Value => tree.find(problem.at, &path),
                check::About::Key => tree.find_key(problem.at, &path),
            };
            problem.at = tree.as_ref().map_or(problem.at, exact);
            problem
        })
        .collect();
    problems.sort_by_key(|problem| problem.at.start);
    Err(ScriptError { file: file.to_owned(), problems })
}

/// Whether a file has only comments, or says that it has nothing.
fn is_empty(text: &str) -> bool {
    let lines = text.trim_start_matches('\u{feff}').lines().map(str::trim);
    let mut said = lines.filter(|line| !line.is_empty() && !line.starts_with('#') && !["---", "..."].contains(line));
    match (said.next(), said.next()) {
        (None, _) => true,
        (Some(word), None) => word == "~" || word.eq_ignore_ascii_case("null"),
        (Some(_), Some(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_nothing_in_it_is_told_what_to_have() {
        for text in ["", "\n", "# weather\n", "---\n", "null\n", "~", "\u{feff}# x"] {
            let error = parse("m.yaml", text, Otherwise::FillFromSchema).unwrap_err().to_string();
            assert!(error.starts_with("m.yaml:1:1: nothing stands in this file; a mock has"), "{text:?}: {error}");
        }
        assert!(parse("m.yaml", "server: { name: x }", Otherwise::Refuse).is_ok());
    }

    #[test]
    fn null_is_data_of_an_error() {
        let error = |more: &str| {
            let text = format!("tools: [{{ name: a, answers: [{{ error: {{ code: 1, message: no{more} }} }}] }}]");
            let mock = parse("m.yaml", &text, Otherwise::Refuse).unwrap();
            mock.tools[0].answers[0].error.as_ref().unwrap().data.as_ref().map(|data| data.value.clone())
        };
        assert_eq!(error(", data: null"), Some(serde_json::Value::Null));
        assert_eq!(error(""), None);
    }
}
