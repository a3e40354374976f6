//! A compiled answer: the steps before the reply, the reply, and the steps after it.
//!
//! A rule of a mock file and a recorded exchange compile to this structure, and one interpreter carries it out.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::input_request::{InputRequest, InputRequestTemplate};
use super::render::RenderedResult;
use crate::answer::answer::{Answer, WrittenFor};
use crate::answer::script::{CompiledConditions, TemplateValue};
use crate::answer::subscription::ChangeNotice;
use crate::matcher::Matcher;
use crate::message::Method;
use crate::protocol::{LogLevel, PerRevision};
use crate::script::mock::{Delay, FaultKind};

/// What a responder carries out.
#[derive(Debug, Default)]
pub(in crate::answer) struct CompiledAnswer {
    /// The delay before the first step.
    pub(in crate::answer) delay: Option<Delay>,
    /// The options of the task that the rest becomes.
    pub(in crate::answer) task: Option<TaskOptions>,
    /// The status message of the task.
    pub(in crate::answer) status_message: Option<TemplateValue>,
    /// The steps before the reply.
    pub(in crate::answer) steps: Vec<CompiledStep>,
    /// Whether an `input_required` result has a request state.
    pub(in crate::answer) request_state: bool,
    /// Further answers: the first whose conditions hold continues.
    pub(in crate::answer) choose: Vec<ConditionalAnswer>,
    /// The reply; `None` only if one of `choose` must fit.
    pub(in crate::answer) body: Option<AnswerBody>,
    /// The steps after the reply.
    pub(in crate::answer) after: Vec<CompiledStep>,
    /// The fault that the reply is sent with.
    pub(in crate::answer) fault: Option<FaultKind>,
}

/// An answer that depends on the client's input.
#[derive(Debug)]
pub(in crate::answer) struct ConditionalAnswer {
    /// Its name in reports.
    pub(in crate::answer) name: Arc<str>,
    /// The condition on the input.
    pub(in crate::answer) when: Option<Matcher>,
    /// The other conditions.
    pub(in crate::answer) given: CompiledConditions,
    /// The answer.
    pub(in crate::answer) answer: CompiledAnswer,
}

/// The options of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskOptions {
    /// How long the task is working before its steps begin.
    pub after: Option<Delay>,
    /// How long the task is kept, in milliseconds.
    pub ttl_ms: Option<u64>,
    /// How often the client should poll, in milliseconds.
    pub poll_interval_ms: Option<u64>,
    /// The status message.
    pub status_message: Option<String>,
    /// Whether a client without support for tasks is refused.
    pub required: bool,
}

/// The reply of an answer.
#[derive(Debug)]
pub(in crate::answer) enum AnswerBody {
    /// A result, and its bytes for each version if it is always the same.
    Result { value: TemplateValue, form: WrittenFor, rendered: Box<PerRevision<Result<RenderedResult, String>>> },
    /// An error.
    Error { code: i64, message: TemplateValue, data: Option<TemplateValue> },
    /// A recorded answer.
    Ready(Box<Answer>),
}

impl AnswerBody {
    pub(in crate::answer) fn result(value: TemplateValue, form: WrittenFor) -> AnswerBody {
        AnswerBody::Result { value, form, rendered: Default::default() }
    }
}

/// One step before or after the reply.
#[derive(Debug)]
pub(in crate::answer) enum CompiledStep {
    Wait(Delay),
    Progress {
        progress: f64,
        total: Option<f64>,
        message: Option<TemplateValue>,
    },
    Log {
        level: LogLevel,
        logger: Option<String>,
        data: TemplateValue,
    },
    Notify {
        method: Method,
        params: Option<TemplateValue>,
    },
    Change(CompiledChange),
    /// Sends input requests, and continues with the client's input.
    Ask(Vec<InputRequestTemplate>, OnDecline),
    /// A recorded input round: sends the input requests, and continues with any input.
    Round(RecordedRound),
    /// Sends recorded server requests without waiting.
    Send(Vec<InputRequest>),
    /// Waits for the responses to server requests that were sent.
    Await(Vec<String>),
    /// Cancels a server request, with further params of the notification.
    CancelInput(String, Map<String, Value>),
    /// An input round without input requests.
    EmptyRound,
    Set(Vec<(String, TemplateValue)>),
    Append(Vec<(String, TemplateValue)>),
    Delete(Vec<String>),
    CloseStream {
        retry: Option<Delay>,
    },
    /// A recorded event that this client does not get.
    Skipped,
}

/// A recorded `input_required` result.
#[derive(Debug)]
pub(in crate::answer) struct RecordedRound {
    /// The input requests that this client supports.
    pub(in crate::answer) requests: Vec<InputRequest>,
    /// The recorded result, if it was recorded in the client's version.
    pub(in crate::answer) result: Option<Value>,
}

/// What happens if the client declines an input request or does not support it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::answer) enum OnDecline {
    /// The request fails.
    Fails,
    /// Its input is `null`.
    IsNull,
}

/// A change that a step reports.
#[derive(Debug)]
pub(in crate::answer) enum CompiledChange {
    Fixed(ChangeNotice),
    Resource(TemplateValue),
}

impl CompiledAnswer {
    /// An answer that is only a result.
    pub(in crate::answer) fn only(value: TemplateValue) -> CompiledAnswer {
        let body = Some(AnswerBody::result(value, WrittenFor::Newest));
        CompiledAnswer { request_state: true, body, ..CompiledAnswer::default() }
    }

    /// Whether the answer or a nested one in `choose` fulfils a condition.
    pub(in crate::answer) fn any(&self, fulfils: &dyn Fn(&CompiledAnswer) -> bool) -> bool {
        fulfils(self) || self.choose.iter().any(|choice| choice.answer.any(fulfils))
    }

    /// Whether the reply needs no step.
    pub(in crate::answer) fn is_immediate(&self) -> bool {
        let CompiledAnswer { delay, task, steps, choose, after, .. } = self;
        delay.is_none() && task.is_none() && steps.is_empty() && choose.is_empty() && after.is_empty()
    }
}
