//! Runs a workflow in virtual time.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use rehearsal_core::json::{Path, Segment};
use rehearsal_core::script::Span;
use rehearsal_core::script::workflow::{OnError, Workflow, WorkflowTask};
use rehearsal_sandbox::ProbeRecord;
use serde_json::{Map, Value};

use super::call::{Answerer, CallEnd, PlannedCall, RunEvent};
use super::catalogue::Servers;
use super::report::{AnswerOrigin, FindingCode, PlanPlace};
use super::run::{DecisionSite, PlanFailure, PlanRunner, RunRecord, SiteKind, Variation};
use super::simulation::Simulation;

/// Maximum index in an array of a placeholder.
const MAX_PLACEHOLDER_ELEMENTS: usize = 1000;

/// The state of a task.
#[derive(Clone, Debug)]
enum TaskState {
    Waiting,
    /// Its call is made.
    Running,
    /// Its result is known.
    Ended(Value),
    /// It did not run, or it failed and its dependents are skipped.
    Skipped(String),
}

/// Runs a workflow several times. Each `when` is a decision.
pub(super) struct TaskRunner<'a> {
    workflow: &'a Workflow,
    file: &'a str,
    servers: &'a Servers,
    sites: Vec<DecisionSite>,
    /// The task of each decision.
    deciding: Vec<usize>,
}

impl<'a> TaskRunner<'a> {
    pub(super) fn new(workflow: &'a Workflow, file: &'a str, servers: &'a Servers) -> TaskRunner<'a> {
        let (mut sites, mut deciding) = (Vec::new(), Vec::new());
        for (index, task) in workflow.tasks.iter().enumerate().filter(|(_, task)| task.when.is_some()) {
            let (place, text) = (place(file, task.at), format!("`when` of task {}", task.id));
            sites.push(DecisionSite {
                kind: SiteKind::Condition,
                place,
                text,
                is_loop: false,
                choices: 2,
                derived_from: Vec::new(),
            });
            deciding.push(index);
        }
        TaskRunner { workflow, file, servers, sites, deciding }
    }
}

impl PlanRunner for TaskRunner<'_> {
    /// Runs the tasks: each begins when the tasks that it depends on have ended, up to the limit of the workflow.
    fn run(&mut self, variation: &Variation) -> RunRecord {
        let mut simulation = Simulation::new(self.servers, variation, &[]);
        let followed = variation.follow.iter().enumerate().filter(|(_, sequence)| !sequence.is_empty());
        let mut forced: HashMap<usize, bool> = followed.map(|(site, sequence)| (site, sequence == "1")).collect();
        forced.extend(variation.force.and_then(|force| Some((usize::try_from(force.site).ok()?, force.choice == 1))));
        let forced = forced.into_iter().filter_map(|(site, holds)| Some((*self.deciding.get(site)?, holds))).collect();
        let run = TaskRun::new(self.workflow, self.file, forced).finish(&mut simulation);
        let decisions = self.deciding.iter().map(|task| run.decisions[*task].clone()).collect();
        let record = run.record(simulation.now_ms());
        RunRecord { decisions, calls: simulation.into_calls(), ..record }
    }

    fn sites(&self) -> &[DecisionSite] {
        &self.sites
    }

    /// A `when` has one call: that of its task.
    fn side_of(&self, site: usize, place: &PlanPlace) -> Option<bool> {
        (self.sites.get(site)?.place == *place).then_some(true)
    }

    fn derived_arguments(&self, _: &PlanPlace) -> Vec<(&str, &[u32])> {
        Vec::new()
    }

    fn is_discarded(&self, _: &PlanPlace) -> bool {
        false
    }
}

struct TaskRun<'a> {
    workflow: &'a Workflow,
    file: &'a str,
    states: Vec<TaskState>,
    /// The call of each task.
    calls: Vec<Option<usize>>,
    failure: Option<PlanFailure>,
    /// The placeholder of each task: a value in which every reference to it finds something.
    placeholders: Vec<Value>,
    /// Whether the result of a task is a placeholder.
    is_placeholder: Vec<bool>,
    /// The outcomes of `when` that are forced, by task.
    forced: HashMap<usize, bool>,
    /// What the `when` of each task decided.
    decisions: Vec<ProbeRecord>,
    /// The tasks whose calls could not be made, and that the workflow goes on without, with the reason.
    not_made: Vec<(usize, String)>,
}

/// A value for each task in which every reference to it finds something.
fn placeholders(workflow: &Workflow) -> Vec<Value> {
    let mut values = vec![Value::Null; workflow.tasks.len()];
    for reference in workflow.references() {
        if let Some(path) = reference.path() {
            add_path(&mut values[reference.task], path.segments());
        }
    }
    values
}

/// Adds a member or an element at a path; the last one is text.
fn add_path(value: &mut Value, path: &[Segment]) {
    let Some((first, rest)) = path.split_first() else { return };
    let child = match first {
        Segment::Key(key) => {
            if !value.is_object() {
                *value = Value::Object(Map::new());
            }
            let Value::Object(members) = value else { return };
            members.entry(key.as_str()).or_insert(Value::Null)
        }
        Segment::Index(index) => {
            if !value.is_array() {
                *value = Value::Array(Vec::new());
            }
            let Value::Array(elements) = value else { return };
            if elements.len() <= *index && *index < MAX_PLACEHOLDER_ELEMENTS {
                elements.resize(index + 1, Value::Null);
            }
            let Some(element) = elements.get_mut(*index) else { return };
            element
        }
    };
    if rest.is_empty() && child.is_null() {
        *child = Value::String("text".to_owned());
    }
    add_path(child, rest);
}

/// Runs a workflow once. The record has no calls: the answerer has them.
pub(crate) fn run_tasks(workflow: &Workflow, file: &str, answerer: &mut dyn Answerer) -> RunRecord {
    let run = TaskRun::new(workflow, file, HashMap::new()).finish(answerer);
    run.record(answerer.now_ms())
}

impl<'a> TaskRun<'a> {
    fn new(workflow: &'a Workflow, file: &'a str, forced: HashMap<usize, bool>) -> TaskRun<'a> {
        TaskRun {
            workflow,
            file,
            states: vec![TaskState::Waiting; workflow.tasks.len()],
            calls: vec![None; workflow.tasks.len()],
            failure: None,
            placeholders: placeholders(workflow),
            is_placeholder: vec![false; workflow.tasks.len()],
            forced,
            decisions: vec![ProbeRecord::default(); workflow.tasks.len()],
            not_made: Vec::new(),
        }
    }

    /// Runs until no task is left that can run.
    fn finish(mut self, answerer: &mut dyn Answerer) -> Self {
        loop {
            self.start_ready(answerer);
            match answerer.advance(None) {
                RunEvent::Delivered { calls, .. } => calls.into_iter().for_each(|call| self.end(call, &*answerer)),
                RunEvent::Timer | RunEvent::Nothing => return self,
            }
        }
    }

    fn start_ready(&mut self, answerer: &mut dyn Answerer) {
        // A task that is skipped, or that fails before its call, can make others ready.
        let mut changed = true;
        while changed {
            changed = false;
            for index in 0..self.states.len() {
                let running = self.states.iter().filter(|state| matches!(state, TaskState::Running)).count();
                if self.failure.is_some() || running >= self.workflow.concurrency {
                    return;
                }
                if !matches!(self.states[index], TaskState::Waiting) {
                    continue;
                }
                if let Some(next) = self.start(index, answerer) {
                    self.states[index] = next;
                    changed = true;
                }
            }
        }
    }

    /// The next state of a waiting task; `None` if it must still wait.
    fn start(&mut self, index: usize, answerer: &mut dyn Answerer) -> Option<TaskState> {
        let task = &self.workflow.tasks[index];
        for dependency in &task.depends_on {
            match &self.states[*dependency] {
                TaskState::Waiting | TaskState::Running => return None,
                TaskState::Skipped(_) => {
                    let name = &self.workflow.tasks[*dependency].id;
                    return Some(TaskState::Skipped(format!("task {name}, which it depends on, has no result")));
                }
                TaskState::Ended(_) => {}
            }
        }
        let result_of = |index: usize| match &self.states[index] {
            TaskState::Ended(value) => Some(value.clone()),
            TaskState::Waiting | TaskState::Running | TaskState::Skipped(_) => None,
        };
        if let Some(when) = &task.when {
            let value = when.value(&result_of);
            let holds = self.forced.get(&index).copied().unwrap_or_else(|| when.holds(&value));
            let mut operand = DefaultHasher::new();
            value.to_string().hash(&mut operand);
            self.decisions[index] = ProbeRecord {
                yes: u32::from(holds),
                no: u32::from(!holds),
                decisions: u64::from(holds),
                operands: operand.finish(),
                first_operands: operand.finish(),
                sequence: if holds { "1" } else { "0" }.to_owned(),
            };
            if !holds {
                return Some(TaskState::Skipped("its `when` does not hold".to_owned()));
            }
        }
        let arguments = match task.arguments.resolve(&result_of) {
            Ok(arguments) => arguments,
            Err(error) => return Some(self.fail(task, format!("task {}: {error}", task.id), None)),
        };
        let after = task.depends_on.iter().filter_map(|dependency| self.calls[*dependency]).collect();
        let place = place(self.file, task.at);
        let call = PlannedCall {
            key: answerer.next_key(&task.server, &task.tool, Some(&place)),
            server: task.server.clone(),
            tool: task.tool.clone(),
            arguments,
            place: Some(place),
            task: Some(task.id.clone()),
            lossy: Vec::new(),
            is_caught: task.on_error != OnError::Stop,
            after: Some(after),
            guessed: self.guessed(task),
            placeholder: CallEnd::Value(self.placeholders[index].clone()),
        };
        let call = answerer.call(call, answerer.now_ms());
        self.calls[index] = Some(call);
        Some(TaskState::Running)
    }

    /// The paths of arguments that come from tasks whose result is a placeholder.
    fn guessed(&self, task: &WorkflowTask) -> Vec<Path> {
        task.arguments.paths_of(&|index| self.is_placeholder[index])
    }

    /// Notes the end of a call.
    fn end(&mut self, call: usize, answerer: &dyn Answerer) {
        let Some(index) = self.calls.iter().position(|other| *other == Some(call)) else { return };
        let task = &self.workflow.tasks[index];
        self.is_placeholder[index] =
            matches!(answerer.get(call).origin, AnswerOrigin::Placeholder | AnswerOrigin::None);
        self.states[index] = match &answerer.get(call).end {
            CallEnd::Value(value) => TaskState::Ended(value.clone()),
            CallEnd::Recorder => TaskState::Ended(Value::Null),
            CallEnd::Error { message, .. } => {
                self.fail(task, format!("task {} ({}:{}): {message}", task.id, task.server, task.tool), Some(call))
            }
        };
    }

    fn fail(&mut self, task: &WorkflowTask, message: String, call: Option<usize>) -> TaskState {
        match task.on_error {
            OnError::Continue => {
                if call.is_none() {
                    let index = self.workflow.tasks.iter().position(|other| other.id == task.id);
                    self.not_made.extend(index.map(|index| (index, message)));
                }
                TaskState::Ended(Value::Null)
            }
            OnError::SkipDependents => TaskState::Skipped(message),
            OnError::Stop => {
                let place = Some(place(self.file, task.at));
                let failure = PlanFailure { code: FindingCode::PlanError, message, place, call, is_endless: false };
                self.failure.get_or_insert(failure);
                TaskState::Skipped("it failed".to_owned())
            }
        }
    }

    fn record(self, duration_ms: f64) -> RunRecord {
        let result_of = |index: usize| match &self.states[index] {
            TaskState::Ended(value) => Some(value.clone()),
            TaskState::Waiting | TaskState::Running | TaskState::Skipped(_) => None,
        };
        let mut failure = self.failure.clone();
        let value = match (&failure, &self.workflow.result) {
            (Some(_), _) => Value::Null,
            (None, Some(result)) => result.resolve(&result_of).unwrap_or_else(|error| {
                let message = format!("result: {error}");
                failure = Some(PlanFailure {
                    code: FindingCode::PlanError,
                    message,
                    place: None,
                    call: None,
                    is_endless: false,
                });
                Value::Null
            }),
            (None, None) => {
                let tasks = self.workflow.tasks.iter().enumerate();
                let results = tasks.filter_map(|(index, task)| Some((task.id.clone(), result_of(index)?)));
                Value::Object(results.collect::<Map<String, Value>>())
            }
        };
        let skipped = self.states.iter().enumerate().filter_map(|(index, state)| match state {
            TaskState::Skipped(reason) if self.calls[index].is_none() => Some((index, reason.clone())),
            TaskState::Waiting => Some((index, "the workflow stopped before it".to_owned())),
            TaskState::Skipped(_) | TaskState::Running | TaskState::Ended(_) => None,
        });
        let skipped = skipped.chain(self.not_made.iter().cloned()).collect();
        RunRecord { value, failure, skipped, duration_ms, ..RunRecord::default() }
    }
}

/// The place of a span.
pub(crate) fn place(file: &str, at: Span) -> PlanPlace {
    let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    PlanPlace { file: file.to_owned(), line: number(at.line), column: Some(number(at.column)), via: Vec::new() }
}
