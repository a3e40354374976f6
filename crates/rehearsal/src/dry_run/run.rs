//! One run of a plan.

use serde_json::Value;

use super::report::{FindingCode, PlanPlace};
use super::simulation::SimulatedCall;

/// What a run of a plan leaves behind.
#[derive(Debug, Default)]
pub(super) struct RunRecord {
    /// The calls, in the order in which the plan made them.
    pub(super) calls: Vec<SimulatedCall>,
    /// The value of the plan; `null` if it failed.
    pub(super) value: Value,
    /// Why the plan failed.
    pub(super) failure: Option<PlanFailure>,
    pub(super) console: Vec<String>,
    /// The values that were changed or lost when the plan's value became JSON.
    pub(super) lossy: Vec<String>,
    /// The calls whose results the plan did not wait for.
    pub(super) not_awaited: Vec<usize>,
    /// Errors of promises that the plan does not handle.
    pub(super) unhandled: Vec<PlanFailure>,
    /// The virtual time at the end.
    pub(super) duration_ms: f64,
    /// The tasks that did not run, by index, with the reason.
    pub(super) skipped: Vec<(usize, String)>,
}

/// Why a plan failed.
#[derive(Clone, Debug)]
pub(super) struct PlanFailure {
    pub(super) code: FindingCode,
    pub(super) message: String,
    pub(super) place: Option<PlanPlace>,
    /// The call whose error the plan did not catch.
    pub(super) call: Option<usize>,
}
