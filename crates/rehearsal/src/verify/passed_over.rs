//! What does not count, and so stays as it was recorded.

use rehearsal_core::json::{Path, Places, RawJson, Segment};
use rehearsal_core::matcher::{Drift, Drifted, drifted};
use rehearsal_core::message::{ErrorReply, Reply};
use serde_json::{Value, json};

use super::drift::is_within;

/// The places of an answer that the user passes over; their paths begin at `result` or `error`.
#[derive(Clone, Debug, Default)]
pub(super) struct PassedOver {
    places: Places,
}

impl PassedOver {
    /// These and one more. `Err` says what is wrong with it.
    pub(super) fn and(self, path: &str) -> Result<PassedOver, String> {
        Ok(PassedOver { places: self.places.and(path)? })
    }

    /// What differs between two answers elsewhere.
    pub(super) fn drifted(&self, mut before: Value, mut after: Value) -> Vec<Drifted> {
        // An element that is passed over is not taken out: whatever stands behind it would have another place.
        let (was, is) = (self.places.located(&before), self.places.located(&after));
        self.places.take_out_members(&mut before);
        self.places.take_out_members(&mut after);
        let counts = |drifted: &Drifted| {
            let went = drifted.drift == Drift::Removed && is_emptied(drifted.was.as_ref(), &before, &was);
            let came = drifted.drift == Drift::Added && is_emptied(drifted.is.as_ref(), &after, &is);
            !went && !came && !is_within(drifted, &was, &is)
        };
        drifted(&before, &after).into_iter().filter(counts).collect()
    }

    /// A live answer with what was recorded at these places.
    pub(super) fn kept(&self, recorded: Option<&Reply>, live: Reply) -> Reply {
        match (recorded, live) {
            (Some(Reply::Result(recorded)), Reply::Result(live)) if !self.places.is_empty() => {
                match (recorded.exact(), live.exact()) {
                    (Ok(recorded), Ok(value)) => Reply::Result(RawJson::from_value(&self.result(recorded, value))),
                    (Err(_), _) | (_, Err(_)) => Reply::Result(live),
                }
            }
            (Some(Reply::Error(recorded)), Reply::Error(live)) if !self.places.is_empty() => {
                Reply::Error(self.error(recorded, live))
            }
            (_, live) => live,
        }
    }

    /// A live result with what was recorded at these places.
    pub(super) fn result(&self, recorded: Value, live: Value) -> Value {
        let mut live = json!({"result": live});
        self.places.carry_over(&json!({"result": recorded}), &mut live);
        live["result"].take()
    }

    fn error(&self, recorded: &ErrorReply, live: ErrorReply) -> ErrorReply {
        let mut kept = json!({"error": live.object()});
        self.places.carry_over(&json!({"error": recorded.object()}), &mut kept);
        match kept["error"].take() {
            Value::Object(kept) => live.with_object(kept),
            _ => live,
        }
    }
}

/// Whether a member of an object has nothing in it but what is passed over: then it may as well not be there. How many elements
/// an array has does count.
fn is_emptied(path: Option<&Path>, value: &Value, places: &[Path]) -> bool {
    fn nothing_left(path: &Path, value: &Value, places: &[Path]) -> bool {
        let Value::Object(members) = value else { return false };
        let inside = |(key, member): (&String, &Value)| {
            let mut path = path.clone();
            path.push(key.as_str());
            nothing_left(&path, member, places)
        };
        places.iter().any(|place| place.is_within(path)) && members.iter().all(inside)
    }
    let is_member = |path: &Path| matches!(path.segments().last(), Some(Segment::Key(_)));
    path.filter(|path| is_member(path))
        .is_some_and(|path| path.lookup(value).is_some_and(|value| nothing_left(path, value, places)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_nothing_but_what_is_passed_over_may_be_missing() {
        let passed_over = PassedOver::default().and("$..n").unwrap();
        let shown = |before: Value, after: Value| -> Vec<String> {
            passed_over.drifted(before, after).iter().map(|it| it.mismatch.to_string()).collect()
        };
        let emptied = json!({"result": {"a": {"n": 1, "b": {"n": 2}}}});
        assert!(shown(emptied.clone(), json!({"result": {}})).is_empty());
        assert!(shown(json!({"result": {}}), emptied.clone()).is_empty());
        assert!(shown(emptied, json!({"result": {"a": {"n": 3}}})).is_empty());
        // What was empty from the start is something, and so is an element of an array.
        let empty = json!({"result": {"a": {"n": 1, "b": {}}}});
        assert_eq!(shown(empty, json!({"result": {}})), ["$.result.a: missing, expected {\"b\":{}}"]);
        let listed = json!({"result": [{"n": 1}]});
        assert_eq!(shown(listed, json!({"result": []})), ["$.result[0]: missing, expected {}"]);
    }

    #[test]
    fn an_error_keeps_what_is_passed_over() {
        let passed_over = PassedOver::default().and("$.error.data.at").unwrap();
        let error = |code, at: u8| Reply::Error(ErrorReply::new(code, "no").with_data(&json!({"at": at, "x": at})));
        let kept = passed_over.kept(Some(&error(-1, 1)), error(-2, 2));
        assert_eq!(kept, Reply::Error(ErrorReply::new(-2, "no").with_data(&json!({"at": 1, "x": 2}))));
        assert!(PassedOver::default().and("at").is_err());
    }
}
