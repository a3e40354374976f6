//! A rule that fits, carried out: a state machine whose acts somebody else performs.
//!
//! ```text
//! enter ──► delay ──► task? ──► steps ──► choose ──► enter …
//!                                             └────► reply
//! ```

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::provenance::{Answer, Provenance};
use super::question::Question;
use super::request_context::Facts;
use super::rise::Rise;
use super::round::Seal;
use super::rule::nothing_fits;
use super::scene::{self, Outcome, Scene, Step, TaskTerms, Unanswered};
use super::state::State;
use super::target::Target;
use super::template::Draft;
use super::{Asked, Mock, task};
use crate::message::{ErrorReply, Method, Reply};
use crate::protocol::{Era, Revision, code, meta};
use crate::script::mock::{Delay, FaultKind};

/// One request on its way to its answer.
#[derive(Debug)]
pub struct Play {
    pub(super) mock: Arc<Mock>,
    pub(super) asked: Arc<Asked>,
    pub(super) target: Target,
    pub(super) arguments: Value,
    pub(super) call: u64,
    /// Position of the rule among those of the target.
    pub(super) rule: usize,
    /// Which of `choose` were chosen so far.
    pub(super) path: Vec<usize>,
    pub(super) cue: Cue,
    /// What the client answered.
    pub(super) answers: Map<String, Value>,
    /// What it brought with this request and nobody asked for yet.
    pub(super) offered: Map<String, Value>,
    /// Why it cannot go on.
    pub(super) failure: Option<String>,
    pub(super) in_task: bool,
    pub(super) remarks: Vec<String>,
    /// What goes wrong with the answer, whatever its rule says.
    pub(super) fault: Option<FaultKind>,
    /// How often the client would have been sent away since 2026-07-28.
    round: usize,
    /// How far all the rounds are, where they are one call.
    rise: Rise,
}

/// Where in a scene a play is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cue {
    Enter,
    Task,
    Work,
    Step(usize),
    /// At a step whose questions were asked, and may be answered by now.
    Asked(usize),
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
            round: 0,
            rise: Rise::default(),
        }
    }

    /// The same play, whose answer goes wrong.
    pub(super) fn spoilt(mut self, fault: FaultKind) -> Play {
        self.fault = Some(fault);
        self
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
            Err(_) if self.goes_on_unanswered() => {
                self.offered.insert(name.to_owned(), Value::Null);
            }
            Err(why) => self.failure = Some(why),
        }
    }

    fn goes_on_unanswered(&self) -> bool {
        let Cue::Asked(at) = self.cue else { return false };
        let step = self.scene().and_then(|scene| scene.steps.get(at));
        matches!(step, Some(Step::Ask(_, Unanswered::IsNull)))
    }

    pub(super) fn scene(&self) -> Option<&Scene> {
        let root = &self.target.rules(&self.mock).get(self.rule)?.scene;
        self.path.iter().try_fold(root, |scene, at| scene.choose.get(*at).map(|choice| &choice.scene))
    }

    pub(super) fn rule_name(&self) -> Arc<str> {
        let rule = self.target.rules(&self.mock).get(self.rule);
        let Some(rule) = rule else { return "a rule that is gone".into() };
        if self.path.is_empty() {
            return Arc::clone(&rule.name);
        }
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
                        Ok(Some(mut terms)) => {
                            let message = scene.status_message.as_ref();
                            match message.map(|message| self.render(message, state)).transpose() {
                                Ok(said) => terms.status_message = said.and_then(|it| it.as_str().map(str::to_owned)),
                                Err(why) => return self.error(ErrorReply::new(code::INTERNAL_ERROR, why)),
                            }
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
                Cue::Step(at) | Cue::Asked(at) => match scene.steps.get(at) {
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
        let is_asked = self.cue == Cue::Asked(at);
        self.cue = Cue::Step(at + 1);
        let done = match step {
            Step::Wait(delay) => return Some(Act::Wait(*delay)),
            Step::Progress { progress, total, message } => self.progress(*progress, *total, message.as_ref(), state),
            Step::Log { level, logger, data } => {
                if !self.asked.terms.logs.include(Some(*level)) {
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
            Step::Ask(questions, unanswered) => {
                self.round += 1;
                if !is_asked {
                    // What was answered under the same name before was another question.
                    questions.iter().for_each(|question| drop(self.answers.shift_remove(&question.name)));
                }
                self.ask(at, questions, *unanswered, state, world)
            }
            Step::Again if self.asked.terms.era() == Era::Modern && !self.in_task => {
                Ok(Some(self.input_required(&[], state, world)))
            }
            Step::Again => {
                self.round += 1;
                Ok(None)
            }
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
        &mut self,
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
        // Since 2026-07-28 each round is a request of its own.
        let is_one_call = self.asked.terms.era() == Era::Legacy;
        let said = if is_one_call { self.rise.lift(self.round, params) } else { Some(params) };
        Ok(said.map(|params| Act::Notify { method: Method::PROGRESS, params }))
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
                let error = nothing_fits(&format!("{}, after {answers}", self.target.name(&self.mock)), closest);
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
            Some(Outcome::Result { draft: Draft::Fixed(value), wording, written }) => {
                let cached = &written[self.asked.terms.revision as usize];
                match cached.get_or_init(|| self.finished(value.clone(), *wording)) {
                    Ok(finished) => self.complete(finished.clone()),
                    Err(why) => self.broken(why),
                }
            }
            Some(Outcome::Result { draft, wording, .. }) => {
                match self.render(draft, state).and_then(|result| self.finished(result, *wording)) {
                    Ok(finished) => self.complete(finished),
                    Err(why) => self.broken(&why),
                }
            }
        })
    }
}

/// `50` for 50.0, as anybody would write it.
fn number(value: f64) -> Value {
    let whole = value as i64;
    if whole as f64 == value { whole.into() } else { value.into() }
}

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
    /// Ask the client, and come back with [`Play::answered`](super::Play::answered) for each.
    Ask(Vec<Question>),
    /// Ask the client, and go on.
    Pose(Vec<Question>),
    /// Wait for the answer to a question that was posed, if it was, and come back with it; its name.
    Hear(String),
    /// Tell the client that a question that was posed needs no answer any more; its name, and what else is to be said.
    Withdraw(String, Map<String, Value>),
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
    /// A task is further than it was, since 2026-07-28: which, and how far.
    Task(String, Box<Value>),
}
