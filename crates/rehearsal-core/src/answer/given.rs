//! What a rule wants of everything but the arguments.

use serde_json::Value;

use super::request_context::Facts;
use crate::matcher::{Matcher, Mismatch};
use crate::script::{Located, Meaning, Meant, Problem, When, mock};

/// Matchers for everything but the arguments.
#[derive(Clone, Debug, Default)]
pub(super) struct Given {
    wanted: Vec<(Fact, Matcher)>,
}

/// What can be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fact {
    Headers,
    Client,
    Capabilities,
    Meta,
    Call,
    Version,
    State,
}

impl Fact {
    fn name(self) -> &'static str {
        match self {
            Fact::Headers => "headers",
            Fact::Client => "client",
            Fact::Capabilities => "capabilities",
            Fact::Meta => "meta",
            Fact::Call => "call",
            Fact::Version => "version",
            Fact::State => "state",
        }
    }
}

impl Given {
    /// Compiles what was written; problems go to the list.
    pub(super) fn compile(written: Option<&mock::Given>, problems: &mut Vec<Problem>) -> Given {
        let Some(written) = written else { return Given::default() };
        let all = [
            (Fact::Headers, &written.headers),
            (Fact::Client, &written.client),
            (Fact::Capabilities, &written.capabilities),
            (Fact::Meta, &written.meta),
            (Fact::Call, &written.call),
            (Fact::Version, &written.version),
            (Fact::State, &written.state),
        ];
        let wanted = all.into_iter().filter_map(|(fact, written)| {
            let matcher = meant(written.as_ref()?, problems)?;
            Some((fact, if fact == Fact::Headers { in_lower_case(matcher) } else { matcher }))
        });
        Given { wanted: wanted.collect() }
    }

    /// Whether nothing is wanted.
    pub(super) fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    /// Whether it looks at headers.
    pub(super) fn reads_headers(&self) -> bool {
        self.wanted.iter().any(|(fact, _)| *fact == Fact::Headers)
    }

    /// Whether everything is as wanted.
    pub(super) fn holds(&self, facts: &Facts<'_>) -> bool {
        self.wanted.iter().all(|(fact, matcher)| look(*fact, facts, |value| matcher.matches_optional(value)))
    }

    /// How far it is from what is wanted.
    pub(super) fn distance(&self, facts: &Facts<'_>) -> usize {
        let distances = self.wanted.iter();
        distances.map(|(fact, matcher)| look(*fact, facts, |value| matcher.distance_optional(value))).sum()
    }

    /// What is not as wanted: `headers: $.x: expected …`
    pub(super) fn mismatches(&self, facts: &Facts<'_>) -> Vec<String> {
        let said = |(fact, matcher): &(Fact, Matcher)| {
            let mismatches: Vec<Mismatch> = look(*fact, facts, |value| matcher.check_optional(value));
            mismatches.into_iter().map(|mismatch| format!("{} {mismatch}", fact.name())).collect::<Vec<_>>()
        };
        self.wanted.iter().flat_map(said).collect()
    }

    /// `call: 2`, for the names of rules.
    pub(super) fn in_words(&self) -> String {
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

fn look<T>(fact: Fact, facts: &Facts<'_>, judge: impl FnOnce(Option<&Value>) -> T) -> T {
    match fact {
        Fact::Headers => judge(Some(&facts.asked.headers)),
        Fact::Client => judge(Some(&facts.asked.terms.client)),
        Fact::Capabilities => judge(Some(&facts.asked.terms.capabilities)),
        Fact::Meta => judge(Some(facts.asked.meta()).filter(|meta| !meta.is_null())),
        Fact::Call => judge(Some(&facts.call.into())),
        Fact::Version => judge(Some(&facts.asked.terms.revision.as_str().into())),
        // A copy, for the few rules that look at it.
        Fact::State => judge(Some(&Value::Object(facts.state.clone()))),
    }
}

/// What something that was written means; why it means nothing goes to the list.
pub(super) fn meant<T: Meaning + Clone>(written: &Located<Meant<T>>, problems: &mut Vec<Problem>) -> Option<T> {
    match written.meaning() {
        Ok(meaning) => Some(meaning.clone()),
        Err(error) => {
            problems.push(Problem::new(written.at, error.to_string()));
            None
        }
    }
}

/// The matcher of a `when`.
pub(super) fn when(written: Option<&Located<Meant<When>>>, problems: &mut Vec<Problem>) -> Option<Matcher> {
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
