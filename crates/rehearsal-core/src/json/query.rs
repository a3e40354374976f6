//! Paths that a user writes: JSONPath (RFC 9535).

use serde_json::Value;
use serde_json_path::{JsonPath, NormalizedPath, PathElement};

use super::{Path, Segment};

/// Maximum length of a path, in bytes: the parser is recursive.
const MAX_LENGTH: usize = 1024;
/// Maximum nesting of brackets. The parser takes twice as long for each nested filter, and few users need three.
const MAX_NESTING: usize = 8;

/// A JSONPath such as `$.result.content[*].text` or `$..timestamp`.
#[derive(Clone, Debug)]
pub struct PathQuery {
    text: String,
    query: JsonPath,
    steps: Option<Vec<PathStep>>,
    single: Option<Path>,
}

/// A text that is not a JSONPath, or one that exceeds a limit.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}, at byte {position}")]
pub struct PathQueryError {
    /// The reason.
    pub reason: String,
    /// The position, in bytes from the beginning.
    pub position: usize,
}

debug_as_display!(PathQueryError);

/// A part of a query that matches the same paths in every value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PathStep {
    One(Segment),
    /// `*`: any key or index.
    Any,
    /// `..`: any number of keys and indexes.
    Deep,
}

impl PathQuery {
    /// Parses a path.
    pub fn parse(text: &str) -> Result<PathQuery, PathQueryError> {
        within_limits(text)?;
        let query = JsonPath::parse(text).map_err(|error| PathQueryError {
            reason: match error.message() {
                "parser error" => "unexpected text".to_owned(),
                other => other.to_owned(),
            },
            position: error.position(),
        })?;
        let steps = steps(text);
        let segment = |step: &PathStep| match step {
            PathStep::One(segment) => Some(segment.clone()),
            PathStep::Any | PathStep::Deep => None,
        };
        let single = steps.as_ref().and_then(|steps| steps.iter().map(segment).collect());
        Ok(PathQuery { text: text.to_owned(), query, steps, single })
    }

    /// The path as the user wrote it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The values that the query finds.
    pub fn found<'value>(&self, value: &'value Value) -> Vec<&'value Value> {
        match &self.single {
            Some(path) => path.lookup(value).into_iter().collect(),
            None => self.query.query(value).all(),
        }
    }

    /// The paths that the query finds.
    pub fn find_all(&self, value: &Value) -> Vec<Path> {
        match &self.single {
            Some(path) => path.lookup(value).map(|_| path.clone()).into_iter().collect(),
            None => self.query.query_located(value).locations().map(place).collect(),
        }
    }

    /// The only path that the query can find, if it has only names and indexes.
    pub fn single(&self) -> Option<&Path> {
        self.single.as_ref()
    }

    /// The steps of the query, if it has only names, indexes, `*` and `..`.
    pub(crate) fn steps(&self) -> Option<&[PathStep]> {
        self.steps.as_deref()
    }
}

/// Whether the steps match a path.
pub(crate) fn leads_to(steps: &[PathStep], place: &[Segment]) -> bool {
    match (steps.split_first(), place.split_first()) {
        (None, None) => true,
        (None, Some(_)) => false,
        (Some((PathStep::Deep, rest)), None) => leads_to(rest, place),
        (Some(_), None) => false,
        (Some((PathStep::Deep, rest)), Some((_, below))) => leads_to(rest, place) || leads_to(steps, below),
        (Some((PathStep::Any, rest)), Some((_, below))) => leads_to(rest, below),
        (Some((PathStep::One(segment), rest)), Some((here, below))) => segment == here && leads_to(rest, below),
    }
}

fn place(normalized: &NormalizedPath<'_>) -> Path {
    let segment = |element: &PathElement<'_>| match element {
        PathElement::Name(name) => Segment::Key((*name).to_owned()),
        PathElement::Index(index) => Segment::Index(*index),
    };
    normalized.iter().map(segment).collect()
}

/// The steps of a parsed query; `None` if it has other parts, such as a filter, a slice or an escape.
fn steps(query: &str) -> Option<Vec<PathStep>> {
    let mut steps = Vec::new();
    let mut rest = query.strip_prefix('$')?;
    while !rest.is_empty() {
        rest = match rest.strip_prefix("..") {
            Some(below) => {
                steps.push(PathStep::Deep);
                below
            }
            None => rest.strip_prefix('.').unwrap_or(rest),
        };
        if let Some(inner) = rest.strip_prefix("['").or_else(|| rest.strip_prefix("[\"")) {
            let (name, after) = inner.split_once(if rest.starts_with("['") { "']" } else { "\"]" })?;
            if name.contains(['\'', '"', '\\']) {
                return None;
            }
            steps.push(PathStep::One(Segment::from(name)));
            rest = after;
        } else if let Some(inner) = rest.strip_prefix('[') {
            let (index, after) = inner.split_once(']')?;
            steps.push(if index == "*" { PathStep::Any } else { PathStep::One(Segment::Index(index.parse().ok()?)) });
            rest = after;
        } else {
            let (name, after) = rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len()));
            if name.is_empty() || name.contains(char::is_whitespace) {
                return None;
            }
            steps.push(if name == "*" { PathStep::Any } else { PathStep::One(Segment::from(name)) });
            rest = after;
        }
    }
    Some(steps)
}

fn within_limits(text: &str) -> Result<(), PathQueryError> {
    let refuse = |reason: String, position: usize| Err(PathQueryError { reason, position });
    let mut nesting = 0_usize;
    for (position, character) in text.char_indices() {
        match character {
            '(' | '[' => nesting += 1,
            ')' | ']' => nesting = nesting.saturating_sub(1),
            _ => {}
        }
        if nesting > MAX_NESTING {
            return refuse(format!("brackets nested more than {MAX_NESTING} deep"), position);
        }
        if position >= MAX_LENGTH {
            return refuse(format!("longer than {MAX_LENGTH} bytes"), position);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_bad_path_is_refused_with_the_position() {
        let deep = format!("$[?{}@.a{}]", "(".repeat(400), ")".repeat(400));
        let long = format!("${}", ".a".repeat(2000));
        for (text, expected) in [
            ("items", "unexpected text, at byte 0"),
            ("$.items[", "unexpected text, at byte 7"),
            ("$..", "must start with lowercase alpha or '_', at byte 3"),
            ("$.å[", "unexpected text, at byte 4"),
            ("$.x-y", "unexpected text, at byte 3"),
            (deep.as_str(), "brackets nested more than 8 deep, at byte 10"),
            (long.as_str(), "longer than 1024 bytes, at byte 1024"),
        ] {
            assert_eq!(PathQuery::parse(text).unwrap_err().to_string(), expected, "{text}");
        }
    }

    #[test]
    fn names_indexes_wildcards_and_descendants_are_steps_to_a_place() {
        for (query, place, expected) in [
            ("$.a.b", "$.a.b", true),
            ("$.a.b", "$.a.b.c", false),
            ("$.a[*].b", "$.a[3].b", true),
            ("$.a.*.b", "$.a.x.b", true),
            ("$.a[*].b", "$.a.b", false),
            ("$..b", "$.b", true),
            ("$..b", "$.x[1].y.b", true),
            ("$..b", "$.x.b.y", false),
            ("$..[0]", "$.x[0]", true),
            ("$['odd key'].x", r#"$["odd key"].x"#, true),
            ("$..['x-y']", r#"$.a["x-y"]"#, true),
            ("$..a..b", "$.z.a.q.b", true),
        ] {
            let place = PathQuery::parse(place).unwrap();
            let query = PathQuery::parse(query).unwrap();
            let leads = leads_to(query.steps().unwrap(), place.single().unwrap().segments());
            assert_eq!(leads, expected, "{} {}", query.as_str(), place.as_str());
        }
        for other in ["$.a[?@.b]", "$.a[1:2]", "$['a','b']", "$[-1]", "$[0, 1]", r"$['a\'b']", "$.a .b", "$[ 0 ]"] {
            assert_eq!(PathQuery::parse(other).unwrap().steps(), None, "{other}");
        }
    }

    #[test]
    fn values_and_their_places_are_found() {
        let value = json!({"a": [{"b": 1, "odd key": 2}, {"b": 3}]});
        for (query, places) in [
            ("$.a[1].b", &["$.a[1].b"][..]),
            ("$.a[*].b", &["$.a[0].b", "$.a[1].b"]),
            ("$.a[-1].b", &["$.a[1].b"]),
            ("$..['odd key']", &[r#"$.a[0]["odd key"]"#]),
            ("$.a[2]", &[]),
            ("$[0]", &[]),
        ] {
            let query = PathQuery::parse(query).unwrap();
            let located: Vec<_> = query.find_all(&value).iter().map(ToString::to_string).collect();
            assert_eq!(located, places);
            assert_eq!(query.found(&value).len(), places.len());
        }
    }

    proptest! {
        #[test]
        fn a_path_is_displayed_as_a_query_that_finds_it(keys in prop::collection::vec(any::<String>(), 0..4)) {
            let place: Path = keys.iter().map(|key| Segment::from(key.as_str())).collect();
            let value = keys.iter().rev().fold(json!(1), |inner, key| json!({key: inner}));
            prop_assert_eq!(PathQuery::parse(&place.to_string()).map(|query| query.find_all(&value)), Ok(vec![place]));
        }

        #[test]
        fn steps_lead_where_the_query_does(query in r"\$((\.[ab*])|(\.\.[ab*])|(\[[01*]\])|(\['[ab]'\])){0,4}") {
            let value = json!({"a": {"b": [1, {"a": 2}], "a": [3]}, "b": [{"b": {"a": 4}}]});
            let query = PathQuery::parse(&query).unwrap();
            let steps = query.steps().unwrap();
            let everything = PathQuery::parse("$..*").unwrap().find_all(&value);
            let mut expected: Vec<Path> = query.query.query_located(&value).locations().map(place).collect();
            expected.sort();
            expected.dedup();
            let all = everything.into_iter().chain([Path::root()]);
            let mut reached: Vec<Path> = all.filter(|place| leads_to(steps, place.segments())).collect();
            reached.sort();
            prop_assert_eq!(reached, expected);
        }
    }
}
