//! Tasks: what is worked on after its request was answered, and the requests about it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rehearsal_core::answer::{AboutTask, Act, Mock, Play, Status, Task, TaskTerms, Terms, acknowledged, related_task};
use rehearsal_core::exchange::Channel;
use rehearsal_core::json::RawJson;
use rehearsal_core::message::{ErrorReply, Reply};
use rehearsal_core::protocol::{Era, code};
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, watch};

use super::call::Call;
use super::news::News;
use super::server::{Shared, now_ms, random, within};
use super::session::Session;

/// How many tasks are remembered; the oldest are forgotten.
const LIMIT: usize = 10_000;

/// Every task that somebody may ask about.
#[derive(Debug, Default)]
pub(super) struct Tasks(Mutex<All>);

#[derive(Debug, Default)]
struct All {
    by_id: HashMap<String, Arc<Running>>,
    /// The ids, oldest first.
    order: Vec<String>,
}

/// An answer to a question, by its name; an error says why there is none.
pub(crate) type Said = (String, Result<Value, String>);

/// A task, and how to reach whoever works on it.
#[derive(Debug)]
pub(super) struct Running {
    task: Mutex<Task>,
    changed: watch::Sender<u64>,
    cancelled: watch::Sender<bool>,
    answers: mpsc::UnboundedSender<Said>,
    /// Taken by whoever works on it.
    heard: Mutex<Option<mpsc::UnboundedReceiver<Said>>>,
}

impl Running {
    pub(super) fn task(&self) -> MutexGuard<'_, Task> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, status: Status) {
        self.task().change(status, now_ms());
        self.changed.send_modify(|count| *count += 1);
    }

    /// Tells whenever it changes.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Nobody wants it any more; `false` where it had ended already.
    pub(super) fn cancel(&self) -> bool {
        if self.task().status.is_final() {
            return false;
        }
        self.cancelled.send_replace(true);
        self.change(Status::Cancelled);
        true
    }

    /// Answers to what it asked.
    pub(super) fn answer(&self, answers: impl IntoIterator<Item = Said>) {
        for answer in answers {
            // Whoever worked on it may be gone.
            let _ = self.answers.send(answer);
        }
    }
}

impl Tasks {
    fn all(&self) -> MutexGuard<'_, All> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new task, which can be asked about from now on.
    pub(super) fn begin(&self, terms: TaskTerms, params: &Value) -> Arc<Running> {
        let id: String = random::<16>().iter().map(|byte| format!("{byte:02x}")).collect();
        let (answers, heard) = mpsc::unbounded_channel();
        let running = Arc::new(Running {
            task: Mutex::new(Task::new(id.clone(), terms, params, now_ms())),
            changed: watch::Sender::new(0),
            cancelled: watch::Sender::new(false),
            answers,
            heard: Mutex::new(Some(heard)),
        });
        let mut all = self.all();
        let now = now_ms();
        if all.order.len() >= LIMIT {
            let oldest = all.order.remove(0);
            all.by_id.remove(&oldest);
        }
        let over: Vec<_> =
            all.by_id.iter().filter(|(_, it)| it.task().is_over(now)).map(|(id, _)| id.clone()).collect();
        for id in over {
            all.by_id.remove(&id);
            all.order.retain(|other| *other != id);
        }
        all.by_id.insert(id.clone(), Arc::clone(&running));
        all.order.push(id);
        running
    }

    /// The task of that id.
    pub(super) fn find(&self, id: &str) -> Option<Arc<Running>> {
        let found = self.all().by_id.get(id).cloned()?;
        let is_over = found.task().is_over(now_ms());
        (!is_over).then_some(found)
    }

    /// Every task, oldest first.
    pub(super) fn list(&self) -> Vec<Arc<Running>> {
        let all = self.all();
        all.order.iter().filter_map(|id| all.by_id.get(id).cloned()).collect()
    }

    /// Forgets every task, and ends those that run.
    pub(super) fn clear(&self) {
        let all = std::mem::take(&mut *self.all());
        all.by_id.values().for_each(|running| {
            running.cancel();
        });
    }

    /// Works on a task until it is done, cancelled, or the server is stopped.
    pub(super) fn run(
        &self,
        server: Arc<Shared>,
        running: Arc<Running>,
        play: Box<Play>,
        heard_by: Option<Arc<Session>>,
    ) {
        let heard_by = heard_by.as_ref().map(Arc::downgrade);
        tokio::spawn(async move {
            let mut cancelled = running.cancelled.subscribe();
            tokio::select! {
                biased;
                _ = cancelled.wait_for(|cancelled| *cancelled) => {}
                () = server.stopped() => {}
                () = work(&server, &running, play, heard_by) => {}
            }
        });
    }
}

async fn work(server: &Arc<Shared>, running: &Running, mut play: Box<Play>, heard_by: Option<Weak<Session>>) {
    let taken = running.heard.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(mut answers) = taken else { return };
    let change = |status: Status| {
        running.change(status);
        server.news.tell(News::Task(running.task().id.clone()));
    };
    loop {
        let act = play.next(&mut server.state(), &server.world());
        match act {
            Act::Wait(delay) => tokio::time::sleep(within(delay)).await,
            Act::Notify { method, mut params } => {
                if let Some(session) = heard_by.as_ref().and_then(Weak::upgrade) {
                    let meta = related_task(&running.task().id);
                    merge(&mut params, meta);
                    session.notify(Channel::MAIN, method, &params).await;
                }
            }
            Act::Tell(changed) => server.news.tell_in_order(News::Changed(changed)).await,
            Act::Ask(questions) => {
                change(Status::InputRequired(questions));
                let Some((name, answer)) = answers.recv().await else { return };
                play.answered(&name, answer);
                // What came together is taken together.
                while let Ok((name, answer)) = answers.try_recv() {
                    play.answered(&name, answer);
                }
                change(Status::Working);
            }
            Act::Pose(_) | Act::Hear(_) | Act::Withdraw(..) | Act::CloseStream { .. } | Act::Detach(_) => {}
            Act::Reply(answer) => {
                change(match answer.reply {
                    Reply::Result(result) => Status::Completed(result),
                    Reply::Error(error) => Status::Failed(error),
                });
                return;
            }
        }
    }
}

fn merge(params: &mut Value, meta: Value) {
    let Some(object) = params.as_object_mut() else { return };
    let known = object.entry("_meta").or_insert_with(|| Value::Object(Map::new()));
    if let (Some(known), Value::Object(meta)) = (known.as_object_mut(), meta) {
        known.extend(meta);
    }
}

/// The answer to a request about a task; `None` where nobody wants one any more.
pub(super) async fn answer_request(call: &Call, mock: &Mock, terms: &Terms, about: AboutTask) -> Option<Reply> {
    let tasks = &call.session.server.tasks;
    let invalid = |why: String| Reply::Error(ErrorReply::new(code::INVALID_PARAMS, why));
    let id = match &about {
        AboutTask::List => {
            let listed: Vec<Value> = tasks.list().iter().map(|running| running.task().listed()).collect();
            return Some(Reply::Result(RawJson::from_value(&json!({"tasks": listed}))));
        }
        AboutTask::Get(id) | AboutTask::Result(id) | AboutTask::Cancel(id) | AboutTask::Update(id, _) => id.clone(),
    };
    let Some(running) = tasks.find(&id) else {
        return Some(invalid(format!("there is no task {id:?}")));
    };
    Some(match about {
        AboutTask::List | AboutTask::Get(_) => running.task().shown(mock, terms),
        AboutTask::Result(_) => result(call, &running).await?,
        AboutTask::Cancel(_) => {
            let cancelled = running.cancel();
            match terms.era() {
                // An acknowledgement, however often.
                Era::Modern => acknowledged(mock, terms),
                Era::Legacy if cancelled => running.task().shown(mock, terms),
                Era::Legacy => invalid(format!("the task {id} has ended already")),
            }
        }
        AboutTask::Update(_, answers) => {
            running.answer(answers.into_iter().map(|(name, answer)| (name, Ok(answer))));
            acknowledged(mock, terms)
        }
    })
}

/// `tasks/result`: waits for the end, and asks the client on the way what the task wants to know.
async fn result(call: &Call, running: &Running) -> Option<Reply> {
    let mut changes = running.changes();
    loop {
        changes.mark_unchanged();
        if let Some(reply) = running.task().result() {
            return Some(reply);
        }
        let (id, status) = {
            let task = running.task();
            (task.id.clone(), task.status.clone())
        };
        if let Status::InputRequired(questions) = status {
            let answers = call.ask(&questions, Some(&related_task(&id))).await.ok()?;
            running.answer(answers);
        }
        tokio::select! {
            changed = changes.changed() => changed.ok()?,
            _ = call.stopped() => return None,
        }
    }
}
