//! The origin of a responder's answer: a rule of a mock file, or a recorded exchange.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};

use super::steps::CompiledAnswer;
use crate::answer::answer::Provenance;
use crate::answer::request_context::IncomingRequest;
use crate::answer::script::{AnswerTarget, Mock, MockState, RuleInput, TemplateScope, Templates};
use crate::script::mock::Validate;

/// The origin of a responder's answer.
#[derive(Debug)]
pub(in crate::answer) enum Basis {
    Script(ScriptBasis),
    Recording(RecordingBasis),
}

/// A rule of a mock file, and the data for its templates.
#[derive(Debug)]
pub(in crate::answer) struct ScriptBasis {
    pub(in crate::answer) mock: Arc<Mock>,
    pub(in crate::answer) state: Arc<Mutex<MockState>>,
    pub(in crate::answer) target: Arc<AnswerTarget>,
    /// The position of the answer among those of the target.
    pub(in crate::answer) rule: usize,
    pub(in crate::answer) arguments: Value,
    /// How often the target was requested, from 1.
    pub(in crate::answer) call: u64,
}

/// A recorded exchange.
#[derive(Debug)]
pub(in crate::answer) struct RecordingBasis {
    /// The place of the recording, for users.
    pub(in crate::answer) place: Arc<str>,
    /// Whether it was returned before.
    pub(in crate::answer) again: bool,
    /// The number of the exchange.
    pub(in crate::answer) exchange: u32,
    /// The key of the request, to which request state is bound.
    pub(in crate::answer) key: String,
    /// The server of the recorded session.
    pub(in crate::answer) server: Arc<Value>,
}

impl ScriptBasis {
    pub(in crate::answer) fn state(&self) -> MutexGuard<'_, MockState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn rule_name(&self, root: &CompiledAnswer, path: &[usize]) -> Arc<str> {
        let Some(rule) = self.target.rules.get(self.rule) else { return "a removed rule".into() };
        if path.is_empty() {
            return Arc::clone(&rule.name);
        }
        let (mut name, mut answer) = (rule.name.to_string(), root);
        for index in path {
            let Some(choice) = answer.choose.get(*index) else { break };
            name.push_str(&format!(", then {}", choice.name));
            answer = &choice.answer;
        }
        name.into()
    }
}

impl Basis {
    /// The provenance of the answer.
    pub(super) fn provenance(&self, root: &CompiledAnswer, path: &[usize]) -> Provenance {
        match self {
            Basis::Script(script) => {
                Provenance::Script { target: Arc::clone(&script.target.label), rule: script.rule_name(root, path) }
            }
            Basis::Recording(recording) => {
                Provenance::Recording { place: Arc::clone(&recording.place), again: recording.again }
            }
        }
    }

    /// The name of the target or the place of the recording, for users.
    pub(super) fn label(&self) -> Arc<str> {
        match self {
            Basis::Script(script) => Arc::clone(&script.target.label),
            Basis::Recording(recording) => Arc::clone(&recording.place),
        }
    }

    pub(super) fn has_tasks(&self) -> bool {
        match self {
            Basis::Script(script) => script.mock.has_tasks,
            // A recorded task is in the recorded result.
            Basis::Recording(_) => false,
        }
    }

    /// Whether input is accepted without a check.
    pub(super) fn takes_any_input(&self) -> bool {
        match self {
            Basis::Script(script) => script.target.validate == Validate::Off,
            Basis::Recording(_) => true,
        }
    }

    pub(super) fn call(&self) -> u64 {
        match self {
            Basis::Script(script) => script.call,
            Basis::Recording(_) => 1,
        }
    }

    /// The owner of an input round's state: the rule or the exchange in which it continues.
    pub(super) fn round_owner(&self) -> Value {
        match self {
            Basis::Script(script) => json!({"mock": script.mock.fingerprint, "rule": script.rule}),
            Basis::Recording(recording) => json!({"exchange": recording.exchange}),
        }
    }

    /// The request to which the state of an input round is bound.
    pub(super) fn round_key(&self, request: &IncomingRequest) -> String {
        match self {
            Basis::Script(script) => round_key(request, &script.arguments),
            Basis::Recording(recording) => recording.key.clone(),
        }
    }

    /// Renders templates with their data.
    pub(super) fn with_scope<T>(
        &self,
        request: &IncomingRequest,
        inputs: &Map<String, Value>,
        render: impl FnOnce(&Templates, &TemplateScope<'_>) -> Result<T, String>,
    ) -> Result<T, String> {
        let Basis::Script(script) = self else { return Err("a recording has no templates".to_owned()) };
        let context = &request.context;
        let values = script.state().snapshot();
        let scope = TemplateScope {
            arguments: &script.arguments,
            state: &values,
            call: script.call,
            client: &context.client,
            capabilities: &context.capabilities,
            headers: &request.headers,
            meta: request.meta(),
            answers: inputs,
            uri: request.params.get("uri").and_then(Value::as_str),
            version: context.revision.as_str(),
        };
        render(&script.mock.templates, &scope)
    }

    /// Evaluates conditions with their data.
    pub(super) fn with_rule_input<T>(
        &self,
        request: &IncomingRequest,
        evaluate: impl FnOnce(&RuleInput<'_>) -> T,
    ) -> T {
        let values = match self {
            Basis::Script(script) => script.state().snapshot(),
            Basis::Recording(_) => Arc::default(),
        };
        evaluate(&RuleInput { request, call: self.call(), state: &values })
    }
}

/// The key of a request: method, subject and arguments, independent of the order of keys.
pub(in crate::answer) fn round_key(request: &IncomingRequest, arguments: &Value) -> String {
    format!("{} {} {}", request.method, request.subject().unwrap_or_default(), sorted(arguments))
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut keys: Vec<_> = fields.iter().collect();
            keys.sort_by_key(|(key, _)| *key);
            Value::Object(keys.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect())
        }
        Value::Array(elements) => elements.iter().map(sorted).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}
