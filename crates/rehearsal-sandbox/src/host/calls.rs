//! The calls of a waiting plan, and what its host delivers.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::place::SourcePlace;
use crate::protocol::Lossy;

/// Decides what a waiting plan gets: a dry run keeps virtual time, a real run waits for servers.
pub trait Host {
    /// The plan waits. `batch` has the calls that it issued since the last time.
    ///
    /// The worker waits for the return value, and this time does not count as time of the worker.
    fn idle(&mut self, batch: Idle) -> Deliver;
}

impl<F: FnMut(Idle) -> Deliver> Host for F {
    fn idle(&mut self, batch: Idle) -> Deliver {
        self(batch)
    }
}

/// The state of a plan that waits.
#[derive(Debug, Clone)]
pub struct Idle {
    /// The new calls, in the order in which the plan issued them.
    pub calls: Vec<PlanCall>,
    /// When the next timer is due, in virtual milliseconds since the start.
    pub timer_ms: Option<f64>,
    /// The ids of all calls without a result, the new ones among them, in ascending order.
    pub open: Vec<u32>,
    /// The plan has returned or thrown already: its open calls were not awaited.
    pub ended: bool,
}

/// A call of a tool.
#[derive(Debug, Clone)]
pub struct PlanCall {
    /// The number of the call in this run; the first is 1.
    pub id: u32,
    /// The server's name in the plan.
    pub server: String,
    /// The tool's name.
    pub tool: String,
    /// The arguments, exactly as they are to be sent.
    pub arguments: Box<RawValue>,
    /// Where the plan calls; `None` if the engine has no position, for example in code of `eval`.
    pub place: Option<SourcePlace>,
    /// What the arguments lost on the way to JSON.
    pub lossy: Vec<Lossy>,
    /// The JSONPaths of arguments that are [recorders](CallOutcome::Recorder): their values are guesses.
    pub unknown: Vec<String>,
    /// The virtual time of the call: milliseconds since the start.
    pub at_ms: f64,
}

/// What happens next in a plan that waits.
#[derive(Debug, Clone)]
pub enum Deliver {
    /// Results of open calls, at least one; they arrive in this order at this virtual time.
    Results {
        /// The virtual time, in milliseconds since the start. Time never goes back.
        now_ms: f64,
        /// The ids of open calls with their results.
        results: Vec<(u32, CallOutcome)>,
    },
    /// The next timer fires, at the time it is due.
    FireTimer,
    /// The run ends with [`crate::PlanError::Cancelled`].
    Cancel,
}

/// The result of a call.
#[derive(Debug, Clone)]
pub enum CallOutcome {
    /// The call resolves with this value.
    Value(Box<RawValue>),
    /// The call resolves with a value that records what the plan does with it: [`crate::RunOutcome::shapes`].
    Recorder,
    /// The call rejects with a `ToolError`.
    Error {
        /// What failed.
        kind: ErrorKind,
        /// The message; the place of the call is appended to it.
        message: String,
        /// What the server sent: the property `content` of the exception.
        content: Value,
    },
}

/// The kind of a failed call: the property `kind` of a `ToolError`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The tool's result has `isError`.
    Tool,
    /// The server responded with a JSON-RPC error, or the connection failed.
    Protocol,
    /// No response in time.
    Timeout,
}

impl ErrorKind {
    /// The name in the plan: `tool`, `protocol` or `timeout`.
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorKind::Tool => "tool",
            ErrorKind::Protocol => "protocol",
            ErrorKind::Timeout => "timeout",
        }
    }
}
