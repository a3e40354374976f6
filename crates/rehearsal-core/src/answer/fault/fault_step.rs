//! Converts a fault and the answer without it into the steps that carry out the fault.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use super::corrupt;
use super::rules::delay_at;
use crate::message::{ErrorReply, Message, RequestId};
use crate::protocol::code;
use crate::script::mock::{FaultKind, HttpFault};
use crate::transport_fault::{DisconnectAt, HttpRefusal, TransportFault};

/// The answer without the fault.
#[derive(Clone, Copy, Debug)]
pub struct NormalAnswer<'a> {
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
pub enum FaultStep {
    /// Waits.
    Wait(Duration),
    /// Waits until the client cancels the request.
    UntilCancelled,
    /// Never answers.
    Hang,
    /// Sends the answer without a fault.
    Answer,
    /// Carries out a transport fault.
    Transport(TransportFault),
    /// Exits the server with this status.
    Exit(i32),
}

/// The steps that carry out a fault, in place of sending the answer.
pub fn fault_steps(kind: &FaultKind, normal: NormalAnswer<'_>) -> Vec<FaultStep> {
    let raw = || normal.answer.raw().clone();
    let transport = |fault: TransportFault| vec![FaultStep::Transport(fault)];
    let raw_answer = |bytes: Bytes| transport(TransportFault::RawAnswers(vec![bytes]));
    let disconnect = |at| transport(TransportFault::Disconnect { answer: raw(), at });
    match kind {
        FaultKind::Delay(delay) => vec![FaultStep::Wait(delay_at(*delay, 0, normal.call)), FaultStep::Answer],
        FaultKind::Hang => vec![FaultStep::Hang],
        FaultKind::DisconnectBefore => disconnect(DisconnectAt::Before),
        FaultKind::DisconnectDuring => disconnect(DisconnectAt::During),
        FaultKind::DisconnectAfter => disconnect(DisconnectAt::After),
        FaultKind::HalfLine => transport(TransportFault::Truncate(raw())),
        FaultKind::MalformedJson => raw_answer(corrupt::malformed(&raw())),
        FaultKind::InvalidUtf8 => raw_answer(corrupt::invalid_utf8(&raw())),
        FaultKind::InvalidBase64 => raw_answer(corrupt::invalid_base64(normal.answer)),
        FaultKind::WrongId => raw_answer(corrupt::wrong_id(normal.answer, normal.id)),
        FaultKind::DuplicateAnswer => transport(TransportFault::RawAnswers(vec![raw(), raw()])),
        FaultKind::AnswerAfterCancel => vec![FaultStep::UntilCancelled, FaultStep::Answer],
        FaultKind::NoiseOnStdout(lines) => {
            vec![FaultStep::Transport(TransportFault::Noise(lines.clone())), FaultStep::Answer]
        }
        FaultKind::FloodOfStderr(bytes) => vec![FaultStep::Transport(TransportFault::Flood(*bytes)), FaultStep::Answer],
        FaultKind::Oversize(bytes) => raw_answer(corrupt::oversize(&raw(), *bytes)),
        FaultKind::SlowDrip { bytes, every } => {
            let pause = delay_at(*every, 0, normal.call);
            transport(TransportFault::SlowWrite { answer: raw(), piece: (*bytes).max(1), pause })
        }
        FaultKind::Exit(status) => vec![FaultStep::Exit(*status)],
        FaultKind::Http(fault) => transport(TransportFault::HttpStatus(http_refusal(fault, normal.id))),
        FaultKind::SseCut => transport(TransportFault::CutStream(raw())),
        FaultKind::ContentType(content_type) => {
            transport(TransportFault::ContentType { answer: raw(), content_type: content_type.clone() })
        }
        FaultKind::WrongStructuredContent => {
            raw_answer(corrupt::wrong_structured_content(normal.answer, normal.output_schema))
        }
    }
}

fn http_refusal(fault: &HttpFault, id: &RequestId) -> HttpRefusal {
    let HttpFault { status, retry_after, www_authenticate, headers, body } = fault;
    let mut header_lines: Vec<(String, String)> =
        headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    header_lines.extend(retry_after.map(|seconds| ("retry-after".to_owned(), seconds.to_string())));
    header_lines.extend(www_authenticate.clone().map(|value| ("www-authenticate".to_owned(), value)));
    let data: serde_json::Map<String, Value> =
        header_lines.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let error = ErrorReply::new(code::INTERNAL_ERROR, format!("HTTP status {status}"));
    let error = error.with_data(&json!({"status": status, "headers": data}));
    let fallback_error = Message::error(Some(id.clone()), &error).raw().clone();
    HttpRefusal { status: *status, headers: header_lines, body: body.clone().map(Bytes::from), fallback_error }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::mock::{Delay, MockFile};
    use crate::script::read;

    fn steps_of(fault: &str) -> Vec<FaultStep> {
        let file: MockFile = read("m.yaml", &format!("faults: [{{ fault: {fault} }}]")).unwrap();
        let answer = Message::result(7.into(), &json!({"content": []})).unwrap();
        let normal = NormalAnswer { id: &7.into(), answer: &answer, output_schema: None, call: 1 };
        fault_steps(&file.faults[0].fault, normal)
    }

    const ANSWER: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[]}}"#;

    #[test]
    fn a_fault_becomes_the_steps_that_carry_it_out() {
        let answer = Bytes::from(ANSWER);
        assert_eq!(steps_of("{ delay: 20ms }"), [FaultStep::Wait(Duration::from_millis(20)), FaultStep::Answer]);
        assert_eq!(steps_of("hang"), [FaultStep::Hang]);
        assert_eq!(steps_of("answer_after_cancel"), [FaultStep::UntilCancelled, FaultStep::Answer]);
        assert_eq!(steps_of("{ exit: 3 }"), [FaultStep::Exit(3)]);
        assert_eq!(steps_of("sse_cut"), [FaultStep::Transport(TransportFault::CutStream(answer.clone()))]);
        let twice = TransportFault::RawAnswers(vec![answer.clone(), answer.clone()]);
        assert_eq!(steps_of("duplicate_answer"), [FaultStep::Transport(twice)]);
        let noise = TransportFault::Noise(vec!["Listening".to_owned()]);
        assert_eq!(steps_of("{ noise_on_stdout: [Listening] }"), [FaultStep::Transport(noise), FaultStep::Answer]);
        let drip = TransportFault::SlowWrite { answer, piece: 2, pause: Duration::from_millis(1) };
        assert_eq!(steps_of("{ slow_drip: { bytes: 2, every: 1ms } }"), [FaultStep::Transport(drip)]);
    }

    #[test]
    fn an_http_fault_has_a_json_rpc_error_for_other_transports() {
        let steps = steps_of("{ http: { status: 429, retry_after: 3 } }");
        let [FaultStep::Transport(TransportFault::HttpStatus(refused))] = &steps[..] else { panic!("{steps:?}") };
        assert_eq!(refused.headers, [("retry-after".to_owned(), "3".to_owned())]);
        let error: Value = serde_json::from_slice(&refused.fallback_error).unwrap();
        assert_eq!((&error["id"], &error["error"]["data"]["status"]), (&json!(7), &json!(429)));
        assert_eq!(error["error"]["data"]["headers"]["retry-after"], "3");
    }

    #[test]
    fn a_delay_with_jitter_depends_only_on_the_call_number() {
        let answer = Message::result(7.into(), &json!({})).unwrap();
        let delay = FaultKind::Delay(Delay { from: Duration::ZERO, to: Duration::from_secs(1) });
        let wait =
            |call| fault_steps(&delay, NormalAnswer { id: &7.into(), answer: &answer, output_schema: None, call });
        assert_eq!(wait(1), wait(1));
        assert_ne!(wait(1), wait(2));
    }
}
