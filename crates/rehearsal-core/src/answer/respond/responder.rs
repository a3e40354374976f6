//! The interpreter of compiled answers, of mock files and of recordings.
//!
//! ```text
//! start ──► delay ──► task? ──► steps ──► choose ──► start …
//!                                   └──► reply ──► steps after the reply ──► end
//! ```

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::basis::Basis;
use super::input_request::{InputRequest, InputRequestTemplate, MissingCapability, supports_server_requests};
use super::progress::CombinedProgress;
use super::state_signer::StatelessRounds;
use super::steps::{CompiledAnswer, CompiledChange, CompiledStep, OnDecline, RecordedRound, TaskOptions};
use crate::answer::answer::{Answer, Provenance, ResultKind, WrittenFor};
use crate::answer::protocol::invalid;
use crate::answer::request_context::IncomingRequest;
use crate::answer::responder::{Action, Responder};
use crate::answer::script::{RuleInput, TemplateValue, no_rule_fits};
use crate::answer::source::AnswerContext;
use crate::answer::subscription::ChangeNotice;
use crate::answer::task;
use crate::json::RawJson;
use crate::message::{ErrorReply, Method, Reply};
use crate::protocol::{Era, Revision, code, meta};

/// One request that is being answered.
#[derive(Debug)]
pub(in crate::answer) struct StepResponder {
    pub(super) request: Arc<IncomingRequest>,
    pub(super) basis: Basis,
    /// The whole answer.
    root: Arc<CompiledAnswer>,
    /// The indexes of the chosen answers in nested `choose` lists.
    pub(super) path: Vec<usize>,
    position: Position,
    /// The input requests that were sent and whose responses the current step needs.
    awaited: Vec<String>,
    /// The input that steps requested.
    pub(super) inputs: Map<String, Value>,
    /// Input that the client has sent and that no step has used yet.
    offered: Map<String, Value>,
    /// Why the answer cannot continue.
    failure: Option<String>,
    in_task: bool,
    pub(super) remarks: Vec<String>,
    /// How many input rounds there were.
    round: usize,
    /// The progress of all rounds, if they are one call.
    progress: CombinedProgress,
}

/// The position of a responder in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    Start,
    Task,
    Work,
    Step(usize),
    /// At a step whose input requests were sent, and may have responses by now.
    Requested(usize),
    /// At a step after the reply.
    After(usize),
    End,
}

impl StepResponder {
    /// A responder at the start of an answer.
    pub(in crate::answer) fn new(
        request: Arc<IncomingRequest>,
        root: Arc<CompiledAnswer>,
        basis: Basis,
        remarks: Vec<String>,
    ) -> StepResponder {
        let offered = request.params.get("inputResponses").and_then(Value::as_object).cloned().unwrap_or_default();
        let (path, awaited, inputs, failure, round, progress) = Default::default();
        let position = Position::Start;
        StepResponder {
            request,
            basis,
            root,
            path,
            position,
            awaited,
            inputs,
            offered,
            failure,
            in_task: false,
            remarks,
            round,
            progress,
        }
    }

    /// Continues the responder at an input round.
    pub(in crate::answer) fn resumed(mut self, round: &Value) -> StepResponder {
        let number = |value: &Value| value.as_u64().and_then(|number| usize::try_from(number).ok()).unwrap_or_default();
        self.path = round["path"].as_array().into_iter().flatten().map(number).collect();
        self.position = match (number(&round["step"]), &round["asked"]) {
            (step, Value::Bool(true)) => Position::Requested(step),
            (step, _) => Position::Step(step),
        };
        self.inputs = round["inputs"].as_object().cloned().unwrap_or_default();
        self
    }

    /// Continues the responder after its reply.
    pub(in crate::answer) fn after_reply(mut self) -> StepResponder {
        self.position = Position::After(0);
        self
    }

    /// The answer, if the reply needs no step.
    pub(in crate::answer) fn immediate(&mut self) -> Option<Answer> {
        let root = Arc::clone(&self.root);
        let is_immediate =
            self.position == Position::Start && root.is_immediate() && matches!(self.task(&root), Ok(None));
        is_immediate.then(|| self.reply_of(&root))
    }

    pub(super) fn current(&self) -> Option<&CompiledAnswer> {
        at_path(&self.root, &self.path)
    }

    fn era(&self) -> Era {
        self.request.context.era()
    }

    /// The options of the task that the rest becomes, if this client supports tasks.
    fn task(&self, answer: &CompiledAnswer) -> Result<Option<TaskOptions>, ErrorReply> {
        if self.in_task {
            return Ok(None);
        }
        let context = &self.request.context;
        let starts = match context.revision {
            Revision::V2026_07_28 => answer.task.is_some() && context.has_tasks_extension(),
            Revision::V2025_11_25 => {
                let elsewhere = || self.root.any(&|answer| answer.task.is_some());
                let here = answer.task.is_some() || self.path.is_empty() && !elsewhere();
                self.basis.has_tasks() && here && self.request.params.get("task").is_some_and(Value::is_object)
            }
            Revision::V2024_11_05 | Revision::V2025_03_26 | Revision::V2025_06_18 => false,
        };
        match (starts, &answer.task) {
            (true, task) => Ok(Some(task.clone().unwrap_or_default())),
            (false, Some(task)) if task.required => Err(match context.era() {
                Era::Modern => task::missing_extension(),
                Era::Legacy => ErrorReply::new(code::METHOD_NOT_FOUND, "this tool can only be called as a task"),
            }),
            (false, _) => Ok(None),
        }
    }

    fn step(&mut self, index: usize, step: &CompiledStep, context: &mut AnswerContext<'_>) -> Option<Action> {
        let is_requested = self.position == Position::Requested(index);
        self.position = Position::Step(index + 1);
        let done = match step {
            CompiledStep::Ask(templates, on_decline) => {
                if !is_requested {
                    self.round += 1;
                    // Earlier input under the same name belongs to another request.
                    templates.iter().for_each(|template| drop(self.inputs.shift_remove(&template.name)));
                }
                self.ask(index, templates, *on_decline, context)
            }
            CompiledStep::Round(round) => {
                self.round += 1;
                Ok(self.recorded_round(index, round, is_requested, context))
            }
            CompiledStep::EmptyRound if self.era() == Era::Modern && !self.in_task => {
                Ok(Some(self.input_required(&[], None, context)))
            }
            CompiledStep::EmptyRound => {
                self.round += 1;
                Ok(None)
            }
            step => self.simple_step(step),
        };
        done.unwrap_or_else(|why| Some(self.mock_error(&why)))
    }

    /// A step that needs no input from the client.
    fn simple_step(&mut self, step: &CompiledStep) -> Result<Option<Action>, String> {
        match step {
            CompiledStep::Wait(delay) => Ok(Some(Action::Wait(*delay))),
            CompiledStep::Progress { progress, total, message } => self.progress(*progress, *total, message.as_ref()),
            CompiledStep::Log { level, .. } if !self.request.context.logs.include(Some(*level)) => Ok(None),
            CompiledStep::Log { level, logger, data } => {
                let mut params = json!({"level": level.name()});
                if let Some(logger) = logger {
                    params["logger"] = logger.as_str().into();
                }
                params["data"] = self.render(data)?;
                Ok(Some(Action::Notify { method: Method::LOG_MESSAGE, params }))
            }
            CompiledStep::Notify { method, params } => {
                let params = params.as_ref().map_or(Ok(json!({})), |params| self.render(params))?;
                Ok(Some(Action::Notify { method: method.clone(), params }))
            }
            CompiledStep::Change(change) => Ok(Some(Action::NotifySubscribers(match change {
                CompiledChange::Fixed(change) => change.clone(),
                CompiledChange::Resource(uri) => {
                    ChangeNotice::Resource(self.render(uri)?.as_str().unwrap_or_default().to_owned())
                }
            }))),
            CompiledStep::Send(requests) => Ok(Some(Action::RequestInput(requests.clone()))),
            CompiledStep::Await(names) => Ok(Some(Action::AwaitInput(names.clone()))),
            CompiledStep::CancelInput(name, params) => Ok(Some(Action::CancelInput(name.clone(), params.clone()))),
            CompiledStep::Set(fields) => self.change_state(fields, |state, key, value| state.set(key, value)),
            CompiledStep::Append(fields) => self.change_state(fields, |state, key, value| state.append(key, value)),
            CompiledStep::Delete(keys) => {
                if let Basis::Script(script) = &self.basis {
                    keys.iter().for_each(|key| script.state().delete(key));
                }
                Ok(None)
            }
            CompiledStep::CloseStream { retry } => {
                let has_polling = self.request.context.revision == Revision::V2025_11_25;
                Ok(has_polling.then_some(Action::CloseStream { retry: *retry }))
            }
            CompiledStep::Ask(..) | CompiledStep::Round(_) | CompiledStep::EmptyRound | CompiledStep::Skipped => {
                Ok(None)
            }
        }
    }

    fn change_state(
        &mut self,
        fields: &[(String, TemplateValue)],
        change: impl Fn(&mut crate::answer::script::MockState, &str, Value),
    ) -> Result<Option<Action>, String> {
        for (key, value) in fields {
            let value = self.render(value)?;
            if let Basis::Script(script) = &self.basis {
                change(&mut script.state(), key, value);
            }
        }
        Ok(None)
    }

    fn progress(
        &mut self,
        progress: f64,
        total: Option<f64>,
        message: Option<&TemplateValue>,
    ) -> Result<Option<Action>, String> {
        let Some(token) = self.request.meta().get(meta::PROGRESS_TOKEN) else { return Ok(None) };
        let mut params = json!({"progressToken": token, "progress": number(progress)});
        if let Some(total) = total {
            params["total"] = number(total);
        }
        if let Some(message) = message.filter(|_| self.request.context.revision >= Revision::V2025_03_26) {
            params["message"] = self.render(message)?;
        }
        // Since 2026-07-28 each round is a request of its own.
        let is_one_call = self.era() == Era::Legacy;
        let params = if is_one_call { self.progress.combine(self.round, params) } else { Some(params) };
        Ok(params.map(|params| Action::Notify { method: Method::PROGRESS, params }))
    }

    /// Requests the missing input, and continues if none is missing.
    fn ask(
        &mut self,
        index: usize,
        templates: &[InputRequestTemplate],
        on_decline: OnDecline,
        context: &mut AnswerContext<'_>,
    ) -> Result<Option<Action>, String> {
        let at_once = supports_server_requests(&self.request.context);
        let takes_anything = self.basis.takes_any_input();
        for template in templates.iter().filter(|it| !self.inputs.contains_key(&it.name)).collect::<Vec<_>>() {
            match self.offered.shift_remove(&template.name) {
                Some(input) if takes_anything || template.accepts(&input) => {
                    self.inputs.insert(template.name.clone(), input);
                }
                Some(_) if at_once && on_decline == OnDecline::IsNull => {
                    self.inputs.insert(template.name.clone(), Value::Null);
                }
                Some(input) if at_once => {
                    let why = format!("the client's response to {} is invalid: {input}", template.name);
                    return Ok(Some(self.input_failure(&why)));
                }
                // 2026-07-28 requires that the input is requested again.
                Some(_) | None => {}
            }
        }
        if on_decline == OnDecline::IsNull {
            let unsupported = templates.iter().filter(|it| it.missing_capability(&self.request.context).is_some());
            for template in unsupported {
                self.inputs.entry(&template.name).or_insert(Value::Null);
            }
        }
        let missing: Vec<_> = templates.iter().filter(|it| !self.inputs.contains_key(&it.name)).collect();
        if missing.is_empty() {
            return Ok(None);
        }
        let request = Arc::clone(&self.request);
        let capabilities: Vec<MissingCapability> =
            missing.iter().filter_map(|it| it.missing_capability(&request.context)).collect();
        if let Some(first) = capabilities.first() {
            return Ok(Some(match at_once {
                true => self.input_failure(&first.why),
                false => self.error(MissingCapability::error(&capabilities)),
            }));
        }
        let render = |template: &&InputRequestTemplate| {
            self.basis.with_scope(&self.request, &self.inputs, |templates, scope| {
                template.render(request.context.revision, templates, scope)
            })
        };
        let requests = missing.iter().map(render).collect::<Result<Vec<_>, _>>()?;
        self.position = Position::Requested(index);
        if at_once || self.in_task {
            self.awaited = requests.iter().map(|request| request.name.clone()).collect();
            return Ok(Some(Action::RequestInput(requests)));
        }
        Ok(Some(self.input_required(&requests, None, context)))
    }

    /// Sends the recorded input requests, and continues with any input.
    fn recorded_round(
        &mut self,
        index: usize,
        round: &RecordedRound,
        is_requested: bool,
        context: &mut AnswerContext<'_>,
    ) -> Option<Action> {
        let names = round.requests.iter().map(|request| &request.name);
        if self.era() == Era::Legacy {
            if is_requested || round.requests.is_empty() {
                return None;
            }
            self.position = Position::Requested(index);
            self.awaited = names.cloned().collect();
            return Some(Action::RequestInput(round.requests.clone()));
        }
        for name in names.clone() {
            self.inputs.extend(self.offered.shift_remove(name).map(|input| (name.clone(), input)));
        }
        let missing: Vec<_> =
            round.requests.iter().filter(|request| !self.inputs.contains_key(&request.name)).cloned().collect();
        if missing.is_empty() && (is_requested || !round.requests.is_empty()) {
            // A later round may use the same names for other requests.
            names.for_each(|name| drop(self.inputs.shift_remove(name)));
            return None;
        }
        self.position = Position::Requested(index);
        Some(self.input_required(&missing, round.result.as_ref(), context))
    }

    /// The `input_required` result: the input requests, and the state with which the client continues here.
    fn input_required(
        &mut self,
        requests: &[InputRequest],
        recorded: Option<&Value>,
        context: &mut AnswerContext<'_>,
    ) -> Action {
        let (step, is_requested) = match self.position {
            Position::Step(step) => (step, false),
            Position::Requested(step) => (step, true),
            Position::Start | Position::Task | Position::Work | Position::After(_) | Position::End => (0, false),
        };
        let round = json!({
            "of": self.basis.round_owner(),
            "path": self.path,
            "step": step,
            "asked": is_requested,
            "call": self.basis.call(),
            "inputs": self.inputs,
        });
        let key = self.basis.round_key(&self.request);
        let has_state = requests.is_empty() || self.current().is_none_or(|answer| answer.request_state);
        let environment = context.environment;
        let state = has_state.then(|| environment.signer.sign(&round, &key, environment.now_ms));
        if state.is_none() {
            context.memory::<StatelessRounds>().keep(key, round);
        }
        let result = match recorded {
            Some(recorded) => InputRequest::recorded_result(recorded, requests, state),
            None => InputRequest::result(requests, state),
        };
        self.position = Position::End;
        let reply = Reply::Result(RawJson::from_value(&result));
        // A recorded result is in the client's version already.
        let written_for = if recorded.is_some() { WrittenFor::Client } else { WrittenFor::Verbatim };
        Action::Reply(Answer { kind: ResultKind::InputRequired, written_for, ..self.answer(reply) })
    }

    /// Ends the answer, or continues with the reply, after the last step.
    fn end(&mut self, answer: &CompiledAnswer) -> Option<Action> {
        if let Some(chosen) = self.choose(answer) {
            self.path.push(chosen);
            self.position = Position::Start;
            return None;
        }
        let reply = self.reply_of(answer);
        self.position = Position::After(0);
        Some(Action::Reply(reply))
    }

    fn choose(&self, answer: &CompiledAnswer) -> Option<usize> {
        if answer.choose.is_empty() {
            return None;
        }
        let inputs = Value::Object(self.inputs.clone());
        self.basis.with_rule_input(&self.request, |input| {
            answer.choose.iter().position(|choice| {
                choice.given.holds(input) && choice.when.as_ref().is_none_or(|when| when.matches(&inputs))
            })
        })
    }

    /// The refusal if the client's input matches none of the answers.
    pub(super) fn nothing_chosen(&self, answer: &CompiledAnswer) -> Answer {
        let inputs = Value::Object(self.inputs.clone());
        let error = self.basis.with_rule_input(&self.request, |input: &RuleInput<'_>| {
            let closest = answer.choose.iter().min_by_key(|choice| {
                choice.when.as_ref().map_or(0, |when| when.distance(&inputs)) + choice.given.distance(input)
            });
            let closest = closest.map(|choice| {
                let when = choice.when.iter().flat_map(|when| when.check(&inputs)).map(|it| it.to_string());
                (Arc::clone(&choice.name), when.chain(choice.given.mismatches(input)).collect())
            });
            no_rule_fits(&format!("{}, after {inputs}", self.basis.label()), closest)
        });
        Answer { provenance: Provenance::Refusal, ..self.answer(Reply::Error(error)) }
    }

    fn fail(&mut self, answer: Answer) -> Action {
        self.position = Position::End;
        Action::Reply(answer)
    }

    fn error(&mut self, error: ErrorReply) -> Action {
        let answer = self.answer(Reply::Error(error));
        self.fail(answer)
    }

    /// A mistake in the mock file: an internal error, and a remark for its author.
    fn mock_error(&mut self, why: &str) -> Action {
        let answer = self.broken_answer(why);
        self.fail(answer)
    }

    /// The client did not supply the input: a tool result with `isError` for a tool, otherwise an error.
    fn input_failure(&mut self, why: &str) -> Action {
        let answer = self.answer(match self.request.method == Method::TOOLS_CALL {
            true => {
                let result = json!({"content": [{"type": "text", "text": why}], "isError": true});
                Reply::Result(RawJson::from_value(&result))
            }
            false => Reply::Error(ErrorReply::new(code::INTERNAL_ERROR, why)),
        });
        self.fail(Answer { written_for: WrittenFor::Newest, ..answer })
    }
}

impl Responder for StepResponder {
    fn next(&mut self, context: &mut AnswerContext<'_>) -> Action {
        // This clone keeps the steps while the responder changes.
        let root = Arc::clone(&self.root);
        loop {
            if let Some(why) = self.failure.take() {
                return self.input_failure(&why);
            }
            if !self.awaited.is_empty() {
                return Action::AwaitInput(std::mem::take(&mut self.awaited));
            }
            let Some(answer) = at_path(&root, &self.path) else {
                return self.error(invalid("the answer that this request continues no longer exists".to_owned()));
            };
            match self.position {
                Position::Start => {
                    self.position = Position::Task;
                    if let Some(delay) = answer.delay {
                        return Action::Wait(delay);
                    }
                }
                Position::Task => {
                    self.position = Position::Work;
                    match self.task(answer) {
                        Ok(Some(mut options)) => {
                            let message =
                                answer.status_message.as_ref().map(|message| self.render(message)).transpose();
                            match message {
                                Ok(text) => {
                                    options.status_message = text.and_then(|it| it.as_str().map(str::to_owned));
                                }
                                Err(why) => return self.error(ErrorReply::new(code::INTERNAL_ERROR, why)),
                            }
                            self.in_task = true;
                            return Action::StartTask(options);
                        }
                        Ok(None) => {}
                        Err(error) => return self.error(error),
                    }
                }
                Position::Work => {
                    self.position = Position::Step(0);
                    if let Some(after) = answer.task.as_ref().and_then(|task| task.after) {
                        return Action::Wait(after);
                    }
                }
                Position::Step(index) | Position::Requested(index) => {
                    let action = match answer.steps.get(index) {
                        Some(step) => self.step(index, step, context),
                        None => self.end(answer),
                    };
                    if let Some(action) = action {
                        return action;
                    }
                }
                Position::After(index) => {
                    let Some(step) = answer.after.get(index) else { return Action::End };
                    self.position = Position::After(index + 1);
                    if let Ok(Some(action)) = self.simple_step(step) {
                        return action;
                    }
                }
                Position::End => return Action::End,
            }
        }
    }

    fn set_input(&mut self, name: &str, input: Result<Value, String>) {
        match (input, &self.basis) {
            (Ok(input), _) => drop(self.offered.insert(name.to_owned(), input)),
            (Err(why), Basis::Recording(recording)) => {
                self.remarks.push(format!("{}: {why}; the replay continues as recorded", recording.place));
            }
            (Err(why), Basis::Script(_)) => {
                let Position::Requested(index) = self.position else { return };
                match self.current().and_then(|answer| answer.steps.get(index)) {
                    Some(CompiledStep::Ask(_, OnDecline::IsNull)) => {
                        self.offered.insert(name.to_owned(), Value::Null);
                    }
                    _ => self.failure = Some(why),
                }
            }
        }
    }

    fn provenance(&self) -> Provenance {
        self.basis.provenance(&self.root, &self.path)
    }

    fn continues_after_reply(&self) -> bool {
        !self.root.after.is_empty() && self.position == Position::After(0)
    }

    fn is_recorded(&self) -> bool {
        matches!(self.basis, Basis::Recording(_))
    }
}

/// The answer at a path of nested `choose` lists.
pub(super) fn at_path<'a>(root: &'a CompiledAnswer, path: &[usize]) -> Option<&'a CompiledAnswer> {
    path.iter().try_fold(root, |answer, index| answer.choose.get(*index).map(|choice| &choice.answer))
}

/// `50` for 50.0, as an author would write it.
fn number(value: f64) -> Value {
    let whole = value as i64;
    if whole as f64 == value { whole.into() } else { value.into() }
}
