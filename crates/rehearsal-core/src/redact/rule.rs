//! The user's rules for redaction, in addition to the standard ones.

use std::str::FromStr;

use regex::Regex;

use crate::json::{PathQuery, PathQueryError, PathStep, Segment};

/// One `--redact`: a place in messages, or a pattern of text.
///
/// ```text
/// $.params.arguments.ssn          the whole value at this path
/// $..iban  $.result.rows[*].name  at any depth, any index or key; quoted: $..['x-api-key']
/// \d{3}-\d{2}-\d{4}               every match in any text; its first group if it has one
/// ```
#[derive(Clone, Debug)]
pub struct RedactionRule(pub(super) RuleTarget);

#[derive(Clone, Debug)]
pub(super) enum RuleTarget {
    Place(Vec<PathStep>),
    Text(Regex),
}

/// Why a rule cannot be used.
#[derive(Clone, PartialEq, thiserror::Error)]
pub enum RuleError {
    /// The rule is empty.
    #[error("a rule is a path such as $.params.arguments.ssn or a regular expression")]
    Empty,
    /// The path is invalid.
    #[error("cannot read the path `{path}`: {source}")]
    Path {
        /// The path.
        path: String,
        /// The error.
        source: PathQueryError,
    },
    /// A path that a single message cannot decide, because it has filters or slices.
    #[error("`{path}` may contain only names, indexes, `*` and `..`")]
    NotPlain {
        /// The path.
        path: String,
    },
    /// A path to data that the protocol needs.
    #[error("`{path}` belongs to the protocol; a trace without it cannot be replayed")]
    Protocol {
        /// The path.
        path: String,
    },
    /// The pattern is invalid.
    #[error("cannot read the regular expression `{pattern}`: {why}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// The error.
        why: String,
    },
    /// A pattern that matches the empty text, and so matches everywhere.
    #[error("the regular expression `{pattern}` matches the empty text; did you mean `+` instead of `*`?")]
    MatchesNothing {
        /// The pattern.
        pattern: String,
    },
}

debug_as_display!(RuleError);

impl RedactionRule {
    /// Parses a rule: a text that begins with `$.`, `$[` or `$..` is a path, any other a regular expression.
    pub fn parse(text: &str) -> Result<RedactionRule, RuleError> {
        if text.trim().is_empty() {
            return Err(RuleError::Empty);
        }
        if text == "$" || text.starts_with("$.") || text.starts_with("$[") {
            let path = || text.to_owned();
            let query = PathQuery::parse(text).map_err(|source| RuleError::Path { path: path(), source })?;
            let steps = query.steps().ok_or_else(|| RuleError::NotPlain { path: path() })?;
            if is_protocol(steps) {
                return Err(RuleError::Protocol { path: path() });
            }
            return Ok(RedactionRule(RuleTarget::Place(steps.to_vec())));
        }
        let pattern = || text.to_owned();
        let regex =
            Regex::new(text).map_err(|error| RuleError::Pattern { pattern: pattern(), why: last_line(&error) })?;
        if regex.is_match("") {
            return Err(RuleError::MatchesNothing { pattern: pattern() });
        }
        Ok(RedactionRule(RuleTarget::Text(regex)))
    }
}

impl FromStr for RedactionRule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<RedactionRule, RuleError> {
        RedactionRule::parse(text)
    }
}

/// Whether a path leads to a whole message or to data that the protocol needs.
fn is_protocol(steps: &[PathStep]) -> bool {
    match steps {
        [] | [PathStep::Any] => true,
        [PathStep::One(Segment::Key(key))] => matches!(key.as_str(), "jsonrpc" | "id" | "method"),
        _ => false,
    }
}

/// The crate's errors have several lines; the last one has the reason.
fn last_line(error: &regex::Error) -> String {
    let text = error.to_string();
    text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_cannot_work_is_refused_with_the_reason() {
        for (text, expected) in [
            ("", "a rule is a path such as $.params.arguments.ssn or a regular expression"),
            ("$.a..", "cannot read the path `$.a..`: must start with lowercase alpha or '_', at byte 5"),
            ("$[x]", "cannot read the path `$[x]`: unexpected text, at byte 1"),
            ("$.a[?@.b]", "`$.a[?@.b]` may contain only names, indexes, `*` and `..`"),
            ("$.id", "`$.id` belongs to the protocol; a trace without it cannot be replayed"),
            ("$", "`$` belongs to the protocol; a trace without it cannot be replayed"),
            ("a(b", "cannot read the regular expression `a(b`: unclosed group"),
            (r"\d*", r"the regular expression `\d*` matches the empty text; did you mean `+` instead of `*`?"),
        ] {
            assert_eq!(RedactionRule::parse(text).unwrap_err().to_string(), expected);
        }
        assert!(matches!(RedactionRule::parse("$.params.arguments.ssn"), Ok(RedactionRule(RuleTarget::Place(_)))));
        assert!(matches!(RedactionRule::parse(r"\$\d+"), Ok(RedactionRule(RuleTarget::Text(_)))));
    }
}
