//! JavaScript and TypeScript in, tool calls out, nothing else.
//!
//! A *plan* is code that calls tools of MCP servers: `await mcp.server.tool({ … })`. [`compile`] checks it and makes
//! JavaScript of it. A [`Worker`] runs that in a process without files, network and child processes. The plan's only
//! way out is a call, and a [`Host`] decides what each call returns.
//!
//! ```text
//! source ─► compile ─► CompiledPlan ─┐
//!                                    ├─► Worker::run ─► RunOutcome
//!                 RunOptions, Host ──┘        │ ▲
//!                                     frames  ▼ │  on stdin and stdout
//!                                          worker_main       rlimits, landlock, seccomp, QuickJS
//! ```
//! The program itself is the worker, if its `main` begins like this one:
//! ```no_run
//! # use rehearsal_sandbox::{CallOutcome, Deliver, Idle, Pool, Program, RunOptions, compile, worker_main};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! if std::env::args().nth(1).as_deref() == Some("__plan-worker") {
//!     worker_main();
//! }
//! let pool = Pool::new(Program::current("__plan-worker")?);
//! let plan = compile("plan.ts", "return await mcp.fs.read({ path: '/a' })").map_err(|errors| errors[0].to_string())?;
//! let outcome = pool.take()?.run(&plan, &RunOptions::default(), &mut |batch: Idle| {
//!     let results = batch.calls.iter().map(|call| (call.id, CallOutcome::Value(call.arguments.clone())));
//!     Deliver::Results { now_ms: 0.0, results: results.collect() }
//! });
//! println!("{}", outcome.result?);
//! # Ok(())
//! # }
//! ```
//! This crate has no MCP and no asynchronous runtime. It is a crate of its own because only the dry run needs a
//! JavaScript engine. Run a worker on a thread of its own if the caller must not block.

mod compile;
mod frame;
mod host;
mod limits;
mod place;
mod protocol;
mod worker;

pub use compile::{
    CompiledPlan, Diagnostic, MAX_SOURCE_BYTES, ProbeKind, ProbeSite, StaticArguments, StaticCall, ToolReference,
    compile,
};
pub use host::{
    CallOutcome, Deliver, ErrorKind, Host, Idle, PlanCall, PlanError, PlanException, Pool, Program, RunOptions,
    RunOutcome, SandboxError, Worker, WorkerFailure,
};
pub use limits::{Limit, PlanLimits};
pub use place::SourcePlace;
pub use protocol::{ConsoleLine, ForcedDecision, Level, Levels, Lossy, ProbeRecord, RecordedShape, ToolNames};
pub use worker::worker_main;
#[doc(hidden)]
pub use worker::worker_main_then;
