//! Rules for names in a mock file.

use std::collections::BTreeSet;

/// Whether a text is a valid tool name.
pub(crate) fn is_tool_name(name: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    (1..=128).contains(&name.len()) && name.chars().all(legal)
}

/// Whether a text may be a URI: `file:///notes.md`, `notes://today`.
pub(crate) fn has_scheme(uri: &str) -> bool {
    let scheme = uri.split_once(':').map_or("", |(scheme, _)| scheme);
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

/// The variables of a URI template; `None` if a brace is not closed.
pub(crate) fn variables(template: &str) -> Option<BTreeSet<&str>> {
    let mut variables = BTreeSet::new();
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        let close = open + rest[open..].find('}')?;
        let name = rest[open + 1..close].trim_start_matches(['+', '#', '/', '.', ';', '?', '&']);
        variables.extend(name.split(',').map(|name| name.trim_end_matches('*')));
        rest = &rest[close + 1..];
    }
    Some(variables)
}
