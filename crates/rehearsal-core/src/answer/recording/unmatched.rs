//! What is said about a request that was never recorded.

use serde_json::{Value, json};

use crate::answer::script::with_mismatches;
use crate::matcher::{Mismatch, first_mismatches};
use crate::message::{ErrorReply, Method};
use crate::protocol::code;

/// Why there is no recorded answer to a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Unmatched {
    /// Nothing like it was recorded.
    Nothing,
    /// This came closest.
    Closest {
        /// Where it is, for people.
        place: String,
        /// Every place where it differs.
        mismatches: Vec<Mismatch>,
    },
    /// It is not what requests must be here.
    Unfit {
        /// The recording that came closest, for people.
        place: Option<String>,
        /// Every place where it is not.
        mismatches: Vec<Mismatch>,
    },
    /// It was recorded, and all the answers were given already.
    UsedUp {
        /// How many there were.
        answers: usize,
    },
    /// It was recorded as a task, which this client cannot have.
    Task {
        /// Where it is, for people.
        place: String,
    },
    /// It goes on with what was recorded, and the client that was recorded did not.
    Ended {
        /// The last that is known, for people.
        place: String,
    },
    /// It was recorded without an answer.
    Unanswered {
        /// Where it is, for people.
        place: String,
    },
}

impl Unmatched {
    /// The error of the refusal.
    ///
    /// ```text
    /// no recording of tools/call rain; closest is session a, call 3: $.params.arguments.city: expected "Oslo", got "Rome"
    /// ```
    pub fn error(&self, method: &Method, params: &Value) -> ErrorReply {
        let name = params.get("name").or_else(|| params.get("uri")).and_then(Value::as_str);
        let what = name.map_or(method.to_string(), |name| format!("{method} {name}"));
        let (message, data) = match self {
            Unmatched::Nothing => (format!("no recording of {what}, nor of anything like it"), json!({})),
            Unmatched::Closest { place, mismatches } => {
                let shown = first_mismatches(mismatches).join("; ");
                let message = format!("no recording of {what}; closest is {place}: {shown}");
                (message, json!({"closest": with_mismatches(json!({"recording": place}), mismatches)}))
            }
            Unmatched::Unfit { place, mismatches } => {
                let data = match place {
                    Some(place) => json!({"closest": with_mismatches(json!({"recording": place}), mismatches)}),
                    None => with_mismatches(json!({}), mismatches),
                };
                (format!("{what} is not matched: {}", first_mismatches(mismatches).join("; ")), data)
            }
            Unmatched::UsedUp { answers } => {
                let message = format!("all {answers} recorded answers of {what} were given");
                (message, json!({"recorded": answers}))
            }
            Unmatched::Task { place } => {
                let message = format!("{what} was recorded as a task, which this client cannot have: {place}");
                (message, json!({"recording": place}))
            }
            Unmatched::Ended { place } => {
                let message = format!(
                    "the recording of {what} ends with an input request that the client never answered: {place}"
                );
                (message, json!({"recording": place}))
            }
            Unmatched::Unanswered { place } => {
                (format!("the recording of {what} has no answer: {place}"), json!({"recording": place}))
            }
        };
        ErrorReply::new(code::INTERNAL_ERROR, message).with_data(&data)
    }
}
