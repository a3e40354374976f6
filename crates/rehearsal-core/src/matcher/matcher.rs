//! An expectation about a JSON value.

use std::ops::Not;

use serde_json::Value;

use super::mismatch_sink::{Mismatch, MismatchSink, PathTrail};
use super::parse::{MatcherError, MatcherProblem};
use super::pattern::{Contains, Pattern, SearchText, TextCase};
use super::range::Range;
use super::schema::Schema;
use crate::json::{JsonType, Path, PathQuery};

/// An expectation about a JSON value, which may be absent.
///
/// Numbers are compared by value: `1` and `1.0` are equal, and integers beyond 2^53 are not rounded. An absent value
/// matches only [`Matcher::Absent`] and matchers that are built from it.
///
/// # Why not a `bool`
///
/// A user cannot act on "it did not match". [`Matcher::check`] returns every mismatch with its path;
/// [`Matcher::matches`] is for the hot path.
#[derive(Debug, Clone)]
pub enum Matcher {
    /// Any value that is present.
    Any,
    /// No value: the key must be absent.
    Absent,
    /// Exactly this value; the order of keys does not matter.
    Exact(Value),
    /// An object with at least these keys; other keys are allowed.
    Object(Vec<(String, Matcher)>),
    /// An array with exactly these elements.
    Array(Vec<Matcher>),
    /// An array in which every element matches; the empty array matches too.
    Each(Box<Matcher>),
    /// A string, array or object that contains an item.
    Contains(Box<Contains>),
    /// A string in which a regular expression is found.
    Pattern(Pattern),
    /// A value of this kind.
    Type(JsonType),
    /// A value that a JSON Schema accepts.
    Schema(Schema),
    /// A number in a range.
    Range(Range),
    /// A string, array or object whose length is in a range; strings are counted in characters.
    Length(Range),
    /// A matcher for every node that a JSONPath finds.
    At(Box<JsonPathMatcher>),
    /// At least one of these.
    AnyOf(Vec<Matcher>),
    /// All of these.
    AllOf(Vec<Matcher>),
    /// Anything that this does not match.
    Not(Box<Matcher>),
}

/// A JSONPath (RFC 9535) and the matcher for every node that it finds.
#[derive(Debug, Clone)]
pub struct JsonPathMatcher {
    pub(super) query: PathQuery,
    pub(super) matcher: Matcher,
}

impl JsonPathMatcher {
    /// The path as the user wrote it.
    pub fn as_str(&self) -> &str {
        self.query.as_str()
    }

    /// The matcher for every node.
    pub fn matcher(&self) -> &Matcher {
        &self.matcher
    }

    /// Whether the path finds a node.
    pub fn finds(&self, value: &Value) -> bool {
        !self.query.found(value).is_empty()
    }
}

impl Matcher {
    /// Every mismatch; empty if the value matches.
    pub fn check(&self, actual: &Value) -> Vec<Mismatch> {
        self.check_optional(Some(actual))
    }

    /// Like [`Matcher::check`], for a value that may be absent.
    pub fn check_optional(&self, actual: Option<&Value>) -> Vec<Mismatch> {
        let mut sink = MismatchSink::Collect(Vec::new());
        let _ = self.walk(actual, &PathTrail::Root, &mut sink);
        match sink {
            MismatchSink::Collect(mismatches) => mismatches,
            MismatchSink::First | MismatchSink::Count(_) => unreachable!("the sink keeps its kind"),
        }
    }

    /// Whether the value matches. Stops at the first mismatch, and allocates nothing to compare data.
    pub fn matches(&self, actual: &Value) -> bool {
        self.matches_optional(Some(actual))
    }

    /// Like [`Matcher::matches`], for a value that may be absent.
    pub fn matches_optional(&self, actual: Option<&Value>) -> bool {
        self.walk(actual, &PathTrail::Root, &mut MismatchSink::First).is_continue()
    }

    /// The distance between the value and the expectation: 0 if it matches, otherwise about the number of leaves that
    /// would have to change. It ranks candidates.
    pub fn distance(&self, actual: &Value) -> usize {
        self.distance_optional(Some(actual))
    }

    /// Like [`Matcher::distance`], for a value that may be absent.
    pub fn distance_optional(&self, actual: Option<&Value>) -> usize {
        let mut sink = MismatchSink::Count(0);
        let _ = self.walk(actual, &PathTrail::Root, &mut sink);
        match sink {
            MismatchSink::Count(distance) => distance,
            MismatchSink::First | MismatchSink::Collect(_) => unreachable!("the sink keeps its kind"),
        }
    }

    /// The number of conditions in the matcher: its distance from a value that meets none of them.
    pub fn weight(&self) -> usize {
        let weight = match self {
            Matcher::Exact(value) => leaves(value),
            Matcher::Object(fields) => sum(fields.iter().map(|(_, matcher)| matcher.weight())),
            Matcher::Array(matchers) | Matcher::AllOf(matchers) => sum(matchers.iter().map(Matcher::weight)),
            Matcher::AnyOf(matchers) => matchers.iter().map(Matcher::weight).min().unwrap_or(1),
            Matcher::At(at) => at.matcher().weight(),
            Matcher::Contains(contains) => match contains.as_ref() {
                Contains::Text(_) => 1,
                Contains::Element(matcher) => matcher.weight(),
            },
            Matcher::Any
            | Matcher::Absent
            | Matcher::Each(_)
            | Matcher::Pattern(_)
            | Matcher::Type(_)
            | Matcher::Schema(_)
            | Matcher::Range(_)
            | Matcher::Length(_)
            | Matcher::Not(_) => 1,
        };
        weight.max(1)
    }
}

/// How many scalars a value has; an empty array or object counts as one.
pub(super) fn leaves(value: &Value) -> usize {
    match value {
        Value::Array(elements) => sum(elements.iter().map(leaves)).max(1),
        Value::Object(fields) => sum(fields.values().map(leaves)).max(1),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

fn sum(weights: impl Iterator<Item = usize>) -> usize {
    weights.fold(0, usize::saturating_add)
}

/// Constructors, for matchers in Rust code.
impl Matcher {
    /// Exactly this value.
    pub fn exact(value: impl Into<Value>) -> Matcher {
        Matcher::Exact(value.into())
    }

    /// This value, but objects may have more keys at any depth. No key in it is an operator.
    pub fn subset(value: impl Into<Value>) -> Matcher {
        match value.into() {
            Value::Object(fields) => {
                Matcher::Object(fields.into_iter().map(|(key, value)| (key, Matcher::subset(value))).collect())
            }
            Value::Array(elements) => Matcher::Array(elements.into_iter().map(Matcher::subset).collect()),
            scalar => Matcher::Exact(scalar),
        }
    }

    /// An object with at least these keys.
    pub fn object<K: Into<String>>(fields: impl IntoIterator<Item = (K, Matcher)>) -> Matcher {
        let fields = fields.into_iter();
        Matcher::Object(fields.map(|(key, matcher)| (key.into(), matcher)).collect())
    }

    /// A string that contains this text, an array with this element, or an object with this key.
    pub fn contains(text: impl Into<String>) -> Matcher {
        Matcher::Contains(Box::new(Contains::Text(SearchText::new(text, TextCase::Sensitive))))
    }

    /// Like [`Matcher::contains`], but case-insensitive.
    pub fn contains_in_any_case(text: impl Into<String>) -> Matcher {
        Matcher::Contains(Box::new(Contains::Text(SearchText::new(text, TextCase::Insensitive))))
    }

    /// An array in which some element matches, or an object that itself matches.
    pub fn contains_element(matcher: Matcher) -> Matcher {
        Matcher::Contains(Box::new(Contains::Element(matcher)))
    }

    /// An array in which every element matches.
    pub fn each(matcher: Matcher) -> Matcher {
        Matcher::Each(Box::new(matcher))
    }

    /// A string in which a regular expression is found.
    pub fn pattern(written: &str) -> Result<Matcher, MatcherError> {
        let pattern = Pattern::compile(written, TextCase::Sensitive);
        pattern.map(Matcher::Pattern).map_err(|problem| problem.at(&Path::root()))
    }

    /// A value that a JSON Schema accepts.
    pub fn schema(schema: &Value) -> Result<Matcher, MatcherError> {
        Schema::compile(schema).map(Matcher::Schema)
    }

    /// A matcher for every node that a JSONPath finds.
    pub fn at(path: &str, matcher: Matcher) -> Result<Matcher, MatcherError> {
        let query = PathQuery::parse(path).map_err(|error| MatcherProblem::BadPath(error).at(&Path::root()))?;
        Ok(Matcher::At(Box::new(JsonPathMatcher { query, matcher })))
    }

    /// A string, array or object of exactly this length.
    pub fn length(length: usize) -> Matcher {
        Matcher::Length(Range::only(length))
    }

    /// This and the other.
    #[must_use]
    pub fn and(self, other: Matcher) -> Matcher {
        match self {
            Matcher::AllOf(mut matchers) => {
                matchers.push(other);
                Matcher::AllOf(matchers)
            }
            first => Matcher::AllOf(vec![first, other]),
        }
    }

    /// This or the other.
    #[must_use]
    pub fn or(self, other: Matcher) -> Matcher {
        match self {
            Matcher::AnyOf(mut matchers) => {
                matchers.push(other);
                Matcher::AnyOf(matchers)
            }
            first => Matcher::AnyOf(vec![first, other]),
        }
    }
}

impl Not for Matcher {
    type Output = Matcher;

    fn not(self) -> Matcher {
        Matcher::Not(Box::new(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn matchers_are_combined_as_rust_combines_conditions() {
        let wet = Matcher::contains("rain").or(Matcher::contains("snow"));
        let matcher = wet.and(!Matcher::contains_in_any_case("oslo"));
        assert!(matcher.matches(&json!("snow in Bergen")));
        assert!(!matcher.matches(&json!("snow in Oslo")));
        assert!(!matcher.matches(&json!("sun in Bergen")));
    }

    #[test]
    fn the_weight_counts_what_is_demanded() {
        for (matcher, weight) in [
            (Matcher::Any, 1),
            (Matcher::exact(json!({"a": [1, 2], "b": {}})), 3),
            (Matcher::subset(json!({"a": [1, 2], "b": {}})), 3),
            (Matcher::subset(json!({})), 1),
            (Matcher::exact(1).or(Matcher::exact(json!([1, 2]))), 1),
            (Matcher::exact(json!([1, 2])).and(Matcher::length(2)), 3),
        ] {
            assert_eq!(matcher.weight(), weight, "{matcher}");
        }
    }
}
