//! Calls that the plan contains and that a run did not reach, checked as far as they are known.

use super::call::CallProblem;
use super::catalogue::Servers;
use super::report::{Effect, PlanPlace, UnreachedCall};
use super::violations::{KnownArguments, check_known_parts};

/// A call that a run did not reach.
#[derive(Debug)]
pub(super) struct StaticCheck {
    pub(super) call: UnreachedCall,
    pub(super) problem: Option<CallProblem>,
    /// Whether its effect can be undone.
    pub(super) is_reversible: bool,
}

impl StaticCheck {
    /// Checks a call.
    pub(super) fn new(
        servers: &Servers,
        (server, tool): (&str, &str),
        place: PlanPlace,
        arguments: &KnownArguments<'_>,
        reason: String,
    ) -> StaticCheck {
        let (found, problem) = servers.check(server, tool);
        let effect = found.map_or(Effect::Unknown, |tool| tool.effect.effect);
        let violations = match found.map(|tool| &tool.input) {
            Some(Ok(schema)) => check_known_parts(schema, arguments),
            Some(Err(_)) | None => Vec::new(),
        };
        let problem = problem.or_else(|| (!violations.is_empty()).then_some(CallProblem::Arguments(violations)));
        let call = unreached(Some(format!("{server}:{tool}")), place, effect, reason);
        StaticCheck { call, problem, is_reversible: found.is_some_and(|tool| tool.effect.is_reversible) }
    }

    /// A call whose tool only a run can determine: it may change anything.
    pub(super) fn computed(place: PlanPlace) -> StaticCheck {
        let reason = "its name is computed, and this run did not reach it".to_owned();
        let call = unreached(None, place, Effect::Unknown, reason);
        StaticCheck { call, problem: None, is_reversible: false }
    }
}

fn unreached(tool: Option<String>, place: PlanPlace, effect: Effect, reason: String) -> UnreachedCall {
    UnreachedCall { tool, place, effect, reason, only_if: None, with_other_values: false }
}
