//! The answer source of the harness's queues.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Harness, ResponseBody, TOOL};
use crate::answer::answer::{Answer, Provenance, WrittenFor};
use crate::answer::request_context::IncomingRequest;
use crate::answer::source::{AnswerContext, AnswerSource, MatchDepth, Offer};
use crate::answer::surface::{HttpNeeds, Surface};
use crate::json::RawJson;
use crate::message::{Method, Reply};

impl AnswerSource for Arc<Harness> {
    /// Answers a call of the tool with the next response of its test case. If the call names no test case, the tool
    /// fails.
    fn begin(&self, request: &Arc<IncomingRequest>, context: &mut AnswerContext<'_>) -> Offer {
        if request.method != Method::TOOLS_CALL || request.subject() != Some(TOOL) {
            return Offer::Pass(MatchDepth::Nothing);
        }
        let arguments = request.params.get("arguments").unwrap_or(&Value::Null);
        let taken = match self.call(arguments, context.environment.now_ms) {
            Ok(taken) => taken,
            Err(error) => {
                let text = error.to_string();
                let result = json!({"content": [{"type": "text", "text": text}], "isError": true});
                let answer = Answer::new(Reply::Result(RawJson::from_value(&result)), Provenance::Refusal);
                return Offer::Answer(Answer { written_for: WrittenFor::Newest, remarks: vec![text], ..answer });
            }
        };
        let reply = match &taken.response.body {
            ResponseBody::Result(result) => Reply::Result(RawJson::from_value(&Value::Object(result.clone()))),
            ResponseBody::Error(error) => Reply::Error(error.clone()),
        };
        let provenance = Provenance::Harness { test_case: Arc::clone(&taken.test_case), response: taken.number };
        Offer::Answer(Answer {
            written_for: WrittenFor::Newest,
            delay: taken.response.delay(taken.number as u64),
            fault: taken.response.fault.clone(),
            ..Answer::new(reply, provenance)
        })
    }

    fn surface(&self) -> Surface {
        // A queued response may be an HTTP status.
        Surface { http: HttpNeeds { refuses_with_status: true, ..HttpNeeds::default() }, ..Surface::default() }
    }

    fn reset(&self) {
        self.clear();
    }
}
