//! What does not count, and so stays as it was recorded.

use rehearsal_core::json::{Places, RawJson};
use rehearsal_core::matcher::{Drifted, drifted};
use rehearsal_core::message::{ErrorReply, Reply};
use serde_json::{Value, json};

use super::drift::{is_emptied, is_within};

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
        let whole = if self.places.is_empty() { (Value::Null, Value::Null) } else { (before.clone(), after.clone()) };
        self.places.take_out_members(&mut before);
        self.places.take_out_members(&mut after);
        let mut found = drifted(&before, &after);
        found.retain(|it| !is_within(it, &was, &is) && !is_emptied(it, (&whole.0, &before), (&whole.1, &after)));
        found
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
