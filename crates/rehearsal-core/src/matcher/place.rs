//! A matcher for what a JSON path finds.

use serde_json::Value;
use serde_json_path::JsonPath;

use super::error::Problem;
use super::matcher::Matcher;
use crate::json::Path;

/// Longer paths are refused: the reader of paths calls itself for every bracket.
const LENGTH_LIMIT: usize = 1024;
/// Brackets inside brackets. The reader takes twice as long for each filter inside a filter, and few need three.
const NESTING_LIMIT: usize = 8;

/// A JSON path (RFC 9535) and what every node that it finds must be.
#[derive(Debug, Clone)]
pub struct At {
    written: String,
    query: JsonPath,
    /// The same place as a [`Path`], when the query can find only one.
    single: Option<Path>,
    matcher: Matcher,
}

impl At {
    pub(super) fn compile(written: &str, matcher: Matcher) -> Result<At, Problem> {
        within_limits(written)?;
        let query = JsonPath::parse(written).map_err(|error| Problem::BadPath {
            reason: match error.message() {
                "parser error" => "unexpected text".to_owned(),
                told => told.to_owned(),
            },
            position: error.position(),
        })?;
        Ok(At { written: written.to_owned(), query, single: written.parse().ok(), matcher })
    }

    /// The path as it was written.
    pub fn as_str(&self) -> &str {
        &self.written
    }

    /// What every node that is found must be.
    pub fn matcher(&self) -> &Matcher {
        &self.matcher
    }

    /// Whether there is anything at the path.
    pub fn finds(&self, value: &Value) -> bool {
        !self.query.query(value).is_empty()
    }

    pub(super) fn query(&self) -> &JsonPath {
        &self.query
    }

    pub(super) fn single(&self) -> Option<&Path> {
        self.single.as_ref()
    }
}

fn within_limits(written: &str) -> Result<(), Problem> {
    let refuse = |reason: String, position: usize| Err(Problem::BadPath { reason, position });
    let mut nesting = 0_usize;
    for (position, character) in written.char_indices() {
        match character {
            '(' | '[' => nesting += 1,
            ')' | ']' => nesting = nesting.saturating_sub(1),
            _ => {}
        }
        if nesting > NESTING_LIMIT {
            let reason = format!("brackets nested more than {NESTING_LIMIT} deep");
            return refuse(reason, position);
        }
        if position >= LENGTH_LIMIT {
            let reason = format!("longer than {LENGTH_LIMIT} bytes");
            return refuse(reason, position);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_path_is_refused_with_the_position() {
        for (written, position) in [("items", 0), ("$.items[", 7), ("$..", 3), ("$.å[", 4)] {
            match At::compile(written, Matcher::Any).unwrap_err() {
                Problem::BadPath { position: got, .. } => assert_eq!(got, position, "{written}"),
                other => panic!("{written}: {other}"),
            }
        }
    }

    #[test]
    fn a_path_that_would_exhaust_its_reader_is_refused() {
        let deep = format!("$[?{}@.a{}]", "(".repeat(400), ")".repeat(400));
        let problem = At::compile(&deep, Matcher::Any).unwrap_err();
        assert!(problem.to_string().contains("nested more than 8"), "{problem}");
        let long = format!("${}", ".a".repeat(2000));
        let problem = At::compile(&long, Matcher::Any).unwrap_err();
        assert!(problem.to_string().contains("longer than 1024"), "{problem}");
    }

    #[test]
    fn only_a_path_to_one_place_is_single() {
        let single = |written| At::compile(written, Matcher::Any).unwrap().single.is_some();
        assert!(single("$.a[0].b"));
        assert!(!single("$.a[*].b"));
        assert!(!single("$..b"));
    }
}
