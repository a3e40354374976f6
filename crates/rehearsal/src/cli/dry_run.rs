//! `rehearse dry-run`

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use jiff::Timestamp;
use rehearsal::cache::{Cache, default_path};
use rehearsal::config::{ConfigFile, read_config};
use rehearsal::dry_run::{
    Catalogue, DeclaredEffect, DryRunError, DryRunOptions, DryRunReport, Effect, FindingCode, Plan, PlanReadError,
    RunBudget, ServerTools,
};
use rehearsal::mock::{MockFiles, Unanswered};

use super::context::Context;
use super::exit::{Exit, Failure};
use super::output::to_stdout;
use super::run::runtime;
use crate::print::dry_run_page;

/// The configuration that is used without `--config`, if it exists.
const DEFAULT_CONFIG: &str = ".mcp.json";

/// Check an agent's plan and report what it would do, without calling a tool
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct DryRunArgs {
    /// The plan: code in TypeScript or JavaScript (.ts, .js), or a workflow of tasks (.yaml, .json)
    #[arg(value_name = "PLAN", value_hint = clap::ValueHint::FilePath)]
    plan: PathBuf,

    /// The configuration of a client, which names the servers [default: .mcp.json, if it exists]
    #[arg(long, value_name = "FILE", help_heading = SERVERS, value_hint = clap::ValueHint::FilePath)]
    config: Option<PathBuf>,

    /// Start no server: use the lists of tools that earlier runs and imports saved in the cache
    #[arg(long, help_heading = SERVERS)]
    offline: bool,

    /// How long to wait for each server: 30, 0.5, 500ms, 2m
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = rehearsal_core::duration::read, help_heading = SERVERS)]
    timeout: std::time::Duration,

    /// Answer calls of a server with the rules of a mock file, before all other answers; may be
    /// repeated
    #[arg(long = "override", value_name = "SERVER=FILE", value_parser = pair, help_heading = ANSWERS)]
    overrides: Vec<(String, String)>,

    /// The file of recorded results [default: .rehearsal/cache.sqlite of the project, else of the user]
    #[arg(long, value_name = "FILE", help_heading = ANSWERS, value_hint = clap::ValueHint::FilePath)]
    cache: Option<PathBuf>,

    /// Use no recorded results
    #[arg(long, conflicts_with_all = ["cache", "offline"], help_heading = ANSWERS)]
    no_cache: bool,

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

    /// How often the plan may run, to find out what depends on invented answers
    #[arg(long, value_name = "NUMBER", default_value_t = RunBudget::default().runs, help_heading = RUNS)]
    max_runs: usize,

    /// How long the runs may take: no further run begins after this time
    /// [default: 40ms, or REHEARSE_MAX_RUN_TIME]
    #[arg(long, value_name = "TIME", value_parser = rehearsal_core::duration::read, help_heading = RUNS)]
    max_run_time: Option<std::time::Duration>,

    /// The purpose of the plan, for the report
    #[arg(long, value_name = "TEXT", help_heading = OUTPUT)]
    intent: Option<String>,

    /// The seed of the plan's Math.random
    #[arg(long, value_name = "NUMBER", default_value_t = 0, help_heading = OUTPUT)]
    seed: u64,

    /// Print the report as JSON
    #[arg(long, help_heading = OUTPUT)]
    json: bool,
}

/// The variable with the default of `--max-run-time`, for slow machines.
const MAX_RUN_TIME: &str = "REHEARSE_MAX_RUN_TIME";

const SERVERS: &str = "Servers";
const ANSWERS: &str = "Answers";
const CHECKS: &str = "Checks";
const RUNS: &str = "Runs";
const OUTPUT: &str = "Output";

const AFTER_HELP: &str = "\
A plan calls tools with `await mcp.SERVER.TOOL({ … })`. No call reaches a server: each is checked
against the tool's input schema and answered. The report names the source of each answer:

  override     a rule of --override
  cached       the recorded result of a real call with the same arguments
  schema       an example of the tool's output schema, or of the shape of its recorded results
  placeholder  an invented value: nothing is known about the results of the tool

The servers of the configuration are started only to list their tools. Recorded results come from
traces: record with `rehearse record` or `rehearse wrap`, then `rehearse cache import TRACE`.

Examples:
  rehearse dry-run deploy.ts
  rehearse dry-run deploy.ts --config .mcp.json --offline --json | jq .validation
  rehearse dry-run tasks.yaml --expect-read-only --no-placeholders
  rehearse dry-run deploy.ts --override github=github.mock.yaml

Exit status:
    0  no error was found
    1  the plan has errors, fails, exceeds a limit, or breaks --expect-read-only or --no-placeholders
    2  a flag is wrong, or a file cannot be read
    3  a server that the plan calls, the cache or the sandbox is not available
    5  with --detailed-exitcode: no error was found, and the plan changes something";

impl DryRunArgs {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let plan = Plan::read(&self.plan).map_err(plan_failure)?;
        let cache = self.open_cache(context)?;
        let runtime = runtime()?;
        let report = runtime.block_on(async {
            let catalogue = self.catalogue(context, cache.as_ref()).await?;
            let options = self.options(context, catalogue, cache)?;
            let report = rehearsal::dry_run(&plan, &options);
            report.await.map_err(run_failure)
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
        Ok(self.exit(&report))
    }

    fn open_cache(&self, context: &Context) -> Result<Option<Arc<Cache>>, Failure> {
        if self.no_cache {
            return Ok(None);
        }
        open_cache(self.cache.as_deref(), context).map(|cache| Some(Arc::new(cache)))
    }

    /// The tools of the servers: of running servers, or those that were saved.
    async fn catalogue(&self, context: &Context, cache: Option<&Arc<Cache>>) -> Result<Catalogue, Failure> {
        let path = match &self.config {
            Some(path) => path.clone(),
            None if Path::new(DEFAULT_CONFIG).is_file() => DEFAULT_CONFIG.into(),
            None => {
                return match cache.filter(|_| self.offline) {
                    Some(cache) => {
                        let catalogue = Catalogue::saved(cache, &[]).map_err(Failure::server_failed)?;
                        if catalogue.servers().next().is_none() && self.overrides.is_empty() {
                            let path = cache.path().display();
                            context.stderr.note(format_args!("{path} has the tools of no server"));
                            context.stderr.hint("run once without --offline, which saves the tools of all servers");
                            context.stderr.hint("or import a recording: rehearse cache import TRACE");
                        }
                        Ok(catalogue)
                    }
                    None if self.overrides.is_empty() => {
                        let message = format_args!("no server is configured: there is no {DEFAULT_CONFIG} here");
                        Err(Failure::bad_input(message).hints([
                            "name the configuration of a client: --config FILE",
                            "or use the lists of tools in the cache: --offline",
                            "or a mock file as server: --override SERVER=FILE",
                        ]))
                    }
                    None => Ok(Catalogue::default()),
                };
            }
        };
        let file = ConfigFile::read(&path)?;
        let names: Vec<String> = file.servers()?.iter().map(|server| server.name.to_owned()).collect();
        if let Some(cache) = cache.filter(|_| self.offline) {
            return Catalogue::saved(cache, &names).map_err(Failure::server_failed);
        }
        context.stderr.status(&format!("listing the tools of {}", names.join(", ")));
        let mut builders = Vec::new();
        for name in names {
            let entry = read_config(&path, &name, |variable| context.variable(variable))?;
            let builder: rehearsal::client::ClientBuilder = entry.into();
            builders.push((name, builder.timeout(self.timeout)));
        }
        let catalogue = Catalogue::from_servers(builders, cache).await.map_err(Failure::server_failed)?;
        context.stderr.end_status();
        for (name, tools) in catalogue.servers() {
            if let ServerTools::Unavailable { reason } = tools {
                let reason = reason.lines().next().unwrap_or_default();
                context.stderr.note(format_args!("the tools of {name} cannot be listed: {reason}"));
            }
        }
        Ok(catalogue)
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
        let mut options = DryRunOptions::new(catalogue).seed(self.seed).budget(self.budget(context)?);
        if let Some(cache) = cache {
            options = options.cache(cache);
        }
        if let Some(intent) = &self.intent {
            options = options.intent(intent);
        }
        for (tool, effect) in &self.effect {
            options = options.effect(tool, *effect);
        }
        let mut files: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (server, file) in &self.overrides {
            files.entry(server).or_default().push(file);
        }
        for (server, files) in files {
            let files = MockFiles { unanswered: Unanswered::Forward, ..MockFiles::new(files) };
            options = options.override_with(server, &files).map_err(Failure::bad_input)?;
        }
        Ok(options)
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

/// Opens a cache: the named file, else that of the project or of the user.
pub(super) fn open_cache(path: Option<&Path>, context: &Context) -> Result<Cache, Failure> {
    let path = match path {
        Some(path) => path.to_owned(),
        None => {
            let directory = std::env::current_dir().map_err(Failure::begin)?;
            default_path(&directory, context.data_folder().as_deref())
        }
    };
    Cache::open(&path).map_err(Failure::server_failed)
}

fn plan_failure(error: PlanReadError) -> Failure {
    let hint = matches!(error, PlanReadError::UnknownLanguage { .. })
        .then_some("code ends in .ts or .js, tasks end in .yaml or .json");
    Failure::bad_input(error).hints(hint)
}

fn run_failure(error: DryRunError) -> Failure {
    Failure::server_failed(error)
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((server, file)) if !server.is_empty() && !file.is_empty() => Ok((server.to_owned(), file.to_owned())),
        _ => Err("write it SERVER=FILE".to_owned()),
    }
}

fn effect(text: &str) -> Result<(String, DeclaredEffect), String> {
    let (tool, effect) = text.rsplit_once('=').ok_or("write it SERVER:TOOL=EFFECT")?;
    if !tool.contains(':') {
        return Err("write it SERVER:TOOL=EFFECT".to_owned());
    }
    Ok((tool.to_owned(), effect.parse()?))
}
