//! Calls that were answered by a task, for clients of the other era and for those that know no tasks.
//!
//! ```text
//!                      recorded in 2025-11-25         recorded in 2026-07-28
//! asked in 2025-11-25  as it was                      handle and status in its shape, tasks/result from tasks/get
//! asked in 2026-07-28  handle and status in its       as it was
//!                      shape, the result in tasks/get
//! without tasks        the result                     the result
//! ```
//!
//! What a task wanted to know is asked in each of these ways: by `tasks/get` in 2026-07-28, while `tasks/result` is in hand
//! in 2025-11-25, before the result without tasks.

use std::io;
use std::sync::Arc;

use rehearsal_core::answer::{
    Answer, Asked, Begun, Provenance, Question, Recorded, RecordedTask, World, related_task, task_outcome, wanted_task,
};
use rehearsal_core::message::{ErrorReply, Method, Reply};
use rehearsal_core::protocol::{Era, Revision, code, meta};
use rehearsal_core::trace::RequestKey;
use serde_json::{Value, json};

use super::ends::shows_end;
use super::progress::Taken;
use super::replay::Shared;
use super::tape::request;

/// How many answers about one task are looked at, from the last on.
const LOOKED_AT: usize = 1000;

/// What a request about a task is answered with.
pub(super) enum TaskAnswer {
    /// This recording, whatever it was recorded for.
    Play(u32),
    /// This, made of that recording.
    Reply(Reply, Arc<str>),
}

/// Whose task: other servers, and the same after a restart, give the same names to others.
#[derive(Clone, Copy)]
pub(super) enum Whose<'a> {
    /// One that was recorded in this session.
    Session(u32),
    /// One of a client of this name, or of any.
    Client(Option<&'a str>),
}

/// What came of a task: where it was recorded.
struct Outcome {
    number: u32,
    recorded: Arc<Recorded>,
    reply: Reply,
}

impl Shared {
    /// The key under which the same call was recorded as a task, or the same task as a call.
    pub(super) fn task_key(&self, asked: &Asked) -> Option<RequestKey> {
        if !self.has_tasks || asked.method != Method::TOOLS_CALL {
            return None;
        }
        let mut params = asked.params.clone();
        let fields = params.as_object_mut()?;
        if fields.shift_remove("task").is_none() {
            fields.insert("task".to_owned(), json!({}));
        }
        Some(self.options.likeness.key(&asked.method, Some(&params)))
    }

    /// The answer to a request about a task that was recorded in another way than this client speaks of it; `None` where
    /// the recording answers.
    pub(super) fn about_task(&self, asked: &Asked, taken: Option<Taken>) -> io::Result<Option<TaskAnswer>> {
        if !self.has_tasks {
            return Ok(None);
        }
        let number = match taken {
            Some(Taken::Fresh(number) | Taken::Again(number)) => Some(number),
            Some(Taken::UsedUp(_) | Taken::None) | None => None,
        };
        let recorded = number.map(|number| self.tape.recorded(number)).transpose()?;
        if asked.method == Method::TOOLS_CALL {
            return match recorded {
                Some(recorded) => self.begun(asked, &recorded),
                None => Ok(None),
            };
        }
        let id = match asked.params.get("taskId").and_then(Value::as_str) {
            Some(id) if asked.method.as_str().starts_with("tasks/") => id,
            Some(_) | None => return Ok(None),
        };
        let is_fresh = matches!(taken, Some(Taken::Fresh(_)));
        let is_used_up = matches!(taken, Some(Taken::UsedUp(_)));
        let whose = match &recorded {
            Some(recorded) => Whose::Session(recorded.session),
            None => Whose::Client(self.client(asked)),
        };
        if [Method::TASKS_UPDATE, Method::TASKS_CANCEL].contains(&asked.method) {
            self.note_answers(asked, id, recorded.as_deref())?;
        }
        match (asked.method.as_str(), asked.terms.era()) {
            ("tasks/get", era) => {
                let known = self.known_end(asked);
                let goes_back = |recorded: &Recorded| known.is_some() && !shows_end(recorded);
                if recorded.as_ref().is_some_and(|recorded| shape(recorded) == era && !goes_back(recorded)) {
                    return Ok(None);
                }
                let outcome = self.outcome(id, whose)?;
                if is_used_up && outcome.as_ref().is_none_or(|outcome| shape(&outcome.recorded) == era) {
                    return Ok(None);
                }
                let shown = recorded.as_ref().and_then(|recorded| {
                    let task = RecordedTask::shown(recorded.reply()?, shape(recorded))?;
                    Some((task, Arc::clone(&recorded.place)))
                });
                let Some((mut task, place)) = shown.or_else(|| outcome.as_ref().and_then(|it| unshown(id, it))) else {
                    return Ok(None);
                };
                if let Some(known) = &known {
                    task = task.ending(&known.status);
                }
                // What was not looked at to its end has ended by now.
                let ended = task.is_ended() || !is_fresh;
                if let (Era::Modern, Some(outcome), None) = (era, &outcome, &known)
                    && (ended || task.is_asking())
                {
                    let open = self.open_questions(&outcome.recorded.questions(), id, &outcome.recorded, asked);
                    if !open.is_empty() {
                        let info = self.info_of(outcome.recorded.session, era)?;
                        return Ok(Some(TaskAnswer::Reply(task.asks(&open, asked, &info), place)));
                    }
                }
                if let (Era::Legacy, Some(outcome), true) = (era, &outcome, ended) {
                    // Whoever sees that it has ended without an answer is not asked for one any more.
                    for question in self.shown_questions(id, outcome.recorded.session)? {
                        let (conversation, session) = (asked.conversation, outcome.recorded.session);
                        self.progress().answer(conversation, session, id, &question.name);
                    }
                }
                let outcome = outcome.filter(|_| ended);
                if let Some(outcome) = &outcome {
                    self.note_all("tasks/result", id, Whose::Session(outcome.recorded.session))?;
                    self.progress().note(outcome.number);
                }
                let session = recorded.as_ref().or(outcome.as_ref().map(|it| &it.recorded)).map(|it| it.session);
                let session = session.unwrap_or_default();
                let info = self.info_of(session, era)?;
                let said = outcome.map(|outcome| self.said(&outcome, asked)).transpose()?;
                let reply = task.shows(said.as_ref(), asked, &info);
                self.see(asked, session, None, &reply);
                Ok(Some(TaskAnswer::Reply(reply, place)))
            }
            // Only their own era has these, so they were recorded in it.
            ("tasks/result" | "tasks/update", _) if is_used_up => Ok(None),
            ("tasks/result", Era::Legacy) if recorded.is_none() => {
                let Some(outcome) = self.outcome(id, whose)? else { return Ok(None) };
                for method in ["tasks/get", "tasks/update"] {
                    self.note_all(method, id, Whose::Session(outcome.recorded.session))?;
                }
                Ok(Some(TaskAnswer::Play(outcome.number)))
            }
            ("tasks/update", Era::Modern) if recorded.is_none() => {
                let Some(outcome) = self.outcome(id, whose)? else { return Ok(None) };
                let Some((task, place)) = unshown(id, &outcome) else { return Ok(None) };
                let answers = asked.params.get("inputResponses").and_then(Value::as_object);
                for (name, _) in answers.into_iter().flatten() {
                    self.progress().answer(asked.conversation, outcome.recorded.session, id, name);
                }
                let info = self.info_of(outcome.recorded.session, Era::Modern)?;
                Ok(Some(TaskAnswer::Reply(task.acknowledges(asked, &info), place)))
            }
            ("tasks/cancel", era) if recorded.as_ref().is_some_and(|recorded| shape(recorded) != era) => {
                let why = "this was cancelled in another era, and cannot be cancelled like this here";
                let place = recorded.map_or_else(|| "tasks/cancel".into(), |recorded| Arc::clone(&recorded.place));
                Ok(Some(TaskAnswer::Reply(Reply::Error(ErrorReply::new(code::INVALID_PARAMS, why)), place)))
            }
            (_, _) => Ok(None),
        }
    }

    /// Answers with what is known about a task.
    pub(super) fn tell_of_task(
        &self,
        answer: TaskAnswer,
        asked: Asked,
        key: RequestKey,
        world: &World<'_>,
    ) -> io::Result<Begun> {
        self.ledger().matched += 1;
        match answer {
            TaskAnswer::Play(number) => self.play(number, asked, key, world, 0),
            TaskAnswer::Reply(reply, place) => {
                let provenance = Provenance::Recording { place };
                Ok(Begun::Answered(Answer { provenance, ..Answer::protocol(reply) }))
            }
        }
    }

    /// The answer to a call that was answered by a task.
    fn begun(&self, asked: &Asked, recorded: &Recorded) -> io::Result<Option<TaskAnswer>> {
        let Some(task) = recorded.reply().and_then(RecordedTask::begun) else { return Ok(None) };
        let wanted = wanted_task(asked);
        let is_legacy = asked.terms.era() == Era::Legacy;
        // Since 2026-07-28 nothing is said of a call that was answered; whoever knows no tasks hears all of it before.
        let token = asked.params.get("_meta").and_then(|meta| meta.get(meta::PROGRESS_TOKEN)).filter(|_| is_legacy);
        let token = wanted.is_some().then_some(token);
        self.progress().follow(asked.conversation, &task.id, recorded, token);
        match wanted {
            Some(shape) if shape == task.shape => Ok(None),
            Some(_) => {
                let place = Arc::clone(&recorded.place);
                let info = self.info_of(recorded.session, asked.terms.era())?;
                self.progress().begin_task(asked.conversation, &task.id);
                Ok(Some(TaskAnswer::Reply(task.begins(asked, &info), place)))
            }
            None => {
                let whose = Whose::Session(recorded.session);
                let outcome = self.outcome(&task.id, whose)?;
                for method in ["tasks/get", "tasks/update", "tasks/result"] {
                    self.note_all(method, &task.id, whose)?;
                }
                Ok(Some(match outcome {
                    // With everything that the server asked before it answered.
                    Some(outcome) => {
                        self.progress().note(outcome.number);
                        TaskAnswer::Play(outcome.number)
                    }
                    None => {
                        let why = "this call became a task when it was recorded, and what came of it was not recorded";
                        let error = ErrorReply::new(code::INTERNAL_ERROR, why);
                        TaskAnswer::Reply(Reply::Error(error), Arc::clone(&recorded.place))
                    }
                }))
            }
        }
    }

    /// The answer to `tasks/get` or `tasks/result` that tells what came of a task, as the answer to the call that began it or
    /// to `tasks/result`: everything that the task wanted to know is asked first.
    pub(super) fn carried_out(&self, recorded: &Arc<Recorded>, asked: &Asked) -> io::Result<Arc<Recorded>> {
        if asked.method == Method::TOOLS_CALL && request(recorded).method() == Some(&Method::TASKS_RESULT) {
            return self.whole_task(recorded, asked.conversation);
        }
        let is_look = request(recorded).method() == Some(&Method::TASKS_GET) && shape(recorded) == Era::Modern;
        let task = recorded.reply().filter(|_| is_look).and_then(|reply| RecordedTask::shown(reply, Era::Modern));
        let Some((task, reply)) = task.and_then(|task| Some((task.clone(), task.outcome()?.clone()))) else {
            return Ok(Arc::clone(recorded));
        };
        let number = recorded.number;
        let said = self.said(&Outcome { number, recorded: Arc::clone(recorded), reply }, asked)?;
        let shown = self.shown_questions(&task.id, recorded.session)?;
        let (said, questions) = match asked.method == Method::TASKS_RESULT {
            false => (said, adapted(&shown, recorded, asked)),
            true => {
                let mut open = self.open_questions(&shown, &task.id, recorded, asked);
                open.iter_mut().for_each(|question| question.params["_meta"] = related_task(&task.id));
                (task.results(&said), open)
            }
        };
        Ok(recorded.asking(&questions, &said, asked.terms.revision))
    }

    /// What a task of 2026-07-28 wanted to know, in order.
    pub(super) fn shown_questions(&self, id: &str, session: u32) -> io::Result<Vec<Question>> {
        let mut questions: Vec<Question> = Vec::new();
        for number in self.about("tasks/get", id, Whose::Session(session))?.into_iter().rev() {
            let recorded = self.tape.recorded(number)?;
            let task = recorded.reply().and_then(|reply| RecordedTask::shown(reply, Era::Modern));
            for question in task.iter().flat_map(RecordedTask::questions) {
                if questions.iter().all(|known| known.name != question.name) {
                    questions.push(question.clone());
                }
            }
        }
        Ok(questions)
    }

    /// Of the questions of a task those that this client can be asked and was not yet.
    pub(super) fn open_questions(&self, all: &[Question], id: &str, of: &Recorded, asked: &Asked) -> Vec<Question> {
        let mut open = adapted(all, of, asked);
        let progress = self.progress();
        open.retain(|question| progress.is_open(asked.conversation, of.session, id, &question.name));
        open
    }

    fn said(&self, outcome: &Outcome, asked: &Asked) -> io::Result<Reply> {
        let info = self.info_of(outcome.recorded.session, asked.terms.era())?;
        Ok(task_outcome(&outcome.reply, outcome.recorded.revision, asked, &info))
    }

    /// What came of a task, from the last `tasks/result` or `tasks/get` that tells.
    fn outcome(&self, id: &str, whose: Whose<'_>) -> io::Result<Option<Outcome>> {
        for method in ["tasks/result", "tasks/get"] {
            for number in self.about(method, id, whose)? {
                let recorded = self.tape.recorded(number)?;
                let Some(said) = recorded.reply() else { continue };
                let reply = match method {
                    "tasks/result" => Some(said.clone()),
                    _ => RecordedTask::shown(said, Era::Modern).and_then(|task| task.outcome().cloned()),
                };
                if let Some(reply) = reply {
                    return Ok(Some(Outcome { number, recorded: self.whole_result(&recorded)?, reply }));
                }
            }
        }
        Ok(None)
    }

    /// An answer to `tasks/result` with everything that was said since the first time that it was asked for: a client that
    /// answers what the task wants to know may ask for the result again when it is there.
    fn whole_result(&self, recorded: &Arc<Recorded>) -> io::Result<Arc<Recorded>> {
        let id = task_of(recorded);
        let is_result = request(recorded).method() == Some(&Method::TASKS_RESULT);
        match id.filter(|_| is_result) {
            Some(id) => self.following(recorded, &id, Vec::new()),
            None => Ok(Arc::clone(recorded)),
        }
    }

    /// An answer to `tasks/result` with everything that was said since the task was called for.
    fn whole_task(&self, recorded: &Arc<Recorded>, conversation: u64) -> io::Result<Arc<Recorded>> {
        let Some(id) = task_of(recorded) else { return Ok(Arc::clone(recorded)) };
        let mut others = self.looks_at_task(&id, recorded)?;
        others.extend(self.progress().call_of(conversation, &id));
        self.following(recorded, &id, others)
    }

    /// An answer to `tasks/result` with everything that was said in others before it, and in those.
    fn following(&self, recorded: &Arc<Recorded>, id: &str, mut others: Vec<u32>) -> io::Result<Arc<Recorded>> {
        others.extend(self.about("tasks/result", id, Whose::Session(recorded.session))?);
        others.sort_unstable();
        let earlier = others.into_iter().filter(|number| *number < recorded.number);
        let earlier = earlier.map(|number| self.tape.recorded(number)).collect::<io::Result<Vec<_>>>()?;
        Ok(recorded.following(&earlier))
    }

    /// What was recorded of a method about a task, the last first.
    pub(super) fn about(&self, method: &str, id: &str, whose: Whose<'_>) -> io::Result<Vec<u32>> {
        let key = self.options.likeness.key(&method.into(), Some(&json!({"taskId": id})));
        let Some(group) = self.tape.index.group(key)? else { return Ok(Vec::new()) };
        let client = match whose {
            Whose::Session(session) => return self.tape.members_of_session(group, session, LOOKED_AT),
            Whose::Client(client) => client,
        };
        let suiting = |client: Option<&str>| {
            let mut numbers = Vec::new();
            for at in (0..group.count).rev().take(LOOKED_AT) {
                let number = self.tape.index.member(group, at)?;
                if self.suits(client, number)? {
                    numbers.push(number);
                }
            }
            Ok(numbers)
        };
        match suiting(client) {
            // A client that was never recorded hears what the others did.
            Ok(none) if none.is_empty() && self.hears_others(client)? => suiting(None),
            suiting => suiting,
        }
    }

    /// Notes that everything about a task was made use of.
    fn note_all(&self, method: &str, id: &str, whose: Whose<'_>) -> io::Result<()> {
        let numbers = self.about(method, id, whose)?;
        let mut progress = self.progress();
        numbers.into_iter().for_each(|number| progress.note(number));
        Ok(())
    }
}

/// Of recorded questions those that a client can be asked, as its version has them.
fn adapted(questions: &[Question], recorded: &Recorded, asked: &Asked) -> Vec<Question> {
    let mut questions = questions.to_vec();
    // What is in `_meta` names the task in its own conversation.
    for question in &mut questions {
        question.params.as_object_mut().map(|params| params.shift_remove("_meta"));
    }
    questions.into_iter().filter_map(|it| it.adapted(&asked.terms, recorded.revision).ok()).collect()
}

/// The task that a request is about.
fn task_of(recorded: &Recorded) -> Option<String> {
    request(recorded).params().and_then(|params| params.field("taskId")?.text())
}

/// The shape in which a recording speaks of tasks.
pub(super) fn shape(recorded: &Recorded) -> Era {
    recorded.revision.map_or(Era::Legacy, Revision::era)
}

/// A task of which only the end was recorded.
fn unshown(id: &str, outcome: &Outcome) -> Option<(RecordedTask, Arc<str>)> {
    let now = json!({"taskId": id, "status": "working", "createdAt": EPOCH, "lastUpdatedAt": EPOCH, "ttl": null});
    let reply = Reply::Result(rehearsal_core::json::RawJson::from_value(&now));
    Some((RecordedTask::shown(&reply, Era::Legacy)?, Arc::clone(&outcome.recorded.place)))
}

/// When nobody knows when.
const EPOCH: &str = "1970-01-01T00:00:00Z";
