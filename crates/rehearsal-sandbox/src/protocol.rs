//! What host and worker send each other, one message a frame.
//!
//! ```text
//! worker ─ ready ─► host ─ start ─► worker ─ idle ─► host ─ deliver | fire_timer | cancel ─► worker … ─ done ─► host
//! ```
//! The worker knows positions in generated code only. The host does not trust the worker: it checks ids and counts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::limits::{Limit, PlanLimits};

/// The name of the plan in stacks of the engine; the prelude compares file names with it.
pub(crate) const PLAN_FILE: &str = "plan.ts";

/// The names of servers and of their tools.
pub type ToolNames = BTreeMap<String, Vec<String>>;

/// A message to the worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum ToWorker {
    /// Runs a plan.
    Start(Start),
    /// Delivers results of calls.
    Deliver(Deliveries),
    /// Lets the next timer fire, at its own time.
    FireTimer {},
    /// Ends the run.
    Cancel {},
}

/// Everything that a run depends on, apart from results.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Start {
    /// The number of the run in this worker. The frames of the run repeat it, so that none is taken for a later run's.
    pub(crate) run: u32,
    pub(crate) code: String,
    pub(crate) seed: u64,
    pub(crate) epoch_ms: i64,
    pub(crate) catalogue: ToolNames,
    pub(crate) limits: PlanLimits,
    #[serde(default)]
    pub(crate) force: Option<ForcedDecision>,
    /// For each site the decisions that the run follows, `1` for true and `0` for false.
    #[serde(default)]
    pub(crate) follow: Vec<String>,
}

/// A decision that a run forces, whatever the plan's values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForcedDecision {
    /// The site, by its index in [`crate::CompiledPlan::sites`].
    pub site: u32,
    /// 1 for true, 0 for false; of a `switch` the index of the literal case.
    pub choice: u32,
    /// How many times the decision is forced; later ones depend on the values again, so that a loop can end.
    pub times: u32,
}

/// Results that arrive at the same time.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Deliveries {
    pub(crate) now_ms: f64,
    pub(crate) results: Vec<Delivery>,
}

/// The result of one call.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Delivery {
    pub(crate) id: u32,
    pub(crate) result: DeliveredResult,
}

/// What a call resolves or rejects with.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum DeliveredResult {
    Value(Box<RawValue>),
    /// A value that records what the plan does with it.
    Recorder {},
    Error {
        kind: String,
        message: String,
        content: Box<RawValue>,
        place: Option<String>,
    },
}

/// A message from the worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum ToHost {
    /// The worker is isolated and waits for a plan.
    Ready { levels: Levels },
    /// The plan waits.
    Idle(IdleFrame),
    /// The run is over.
    Done(Done),
}

/// The new calls of a plan that cannot go on by itself.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct IdleFrame {
    pub(crate) run: u32,
    pub(crate) calls: Vec<CallFrame>,
    /// When the next timer is due, in virtual milliseconds.
    pub(crate) timer: Option<f64>,
    /// Calls without a result, the new ones among them.
    pub(crate) open: u32,
    /// The plan has its result already; these calls were not awaited.
    pub(crate) ended: bool,
    /// Console output since the last frame.
    pub(crate) console: Vec<ConsoleLine>,
}

/// One call.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallFrame {
    pub(crate) id: u32,
    pub(crate) server: String,
    pub(crate) tool: String,
    pub(crate) arguments: Box<RawValue>,
    /// The stack in which the tool was read from its server: `line:column`, separated by commas.
    pub(crate) site: String,
    /// The stack inside the call.
    pub(crate) call_site: String,
    pub(crate) lossy: Vec<Lossy>,
    /// The JSONPaths of values that are recorders.
    #[serde(default)]
    pub(crate) unknown: Vec<String>,
}

/// A part of a value that JSON cannot hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lossy {
    /// The path in the arguments: `$.a.b[0]`.
    pub path: String,
    /// The effect on the value: `a Promise: await is missing`, `NaN becomes null`.
    pub message: String,
}

/// How a run ended.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Done {
    pub(crate) run: u32,
    pub(crate) outcome: WorkerOutcome,
    pub(crate) lossy: Vec<Lossy>,
    /// Rejections that nothing handled.
    pub(crate) unhandled: Vec<Exception>,
    /// Console output since the last frame.
    pub(crate) console: Vec<ConsoleLine>,
    pub(crate) now_ms: f64,
    /// The calls whose promise nothing has used.
    #[serde(default)]
    pub(crate) unused: Vec<u32>,
    /// What the probes recorded, by site.
    #[serde(default)]
    pub(crate) sites: Vec<ProbeRecord>,
    /// The shapes of the recorders, by call.
    #[serde(default)]
    pub(crate) shapes: Vec<RecordedShape>,
}

/// The result of the plan, or why it has none.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum WorkerOutcome {
    /// `value` is `null` if the plan returned `undefined`.
    Value(Box<RawValue>),
    Exception(Exception),
    Limit(Limit),
    Stuck {},
    Cancelled {},
}

/// An exception as the worker reports it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Exception {
    pub(crate) name: String,
    pub(crate) message: String,
    pub(crate) stack: String,
    /// The call whose `ToolError` this is.
    pub(crate) call: Option<u32>,
}

/// One call of a method of `console`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConsoleLine {
    /// The method: `log`, `info`, `warn`, `error` or `debug`.
    pub level: String,
    /// The arguments, separated by spaces.
    pub text: String,
}

/// What a plan did with the result of a call that was a recorder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedShape {
    /// The id of the call.
    pub call: u32,
    /// A value of the shape that the plan expects; `null` if the plan used nothing of it.
    pub example: serde_json::Value,
}

/// What the probes of one site recorded in a run. Equal records mean equal decisions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeRecord {
    /// How often the condition was true; how often a loop or a `switch` was reached; at a `catch`, how many errors of tools
    /// arrived.
    pub yes: u32,
    /// How often the condition was false; the number of turns of a loop; at a `catch`, how many other exceptions arrived.
    pub no: u32,
    /// A hash of all decisions in their order.
    pub decisions: u64,
    /// A hash of the values that decided, in their order.
    pub operands: u64,
    /// The first part of this hash: of the values that decided first.
    pub first_operands: u64,
    /// The first decisions of a condition in their order, `1` for true and `0` for false.
    pub sequence: String,
}

/// How far each part of the isolation is in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Levels {
    /// Landlock: no file, no TCP, no signals to other processes.
    pub landlock: Level,
    /// The seccomp filter: only system calls that a plan needs.
    pub seccomp: Level,
    /// Resource limits of the process.
    pub rlimits: Level,
}

impl Levels {
    /// True if every part is in force completely.
    pub fn all_enforced(&self) -> bool {
        [&self.landlock, &self.seccomp, &self.rlimits].into_iter().all(|level| *level == Level::Enforced)
    }
}

/// How far one part of the isolation is in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Completely.
    Enforced,
    /// In part, with the reason.
    Partial(String),
    /// Not at all, with the reason.
    Unavailable(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_keep_the_text_of_values() {
        let frame = r#"{"deliver":{"now_ms":1.5,"results":[{"id":3,"result":{"value":{"n":1.0e2}}}]}}"#;
        let message: ToWorker = serde_json::from_str(frame).unwrap();
        assert_eq!(serde_json::to_string(&message).unwrap(), frame);
        assert_eq!(serde_json::to_string(&ToWorker::Cancel {}).unwrap(), r#"{"cancel":{}}"#);
    }
}
