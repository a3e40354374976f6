//! What was made of a recording.

use super::python::is_unseen;

/// Files, and what of the recording is not in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Generated {
    /// Each with its path in what is generated: one file, or those of a project.
    pub files: Vec<(String, String)>,
    /// What could not be put into them, in words.
    pub left_out: Vec<String>,
}

impl Generated {
    /// Files, and what is left out, whose words may be recorded ones: each is put on one line.
    pub(super) fn new(files: Vec<(String, String)>, left_out: &[String]) -> Generated {
        Generated { files, left_out: left_out.iter().map(|words| on_one_line(words)).collect() }
    }
}

/// Words in which nothing is hidden, and no line ends.
///
/// ```text
/// that two\nlines was not always in `tools`
/// ```
pub(super) fn on_one_line(words: &str) -> String {
    let shown = |c: char| if c.is_control() || is_unseen(c) { c.escape_default().to_string() } else { c.to_string() };
    words.chars().map(shown).collect()
}

/// A template of ours could not be filled in.
#[derive(Debug, thiserror::Error)]
#[error("a template could not be filled in: {0}")]
pub struct TemplateError(#[from] minijinja::Error);
