//! Requests about tasks.

use rehearsal_core::answer::{AboutTask, Mock, Status, Terms, acknowledged, related_task};
use rehearsal_core::json::RawJson;
use rehearsal_core::message::{ErrorReply, Reply};
use rehearsal_core::protocol::{Era, code};
use serde_json::{Value, json};

use super::call::Call;
use super::tasks::Running;

/// The answer to a request about a task; `None` where nobody wants one any more.
pub(super) async fn answer(call: &Call, mock: &Mock, terms: &Terms, about: AboutTask) -> Option<Reply> {
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
