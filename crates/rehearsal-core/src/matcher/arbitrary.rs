//! Random values and matchers for property tests; small alphabets, so that they often match.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::matcher::Matcher;
use super::range::Range;
use crate::json::JsonType;

/// A key: ordinary words, operator words and an unusual one.
fn key() -> impl Strategy<Value = String> {
    let keys = ["a", "b", "text", "type", "any", "exact", "not", "gte", "length", "contains", "at", "odd key", ""];
    prop::sample::select(keys.to_vec()).prop_map(str::to_owned)
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (-2_i64..3).prop_map(Value::from),
        prop::sample::select(vec![0.0, 1.0, 1.5]).prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        prop::sample::select(vec!["", "a", "ab", "B", "string", "$.a", "^a"]).prop_map(Value::from),
    ]
}

/// Any JSON value, also one with the syntax of a matcher.
pub(super) fn json_value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            object(inner).prop_map(Value::Object),
        ]
    })
}

/// An object with any values.
pub(super) fn json_object() -> impl Strategy<Value = Map<String, Value>> {
    object(json_value())
}

fn object(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::vec((key(), inner), 0..4).prop_map(|fields| fields.into_iter().collect())
}

/// Any matcher that can be parsed.
pub(super) fn matcher() -> impl Strategy<Value = Matcher> {
    let leaf = prop_oneof![
        Just(Matcher::Any),
        Just(Matcher::Absent),
        json_value().prop_map(Matcher::Exact),
        json_value().prop_map(Matcher::subset),
        prop::sample::select(JsonType::ALL.to_vec()).prop_map(Matcher::Type),
        (0_u64..3).prop_map(|low| Matcher::Range(Range::at_least(low))),
        (0_usize..3).prop_map(Matcher::length),
        "[abB]{0,2}".prop_map(Matcher::contains),
        "[abB]{0,2}".prop_map(Matcher::contains_in_any_case),
        Just(Matcher::pattern("^a").unwrap()),
        Just(Matcher::schema(&json!({"type": "object", "required": ["a"]})).unwrap()),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        let several = prop::collection::vec(inner.clone(), 1..4);
        let path = prop::sample::select(vec!["$.a", "$[*]", "$..a", "$[0]"]);
        prop_oneof![
            several.clone().prop_map(Matcher::AnyOf),
            several.clone().prop_map(Matcher::AllOf),
            several.prop_map(Matcher::Array),
            inner.clone().prop_map(|matcher| !matcher),
            inner.clone().prop_map(Matcher::each),
            inner.clone().prop_map(Matcher::contains_element),
            (path, inner.clone()).prop_map(|(path, matcher)| Matcher::at(path, matcher).unwrap()),
            prop::collection::btree_map(key(), inner, 0..3).prop_map(Matcher::object),
        ]
    })
}
