//! Text into a mock without mistakes.

use super::arguments::name_arguments;
use super::{MockFile, Otherwise, check};
use crate::script::tree::Tree;
use crate::script::{ScriptError, Span, read};

/// Reads and checks a mock file that is used like this; everything that is wrong with it is told at once, in the order of the file.
pub fn parse(file: &str, text: &str, otherwise: Otherwise) -> Result<MockFile, ScriptError> {
    let mock: MockFile = read(file, text)?;
    name_arguments(&mock);
    let found = check::check(&mock, otherwise);
    if found.is_empty() {
        return Ok(mock);
    }
    let tree = Tree::of(text);
    let mut problems: Vec<_> = found
        .into_iter()
        .map(|check::Inner { mut problem, path }| {
            let exact = |tree: &Tree| -> Span { tree.find(problem.at, &path) };
            problem.at = tree.as_ref().map_or(problem.at, exact);
            problem
        })
        .collect();
    problems.sort_by_key(|problem| problem.at.start);
    Err(ScriptError { file: file.to_owned(), problems })
}
