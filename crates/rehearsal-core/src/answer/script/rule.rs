//! The rules of a target in order; the first that matches answers.
//!
//! ```text
//! arguments ──► index by one literal key ──► candidates in order ──► first that matches ──► its next answer
//! ```

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use super::conditions::{CompiledConditions, RuleInput};
use super::state::MockState;
use crate::answer::respond::CompiledAnswer;
use crate::matcher::{MAX_MISMATCHES, Matcher, first_mismatches};
use crate::message::ErrorReply;
use crate::protocol::code;

/// The conditions of a rule, and its answers.
#[derive(Debug)]
pub(in crate::answer) struct CompiledRule {
    /// Its number among all rules of the mock. The state counts its uses under this number.
    pub(in crate::answer) number: usize,
    /// Its name in reports.
    pub(in crate::answer) name: Arc<str>,
    /// The condition on the arguments.
    pub(in crate::answer) when: Option<Matcher>,
    /// The other conditions.
    pub(in crate::answer) given: CompiledConditions,
    /// How often it can be used.
    pub(in crate::answer) times: Option<u64>,
    /// The range of its answers among those of all rules; at least one.
    pub(in crate::answer) answers: Range<usize>,
}

/// One of the answers of a rule, which are used in turn.
#[derive(Debug)]
pub(in crate::answer) struct SequencedAnswer {
    /// The number of its rule.
    pub(in crate::answer) rule: usize,
    /// How often its rule is used before the next answer replaces this one.
    pub(in crate::answer) until: u64,
    /// Its name in reports.
    pub(in crate::answer) name: Arc<str>,
    /// The answer.
    pub(in crate::answer) answer: Arc<CompiledAnswer>,
}

impl CompiledRule {
    fn fits(&self, arguments: &Value, input: &RuleInput<'_>, state: &MockState) -> bool {
        self.times.is_none_or(|times| state.times_used(self.number) < times)
            && self.given.holds(input)
            && self.when.as_ref().is_none_or(|when| when.matches(arguments))
    }
}

/// The rules of one tool, prompt or resource.
///
/// A request does not evaluate ten thousand rules that differ in one argument: rules that require a literal at the most
/// common key are looked up by it, and only the others are evaluated one by one.
#[derive(Debug, Default)]
pub(in crate::answer) struct CompiledRules {
    rules: Vec<CompiledRule>,
    answers: Vec<SequencedAnswer>,
    index: Option<LiteralIndex>,
}

#[derive(Debug)]
struct LiteralIndex {
    key: String,
    /// The indexes of the rules that require this literal there, in order.
    by_literal: HashMap<Literal, Vec<usize>>,
    /// The indexes of all others, in order.
    others: Vec<usize>,
}

/// A scalar. Equal scalars are equal literals. A few unequal ones are, too; the matcher distinguishes them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Literal {
    Null,
    Bool(bool),
    Number(u64),
    Text(String),
}

impl Literal {
    fn from_value(value: &Value) -> Option<Literal> {
        match value {
            Value::Null => Some(Literal::Null),
            Value::Bool(value) => Some(Literal::Bool(*value)),
            // `1` and `1.0` are equal, and so are `0.0` and `-0.0`.
            Value::Number(number) => number.as_f64().map(|number| Literal::Number((number + 0.0).to_bits())),
            Value::String(text) => Some(Literal::Text(text.clone())),
            Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// The literal that a matcher requires at a key.
    fn required_at(when: Option<&Matcher>, key: &str) -> Option<Literal> {
        match when {
            Some(Matcher::Object(fields)) => fields.iter().find(|(name, _)| name == key).and_then(|(_, at)| match at {
                Matcher::Exact(value) => Literal::from_value(value),
                _ => None,
            }),
            Some(Matcher::Exact(Value::Object(fields))) => fields.get(key).and_then(Literal::from_value),
            _ => None,
        }
    }
}

impl LiteralIndex {
    /// An index by the key at which most rules require a literal; `None` for less than 8 rules.
    fn build(rules: &[CompiledRule]) -> Option<LiteralIndex> {
        if rules.len() < 8 {
            return None;
        }
        let mut common: HashMap<&str, usize> = HashMap::new();
        for rule in rules {
            let keys: Vec<&String> = match &rule.when {
                Some(Matcher::Object(fields)) => fields.iter().map(|(key, _)| key).collect(),
                Some(Matcher::Exact(Value::Object(fields))) => fields.keys().collect(),
                _ => Vec::new(),
            };
            for key in keys.into_iter().filter(|key| Literal::required_at(rule.when.as_ref(), key).is_some()) {
                *common.entry(key).or_default() += 1;
            }
        }
        let key = common.into_iter().max_by_key(|(key, count)| (*count, std::cmp::Reverse(*key)))?.0.to_owned();
        let (mut by_literal, mut others) = (HashMap::<_, Vec<_>>::new(), Vec::new());
        for (position, rule) in rules.iter().enumerate() {
            match Literal::required_at(rule.when.as_ref(), &key) {
                Some(literal) => by_literal.entry(literal).or_default().push(position),
                None => others.push(position),
            }
        }
        Some(LiteralIndex { key, by_literal, others })
    }
}

impl CompiledRules {
    /// Rules in the order of the file, and their answers.
    pub(in crate::answer) fn new(rules: Vec<CompiledRule>, answers: Vec<SequencedAnswer>) -> CompiledRules {
        let index = LiteralIndex::build(&rules);
        CompiledRules { rules, answers, index }
    }

    /// The answer at an index.
    pub(in crate::answer) fn get(&self, position: usize) -> Option<&SequencedAnswer> {
        self.answers.get(position)
    }

    /// Every rule.
    pub(in crate::answer) fn iter(&self) -> impl Iterator<Item = &CompiledRule> {
        self.rules.iter()
    }

    /// Every answer.
    pub(in crate::answer) fn answers(&self) -> impl Iterator<Item = &SequencedAnswer> {
        self.answers.iter()
    }

    /// The index of the current answer of the first rule that matches.
    pub(in crate::answer) fn find(&self, arguments: &Value, input: &RuleInput<'_>, state: &MockState) -> Option<usize> {
        let rule = &self.rules[self.first_match(arguments, input, state)?];
        let given = state.times_used(rule.number);
        let passed = self.answers[rule.answers.clone()].partition_point(|answer| answer.until <= given);
        // The last answer of a rule without `times` is repeated without a limit; an exhausted rule does not match.
        Some((rule.answers.start + passed).min(rule.answers.end - 1))
    }

    fn first_match(&self, arguments: &Value, input: &RuleInput<'_>, state: &MockState) -> Option<usize> {
        let fits = |position: &usize| self.rules[*position].fits(arguments, input, state);
        let Some(index) = &self.index else {
            return (0..self.rules.len()).find(fits);
        };
        let literal = arguments.get(&index.key).and_then(Literal::from_value);
        let named = literal.and_then(|literal| index.by_literal.get(&literal)).map_or(&[][..], Vec::as_slice);
        let (first, second) = (named.iter().copied().find(fits), index.others.iter().copied());
        // Only the rules before it can still take precedence.
        let before = second.take_while(|position| first.is_none_or(|first| *position < first)).find(fits);
        before.or(first)
    }

    /// The closest rule, and why it does not match.
    pub(in crate::answer) fn closest(
        &self,
        arguments: &Value,
        input: &RuleInput<'_>,
        state: &MockState,
    ) -> Option<(&CompiledRule, Vec<String>)> {
        let distance = |rule: &&CompiledRule| {
            let exhausted = usize::from(rule.times.is_some_and(|times| state.times_used(rule.number) >= times));
            let when = rule.when.as_ref().map_or(0, |when| when.distance(arguments));
            when.saturating_add(rule.given.distance(input)).saturating_add(exhausted)
        };
        let rule = self.rules.iter().min_by_key(distance)?;
        let mut why: Vec<String> =
            rule.when.iter().flat_map(|when| when.check(arguments)).map(|it| it.to_string()).collect();
        why.extend(rule.given.mismatches(input));
        if let Some(times) = rule.times.filter(|times| state.times_used(rule.number) >= *times) {
            why.push(format!("it was used {times} times already"));
        }
        Some((rule, why))
    }
}

/// The error for a request that no rule matches, with the closest rule and its mismatches.
///
/// ```text
/// no answer for tool get_forecast; closest was `an object with {city: "Oslo"}`: $.city: expected "Oslo", got "Bergen"
/// ```
pub(in crate::answer) fn no_rule_fits(what: &str, closest: Option<(Arc<str>, Vec<String>)>) -> ErrorReply {
    let Some((rule, why)) = closest else {
        return ErrorReply::new(code::INTERNAL_ERROR, format!("no answer for {what}: the mock declares none"));
    };
    let message = format!("no answer for {what}; closest was `{rule}`: {}", first_mismatches(&why).join("; "));
    let data = json!({"closest": with_mismatches(json!({"rule": &*rule}), &why)});
    ErrorReply::new(code::INTERNAL_ERROR, message).with_data(&data)
}

/// The first mismatches as members of an error's data, and how many others there are.
///
/// ```text
/// {"recording":"session a, call 3","mismatches":[{"path":"$.params.arguments.city",…},…],"more":49900}
/// ```
pub(in crate::answer) fn with_mismatches(mut data: Value, mismatches: &[impl Serialize]) -> Value {
    let (first, others) = mismatches.split_at(mismatches.len().min(MAX_MISMATCHES));
    data["mismatches"] = json!(first);
    if !others.is_empty() {
        data["more"] = others.len().into();
    }
    data
}
