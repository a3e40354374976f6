//! The walk over a value that finds its mismatches.

use std::cmp::Reverse;
use std::fmt;

use serde_json::{Number, Value};

use super::matcher::{JsonPathMatcher, Matcher, leaves};
use super::mismatch_sink::{MismatchSink, MismatchText, PathTrail, Walk};
use super::parse;
use super::pattern::{Contains, SearchText};
use super::range::Range;
use super::schema::Schema;
use crate::json::{DEFAULT_EXCERPT, compare, difference, excerpt};

impl Matcher {
    /// Reports every mismatch to the sink. One walk serves [`Matcher::check`], [`Matcher::matches`] and
    /// [`Matcher::distance`], so they cannot disagree.
    pub(super) fn walk(&self, actual: Option<&Value>, trail: &PathTrail<'_>, sink: &mut MismatchSink) -> Walk {
        let holds = match (self, actual) {
            (Matcher::AnyOf(matchers), _) => {
                return walk_any_of(self, matchers, actual, trail, sink);
            }
            (Matcher::AllOf(matchers), _) => {
                return matchers.iter().try_for_each(|matcher| matcher.walk(actual, trail, sink));
            }
            (Matcher::Not(matcher), _) => !matcher.matches_optional(actual),
            (Matcher::Absent, actual) => actual.is_none(),
            (_, None) => false,
            (Matcher::Any, Some(_)) => true,
            (Matcher::Exact(expected), Some(actual)) => {
                return walk_exact(expected, actual, trail, sink);
            }
            (Matcher::Object(fields), Some(Value::Object(actual))) => {
                return fields
                    .iter()
                    .try_for_each(|(key, matcher)| matcher.walk(actual.get(key), &PathTrail::Key(trail, key), sink));
            }
            (Matcher::Object(fields), Some(actual)) => {
                return walk_not_an_object(self, fields, actual, trail, sink);
            }
            (Matcher::Array(matchers), Some(Value::Array(actual))) => {
                return walk_elements(matchers, actual, trail, sink);
            }
            (Matcher::Each(matcher), Some(Value::Array(actual))) => {
                return actual
                    .iter()
                    .enumerate()
                    .try_for_each(|(index, actual)| matcher.walk(Some(actual), &PathTrail::Index(trail, index), sink));
            }
            (Matcher::Contains(contains), Some(actual)) => match contains.as_ref() {
                Contains::Text(text) => has_text(text, actual),
                Contains::Element(matcher) => {
                    return walk_contains(self, matcher, actual, trail, sink);
                }
            },
            (Matcher::Pattern(pattern), Some(actual)) => actual.as_str().is_some_and(|text| pattern.is_match(text)),
            (Matcher::Type(kind), Some(actual)) => kind.includes(actual),
            (Matcher::Schema(schema), Some(actual)) => {
                return walk_schema(schema, actual, trail, sink);
            }
            (Matcher::Range(range), Some(actual)) => range.has(actual),
            (Matcher::Length(range), Some(actual)) => {
                return walk_length(self, range, actual, trail, sink);
            }
            (Matcher::At(at), Some(actual)) => return walk_at(at, actual, trail, sink),
            (Matcher::Array(_) | Matcher::Each(_), Some(_)) => false,
        };
        if holds {
            return Walk::Continue(());
        }
        sink.report(trail, || self.weight(), || words(self, actual))
    }
}

pub(super) fn words(expected: impl fmt::Display, actual: Option<&Value>) -> MismatchText {
    MismatchText { expected: expected.to_string(), got: actual.map(|actual| excerpt(actual, DEFAULT_EXCERPT)) }
}

pub(super) fn walk_exact(expected: &Value, actual: &Value, trail: &PathTrail<'_>, sink: &mut MismatchSink) -> Walk {
    let same = match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => {
            for (key, expected) in expected {
                let trail = PathTrail::Key(trail, key);
                match actual.get(key) {
                    Some(actual) => walk_exact(expected, actual, &trail, sink)?,
                    None => {
                        sink.report(&trail, || leaves(expected), || words(excerpt(expected, DEFAULT_EXCERPT), None))?
                    }
                }
            }
            let surplus = actual.iter().filter(|(key, _)| !expected.contains_key(*key));
            for (key, actual) in surplus {
                let trail = PathTrail::Key(trail, key);
                sink.report(&trail, || 1, || words("nothing", Some(actual)))?;
            }
            return Walk::Continue(());
        }
        (Value::Array(expected), Value::Array(actual)) => {
            let missing = expected.iter().skip(actual.len()).map(leaves);
            walk_count(expected.len(), actual.len(), || missing.sum(), trail, sink)?;
            for (index, (expected, actual)) in expected.iter().zip(actual).enumerate() {
                walk_exact(expected, actual, &PathTrail::Index(trail, index), sink)?;
            }
            return Walk::Continue(());
        }
        (Value::Number(expected), Value::Number(actual)) => compare(expected, actual).is_eq(),
        (Value::String(expected), Value::String(actual)) if expected != actual => {
            return sink.report(
                trail,
                || 1,
                || {
                    let (expected, got) = difference(expected, actual, DEFAULT_EXCERPT);
                    let got = Some(got);
                    MismatchText { expected, got }
                },
            );
        }
        (expected, actual) => expected == actual,
    };
    if same {
        return Walk::Continue(());
    }
    sink.report(trail, || leaves(expected), || words(excerpt(expected, DEFAULT_EXCERPT), Some(actual)))
}

/// ```text
/// $.city: expected an object with {contians: "x"} (did you mean the operator `contains`?), got "Oslo"
/// ```
fn walk_not_an_object(
    matcher: &Matcher,
    fields: &[(String, Matcher)],
    actual: &Value,
    trail: &PathTrail<'_>,
    sink: &mut MismatchSink,
) -> Walk {
    sink.report(
        trail,
        || matcher.weight(),
        || {
            // A misspelled operator was parsed as data; this is the first place that can report it.
            let meant = match fields {
                [(key, _)] => parse::closest(key),
                _ => None,
            };
            match meant {
                Some(word) => words(format_args!("{matcher} (did you mean the operator `{word}`?)"), Some(actual)),
                None => words(matcher, Some(actual)),
            }
        },
    )
}

fn walk_elements(matchers: &[Matcher], actual: &[Value], trail: &PathTrail<'_>, sink: &mut MismatchSink) -> Walk {
    let missing = matchers.iter().skip(actual.len()).map(Matcher::weight);
    walk_count(matchers.len(), actual.len(), || missing.sum(), trail, sink)?;
    let pairs = matchers.iter().zip(actual).enumerate();
    pairs
        .into_iter()
        .try_for_each(|(index, (matcher, actual))| matcher.walk(Some(actual), &PathTrail::Index(trail, index), sink))
}

/// ```text
/// $.items: expected 3 elements, got 2
/// ```
fn walk_count(
    expected: usize,
    actual: usize,
    missing: impl FnOnce() -> usize,
    trail: &PathTrail<'_>,
    sink: &mut MismatchSink,
) -> Walk {
    if expected == actual {
        return Walk::Continue(());
    }
    let elements = if expected == 1 { "element" } else { "elements" };
    sink.report(
        trail,
        || missing().max(actual.saturating_sub(expected)),
        || MismatchText { expected: format!("{expected} {elements}"), got: Some(actual.to_string()) },
    )
}

fn has_text(text: &SearchText, actual: &Value) -> bool {
    match actual {
        Value::String(string) => text.is_in(string),
        Value::Array(elements) => {
            elements.iter().any(|element| element.as_str().is_some_and(|string| text.equals(string)))
        }
        Value::Object(fields) => fields.keys().any(|key| text.equals(key)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn walk_contains(
    whole: &Matcher,
    matcher: &Matcher,
    actual: &Value,
    trail: &PathTrail<'_>,
    sink: &mut MismatchSink,
) -> Walk {
    match (actual, matcher) {
        (Value::Array(elements), _) => {
            let elements = elements.iter().enumerate();
            let candidates =
                elements.map(|(index, element)| Candidate { matcher, actual: Some(element), index: Some(index) });
            walk_closest(whole, candidates, Some(actual), trail, sink)
        }
        (Value::Object(_), Matcher::Object(_)) => matcher.walk(Some(actual), trail, sink),
        _ => sink.report(trail, || whole.weight(), || words(whole, Some(actual))),
    }
}

fn walk_any_of(
    whole: &Matcher,
    matchers: &[Matcher],
    actual: Option<&Value>,
    trail: &PathTrail<'_>,
    sink: &mut MismatchSink,
) -> Walk {
    let candidates = matchers.iter().map(|matcher| Candidate { matcher, actual, index: None });
    walk_closest(whole, candidates, actual, trail, sink)
}

fn walk_schema(schema: &Schema, actual: &Value, trail: &PathTrail<'_>, sink: &mut MismatchSink) -> Walk {
    if schema.is_valid(actual) {
        return Walk::Continue(());
    }
    if let MismatchSink::First = sink {
        return Walk::Break(());
    }
    schema.check(actual).into_iter().try_for_each(|mismatch| {
        let trail = PathTrail::Below(trail, &mismatch.path);
        sink.report(&trail, || 1, || MismatchText { expected: mismatch.expected.clone(), got: mismatch.got.clone() })
    })
}

fn walk_length(whole: &Matcher, range: &Range, actual: &Value, trail: &PathTrail<'_>, sink: &mut MismatchSink) -> Walk {
    let length = match actual {
        Value::String(text) => text.chars().count(),
        Value::Array(elements) => elements.len(),
        Value::Object(fields) => fields.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            return sink.report(trail, || 1, || words(whole, Some(actual)));
        }
    };
    if range.contains(&Number::from(length)) {
        return Walk::Continue(());
    }
    sink.report(
        trail,
        || 1,
        || MismatchText { expected: whole.to_string(), got: Some(format!("a length of {length}")) },
    )
}

fn walk_at(at: &JsonPathMatcher, actual: &Value, trail: &PathTrail<'_>, sink: &mut MismatchSink) -> Walk {
    if let MismatchSink::First = sink {
        let nodes = at.query.found(actual);
        let nothing = nodes.is_empty() && !at.matcher().matches_optional(None);
        let holds = !nothing && nodes.into_iter().all(|node| at.matcher().matches(node));
        return if holds { Walk::Continue(()) } else { Walk::Break(()) };
    }
    let places = at.query.find_all(actual);
    if places.is_empty() {
        return match at.query.single() {
            Some(path) => at.matcher().walk(None, &PathTrail::Below(trail, path), sink),
            None if at.matcher().matches_optional(None) => Walk::Continue(()),
            None => sink.report(
                trail,
                || at.matcher().weight(),
                || MismatchText {
                    expected: format!("{} at {}", at.matcher(), at.as_str()),
                    got: Some("nothing there".to_owned()),
                },
            ),
        };
    }
    places.iter().try_for_each(|path| at.matcher().walk(path.lookup(actual), &PathTrail::Below(trail, path), sink))
}

/// One of several ways in which a matcher could have been satisfied.
pub(super) struct Candidate<'walk> {
    pub(super) matcher: &'walk Matcher,
    pub(super) actual: Option<&'walk Value>,
    /// The index of the array element, if the candidate is one.
    pub(super) index: Option<usize>,
}

/// One candidate must match. If none does, the closest one is reported, provided that a part of it matches. Otherwise a
/// single candidate would be misleading, so the whole is reported.
pub(super) fn walk_closest<'walk>(
    whole: &Matcher,
    mut candidates: impl Iterator<Item = Candidate<'walk>>,
    actual: Option<&Value>,
    trail: &PathTrail<'_>,
    sink: &mut MismatchSink,
) -> Walk {
    if let MismatchSink::First = sink {
        let found = candidates.any(|candidate| candidate.matcher.matches_optional(candidate.actual));
        return if found { Walk::Continue(()) } else { Walk::Break(()) };
    }
    let mut closest: Option<(Closeness, Candidate<'_>)> = None;
    for candidate in candidates {
        let distance = candidate.matcher.distance_optional(candidate.actual);
        if distance == 0 {
            return Walk::Continue(());
        }
        let right = candidate.matcher.weight().saturating_sub(distance);
        let closeness = (distance, Reverse(right));
        if closest.as_ref().is_none_or(|(best, _)| closeness < *best) {
            closest = Some((closeness, candidate));
        }
    }
    match (sink, closest) {
        (MismatchSink::Count(total), Some(((distance, _), _))) => {
            *total = total.saturating_add(distance);
            Walk::Continue(())
        }
        (sink, Some(((_, Reverse(1..)), closest))) => match closest.index {
            Some(index) => {
                let trail = PathTrail::Index(trail, index);
                closest.matcher.walk(closest.actual, &trail, sink)
            }
            None => closest.matcher.walk(closest.actual, trail, sink),
        },
        (sink, _) => sink.report(trail, || whole.weight(), || words(whole, actual)),
    }
}

/// The number of mismatches, and, among candidates with as many, the number of matching parts.
type Closeness = (usize, Reverse<usize>);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::arbitrary::{json_object, json_value, matcher};
    use super::super::mismatch_sink::Mismatch;
    use super::*;

    fn mismatches_of(written: Value, actual: Value) -> Vec<String> {
        let matcher = Matcher::parse(&written).unwrap();
        let mismatches = matcher.check(&actual);
        mismatches.iter().map(Mismatch::to_string).collect()
    }

    #[test]
    fn one_and_one_point_zero_are_equal_but_big_integers_are_exact() {
        assert!(Matcher::exact(1).matches(&json!(1.0)));
        assert!(Matcher::exact(json!({"a": [1.0]})).matches(&json!({"a": [1]})));
        let big = 9_007_199_254_740_993_u64;
        assert!(!Matcher::exact(big).matches(&json!(big - 1)));
        assert!(!Matcher::exact(big).matches(&json!(9_007_199_254_740_992.0)));
    }

    #[test]
    fn every_mismatch_has_its_place() {
        let written = json!({"name": "weather", "args": {"city": "Oslo", "days": [1, 2]}, "id": 7});
        let actual = json!({"name": "wether", "args": {"days": [1, 3]}, "id": 7, "more": true});
        assert_eq!(
            mismatches_of(written, actual),
            [
                "$.name: expected \"weather\", got \"wether\"",
                "$.args.city: missing, expected \"Oslo\"",
                "$.args.days[1]: expected 2, got 3",
            ]
        );
    }

    #[test]
    fn the_closest_alternative_is_reported_if_it_matched_partly() {
        let written = json!({"any_of": [{"a": 1, "b": 2, "c": 3}, {"a": 9, "b": 9}, "x"]});
        assert_eq!(mismatches_of(written.clone(), json!({"a": 1, "b": 2, "c": 4})), ["$.c: expected 3, got 4"]);
        assert_eq!(mismatches_of(written.clone(), json!({"a": 9})), ["$.b: missing, expected 9"]);
        assert_eq!(
            mismatches_of(written, json!(5)),
            ["$: expected an object with {a: 1, b: 2, c: 3} or an object with {a: 9, b: 9} or \"x\", got 5"]
        );
    }

    #[test]
    fn the_closest_element_is_reported_if_it_matched_partly() {
        let written = json!({"contains": {"type": "text", "text": {"contains": "rain"}}});
        let actual = json!([{"type": "image"}, {"type": "text", "text": "sun"}]);
        assert_eq!(
            mismatches_of(written.clone(), actual),
            ["$[1].text: expected something containing \"rain\", got \"sun\""]
        );
        assert_eq!(
            mismatches_of(written, json!([])),
            [
                "$: expected something containing an object with {type: \"text\", text: something containing \"rain\"}, got []"
            ]
        );
    }

    #[test]
    fn a_misspelled_operator_is_suggested_in_the_mismatch() {
        assert_eq!(
            mismatches_of(json!({"city": {"contians": "x"}}), json!({"city": "Oslo"})),
            ["$.city: expected an object with {contians: \"x\"} (did you mean the operator `contains`?), got \"Oslo\""]
        );
    }

    #[test]
    fn an_absent_value_is_missing_unless_it_is_optional() {
        for (written, matches) in [
            (json!(1), false),
            (json!({}), false),
            (json!({"any": true}), false),
            (json!({"present": true}), false),
            (json!({"present": false}), true),
            (json!({"any_of": [1, {"present": false}]}), true),
            (json!({"not": {"present": true}}), true),
        ] {
            let matcher = Matcher::parse(&written).unwrap();
            assert_eq!(matcher.check_optional(None).is_empty(), matches, "{written}");
            assert_eq!(matcher.matches_optional(None), matches, "{written}");
        }
    }

    #[test]
    fn the_distance_ranks_near_misses() {
        let matcher = Matcher::subset(json!({"name": "weather", "arguments": {"city": "Oslo", "days": 3}}));
        let ranked = [
            json!({"name": "weather", "arguments": {"city": "Oslo", "days": 3}}),
            json!({"name": "weather", "arguments": {"city": "Oslo", "days": 4}}),
            json!({"name": "weather"}),
            json!({"name": "wether", "arguments": {}}),
        ];
        let distances = ranked.each_ref().map(|actual| matcher.distance(actual));
        assert_eq!(distances, [0, 1, 2, 3]);
    }

    #[test]
    fn nested_alternatives_are_checked_in_linear_time() {
        let written = (0..60).fold(json!(1), |inner, _| json!({"any_of": [inner, {"a": 1, "b": 2}]}));
        assert_eq!(mismatches_of(written, json!({"a": 1})).len(), 1);
    }

    proptest! {
        #[test]
        fn every_value_is_exactly_itself(value in json_value()) {
            prop_assert_eq!(Matcher::exact(value.clone()).check(&value), vec![]);
        }

        #[test]
        fn exact_matches_only_what_is_equal(left in json_value(), right in json_value()) {
            let both = Matcher::exact(left.clone()).matches(&right);
            prop_assert_eq!(both, Matcher::exact(right.clone()).matches(&left));
            if left == right {
                prop_assert!(both);
            }
        }

        #[test]
        fn a_subset_matches_however_many_keys_are_added(part in json_object(), more in json_object()) {
            let mut whole = more;
            whole.extend(part.clone());
            prop_assert_eq!(Matcher::subset(part).check(&Value::Object(whole)), vec![]);
        }

        #[test]
        fn not_matches_exactly_what_its_matcher_does_not(matcher in matcher(), actual in json_value()) {
            prop_assert_ne!(matcher.matches(&actual), (!matcher).matches(&actual));
        }

        #[test]
        fn check_matches_and_distance_agree(matcher in matcher(), actual in json_value()) {
            let matches = matcher.matches(&actual);
            prop_assert_eq!(matcher.check(&actual).is_empty(), matches);
            prop_assert_eq!(matcher.distance(&actual) == 0, matches);
            let matches = matcher.matches_optional(None);
            prop_assert_eq!(matcher.check_optional(None).is_empty(), matches);
            prop_assert_eq!(matcher.distance_optional(None) == 0, matches);
        }
    }
}
