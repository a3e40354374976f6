//! Writes a matcher in its written form.

use std::ops::Bound;

use serde_json::{Map, Number, Value, json};

use super::data_or_operators::ObjectKind;
use super::matcher::Matcher;
use super::pattern::Contains;
use super::pattern::TextCase;
use super::range::Range;

impl Matcher {
    /// The written form of the matcher, which [`Matcher::parse`] reads, so that a program can write a mock or a suite.
    ///
    /// Only matchers that `parse` can return are written exactly: not an `AnyOf` without alternatives, nor a duplicate
    /// key.
    pub fn to_value(&self) -> Value {
        match self {
            Matcher::Any => json!({"any": true}),
            Matcher::Absent => json!({"present": false}),
            Matcher::Exact(value @ (Value::Object(_) | Value::Array(_))) => json!({"exact": value}),
            Matcher::Exact(scalar) => scalar.clone(),
            Matcher::Object(fields) => {
                let fields = fields.iter();
                let fields: Map<_, _> = fields.map(|(key, matcher)| (key.clone(), matcher.to_value())).collect();
                if ObjectKind::from_fields(&fields) == Ok(ObjectKind::Data) {
                    Value::Object(fields)
                } else {
                    json!({"subset": fields})
                }
            }
            Matcher::Array(matchers) => list(matchers),
            Matcher::Each(matcher) => json!({"each": matcher.to_value()}),
            Matcher::Contains(contains) => match contains.as_ref() {
                Contains::Text(text) => with_case("contains", text.as_str(), text.case()),
                // A bare string would be a text, which also matches a part of a string.
                Contains::Element(Matcher::Exact(value)) => json!({"contains": {"exact": value}}),
                Contains::Element(matcher) => json!({"contains": matcher.to_value()}),
            },
            Matcher::Pattern(pattern) => with_case("matches", pattern.as_str(), pattern.case()),
            Matcher::Type(kind) => json!({"type": kind.name()}),
            Matcher::Schema(schema) => json!({"schema": schema.as_value()}),
            Matcher::Range(range) => match bounds(range) {
                bounds if bounds.is_empty() => json!({"type": "number"}),
                bounds => Value::Object(bounds),
            },
            Matcher::Length(range) => match range.single() {
                Some(length) => json!({"length": length}),
                None => json!({"length": bounds(range)}),
            },
            Matcher::At(json_path) => json!({"at": {json_path.as_str(): json_path.matcher().to_value()}}),
            Matcher::AnyOf(matchers) => json!({"any_of": list(matchers)}),
            Matcher::AllOf(matchers) => json!({"all_of": list(matchers)}),
            Matcher::Not(matcher) => json!({"not": matcher.to_value()}),
        }
    }
}

fn list(matchers: &[Matcher]) -> Value {
    matchers.iter().map(Matcher::to_value).collect()
}

fn with_case(word: &str, written: &str, case: TextCase) -> Value {
    match case {
        TextCase::Sensitive => json!({word: written}),
        TextCase::Insensitive => json!({word: written, "ignore_case": true}),
    }
}

fn bounds(range: &Range) -> Map<String, Value> {
    let bound = |bound: &Bound<Number>, [included, excluded]: [&str; 2]| match bound {
        Bound::Included(number) => Some((included.to_owned(), Value::from(number.clone()))),
        Bound::Excluded(number) => Some((excluded.to_owned(), Value::from(number.clone()))),
        Bound::Unbounded => None,
    };
    let low = bound(range.low(), ["gte", "gt"]);
    let high = bound(range.high(), ["lte", "lt"]);
    low.into_iter().chain(high).collect()
}

#[cfg(test)]
mod tests {
    use super::super::arbitrary::{json_value, matcher};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_parsed_matcher_is_written_unchanged() {
        for written in [
            json!({"city": "Oslo", "days": {"gte": 1, "lt": 8}}),
            json!({"type": "text", "text": {"contains": "x", "ignore_case": true}}),
            json!({"subset": {"length": 3, "wide": 4}}),
            json!({"exact": {"any": true}}),
            json!([1, {"length": 2}, {"length": {"gt": 0}}]),
            json!({"at": {"$.a[*]": {"matches": "^B"}}}),
            json!({"any_of": [{"present": false}, {"type": "null"}]}),
            json!({"contains": {"exact": "x"}}),
        ] {
            assert_eq!(Matcher::parse(&written).unwrap().to_value(), written);
        }
    }

    proptest! {
        #[test]
        fn a_written_matcher_matches_like_the_original(matcher in matcher(), actual in json_value()) {
            let written = matcher.to_value();
            let read = Matcher::parse(&written);
            prop_assert!(read.is_ok(), "{} {:?}", written, read);
            let read = read.unwrap();
            prop_assert_eq!(read.matches(&actual), matcher.matches(&actual), "{}", written);
            prop_assert_eq!(read.matches_optional(None), matcher.matches_optional(None));
        }
    }
}
