//! Runs an agent's plan on live servers: the same sandbox and the same tasks as a dry run, with servers in place of a simulation.
//!
//! ```text
//! plan ──► compile ──► run in the sandbox ──call──► contract ──► server ──► trace, cache
//!                         └── real time ◄──────────result─────────┘
//!          calls, results, findings ──► ExecReport
//! ```
//! A [saved plan](crate::dry_run::SavedPlan) is a contract: the first call that was not rehearsed ends the run before it is made.

mod assemble;
mod contract;
mod live_servers;
mod options;
mod report;
mod traced_server;

use std::collections::BTreeSet;
use std::time::Instant;

use rehearsal_core::script::workflow;
use rehearsal_sandbox::{RunOptions, SandboxError};
use tokio::runtime::Handle;

use self::assemble::{ExecAssembly, invalid};
use self::contract::Contract;
use self::live_servers::LiveServers;
pub use self::options::{Cancellation, ExecOptions};
pub use self::report::{
    CacheOutcome, ExecCache, ExecReport, ExecStatus, ExecutedCall, ExecutedOutcome, SkippedTask, StoppedCall,
    json_schema,
};
use crate::cache::CacheError;
use crate::dry_run::code::{isolation_finding, run_plan, sandbox_levels, syntax_finding, take_worker};
use crate::dry_run::live::now_ms;
use crate::dry_run::tasks::run_tasks;
use crate::dry_run::{Plan, PlanLanguage, SandboxLevels, SavedPlan};

/// Why a plan was not run. A plan that fails is no such reason: its report has the failure.
#[derive(thiserror::Error)]
pub enum ExecError {
    /// The text of a saved plan is not the one that was rehearsed.
    #[error("{plan}: the text of the plan was edited after the plan was saved")]
    Edited {
        /// The plan.
        plan: String,
    },
    /// The cache cannot be read.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// The sandbox cannot be started.
    #[error("cannot start the sandbox: {0}")]
    Sandbox(#[from] SandboxError),
    /// The kernel does not enforce every part of the sandbox, and the options require it.
    #[error("the sandbox is not fully enforced: landlock {}, seccomp {}, rlimits {}", .levels.landlock, .levels.seccomp, .levels.rlimits)]
    WeakSandbox {
        /// How far each part is enforced.
        levels: SandboxLevels,
    },
    /// The run panicked, which is a defect of this library.
    #[error("the run panicked")]
    Panicked,
}

debug_as_display!(ExecError);

/// Runs a plan on live servers.
///
/// Dropping the future does not end the run; a [`Cancellation`] does.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use rehearsal::Client;
/// use rehearsal::dry_run::Plan;
/// use rehearsal::exec::{ExecOptions, ExecStatus};
/// # use rehearsal::mock::text;
/// # let server = rehearsal::MockServer::builder().tool("add").respond(text("42")).start()?;
/// # let url = server.url();
///
/// let options = ExecOptions::new().server("math", Client::url(url));
/// let report = rehearsal::exec(&Plan::code("sum.ts", "await mcp.math.add({ a: 40, b: 2 })"), options).await?;
/// assert_eq!(report.status, ExecStatus::Completed);
/// assert_eq!(report.result, 42);
/// # Ok(())
/// # }
/// ```
pub async fn exec(plan: &Plan, options: ExecOptions) -> Result<ExecReport, ExecError> {
    run(plan.clone(), None, options).await
}

impl SavedPlan {
    /// Runs the plan on live servers as a contract. The first call that was not rehearsed, or whose arguments differ in more
    /// than what was known after the run, ends the run before the call is made.
    ///
    /// The seed is that of the saved plan, and so is the purpose, unless `options` have another.
    pub async fn exec(&self, options: ExecOptions) -> Result<ExecReport, ExecError> {
        let plan = self.plan();
        if plan.hash() != self.plan_hash {
            return Err(ExecError::Edited { plan: plan.file });
        }
        let intent = options.intent.clone().or_else(|| self.intent.clone());
        run(plan, Some(self.clone()), ExecOptions { seed: self.seed, intent, ..options }).await
    }
}

async fn run(plan: Plan, saved: Option<SavedPlan>, options: ExecOptions) -> Result<ExecReport, ExecError> {
    let runtime = Handle::current();
    // The sandbox blocks its thread until the plan ends.
    let run = tokio::task::spawn_blocking(move || match plan.language {
        PlanLanguage::Code => run_code(&plan, saved, options, runtime),
        PlanLanguage::Workflow => run_workflow(&plan, saved, options, runtime),
    });
    run.await.map_err(|_| ExecError::Panicked)?
}

fn run_code(
    plan: &Plan,
    saved: Option<SavedPlan>,
    options: ExecOptions,
    runtime: Handle,
) -> Result<ExecReport, ExecError> {
    let compiled = match rehearsal_sandbox::compile(&plan.file, &plan.text) {
        Ok(compiled) => compiled,
        Err(diagnostics) => {
            let findings = diagnostics.into_iter().map(|diagnostic| syntax_finding(plan, diagnostic));
            return Ok(invalid(plan, options.intent, findings.collect()));
        }
    };
    let mut worker = take_worker()?;
    let levels = sandbox_levels(worker.levels());
    if options.requires_sandbox && !levels.are_enforced() {
        return Err(ExecError::WeakSandbox { levels });
    }
    let run_options = RunOptions {
        seed: options.seed,
        epoch_ms: now_ms().cast_signed(),
        catalogue: options.known_tools()?,
        limits: options.limits.clone(),
        ..RunOptions::default()
    };
    let (intent, started_ms) = (options.intent.clone(), now_ms());
    let mut servers = LiveServers::new(plan, options, saved.map(Contract::new), runtime)?;
    let record = run_plan(&compiled, &mut worker, &run_options, &mut servers);
    let run = servers.finish();
    let assembly = ExecAssembly { plan, intent, started_ms, run, record, tasks: Vec::new(), sandbox: Some(levels) };
    let weak = assembly.sandbox.as_ref().and_then(isolation_finding);
    Ok(assembly.report(weak))
}

fn run_workflow(
    plan: &Plan,
    saved: Option<SavedPlan>,
    options: ExecOptions,
    runtime: Handle,
) -> Result<ExecReport, ExecError> {
    let workflow = match workflow::parse(&plan.file, &plan.text) {
        Ok(workflow) => workflow,
        Err(error) => return Ok(invalid(plan, options.intent, assemble::problems(plan, error))),
    };
    let intent = options.intent.clone().or_else(|| workflow.intent.clone());
    let started_ms = now_ms();
    let mut servers = LiveServers::new(plan, options, saved.map(Contract::new), runtime)?;
    let record = run_tasks(&workflow, &plan.file, &mut servers);
    let run = servers.finish();
    let tasks = assemble::tasks(plan, &workflow);
    let assembly = ExecAssembly { plan, intent, started_ms, run, record, tasks, sandbox: None };
    Ok(assembly.report(None))
}

/// The servers whose tools a plan calls, as far as its text shows them: the name of a tool may be computed. A plan that is not
/// valid has none.
pub fn named_servers(plan: &Plan) -> BTreeSet<String> {
    match plan.language {
        PlanLanguage::Code => {
            let Ok(compiled) = rehearsal_sandbox::compile(&plan.file, &plan.text) else { return BTreeSet::new() };
            let called = compiled.static_calls.into_iter().map(|call| call.server);
            called.chain(compiled.tool_references.into_iter().map(|reference| reference.server)).collect()
        }
        PlanLanguage::Workflow => {
            let Ok(workflow) = workflow::parse(&plan.file, &plan.text) else { return BTreeSet::new() };
            workflow.tasks.into_iter().map(|task| task.server).collect()
        }
    }
}

/// The time since a moment, in milliseconds.
fn elapsed_ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}
