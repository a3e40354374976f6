//! Runs a plan of code in the sandbox, and answers its calls.

use std::collections::HashMap;
use std::mem;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rehearsal_core::json::{Path, PathQuery, Segment};
use rehearsal_core::report::Severity;
use rehearsal_sandbox::{
    CallOutcome, CompiledPlan, Deliver, Diagnostic, ErrorKind, Host, Idle, Level, Levels, Limit, PlanError,
    PlanException, Pool, ProbeKind, ProbeSite, Program, RecordedShape, RunOptions, RunOutcome, SandboxError,
    SourcePlace, StaticCall, Worker,
};
use serde_json::Value;
use serde_json::value::to_raw_value;

use super::alternates::compared_rounds;
use super::assemble::{finding, invalid};
use super::call::{AnsweredCall, Answerer, CallEnd, PlannedCall, RunEvent};
use super::catalogue::Servers;
use super::options::DryRunOptions;
use super::plan::Plan;
use super::report::{DryRunReport, FindingCode, PlanFinding, PlanPlace, SandboxLevels, Via};
use super::run::{CallKey, CallSite, DecisionSite, PlanFailure, PlanRunner, RunRecord, SiteKind, Variation};
use super::simulation::Simulation;
use super::static_check::StaticCheck;
use super::violations::KnownArguments;
use super::{DryRunError, Rehearsal};

/// Maximum number of runs that record the use of placeholders: a placeholder may lead to calls with further ones.
const MAX_RECORDER_RUNS: usize = 3;

/// The argument with which a program that uses this library runs as the worker of a sandbox.
const WORKER_ARGUMENT: &str = "__rehearsal-plan-worker";

/// Runs before `main`, so that any program with this library can be its own worker: a test binary has no `main` to change.
#[used]
#[expect(unsafe_code, reason = "the section of constructors")]
// SAFETY: the C library calls each function in this section once, before `main` and on the only thread. The function returns
// at once, unless the process was started as a worker; then it never returns. It uses nothing that `main` sets up: the
// standard library takes the arguments from a constructor of its own, which comes earlier.
#[unsafe(link_section = ".init_array")]
static RUN_AS_WORKER: extern "C" fn() = run_as_worker;

extern "C" fn run_as_worker() {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == WORKER_ARGUMENT) {
        rehearsal_sandbox::worker_main();
    }
}

/// A worker for one plan. The first is started now, because a program that makes one dry run needs no others; from the second
/// on they come from a pool. Unused workers exit with the program, when their stdin is closed.
pub(crate) fn take_worker() -> Result<Worker, SandboxError> {
    static HAS_RUN: AtomicBool = AtomicBool::new(false);
    static POOL: OnceLock<Pool> = OnceLock::new();
    // Without a use the linker may leave the constructor out.
    std::hint::black_box(&RUN_AS_WORKER);
    let program = Program::current(WORKER_ARGUMENT)
        .map_err(|source| SandboxError::Spawn { path: "(the running program)".into(), source })?;
    match HAS_RUN.swap(true, Ordering::Relaxed) {
        false => Worker::start(&program),
        true => POOL.get_or_init(|| Pool::new(program)).take(),
    }
}

/// Compiles and runs a plan.
pub(super) fn dry_run(plan: &Plan, options: &DryRunOptions) -> Result<DryRunReport, DryRunError> {
    let begun = Instant::now();
    let compiled = match rehearsal_sandbox::compile(&plan.file, &plan.text) {
        Ok(compiled) => compiled,
        Err(diagnostics) => {
            let findings = diagnostics.into_iter().map(|diagnostic| syntax_finding(plan, diagnostic));
            return Ok(invalid(plan, options.intent.clone(), findings.collect()));
        }
    };
    let servers = Servers::new(options)?;
    let worker = take_worker()?;
    let levels = sandbox_levels(worker.levels());
    let run_options = RunOptions {
        seed: options.seed,
        catalogue: servers.tools(),
        limits: options.limits.clone(),
        ..RunOptions::default()
    };
    let mut runner = Runner::new(&compiled, &servers, run_options, worker);
    let runs_started = Instant::now();
    let record = runner.base_run();
    let mut findings = servers.unknown_declarations(&options.effects);
    findings.extend(isolation_finding(&levels));
    findings.extend(unseen_finding(&compiled, &record));
    if compiled.is_partly_probed {
        let message = "the plan has so many decisions that what depends on the last of them is not searched";
        findings.push(finding(FindingCode::Budget, Severity::Warning, message));
    }
    let unreached = unreached_calls(&servers, &compiled, &record);
    let rehearsal = Rehearsal {
        plan,
        options,
        servers: &servers,
        begun,
        runs_started,
        findings,
        unreached,
        intent: options.intent.clone(),
    };
    Ok(rehearsal.report(&mut runner, record, compared_rounds(&compiled.compared), Some(levels)))
}

/// Runs a plan several times in one worker.
struct Runner<'a> {
    plan: &'a CompiledPlan,
    servers: &'a Servers,
    options: RunOptions,
    worker: Worker,
    sites: Vec<DecisionSite>,
    placeholders: Placeholders,
    /// Whether repeated calls get empty answers after some invented ones, because the plan does not end otherwise.
    ends_loops: bool,
}

/// What runs have found out about placeholders.
#[derive(Default)]
struct Placeholders {
    /// Their values by call, shaped by what the plan used of them.
    shapes: HashMap<CallKey, Value>,
    /// The value of any call from a place.
    of_place: HashMap<CallSite, Value>,
    /// The paths of the arguments that come from placeholders, by the call with the arguments.
    guessed: HashMap<CallKey, Vec<Path>>,
}

impl<'a> Runner<'a> {
    fn new(plan: &'a CompiledPlan, servers: &'a Servers, options: RunOptions, worker: Worker) -> Runner<'a> {
        let sites = plan.sites.iter().map(|site| decision_site(&plan.file, site)).collect();
        Runner { plan, servers, options, worker, sites, placeholders: Placeholders::default(), ends_loops: false }
    }

    /// The base run. If the plan does not end, because each invented answer leads to another call, it runs again with empty
    /// answers after some.
    fn base_run(&mut self) -> RunRecord {
        let record = self.run_with_placeholders();
        if !record.failure.as_ref().is_some_and(|failure| failure.is_endless) || !record.repeats_invented_calls() {
            return record;
        }
        self.ends_loops = true;
        self.run_with_placeholders()
    }

    /// A run with values for its placeholders: runs before it record what the plan does with those that are not known yet. A
    /// run without a recorder is the last.
    fn run_with_placeholders(&mut self) -> RunRecord {
        for _ in 0..MAX_RECORDER_RUNS {
            let (record, recorded) = self.run_once(&Variation::default(), true);
            if !record.calls.iter().any(|call| call.end == CallEnd::Recorder) {
                return record;
            }
            if recorded.is_empty() {
                break;
            }
            for RecordedShape { call, example } in recorded {
                let Some(call) = call_index(call).and_then(|index| record.calls.get(index)) else { continue };
                let key = &call.call.key;
                if !example.is_null() {
                    self.placeholders.of_place.entry(key.site.clone()).or_insert_with(|| example.clone());
                }
                self.placeholders.shapes.insert(key.clone(), example);
            }
            // More runs would not end, either.
            let is_endless = record.failure.as_ref().is_some_and(|failure| failure.is_endless);
            for call in record.calls {
                self.placeholders.guessed.insert(call.call.key, call.call.guessed);
            }
            if is_endless {
                break;
            }
        }
        self.run_once(&Variation::default(), false).0
    }

    /// One run. With `record_placeholders` a placeholder without a shape is a recorder.
    fn run_once(&mut self, variation: &Variation, record_placeholders: bool) -> (RunRecord, Vec<RecordedShape>) {
        let mut simulation =
            Simulation::new(self.servers, variation, &self.plan.compared).ending_loops(self.ends_loops);
        let options = RunOptions {
            seed: if variation.other_seed { !self.options.seed } else { self.options.seed },
            epoch_ms: simulation.epoch_ms().cast_signed(),
            force: variation.force,
            follow: variation.follow.clone(),
            ..self.options.clone()
        };
        let mut host = PlanHost {
            plan: self.plan,
            answerer: &mut simulation,
            placeholders: &self.placeholders,
            record_placeholders,
        };
        let mut outcome = self.worker.run(self.plan, &options, &mut host);
        let recorded = mem::take(&mut outcome.shapes);
        let record = record(self.plan, outcome);
        (RunRecord { calls: simulation.into_calls(), ..record }, recorded)
    }
}

impl PlanRunner for Runner<'_> {
    fn run(&mut self, variation: &Variation) -> RunRecord {
        // Other values can lead to calls that the base run did not make.
        self.run_once(variation, !variation.is_base()).0
    }

    fn sites(&self) -> &[DecisionSite] {
        &self.sites
    }

    fn side_of(&self, site: usize, place: &PlanPlace) -> Option<bool> {
        let via = place.via.iter().map(|via| (via.line, via.column)).collect();
        self.plan.sites.get(site)?.side_of(&SourcePlace { line: place.line, column: place.column, via })
    }

    fn derived_arguments(&self, place: &PlanPlace) -> Vec<(&str, &[u32])> {
        let at = (place.line, place.column.unwrap_or_default());
        let here = self.plan.derived_arguments.iter().filter(|(other, ..)| *other == at);
        here.map(|(_, name, from)| (name.as_str(), from.as_slice())).collect()
    }

    fn is_discarded(&self, place: &PlanPlace) -> bool {
        self.plan.discarded_calls.iter().any(|other| is_place(place, other))
    }
}

fn decision_site(file: &str, site: &ProbeSite) -> DecisionSite {
    let kind = match site.kind {
        ProbeKind::Condition | ProbeKind::LoopCondition | ProbeKind::Nullish => SiteKind::Condition,
        ProbeKind::Switch => SiteKind::Switch,
        ProbeKind::Loop => SiteKind::Loop,
        ProbeKind::Catch => SiteKind::Catch,
        ProbeKind::Derivation => SiteKind::Derivation,
    };
    let (place, text) = (plan_place(file, site.place.clone()), site.text.clone());
    let choices = match site.kind {
        // A value that is not there cannot be forced.
        ProbeKind::Nullish => 1,
        ProbeKind::Switch => site.cases,
        ProbeKind::Condition | ProbeKind::LoopCondition => 2,
        ProbeKind::Loop | ProbeKind::Catch | ProbeKind::Derivation => 0,
    };
    DecisionSite {
        kind,
        place,
        text,
        is_loop: site.kind == ProbeKind::LoopCondition,
        choices,
        derived_from: site.derived_from.clone(),
    }
}

/// Runs a plan once. The record has no calls: the answerer has them.
pub(crate) fn run_plan(
    plan: &CompiledPlan,
    worker: &mut Worker,
    options: &RunOptions,
    answerer: &mut dyn Answerer,
) -> RunRecord {
    let placeholders = &Placeholders::default();
    let mut host = PlanHost { plan, answerer, placeholders, record_placeholders: false };
    record(plan, worker.run(plan, options, &mut host))
}

/// Answers the calls of one run.
struct PlanHost<'a> {
    plan: &'a CompiledPlan,
    answerer: &'a mut dyn Answerer,
    placeholders: &'a Placeholders,
    record_placeholders: bool,
}

impl Host for PlanHost<'_> {
    fn idle(&mut self, batch: Idle) -> Deliver {
        self.answerer.prepare(&batch.calls.iter().map(|call| call.server.as_str()).collect());
        for call in batch.calls {
            let lossy = call.lossy.iter().map(|lossy| format!("{}: {}", lossy.path, lossy.message));
            let is_caught = call.place.as_ref().is_some_and(|place| self.plan.is_caught(place));
            let place = call.place.map(|place| plan_place(&self.plan.file, place));
            let key = self.answerer.next_key(&call.server, &call.tool, place.as_ref());
            let placeholder = match self.placeholders.shapes.get(&key) {
                Some(shape) => CallEnd::Value(shape.clone()),
                None if self.record_placeholders => CallEnd::Recorder,
                None => CallEnd::Value(self.placeholders.of_place.get(&key.site).cloned().unwrap_or_default()),
            };
            let mut guessed = self.placeholders.guessed.get(&key).cloned().unwrap_or_default();
            guessed.extend(call.unknown.iter().filter_map(|path| guessed_part(path)));
            let planned = PlannedCall {
                key,
                // The worker sends JSON, or its frame is refused.
                arguments: serde_json::from_str(call.arguments.get()).unwrap_or_default(),
                is_caught,
                place,
                lossy: lossy.collect(),
                server: call.server,
                tool: call.tool,
                task: None,
                after: None,
                placeholder,
                guessed,
            };
            self.answerer.call(planned, call.at_ms);
        }
        match self.answerer.advance(batch.timer_ms) {
            RunEvent::Delivered { now_ms, calls } => {
                let results = calls.into_iter().map(|index| (call_id(index), outcome(self.answerer.get(index))));
                Deliver::Results { now_ms, results: results.collect() }
            }
            RunEvent::Timer => Deliver::FireTimer,
            RunEvent::Nothing => Deliver::Cancel,
        }
    }
}

/// The part of the arguments whose type is a guess: the value, or the list with it, which a method of the guess made.
fn guessed_part(path: &str) -> Option<Path> {
    let mut path = PathQuery::parse(path).ok()?.single().cloned()?;
    while matches!(path.segments().last(), Some(Segment::Index(_))) {
        path.pop();
    }
    Some(path)
}

/// The worker counts calls from 1.
fn call_id(index: usize) -> u32 {
    u32::try_from(index + 1).unwrap_or(u32::MAX)
}

fn call_index(id: u32) -> Option<usize> {
    usize::try_from(id).ok()?.checked_sub(1)
}

fn outcome(call: &AnsweredCall) -> CallOutcome {
    match &call.end {
        CallEnd::Value(value) => match to_raw_value(value) {
            Ok(value) => CallOutcome::Value(value),
            Err(error) => {
                CallOutcome::Error { kind: ErrorKind::Protocol, message: error.to_string(), content: Value::Null }
            }
        },
        CallEnd::Recorder => CallOutcome::Recorder,
        CallEnd::Error { kind, message, content } => {
            CallOutcome::Error { kind: *kind, message: message.clone(), content: content.clone() }
        }
    }
}

/// What a run leaves behind, without its calls.
fn record(plan: &CompiledPlan, outcome: RunOutcome) -> RunRecord {
    let (value, failure) = match outcome.result {
        Ok(value) => (serde_json::from_str(value.get()).unwrap_or_default(), None),
        Err(error) => (Value::Null, Some(plan_failure(&plan.file, error))),
    };
    RunRecord {
        value,
        failure,
        console: outcome.console.into_iter().map(|line| line.text).collect(),
        lossy: outcome.result_lossy.iter().map(|lossy| format!("{}: {}", lossy.path, lossy.message)).collect(),
        unhandled: outcome.unhandled.into_iter().map(|exception| exception_failure(&plan.file, exception)).collect(),
        not_awaited: outcome.not_awaited.into_iter().filter_map(call_index).collect(),
        unfinished: outcome.unfinished.into_iter().filter_map(call_index).collect(),
        duration_ms: outcome.ended_ms,
        calls: Vec::new(),
        skipped: Vec::new(),
        decisions: outcome.sites,
    }
}

fn plan_failure(file: &str, error: PlanError) -> PlanFailure {
    let message = error.to_string();
    let is_endless = matches!(error, PlanError::Limit(Limit::Cpu(_) | Limit::Calls(_)));
    let code = match error {
        PlanError::Exception(exception) => return exception_failure(file, exception),
        PlanError::Limit(_) => FindingCode::Limit,
        PlanError::Stuck | PlanError::Cancelled => FindingCode::PlanError,
        PlanError::Worker(_) | PlanError::Host(_) => FindingCode::Sandbox,
    };
    PlanFailure { code, message, place: None, call: None, is_endless }
}

fn exception_failure(file: &str, exception: PlanException) -> PlanFailure {
    PlanFailure {
        code: FindingCode::PlanError,
        message: exception.to_string(),
        call: exception.call.and_then(call_index),
        place: exception.place.map(|place| plan_place(file, place)),
        is_endless: false,
    }
}

fn plan_place(file: &str, place: SourcePlace) -> PlanPlace {
    let via = place.via.into_iter().map(|(line, column)| Via { line, column });
    PlanPlace { file: file.to_owned(), line: place.line, column: place.column, via: via.collect() }
}

pub(crate) fn syntax_finding(plan: &Plan, diagnostic: Diagnostic) -> PlanFinding {
    PlanFinding {
        place: Some(plan_place(&plan.file, diagnostic.place)),
        hint: diagnostic.hint,
        source_line: Some(diagnostic.source_line),
        ..finding(FindingCode::Syntax, Severity::Error, diagnostic.message)
    }
}

/// The calls that the source names and that did not run, each checked as far as the source fixes its arguments.
fn unreached_calls(servers: &Servers, plan: &CompiledPlan, record: &RunRecord) -> Vec<StaticCheck> {
    let has_run = |call: &&StaticCall| record.calls.iter().any(|other| is_at(other, &call.place));
    let unreached = plan.static_calls.iter().filter(|call| !has_run(call));
    let check = |call: &StaticCall| {
        let arguments = &call.arguments;
        let path = |pointer: &String| Path::from_pointer(pointer, &arguments.value);
        let unknown: Vec<Path> = arguments.unknown.iter().map(path).collect();
        let open: Vec<Path> = arguments.open.iter().map(path).collect();
        let known = KnownArguments { value: &arguments.value, unknown: &unknown, open: &open };
        let place = plan_place(&plan.file, call.place.clone());
        let reason = "this run did not reach it".to_owned();
        StaticCheck::new(servers, (&call.server, &call.tool), place, &known, reason)
    };
    let mut checks: Vec<StaticCheck> = unreached.map(check).collect();
    // A tool that is kept or passed on may be called where the source does not show it.
    for reference in &plan.tool_references {
        let name = (reference.server.as_str(), reference.tool.as_str());
        let is_called = record.calls.iter().any(|call| (call.call.server.as_str(), call.call.tool.as_str()) == name)
            || plan.static_calls.iter().any(|call| (call.server.as_str(), call.tool.as_str()) == name);
        if !is_called {
            let known = KnownArguments { value: &Value::Null, unknown: &[Path::root()], open: &[] };
            let place = plan_place(&plan.file, reference.place.clone());
            let reason = "it is passed on here, and this run did not call it".to_owned();
            checks.push(StaticCheck::new(servers, name, place, &known, reason));
        }
    }
    let has_run = |place: &&SourcePlace| record.calls.iter().any(|call| is_at(call, place));
    let computed = plan.computed_calls.iter().filter(|place| !has_run(place));
    checks.extend(computed.map(|place| StaticCheck::computed(plan_place(&plan.file, place.clone()))));
    checks
}

fn is_at(call: &AnsweredCall, place: &SourcePlace) -> bool {
    call.call.place.as_ref().is_some_and(|other| is_place(other, place))
}

fn is_place(one: &PlanPlace, other: &SourcePlace) -> bool {
    one.line == other.line && one.column == other.column
}

/// The calls that the run did not reach and whose tool only a run can determine.
fn unseen_finding(plan: &CompiledPlan, record: &RunRecord) -> Option<PlanFinding> {
    let has_run = |place: &&SourcePlace| record.calls.iter().any(|call| is_at(call, place));
    let unseen: Vec<String> =
        plan.computed_calls.iter().filter(|place| !has_run(place)).map(ToString::to_string).collect();
    let what = match unseen.len() {
        0 => return None,
        1 => "1 call with a computed name in a path that did not run".to_owned(),
        count => format!("{count} calls with a computed name in paths that did not run"),
    };
    let message = format!("{what} ({}): the tool is not checked", unseen.join(", "));
    Some(finding(FindingCode::Unseen, Severity::Warning, message))
}

pub(crate) fn sandbox_levels(levels: &Levels) -> SandboxLevels {
    let text = |level: &Level| match level {
        Level::Enforced => "enforced".to_owned(),
        Level::Partial(reason) => format!("partial: {reason}"),
        Level::Unavailable(reason) => format!("unavailable: {reason}"),
    };
    SandboxLevels { landlock: text(&levels.landlock), seccomp: text(&levels.seccomp), rlimits: text(&levels.rlimits) }
}

pub(crate) fn isolation_finding(levels: &SandboxLevels) -> Option<PlanFinding> {
    let parts = [("landlock", &levels.landlock), ("seccomp", &levels.seccomp), ("rlimits", &levels.rlimits)];
    let weak = parts.into_iter().filter(|(_, level)| *level != "enforced");
    let weak: Vec<String> = weak.map(|(name, level)| format!("{name} {level}")).collect();
    if weak.is_empty() {
        return None;
    }
    let message = format!("the kernel does not enforce all of the sandbox: {}", weak.join(", "));
    Some(finding(FindingCode::Sandbox, Severity::Warning, message))
}

impl SandboxLevels {
    /// Whether the kernel enforces every part.
    pub fn are_enforced(&self) -> bool {
        isolation_finding(self).is_none()
    }
}
