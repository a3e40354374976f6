//! Tasks in both shapes: that of 2025-11-25 and that of the extension of 2026-07-28.

use serde_json::{Map, Value, json};

use super::answer::{Answer, ResultKind, WrittenFor};
use super::request_context::IncomingRequest;
use super::respond::InputRequest;
use super::script::TaskOptions;
use crate::json::RawJson;
use crate::message::{ErrorReply, Reply};
use crate::protocol::{Era, Revision, code, meta};
use crate::script::mock::TaskSupport;

/// The key in `_meta` that names the task of a result, in 2025-11-25.
const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// Work that continues after its request got a response.
#[derive(Clone, Debug)]
pub struct Task {
    /// A unique id that cannot be guessed.
    pub id: String,
    /// The options.
    pub options: TaskOptions,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: u64,
    /// When it last changed, in milliseconds since 1970.
    pub updated_ms: u64,
    /// The status.
    pub status: TaskStatus,
    /// The lifetime that the client requested, if it did.
    requested_ttl_ms: Option<u64>,
}

/// The status of a task.
#[derive(Clone, Debug)]
pub enum TaskStatus {
    /// The server works on it.
    Working,
    /// The client must send input responses first.
    InputRequired(Vec<InputRequest>),
    /// It has a result.
    Completed(RawJson),
    /// It has an error.
    Failed(ErrorReply),
    /// The client cancelled it.
    Cancelled,
}

impl TaskStatus {
    /// The name of the status. A tool result with `isError` is a failed task in 2025-11-25; since 2026-07-28 only an
    /// error is.
    fn name(&self, era: Era) -> &'static str {
        match self {
            TaskStatus::Working => "working",
            TaskStatus::InputRequired(_) => "input_required",
            TaskStatus::Completed(result) if era == Era::Legacy && is_failure(result) => "failed",
            TaskStatus::Completed(_) => "completed",
            TaskStatus::Failed(_) => "failed",
            TaskStatus::Cancelled => "cancelled",
        }
    }

    /// Whether the status is final.
    pub fn is_final(&self) -> bool {
        match self {
            TaskStatus::Working | TaskStatus::InputRequired(_) => false,
            TaskStatus::Completed(_) | TaskStatus::Failed(_) | TaskStatus::Cancelled => true,
        }
    }
}

impl Task {
    /// Creates a task that is working.
    pub fn new(id: String, options: TaskOptions, params: &Value, now_ms: u64) -> Task {
        let requested_ttl_ms = params.get("task").and_then(|task| task.get("ttl")).and_then(Value::as_u64);
        Task { id, options, created_ms: now_ms, updated_ms: now_ms, status: TaskStatus::Working, requested_ttl_ms }
    }

    /// Changes the status, unless it is final.
    pub fn change(&mut self, status: TaskStatus, now_ms: u64) {
        if !self.status.is_final() {
            (self.status, self.updated_ms) = (status, now_ms);
        }
    }

    /// Whether the task's lifetime is over.
    pub fn is_over(&self, now_ms: u64) -> bool {
        self.ttl_ms().is_some_and(|ttl| self.created_ms.saturating_add(ttl) < now_ms)
    }

    fn ttl_ms(&self) -> Option<u64> {
        self.options.ttl_ms.or(self.requested_ttl_ms)
    }

    /// The fields that both shapes have, under the names of an era.
    fn fields(&self, era: Era) -> Map<String, Value> {
        let mut fields = Map::new();
        fields.insert("taskId".to_owned(), self.id.as_str().into());
        fields.insert("status".to_owned(), self.status.name(era).into());
        if let Some(message) = &self.options.status_message {
            fields.insert("statusMessage".to_owned(), message.as_str().into());
        }
        fields.insert("createdAt".to_owned(), time(self.created_ms).into());
        fields.insert("lastUpdatedAt".to_owned(), time(self.updated_ms).into());
        let (ttl, poll) = match era {
            Era::Legacy => ("ttl", "pollInterval"),
            Era::Modern => ("ttlMs", "pollIntervalMs"),
        };
        fields.insert(ttl.to_owned(), self.ttl_ms().into());
        if let Some(interval) = self.options.poll_interval_ms {
            fields.insert(poll.to_owned(), interval.into());
        }
        fields
    }

    /// The answer to the request that created the task.
    pub fn created(&self, era: Era) -> Answer {
        let result = match era {
            Era::Legacy => json!({"task": self.fields(era)}),
            Era::Modern => Value::Object(self.fields(era)),
        };
        Answer { kind: ResultKind::Task, ..complete(&result) }
    }

    /// The answer to `tasks/get`, and to `tasks/cancel` before 2026-07-28.
    pub fn status_answer(&self, era: Era) -> Answer {
        complete(&match era {
            Era::Legacy => self.listed(),
            Era::Modern => self.details(),
        })
    }

    /// All members of the form of 2026-07-28: also the params of `notifications/tasks`.
    pub fn details(&self) -> Value {
        let mut fields = self.fields(Era::Modern);
        match &self.status {
            TaskStatus::Working | TaskStatus::Cancelled => {}
            TaskStatus::InputRequired(inputs) => {
                let requests = inputs.iter().map(|input| (input.name.clone(), input.entry()));
                fields.insert("inputRequests".to_owned(), Value::Object(requests.collect()));
            }
            TaskStatus::Completed(result) => {
                fields.insert("result".to_owned(), result.value().unwrap_or_default());
            }
            TaskStatus::Failed(error) => {
                let mut object = json!({"code": error.code, "message": error.message});
                if let Some(data) = error.data.as_ref().and_then(|data| data.value().ok()) {
                    object["data"] = data;
                }
                fields.insert("error".to_owned(), object);
            }
        }
        Value::Object(fields)
    }

    /// An element of `tasks/list`, which only 2025-11-25 has.
    pub fn listed(&self) -> Value {
        Value::Object(self.fields(Era::Legacy))
    }

    /// The answer to `tasks/result`, if the task is done.
    pub fn result(&self) -> Option<Reply> {
        match &self.status {
            TaskStatus::Working | TaskStatus::InputRequired(_) => None,
            TaskStatus::Completed(result) => {
                let mut result = result.value().unwrap_or_default();
                result["_meta"][RELATED_TASK] = json!({"taskId": self.id});
                Some(Reply::Result(RawJson::from_value(&result)))
            }
            TaskStatus::Failed(error) => Some(Reply::Error(error.clone())),
            TaskStatus::Cancelled => {
                Some(Reply::Error(ErrorReply::new(code::INVALID_PARAMS, format!("the task {} was cancelled", self.id))))
            }
        }
    }
}

/// The `_meta` that names the task of a message, in 2025-11-25.
pub fn related_task(id: &str) -> Value {
    json!({RELATED_TASK: {"taskId": id}})
}

/// The answer to a request that is only acknowledged, since 2026-07-28.
pub fn acknowledged() -> Answer {
    complete(&json!({}))
}

fn complete(result: &Value) -> Answer {
    let reply = Reply::Result(RawJson::from_value(result));
    Answer { written_for: WrittenFor::Verbatim, ..Answer::protocol(reply) }
}

/// A request about a task.
#[derive(Clone, Debug, PartialEq)]
pub enum TaskRequest {
    /// `tasks/get`
    Get(String),
    /// `tasks/result`, which waits for the end.
    Result(String),
    /// `tasks/list`
    List,
    /// `tasks/cancel`
    Cancel(String),
    /// `tasks/update`: input responses.
    Update(String, Map<String, Value>),
}

impl TaskRequest {
    /// The task of the request.
    pub fn id(&self) -> Option<&str> {
        match self {
            TaskRequest::List => None,
            TaskRequest::Get(id) | TaskRequest::Result(id) | TaskRequest::Cancel(id) | TaskRequest::Update(id, _) => {
                Some(id)
            }
        }
    }
}

/// The error for a client that did not declare the extension.
pub(super) fn missing_extension() -> ErrorReply {
    let data = json!({"requiredCapabilities": {"extensions": {meta::TASKS_EXTENSION: {}}}});
    let message = format!("this needs the extension {}", meta::TASKS_EXTENSION);
    ErrorReply::new(code::MISSING_CAPABILITY, message).with_data(&data)
}

/// Checks whether a request with or without a task is allowed for a tool, in 2025-11-25.
pub(super) fn check_task_support(
    request: &IncomingRequest,
    support: Option<TaskSupport>,
    has_tasks: bool,
) -> Result<(), ErrorReply> {
    if request.context.revision != Revision::V2025_11_25 {
        return Ok(());
    }
    let wanted = request.params.get("task").is_some();
    let refuse = |why| Err(ErrorReply::new(code::METHOD_NOT_FOUND, why));
    match support {
        Some(TaskSupport::Required) if !wanted => refuse("this tool can only be called as a task"),
        Some(TaskSupport::Forbidden) if wanted => refuse("this tool cannot be called as a task"),
        None if wanted && has_tasks => Ok(()),
        Some(TaskSupport::Required | TaskSupport::Optional | TaskSupport::Forbidden) | None => Ok(()),
    }
}

/// Whether this is a tool result with `isError`.
pub(super) fn is_failure(result: &RawJson) -> bool {
    result.value().is_ok_and(|result| result["isError"] == true)
}

/// A time in RFC 3339.
fn time(milliseconds: u64) -> String {
    let time = i64::try_from(milliseconds).ok().and_then(|it| jiff::Timestamp::from_millisecond(it).ok());
    time.unwrap_or(jiff::Timestamp::UNIX_EPOCH).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_tool_is_a_failed_task_only_in_2025_11_25() {
        let options =
            TaskOptions { after: None, ttl_ms: None, poll_interval_ms: None, status_message: None, required: false };
        let mut task = Task::new("1".to_owned(), options, &json!({}), 0);
        let failure = json!({"content": [{"type": "text", "text": "no"}], "isError": true});
        task.change(TaskStatus::Completed(RawJson::from_value(&failure)), 1);
        assert_eq!(task.listed()["status"], "failed");
        assert_eq!((&task.details()["status"], &task.details()["result"]), (&json!("completed"), &failure));
        let Some(Reply::Result(result)) = task.result() else { panic!("no result") };
        assert_eq!(result.value().unwrap()["isError"], true);
    }
}
