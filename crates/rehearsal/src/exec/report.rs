//! The report of a real run, in the form of its JSON.

use rehearsal_core::report::Severity;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::dry_run::{Effect, EffectFrom, FindingCode, PlanFinding, PlanPlace, SandboxLevels};

/// What a real run did.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ExecReport {
    /// Always false: the calls reached servers.
    pub dry_run: bool,
    /// The plan's file.
    pub plan: String,
    /// `sha256:` and the digest of the plan's text.
    pub plan_hash: String,
    /// The plan's purpose, as its author put it.
    pub intent: Option<String>,
    /// When the plan was saved, in RFC 3339, if a saved plan ran as a contract.
    pub saved_at: Option<String>,
    /// How the run ended.
    pub status: ExecStatus,
    /// Everything that the user should know, with its place.
    pub findings: Vec<PlanFinding>,
    /// The value that the plan returned.
    pub result: Value,
    /// The error that ended the plan.
    pub error: Option<String>,
    /// What the plan wrote to `console`, one entry a line.
    pub console: Vec<String>,
    /// The calls that were made, in the order in which the plan made them.
    pub calls: Vec<ExecutedCall>,
    /// The call before which the run was stopped.
    pub stopped_before: Option<StoppedCall>,
    /// The tasks of a workflow that did not run.
    pub not_run: Vec<SkippedTask>,
    /// The results in the cache; `null` if the run used none.
    pub cache: Option<ExecCache>,
    /// The trace file; `null` if there is none.
    pub trace: Option<String>,
    /// Whether every message is in the trace and every result that should be is in the cache.
    pub is_recorded: bool,
    /// When the run began, in RFC 3339.
    pub started_at: String,
    /// The time that the run took, with the start of the servers, in milliseconds.
    pub duration_ms: f64,
    /// How the plan was isolated; `null` for tasks, which execute no code.
    pub sandbox: Option<SandboxLevels>,
}

/// How a real run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExecStatus {
    /// The plan ended without an error.
    Completed,
    /// The plan threw an error, a task failed, or a limit ended it.
    Failed,
    /// The run was stopped before a call that was not rehearsed.
    Deviated,
    /// The run was stopped before a call that changes something, although only reading was expected.
    Refused,
    /// The run was cancelled.
    Cancelled,
    /// The plan is not valid, so nothing ran.
    Invalid,
}

/// One call of the plan.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ExecutedCall {
    /// Its number, from 1.
    pub call: usize,
    /// `server:tool`.
    pub tool: String,
    /// The arguments, as they were sent.
    pub arguments: Value,
    /// The task, if the plan is made of tasks.
    pub task: Option<String>,
    /// The place of the call.
    pub place: Option<PlanPlace>,
    /// What the call does.
    pub effect: Effect,
    /// How the effect is known.
    pub effect_from: EffectFrom,
    /// Whether the effect can be undone.
    pub reversible: bool,
    /// How the call ended.
    pub outcome: ExecutedOutcome,
    /// The value that the plan got; for an error its message.
    pub value: Value,
    /// The values that were changed or lost when the arguments became JSON: a JSON path and what happened.
    pub lossy: Vec<String>,
    /// The number of the rehearsed call that it was held to, if the plan ran as a contract.
    pub rehearsed: Option<usize>,
    /// Whether the result is in the cache.
    pub cache: CacheOutcome,
    /// When the call was sent, in milliseconds since the start.
    pub started_ms: f64,
    /// When its result arrived, in milliseconds since the start.
    pub ended_ms: f64,
    /// The time between request and response, in milliseconds; `null` without a response.
    pub took_ms: Option<f64>,
    /// The calls whose results the plan had to get before it made this call.
    pub waits_for: Vec<usize>,
}

/// How a call of a real run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExecutedOutcome {
    /// The tool returned a value.
    Value,
    /// The tool reported an error.
    ToolError,
    /// The server answered with a JSON-RPC error, or the connection failed.
    ProtocolError,
    /// There was no answer in time. The server may have carried out the call.
    Timeout,
    /// The run was cancelled before the answer. The server may have carried out the call.
    Cancelled,
    /// The call was not sent: there is no such server or tool, or the server cannot be reached.
    NotSent,
}

/// Whether the result of a call is in the cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CacheOutcome {
    /// It is.
    Stored,
    /// It is, as an error.
    StoredError,
    /// It is not, because the tool is declared to return different results.
    Excluded,
    /// There is no complete result to store.
    NoReply,
    /// The run used no cache.
    Off,
    /// The cache cannot be written; this is the reason.
    Failed(String),
}

/// The call before which a run was stopped. No server has received it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StoppedCall {
    /// `server:tool`.
    pub tool: String,
    /// The arguments.
    pub arguments: Value,
    /// The task, if the plan is made of tasks.
    pub task: Option<String>,
    /// The place of the call.
    pub place: Option<PlanPlace>,
    /// Why the run was stopped.
    pub reason: String,
}

/// A task of a workflow that did not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SkippedTask {
    /// Its id.
    pub task: String,
    /// `server:tool`.
    pub tool: String,
    /// Its place.
    pub place: PlanPlace,
    /// Why it did not run.
    pub reason: String,
}

/// The results in the cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ExecCache {
    /// The file.
    pub file: String,
    /// The number of stored results, with the errors.
    pub stored: usize,
    /// The number of errors among them.
    pub errors: usize,
    /// The tools whose results are not stored, because they are declared to differ from call to call.
    pub excluded: Vec<String>,
    /// The number of results that could not be stored.
    pub failed: usize,
}

impl ExecReport {
    /// Whether the plan ended without an error.
    pub fn is_completed(&self) -> bool {
        self.status == ExecStatus::Completed
    }

    /// Whether a server that the plan called could not be reached.
    pub fn has_unavailable_server(&self) -> bool {
        self.findings.iter().any(|finding| finding.code == FindingCode::UnknownCatalogue)
    }

    /// The number of findings of a severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }
}

/// The JSON Schema of the report.
pub fn json_schema() -> Value {
    let mut schema = schemars::schema_for!(ExecReport);
    schema.insert("title".to_owned(), "The report of `rehearse exec --json`".into());
    schema.into()
}
