//! Calls that the plan contains and that a run did not reach, checked as far as they are known.

use super::catalogue::Servers;
use super::report::{Effect, PlanPlace, UnreachedCall};
use super::simulation::CallProblem;
use super::violations::{KnownArguments, check_known_parts};

/// A call that a run did not reach.
#[derive(Debug)]
pub(super) struct StaticCheck {
    pub(super) call: UnreachedCall,
    pub(super) problem: Option<CallProblem>,
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
        StaticCheck { call: UnreachedCall { tool: Some(format!("{server}:{tool}")), place, effect, reason }, problem }
    }
}
