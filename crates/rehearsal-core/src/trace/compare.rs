//! Compares two traces call by call.
//!
//! ```text
//! RecordedCall ──► CallDigest ──► CallPairs: alike, changed, removed, added
//!                                             └─► both calls ──► differences ──► mismatches with their paths
//! ```

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Map, Value};

use super::{RecordedCall, subject};
use crate::json::{PathSet, RawJson, canonical};
use crate::matcher::{Mismatch, differences};
use crate::message::{Body, Reply};

/// Compares calls by their requests and responses. Ids, times, order and `_meta` are ignored.
#[derive(Clone, Debug, Default)]
pub struct CallComparison {
    ignored: PathSet,
}

/// Hashes of a call that suffice to pair it with a call of the other trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallDigest {
    /// Hash of the requesting side, the method and the subject.
    subject_hash: u128,
    /// Hash of the params.
    params: u128,
    /// Hash of the reply.
    reply: u128,
}

/// The pairs of calls of two traces, by their numbers in each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallPairs {
    /// How many calls have an equal call in the other trace.
    pub alike: u64,
    /// Calls with an equal request and another response, or of the same tool with other arguments.
    pub changed: Vec<(usize, usize)>,
    /// Calls that only the first trace has.
    pub removed: Vec<usize>,
    /// Calls that only the second trace has.
    pub added: Vec<usize>,
}

impl CallComparison {
    /// Ignores the values at a JSONPath such as `$.result.content[*].text` or `$..timestamp`. `Err` describes what is
    /// wrong with the path.
    pub fn ignore(mut self, path: &str) -> Result<CallComparison, String> {
        self.ignored = self.ignored.and(path)?;
        Ok(self)
    }

    /// The ignored paths that have matched nothing so far, as the user wrote them.
    pub fn unmet(&self) -> impl Iterator<Item = &str> {
        self.ignored.unmatched()
    }

    /// The compared parts of a call: `params`, and `result`, `error` or `garbled`.
    pub fn view(&self, call: &RecordedCall) -> Value {
        let mut view = Map::new();
        if let Some(params) = call.request.message.params() {
            view.insert("params".to_owned(), stable(params));
        }
        if let Some(response) = &call.response {
            let (key, value) = match response.message.body() {
                Body::Response(response) => match &response.reply {
                    Reply::Result(result) => ("result", stable(result)),
                    Reply::Error(error) => {
                        let mut object = error.object();
                        object.extend(error.data.iter().map(|data| ("data".to_owned(), stable(data))));
                        ("error", Value::Object(object))
                    }
                },
                Body::Garbled(_) | Body::Request(_) | Body::Notification(_) | Body::Batch(_) => {
                    ("garbled", response.message.text().into())
                }
            };
            view.insert(key.to_owned(), value);
        }
        let mut view = Value::Object(view);
        self.ignored.remove_from(&mut view);
        view
    }

    /// Builds the hashes of a call.
    pub fn digest(&self, call: &RecordedCall) -> CallDigest {
        let view = self.view(call);
        let method = call.request.message.method().map(ToString::to_string);
        let subject_hash = digest(&(call.asker, method, subject(&call.request.message)));
        let text = |keys: &[&str]| {
            let mut text = String::new();
            for key in keys {
                if let Some(value) = view.get(key) {
                    text.push_str(key);
                    canonical(value, &mut text);
                }
            }
            text
        };
        let (params, answer) = (text(&["params"]), text(&["result", "error", "garbled"]));
        CallDigest { subject_hash, params: digest(&params), reply: digest(&answer) }
    }

    /// Every difference between two calls.
    pub fn mismatches(&self, before: &RecordedCall, after: &RecordedCall) -> Vec<Mismatch> {
        differences(&self.view(before), &self.view(after)).into_iter().map(|drifted| drifted.mismatch).collect()
    }
}

impl CallPairs {
    /// Pairs the calls of two traces: first equal requests with equal responses, then equal requests, then equal tools.
    /// Equal calls are paired in their order.
    pub fn find(before: &[CallDigest], after: &[CallDigest]) -> CallPairs {
        let mut pairs = CallPairs::default();
        let mut left: (Vec<usize>, Vec<usize>) = ((0..before.len()).collect(), (0..after.len()).collect());
        let same = |digest: &CallDigest| *digest;
        let (alike, rest) = matched(left, before, after, same);
        (pairs.alike, left) = (alike.len() as u64, rest);
        let (params, rest) = matched(left, before, after, |digest| CallDigest { reply: 0, ..*digest });
        let (subject_hash, rest) = matched(rest, before, after, |digest| CallDigest { params: 0, reply: 0, ..*digest });
        pairs.changed = params.into_iter().chain(subject_hash).collect();
        pairs.changed.sort_unstable();
        (pairs.removed, pairs.added) = rest;
        pairs
    }

    /// Whether the two traces have no difference.
    pub fn all_equal(&self) -> bool {
        self.changed.is_empty() && self.removed.is_empty() && self.added.is_empty()
    }
}

type UnpairedCalls = (Vec<usize>, Vec<usize>);

/// Pairs calls with equal keys in their order, and returns the calls that are left.
fn matched(
    (before_left, after_left): UnpairedCalls,
    before: &[CallDigest],
    after: &[CallDigest],
    key: impl Fn(&CallDigest) -> CallDigest,
) -> (Vec<(usize, usize)>, UnpairedCalls) {
    let sorted = |left: Vec<usize>, sketches: &[CallDigest]| {
        let mut keyed: Vec<(CallDigest, usize)> = left.into_iter().map(|at| (key(&sketches[at]), at)).collect();
        keyed.sort_unstable();
        keyed
    };
    let (before, after) = (sorted(before_left, before), sorted(after_left, after));
    let (mut pairs, mut removed, mut added) = (Vec::new(), Vec::new(), Vec::new());
    let (mut before, mut after) = (before.into_iter().peekable(), after.into_iter().peekable());
    loop {
        match (before.peek(), after.peek()) {
            (Some((left, _)), Some((right, _))) if left == right => {
                pairs.extend(before.next().zip(after.next()).map(|((_, left), (_, right))| (left, right)));
            }
            (Some((left, _)), Some((right, _))) if left > right => added.extend(after.next().map(|(_, at)| at)),
            (Some(_), _) => removed.extend(before.next().map(|(_, at)| at)),
            (None, Some(_)) => added.extend(after.next().map(|(_, at)| at)),
            (None, None) => break,
        }
    }
    removed.sort_unstable();
    added.sort_unstable();
    (pairs, (removed, added))
}

/// A value without its `_meta`, which describes the session and not the request or reply.
fn stable(json: &RawJson) -> Value {
    match json.value() {
        Ok(Value::Object(mut object)) => {
            object.shift_remove("_meta");
            Value::Object(object)
        }
        Ok(value) => value,
        Err(_) => Value::from(json.as_str()),
    }
}

fn digest(what: &impl Hash) -> u128 {
    let half = |seed: u8| {
        let mut hasher = DefaultHasher::new();
        (seed, what).hash(&mut hasher);
        hasher.finish()
    };
    u128::from(half(0)) << 64 | u128::from(half(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::Side;
    use crate::message::Message;
    use crate::trace::PlacedMessage;
    use std::time::Duration;

    fn call(name: &str, arguments: &str, result: &str) -> RecordedCall {
        let params =
            format!(r#"{{"name":"{name}","arguments":{arguments},"_meta":{{"progressToken":{}}}}}"#, name.len());
        let request = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        let response = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
        let placed = |text: String| PlacedMessage::new(0, Duration::ZERO, Message::parse(text));
        RecordedCall { asker: Side::Client, request: placed(request), response: Some(placed(response)) }
    }

    fn pairs(before: &[RecordedCall], after: &[RecordedCall]) -> CallPairs {
        let compare = CallComparison::default();
        let sketches = |calls: &[RecordedCall]| calls.iter().map(|call| compare.digest(call)).collect::<Vec<_>>();
        CallPairs::find(&sketches(before), &sketches(after))
    }

    #[test]
    fn order_spelling_and_meta_do_not_count() {
        let before = [call("a", r#"{"x":1,"y":[1.5]}"#, r#"{"ok":true}"#), call("b", "{}", "{}")];
        let after = [call("b", "{ }", r#"{"_meta":{}}"#), call("a", r#"{"y":[1.5],"x":1.0}"#, r#"{"ok":true}"#)];
        assert_eq!(pairs(&before, &after), CallPairs { alike: 2, ..CallPairs::default() });
    }

    #[test]
    fn calls_are_changed_removed_or_added() {
        let before = [call("a", "{}", "1"), call("a", "{}", "2"), call("b", r#"{"x":1}"#, "1"), call("c", "{}", "1")];
        let after = [call("d", "{}", "1"), call("b", r#"{"x":2}"#, "1"), call("a", "{}", "2"), call("a", "{}", "3")];
        let found = pairs(&before, &after);
        let expected = CallPairs { alike: 1, changed: vec![(0, 3), (2, 1)], removed: vec![3], added: vec![0] };
        assert_eq!(found, expected);
        assert!(!found.all_equal());
    }

    #[test]
    fn a_change_has_its_path() {
        let (before, after) =
            (call("a", r#"{"x":1}"#, r#"{"t":1,"u":2}"#), call("a", r#"{"x":2}"#, r#"{"t":3,"u":2}"#));
        let shown = |compare: &CallComparison| {
            compare.mismatches(&before, &after).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let compare = CallComparison::default();
        assert_eq!(shown(&compare), ["$.params.arguments.x: expected 1, got 2", "$.result.t: expected 1, got 3"]);
        let compare = compare.ignore("$..t").unwrap();
        assert_eq!(shown(&compare), ["$.params.arguments.x: expected 1, got 2"]);
        assert!(compare.ignore("t").is_err());
    }
}
