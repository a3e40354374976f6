//! Looks at a task of 2026-07-28 that wants to know something: it waits until its client has answered.
//!
//! ```text
//! recorded:  get < asks a     get < asks a    update a     get < done
//! replayed:  get < asks a     get < asks a    get < asks a    update a     get < done
//!       or:  get < asks a     update a        get < done
//! ```

use std::io;
use std::sync::Arc;

use rehearsal_core::answer::{Asked, Recorded, RecordedTask};
use rehearsal_core::message::Method;
use rehearsal_core::protocol::Era;
use rehearsal_core::trace::RequestKey;
use serde_json::{Value, json};

use super::options::Repeat;
use super::progress::Taken;
use super::replay::Shared;
use super::tape::request;
use super::tasks::{TaskAnswer, Whose, shape};

/// How many looks before another are looked at for what was said meanwhile.
const LOOKS: u32 = 64;

impl Shared {
    /// What a client is told that looks again at a task before it has answered; `None` where the task goes on.
    pub(super) fn still_asks(&self, asked: &Asked, key: RequestKey) -> io::Result<Option<TaskAnswer>> {
        let Some(id) = self.looks_at(asked) else { return Ok(None) };
        let Some(number) = self.last(key, asked)? else { return Ok(None) };
        let recorded = self.tape.recorded(number)?;
        let Some(task) = asking(&recorded) else { return Ok(None) };
        let whose = Whose::Session(recorded.session);
        // What went on by itself goes on.
        if self.about("tasks/update", id, whose)?.first().is_none_or(|last| *last < number) {
            return Ok(None);
        }
        let open = self.open_questions(task.questions(), id, &recorded, asked);
        match open.len() {
            0 => Ok(None),
            all if all == task.questions().len() => Ok(Some(TaskAnswer::Play(number))),
            _ => {
                let info = self.info_of(recorded.session, Era::Modern)?;
                Ok(Some(TaskAnswer::Reply(task.asks(&open, asked, &info), Arc::clone(&recorded.place))))
            }
        }
    }

    /// The next recording under a key, as [`Shared::take`] gives it; of looks at a task the next that asks for nothing that
    /// this client has answered already.
    pub(super) fn take_look(&self, key: RequestKey, asked: &Asked, repeat: Repeat) -> io::Result<Option<Taken>> {
        let Some(id) = self.looks_at(asked) else { return self.take(key, asked, repeat) };
        let mut before = self.last(key, asked)?;
        loop {
            let taken = self.take(key, asked, repeat)?;
            let Some(Taken::Fresh(number)) = taken else { return Ok(taken) };
            let recorded = self.tape.recorded(number)?;
            let Some(task) = asking(&recorded) else { return Ok(taken) };
            let whose = Whose::Session(recorded.session);
            // What was answered and is asked again was not what the server wanted.
            let since = before.map_or(0, |before| before.saturating_add(1));
            for update in self.about("tasks/update", id, whose)?.into_iter().filter(|it| (since..number).contains(it)) {
                let update = self.tape.recorded(update)?;
                let params = request(&update).params().and_then(|params| params.exact().ok());
                for name in answers(params.as_ref()) {
                    self.progress().ask_again(asked.conversation, recorded.session, id, name);
                }
            }
            let is_open = |name: &str| self.progress().is_open(asked.conversation, recorded.session, id, name);
            let is_wanted = task.questions().iter().any(|question| is_open(&question.name));
            let is_last = self.about("tasks/get", id, whose)?.first().is_none_or(|last| *last <= number);
            if is_wanted || is_last {
                return Ok(taken);
            }
            before = Some(number);
        }
    }

    /// Takes note of what a client answered to a task, or that it wants nothing more of it.
    pub(super) fn note_answers(&self, asked: &Asked, id: &str, of: Option<&Recorded>) -> io::Result<()> {
        let key = self.options.likeness.key(&Method::TASKS_GET, Some(&json!({"taskId": id})));
        let looked_at = self.last(key, asked)?.map(|number| self.tape.recorded(number)).transpose()?;
        for session in [of, looked_at.as_deref()].into_iter().flatten().map(|recorded| recorded.session) {
            if asked.method == Method::TASKS_CANCEL {
                for question in self.shown_questions(id, session)? {
                    self.progress().answer(asked.conversation, session, id, &question.name);
                }
            }
            for name in answers(Some(&asked.params)) {
                self.progress().answer(asked.conversation, session, id, name);
            }
        }
        Ok(())
    }

    /// The recorded looks at a task before another, or before its result: whoever looks less often makes fewer of them.
    pub(super) fn looks_before(&self, recorded: &Recorded, asked: &Asked) -> io::Result<Vec<u32>> {
        let is_about = self.has_tasks && [Method::TASKS_GET, Method::TASKS_RESULT].contains(&asked.method);
        match asked.params.get("taskId").and_then(Value::as_str) {
            Some(id) if is_about => self.looks_at_task(id, recorded),
            Some(_) | None => Ok(Vec::new()),
        }
    }

    /// The last recorded looks at a task before an exchange of its session, in order.
    pub(super) fn looks_at_task(&self, id: &str, before: &Recorded) -> io::Result<Vec<u32>> {
        let key = self.options.likeness.key(&Method::TASKS_GET, Some(&json!({"taskId": id})));
        let Some(group) = self.tape.index.group(key)? else { return Ok(Vec::new()) };
        let from = self.tape.place_in(group, before.session)?;
        let to = self.tape.place_of(group, before.number)?;
        (from.max(to.saturating_sub(LOOKS))..to).map(|at| self.tape.index.member(group, at)).collect()
    }

    /// The task that a request of 2026-07-28 looks at.
    fn looks_at<'a>(&self, asked: &'a Asked) -> Option<&'a str> {
        let looks = self.has_tasks && asked.method == Method::TASKS_GET && asked.terms.era() == Era::Modern;
        asked.params.get("taskId").and_then(Value::as_str).filter(|_| looks)
    }
}

/// The task that an answer to `tasks/get` of 2026-07-28 shows, where it waits for answers.
fn asking(recorded: &Recorded) -> Option<RecordedTask> {
    let reply = recorded.reply().filter(|_| shape(recorded) == Era::Modern)?;
    RecordedTask::shown(reply, Era::Modern).filter(|task| task.is_asking() && !task.questions().is_empty())
}

/// The names of what a client answers.
fn answers(params: Option<&Value>) -> impl Iterator<Item = &str> {
    let given = params.and_then(|params| params.get("inputResponses")).and_then(Value::as_object);
    given.into_iter().flatten().map(|(name, _)| name.as_str())
}
