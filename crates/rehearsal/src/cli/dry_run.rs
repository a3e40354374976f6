//! `rehearse dry-run`

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use jiff::Timestamp;
use rehearsal::cache::Cache;
use rehearsal::dry_run::{
    Catalogue, DeclaredEffect, DryRunError, DryRunOptions, DryRunReport, Effect, FindingCode, RunBudget, SafeTools,
    SavedPlan, SavedPlanError, ServerTools,
};
use rehearsal_core::suggest::closest;

use super::cache::{age, as_of};
use super::catalogue::{ANSWERS, CatalogueArgs, SERVERS, cache_failure};
use super::context::Context;
use super::exit::{Exit, Failure};
use super::output::to_stdout;
use super::plan_file::{PlanFile, effect, saved_failure, tool};
use super::run::runtime;
use crate::print::dry_run_page;

/// Check an agent's plan and report what it would do, without calling a tool
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct DryRunArgs {
    /// The plan: code in TypeScript or JavaScript (.ts, .js), a workflow of tasks (.yaml, .json), or a
    /// plan that --out saved
    #[arg(value_name = "PLAN", value_hint = clap::ValueHint::FilePath)]
    plan: PathBuf,

    #[command(flatten)]
    servers: CatalogueArgs,

    /// Declare the effect of a tool: read, write, destructive or reversible; may be repeated
    #[arg(long, value_name = "SERVER:TOOL=EFFECT", value_parser = effect, help_heading = CHECKS)]
    effect: Vec<(String, DeclaredEffect)>,

    /// Fail if a call changes something, or may: any effect but read
    #[arg(long, help_heading = CHECKS)]
    expect_read_only: bool,

    /// Fail if the answer of a call is a placeholder, a value that nothing supports
    #[arg(long, help_heading = CHECKS)]
    no_placeholders: bool,

    /// Fail if the kernel does not enforce every part of the sandbox
    #[arg(long, help_heading = CHECKS)]
    require_sandbox: bool,

    /// End with status 5 if nothing is wrong and the plan changes something
    #[arg(long, help_heading = CHECKS)]
    detailed_exitcode: bool,

    /// Let calls of this tool reach its server, because you know that it is safe; may be repeated
    #[arg(long, value_name = "SERVER:TOOL", value_parser = tool, conflicts_with = "offline", help_heading = SERVERS)]
    hybrid: Vec<(String, String)>,

    /// Use recorded results of a tool only for this time: 90s, 12h, 7d; may be repeated
    /// [default: `ttlMs` of the server, else without end]
    #[arg(long, value_name = "SERVER:TOOL=TIME", value_parser = time_to_live, help_heading = ANSWERS)]
    ttl: Vec<(String, Duration)>,

    /// Use the results that the cache had at a time: 2h or 7d ago, or 2026-07-28T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = as_of, conflicts_with = "no_cache", help_heading = ANSWERS)]
    as_of: Option<Timestamp>,

    /// Run the plan with each call failing in turn, and report the failures that it does not handle
    #[arg(long, value_name = "WHAT", help_heading = CHECKS)]
    explore: Option<Explored>,

    /// How often the plan may run, to find out what depends on invented answers
    #[arg(long, value_name = "NUMBER", default_value_t = RunBudget::default().runs, help_heading = RUNS)]
    max_runs: usize,

    /// How long the runs may take: no further run begins after this time
    /// [default: 40ms, or REHEARSE_MAX_RUN_TIME]
    #[arg(long, value_name = "TIME", value_parser = rehearsal_core::duration::read, help_heading = RUNS)]
    max_run_time: Option<Duration>,

    /// Save the plan with its calls, and with the schemas and answers that they rely on; nothing is
    /// saved if the report has errors
    #[arg(long, value_name = "FILE", help_heading = OUTPUT, value_hint = clap::ValueHint::FilePath)]
    out: Option<PathBuf>,

    /// The purpose of the plan, for the report
    #[arg(long, value_name = "TEXT", help_heading = OUTPUT)]
    intent: Option<String>,

    /// The seed of the plan's Math.random [default: 0; a saved plan has its own]
    #[arg(long, value_name = "NUMBER", help_heading = OUTPUT)]
    seed: Option<u64>,

    /// Print the report as JSON
    #[arg(long, help_heading = OUTPUT)]
    json: bool,
}

/// The variable with the default of `--max-run-time`, for slow machines.
const MAX_RUN_TIME: &str = "REHEARSE_MAX_RUN_TIME";

const CHECKS: &str = "Checks";
/// What `--explore` finds.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Explored {
    /// Failures that the plan does not handle: an error of the tool or of the protocol, and a time-out
    Errors,
}

const RUNS: &str = "Runs";
const OUTPUT: &str = "Output";

const AFTER_HELP: &str = "\
A plan calls tools with `await mcp.SERVER.TOOL({ … })`. No call reaches a server: each is checked
against the tool's input schema and answered. The report names the source of each answer:

  override     a rule of --override
  cached       the recorded result of a real call with the same arguments
  schema       an example of the tool's output schema, or of the shape of its recorded results
  placeholder  an invented value: nothing is known about the results of the tool
  live         the live server: the tool is named with --hybrid

The plan runs several times with other values in place of invented answers. The report states which
arguments, conditions and calls depend on them.

The servers of the configuration are started only to list their tools. Recorded results come from
traces: record with `rehearse record` or `rehearse wrap`, then `rehearse cache import TRACE`.

Examples:
  rehearse dry-run deploy.ts
  rehearse dry-run deploy.ts --config .mcp.json --offline --json | jq .validation
  rehearse dry-run tasks.yaml --expect-read-only --no-placeholders
  rehearse dry-run deploy.ts --override github=github.mock.yaml
  rehearse dry-run deploy.ts --explore errors
  rehearse dry-run deploy.ts --out deploy.plan.json && rehearse dry-run deploy.plan.json

Exit status:
    0  no error was found
    1  the plan has errors, fails, exceeds a limit, breaks --expect-read-only or --no-placeholders,
       or does not handle a failure that --explore errors tries
    2  a flag is wrong, or a file cannot be read
    3  a server that the plan calls, the cache or the sandbox is not available
    5  with --detailed-exitcode: no error was found, and the plan changes something";

impl DryRunArgs {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let plan = PlanFile::read(&self.plan, self.seed)?;
        if let Some(path) = &self.out {
            if path.as_os_str() == "-" {
                let failure = Failure::bad_input("--out -: the report is on stdout");
                return Err(failure.hint("name a file: --out plan.json"));
            }
            SavedPlan::check_target(path).map_err(saved_failure)?;
        }
        let cache = self.servers.open_cache_as_of(self.as_of, context)?;
        let runtime = runtime()?;
        let (report, options) = runtime.block_on(async {
            let catalogue = self.servers.catalogue(&[], context, cache.as_ref()).await?;
            self.servers.report_unavailable(&catalogue, context);
            let safe_tools = self.safe_tools(&catalogue, context).await?;
            let mut options = self.options(context, catalogue, cache)?;
            if let Some(safe_tools) = safe_tools {
                options = options.safe_tools(Arc::new(safe_tools));
            }
            let report = match &plan {
                PlanFile::Plan(plan) => rehearsal::dry_run(plan, &options).await,
                PlanFile::Saved(saved) => saved.dry_run(&options).await,
            };
            Ok::<_, Failure>((report.map_err(run_failure)?, options))
        })?;
        let report = self.checked(report);
        if self.json {
            to_stdout(|out| {
                serde_json::to_writer_pretty(&mut *out, &report)?;
                writeln!(out)
            })?;
        } else {
            to_stdout(|out| dry_run_page(&report, &context.stdout, Timestamp::now(), out))?;
        }
        if let PlanFile::Saved(saved) = &plan {
            let since = if report.has_changes() { "" } else { "; nothing that it relied on has changed" };
            let (path, name, at) = (self.plan.display(), &saved.plan, &saved.saved_at);
            context.stderr.note(format_args!("{path}: {name}, saved at {at}{since}"));
        }
        if let Some(path) = &self.out {
            save(path, &plan, options, &report, context)?;
        }
        Ok(self.exit(&report))
    }

    fn budget(&self, context: &Context) -> Result<RunBudget, Failure> {
        let time = match (self.max_run_time, context.variable(MAX_RUN_TIME)) {
            (Some(time), _) => time,
            (None, Some(text)) => rehearsal_core::duration::read(&text)
                .map_err(|error| Failure::bad_input(format_args!("{MAX_RUN_TIME}={text}: {error}")))?,
            (None, None) => RunBudget::default().time,
        };
        Ok(RunBudget { runs: self.max_runs, time })
    }

    fn options(
        &self,
        context: &Context,
        catalogue: Catalogue,
        cache: Option<Arc<Cache>>,
    ) -> Result<DryRunOptions, Failure> {
        let options = self.servers.options(&[], catalogue, cache)?;
        let mut options = options.seed(self.seed.unwrap_or(0)).budget(self.budget(context)?);
        if let Some(intent) = &self.intent {
            options = options.intent(intent);
        }
        for (tool, effect) in &self.effect {
            options = options.effect(tool, *effect);
        }
        for (tool, time) in &self.ttl {
            options = options.time_to_live(tool, *time);
        }
        if let Some(Explored::Errors) = self.explore {
            options = options.explore_failures();
        }
        Ok(options)
    }

    /// Connects to the servers of the tools of `--hybrid`.
    async fn safe_tools(&self, catalogue: &Catalogue, context: &Context) -> Result<Option<SafeTools>, Failure> {
        if self.hybrid.is_empty() {
            return Ok(None);
        }
        for (server, tool) in &self.hybrid {
            let listed = catalogue.servers().find(|(name, _)| name == server).map(|(_, tools)| tools);
            let names: Vec<&str> = match listed {
                Some(ServerTools::Known { tools, .. }) => {
                    tools.iter().filter_map(|tool| tool.get("name")?.as_str()).collect()
                }
                Some(ServerTools::Unavailable { reason }) => {
                    return Err(Failure::server_failed(format_args!("--hybrid {server}:{tool}: {reason}")));
                }
                None => {
                    let message = format_args!("--hybrid {server}:{tool}: no server {server} is configured");
                    return Err(Failure::bad_input(message));
                }
            };
            if !names.contains(&tool.as_str()) {
                let hint = closest(tool, names).map(|name| format!("did you mean `{server}:{name}`?"));
                let message = format_args!("--hybrid {server}:{tool}: the server has no such tool");
                return Err(Failure::bad_input(message).hints(hint));
            }
        }
        let servers: BTreeSet<String> = self.hybrid.iter().map(|(server, _)| server.clone()).collect();
        let Some(config) = self.servers.config_path() else { return Ok(None) };
        let builders = self.servers.builders(&config, servers, context)?;
        let tools = self.hybrid.iter().map(|(server, tool)| format!("{server}:{tool}"));
        SafeTools::connect(tools, builders).await.map(Some).map_err(Failure::server_failed)
    }

    /// Adds the findings of the flags.
    fn checked(&self, mut report: DryRunReport) -> DryRunReport {
        if self.expect_read_only {
            let effects: Vec<_> = report.side_effects.iter().map(|effect| (effect.call, effect.text.clone())).collect();
            for (call, text) in effects {
                report.add_error(FindingCode::SideEffect, call, format!("--expect-read-only: {text}"));
            }
        }
        if self.no_placeholders {
            let placeholders = report.tools_called.iter().filter(|call| call.is_placeholder());
            let placeholders: Vec<_> = placeholders.map(|call| (call.call, call.tool.clone())).collect();
            for (call, tool) in placeholders {
                let message = format!("--no-placeholders: the answer of {tool} is a placeholder");
                report.add_error(FindingCode::Placeholder, Some(call), message);
            }
        }
        if self.require_sandbox && report.sandbox.as_ref().is_some_and(|levels| !levels.are_enforced()) {
            report.add_error(
                FindingCode::Sandbox,
                None,
                "--require-sandbox: the sandbox is not fully enforced".to_owned(),
            );
        }
        report
    }

    fn exit(&self, report: &DryRunReport) -> Exit {
        let has = |code| report.findings.iter().any(|finding| finding.code == code);
        let is_weak = self.require_sandbox && report.sandbox.as_ref().is_some_and(|levels| !levels.are_enforced());
        if is_weak || has(FindingCode::UnknownCatalogue) {
            return Exit::ServerFailed;
        }
        if !report.is_clean() {
            return Exit::ChecksFailed;
        }
        let changes = report.side_effects.iter().any(|effect| effect.effect != Effect::Read);
        if self.detailed_exitcode && changes { Exit::CleanWithEffects } else { Exit::Ok }
    }
}

/// Saves a plan, unless its report has errors.
fn save(
    path: &Path,
    plan: &PlanFile,
    options: DryRunOptions,
    report: &DryRunReport,
    context: &Context,
) -> Result<(), Failure> {
    let saved = match plan {
        PlanFile::Plan(plan) => SavedPlan::from_report(plan, &options, report),
        PlanFile::Saved(saved) => SavedPlan::from_report(&saved.plan(), &options.seed(saved.seed), report),
    };
    match saved {
        Ok(saved) => {
            saved.write(path).map_err(saved_failure)?;
            context.stderr.note(format_args!("saved {}", path.display()));
        }
        Err(error @ SavedPlanError::HasErrors { .. }) => {
            context.stderr.note(format_args!("{} is not written: {error}", path.display()));
        }
        Err(error) => return Err(saved_failure(error)),
    }
    Ok(())
}

fn run_failure(error: DryRunError) -> Failure {
    match error {
        DryRunError::Cache(error) => cache_failure(error),
        DryRunError::Sandbox(_) | DryRunError::Panicked => Failure::server_failed(error),
    }
}

fn time_to_live(text: &str) -> Result<(String, Duration), String> {
    let (tool, time) = text.rsplit_once('=').ok_or("write it SERVER:TOOL=TIME")?;
    if !tool.contains(':') {
        return Err("write it SERVER:TOOL=TIME".to_owned());
    }
    let time = age(time)?;
    Ok((tool.to_owned(), Duration::try_from(time).map_err(|error| error.to_string())?))
}
