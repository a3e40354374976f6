//! What was made of a recording.

/// Files, and what of the recording is not in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Generated {
    /// Each with its path in what is generated: one file, or those of a project.
    pub files: Vec<(String, String)>,
    /// What could not be put into them, in words.
    pub left_out: Vec<String>,
}

/// A template of ours could not be filled in.
#[derive(Debug, thiserror::Error)]
#[error("a template could not be filled in: {0}")]
pub struct TemplateError(#[from] minijinja::Error);
