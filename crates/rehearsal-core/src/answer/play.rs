//! A rule that fits, carried out: a state machine whose acts somebody else performs.
//!
//! ```text
//! enter ──► delay ──► task? ──► steps ──► choose ──► enter …
//!                                             └────► reply
//! ```

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::asked::Facts;
use super::provenance::{Answer, Provenance};
use super::question::{Objection, Question, QuestionDraft, asks_at_once};
use super::refusal;
use super::scene::{self, Outcome, Scene, Step, TaskTerms};
use super::seal::Seal;
use super::shape::{self, ResultType};
use super::state::State;
use super::target::Target;
use super::task;
use super::template::{Draft, Scope};
use super::{Asked, Mock};
use crate::json::RawJson;
use crate::message::{ErrorReply, Method, Reply};
use crate::protocol::{Era, Revision, code, meta};
use crate::script::mock::{Delay, FaultKind, TaskSupport};

/// What the outside world lends to a decision.
#[derive(Clone, Copy, Debug)]
pub struct World<'a> {
    /// Milliseconds since 1970.
    pub now_ms: u64,
    /// What signs the state that clients carry.
    pub seal: &'a Seal,
}

/// What is to be done next.
#[derive(Clone, Debug)]
pub enum Act {
    /// Nothing, for a while.
    Wait(Delay),
    /// Tell the client something that belongs to the request.
    Notify {
        /// What.
        method: Method,
        /// The details.
        params: Value,
    },
    /// Tell everybody who wants to know.
    Tell(Change),
    /// Ask the client, and come back with [`Play::answered`] for each.
    Ask(Vec<Question>),
    /// Close the stream of the answer, which goes on when the client comes back.
    CloseStream {
        /// How long it should wait.
        retry: Option<Delay>,
    },
    /// Answer that a task has begun, and go on without the client.
    Detach(TaskTerms),
    /// Answer; the play is over.
    Reply(Answer),
}

/// Something that clients may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The list of tools is another.
    Tools,
    /// The list of prompts is another.
    Prompts,
    /// The list of resources is another.
    Resources,
    /// A resource has new contents.
    Resource(String),
}

/// One request on its way to its answer.
#[derive(Debug)]
pub struct Play {
    mock: Arc<Mock>,
    asked: Arc<Asked>,
    target: Target,
    arguments: Value,
    call: u64,
    /// Position of the rule among those of the target.
    rule: usize,
    /// Which of `choose` were chosen so far.
    path: Vec<usize>,
    cue: Cue,
    /// What the client answered.
    answers: Map<String, Value>,
    /// What it brought with this request and nobody asked for yet.
    offered: Map<String, Value>,
    /// Why it cannot go on.
    failure: Option<String>,
    in_task: bool,
    remarks: Vec<String>,
    /// What goes wrong with the answer, whatever its rule says.
    fault: Option<FaultKind>,
}

/// Where in a scene a play is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cue {
    Enter,
    Task,
    Work,
    Step(usize),
}

/// What a play is made of.
pub(super) struct Cast {
    pub(super) mock: Arc<Mock>,
    pub(super) asked: Arc<Asked>,
    pub(super) target: Target,
    pub(super) arguments: Value,
    pub(super) remarks: Vec<String>,
}

impl Play {
    /// The play of a rule that fits.
    pub(super) fn new(cast: Cast, rule: usize, call: u64) -> Play {
        let Cast { mock, asked, target, arguments, remarks } = cast;
        let offered = asked.params.get("inputResponses").and_then(Value::as_object).cloned().unwrap_or_default();
        Play {
            mock,
            asked,
            target,
            arguments,
            call,
            rule,
            path: Vec::new(),
            cue: Cue::Enter,
            answers: Map::new(),
            offered,
            failure: None,
            in_task: false,
            remarks,
            fault: None,
        }
    }

    /// The same play, whose answer goes wrong.
    pub(super) fn spoilt(mut self, fault: FaultKind) -> Play {
        self.fault = Some(fault);
        self
    }

    /// The play that a client comes back to.
    pub(super) fn resume(cast: Cast, given: &str, world: &World<'_>) -> Result<Play, ErrorReply> {
        let invalid = |why: String| ErrorReply::new(code::INVALID_PARAMS, why);
        let belongs_to = belongs_to(&cast.asked, &cast.arguments);
        let state = world.seal.open(given, &belongs_to, world.now_ms).map_err(|broken| invalid(broken.to_string()))?;
        if state["mock"] != json!(cast.mock.fingerprint) {
            return Err(invalid("requestState was given before the mock file changed".to_owned()));
        }
        // It is signed, so it is what we wrote.
        let number = |value: &Value| value.as_u64().and_then(|number| usize::try_from(number).ok()).unwrap_or_default();
        let mut play = Play::new(cast, number(&state["rule"]), state["call"].as_u64().unwrap_or(1));
        play.path = state["path"].as_array().into_iter().flatten().map(number).collect();
        play.cue = Cue::Step(number(&state["step"]));
        play.answers = state["answers"].as_object().cloned().unwrap_or_default();
        Ok(play)
    }

    /// The request.
    pub fn asked(&self) -> &Asked {
        &self.asked
    }

    /// The mock that it is played from.
    pub fn mock(&self) -> &Arc<Mock> {
        &self.mock
    }

    /// What the client said to a question, or why it said nothing.
    pub fn answered(&mut self, name: &str, answer: Result<Value, String>) {
        match answer {
            Ok(answer) => {
                self.offered.insert(name.to_owned(), answer);
            }
            Err(why) => self.failure = Some(why),
        }
    }

    fn scene(&self) -> Option<&Scene> {
        let root = &self.target.rules(&self.mock).get(self.rule)?.scene;
        self.path.iter().try_fold(root, |scene, at| scene.choose.get(*at).map(|choice| &choice.scene))
    }

    fn rule_name(&self) -> Arc<str> {
        let rule = self.target.rules(&self.mock).get(self.rule);
        let Some(rule) = rule else { return "a rule that is gone".into() };
        let (mut name, mut scene) = (rule.name.to_string(), &rule.scene);
        for at in &self.path {
            let Some(choice) = scene.choose.get(*at) else { break };
            name.push_str(&format!(", then {}", choice.name));
            scene = &choice.scene;
        }
        name.into()
    }

    /// What is to be done next.
    pub fn next(&mut self, state: &mut State, world: &World<'_>) -> Act {
        let mock = Arc::clone(&self.mock);
        loop {
            if let Some(why) = self.failure.take() {
                return self.failed(&why);
            }
            // The mock is kept by this clone, so the scene may be looked at while the play changes.
            let found = self.target.rules(&mock).get(self.rule).map(|rule| &rule.scene);
            let found = self
                .path
                .iter()
                .try_fold(found, |scene, at| scene.map(|scene| scene.choose.get(*at).map(|choice| &choice.scene)));
            let Some(Some(scene)) = found else {
                return self.error(ErrorReply::new(code::INTERNAL_ERROR, "the rule of this answer is gone"));
            };
            match self.cue {
                Cue::Enter => {
                    self.cue = Cue::Task;
                    if let Some(delay) = scene.delay {
                        return Act::Wait(delay);
                    }
                }
                Cue::Task => {
                    self.cue = Cue::Work;
                    match self.task(scene) {
                        Ok(Some(terms)) => {
                            self.in_task = true;
                            return Act::Detach(terms);
                        }
                        Ok(None) => {}
                        Err(error) => return self.error(error),
                    }
                }
                Cue::Work => {
                    self.cue = Cue::Step(0);
                    if let Some(after) = scene.task.as_ref().and_then(|task| task.after) {
                        return Act::Wait(after);
                    }
                }
                Cue::Step(at) => match scene.steps.get(at) {
                    Some(step) => {
                        if let Some(act) = self.step(at, step, state, world) {
                            return act;
                        }
                    }
                    None => {
                        if let Some(act) = self.end(scene, state) {
                            return act;
                        }
                    }
                },
            }
        }
    }

    /// Whether the rest is the work of a task, for this client.
    fn task(&self, scene: &Scene) -> Result<Option<TaskTerms>, ErrorReply> {
        if self.in_task {
            return Ok(None);
        }
        let terms = &self.asked.terms;
        let wants = match terms.revision {
            Revision::V2026_07_28 => scene.task.is_some() && terms.has_tasks_extension(),
            Revision::V2025_11_25 => {
                let elsewhere = || self.scene().is_some_and(|scene| scene.any(&|scene| scene.task.is_some()));
                let here = scene.task.is_some() || self.path.is_empty() && !elsewhere();
                self.mock.has_tasks && here && self.asked.params.get("task").is_some_and(Value::is_object)
            }
            Revision::V2024_11_05 | Revision::V2025_03_26 | Revision::V2025_06_18 => false,
        };
        match (wants, &scene.task) {
            (true, task) => Ok(Some(task.clone().unwrap_or_default())),
            (false, Some(task)) if task.required => Err(match terms.era() {
                Era::Modern => task::undeclared(),
                Era::Legacy => ErrorReply::new(code::METHOD_NOT_FOUND, "this tool can only be called as a task"),
            }),
            (false, _) => Ok(None),
        }
    }

    fn step(&mut self, at: usize, step: &Step, state: &mut State, world: &World<'_>) -> Option<Act> {
        self.cue = Cue::Step(at + 1);
        let done = match step {
            Step::Wait(delay) => return Some(Act::Wait(*delay)),
            Step::Progress { progress, total, message } => self.progress(*progress, *total, message.as_ref(), state),
            Step::Log { level, logger, data } => {
                if self.asked.terms.log_from.is_none_or(|from| *level < from) {
                    return None;
                }
                self.render(data, state).map(|data| {
                    let mut params = json!({"level": level.name()});
                    if let Some(logger) = logger {
                        params["logger"] = logger.as_str().into();
                    }
                    params["data"] = data;
                    Some(Act::Notify { method: Method::LOG_MESSAGE, params })
                })
            }
            Step::Notify { method, params } => {
                let params = params.as_ref().map_or(Ok(json!({})), |params| self.render(params, state));
                params.map(|params| Some(Act::Notify { method: method.as_str().into(), params }))
            }
            Step::Changed(changed) => self.changed(changed, state).map(|change| Some(Act::Tell(change))),
            Step::Ask(questions) => self.ask(at, questions, state, world),
            Step::Again if self.asked.terms.era() == Era::Modern && !self.in_task => {
                Ok(Some(self.input_required(&[], at + 1, world)))
            }
            Step::Again => Ok(None),
            Step::Set(fields) => fields
                .iter()
                .try_for_each(|(key, draft)| {
                    let value = self.render(draft, state)?;
                    state.set(key, value);
                    Ok(())
                })
                .map(|()| None),
            Step::Append(fields) => fields
                .iter()
                .try_for_each(|(key, draft)| {
                    let value = self.render(draft, state)?;
                    state.append(key, value);
                    Ok(())
                })
                .map(|()| None),
            Step::Delete(keys) => {
                keys.iter().for_each(|key| state.delete(key));
                Ok(None)
            }
            Step::CloseStream { retry } if self.asked.terms.revision == Revision::V2025_11_25 => {
                Ok(Some(Act::CloseStream { retry: *retry }))
            }
            Step::CloseStream { .. } => Ok(None),
        };
        done.unwrap_or_else(|why| Some(self.broken(&why)))
    }

    fn progress(
        &self,
        progress: f64,
        total: Option<f64>,
        message: Option<&Draft>,
        state: &State,
    ) -> Result<Option<Act>, String> {
        let Some(token) = self.asked.meta().get(meta::PROGRESS_TOKEN) else { return Ok(None) };
        let mut params = json!({"progressToken": token, "progress": number(progress)});
        if let Some(total) = total {
            params["total"] = number(total);
        }
        if let Some(message) = message.filter(|_| self.asked.terms.revision >= Revision::V2025_03_26) {
            params["message"] = self.render(message, state)?;
        }
        Ok(Some(Act::Notify { method: Method::PROGRESS, params }))
    }

    fn changed(&self, changed: &scene::Changed, state: &State) -> Result<Change, String> {
        Ok(match changed {
            scene::Changed::Tools => Change::Tools,
            scene::Changed::Prompts => Change::Prompts,
            scene::Changed::Resources => Change::Resources,
            scene::Changed::Resource(uri) => {
                Change::Resource(self.render(uri, state)?.as_str().unwrap_or_default().to_owned())
            }
        })
    }

    /// Asks what was not answered yet, and goes on where everything was.
    fn ask(
        &mut self,
        at: usize,
        drafts: &[QuestionDraft],
        state: &State,
        world: &World<'_>,
    ) -> Result<Option<Act>, String> {
        let at_once = asks_at_once(&self.asked.terms);
        for draft in drafts.iter().filter(|draft| !self.answers.contains_key(&draft.name)).collect::<Vec<_>>() {
            match self.offered.shift_remove(&draft.name) {
                Some(answer) if draft.takes(&answer) => {
                    self.answers.insert(draft.name.clone(), answer);
                }
                Some(answer) if at_once => {
                    let why = format!("the client's answer to {} makes no sense: {answer}", draft.name);
                    return Ok(Some(self.failed(&why)));
                }
                // Asked again, as 2026-07-28 says.
                Some(_) | None => {}
            }
        }
        let missing: Vec<_> = drafts.iter().filter(|draft| !self.answers.contains_key(&draft.name)).collect();
        if missing.is_empty() {
            return Ok(None);
        }
        let terms = &self.asked.terms;
        let objections: Vec<Objection> = missing.iter().filter_map(|draft| draft.objection(terms)).collect();
        if let Some(first) = objections.first() {
            return Ok(Some(match at_once {
                true => self.failed(&first.why),
                false => self.error(Objection::error(&objections)),
            }));
        }
        let mut questions = Vec::with_capacity(missing.len());
        for draft in missing {
            questions.push(self.with_scope(state, |scope| draft.render(terms, &self.mock.templates, scope))?);
        }
        if at_once || self.in_task {
            self.cue = Cue::Step(at);
            return Ok(Some(Act::Ask(questions)));
        }
        Ok(Some(self.input_required(&questions, at, world)))
    }

    /// Sends the client away with questions and with everything that is needed to go on.
    fn input_required(&self, questions: &[Question], step: usize, world: &World<'_>) -> Act {
        let state = json!({
            "mock": self.mock.fingerprint,
            "rule": self.rule,
            "path": self.path,
            "step": step,
            "call": self.call,
            "answers": self.answers,
        });
        let belongs_to = belongs_to(&self.asked, &self.arguments);
        let mut result = json!({});
        if !questions.is_empty() {
            let requests = questions.iter().map(|question| (question.name.clone(), question.input_request()));
            result["inputRequests"] = Value::Object(requests.collect());
        }
        result["requestState"] = world.seal.close(&state, &belongs_to, world.now_ms).into();
        let (method, revision) = (self.asked.method.as_str(), self.asked.terms.revision);
        shape::envelope(&mut result, ResultType::InputRequired, method, revision, &self.mock.info);
        self.reply(Reply::Result(RawJson::from_value(&result)))
    }

    /// What comes after the last step.
    fn end(&mut self, scene: &Scene, state: &State) -> Option<Act> {
        let values = state.snapshot();
        let facts = Facts { asked: &self.asked, call: self.call, state: &values };
        let answers = Value::Object(self.answers.clone());
        let fits = |choice: &scene::Choice| {
            choice.given.holds(&facts) && choice.when.as_ref().is_none_or(|when| when.matches(&answers))
        };
        if let Some(at) = scene.choose.iter().position(fits) {
            self.path.push(at);
            self.cue = Cue::Enter;
            return None;
        }
        Some(match &scene.outcome {
            None => {
                let closest = scene.choose.iter().min_by_key(|choice| {
                    choice.when.as_ref().map_or(0, |when| when.distance(&answers)) + choice.given.distance(&facts)
                });
                let closest = closest.map(|choice| {
                    let when = choice.when.iter().flat_map(|when| when.check(&answers)).map(|it| it.to_string());
                    (Arc::clone(&choice.name), when.chain(choice.given.mismatches(&facts)).collect())
                });
                let error =
                    refusal::nothing_fits(&format!("{}, after {answers}", self.target.name(&self.mock)), closest);
                Act::Reply(Answer { provenance: Provenance::Nobody, ..self.answer(Reply::Error(error)) })
            }
            Some(Outcome::Error { code, message, data }) => {
                let message = self.render(message, state);
                let data = data.as_ref().map(|data| self.render(data, state)).transpose();
                match (message, data) {
                    (Ok(message), Ok(data)) => {
                        let error = ErrorReply::new(*code, message.as_str().unwrap_or_default());
                        self.reply(Reply::Error(data.map_or(error.clone(), |data| error.with_data(&data))))
                    }
                    (Err(why), _) | (_, Err(why)) => self.broken(&why),
                }
            }
            Some(Outcome::Result { draft: Draft::Fixed(value), written }) => {
                let cached = &written[self.asked.terms.revision as usize];
                match cached.get_or_init(|| self.finished(value.clone())) {
                    Ok(result) => self.reply(Reply::Result(result.clone())),
                    Err(why) => self.broken(why),
                }
            }
            Some(Outcome::Result { draft, .. }) => {
                match self.render(draft, state).and_then(|result| self.finished(result)) {
                    Ok(result) => self.reply(Reply::Result(result)),
                    Err(why) => self.broken(&why),
                }
            }
        })
    }

    /// A result in the shape of its version, if it is what it should be.
    fn finished(&self, mut result: Value) -> Result<RawJson, String> {
        self.target.check(&self.mock, &result)?;
        let (method, revision) = (self.asked.method.as_str(), self.asked.terms.revision);
        match self.target {
            Target::Tool(_) => shape::called(&mut result, revision),
            Target::Prompt(_) => shape::phrased(&mut result, revision),
            Target::Resource(_) | Target::ResourceTemplate(_) => shape::read(&mut result, revision),
        }
        shape::envelope(&mut result, ResultType::Complete, method, revision, &self.mock.info);
        Ok(RawJson::from_value(&result))
    }

    fn render(&self, draft: &Draft, state: &State) -> Result<Value, String> {
        self.with_scope(state, |scope| draft.render(&self.mock.templates, scope))
    }

    fn with_scope<T>(&self, state: &State, render: impl FnOnce(&Scope<'_>) -> Result<T, String>) -> Result<T, String> {
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

    fn answer(&self, reply: Reply) -> Answer {
        let provenance = Provenance::Script { target: self.target.name(&self.mock), rule: self.rule_name() };
        let fault = self.fault.clone().or_else(|| self.scene().and_then(|scene| scene.fault.clone()));
        Answer { reply, provenance, delay: None, fault, remarks: self.remarks.clone() }
    }

    fn reply(&self, reply: Reply) -> Act {
        Act::Reply(self.answer(reply))
    }

    fn error(&self, error: ErrorReply) -> Act {
        self.reply(Reply::Error(error))
    }

    /// The mock itself is wrong, and who wrote it should know.
    fn broken(&self, why: &str) -> Act {
        let why = format!("{}, {}: {why}", self.target.name(&self.mock), self.rule_name());
        let mut answer = self.answer(Reply::Error(ErrorReply::new(code::INTERNAL_ERROR, why.clone())));
        answer.remarks.push(why);
        Act::Reply(answer)
    }

    /// The client could not help: a failure of the tool where it is one, an error otherwise.
    fn failed(&self, why: &str) -> Act {
        let reply = match self.target {
            Target::Tool(_) => {
                let mut result = json!({"content": [{"type": "text", "text": why}], "isError": true});
                let (method, revision) = (self.asked.method.as_str(), self.asked.terms.revision);
                shape::envelope(&mut result, ResultType::Complete, method, revision, &self.mock.info);
                Reply::Result(RawJson::from_value(&result))
            }
            Target::Prompt(_) | Target::Resource(_) | Target::ResourceTemplate(_) => {
                Reply::Error(ErrorReply::new(code::INTERNAL_ERROR, why))
            }
        };
        self.reply(reply)
    }
}

/// Whether a request that wants or does not want a task may have it, in 2025-11-25.
pub(super) fn task_support(asked: &Asked, support: Option<TaskSupport>, has_tasks: bool) -> Result<(), ErrorReply> {
    if asked.terms.revision != Revision::V2025_11_25 {
        return Ok(());
    }
    let wanted = asked.params.get("task").is_some();
    let refuse = |why| Err(ErrorReply::new(code::METHOD_NOT_FOUND, why));
    match support {
        Some(TaskSupport::Required) if !wanted => refuse("this tool can only be called as a task"),
        Some(TaskSupport::Forbidden) if wanted => refuse("this tool cannot be called as a task"),
        None if wanted && has_tasks => Ok(()),
        Some(TaskSupport::Required | TaskSupport::Optional | TaskSupport::Forbidden) | None => Ok(()),
    }
}

/// What state is bound to: the same request, however its keys are ordered.
fn belongs_to(asked: &Asked, arguments: &Value) -> String {
    let name = asked.params.get("name").or_else(|| asked.params.get("uri"));
    format!("{} {} {}", asked.method, name.unwrap_or(&Value::Null), sorted(arguments))
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

/// `50` for 50.0, as anybody would write it.
fn number(value: f64) -> Value {
    let whole = value as i64;
    if whole as f64 == value { whole.into() } else { value.into() }
}
