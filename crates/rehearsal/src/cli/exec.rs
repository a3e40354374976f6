//! `rehearse exec`

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use rehearsal::client::ClientBuilder;
use rehearsal::config::{ConfigFile, read_config};
use rehearsal::dry_run::DeclaredEffect;
use rehearsal::exec::{Cancellation, ExecError, ExecOptions, ExecReport, ExecStatus, named_servers};

use super::catalogue::{DEFAULT_CONFIG, SERVERS, open_cache};
use super::context::Context;
use super::exit::{Exit, Failure};
use super::output::to_stdout;
use super::plan_file::{PlanFile, effect, tool};
use super::run::{Signals, runtime};
use crate::print::exec_page;

/// Run an agent's plan on the live servers, and keep what they return
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct ExecArgs {
    /// The plan: code in TypeScript or JavaScript (.ts, .js), a workflow of tasks (.yaml, .json), or a
    /// plan that `rehearse dry-run --out` saved, which runs as a contract
    #[arg(value_name = "PLAN", value_hint = clap::ValueHint::FilePath)]
    plan: PathBuf,

    /// The configuration of a client, which names the servers [default: .mcp.json]
    #[arg(long, value_name = "FILE", help_heading = SERVERS, value_hint = clap::ValueHint::FilePath)]
    config: Option<PathBuf>,

    /// How long to wait for each call: 30, 0.5, 500ms, 2m
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = rehearsal_core::duration::read, help_heading = SERVERS)]
    timeout: Duration,

    /// Declare the effect of a tool: read, write, destructive or reversible; may be repeated
    #[arg(long, value_name = "SERVER:TOOL=EFFECT", value_parser = effect, help_heading = CHECKS)]
    effect: Vec<(String, DeclaredEffect)>,

    /// Stop before the first call that changes something, or may: any effect but read
    #[arg(long, help_heading = CHECKS)]
    expect_read_only: bool,

    /// Run nothing if the kernel does not enforce every part of the sandbox
    #[arg(long, help_heading = CHECKS)]
    require_sandbox: bool,

    /// The file of recorded results [default: .rehearsal/cache.sqlite of the project, else of the user]
    #[arg(long, value_name = "FILE", help_heading = OUTPUT, value_hint = clap::ValueHint::FilePath)]
    cache: Option<PathBuf>,

    /// Store no results
    #[arg(long, conflicts_with = "cache", help_heading = OUTPUT)]
    no_cache: bool,

    /// Store no results of this tool, because they differ from call to call; may be repeated
    #[arg(long, value_name = "SERVER:TOOL", value_parser = tool, help_heading = OUTPUT)]
    no_cache_for: Vec<(String, String)>,

    /// Append a session for each server to this trace
    #[arg(short, long, value_name = "FILE", default_value = "trace.jsonl", help_heading = OUTPUT, value_hint = clap::ValueHint::FilePath)]
    output: PathBuf,

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

const CHECKS: &str = "Checks";
const OUTPUT: &str = "Output";

const AFTER_HELP: &str = "\
The plan runs in the same sandbox as with `rehearse dry-run`, but its calls reach the servers of the
configuration. A server is started when the plan calls it for the first time. Rehearse the plan first:
`rehearse dry-run PLAN` reports what it would do.

Each result enters the cache as it arrives, so that later dry runs answer the same call with it. All
messages are in the trace, without secrets: `rehearse trace show trace.jsonl`.

A plan that `rehearse dry-run PLAN --out FILE` saved is a contract. The run stops before the first call
that was not rehearsed, or whose arguments differ in more than what was known after the run. Calls that
were sent before that are waited for, and the report names them and what has changed.

Ctrl-C cancels the open calls, ends the servers, and prints the report.

Examples:
  rehearse exec deploy.ts
  rehearse exec deploy.ts --config .mcp.json --json | jq .calls
  rehearse exec tasks.yaml --expect-read-only --no-cache-for time:now
  rehearse dry-run deploy.ts --out deploy.plan.json && rehearse exec deploy.plan.json
  rehearse exec deploy.ts && rehearse dry-run deploy.ts --offline

Exit status:
    0  the plan ended without an error
    1  the plan is not valid or failed, deviated from its rehearsal, or breaks --expect-read-only
    2  a flag is wrong, or a file cannot be read
    3  a server that the plan calls, the cache or the sandbox is not available
    4  the plan ended without an error, and the trace or the cache could not be written
  129  ended by SIGHUP; 130 by SIGINT (Ctrl-C), 143 by SIGTERM: the report has what was done until then";

impl ExecArgs {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let plan = PlanFile::read(&self.plan, self.seed)?;
        self.check_trace()?;
        let mut options = self.options();
        for (name, client) in self.servers(&plan, context)? {
            options = options.server(name, client);
        }
        if !self.no_cache {
            options = options.cache(Arc::new(open_cache(self.cache.as_deref(), context)?));
        }
        let cancellation = Cancellation::new();
        options = options.cancellation(cancellation.clone());
        let runtime = runtime()?;
        let done = runtime.block_on(async {
            let mut signals = Signals::listen()?;
            let mut running = pin!(async {
                match &plan {
                    PlanFile::Plan(plan) => rehearsal::exec(plan, options).await,
                    PlanFile::Saved(saved) => saved.exec(options).await,
                }
            });
            let exit = tokio::select! {
                report = &mut running => return Ok((Some(report.map_err(failure)?), None)),
                exit = signals.next() => exit,
            };
            cancellation.cancel();
            // A second signal does not wait for the servers: they are killed.
            let report = tokio::select! {
                report = &mut running => Some(report.map_err(failure)?),
                _ = signals.next() => None,
            };
            Ok::<_, Failure>((report, Some(exit)))
        });
        runtime.shutdown_background();
        let (report, signal) = done?;
        if let Some(report) = &report {
            self.print(report, context)?;
        }
        Ok(signal.or_else(|| report.as_ref().map(exit)).unwrap_or(Exit::Ok))
    }

    /// Checks that the trace can be written, before a call has an effect.
    fn check_trace(&self) -> Result<(), Failure> {
        let folder = self.output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let checked = match self.output.exists() {
            true => OpenOptions::new().append(true).open(&self.output).map(drop),
            false => std::fs::read_dir(folder).map(drop),
        };
        checked.map_err(|cause| Failure::unwritable(&self.output, &cause))
    }

    fn options(&self) -> ExecOptions {
        let mut options = ExecOptions::new().timeout(self.timeout).trace(&self.output).seed(self.seed.unwrap_or(0));
        if let Some(intent) = &self.intent {
            options = options.intent(intent);
        }
        for (tool, effect) in &self.effect {
            options = options.effect(tool, *effect);
        }
        for (server, tool) in &self.no_cache_for {
            options = options.no_cache_for(format!("{server}:{tool}"));
        }
        if self.expect_read_only {
            options = options.expect_read_only();
        }
        if self.require_sandbox {
            options = options.require_sandbox();
        }
        options
    }

    /// Clients of the servers of the configuration. A server that the plan does not name may be without a variable.
    fn servers(&self, plan: &PlanFile, context: &Context) -> Result<Vec<(String, ClientBuilder)>, Failure> {
        let config = self.config.clone().or_else(|| Path::new(DEFAULT_CONFIG).is_file().then(|| DEFAULT_CONFIG.into()));
        let Some(config) = config else {
            let message = format_args!("no server is configured: there is no {DEFAULT_CONFIG} here");
            return Err(Failure::bad_input(message).hint("name the configuration of a client: --config FILE"));
        };
        let file = ConfigFile::read(&config)?;
        let names: Vec<String> = file.servers()?.iter().map(|server| server.name.to_owned()).collect();
        for (server, tool) in &self.no_cache_for {
            if !names.contains(server) {
                let message = format_args!("--no-cache-for {server}:{tool}: no server {server} is configured");
                return Err(Failure::bad_input(message));
            }
        }
        let named = named_servers(&plan.plan());
        let used: Vec<&str> = names.iter().filter(|name| named.contains(*name)).map(String::as_str).collect();
        let (plan, used) = (self.plan.display(), if used.is_empty() { "none".to_owned() } else { used.join(", ") });
        context.stderr.note(format_args!("running {plan} on live servers of {}: {used}", config.display()));
        let mut clients = Vec::new();
        for name in names {
            match read_config(&config, &name, |variable| context.variable(variable)) {
                Ok(entry) => clients.push((name, entry.into())),
                Err(error) if named.contains(&name) => return Err(error.into()),
                Err(_) => {}
            }
        }
        Ok(clients)
    }

    fn print(&self, report: &ExecReport, context: &Context) -> Result<(), Failure> {
        if self.json {
            return to_stdout(|out| {
                serde_json::to_writer_pretty(&mut *out, report)?;
                writeln!(out)
            });
        }
        to_stdout(|out| exec_page(report, &context.stdout, out))
    }
}

fn exit(report: &ExecReport) -> Exit {
    if report.has_unavailable_server() {
        return Exit::ServerFailed;
    }
    match report.status {
        ExecStatus::Completed if report.is_recorded => Exit::Ok,
        ExecStatus::Completed => Exit::RecordingFailed,
        ExecStatus::Failed
        | ExecStatus::Deviated
        | ExecStatus::Refused
        | ExecStatus::Cancelled
        | ExecStatus::Invalid => Exit::ChecksFailed,
    }
}

fn failure(error: ExecError) -> Failure {
    match &error {
        ExecError::Edited { .. } => {
            Failure::bad_input(error).hint("save a new rehearsal: rehearse dry-run FILE --out FILE")
        }
        ExecError::Cache(_) | ExecError::Sandbox(_) | ExecError::WeakSandbox { .. } | ExecError::Panicked => {
            Failure::server_failed(error)
        }
    }
}
