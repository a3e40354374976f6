//! Compares requests: which of them request the same.
//!
//! ```text
//! method, params ──view──► what counts ──key──► 128 bits, the same in every run
//!                                      ──closest──► the recorded request with the fewest differences
//! ```

use std::cmp::Reverse;
use std::fmt;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::json::{PathSet, canonical, canonical_object};
use crate::matcher::{Matcher, Mismatch};
use crate::message::Method;

/// The members in which two requests must be equal to request the same.
///
/// Members that differ between sessions are ignored: ids, and all of `_meta` (progress token, version, client,
/// capabilities, trace context); the input responses and the request state of an input round; how long a task is kept;
/// all of `initialize` and `server/discover`. A param that is `null`, and empty arguments, equal an absent member.
#[derive(Clone, Debug, Default)]
pub struct RequestIdentity {
    ignored: PathSet,
}

/// The hash of a request's compared members: 128 bits that are the same in every run and on every machine.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestKey(pub u128);

impl fmt::Debug for RequestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestKey({self})")
    }
}

impl fmt::Display for RequestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The closest recorded request, and its differences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosestRequest<T> {
    /// The closest request.
    pub which: T,
    /// Every difference; paths begin at the request: `$.params.arguments.city`.
    pub mismatches: Vec<Mismatch>,
}

impl RequestIdentity {
    /// Also ignores the values at a JSONPath of the request, such as `$.params.arguments.now`. `Err` describes what is
    /// wrong with the path.
    pub fn ignore(self, path: &str) -> Result<RequestIdentity, String> {
        Ok(RequestIdentity { ignored: self.ignored.and(path)? })
    }

    /// The compared members of a request: `method`, and `params` if some of them are compared.
    pub fn view(&self, method: &Method, params: Option<&Value>) -> Value {
        let mut view = json!({"method": method.as_str()});
        let opening = *method == Method::INITIALIZE || *method == Method::DISCOVER;
        match params {
            Some(Value::Object(params)) if !opening => {
                let params = stable(params);
                if !params.is_empty() {
                    view["params"] = Value::Object(params);
                }
            }
            Some(Value::Object(_) | Value::Null) | None => {}
            Some(other) => view["params"] = other.clone(),
        }
        self.ignored.remove_from(&mut view);
        // A param without compared members equals an absent one, too.
        if let Some(params) = view.get_mut("params").and_then(Value::as_object_mut) {
            params.retain(|key, value| key != "arguments" || !is_empty(value));
            if params.is_empty() {
                view.as_object_mut().map(|view| view.shift_remove("params"));
            }
        }
        view
    }

    /// The key of a request. It is that of the request's view, which is not built unless a path is ignored.
    pub fn key(&self, method: &Method, params: Option<&Value>) -> RequestKey {
        let is_handshake = *method == Method::INITIALIZE || *method == Method::DISCOVER;
        let object = params.and_then(Value::as_object).filter(|params| !is_handshake && !params.contains_key("task"));
        let Some(params) = object.filter(|_| self.ignored.is_empty()) else {
            return RequestKey::from_view(&self.view(method, params));
        };
        let mut text = String::with_capacity(256);
        text.push_str("{\"method\":");
        canonical(&Value::from(method.as_str()), &mut text);
        let mut compared = params.iter().filter(|(key, value)| is_compared(key, value)).peekable();
        if compared.peek().is_some() {
            text.push_str(",\"params\":");
            canonical_object(compared, &mut text);
        }
        text.push_str(",}");
        RequestKey::of_text(&text)
    }

    /// Of several views, the one with the fewest differences from `request`; of several such, the first.
    pub fn closest<T>(request: &Value, recorded: impl IntoIterator<Item = (T, Value)>) -> Option<ClosestRequest<T>> {
        let measured = recorded.into_iter().map(|(which, view)| {
            let matcher = Matcher::exact(view);
            let distance = matcher.distance(request);
            // Of views with as many differences, the one with more equal values.
            ((distance, Reverse(matcher.weight().saturating_sub(distance))), which, matcher)
        });
        let (_, which, matcher) = measured.min_by_key(|(closeness, ..)| *closeness)?;
        Some(ClosestRequest { which, mismatches: matcher.check(request) })
    }

    /// A hash of the settings, for callers that store keys.
    pub fn fingerprint(&self) -> RequestKey {
        RequestKey::from_view(&Value::from_iter(self.ignored.written()))
    }
}

impl RequestKey {
    /// The key of a [view](RequestIdentity::view).
    pub fn from_view(view: &Value) -> RequestKey {
        let mut text = String::with_capacity(256);
        canonical(view, &mut text);
        RequestKey::of_text(&text)
    }

    fn of_text(text: &str) -> RequestKey {
        let digest = Sha256::digest(text.as_bytes());
        let mut half = [0; 16];
        half.copy_from_slice(&digest[..16]);
        RequestKey(u128::from_be_bytes(half))
    }
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_object().is_some_and(Map::is_empty)
}

/// Whether a param is part of what is requested, and not a property of the client or session.
fn is_compared(key: &str, value: &Value) -> bool {
    match key {
        "_meta" | "inputResponses" | "requestState" => false,
        "arguments" => !is_empty(value),
        _ => !value.is_null(),
    }
}

/// The params that are compared.
fn stable(params: &Map<String, Value>) -> Map<String, Value> {
    let kept = params.iter().filter(|(key, value)| is_compared(key, value));
    kept.map(|(key, value)| {
        // Whether a task is requested is compared; how long it is kept is not.
        let value = if key == "task" && value.is_object() { json!({}) } else { value.clone() };
        (key.clone(), value)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn call(params: Value) -> RequestKey {
        RequestIdentity::default().key(&"tools/call".into(), Some(&params))
    }

    #[test]
    fn a_key_is_the_same_in_every_run() {
        let key = call(json!({"name": "rain", "arguments": {"city": "Oslo"}}));
        assert_eq!(key.to_string(), "7dfad57fefd7bb3ee755dc1de0c74b5e");
        assert_eq!(RequestIdentity::default().fingerprint().to_string(), "4f53cda18c2baa0c0354bb5f9a3ecbe5");
    }

    #[test]
    fn session_specific_members_are_ignored() {
        let plain = call(json!({"name": "rain", "arguments": {"a": 1, "b": [2]}}));
        let meta =
            json!({"progressToken": 7, "io.modelcontextprotocol/protocolVersion": "2026-07-28", "traceparent": "00"});
        assert_eq!(call(json!({"_meta": meta, "arguments": {"b": [2.0], "a": 1}, "name": "rain"})), plain);
        let round = json!({"name": "rain", "arguments": {"a": 1, "b": [2]}, "requestState": "x", "inputResponses": {}});
        assert_eq!(call(round), plain);
        assert_eq!(call(json!({"name": "rain", "arguments": {"a": 1, "b": [2]}, "task": null})), plain);
        let task = call(json!({"name": "rain", "arguments": {"a": 1, "b": [2]}, "task": {"ttl": 5}}));
        assert_ne!(task, plain);
        assert_eq!(task, call(json!({"name": "rain", "arguments": {"a": 1, "b": [2]}, "task": {}})));
    }

    #[test]
    fn a_key_is_that_of_the_view() {
        let identity = RequestIdentity::default();
        for params in [
            json!({}),
            json!({"_meta": {}, "requestState": "x", "arguments": {}, "x": null}),
            json!({"z": 1, "name": "a\"b", "arguments": {"b": [1.0, {"d": 1, "c": 2}], "a": null}, "_meta": {"x": 1}}),
            json!({"name": "a", "task": {"ttl": 1}}),
            json!([1]),
        ] {
            for method in [Method::TOOLS_CALL, Method::INITIALIZE] {
                let key = RequestKey::from_view(&identity.view(&method, Some(&params)));
                assert_eq!(identity.key(&method, Some(&params)), key, "{method} {params}");
            }
        }
    }

    #[test]
    fn absent_null_and_empty_arguments_have_one_key() {
        let none = call(json!({"name": "now"}));
        assert_eq!(call(json!({"name": "now", "arguments": {}})), none);
        assert_eq!(call(json!({"name": "now", "arguments": null, "_meta": null})), none);
        assert_ne!(call(json!({"name": "now", "arguments": {"a": null}})), none);
        let identity = RequestIdentity::default();
        assert_eq!(identity.key(&"tools/list".into(), None), identity.key(&"tools/list".into(), Some(&json!({}))));
    }

    #[test]
    fn all_handshakes_have_one_key() {
        let identity = RequestIdentity::default();
        let one = json!({"protocolVersion": "2025-06-18", "clientInfo": {"name": "a"}});
        assert_eq!(identity.key(&Method::INITIALIZE, Some(&one)), identity.key(&Method::INITIALIZE, None));
        assert_ne!(identity.key(&Method::INITIALIZE, None), identity.key(&Method::DISCOVER, None));
    }

    #[test]
    fn ignored_paths_do_not_change_the_key() {
        let identity = RequestIdentity::default().ignore("$.params.arguments.now").unwrap();
        let key = |arguments: Value| {
            identity.key(&"tools/call".into(), Some(&json!({"name": "rain", "arguments": arguments})))
        };
        assert_eq!(key(json!({"city": "Oslo", "now": 1})), key(json!({"city": "Oslo", "now": 2})));
        assert_ne!(key(json!({"city": "Oslo", "now": 1})), key(json!({"city": "Bergen", "now": 1})));
        let none = identity.key(&"tools/call".into(), Some(&json!({"name": "rain"})));
        assert_eq!([key(json!({"now": 1})), key(json!({}))], [none, none]);
        assert_ne!(identity.fingerprint(), RequestIdentity::default().fingerprint());
        assert!(RequestIdentity::default().ignore("now").is_err());
    }

    #[test]
    fn the_closest_request_has_its_differences() {
        let identity = RequestIdentity::default();
        let view = |city: &str, days: u64| {
            let params = json!({"name": "rain", "arguments": {"city": city, "days": days}});
            identity.view(&"tools/call".into(), Some(&params))
        };
        let recorded = [("far", view("Bergen", 3)), ("near", view("Oslo", 3)), ("also near", view("Oslo", 4))];
        let closest = RequestIdentity::closest(&view("Oslo", 5), recorded).unwrap();
        assert_eq!(closest.which, "near");
        let shown: Vec<_> = closest.mismatches.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["$.params.arguments.days: expected 3, got 5"]);
    }

    proptest! {
        #[test]
        fn the_order_of_keys_does_not_count(keys in proptest::collection::btree_map("[a-z]{1,4}", 0..100i64, 0..6)) {
            let forward: Map<String, Value> = keys.iter().map(|(key, value)| (key.clone(), (*value).into())).collect();
            let back: Map<String, Value> = keys.iter().rev().map(|(key, value)| (key.clone(), (*value).into())).collect();
            prop_assert_eq!(call(json!({"arguments": forward})), call(json!({"arguments": back})));
        }
    }
}
