//! One run of a plan, and how it can differ from the base run.

use rehearsal_sandbox::{ErrorKind, ForcedDecision, ProbeRecord};
use serde_json::Value;

use super::alternates::Alternate;
use super::call::AnsweredCall;
use super::report::{FindingCode, PlanPlace, Via};
use super::simulation::{INVENTED_ANSWERS, LatencyChoice};

/// A plan that can run several times.
pub(super) trait PlanRunner {
    /// Runs the plan.
    fn run(&mut self, variation: &Variation) -> RunRecord;

    /// The places at which the plan decides what it does next.
    fn sites(&self) -> &[DecisionSite];

    /// The side of a decision on which a call at this place is: `true` is the part that runs if the condition holds.
    fn side_of(&self, site: usize, place: &PlanPlace) -> Option<bool>;

    /// The derivations whose values may be used in arguments of calls at this place: the name of the argument and the indexes
    /// of their sites.
    fn derived_arguments(&self, place: &PlanPlace) -> Vec<(&str, &[u32])>;

    /// Whether the plan does nothing with the result of calls at this place.
    fn is_discarded(&self, place: &PlanPlace) -> bool;
}

/// How a run differs from the base run, which is the default.
#[derive(Clone, Debug, Default)]
pub(super) struct Variation {
    pub(super) latencies: LatencyChoice,
    /// Another time of the start.
    pub(super) other_clock: bool,
    /// Another sequence of `Math.random`.
    pub(super) other_seed: bool,
    /// Other values in place of invented answers.
    pub(super) answers: Option<VariedAnswers>,
    /// A decision that does not depend on values.
    pub(super) force: Option<ForcedDecision>,
    /// The decisions of the base run, which this run repeats whatever its values are.
    pub(super) follow: Vec<String>,
    /// Calls that fail.
    pub(super) failure: Option<(CallSite, ErrorKind)>,
}

/// Other values in place of invented answers.
#[derive(Clone, Debug)]
pub(super) struct VariedAnswers {
    pub(super) alternate: Alternate,
    /// Only the answers of calls from here.
    pub(super) only: Option<CallSite>,
}

impl Variation {
    /// Another value in place of every invented answer, or of those of one place.
    pub(super) fn answers(alternate: Alternate, only: Option<CallSite>) -> Variation {
        Variation { answers: Some(VariedAnswers { alternate, only }), ..Variation::default() }
    }

    /// Whether this is the base run, apart from latencies.
    pub(super) fn is_base(&self) -> bool {
        let Variation { latencies: _, other_clock, other_seed, answers, force, follow: _, failure } = self;
        !other_clock && !other_seed && answers.is_none() && force.is_none() && failure.is_none()
    }
}

/// A place at which a plan decides what it does next.
#[derive(Clone, Debug)]
pub(super) struct DecisionSite {
    pub(super) kind: SiteKind,
    pub(super) place: PlanPlace,
    pub(super) text: String,
    /// Whether the decision is made again and again, so that it must not be forced for ever.
    pub(super) is_loop: bool,
    /// The number of choices that can be forced.
    pub(super) choices: u32,
    /// The derivations whose values may be used here, by the index of their site.
    pub(super) derived_from: Vec<u32>,
}

/// What is recorded at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SiteKind {
    /// The outcome of a condition.
    Condition,
    /// The value of a `switch`.
    Switch,
    /// The turns of a loop.
    Loop,
    /// The errors that a `catch` handles.
    Catch,
    /// A value that is computed from others. It decides nothing by itself.
    Derivation,
}

/// A place in the plan from which a tool is called.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct CallSite {
    server: String,
    tool: String,
    at: Option<(u32, Option<u32>)>,
    via: Vec<(u32, u32)>,
}

impl CallSite {
    pub(crate) fn new(server: &str, tool: &str, place: Option<&PlanPlace>) -> CallSite {
        let via = place.iter().flat_map(|place| &place.via).map(|Via { line, column }| (*line, *column));
        CallSite {
            server: server.to_owned(),
            tool: tool.to_owned(),
            at: place.map(|place| (place.line, place.column)),
            via: via.collect(),
        }
    }

    /// The same place, however it was reached.
    pub(crate) fn without_callers(&self) -> CallSite {
        CallSite { via: Vec::new(), ..self.clone() }
    }

    pub(crate) fn tool(&self) -> &str {
        &self.tool
    }
}

/// A call in every run of a plan: its place, and its number among the calls from there, from 1.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CallKey {
    pub(crate) site: CallSite,
    pub(crate) occurrence: usize,
}

/// What a run of a plan leaves behind.
#[derive(Debug, Default)]
pub(crate) struct RunRecord {
    /// The calls, in the order in which the plan made them.
    pub(crate) calls: Vec<AnsweredCall>,
    /// The value of the plan; `null` if it failed.
    pub(crate) value: Value,
    /// Why the plan failed.
    pub(crate) failure: Option<PlanFailure>,
    pub(crate) console: Vec<String>,
    /// The values that were changed or lost when the plan's value became JSON.
    pub(crate) lossy: Vec<String>,
    /// The calls whose promise the plan did not use.
    pub(crate) not_awaited: Vec<usize>,
    /// The calls whose results came after the end of the plan.
    pub(crate) unfinished: Vec<usize>,
    /// Errors of promises that the plan does not handle.
    pub(crate) unhandled: Vec<PlanFailure>,
    /// The virtual time at the end.
    pub(crate) duration_ms: f64,
    /// The tasks that did not run, by index, with the reason.
    pub(crate) skipped: Vec<(usize, String)>,
    /// What the plan decided, one entry for each of [`PlanRunner::sites`].
    pub(crate) decisions: Vec<ProbeRecord>,
}

impl RunRecord {
    /// Whether a call from one place has so many invented answers that later ones may be empty.
    pub(crate) fn repeats_invented_calls(&self) -> bool {
        self.calls.iter().any(|call| call.is_invented() && call.call.key.occurrence > INVENTED_ANSWERS)
    }

    /// Whether a limit ended the run, so that it shows nothing about the plan's values.
    pub(crate) fn is_limited(&self) -> bool {
        let is_limit = |failure: &PlanFailure| matches!(failure.code, FindingCode::Limit | FindingCode::Sandbox);
        self.failure.as_ref().is_some_and(is_limit)
    }

    /// Whether the engine threw the error that ended the run: with these values the plan cannot go on.
    pub(crate) fn is_impossible(&self) -> bool {
        let names = ["TypeError:", "RangeError:", "ReferenceError:", "SyntaxError:"];
        self.failure.as_ref().is_some_and(|failure| names.iter().any(|name| failure.message.starts_with(name)))
    }
}

/// Why a plan failed.
#[derive(Clone, Debug)]
pub(crate) struct PlanFailure {
    pub(crate) code: FindingCode,
    pub(crate) message: String,
    pub(crate) place: Option<PlanPlace>,
    /// The call whose error the plan did not catch.
    pub(crate) call: Option<usize>,
    /// Whether it ran until it exceeded a limit, as a loop without an end does.
    pub(crate) is_endless: bool,
}
