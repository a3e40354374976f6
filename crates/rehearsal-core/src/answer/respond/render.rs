//! The reply of a responder: rendered, checked and in the client's version.

use std::sync::Arc;

use serde_json::Value;

use super::basis::Basis;
use super::responder::StepResponder;
use super::steps::{AnswerBody, CompiledAnswer};
use crate::answer::adapt::{add_envelope, write_result};
use crate::answer::answer::{Answer, ResultKind, WrittenFor};
use crate::answer::script::TemplateValue;
use crate::json::RawJson;
use crate::message::{ErrorReply, Reply};
use crate::protocol::code;
use crate::script::mock::Validate;

/// A result in the client's version, and a note for the author of the mock.
#[derive(Clone, Debug)]
pub(in crate::answer) struct RenderedResult {
    result: RawJson,
    written_for: WrittenFor,
    remark: Option<Arc<str>>,
}

impl StepResponder {
    /// The reply of an answer.
    pub(super) fn reply_of(&self, answer: &CompiledAnswer) -> Answer {
        match &answer.body {
            None => self.nothing_chosen(answer),
            Some(AnswerBody::Ready(ready)) => {
                let mut ready = Answer::clone(ready);
                ready.remarks.splice(0..0, self.remarks.iter().cloned());
                ready
            }
            Some(AnswerBody::Error { code, message, data }) => {
                let message = self.render(message);
                let data = data.as_ref().map(|data| self.render(data)).transpose();
                match (message, data) {
                    (Ok(message), Ok(data)) => {
                        let error = ErrorReply::new(*code, message.as_str().unwrap_or_default());
                        let error = data.iter().fold(error, |error, data| error.with_data(data));
                        self.answer(Reply::Error(error))
                    }
                    (Err(why), _) | (_, Err(why)) => self.broken_answer(&why),
                }
            }
            Some(AnswerBody::Result { value: TemplateValue::Fixed(value), form, rendered }) => {
                let revision = self.request.context.revision;
                match rendered.get_or_init(revision, || self.rendered(value.clone(), *form)) {
                    Ok(rendered) => self.complete(rendered.clone()),
                    Err(why) => self.broken_answer(why),
                }
            }
            Some(AnswerBody::Result { value, form, .. }) => {
                match self.render(value).and_then(|result| self.rendered(result, *form)) {
                    Ok(rendered) => self.complete(rendered),
                    Err(why) => self.broken_answer(&why),
                }
            }
        }
    }

    /// A result in the client's version, unless it breaks the tool's output schema and the mock is strict.
    fn rendered(&self, result: Value, form: WrittenFor) -> Result<RenderedResult, String> {
        let Basis::Script(script) = &self.basis else { return Err("a recording renders no results".to_owned()) };
        let remark = match script.target.output_mismatch(&result) {
            Some(why) if script.target.validate == Validate::Strict => return Err(why),
            why => why.map(|why| self.with_provenance(&why).into()),
        };
        let (method, revision) = (&self.request.method, self.request.context.revision);
        let mut result = result;
        write_result(&mut result, method, form, revision);
        // The chain adds the name of a server that the file does not name.
        let written_for = if script.mock.is_named { WrittenFor::Client } else { WrittenFor::Verbatim };
        if script.mock.is_named {
            add_envelope(&mut result, ResultKind::Complete, method.as_str(), revision, &script.mock.info);
        }
        Ok(RenderedResult { result: RawJson::from_value(&result), written_for, remark })
    }

    fn complete(&self, rendered: RenderedResult) -> Answer {
        let mut answer = Answer { written_for: rendered.written_for, ..self.answer(Reply::Result(rendered.result)) };
        answer.remarks.extend(rendered.remark.map(|remark| remark.to_string()));
        answer
    }

    /// The value of a template for this request.
    pub(super) fn render(&self, value: &TemplateValue) -> Result<Value, String> {
        match value {
            TemplateValue::Fixed(value) => Ok(value.clone()),
            value => {
                self.basis.with_scope(&self.request, &self.inputs, |templates, scope| value.render(templates, scope))
            }
        }
    }

    /// `tool add, an object with {a: 2}: why`
    fn with_provenance(&self, why: &str) -> String {
        use crate::answer::answer::Provenance;
        use crate::answer::responder::Responder;
        match self.provenance() {
            Provenance::Script { target, rule } => format!("{target}, {rule}: {why}"),
            other => format!("{other}: {why}"),
        }
    }

    /// An answer of this responder with its fault and its remarks.
    pub(super) fn answer(&self, reply: Reply) -> Answer {
        use crate::answer::responder::Responder;
        let fault = self.current().and_then(|answer| answer.fault.clone());
        let server = match &self.basis {
            Basis::Script(_) => None,
            Basis::Recording(recording) => Some(Arc::clone(&recording.server)),
        };
        Answer { fault, server, remarks: self.remarks.clone(), ..Answer::new(reply, self.provenance()) }
    }

    /// The internal error for a mistake in the mock file, with a remark for its author.
    pub(super) fn broken_answer(&self, why: &str) -> Answer {
        let why = self.with_provenance(why);
        let mut answer = self.answer(Reply::Error(ErrorReply::new(code::INTERNAL_ERROR, why.clone())));
        answer.remarks.push(why);
        answer
    }
}
