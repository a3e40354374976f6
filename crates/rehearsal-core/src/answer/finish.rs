//! The end of a play: its answer, in the shape of its version.

use std::sync::Arc;

use serde_json::{Value, json};

use super::play::{Act, Play};
use super::provenance::{Answer, Provenance};
use super::scene::Wording;
use super::shape::{self, ResultType};
use super::state::State;
use super::target::Target;
use super::template::{Draft, Scope};
use super::{Asked, Mock};
use crate::json::RawJson;
use crate::message::{ErrorReply, Reply};
use crate::protocol::code;
use crate::schema::example;
use crate::script::mock::Validate;

/// A result as it goes on the wire, and what whoever wrote the mock should know about it.
#[derive(Clone, Debug)]
pub(super) struct Finished {
    result: RawJson,
    remark: Option<Arc<str>>,
}

impl Play {
    /// A result in the shape of its version, if it is what it should be or nobody is strict about it.
    pub(super) fn finished(&self, mut result: Value, wording: Wording) -> Result<Finished, String> {
        let remark = match self.target.objection(&self.mock, &result) {
            Some((Validate::Strict, why)) => return Err(why),
            Some((Validate::Warn | Validate::Off, why)) => Some(self.about(&why).into()),
            None => None,
        };
        let (method, revision) = (self.asked.method.as_str(), self.asked.terms.revision);
        shape::answered(self.target.kind(), wording, &mut result, revision);
        shape::envelope(&mut result, ResultType::Complete, method, revision, &self.mock.info);
        Ok(Finished { result: RawJson::from_value(&result), remark })
    }

    /// The answer that a finished result is.
    pub(super) fn complete(&self, finished: Finished) -> Act {
        let mut answer = self.answer(Reply::Result(finished.result));
        answer.remarks.extend(finished.remark.map(|remark| remark.to_string()));
        Act::Reply(answer)
    }

    /// `tool add, an object with {a: 2}: why`
    fn about(&self, why: &str) -> String {
        format!("{}, {}: {why}", self.target.name(&self.mock), self.rule_name())
    }

    pub(super) fn render(&self, draft: &Draft, state: &State) -> Result<Value, String> {
        self.with_scope(state, |scope| draft.render(&self.mock.templates, scope))
    }

    pub(super) fn with_scope<T>(
        &self,
        state: &State,
        render: impl FnOnce(&Scope<'_>) -> Result<T, String>,
    ) -> Result<T, String> {
        let terms = &self.asked.terms;
        let scope = Scope {
            arguments: &self.arguments,
            state: state.values(),
            call: self.call,
            client: &terms.client,
            capabilities: &terms.capabilities,
            headers: &self.asked.headers,
            meta: self.asked.meta(),
            answers: &self.answers,
            uri: self.asked.params.get("uri").and_then(Value::as_str),
            version: terms.revision.as_str(),
        };
        render(&scope)
    }

    /// Where its answer comes from.
    pub fn provenance(&self) -> Provenance {
        Provenance::Script { target: self.target.name(&self.mock), rule: self.rule_name() }
    }

    pub(super) fn answer(&self, reply: Reply) -> Answer {
        let provenance = self.provenance();
        let fault = self.fault.clone().or_else(|| self.scene().and_then(|scene| scene.fault.clone()));
        Answer { provenance, fault, remarks: self.remarks.clone(), ..Answer::protocol(reply) }
    }

    pub(super) fn reply(&self, reply: Reply) -> Act {
        Act::Reply(self.answer(reply))
    }

    pub(super) fn error(&self, error: ErrorReply) -> Act {
        self.reply(Reply::Error(error))
    }

    /// The mock itself is wrong, and who wrote it should know.
    pub(super) fn broken(&self, why: &str) -> Act {
        let why = self.about(why);
        let mut answer = self.answer(Reply::Error(ErrorReply::new(code::INTERNAL_ERROR, why.clone())));
        answer.remarks.push(why);
        Act::Reply(answer)
    }

    /// The client could not help: a failure of the tool where it is one, an error otherwise.
    pub(super) fn failed(&self, why: &str) -> Act {
        let reply = match self.target {
            Target::Tool(_) => {
                let mut result = json!({"content": [{"type": "text", "text": why}], "isError": true});
                let (method, revision) = (self.asked.method.as_str(), self.asked.terms.revision);
                shape::envelope(&mut result, ResultType::Complete, method, revision, &self.mock.info);
                Reply::Result(RawJson::from_value(&result))
            }
            Target::Prompt(_) | Target::Resource(_) | Target::ResourceTemplate(_) | Target::Request(_) => {
                Reply::Error(ErrorReply::new(code::INTERNAL_ERROR, why))
            }
        };
        self.reply(reply)
    }
}

/// Says in `_meta` that a result was made up, and from what.
const PROVENANCE: &str = "rehearsal/provenance";

/// A result that fits what is known about it; `None` where nothing does.
pub(super) fn filled(mock: &Mock, target: Target, asked: &Asked) -> Option<RawJson> {
    let made_up = format!("made up: the mock declares no answer for {}", target.name(mock));
    let mut result = match target {
        Target::Tool(at) => match &mock.tools[at].output {
            Some(output) => json!({"structuredContent": example(output.as_value())?}),
            None => json!({"content": [{"type": "text", "text": made_up}]}),
        },
        Target::Prompt(_) => json!({"messages": [{"role": "user", "content": {"type": "text", "text": made_up}}]}),
        Target::Resource(_) | Target::ResourceTemplate(_) => {
            json!({"contents": [{"uri": asked.params.get("uri")?, "text": made_up}]})
        }
        Target::Request(_) => return None,
    };
    result["_meta"] = json!({PROVENANCE: "schema"});
    let (method, revision) = (asked.method.as_str(), asked.terms.revision);
    shape::called(&mut result, revision);
    shape::envelope(&mut result, ResultType::Complete, method, revision, &mock.info);
    Some(RawJson::from_value(&result))
}
