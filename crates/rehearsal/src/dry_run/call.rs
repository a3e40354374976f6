//! A call of a run, with its answer, and the interface of what answers it.

use std::collections::{BTreeSet, HashMap};

use rehearsal_core::json::Path;
use rehearsal_sandbox::ErrorKind;
use serde_json::Value;

use super::effects::ToolEffect;
use super::report::{AnswerOrigin, PlanPlace};
use super::run::{CallKey, CallSite};
use super::violations::Violation;
use crate::cache::StaleAnswer;

/// What answers the calls of a run: the simulation of a dry run, or the servers of a real run.
///
/// The sandbox and the tasks of a workflow use only this interface, so a plan runs in the same way with both.
pub(crate) trait Answerer {
    /// Connects to the servers of the next calls at the same time.
    fn prepare(&mut self, servers: &BTreeSet<&str>);

    /// The key of the next call from a place.
    fn next_key(&mut self, server: &str, tool: &str, place: Option<&PlanPlace>) -> CallKey;

    /// Makes a call and returns its index.
    fn call(&mut self, call: PlannedCall, at_ms: f64) -> usize;

    /// Advances to the next event: calls that end, or the timer of the plan if it is due before.
    fn advance(&mut self, timer_ms: Option<f64>) -> RunEvent;

    /// The time since the start of the run, in milliseconds.
    fn now_ms(&self) -> f64;

    /// A call that has ended.
    fn get(&self, index: usize) -> &AnsweredCall;
}

/// The number of calls from each place.
#[derive(Debug, Default)]
pub(crate) struct CallCounter(HashMap<CallSite, usize>);

impl CallCounter {
    /// The key of the next call from a place.
    pub(crate) fn next_key(&mut self, server: &str, tool: &str, place: Option<&PlanPlace>) -> CallKey {
        let site = CallSite::new(server, tool, place);
        let count = self.0.entry(site.clone()).or_default();
        *count += 1;
        CallKey { site, occurrence: *count }
    }
}

/// The next event of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RunEvent {
    /// These calls ended at this time.
    Delivered { now_ms: f64, calls: Vec<usize> },
    /// A timer of the plan fires first.
    Timer,
    /// Nothing is left to happen.
    Nothing,
}

/// A call that a plan makes.
#[derive(Clone, Debug)]
pub(crate) struct PlannedCall {
    pub(crate) key: CallKey,
    pub(crate) server: String,
    pub(crate) tool: String,
    pub(crate) arguments: Value,
    pub(crate) place: Option<PlanPlace>,
    /// The task of a workflow.
    pub(crate) task: Option<String>,
    /// The values that were changed or lost when the arguments became JSON.
    pub(crate) lossy: Vec<String>,
    /// Whether the plan continues if the call fails.
    pub(crate) is_caught: bool,
    /// The calls that had to end first, if the plan states them; else those of the last delivery.
    pub(crate) after: Option<Vec<usize>>,
    /// What answers the call if nothing is known about the tool's results.
    pub(crate) placeholder: CallEnd,
    /// The paths of arguments that come from placeholders: their types are guesses, so they break no schema.
    pub(crate) guessed: Vec<Path>,
}

/// What a plan gets for a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CallEnd {
    /// A value.
    Value(Value),
    /// A value that records what the plan does with it, in place of a placeholder, as long as its shape is not known.
    Recorder,
    /// An error, which the plan may catch.
    Error { kind: ErrorKind, message: String, content: Value },
}

/// A call with its answer.
#[derive(Clone, Debug)]
pub(crate) struct AnsweredCall {
    pub(crate) call: PlannedCall,
    pub(crate) end: CallEnd,
    pub(crate) origin: AnswerOrigin,
    pub(crate) cached_ms: Option<u64>,
    pub(crate) remarks: Vec<String>,
    /// Why the recorded answer was not used, if there is one.
    pub(crate) stale: Option<StaleAnswer>,
    pub(crate) problem: Option<CallProblem>,
    /// Why the input schema of the tool cannot be used, so that the arguments are not checked.
    pub(crate) unchecked: Option<String>,
    pub(crate) effect: ToolEffect,
    /// The latency in milliseconds, if it is known.
    pub(crate) latency_ms: Option<f64>,
    /// Whether the latencies of real runs differ, so that the estimate has a range.
    pub(crate) latency_varies: bool,
    pub(crate) started_ms: f64,
    pub(crate) ended_ms: f64,
    /// The calls that were delivered just before this one was made.
    pub(crate) waits_for: Vec<usize>,
}

/// Why a real run of a call would fail before the tool runs.
#[derive(Clone, Debug)]
pub(crate) enum CallProblem {
    /// No server has this name.
    MissingServer { hint: Option<String> },
    /// The server has no such tool.
    MissingTool { hint: Option<String> },
    /// The server's tools are not known.
    UnknownCatalogue { reason: String },
    /// The arguments do not fit the input schema.
    Arguments(Vec<Violation>),
}

impl AnsweredCall {
    /// `server:tool`
    pub(crate) fn name(&self) -> String {
        format!("{}:{}", self.call.server, self.call.tool)
    }

    /// Whether the answer is no real one for these arguments.
    pub(crate) fn is_invented(&self) -> bool {
        match self.origin {
            AnswerOrigin::SchemaMock | AnswerOrigin::Placeholder | AnswerOrigin::None => true,
            AnswerOrigin::Override | AnswerOrigin::CapabilityCache | AnswerOrigin::Live => false,
        }
    }

    /// Whether a real run of the call would fail.
    pub(crate) fn fails(&self) -> bool {
        let is_refused = match &self.problem {
            Some(CallProblem::UnknownCatalogue { .. }) | None => false,
            Some(_) => true,
        };
        is_refused || matches!(self.end, CallEnd::Error { .. })
    }
}
