//! The conditions of a rule on everything except the arguments.

use serde_json::{Map, Value};

use crate::answer::request_context::IncomingRequest;
use crate::matcher::{Matcher, Mismatch};
use crate::script::{Located, ParseValue, Parsed, ScriptProblem, When, mock};

/// The values that conditions are evaluated on.
#[derive(Clone, Copy, Debug)]
pub(in crate::answer) struct RuleInput<'a> {
    pub(in crate::answer) request: &'a IncomingRequest,
    /// How often the target was requested, from 1.
    pub(in crate::answer) call: u64,
    /// The state of the mock.
    pub(in crate::answer) state: &'a Map<String, Value>,
}

/// The conditions of a rule, compiled.
#[derive(Clone, Debug, Default)]
pub(in crate::answer) struct CompiledConditions {
    matchers: Vec<(ConditionKey, Matcher)>,
}

/// The key of a condition in `given`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConditionKey {
    Headers,
    Client,
    Capabilities,
    Meta,
    Call,
    Version,
    State,
}

impl ConditionKey {
    fn name(self) -> &'static str {
        match self {
            ConditionKey::Headers => "headers",
            ConditionKey::Client => "client",
            ConditionKey::Capabilities => "capabilities",
            ConditionKey::Meta => "meta",
            ConditionKey::Call => "call",
            ConditionKey::Version => "version",
            ConditionKey::State => "state",
        }
    }
}

impl CompiledConditions {
    /// Compiles conditions; adds problems to the list.
    pub(in crate::answer) fn compile(
        written: Option<&mock::Conditions>,
        problems: &mut Vec<ScriptProblem>,
    ) -> CompiledConditions {
        let Some(written) = written else { return CompiledConditions::default() };
        let all = [
            (ConditionKey::Headers, &written.headers),
            (ConditionKey::Client, &written.client),
            (ConditionKey::Capabilities, &written.capabilities),
            (ConditionKey::Meta, &written.meta),
            (ConditionKey::Call, &written.call),
            (ConditionKey::Version, &written.version),
            (ConditionKey::State, &written.state),
        ];
        let matchers = all.into_iter().filter_map(|(key, written)| {
            let matcher = parsed_or_report(written.as_ref()?, problems)?;
            Some((key, if key == ConditionKey::Headers { in_lower_case(matcher) } else { matcher }))
        });
        CompiledConditions { matchers: matchers.collect() }
    }

    /// Whether there are no conditions.
    pub(in crate::answer) fn is_empty(&self) -> bool {
        self.matchers.is_empty()
    }

    /// Whether a condition reads headers.
    pub(in crate::answer) fn reads_headers(&self) -> bool {
        self.matchers.iter().any(|(key, _)| *key == ConditionKey::Headers)
    }

    /// Whether all conditions hold.
    pub(in crate::answer) fn holds(&self, input: &RuleInput<'_>) -> bool {
        self.matchers.iter().all(|(key, matcher)| with_value(*key, input, |value| matcher.matches_optional(value)))
    }

    /// How far the values are from the conditions.
    pub(in crate::answer) fn distance(&self, input: &RuleInput<'_>) -> usize {
        let distances = self.matchers.iter();
        distances.map(|(key, matcher)| with_value(*key, input, |value| matcher.distance_optional(value))).sum()
    }

    /// The mismatches: `headers $.x: expected …`
    pub(in crate::answer) fn mismatches(&self, input: &RuleInput<'_>) -> Vec<String> {
        let of_condition = |(key, matcher): &(ConditionKey, Matcher)| {
            let mismatches: Vec<Mismatch> = with_value(*key, input, |value| matcher.check_optional(value));
            mismatches.into_iter().map(|mismatch| format!("{} {mismatch}", key.name())).collect::<Vec<_>>()
        };
        self.matchers.iter().flat_map(of_condition).collect()
    }

    /// `call: 2`, for the names of rules.
    pub(in crate::answer) fn describe(&self) -> String {
        let conditions = self.matchers.iter().map(|(key, matcher)| format!("{} {matcher}", key.name()));
        conditions.collect::<Vec<_>>().join(", ")
    }
}

/// A matcher for headers with their names in lower case, as in `IncomingRequest`.
fn in_lower_case(matcher: Matcher) -> Matcher {
    let all = |matchers: Vec<Matcher>| matchers.into_iter().map(in_lower_case).collect();
    match matcher {
        Matcher::Object(fields) => {
            Matcher::Object(fields.into_iter().map(|(name, matcher)| (name.to_ascii_lowercase(), matcher)).collect())
        }
        Matcher::AnyOf(matchers) => Matcher::AnyOf(all(matchers)),
        Matcher::AllOf(matchers) => Matcher::AllOf(all(matchers)),
        Matcher::Not(matcher) => !in_lower_case(*matcher),
        other => other,
    }
}

fn with_value<T>(key: ConditionKey, input: &RuleInput<'_>, evaluate: impl FnOnce(Option<&Value>) -> T) -> T {
    match key {
        ConditionKey::Headers => evaluate(Some(&input.request.headers)),
        ConditionKey::Client => evaluate(Some(&input.request.context.client)),
        ConditionKey::Capabilities => evaluate(Some(&input.request.context.capabilities)),
        ConditionKey::Meta => evaluate(Some(input.request.meta()).filter(|meta| !meta.is_null())),
        ConditionKey::Call => evaluate(Some(&input.call.into())),
        ConditionKey::Version => evaluate(Some(&input.request.context.revision.as_str().into())),
        // Few rules read the state, so it is copied here.
        ConditionKey::State => evaluate(Some(&Value::Object(input.state.clone()))),
    }
}

/// The parsed form of a value; adds the problem to the list if it is invalid.
pub(in crate::answer) fn parsed_or_report<T: ParseValue + Clone>(
    written: &Located<Parsed<T>>,
    problems: &mut Vec<ScriptProblem>,
) -> Option<T> {
    match written.parsed() {
        Ok(parsed) => Some(parsed.clone()),
        Err(error) => {
            problems.push(ScriptProblem::new(written.at, error.to_string()));
            None
        }
    }
}

/// The matcher of a `when`.
pub(in crate::answer) fn when(
    written: Option<&Located<Parsed<When>>>,
    problems: &mut Vec<ScriptProblem>,
) -> Option<Matcher> {
    parsed_or_report(written?, problems).map(|When(matcher)| matcher)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn header_names_are_case_insensitive() {
        for written in [json!({"X-Tenant": "acme"}), json!({"any_of": [{"X-TENANT": "acme"}, {"x-b": 1}]})] {
            let matcher = in_lower_case(Matcher::parse(&written).unwrap());
            assert!(matcher.matches(&json!({"x-tenant": "acme"})) && !matcher.matches(&json!({"x-tenant": "Acme"})));
        }
    }
}
