//! Converts a fault and the answer without it into the steps that carry out the fault.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use super::misdeed::{Misdeed, Moment, Refused};
use super::rules::between;
use super::spoil;
use crate::message::{ErrorReply, Message, RequestId};
use crate::protocol::code;
use crate::script::mock::{FaultKind, HttpFault};

/// The answer as it is without the fault.
#[derive(Clone, Copy, Debug)]
pub struct Honest<'a> {
    /// The id of the request.
    pub id: &'a RequestId,
    /// The response without the fault.
    pub answer: &'a Message,
    /// The schema of the structured content, if the tool has one.
    pub output_schema: Option<&'a Value>,
    /// The number of the call, which determines a delay with jitter.
    pub call: u64,
}

/// One step of a fault; the last step ends the request.
#[derive(Clone, Debug, PartialEq)]
pub enum Misstep {
    /// Waits.
    Wait(Duration),
    /// Waits until the client cancels the request.
    UntilCancelled,
    /// Never answers.
    Never,
    /// Sends the answer without a fault.
    Answer,
    /// Carries out a transport fault.
    Misbehave(Misdeed),
    /// Exits the server with this status.
    Exit(i32),
}

/// The steps of a fault, in place of the answer.
pub fn missteps(kind: &FaultKind, honest: Honest<'_>) -> Vec<Misstep> {
    let raw = || honest.answer.raw().clone();
    let answer = |bytes: Bytes| vec![Misstep::Misbehave(Misdeed::Answer(vec![bytes]))];
    let misbehave = |misdeed: Misdeed| vec![Misstep::Misbehave(misdeed)];
    let disconnect = |moment| vec![Misstep::Misbehave(Misdeed::Disconnect { answer: raw(), moment })];
    match kind {
        FaultKind::Delay(delay) => vec![Misstep::Wait(between(*delay, 0, honest.call)), Misstep::Answer],
        FaultKind::Hang => vec![Misstep::Never],
        FaultKind::DisconnectBefore => disconnect(Moment::Before),
        FaultKind::DisconnectDuring => disconnect(Moment::During),
        FaultKind::DisconnectAfter => disconnect(Moment::After),
        FaultKind::HalfLine => misbehave(Misdeed::Half(raw())),
        FaultKind::MalformedJson => answer(spoil::malformed(&raw())),
        FaultKind::InvalidUtf8 => answer(spoil::invalid_utf8(&raw())),
        FaultKind::InvalidBase64 => answer(spoil::invalid_base64(honest.answer)),
        FaultKind::WrongId => answer(spoil::wrong_id(honest.answer, honest.id)),
        FaultKind::DuplicateAnswer => misbehave(Misdeed::Answer(vec![raw(), raw()])),
        FaultKind::AnswerAfterCancel => vec![Misstep::UntilCancelled, Misstep::Answer],
        FaultKind::NoiseOnStdout(lines) => {
            vec![Misstep::Misbehave(Misdeed::Noise(lines.clone())), Misstep::Answer]
        }
        FaultKind::FloodOfStderr(bytes) => vec![Misstep::Misbehave(Misdeed::Flood(*bytes)), Misstep::Answer],
        FaultKind::Oversize(bytes) => answer(spoil::oversize(&raw(), *bytes)),
        FaultKind::SlowDrip { bytes, every } => {
            let pause = between(*every, 0, honest.call);
            misbehave(Misdeed::Drip { answer: raw(), piece: (*bytes).max(1), pause })
        }
        FaultKind::Exit(status) => vec![Misstep::Exit(*status)],
        FaultKind::Http(fault) => misbehave(Misdeed::Refuse(refused(fault, honest.id))),
        FaultKind::SseCut => misbehave(Misdeed::Cut(raw())),
        FaultKind::ContentType(content_type) => {
            misbehave(Misdeed::ContentType { answer: raw(), content_type: content_type.clone() })
        }
        FaultKind::WrongStructuredContent => {
            answer(spoil::wrong_structured_content(honest.answer, honest.output_schema))
        }
    }
}

fn refused(fault: &HttpFault, id: &RequestId) -> Refused {
    let HttpFault { status, retry_after, www_authenticate, headers, body } = fault;
    let mut named: Vec<(String, String)> = headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    named.extend(retry_after.map(|seconds| ("retry-after".to_owned(), seconds.to_string())));
    named.extend(www_authenticate.clone().map(|value| ("www-authenticate".to_owned(), value)));
    let data: serde_json::Map<String, Value> = named.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let error = ErrorReply::new(code::INTERNAL_ERROR, format!("HTTP status {status}"));
    let error = error.with_data(&json!({"status": status, "headers": data}));
    let instead = Message::error(Some(id.clone()), &error).raw().clone();
    Refused { status: *status, headers: named, body: body.clone().map(Bytes::from), instead }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::mock::{Delay, MockFile};
    use crate::script::read;

    fn done(fault: &str) -> Vec<Misstep> {
        let file: MockFile = read("m.yaml", &format!("faults: [{{ fault: {fault} }}]")).unwrap();
        let answer = Message::result(7.into(), &json!({"content": []})).unwrap();
        let honest = Honest { id: &7.into(), answer: &answer, output_schema: None, call: 1 };
        missteps(&file.faults[0].fault, honest)
    }

    const ANSWER: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[]}}"#;

    #[test]
    fn a_fault_says_what_to_do_step_by_step() {
        let answer = Bytes::from(ANSWER);
        assert_eq!(done("{ delay: 20ms }"), [Misstep::Wait(Duration::from_millis(20)), Misstep::Answer]);
        assert_eq!(done("hang"), [Misstep::Never]);
        assert_eq!(done("answer_after_cancel"), [Misstep::UntilCancelled, Misstep::Answer]);
        assert_eq!(done("{ exit: 3 }"), [Misstep::Exit(3)]);
        assert_eq!(done("sse_cut"), [Misstep::Misbehave(Misdeed::Cut(answer.clone()))]);
        let twice = Misdeed::Answer(vec![answer.clone(), answer.clone()]);
        assert_eq!(done("duplicate_answer"), [Misstep::Misbehave(twice)]);
        let noise = Misdeed::Noise(vec!["Listening".to_owned()]);
        assert_eq!(done("{ noise_on_stdout: [Listening] }"), [Misstep::Misbehave(noise), Misstep::Answer]);
        let drip = Misdeed::Drip { answer, piece: 2, pause: Duration::from_millis(1) };
        assert_eq!(done("{ slow_drip: { bytes: 2, every: 1ms } }"), [Misstep::Misbehave(drip)]);
    }

    #[test]
    fn a_status_is_told_as_an_error_where_there_are_none() {
        let steps = done("{ http: { status: 429, retry_after: 3 } }");
        let [Misstep::Misbehave(Misdeed::Refuse(refused))] = &steps[..] else { panic!("{steps:?}") };
        assert_eq!(refused.headers, [("retry-after".to_owned(), "3".to_owned())]);
        let said: Value = serde_json::from_slice(&refused.instead).unwrap();
        assert_eq!((&said["id"], &said["error"]["data"]["status"]), (&json!(7), &json!(429)));
        assert_eq!(said["error"]["data"]["headers"]["retry-after"], "3");
    }

    #[test]
    fn a_delay_with_jitter_depends_on_the_call_alone() {
        let answer = Message::result(7.into(), &json!({})).unwrap();
        let delay = FaultKind::Delay(Delay { from: Duration::ZERO, to: Duration::from_secs(1) });
        let wait = |call| missteps(&delay, Honest { id: &7.into(), answer: &answer, output_schema: None, call });
        assert_eq!(wait(1), wait(1));
        assert_ne!(wait(1), wait(2));
    }
}
