//! Runs an agent's plan without its servers, and reports what would happen.
//!
//! ```text
//! plan ──► compile ──► run in the sandbox ──call──► checks ──► chain: override ─► cache ─► schema ─► placeholder
//!                         └── virtual time ◄──────────answer──────┘
//!          calls, findings, effects, duration ──► DryRunReport
//! ```
//! Then the plan runs again with other values in place of invented answers: `search` does that, and `dependence` draws the conclusions.
//!
//! No part of a run can reach a server: the chain has no handle to one, and the sandbox has neither files nor a network.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use rehearsal::dry_run::{Catalogue, DryRunOptions, Plan};
//! use serde_json::json;
//!
//! let tools = vec![json!({"name": "add", "inputSchema": {"type": "object", "properties": {"a": {"type": "number"}}}})];
//! let options = DryRunOptions::new(Catalogue::default().with_tools("math", tools));
//!
//! let report = rehearsal::dry_run(&Plan::code("sum.ts", "await mcp.math.add({ a: 1 })"), &options).await?;
//! assert!(report.validation.type_errors.is_empty());
//!
//! let report = rehearsal::dry_run(&Plan::code("sum.ts", "await mcp.math.add({ a: 'one' })"), &options).await?;
//! assert_eq!(report.validation.type_errors[0].path, "$.a");
//! # Ok(())
//! # }
//! ```

mod alternates;
pub(crate) mod assemble;
pub(crate) mod call;
pub(crate) mod catalogue;
pub(crate) mod changes;
pub(crate) mod code;
mod compare;
mod declarations;
mod dependence;
pub(crate) mod effects;
mod explore;
pub(crate) mod live;
mod options;
pub(crate) mod plan;
mod report;
pub(crate) mod run;
mod safe_tools;
mod saved;
mod search;
mod simulation;
mod static_check;
pub(crate) mod tasks;
mod value;
mod violations;

use std::time::Instant;

use rehearsal_core::report::Severity;
use rehearsal_core::script::workflow;
pub use rehearsal_sandbox::PlanLimits;
use rehearsal_sandbox::SandboxError;

use self::assemble::{Assembly, finding, invalid};
use self::catalogue::Servers;
pub use self::catalogue::{Catalogue, ServerTools};
pub use self::declarations::types;
pub use self::effects::DeclaredEffect;
pub use self::options::DryRunOptions;
pub use self::plan::{Plan, PlanLanguage, PlanReadError};
pub use self::report::{
    AnswerOrigin, BranchKind, ConfidenceLoss, DryRunReport, DurationEstimate, Effect, EffectFrom, FailureKind,
    FindingCode, KnownAfterRun, OnlyIf, PlanFinding, PlanPlace, PlanResult, ReportedAnswer, ReportedBranch,
    ReportedCall, Runs, SandboxLevels, SideEffect, TypeMismatch, UnhandledFailure, UnknownReason, UnreachedCall,
    Validation, ValueSource, Via, json_schema,
};
use self::run::{PlanRunner, RunRecord, Variation};
pub use self::safe_tools::SafeTools;
pub use self::saved::{SavedAnswer, SavedCall, SavedPlan, SavedPlanError, SavedTool};
pub use self::search::RunBudget;
use self::simulation::LatencyChoice;
use self::static_check::StaticCheck;
use self::tasks::TaskRunner;
use self::violations::KnownArguments;
use crate::cache::CacheError;

/// Why a dry run could not be made. A plan with errors is no such reason: its report has them.
#[derive(thiserror::Error)]
pub enum DryRunError {
    /// The cache cannot be read.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// The sandbox cannot be started.
    #[error("cannot start the sandbox: {0}")]
    Sandbox(#[from] SandboxError),
    /// The run panicked, which is a defect of this library.
    #[error("the dry run panicked")]
    Panicked,
}

debug_as_display!(DryRunError);

/// Runs a plan without its servers, and reports what would happen.
pub async fn dry_run(plan: &Plan, options: &DryRunOptions) -> Result<DryRunReport, DryRunError> {
    let (plan, options) = (plan.clone(), options.clone());
    let run = tokio::task::spawn_blocking(move || match plan.language {
        PlanLanguage::Code => code::dry_run(&plan, &options),
        PlanLanguage::Workflow => dry_run_workflow(&plan, &options),
    });
    run.await.map_err(|_| DryRunError::Panicked)?
}

fn dry_run_workflow(plan: &Plan, options: &DryRunOptions) -> Result<DryRunReport, DryRunError> {
    let begun = Instant::now();
    let workflow = match workflow::parse(&plan.file, &plan.text) {
        Ok(workflow) => workflow,
        Err(error) => {
            let findings = error.problems.into_iter().map(|problem| PlanFinding {
                place: Some(tasks::place(&plan.file, problem.at)),
                hint: problem.hint,
                source_line: u32::try_from(problem.at.line).ok().and_then(|line| plan.line(line)).map(str::to_owned),
                ..finding(FindingCode::Syntax, Severity::Error, problem.message)
            });
            return Ok(invalid(plan, options.intent.clone(), findings.collect()));
        }
    };
    let servers = Servers::new(options)?;
    let mut runner = TaskRunner::new(&workflow, &plan.file, &servers);
    let runs_started = Instant::now();
    let record = runner.run(&Variation::default());
    let unreached = record.skipped.iter().map(|(index, reason)| {
        let task = &workflow.tasks[*index];
        let (arguments, unknown) = task.arguments.known_parts();
        let place = tasks::place(&plan.file, task.at);
        let known = KnownArguments { value: &arguments, unknown: &unknown, open: &[] };
        let reason = format!("task {}: {reason}", task.id);
        StaticCheck::new(&servers, (&task.server, &task.tool), place, &known, reason)
    });
    let unreached = unreached.collect();
    let intent = options.intent.clone().or_else(|| workflow.intent.clone());
    let findings = servers.unknown_declarations(&options.effects);
    let rehearsal = Rehearsal { plan, options, servers: &servers, begun, runs_started, findings, unreached, intent };
    Ok(rehearsal.report(&mut runner, record, 0, None))
}

/// A plan after its base run.
struct Rehearsal<'a> {
    plan: &'a Plan,
    options: &'a DryRunOptions,
    servers: &'a Servers,
    begun: Instant,
    runs_started: Instant,
    /// Findings that are not about a run.
    findings: Vec<PlanFinding>,
    /// The calls that the base run did not reach.
    unreached: Vec<StaticCheck>,
    intent: Option<String>,
}

impl Rehearsal<'_> {
    /// Makes the other runs and the report. `compared` is the number of runs in which invented values are those that the plan
    /// compares with.
    fn report(
        self,
        runner: &mut dyn PlanRunner,
        record: RunRecord,
        compared: usize,
        sandbox: Option<SandboxLevels>,
    ) -> DryRunReport {
        let p95 = Variation { latencies: LatencyChoice::P95, ..Variation::default() };
        let p95_ms = has_varying_latencies(&record).then(|| runner.run(&p95).duration_ms);
        let observed = search::search(runner, &record, compared, (self.options.budget, self.runs_started));
        let dependence = dependence::conclude(runner, &record, observed);
        let explored = self.options.explores_failures.then(|| explore::explore(runner, &record));
        let Rehearsal { plan, servers, begun, findings, unreached, intent, .. } = self;
        let unreached = dependence.unreached(unreached, runner, servers);
        let elapsed_ms = begun.elapsed().as_secs_f64() * 1000.0;
        let assembly =
            Assembly { plan, intent, record, p95_ms, unreached, findings, sandbox, dependence, explored, elapsed_ms };
        assembly.report(runner.sites())
    }
}

/// Whether a run with other latencies can take another time.
fn has_varying_latencies(record: &RunRecord) -> bool {
    record.calls.iter().any(|call| call.latency_varies)
}
