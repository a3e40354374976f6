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
//! This crate has no MCP and no asynchronous runtime. It is a crate of its own because only the dry run needs a
//! JavaScript engine. Run a worker on a thread of its own if the caller must not block.

mod compile;
mod frame;
mod host;
mod limits;
mod place;
mod protocol;
mod worker;

pub use compile::{CompiledPlan, Diagnostic, MAX_SOURCE_BYTES, StaticArguments, StaticCall, compile};
pub use host::{
    CallOutcome, Deliver, ErrorKind, Host, Idle, PlanCall, PlanError, PlanException, Pool, Program, RunOptions,
    RunOutcome, SandboxError, Worker, WorkerFailure,
};
pub use limits::{Limit, Limits};
pub use place::Place;
pub use protocol::{Catalogue, ConsoleLine, Level, Levels, Lossy};
pub use worker::worker_main;
#[doc(hidden)]
pub use worker::worker_main_then;
