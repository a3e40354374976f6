//! Names that a mock file has for things.

/// The names that a mock file has for tools.
pub(crate) fn is_tool_name(name: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    (1..=128).contains(&name.len()) && name.chars().all(legal)
}

/// Whether something can be a URI: `file:///notes.md`, `notes://today`.
pub(crate) fn has_scheme(uri: &str) -> bool {
    let scheme = uri.split_once(':').map_or("", |(scheme, _)| scheme);
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}
