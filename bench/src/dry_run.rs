//! The dry run of a plan, beside code without a bridge, and beside `deno run` of the same script.

use std::env;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rehearsal::cache::{Cache, CacheEntry};
use rehearsal::core::json::RawJson;
use rehearsal::core::message::Reply;
use rehearsal::dry_run::{Catalogue, DryRunOptions, DryRunReport, Plan};
use rehearsal_sandbox::{CallOutcome, CompiledPlan, Deliver, Idle, PlanLimits, Program, RunOptions, Worker, compile};
use serde_json::json;
use serde_json::value::to_raw_value;
use tokio::runtime::{Builder, Runtime};

use crate::mock::Folder;
use crate::table::{Contest, Table};

/// What makes this program the worker of a sandbox.
pub(crate) const WORKER: &str = "plan-worker";

/// The plan of the comparison with other programs.
const TEN: &str = "
interface File { name: string; size: number }
const files: File[] = [];
for (let i = 0; i < 10; i++) {
  const file: File = await mcp.fs.read({ path: `/srv/${i}.txt`, encoding: 'utf8' });
  if (file.size > 100) files.push(file);
}
({ files: files.length });
";
/// The tool of the plans in plain code.
const STUBS: &str = "const mcp = { fs: { read: async ({ path }) => ({ name: path, size: 120, text: 'hello' }) } };\n";
/// The number of calls of a large plan.
const MANY: u32 = 10_000;

pub(crate) fn measure(table: &mut Table) -> Result<(), Box<dyn Error>> {
    let folder = Folder::new("dry-run")?;
    let many =
        format!("for (let i = 0; i < {MANY}; i++) await mcp.fs.read({{ path: `/srv/${{i}}.txt`, encoding: 'utf8' }});");
    let program = Program::current(WORKER)?;
    let bridged = compiled(&many)?;
    let unbridged = compiled(&format!("{STUBS}{many}"))?;
    let mut worker = Worker::start(&program)?;
    let mut other = Worker::start(&program)?;
    table.measure(
        Contest::new("dry run: a bridged call, the sandbox alone", "an async function in the same engine"),
        || Ok::<_, Box<dyn Error>>(run(&mut worker, &bridged)? / MANY),
        || Ok(run(&mut other, &unbridged)? / MANY),
    )?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let path = folder.path("cache.sqlite");
    let cache = Arc::new(recorded(&path)?);
    let tools = cache.catalogue("fs")?.ok_or("no tools were saved")?.tools;
    let invented = DryRunOptions::new(Catalogue::default().with_tools("fs", tools));
    let options = invented.clone().cache(cache);
    let (ten, large) = (Plan::code("plan.ts", TEN), Plan::code("plan.ts", &many));
    let plan = compiled(TEN)?;
    table.measure(
        Contest::new("dry run: 10 recorded calls, in a running program", "a new worker with fixed answers"),
        || dry_run(&runtime, &ten, &options, |report| report.validation.cache_hits == 10),
        || new_worker(&program, &plan),
    )?;
    table.measure(
        Contest::new("dry run: 10 invented answers, in a running program", "a new worker with fixed answers"),
        || dry_run(&runtime, &ten, &invented, |report| report.branches.len() == 1),
        || new_worker(&program, &plan),
    )?;
    table.measure(
        Contest::new(
            format!("dry run: {MANY} recorded calls, in a running program"),
            "a ready worker with fixed answers",
        ),
        || dry_run(&runtime, &large, &options, |report| report.validation.cache_hits == MANY as usize),
        || run(&mut worker, &bridged),
    )?;
    table.measure(
        Contest::new(
            format!("dry run: {MANY} invented answers, in a running program"),
            "a ready worker with fixed answers",
        ),
        || dry_run(&runtime, &large, &invented, |report| report.runs.budget_hit),
        || run(&mut worker, &bridged),
    )?;
    let Some(deno) = env::var_os("BENCH_DENO") else { return Ok(()) };
    let (file, script) = (folder.path("plan.ts"), folder.path("script.ts"));
    std::fs::write(&file, TEN)?;
    std::fs::write(&script, format!("{STUBS}{TEN}"))?;
    let rehearse = rehearse()?;
    let command_line = || {
        let mut command = Command::new(&rehearse);
        command.arg("dry-run").arg(&file).args(["--offline", "--json", "--cache"]).arg(&path);
        timed(&mut command)
    };
    let deno = || timed(Command::new(&deno).args(["run", "--no-config"]).arg(&script).env("DENO_NO_UPDATE_CHECK", "1"));
    table.measure(Contest::new("dry run: 10 recorded calls, from the command line", "deno run"), command_line, deno)
}

/// A cache with a result for each call of the plans.
fn recorded(path: &Path) -> Result<Cache, Box<dyn Error>> {
    let cache = Cache::open(path)?;
    let entry = |number: u32| {
        let file = json!({ "name": format!("/srv/{number}.txt"), "size": 120, "text": "hello" });
        let content = json!([{ "type": "text", "text": file.to_string() }]);
        CacheEntry {
            server: "fs".to_owned(),
            tool: "read".to_owned(),
            arguments: json!({ "path": format!("/srv/{number}.txt"), "encoding": "utf8" }),
            reply: Reply::Result(RawJson::from_value(&json!({ "content": content, "structuredContent": file }))),
            run: "recorded".to_owned(),
            sequence: number.into(),
            at_ms: 1_700_000_000_000 + u64::from(number),
            latency_ms: Some(5.0),
        }
    };
    cache.put(&(0..MANY).map(entry).collect::<Vec<_>>())?;
    let text = json!({ "type": "string" });
    let tool = json!({
        "name": "read",
        "inputSchema": { "type": "object", "properties": { "path": text, "encoding": text }, "required": ["path"] },
        "outputSchema": { "type": "object", "properties": { "name": text, "size": { "type": "integer" }, "text": text } },
        "annotations": { "readOnlyHint": true },
    });
    cache.save_catalogue("fs", &[tool], 1_700_000_000_000)?;
    Ok(cache)
}

fn compiled(source: &str) -> Result<CompiledPlan, Box<dyn Error>> {
    compile("plan.ts", source).map_err(|diagnostics| format!("{diagnostics:?}").into())
}

/// The time of a run in which every call gets the same answer.
fn run(worker: &mut Worker, plan: &CompiledPlan) -> Result<Duration, Box<dyn Error>> {
    let answer = to_raw_value(&json!({ "name": "a.txt", "size": 120, "text": "hello" }))?;
    let limits = PlanLimits { cpu_ms: 20_000, ..PlanLimits::default() };
    let mut now_ms = 0.0;
    let mut host = |batch: Idle| {
        now_ms += 5.0;
        let results = batch.calls.iter().map(|call| (call.id, CallOutcome::Value(answer.clone())));
        Deliver::Results { now_ms, results: results.collect() }
    };
    let started = Instant::now();
    let outcome = worker.run(plan, &RunOptions { limits, ..RunOptions::default() }, &mut host);
    let took = started.elapsed();
    outcome.result?;
    Ok(took)
}

/// The time of a run in a worker that starts with it.
fn new_worker(program: &Program, plan: &CompiledPlan) -> Result<Duration, Box<dyn Error>> {
    let started = Instant::now();
    run(&mut Worker::start(program)?, plan)?;
    Ok(started.elapsed())
}

/// The time of a dry run in this process, whose report must be as expected.
fn dry_run(
    runtime: &Runtime,
    plan: &Plan,
    options: &DryRunOptions,
    is_expected: impl Fn(&DryRunReport) -> bool,
) -> Result<Duration, Box<dyn Error>> {
    let started = Instant::now();
    let report = runtime.block_on(rehearsal::dry_run(plan, options))?;
    let took = started.elapsed();
    match is_expected(&report) && report.is_clean() {
        true => Ok(took),
        false => Err(format!("{:?} {:?}", report.validation, report.result).into()),
    }
}

/// The time from the start of a program to its end.
fn timed(command: &mut Command) -> Result<Duration, Box<dyn Error>> {
    let started = Instant::now();
    let output = command.stdin(Stdio::null()).output()?;
    let took = started.elapsed();
    match output.status.success() {
        true => Ok(took),
        false => Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}

/// The program next to this one.
fn rehearse() -> Result<PathBuf, Box<dyn Error>> {
    let path = env::current_exe()?.with_file_name("rehearse");
    if path.exists() { Ok(path) } else { Err("no rehearse beside bench: cargo build --release -p rehearsal".into()) }
}
