//! Checks a workflow: unique ids, references that lead to tasks, and no cycles.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};

use super::file::{TaskEntry, WorkflowFile};
use super::reference::{Reference, TaskValue, ValueProblem};
use super::{TaskCondition, Workflow, WorkflowTask};
use crate::json::Path;
use crate::matcher::Matcher;
use crate::script::span_tree::SpanTree;
use crate::script::{Located, ScriptProblem, Span};
use crate::suggest::closest;

/// The number of tasks that run at the same time, unless the file has another.
const DEFAULT_CONCURRENCY: usize = 8;

/// Checks a file; the problems are in its order.
pub(super) fn check(file: WorkflowFile, text: &str) -> Result<Workflow, Vec<ScriptProblem>> {
    let mut checker = Checker { tree: SpanTree::parse(text).ok(), ids: HashMap::new(), problems: Vec::new() };
    checker.index(&file.tasks);
    let tasks: Vec<WorkflowTask> = file.tasks.iter().map(|entry| checker.task(&entry.value)).collect();
    let result = file.result.map(|value| checker.value(&value.value, value.at));
    if file.tasks.is_empty() {
        checker.problem(Span::START, "a workflow needs at least one task");
    }
    let concurrency = match &file.concurrency {
        Some(Located { value: 0, at }) => {
            checker.problem(*at, "`concurrency` must be at least 1");
            1
        }
        Some(limit) => limit.value,
        None => DEFAULT_CONCURRENCY,
    };
    checker.cycles(&file.tasks, &tasks);
    if checker.problems.is_empty() {
        return Ok(Workflow { intent: file.intent, concurrency, tasks, result });
    }
    checker.problems.sort_by_key(|problem| problem.at.start);
    Err(checker.problems)
}

struct Checker {
    tree: Option<SpanTree>,
    ids: HashMap<String, usize>,
    problems: Vec<ScriptProblem>,
}

impl Checker {
    fn index(&mut self, tasks: &[Located<TaskEntry>]) {
        let mut first: BTreeMap<&str, Span> = BTreeMap::new();
        for (index, task) in tasks.iter().enumerate() {
            let id = &task.id;
            if id.is_empty() || id.contains(['.', '[', '}', '$']) {
                self.problem(
                    id.at,
                    format!("`{}` cannot be the id of a task: use letters, digits, `_` and `-`", id.value),
                );
            } else if let Some(other) = first.get(id.as_str()) {
                self.problem(id.at, format!("the id `{}` is taken by the task in line {}", id.value, other.line));
            } else {
                first.insert(id, id.at);
                self.ids.insert(id.value.clone(), index);
            }
        }
    }

    fn task(&mut self, entry: &TaskEntry) -> WorkflowTask {
        let (server, tool) = match entry.tool.split_once(':') {
            Some((server, tool)) if !server.is_empty() && !tool.is_empty() => (server, tool),
            _ => {
                let message = format!("`{}` names no server; write `server:tool`", entry.tool.value);
                self.problem(entry.tool.at, message);
                ("", "")
            }
        };
        let mut depends_on = Vec::new();
        for name in &entry.depends_on {
            match self.ids.get(&name.value) {
                Some(index) => depends_on.push(*index),
                None => self.unknown(name.at, &name.value),
            }
        }
        let arguments = match &entry.arguments {
            Some(arguments) => self.value(&Value::Object(arguments.value.clone()), arguments.at),
            None => TaskValue::Plain(json!({})),
        };
        let mut references = Vec::new();
        arguments.references(&mut references);
        depends_on.extend(references.into_iter().map(|reference| reference.task));
        let when = entry.when.as_ref().and_then(|when| self.condition(when));
        depends_on.extend(when.iter().map(|when| when.reference.task));
        depends_on.sort_unstable();
        depends_on.dedup();
        WorkflowTask {
            id: entry.id.value.clone(),
            server: server.to_owned(),
            tool: tool.to_owned(),
            at: entry.tool.at,
            arguments,
            depends_on,
            when,
            on_error: entry.on_error,
        }
    }

    fn condition(&mut self, when: &Located<super::WhenEntry>) -> Option<TaskCondition> {
        let Some(index) = self.ids.get(&when.from.value).copied() else {
            self.unknown(when.from.at, &when.from.value);
            return None;
        };
        let path = when.path.as_ref().map_or("$", |path| &path.value);
        let text = format!("{{ $from: {}, path: {path} }}", when.from.value);
        let reference = match Reference::new(index, path, text) {
            Ok(reference) => reference,
            Err(message) => {
                self.problem(when.path.as_ref().map_or(when.at, |path| path.at), message);
                return None;
            }
        };
        let is = match when.is.as_ref().map(|written| (written.at, Matcher::parse(&written.value))) {
            None => None,
            Some((_, Ok(matcher))) => Some(matcher),
            Some((at, Err(error))) => {
                self.problem(at, error.to_string());
                return None;
            }
        };
        Some(TaskCondition { reference, is })
    }

    fn value(&mut self, value: &Value, at: Span) -> TaskValue {
        let ids = &self.ids;
        let mut found = Vec::new();
        let parsed = TaskValue::parse(value, &|name| ids.get(name).copied(), &Path::root(), &mut found);
        for ValueProblem { path, message, hint } in found {
            let at = self.tree.as_ref().map_or(at, |tree| tree.find(at, &path));
            let hint = hint.or_else(|| self.similar(message.strip_prefix("no task `")?.strip_suffix('`')?));
            self.problems.push(ScriptProblem { at, message, hint });
        }
        parsed
    }

    fn unknown(&mut self, at: Span, name: &str) {
        let hint = self.similar(name);
        self.problems.push(ScriptProblem { at, message: format!("no task `{name}`"), hint });
    }

    fn similar(&self, name: &str) -> Option<String> {
        let closest = closest(name, self.ids.keys().map(String::as_str))?;
        Some(format!("did you mean `{closest}`?"))
    }

    fn problem(&mut self, at: Span, message: impl Into<String>) {
        self.problems.push(ScriptProblem::new(at, message));
    }

    /// Reports each cycle once, at the task of it that is first in the file.
    fn cycles(&mut self, entries: &[Located<TaskEntry>], tasks: &[WorkflowTask]) {
        #[derive(Clone, Copy, PartialEq)]
        enum Visit {
            New,
            Active,
            Done,
        }
        let mut visits = vec![Visit::New; tasks.len()];
        for start in 0..tasks.len() {
            if visits[start] != Visit::New {
                continue;
            }
            // A path from `start`, and for each of its tasks the next dependency to follow.
            let mut path = vec![(start, 0)];
            visits[start] = Visit::Active;
            while let Some((task, next)) = path.last_mut() {
                let (task, dependency) = (*task, tasks[*task].depends_on.get(*next).copied());
                *next += 1;
                let Some(dependency) = dependency else {
                    visits[task] = Visit::Done;
                    path.pop();
                    continue;
                };
                match visits[dependency] {
                    Visit::Done => {}
                    Visit::New => {
                        visits[dependency] = Visit::Active;
                        path.push((dependency, 0));
                    }
                    Visit::Active => {
                        let from = path.iter().position(|(task, _)| *task == dependency).unwrap_or(0);
                        let mut names: Vec<&str> =
                            path[from..].iter().map(|(task, _)| tasks[*task].id.as_str()).collect();
                        names.push(&tasks[dependency].id);
                        let message = format!("these tasks wait for each other: {}", names.join(" → "));
                        self.problem(entries[dependency].id.at, message);
                    }
                }
            }
        }
    }
}
