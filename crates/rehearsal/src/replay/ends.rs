//! Tasks that a client knows to have ended: they never go back.
//!
//! ```text
//! recorded:  get < working   get < working   result < gold   get < completed
//! replayed:  result < gold   get < completed
//! ```
//!
//! The server of a recording answered in the order in which its client asked. Another client asks in another order, and what was said
//! about a task before it ended is no answer any more once this client has seen that it has.

use std::io;
use std::sync::Arc;

use rehearsal_core::answer::{Asked, Recorded, RecordedTask, Thing, ended_as};
use rehearsal_core::message::{Method, Reply};
use rehearsal_core::protocol::Era;
use rehearsal_core::trace::RequestKey;
use serde_json::Value;

use super::options::Repeat;
use super::progress::{Ended, Taken};
use super::replay::Shared;
use super::tasks::shape;

impl Shared {
    /// How a task has ended that this request is about, as far as its client knows.
    pub(super) fn known_end(&self, asked: &Asked) -> Option<Ended> {
        let id = asked.params.get("taskId").and_then(Value::as_str).filter(|_| self.has_tasks)?;
        self.progress().ended_task(asked.conversation, id).cloned()
    }

    /// Takes note of what a client is told about a task, where that is its end. `session` is that of the task, and `look` the recording that
    /// tells it, where one does.
    pub(super) fn see(&self, asked: &Asked, session: u32, look: Option<u32>, reply: &Reply) {
        let asks = [Method::TASKS_GET, Method::TASKS_RESULT, Method::TASKS_CANCEL];
        if !self.has_tasks || !asks.contains(&asked.method) {
            return;
        }
        let Some(id) = asked.params.get("taskId").and_then(Value::as_str) else { return };
        let era = asked.terms.era();
        let shown = RecordedTask::shown(reply, era).filter(|_| asked.method != Method::TASKS_RESULT);
        let status = match asked.method == Method::TASKS_RESULT {
            true => Some(ended_as(reply, era).to_owned()),
            false => shown.and_then(|task| task.ended().map(str::to_owned)),
        };
        if let Some(status) = status {
            let look = look.filter(|_| asked.method == Method::TASKS_GET);
            self.progress().end_task(asked.conversation, id, Ended { status, session, look });
        }
    }

    /// The next look at a task that has ended, as [`Shared::take`] gives it: one that shows the end. Looks at another task of the same
    /// name stay where they are.
    pub(super) fn take_end(
        &self,
        known: &Ended,
        key: RequestKey,
        asked: &Asked,
        repeat: Repeat,
    ) -> io::Result<Option<Taken>> {
        loop {
            if let Some(next) = self.upcoming(key, asked)?
                && self.tape.index.exchange(next)?.session != known.session
            {
                break;
            }
            match self.take(key, asked, repeat)? {
                Some(Taken::Fresh(number)) => {
                    let recorded = self.tape.recorded(number)?;
                    if recorded.session == known.session && shows_end(&recorded) {
                        return Ok(Some(Taken::Fresh(number)));
                    }
                }
                Some(Taken::UsedUp(answers)) => return Ok(Some(Taken::UsedUp(answers))),
                Some(Taken::Again(_) | Taken::None) | None => break,
            }
        }
        Ok(match known.look {
            Some(look) => Some(Taken::Again(look)),
            None => self.last(key, asked)?.map(Taken::Again),
        })
    }

    /// Takes out of what is told to a client what it knows better: that a task is at work which has ended. What else is told of
    /// ends, and of a task that begins, is taken note of.
    pub(super) fn leave_out_ended(&self, rounds: &mut [Arc<Recorded>], missed: &mut Vec<Thing>, asked: &Asked) {
        let (true, Some(first)) = (self.has_tasks, rounds.first()) else { return };
        let session = first.session;
        let begun = rounds.last().and_then(|round| round.reply()).and_then(RecordedTask::begun);
        // Whoever knows no tasks hears nothing of them, and comes back to what it has not heard.
        let knows_tasks = asked.terms.era() == Era::Legacy || asked.terms.has_tasks_extension();
        let mut progress = self.progress();
        if let Some(task) = begun {
            progress.begin_task(asked.conversation, &task.id);
        }
        let mut is_news = |thing: &Thing| {
            let Some(task) = task_told(thing) else { return true };
            if !knows_tasks {
                return false;
            }
            let Some(status) = task.ended() else {
                return progress.ended_task(asked.conversation, &task.id).is_none();
            };
            progress.end_task(asked.conversation, &task.id, Ended { status: status.to_owned(), session, look: None });
            true
        };
        missed.retain(&mut is_news);
        for round in rounds.iter_mut().filter(|round| round.things.iter().any(|thing| task_told(thing).is_some())) {
            Arc::make_mut(round).things.retain(&mut is_news);
        }
    }
}

/// The task that a notification is about, and how far it is.
fn task_told(thing: &Thing) -> Option<RecordedTask> {
    let told = thing.told().filter(|it| [Method::TASK_STATUS, Method::TASKS_NOTIFICATION].contains(&it.method))?;
    RecordedTask::shown(&Reply::Result(told.params.clone()?), Era::Legacy)
}

/// Whether a recorded look at a task shows that it has ended, or that there is no such task.
pub(super) fn shows_end(recorded: &Recorded) -> bool {
    match recorded.reply() {
        Some(reply @ Reply::Result(_)) => {
            RecordedTask::shown(reply, shape(recorded)).is_some_and(|task| task.is_ended())
        }
        Some(Reply::Error(_)) => true,
        None => false,
    }
}
