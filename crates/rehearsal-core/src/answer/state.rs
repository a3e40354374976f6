//! What a mock remembers while it runs.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::Mock;

/// How many rounds are remembered whose clients have no state to bring back; the oldest are forgotten.
const ROUNDS: usize = 10_000;

/// What a mock remembers while it runs: the state that answers read and change, and how often what was asked for.
///
/// A new one is how it was in the beginning; a test case begins with a new one.
#[derive(Clone, Debug, Default)]
pub struct State {
    values: Arc<Map<String, Value>>,
    /// How often each tool, resource and prompt was asked for.
    calls: Vec<u64>,
    /// How often each rule was given.
    given: Vec<u64>,
    /// How often each rule for faults could have happened.
    faults: Vec<u64>,
    /// Rounds whose clients were sent away without state, each with the request that it belongs to; the oldest first.
    rounds: VecDeque<(String, Value)>,
}

impl State {
    /// How it is in the beginning.
    pub fn new(mock: &Mock) -> State {
        State {
            values: Arc::clone(&mock.initial),
            calls: vec![0; mock.targets],
            given: vec![0; mock.rules],
            faults: vec![0; mock.fault_rules],
            rounds: VecDeque::new(),
        }
    }

    /// What answers can read.
    pub fn values(&self) -> &Map<String, Value> {
        &self.values
    }

    /// The same, to keep.
    pub(super) fn snapshot(&self) -> Arc<Map<String, Value>> {
        Arc::clone(&self.values)
    }

    /// How often each rule for faults could have happened.
    pub(super) fn fault_counts(&mut self) -> &mut [u64] {
        &mut self.faults
    }

    /// How often a rule was given.
    pub(super) fn given(&self, rule: usize) -> u64 {
        self.given.get(rule).copied().unwrap_or_default()
    }

    /// Counts a rule that is given now.
    pub(super) fn give(&mut self, rule: usize) {
        if let Some(count) = self.given.get_mut(rule) {
            *count += 1;
        }
    }

    /// Counts a call, and says the how manyeth it is.
    pub(super) fn call(&mut self, target: usize) -> u64 {
        match self.calls.get_mut(target) {
            Some(count) => {
                *count += 1;
                *count
            }
            None => 1,
        }
    }

    /// Keeps a round until its client makes the same request again.
    pub(super) fn keep_round(&mut self, belongs_to: String, round: Value) {
        if self.rounds.len() == ROUNDS {
            self.rounds.pop_front();
        }
        self.rounds.push_back((belongs_to, round));
    }

    /// The oldest round of this request.
    pub(super) fn take_round(&mut self, belongs_to: &str) -> Option<Value> {
        let at = self.rounds.iter().position(|(other, _)| other == belongs_to)?;
        self.rounds.remove(at).map(|(_, round)| round)
    }

    /// Sets a value.
    pub fn set(&mut self, key: &str, value: Value) {
        Arc::make_mut(&mut self.values).insert(key.to_owned(), value);
    }

    /// Appends to a list, which is made where there is none; what was there and is no list becomes its first element.
    pub fn append(&mut self, key: &str, value: Value) {
        let list = Arc::make_mut(&mut self.values).entry(key).or_insert_with(|| Value::Array(Vec::new()));
        match list {
            Value::Array(elements) => elements.push(value),
            Value::Null => *list = Value::Array(vec![value]),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                *list = Value::Array(vec![list.take(), value]);
            }
        }
    }

    /// Removes a value.
    pub fn delete(&mut self, key: &str) {
        Arc::make_mut(&mut self.values).shift_remove(key);
    }
}
