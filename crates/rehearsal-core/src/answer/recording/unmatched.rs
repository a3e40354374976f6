//! The refusal of a request that has no recorded answer.

use serde_json::{Value, json};

use crate::answer::script::with_mismatches;
use crate::matcher::{Mismatch, first_mismatches};
use crate::message::{ErrorReply, Method};
use crate::protocol::code;

/// Why there is no recorded answer to a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Unmatched {
    /// No similar request was recorded.
    NeverRecorded,
    /// A similar request was recorded.
    Closest {
        /// The place of the closest recorded request, for users.
        place: String,
        /// Every difference.
        mismatches: Vec<Mismatch>,
    },
    /// The request does not match the condition for all requests.
    ConstraintFailed {
        /// The place of the closest recorded request, for users.
        place: Option<String>,
        /// Every mismatch.
        mismatches: Vec<Mismatch>,
    },
    /// The request was recorded, and all of its responses were returned already.
    Exhausted {
        /// How many responses there were.
        answers: usize,
    },
    /// The request was recorded as a task, which this client does not support.
    Task {
        /// Its place, for users.
        place: String,
    },
    /// The request continues a recorded exchange that the recorded client did not continue.
    RecordingEnded {
        /// The place of the last recorded request, for users.
        place: String,
    },
    /// The request was recorded without a response.
    Unanswered {
        /// Its place, for users.
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
            Unmatched::NeverRecorded => (format!("no recording of {what}, nor of anything like it"), json!({})),
            Unmatched::Closest { place, mismatches } => {
                let shown = first_mismatches(mismatches).join("; ");
                let message = format!("no recording of {what}; closest is {place}: {shown}");
                (message, json!({"closest": with_mismatches(json!({"recording": place}), mismatches)}))
            }
            Unmatched::ConstraintFailed { place, mismatches } => {
                let data = match place {
                    Some(place) => json!({"closest": with_mismatches(json!({"recording": place}), mismatches)}),
                    None => with_mismatches(json!({}), mismatches),
                };
                (format!("{what} is not matched: {}", first_mismatches(mismatches).join("; ")), data)
            }
            Unmatched::Exhausted { answers } => {
                let message = format!("all {answers} recorded answers of {what} were used");
                (message, json!({"recorded": answers}))
            }
            Unmatched::Task { place } => {
                let message = format!("{what} was recorded as a task, which this client cannot have: {place}");
                (message, json!({"recording": place}))
            }
            Unmatched::RecordingEnded { place } => {
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
