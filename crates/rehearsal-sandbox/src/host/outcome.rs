//! How a run ended.

use std::process::ExitStatus;

use serde_json::value::RawValue;

use crate::limits::Limit;
use crate::place::SourcePlace;
use crate::protocol::{ConsoleLine, Lossy, ProbeRecord, RecordedShape};

/// Everything that is known about a run after its end.
#[derive(Debug)]
pub struct RunOutcome {
    /// The value that the plan returned (`null` for `undefined`), or why it returned none.
    pub result: Result<Box<RawValue>, PlanError>,
    /// What the result lost on the way to JSON.
    pub result_lossy: Vec<Lossy>,
    /// Rejected promises that the plan neither awaited nor caught, at most 100: failures that it did not notice.
    pub unhandled: Vec<PlanException>,
    /// Console output in order.
    pub console: Vec<ConsoleLine>,
    /// How many calls the plan issued; their ids are 1 to this number.
    pub calls: u32,
    /// The ids of the calls whose promise nothing used, in ascending order.
    pub not_awaited: Vec<u32>,
    /// The ids of the other calls that had no result when the plan ended, in ascending order.
    pub unfinished: Vec<u32>,
    /// What the plan did with results that were recorders.
    pub shapes: Vec<RecordedShape>,
    /// What the probes recorded, one entry for each of [`crate::CompiledPlan::sites`].
    pub sites: Vec<ProbeRecord>,
    /// The virtual time at the end: milliseconds since the start.
    pub ended_ms: f64,
}

/// Why a run has no result.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The plan threw an exception that it did not catch.
    #[error("{0}")]
    Exception(PlanException),
    /// The plan exceeded a limit.
    #[error("{0}")]
    Limit(Limit),
    /// No call is open and no timer is set, so no promise can be settled any more.
    #[error("the plan waits for a promise that nothing settles")]
    Stuck,
    /// The host returned [`crate::Deliver::Cancel`].
    #[error("the run was cancelled")]
    Cancelled,
    /// The worker failed or broke the protocol; it was killed.
    #[error("the sandbox worker failed: {0}")]
    Worker(WorkerFailure),
    /// The [`crate::Host`] delivered what cannot be delivered.
    #[error("the host of the plan made a mistake: {0}")]
    Host(String),
}

/// An exception that the plan did not catch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanException {
    /// The name of the error: `TypeError`; empty if the plan threw something that is no `Error`.
    pub name: String,
    /// The message.
    pub message: String,
    /// Where it was thrown, or where the failed call is.
    pub place: Option<SourcePlace>,
    /// The failed call, if this is a `ToolError`.
    pub call: Option<u32>,
}

impl std::fmt::Display for PlanException {
    /// Prints `TypeError: message`.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.name.as_str() {
            "" => formatter.write_str(&self.message),
            name => write!(formatter, "{name}: {}", self.message),
        }
    }
}

/// What went wrong with a worker.
#[derive(Debug, thiserror::Error)]
pub enum WorkerFailure {
    /// The process ended during a run.
    #[error("it ended{}{}", status.map(|status| format!(" with {status}")).unwrap_or_default(), last(stderr))]
    Exited {
        /// Its exit status.
        status: Option<ExitStatus>,
        /// The end of its stderr.
        stderr: String,
    },
    /// It sent something that the protocol does not allow.
    #[error("it broke the protocol: {0}")]
    Protocol(String),
    /// An earlier run failed, and the worker was killed then.
    #[error("it was killed after an earlier run")]
    Killed,
    /// A pipe to it failed.
    #[error("cannot reach it: {0}")]
    Io(#[source] std::io::Error),
}

fn last(stderr: &str) -> String {
    match stderr.trim() {
        "" => String::new(),
        text => format!(": {text}"),
    }
}
