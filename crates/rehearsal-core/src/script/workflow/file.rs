//! A workflow as its author writes it.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::OnError;
use crate::script::Located;

/// A workflow file.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkflowFile {
    /// The purpose of the workflow, for reports.
    pub intent: Option<String>,
    /// Maximum number of tasks that run at the same time; 8 unless given.
    pub concurrency: Option<Located<usize>>,
    /// The tasks.
    pub tasks: Vec<Located<TaskEntry>>,
    /// The value of the workflow: any JSON with references; the result of each task by its id unless given.
    pub result: Option<Located<Value>>,
}

/// A task: one call of a tool.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskEntry {
    /// The name of the task, unique in the file.
    pub id: Located<String>,
    /// `server:tool`.
    pub tool: Located<String>,
    /// The arguments. `{ $from: TASK, path: $.x }` is a value from an earlier result; `${TASK.x}` in a string, too.
    pub arguments: Option<Located<Map<String, Value>>>,
    /// The tasks that must end first. A task that is referred to need not be listed.
    #[serde(default)]
    pub depends_on: Vec<Located<String>>,
    /// A condition on an earlier result. If it does not hold, the task is skipped.
    pub when: Option<Located<WhenEntry>>,
    /// What follows if the call fails: `stop` (unless given), `continue` or `skip_dependents`.
    #[serde(default)]
    pub on_error: OnError,
}

/// A condition on the result of an earlier task.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WhenEntry {
    /// The task.
    #[serde(rename = "$from")]
    pub from: Located<String>,
    /// The JSONPath of the value in its result; the whole result unless given.
    pub path: Option<Located<String>>,
    /// A matcher for the value; unless given, the value must not be `null`, `false`, `0` or `""`.
    pub is: Option<Located<Value>>,
}

/// The JSON Schema of a workflow file, for completion and checks in editors.
pub fn json_schema() -> Value {
    let mut schema = schemars::schema_for!(WorkflowFile);
    schema.insert("title".to_owned(), "A workflow of tool calls".into());
    schema.into()
}
