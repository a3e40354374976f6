//! The report of a dry run, in the form of its JSON.

use rehearsal_core::report::Severity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a dry run found: what would have happened, and how much of it is known.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DryRunReport {
    /// Always true: no call reached a server, except calls of tools that the operator has declared safe.
    pub dry_run: bool,
    /// The plan's file.
    pub plan: String,
    /// `sha256:` and the digest of the plan's text.
    pub plan_hash: String,
    /// The plan's purpose, as its author put it.
    pub intent: Option<String>,
    /// The result of the checks.
    pub validation: Validation,
    /// Everything that the user should know, with its place.
    pub findings: Vec<PlanFinding>,
    /// The value that the plan returned.
    pub simulated_result: Value,
    /// More about the plan's end.
    pub result: PlanResult,
    /// The number of the first call at which a real run would stop, because the call fails and the plan does not catch it.
    pub stops_at: Option<usize>,
    /// The calls, in the order in which the plan made them.
    pub tools_called: Vec<ReportedCall>,
    /// The calls of the plan that this run did not reach.
    pub not_run: Vec<UnreachedCall>,
    /// The decisions of the plan that depend on values which are not known.
    pub branches: Vec<ReportedBranch>,
    /// How long a real run would take.
    pub estimated_duration_ms: DurationEstimate,
    /// The calls that change something, or may.
    pub side_effects: Vec<SideEffect>,
    /// Whether everything that the plan does can be undone. Unknown effects count as irreversible.
    pub reversible: bool,
    /// How much of the report rests on real results, from 0 to 1.
    pub confidence: f64,
    /// Each reason why `confidence` is less than 1.
    pub confidence_reasons: Vec<ConfidenceLoss>,
    /// The failures of calls that the plan does not handle; `null` if they were not explored.
    pub unhandled_failures: Option<Vec<UnhandledFailure>>,
    /// How the plan was isolated; `null` for tasks, which execute no code.
    pub sandbox: Option<SandboxLevels>,
    /// The number of executions and their time.
    pub runs: Runs,
}

/// The result of the checks.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Validation {
    /// Whether the plan has no syntax or scope errors.
    pub syntax_valid: bool,
    /// Every argument that does not fit the tool's input schema.
    pub type_errors: Vec<TypeMismatch>,
    /// The tools and servers that do not exist, as `server:tool`.
    pub missing_tools: Vec<String>,
    /// Calls that a recorded result answered.
    pub cache_hits: usize,
    /// Calls of existing tools that neither a recorded result nor an override answered.
    pub cache_misses: usize,
    /// Calls that an override answered.
    pub overrides: usize,
    /// Facts that do not fail the dry run.
    pub warnings: Vec<String>,
}

/// An argument that does not fit the input schema of its tool.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TypeMismatch {
    /// `server:tool`.
    pub tool: String,
    /// The argument: the path without `$.`.
    pub arg: String,
    /// What the schema expects, such as `string`.
    pub expected: String,
    /// The type of the value, or an excerpt of it; `missing` if there is none.
    pub got: String,
    /// The JSON path in the arguments.
    pub path: String,
    /// The number of the call; `null` if the call was not reached.
    pub call: Option<usize>,
    /// The place of the call.
    pub place: Option<PlanPlace>,
    /// The line of the plan at that place.
    pub source_line: Option<String>,
}

/// A place in the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanPlace {
    /// The plan's file.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1, if it is known.
    pub column: Option<u32>,
    /// The places from which the function with the call was called, the innermost first.
    pub via: Vec<Via>,
}

/// A line and column from which a function was called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Via {
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
}

/// One fact that the user should know.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PlanFinding {
    /// The kind of the finding, for programs.
    pub code: FindingCode,
    /// The severity.
    #[schemars(with = "FindingSeverity")]
    pub severity: Severity,
    /// The number of the call, if it is about one.
    pub call: Option<usize>,
    /// The place in the plan.
    pub place: Option<PlanPlace>,
    /// The message.
    pub message: String,
    /// What the user can do about it.
    pub hint: Option<String>,
    /// The line of the plan at the place.
    pub source_line: Option<String>,
}

/// The severities, as the schema of the report lists them.
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
enum FindingSeverity {
    Note,
    Warning,
    Error,
}

/// The kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FindingCode {
    /// The plan is not valid TypeScript, or the task file is not valid.
    Syntax,
    /// No server has this name.
    MissingServer,
    /// The server has no such tool.
    MissingTool,
    /// The tools of a server are not known, because it could not be reached.
    UnknownCatalogue,
    /// An argument does not fit the input schema.
    TypeError,
    /// The schema of a tool cannot be used for checks.
    BadSchema,
    /// A value changes or is lost when it becomes JSON.
    LossyValue,
    /// The result of a call was not awaited, or the plan ended before it.
    NotAwaited,
    /// A call's answer is a placeholder.
    Placeholder,
    /// The plan threw an error that it did not catch.
    PlanError,
    /// A limit of the sandbox ended the plan.
    Limit,
    /// The kernel does not enforce a part of the sandbox.
    Sandbox,
    /// A call's tool cannot be determined without running it.
    Unseen,
    /// The plan fails with other values in place of invented answers.
    MayFail,
    /// A `catch` handles an exception that an invented answer may cause.
    InventedCatch,
    /// The budget ended the search for what depends on values that are not known.
    Budget,
    /// The plan does not handle the failure of a call.
    UnhandledFailure,
    /// The plan changes something, although `--expect-read-only` was given.
    SideEffect,
    /// Annotations of a tool contradict each other.
    Annotations,
    /// The answer of an override or of the cache cannot be used.
    Answer,
    /// The recorded answer of a call is not used: it has expired, or the schema of its tool has changed.
    StaleAnswer,
    /// The text of a saved plan was edited.
    PlanEdited,
    /// A tool of a saved plan no longer exists.
    ToolRemoved,
    /// The input or output schema of a tool changed since the plan was saved.
    SchemaChanged,
    /// The annotations or the effect of a tool changed since the plan was saved.
    EffectChanged,
    /// A call has another answer than when the plan was saved.
    AnswerChanged,
    /// The plan makes other calls than when it was saved.
    CallChanged,
}

/// More about the end of the plan.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct PlanResult {
    /// The error that ended the plan.
    pub error: Option<String>,
    /// What the plan wrote to `console`, one entry a line.
    pub console: Vec<String>,
    /// The numbers of the calls with invented answers on which the plan's value depends.
    pub depends_on: Vec<usize>,
}

/// One call of the plan.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ReportedCall {
    /// Its number, from 1.
    pub call: usize,
    /// `server:tool`.
    pub tool: String,
    /// The arguments, as they would be sent.
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
    /// More about the effect: `repeatable`, `reaches outside`.
    pub effect_notes: Vec<String>,
    /// Whether a real run of the call would fail.
    pub fails: bool,
    /// The values that were changed or lost when the arguments became JSON: a JSON path and what happened.
    pub lossy: Vec<String>,
    /// The arguments that may be other ones in a real run.
    pub known_after_run: Vec<KnownAfterRun>,
    /// The decisions on which it depends whether the call is made: indexes of `branches`, from 0.
    pub conditional_on: Vec<usize>,
    /// Whether it is not known how often calls are made from this place: a real run may make more, fewer or none.
    pub repeats: bool,
    /// The answer that the plan got.
    pub answer: ReportedAnswer,
    /// When the call was made, in milliseconds of virtual time.
    pub started_ms: f64,
    /// When its answer arrived, in milliseconds of virtual time.
    pub ended_ms: f64,
    /// The calls whose answers the plan had to get before it made this call.
    pub waits_for: Vec<usize>,
}

/// An argument whose value depends on something that is not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnownAfterRun {
    /// The JSON path in the arguments.
    pub path: String,
    /// The answers on which it depends.
    pub from: Vec<ValueSource>,
    /// What is not known.
    pub reason: UnknownReason,
}

/// An answer on which a value depends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ValueSource {
    /// The number of the call.
    pub call: usize,
    /// The JSON path in its answer, if the value or a part of it is from there.
    pub path: Option<String>,
}

/// What is not known before a real run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnknownReason {
    /// An invented answer.
    Answer,
    /// The time.
    Clock,
    /// A random number.
    Random,
}

/// A decision of the plan that depends on something that is not known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportedBranch {
    /// The place of the condition, or of the value that a loop or a `switch` uses.
    pub place: PlanPlace,
    /// Its text in the plan.
    pub text: String,
    /// The form of the decision.
    pub kind: BranchKind,
    /// The numbers of the calls whose answers decide.
    pub from: Vec<usize>,
    /// What is not known.
    pub reason: UnknownReason,
    /// The outcome of the condition in this run; `null` if it had both, or is no condition.
    pub taken: Option<bool>,
    /// The numbers of the calls that a real run may leave out, because they are only on the side that this run took.
    pub calls: Vec<usize>,
    /// The tools that are called only on another side.
    pub other_calls: Vec<String>,
    /// Whether no value led to another side, so that it was tried by force: it may be impossible.
    pub forced: bool,
    /// Whether the other side fails with the values of the run that tried it, so that what follows there is not known.
    #[serde(default)]
    pub unrehearsed: bool,
}

/// The form of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BranchKind {
    /// A condition.
    Condition,
    /// The value of a `switch`.
    Switch,
    /// The number of times that a loop runs.
    Loop,
    /// A `catch` that handles another exception than the error of a tool.
    Catch,
}

/// What a call does to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It changes nothing.
    Read,
    /// It adds something.
    Write,
    /// It changes or removes what exists.
    Destructive,
    /// Nothing is known, so it may change anything.
    Unknown,
}

/// How an effect is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EffectFrom {
    /// The operator declared it.
    Operator,
    /// The server's annotations, which are hints.
    Annotations,
    /// The annotations leave it out; it is the default of the specification.
    SpecificationDefault,
    /// Nothing declares it.
    Unknown,
}

/// The answer that the plan got for a call, and where it is from.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ReportedAnswer {
    /// Whether no server answered this call in this run. False only for tools that the operator has declared safe.
    #[serde(rename = "_mocked")]
    pub mocked: bool,
    /// The source of the answer.
    #[serde(rename = "_source")]
    pub source: AnswerOrigin,
    /// When a server returned the recorded result, in RFC 3339.
    #[serde(rename = "_cached_at")]
    pub cached_at: Option<String>,
    /// Notes about the answer.
    #[serde(rename = "_warning", skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// The value that the plan got; for an error its message.
    pub value: Value,
    /// Whether the plan got an error.
    pub is_error: bool,
}

/// The source of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnswerOrigin {
    /// A rule that the user wrote.
    Override,
    /// A real result for exactly these arguments.
    CapabilityCache,
    /// An example that fits the output schema, or the shape of recorded results.
    SchemaMock,
    /// An invented value without even a schema.
    Placeholder,
    /// Nothing: there is no such tool.
    None,
    /// The live server: the operator has declared the tool safe.
    Live,
}

/// A call that the run did not reach.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct UnreachedCall {
    /// `server:tool`; `null` if it cannot be determined without running the plan.
    pub tool: Option<String>,
    /// Its place.
    pub place: PlanPlace,
    /// The effect that it may have.
    pub effect: Effect,
    /// Why it was not reached.
    pub reason: String,
    /// The decision that leads to it.
    pub only_if: Option<OnlyIf>,
    /// Whether it is made with other values in place of invented answers.
    pub with_other_values: bool,
}

/// The outcome of a decision that leads to a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OnlyIf {
    /// The decision: an index of `branches`, from 0.
    pub branch: usize,
    /// The outcome of its condition; `null` for another case of a `switch`.
    pub value: Option<bool>,
}

/// How long a real run would take, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct DurationEstimate {
    /// With the median latency of each call.
    pub p50: f64,
    /// With the 95th percentile of every call at once: an upper estimate.
    pub p95: f64,
    /// The number of calls whose latency is known. The others count as 0.
    pub known: usize,
    /// The number of calls.
    pub of: usize,
    /// The calls that decide the duration.
    pub critical_path: Vec<usize>,
}

/// A call that changes something, or may.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SideEffect {
    /// The number of the call; `null` for a call that was not reached.
    pub call: Option<usize>,
    /// `server:tool`.
    pub tool: String,
    /// The effect.
    pub effect: Effect,
    /// The effect as a sentence.
    pub text: String,
}

/// A reason why the confidence is less than 1.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ConfidenceLoss {
    /// The calls that it is about.
    pub calls: Vec<usize>,
    /// By how much the confidence is lower.
    pub lost: f64,
    /// The reason.
    pub reason: String,
}

/// A failure of a call that ends the plan, or that it does not notice.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct UnhandledFailure {
    /// The number of the call; all calls from its place fail.
    pub call: usize,
    /// `server:tool`.
    pub tool: String,
    /// The place of the call.
    pub place: Option<PlanPlace>,
    /// The kinds of failure that the plan does not handle.
    pub kinds: Vec<FailureKind>,
    /// The error that ends the plan.
    pub error: String,
    /// Where this error is thrown.
    pub error_place: Option<PlanPlace>,
    /// The numbers of the calls before it that change something, in the run with the failure.
    pub changed_before: Vec<usize>,
}

/// A way in which a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The tool reports an error.
    ToolError,
    /// The server answers with a JSON-RPC error, or the connection fails.
    ProtocolError,
    /// There is no answer in time.
    Timeout,
}

/// How far the kernel enforces the isolation of the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SandboxLevels {
    /// File and network access rules.
    pub landlock: String,
    /// The list of allowed system calls.
    pub seccomp: String,
    /// Limits of memory, CPU time, files and processes.
    pub rlimits: String,
}

/// The executions of the plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Runs {
    /// Their number.
    pub count: usize,
    /// The time that they took, in milliseconds.
    pub elapsed_ms: f64,
    /// Whether the budget ended the search for what depends on values that are not known.
    pub budget_hit: bool,
    /// What was not tried.
    pub not_done: Vec<String>,
}

impl DryRunReport {
    /// Whether no check failed.
    pub fn is_clean(&self) -> bool {
        !self.findings.iter().any(|finding| finding.severity == Severity::Error)
    }

    /// Whether the plan changes something, or may.
    pub fn has_side_effects(&self) -> bool {
        !self.side_effects.is_empty()
    }

    /// Whether something has changed since the plan was saved.
    pub fn has_changes(&self) -> bool {
        self.findings.iter().any(|finding| finding.code.is_change())
    }

    /// Adds an error after the other errors, for a check of the caller.
    pub fn add_error(&mut self, code: FindingCode, call: Option<usize>, message: String) {
        let called = call.and_then(|call| self.tools_called.get(call.checked_sub(1)?));
        let place = called.and_then(|call| call.place.clone());
        let severity = Severity::Error;
        let finding = PlanFinding { code, severity, call, place, message, hint: None, source_line: None };
        let position = self.findings.iter().position(|other| other.severity != Severity::Error);
        self.findings.insert(position.unwrap_or(self.findings.len()), finding);
    }

    /// Adds findings before the others of their severity.
    pub(super) fn add_findings(&mut self, found: Vec<PlanFinding>) {
        let warnings = found.iter().filter(|finding| finding.severity == Severity::Warning);
        self.validation.warnings =
            warnings.map(PlanFinding::warning).chain(self.validation.warnings.drain(..)).collect();
        self.findings.splice(..0, found);
        self.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    }

    /// The number of findings of a severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }
}

impl FindingCode {
    /// Whether a finding of this kind is a change since a plan was saved.
    fn is_change(self) -> bool {
        use FindingCode::{AnswerChanged, CallChanged, EffectChanged, PlanEdited, SchemaChanged, ToolRemoved};
        matches!(self, PlanEdited | ToolRemoved | SchemaChanged | EffectChanged | AnswerChanged | CallChanged)
    }
}

impl PlanFinding {
    /// The finding as an entry of `validation.warnings`.
    pub(super) fn warning(&self) -> String {
        let call = self.call.map(|call| format!("call {call}: ")).unwrap_or_default();
        format!("{call}{}", self.message)
    }
}

impl ReportedCall {
    /// Whether the plan got an invented value without even a schema.
    pub fn is_placeholder(&self) -> bool {
        self.answer.source == AnswerOrigin::Placeholder
    }
}

/// The JSON Schema of a report.
pub fn json_schema() -> Value {
    let mut schema = schemars::schema_for!(DryRunReport);
    schema.insert("title".to_owned(), "The report of `rehearse dry-run --json`".into());
    schema.into()
}
