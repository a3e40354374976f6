//! Finds out which failures of calls the plan does not handle: it runs once for each call and each kind of failure.

use rehearsal_sandbox::ErrorKind;

use super::report::{Effect, FailureKind, UnhandledFailure};
use super::run::{CallSite, PlanRunner, RunRecord, Variation};

/// Maximum number of places of calls that are tried.
const MAX_PLACES: usize = 200;

/// The failures that the plan does not handle, and the number of runs.
#[derive(Debug, Default)]
pub(super) struct Exploration {
    pub(super) unhandled: Vec<UnhandledFailure>,
    pub(super) runs: usize,
    /// The number of places that were not tried.
    pub(super) left: usize,
}

/// Runs the plan with each call of the base run failing in turn. All calls from one place fail together.
pub(super) fn explore(runner: &mut dyn PlanRunner, base: &RunRecord) -> Exploration {
    let mut places: Vec<(usize, &CallSite)> = Vec::new();
    for (index, call) in base.calls.iter().enumerate().filter(|(_, call)| !call.fails()) {
        if !places.iter().any(|(_, place)| **place == call.call.key.site) {
            places.push((index, &call.call.key.site));
        }
    }
    let mut found = Exploration { left: places.len().saturating_sub(MAX_PLACES), ..Exploration::default() };
    for (index, place) in places.into_iter().take(MAX_PLACES) {
        for (kind, name) in [
            (ErrorKind::Tool, FailureKind::ToolError),
            (ErrorKind::Protocol, FailureKind::ProtocolError),
            (ErrorKind::Timeout, FailureKind::Timeout),
        ] {
            let record = runner.run(&Variation { failure: Some((place.clone(), kind)), ..Variation::default() });
            found.runs += 1;
            let unhandled = record.unhandled.first().filter(|_| record.unhandled.len() > base.unhandled.len());
            let is_new = |_: &&_| base.failure.is_none();
            let Some(error) = record.failure.as_ref().filter(is_new).or(unhandled) else { continue };
            let call = &base.calls[index];
            // What was done when the plan ended cannot be taken back by it.
            let done = record.calls.iter().take_while(|other| other.call.key.site != *place);
            let done = done.enumerate().filter(|(_, call)| call.effect.effect != Effect::Read);
            let failure = UnhandledFailure {
                call: index + 1,
                tool: call.name(),
                place: call.call.place.clone(),
                kinds: vec![name],
                error: error.message.clone(),
                error_place: error.place.clone(),
                changed_before: done.map(|(index, _)| index + 1).collect(),
            };
            match found.unhandled.iter_mut().find(|other| other.is_like(&failure)) {
                Some(other) => other.kinds.push(name),
                None => found.unhandled.push(failure),
            }
        }
    }
    found
}

impl UnhandledFailure {
    /// Whether the plan ends alike for another kind of failure of the same call.
    fn is_like(&self, other: &UnhandledFailure) -> bool {
        let without_kind =
            |failure: &UnhandledFailure| (failure.call, failure.error_place.clone(), failure.changed_before.clone());
        without_kind(self) == without_kind(other)
    }

    /// `tool error, protocol error or time-out`
    pub(super) fn kinds_text(&self) -> String {
        let names: Vec<&str> = self.kinds.iter().map(|kind| kind.text()).collect();
        match &names[..] {
            [names @ .., last] if !names.is_empty() => format!("{} or {last}", names.join(", ")),
            names => names.concat(),
        }
    }
}

impl FailureKind {
    fn text(self) -> &'static str {
        match self {
            FailureKind::ToolError => "tool error",
            FailureKind::ProtocolError => "protocol error",
            FailureKind::Timeout => "time-out",
        }
    }
}
