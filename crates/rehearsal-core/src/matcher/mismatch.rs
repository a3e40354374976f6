//! One way in which an expectation was not met.

use std::fmt;

use serde::Serialize;

use crate::json::Path;

/// One place where a value is not what was expected.
///
/// ```text
/// $.name: expected "weather", got "wether"
/// $.city: missing, expected a string
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mismatch {
    /// Where in the value.
    pub path: Path,
    /// What should have been there, in words.
    pub expected: String,
    /// What was there, cut short for a message; `None` when there was nothing.
    pub got: Option<String>,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mismatch { path, expected, got } = self;
        match got {
            Some(got) => write!(f, "{path}: expected {expected}, got {got}"),
            None => write!(f, "{path}: missing, expected {expected}"),
        }
    }
}

/// The most mismatches of one comparison that are printed or sent: two values can differ in as many places as they have members.
pub(crate) const MAX_MISMATCHES: usize = 100;

/// The first mismatches as text, and how many others there are: `and 50 more places`.
pub fn first_mismatches(mismatches: &[impl fmt::Display]) -> Vec<String> {
    let mut lines: Vec<String> = mismatches.iter().take(MAX_MISMATCHES).map(ToString::to_string).collect();
    if let Some(more) = mismatches.len().checked_sub(MAX_MISMATCHES).filter(|more| *more > 0) {
        lines.push(format!("and {more} more places"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mismatch_says_where_expected_and_got() {
        let mut mismatch = Mismatch {
            path: Path::root().join("name"),
            expected: "\"weather\"".to_owned(),
            got: Some("\"wether\"".to_owned()),
        };
        assert_eq!(mismatch.to_string(), r#"$.name: expected "weather", got "wether""#);
        mismatch.got = None;
        assert_eq!(mismatch.to_string(), r#"$.name: missing, expected "weather""#);
    }

    #[test]
    fn a_mismatch_is_plain_json_for_programs() {
        let mismatch = Mismatch { path: Path::root().join(0), expected: "nothing".to_owned(), got: None };
        let json = serde_json::to_string(&mismatch).unwrap();
        assert_eq!(json, r#"{"path":"$[0]","expected":"nothing","got":null}"#);
    }
}
