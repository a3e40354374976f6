//! Redacts secrets in answers and server requests.
//!
//! The recording is redacted, so everything that is compared with it or written into it is redacted in the same way.
//! What a rule recognizes as a secret is redacted on both sides. A live value in the place of a recorded pseudonym is a
//! secret too, whichever rule recognized it during the recording.

use rehearsal_core::json::RawJson;
use rehearsal_core::message::{Message, Method, Reply, RequestId};
use rehearsal_core::redact::{PseudonymMap, Redaction};
use rehearsal_core::trace::{Part, RecordedCall};
use serde_json::Value;

/// Redacts the values that are compared, shown and stored.
#[derive(Clone, Debug, Default)]
pub(super) struct Secrets {
    redaction: Redaction,
}

impl Secrets {
    /// Redacts with these rules.
    pub(super) fn new(redaction: Redaction) -> Secrets {
        Secrets { redaction }
    }

    /// Redacts text of a live server before it is shown. A line may be a message, which has its own rules, and a secret
    /// may have several lines.
    pub(super) fn text(&self, text: &str) -> String {
        let line = |line: &str| {
            let message = line.trim_start();
            let (indent, _) = line.split_at(line.len() - message.len());
            format!("{indent}{}", self.redaction.text(message))
        };
        let lines: Vec<String> = text.split('\n').map(line).collect();
        self.redaction.text(&lines.join("\n")).into_owned()
    }

    /// A call without its secrets.
    pub(super) fn redact_call(&self, call: &RecordedCall) -> RecordedCall {
        match self.redaction.part(Part::Call(Box::new(call.clone()))).0 {
            Part::Call(call) => *call,
            Part::Start(_) | Part::Entry(_) | Part::Finish { .. } => call.clone(),
        }
    }

    /// The params of a request without their secrets.
    pub(super) fn redact_params(&self, method: &Method, params: &Value) -> Value {
        let message = Message::request(RequestId::Number(0), method.clone(), Some(params)).ok();
        let clean = message.and_then(|message| self.redaction.message(&message)?.params()?.value().ok());
        clean.unwrap_or_else(|| params.clone())
    }

    /// Redacts the places of a live value that are redacted in the recorded one, and removes the pseudonyms from both.
    pub(super) fn redact_both(&self, recorded: &mut Value, live: &mut Value) {
        let pseudonyms = self.pseudonyms(recorded);
        if !pseudonyms.is_empty() {
            PseudonymMap::redact_same_places(recorded, live);
            pseudonyms.redact(recorded);
            pseudonyms.redact(live);
        }
    }

    /// Redacts a live answer that replaces a recorded one, at the places that are redacted in the recorded one.
    pub(super) fn redact_live(&self, recorded: Option<&Reply>, live: Reply) -> Reply {
        match (recorded, live) {
            (Some(Reply::Result(recorded)), Reply::Result(live)) => Reply::Result(self.redact_result(recorded, live)),
            (Some(Reply::Error(recorded)), Reply::Error(live)) => {
                let (mut recorded, mut object) = (Value::Object(recorded.object()), Value::Object(live.object()));
                self.redact_both(&mut recorded, &mut object);
                match object {
                    Value::Object(object) => Reply::Error(live.with_object(object)),
                    _ => Reply::Error(live),
                }
            }
            (_, live) => live,
        }
    }

    fn redact_result(&self, recorded: &RawJson, live: RawJson) -> RawJson {
        match (recorded.value(), live.value()) {
            (Ok(mut recorded), Ok(mut value)) if !self.pseudonyms(&recorded).is_empty() => {
                self.redact_both(&mut recorded, &mut value);
                RawJson::from_value(&value)
            }
            (_, _) => live,
        }
    }

    /// The pseudonyms in a recorded value. Without redaction there are none, because the recording was not redacted
    /// either.
    fn pseudonyms(&self, recorded: &Value) -> PseudonymMap {
        if self.redaction.is_none() { PseudonymMap::default() } else { PseudonymMap::from_recorded(recorded) }
    }
}
