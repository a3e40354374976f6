//! Tasks: work that continues after its request was answered, and the requests about it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rehearsal_core::answer::{
    Action, ActiveResponder, Answer, Chain, ConnectionState, IncomingRequest, Task, TaskOptions, TaskRequest,
    TaskStatus, acknowledged, related_task,
};
use rehearsal_core::exchange::Channel;
use rehearsal_core::json::RawJson;
use rehearsal_core::message::{ErrorReply, Reply};
use rehearsal_core::protocol::{Era, code};
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, watch};

use super::active_request::ActiveRequest;
use super::change_broadcast::BroadcastEvent;
use super::connection::ServerConnection;
use super::server::{ServerState, now_ms, random, within};

/// How many tasks are kept; beyond it the oldest are dropped.
const MAX_TASKS: usize = 10_000;

/// The tasks that clients may poll.
#[derive(Debug, Default)]
pub(super) struct TaskTable(Mutex<Tasks>);

#[derive(Debug, Default)]
struct Tasks {
    by_id: HashMap<String, Arc<RunningTask>>,
    /// The ids, the oldest first.
    order: VecDeque<String>,
}

/// A response to an input request, by its name; an error is the reason why there is none.
pub(crate) type InputResponse = (String, Result<Value, String>);

/// A task, and how input reaches its work.
#[derive(Debug)]
pub(super) struct RunningTask {
    task: Mutex<Task>,
    changed: watch::Sender<u64>,
    cancelled: watch::Sender<bool>,
    inputs: mpsc::UnboundedSender<InputResponse>,
}

impl RunningTask {
    pub(super) fn task(&self) -> MutexGuard<'_, Task> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, status: TaskStatus) {
        self.task().change(status, now_ms());
        self.changed.send_modify(|count| *count += 1);
    }

    /// Cancels the task. Returns whether it was still running.
    fn cancel(&self) -> bool {
        if self.task().status.is_final() {
            return false;
        }
        self.cancelled.send_replace(true);
        self.change(TaskStatus::Cancelled);
        true
    }

    /// Passes input responses to the work.
    fn add_inputs(&self, responses: impl IntoIterator<Item = InputResponse>) {
        for response in responses {
            // The work may have ended.
            let _ = self.inputs.send(response);
        }
    }
}

impl TaskTable {
    fn tasks(&self) -> MutexGuard<'_, Tasks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a new task, and returns where its input arrives.
    fn add(&self, options: TaskOptions, params: &Value) -> (Arc<RunningTask>, mpsc::UnboundedReceiver<InputResponse>) {
        let id: String = random::<16>().iter().map(|byte| format!("{byte:02x}")).collect();
        let (inputs, received) = mpsc::unbounded_channel();
        let running = Arc::new(RunningTask {
            task: Mutex::new(Task::new(id.clone(), options, params, now_ms())),
            changed: watch::Sender::new(0),
            cancelled: watch::Sender::new(false),
            inputs,
        });
        let mut tasks = self.tasks();
        if tasks.order.len() >= MAX_TASKS
            && let Some(oldest) = tasks.order.pop_front()
        {
            tasks.by_id.remove(&oldest);
        }
        let now = now_ms();
        // Only the oldest are looked at, so that adding stays cheap.
        while let Some(oldest) = tasks.order.front().cloned()
            && tasks.by_id.get(&oldest).is_none_or(|task| task.task().is_over(now))
        {
            tasks.by_id.remove(&oldest);
            tasks.order.pop_front();
        }
        tasks.by_id.insert(id.clone(), Arc::clone(&running));
        tasks.order.push_back(id);
        (running, received)
    }

    /// The task with an id, until its time to live has passed.
    pub(super) fn find(&self, id: &str) -> Option<Arc<RunningTask>> {
        let found = self.tasks().by_id.get(id).cloned()?;
        let is_over = found.task().is_over(now_ms());
        (!is_over).then_some(found)
    }

    /// Every task, the oldest first.
    fn list(&self) -> Vec<Arc<RunningTask>> {
        let tasks = self.tasks();
        tasks.order.iter().filter_map(|id| tasks.by_id.get(id).cloned()).collect()
    }

    /// Cancels and removes every task.
    pub(super) fn clear(&self) {
        let tasks = std::mem::take(&mut *self.tasks());
        tasks.by_id.values().for_each(|running| {
            running.cancel();
        });
    }
}

/// Starts a task that continues a responder, and returns the answer to the request that created it.
pub(super) fn start(call: &ActiveRequest, responder: ActiveResponder, options: TaskOptions) -> Answer {
    let server = &call.connection.server;
    let (running, inputs) = server.tasks.add(options, &call.request.params);
    let era = call.request.context.era();
    let answer = Answer { provenance: responder.responder.provenance(), ..running.task().created(era) };
    let answer = call.finished(answer);
    let work = Work {
        server: Arc::clone(server),
        chain: Arc::clone(&call.chain),
        request: Arc::clone(&call.request),
        running,
        // Since 2026-07-28 notifications about a task go to its subscribers.
        connection: (era == Era::Legacy).then(|| Arc::downgrade(&call.connection)),
    };
    tokio::spawn(async move {
        let mut cancelled = work.running.cancelled.subscribe();
        tokio::select! {
            biased;
            _ = cancelled.wait_for(|cancelled| *cancelled) => {}
            () = work.server.stopped() => {}
            () = work.run(responder, inputs) => {}
        }
    });
    answer
}

/// The work of a task.
struct Work {
    server: Arc<ServerState>,
    chain: Arc<Chain>,
    request: Arc<IncomingRequest>,
    running: Arc<RunningTask>,
    connection: Option<Weak<ServerConnection>>,
}

impl Work {
    async fn run(&self, mut responder: ActiveResponder, mut inputs: mpsc::UnboundedReceiver<InputResponse>) {
        // The work outlives the connection that started it.
        let mut state = ConnectionState::default();
        loop {
            match self.chain.next(&mut responder, &self.request, &mut state, self.server.environment()) {
                Action::Wait(delay) => tokio::time::sleep(within(delay)).await,
                Action::Notify { method, mut params } => {
                    if let Some(connection) = self.connection.as_ref().and_then(Weak::upgrade) {
                        add_meta(&mut params, related_task(&self.running.task().id));
                        connection.notify(Channel::MAIN, method, &params).await;
                    }
                }
                Action::NotifySubscribers(change) => {
                    self.server.changes.send_and_wait(BroadcastEvent::Change(change)).await;
                }
                Action::RequestInput(requests) => self.change(TaskStatus::InputRequired(requests)),
                Action::AwaitInput(_) => {
                    let Some((name, input)) = inputs.recv().await else { return };
                    responder.responder.set_input(&name, input);
                    while let Ok((name, input)) = inputs.try_recv() {
                        responder.responder.set_input(&name, input);
                    }
                    self.change(TaskStatus::Working);
                }
                Action::CancelInput(..) | Action::CloseStream { .. } | Action::StartTask(_) => {}
                Action::Reply(answer) => {
                    return self.change(match answer.reply {
                        Reply::Result(result) => TaskStatus::Completed(result),
                        Reply::Error(error) => TaskStatus::Failed(error),
                    });
                }
                Action::End => return,
            }
        }
    }

    fn change(&self, status: TaskStatus) {
        self.running.change(status);
        let (id, details) = {
            let task = self.running.task();
            (task.id.clone(), task.details())
        };
        self.server.changes.send(BroadcastEvent::Task(id, Arc::new(details)));
    }
}

fn add_meta(params: &mut Value, meta: Value) {
    let Some(object) = params.as_object_mut() else { return };
    let known = object.entry("_meta").or_insert_with(|| Value::Object(Map::new()));
    if let (Some(known), Value::Object(meta)) = (known.as_object_mut(), meta) {
        known.extend(meta);
    }
}

/// The answer to a request about a task; `None` if the request needs no answer any more.
pub(super) async fn answer(call: &ActiveRequest, request: TaskRequest) -> Option<Answer> {
    let (tasks, era) = (&call.connection.server.tasks, call.request.context.era());
    let invalid = |why: String| Answer::protocol(Reply::Error(ErrorReply::new(code::INVALID_PARAMS, why)));
    let Some(id) = request.id().map(str::to_owned) else {
        let listed: Vec<Value> = tasks.list().iter().map(|running| running.task().listed()).collect();
        return Some(Answer::protocol(Reply::Result(RawJson::from_value(&json!({"tasks": listed})))));
    };
    let Some(running) = tasks.find(&id) else {
        return Some(invalid(format!("there is no task {id:?}")));
    };
    Some(match request {
        TaskRequest::List | TaskRequest::Get(_) => running.task().status_answer(era),
        TaskRequest::Result(_) => Answer::protocol(result(call, &running).await?),
        TaskRequest::Cancel(_) => {
            let was_running = running.cancel();
            match era {
                // An acknowledgement, also if the task has ended.
                Era::Modern => acknowledged(),
                Era::Legacy if was_running => running.task().status_answer(era),
                Era::Legacy => invalid(format!("the task {id} has ended already")),
            }
        }
        TaskRequest::Update(_, responses) => {
            running.add_inputs(responses.into_iter().map(|(name, response)| (name, Ok(response))));
            acknowledged()
        }
    })
}

/// `tasks/result`: waits for the end of the task, and requests the input that the task needs until then.
async fn result(call: &ActiveRequest, running: &RunningTask) -> Option<Reply> {
    let mut changes = running.changed.subscribe();
    loop {
        changes.mark_unchanged();
        if let Some(reply) = running.task().result() {
            return Some(reply);
        }
        let (id, status) = {
            let task = running.task();
            (task.id.clone(), task.status.clone())
        };
        if let TaskStatus::InputRequired(requests) = status {
            let responses = call.request_input(&requests, Some(&related_task(&id))).await.ok()?;
            running.add_inputs(responses);
        }
        tokio::select! {
            changed = changes.changed() => changed.ok()?,
            _ = call.stopped() => return None,
        }
    }
}
