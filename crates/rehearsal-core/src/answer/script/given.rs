//! What a rule wants of everything but the arguments.

use serde_json::{Map, Value};

use crate::answer::request_context::IncomingRequest;
use crate::matcher::{Matcher, Mismatch};
use crate::script::{Located, ParseValue, Parsed, ScriptProblem, When, mock};

/// What the conditions of a rule may look at.
#[derive(Clone, Copy, Debug)]
pub(in crate::answer) struct RuleInput<'a> {
    pub(in crate::answer) request: &'a IncomingRequest,
    /// How often the target was requested, from 1.
    pub(in crate::answer) call: u64,
    /// The state of the mock.
    pub(in crate::answer) state: &'a Map<String, Value>,
}

/// Matchers for everything but the arguments.
#[derive(Clone, Debug, Default)]
pub(in crate::answer) struct CompiledConditions {
    wanted: Vec<(ConditionKey, Matcher)>,
}

/// What can be looked at.
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
    /// Compiles what was written; problems go to the list.
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
        let wanted = all.into_iter().filter_map(|(fact, written)| {
            let matcher = meant(written.as_ref()?, problems)?;
            Some((fact, if fact == ConditionKey::Headers { in_lower_case(matcher) } else { matcher }))
        });
        CompiledConditions { wanted: wanted.collect() }
    }

    /// Whether nothing is wanted.
    pub(in crate::answer) fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    /// Whether it looks at headers.
    pub(in crate::answer) fn reads_headers(&self) -> bool {
        self.wanted.iter().any(|(fact, _)| *fact == ConditionKey::Headers)
    }

    /// Whether everything is as wanted.
    pub(in crate::answer) fn holds(&self, input: &RuleInput<'_>) -> bool {
        self.wanted.iter().all(|(fact, matcher)| with_value(*fact, input, |value| matcher.matches_optional(value)))
    }

    /// How far it is from what is wanted.
    pub(in crate::answer) fn distance(&self, input: &RuleInput<'_>) -> usize {
        let distances = self.wanted.iter();
        distances.map(|(fact, matcher)| with_value(*fact, input, |value| matcher.distance_optional(value))).sum()
    }

    /// What is not as wanted: `headers: $.x: expected …`
    pub(in crate::answer) fn mismatches(&self, input: &RuleInput<'_>) -> Vec<String> {
        let said = |(fact, matcher): &(ConditionKey, Matcher)| {
            let mismatches: Vec<Mismatch> = with_value(*fact, input, |value| matcher.check_optional(value));
            mismatches.into_iter().map(|mismatch| format!("{} {mismatch}", fact.name())).collect::<Vec<_>>()
        };
        self.wanted.iter().flat_map(said).collect()
    }

    /// `call: 2`, for the names of rules.
    pub(in crate::answer) fn in_words(&self) -> String {
        let words = self.wanted.iter().map(|(fact, matcher)| format!("{} {matcher}", fact.name()));
        words.collect::<Vec<_>>().join(", ")
    }
}

/// A matcher for headers, whose names have no case; they are known by those in lower case.
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

fn with_value<T>(fact: ConditionKey, input: &RuleInput<'_>, judge: impl FnOnce(Option<&Value>) -> T) -> T {
    match fact {
        ConditionKey::Headers => judge(Some(&input.request.headers)),
        ConditionKey::Client => judge(Some(&input.request.context.client)),
        ConditionKey::Capabilities => judge(Some(&input.request.context.capabilities)),
        ConditionKey::Meta => judge(Some(input.request.meta()).filter(|meta| !meta.is_null())),
        ConditionKey::Call => judge(Some(&input.call.into())),
        ConditionKey::Version => judge(Some(&input.request.context.revision.as_str().into())),
        // A copy, for the few rules that look at it.
        ConditionKey::State => judge(Some(&Value::Object(input.state.clone()))),
    }
}

/// What something that was written means; why it means nothing goes to the list.
pub(in crate::answer) fn meant<T: ParseValue + Clone>(
    written: &Located<Parsed<T>>,
    problems: &mut Vec<ScriptProblem>,
) -> Option<T> {
    match written.parsed() {
        Ok(meaning) => Some(meaning.clone()),
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
    meant(written?, problems).map(|When(matcher)| matcher)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_names_of_headers_have_no_case() {
        for written in [json!({"X-Tenant": "acme"}), json!({"any_of": [{"X-TENANT": "acme"}, {"x-b": 1}]})] {
            let matcher = in_lower_case(Matcher::parse(&written).unwrap());
            assert!(matcher.matches(&json!({"x-tenant": "acme"})) && !matcher.matches(&json!({"x-tenant": "Acme"})));
        }
    }
}
