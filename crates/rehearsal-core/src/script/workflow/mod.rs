//! Workflow files: tasks that call tools, in an order given by their dependencies.
//!
//! ```text
//! text ──parse──► Workflow: tasks with references to earlier results ──resolve──► arguments of one call
//! ```

mod check;
mod file;
mod reference;

use serde_json::Value;

pub use file::{TaskEntry, WhenEntry, WorkflowFile, json_schema};
pub use reference::{Reference, ReferenceError, TaskValue};

use crate::matcher::Matcher;
use crate::script::{ScriptError, Span, read};

/// A workflow, checked: every reference leads to a task, and no task waits for itself.
#[derive(Clone, Debug)]
pub struct Workflow {
    /// The purpose of the workflow.
    pub intent: Option<String>,
    /// Maximum number of tasks that run at the same time.
    pub concurrency: usize,
    /// The tasks, in the order of the file.
    pub tasks: Vec<WorkflowTask>,
    /// The value of the workflow; without one it is an object with the result of each task.
    pub result: Option<TaskValue>,
}

/// One call of a tool.
#[derive(Clone, Debug)]
pub struct WorkflowTask {
    /// The name, unique in the workflow.
    pub id: String,
    /// The server.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// The place of `tool` in the file.
    pub at: Span,
    /// The arguments.
    pub arguments: TaskValue,
    /// The indexes of the tasks that must end first: those of `depends_on`, and those that are referred to.
    pub depends_on: Vec<usize>,
    /// The condition under which the task runs.
    pub when: Option<TaskCondition>,
    /// What follows if the call fails.
    pub on_error: OnError,
}

/// A condition on the result of an earlier task.
#[derive(Clone, Debug)]
pub struct TaskCondition {
    /// The value.
    pub reference: Reference,
    /// The matcher for it.
    pub is: Option<Matcher>,
}

impl TaskCondition {
    /// Whether the condition holds for a value. Without a matcher, the value must not be `null`, `false`, `0` or `""`.
    pub fn holds(&self, value: &Value) -> bool {
        match (&self.is, value) {
            (Some(matcher), value) => matcher.matches(value),
            (None, Value::Null) => false,
            (None, Value::Bool(value)) => *value,
            (None, Value::Number(value)) => value.as_f64() != Some(0.0),
            (None, Value::String(value)) => !value.is_empty(),
            (None, Value::Array(_) | Value::Object(_)) => true,
        }
    }

    /// The value that decides; `null` if it is missing.
    pub fn value(&self, result_of: &dyn Fn(usize) -> Option<Value>) -> Value {
        let value = result_of(self.reference.task).and_then(|result| self.reference.value(&result).ok());
        value.unwrap_or(Value::Null)
    }
}

impl Workflow {
    /// Every reference to the result of a task.
    pub fn references(&self) -> Vec<&Reference> {
        let mut found: Vec<&Reference> =
            self.tasks.iter().filter_map(|task| Some(&task.when.as_ref()?.reference)).collect();
        self.tasks.iter().for_each(|task| task.arguments.references(&mut found));
        self.result.iter().for_each(|result| result.references(&mut found));
        found
    }
}

/// What follows if the call of a task fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// The workflow stops; no further task begins.
    #[default]
    Stop,
    /// The workflow continues. The result of the task is `null`.
    Continue,
    /// Tasks that depend on this one are skipped; the others run.
    SkipDependents,
}

/// Parses and checks a workflow; all problems are returned at once, in the order of the file.
pub fn parse(file: &str, text: &str) -> Result<Workflow, ScriptError> {
    let written: WorkflowFile = read(file, text)?;
    check::check(written, text).map_err(|problems| ScriptError { file: file.to_owned(), problems })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn problems(text: &str) -> Vec<String> {
        let error = parse("plan.yaml", text).unwrap_err().to_string();
        error.lines().map(str::to_owned).collect()
    }

    #[test]
    fn references_become_dependencies_and_values() {
        let workflow = parse(
            "plan.yaml",
            r#"
tasks:
  - { id: list, tool: "fs:list", arguments: { path: /srv } }
  - id: read
    tool: fs:read
    arguments: { path: "/srv/${list.files[0].name}", size: "${list.files[0].size}", all: { $from: list } }
    when: { $from: list, path: "$.files[0].size", is: { gt: 3 } }
"#,
        )
        .unwrap();
        let read = &workflow.tasks[1];
        assert_eq!((read.server.as_str(), read.tool.as_str(), &read.depends_on[..]), ("fs", "read", &[0][..]));
        let result = json!({"files": [{"name": "a.md", "size": 5}]});
        let of = |task: usize| (task == 0).then(|| result.clone());
        let when = read.when.as_ref().unwrap();
        assert!(when.holds(&when.value(&of)));
        let arguments = read.arguments.resolve(&of).unwrap();
        assert_eq!(arguments, json!({"path": "/srv/a.md", "size": 5, "all": result}));
        let (known, unknown) = read.arguments.known_parts();
        assert_eq!((known["path"].clone(), unknown.len()), (Value::Null, 3));
    }

    #[test]
    fn a_missing_value_is_an_error_that_names_the_reference() {
        let text = "tasks: [{id: a, tool: 's:t'}, {id: b, tool: 's:t', arguments: {x: '${a.y}'}}]";
        let workflow = parse("plan.yaml", text).unwrap();
        let error = workflow.tasks[1].arguments.resolve(&|_| Some(json!({}))).unwrap_err();
        assert_eq!(error.to_string(), "${a.y} has no value in the result of its task");
    }

    #[test]
    fn every_problem_has_its_place() {
        let text = "\
tasks:
  - { id: a, tool: s:t, depends_on: [c] }
  - { id: b, tool: s:t, depends_on: [a] }
  - { id: c, tool: s:t, depends_on: [b] }
  - { id: a, tool: s:t }
  - { id: d, tool: read_file }
  - { id: e, tool: s:t, arguments: { x: '${lst.y}', y: { $from: bb } }, depends_on: [zz] }
";
        assert_eq!(
            problems(text),
            [
                "plan.yaml:2:11: these tasks wait for each other: a → c → b → a",
                "plan.yaml:5:11: the id `a` is taken by the task in line 2",
                "plan.yaml:6:20: `read_file` names no server; write `server:tool`",
                "plan.yaml:7:41: no task `lst`",
                "plan.yaml:7:56: no task `bb`; did you mean `b`?",
                "plan.yaml:7:86: no task `zz`",
            ]
        );
        assert_eq!(
            problems("tasks: [{ id: a, tol: s:t }]"),
            ["plan.yaml:1:18: unknown key `tol`; did you mean `tool`?"]
        );
        assert_eq!(problems("tasks: []"), ["plan.yaml:1:1: a workflow needs at least one task"]);
    }

    #[test]
    fn a_condition_without_a_matcher_needs_a_value_that_is_not_empty() {
        let text = "tasks: [{id: a, tool: s:t}, {id: b, tool: s:t, when: {$from: a}}]";
        let workflow = parse("workflow.yaml", text).unwrap();
        let when = workflow.tasks[1].when.as_ref().unwrap();
        for (value, holds) in [
            (json!(null), false),
            (json!(false), false),
            (json!(0), false),
            (json!(""), false),
            (json!(true), true),
            (json!(7), true),
            (json!("x"), true),
            (json!([]), true),
            (json!({"a": 1}), true),
        ] {
            assert_eq!(when.holds(&value), holds, "{value}");
        }
    }
}
