//! Runs plans in workers of one pool, with a host that answers every call.

use std::sync::LazyLock;

use rehearsal_sandbox::{
    CallOutcome, CompiledPlan, Deliver, ErrorKind, Host, Idle, PlanCall, PlanError, Pool, Program, RunOptions,
    RunOutcome, Worker, compile,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The program of all workers.
pub(crate) fn program(argument: &str) -> Program {
    Program::new(env!("CARGO_BIN_EXE_sandbox-test-worker"), [argument])
}

/// The pool of all tests: it must keep working whatever plans do.
pub(crate) static POOL: LazyLock<Pool> = LazyLock::new(|| Pool::new(program("plain")));

/// What happened in a run.
pub(crate) struct Ran {
    pub(crate) outcome: RunOutcome,
    pub(crate) calls: Vec<PlanCall>,
}

impl Ran {
    /// The result of the plan.
    pub(crate) fn value(&self) -> Value {
        match &self.outcome.result {
            Ok(value) => serde_json::from_str(value.get()).unwrap(),
            Err(error) => panic!("{error}"),
        }
    }

    /// The error of the plan.
    pub(crate) fn error(&self) -> &PlanError {
        match &self.outcome.result {
            Ok(value) => panic!("the plan returned {value}"),
            Err(error) => error,
        }
    }

    /// The arguments of a call; the first call is 1.
    pub(crate) fn arguments(&self, id: usize) -> Value {
        serde_json::from_str(self.calls[id - 1].arguments.get()).unwrap()
    }

    /// What the arguments of the first call lost, as `path: message`.
    pub(crate) fn lossy(&self) -> Vec<String> {
        self.calls[0].lossy.iter().map(|lossy| format!("{}: {}", lossy.path, lossy.message)).collect()
    }
}

/// Compiles a plan that must be valid.
pub(crate) fn compiled(source: &str) -> CompiledPlan {
    compile("plan.ts", source).unwrap_or_else(|diagnostics| panic!("{source}\n{diagnostics:?}"))
}

/// The value as JSON text.
pub(crate) fn raw(value: &Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap()
}

/// The answer to a call: `fail` fails, `maybe` returns `null`, `echo` its arguments, everything else an object.
pub(crate) fn answer(call: &PlanCall) -> CallOutcome {
    match call.tool.as_str() {
        "fail" => CallOutcome::Error {
            kind: ErrorKind::Tool,
            message: "no such file".to_owned(),
            content: json!([{ "type": "text", "text": "no such file" }]),
        },
        "maybe" => CallOutcome::Value(raw(&Value::Null)),
        "unknown" => CallOutcome::Recorder,
        "echo" => CallOutcome::Value(call.arguments.clone()),
        tool => CallOutcome::Value(raw(&json!({ "id": call.id, "tool": tool, "ok": true, "text": " text " }))),
    }
}

/// A host that answers all open calls, each batch 10 ms after the one before, and fires timers when nothing is open.
#[derive(Default)]
struct AnswerAll {
    calls: Vec<PlanCall>,
    now_ms: f64,
}

impl Host for AnswerAll {
    fn idle(&mut self, batch: Idle) -> Deliver {
        let results: Vec<_> = batch.calls.iter().map(|call| (call.id, answer(call))).collect();
        self.calls.extend(batch.calls);
        if results.is_empty() {
            self.now_ms = batch.timer_ms.unwrap();
            return Deliver::FireTimer;
        }
        self.now_ms += 10.0;
        Deliver::Results { now_ms: self.now_ms, results }
    }
}

/// Runs a plan whose calls are answered at once.
pub(crate) fn run_in(worker: &mut Worker, plan: &CompiledPlan, options: &RunOptions) -> Ran {
    let mut host = AnswerAll::default();
    let outcome = worker.run(plan, options, &mut host);
    Ran { outcome, calls: host.calls }
}

/// Runs a plan in a worker of the pool.
pub(crate) fn run_with(source: &str, options: &RunOptions) -> Ran {
    run_in(&mut POOL.take().unwrap(), &compiled(source), options)
}

/// Runs a plan with default options.
pub(crate) fn run(source: &str) -> Ran {
    run_with(source, &RunOptions::default())
}
