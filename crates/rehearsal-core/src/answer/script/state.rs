//! The state of a mock while it serves.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::mock::Mock;

/// The state of a mock while it serves: the values that answers read and change, and how often each target was requested
/// and each rule used.
#[derive(Clone, Debug, Default)]
pub(in crate::answer) struct MockState {
    values: Arc<Map<String, Value>>,
    /// How often each tool, resource and prompt was requested.
    calls: Vec<u64>,
    /// How often each rule was used.
    given: Vec<u64>,
    /// How often each rule for faults could have happened.
    faults: Vec<u64>,
}

impl MockState {
    /// The state at the start.
    pub(in crate::answer) fn new(mock: &Mock) -> MockState {
        MockState {
            values: Arc::clone(&mock.initial),
            calls: vec![0; mock.target_count],
            given: vec![0; mock.rules],
            faults: vec![0; mock.fault_rules],
        }
    }

    /// The values that templates read.
    pub(in crate::answer) fn snapshot(&self) -> Arc<Map<String, Value>> {
        Arc::clone(&self.values)
    }

    /// How often each rule for faults could have happened.
    pub(in crate::answer) fn fault_counts(&mut self) -> &mut [u64] {
        &mut self.faults
    }

    /// How often a rule was used.
    pub(in crate::answer) fn times_used(&self, rule: usize) -> u64 {
        self.given.get(rule).copied().unwrap_or_default()
    }

    /// Counts one use of a rule.
    pub(in crate::answer) fn count_use(&mut self, rule: usize) {
        if let Some(count) = self.given.get_mut(rule) {
            *count += 1;
        }
    }

    /// Counts a request for a target, and returns how many there were.
    pub(in crate::answer) fn call(&mut self, target: usize) -> u64 {
        match self.calls.get_mut(target) {
            Some(count) => {
                *count += 1;
                *count
            }
            None => 1,
        }
    }

    /// How often a target was requested.
    pub(in crate::answer) fn calls(&self, target: usize) -> u64 {
        self.calls.get(target).copied().unwrap_or_default()
    }

    /// Sets a value.
    pub(in crate::answer) fn set(&mut self, key: &str, value: Value) {
        Arc::make_mut(&mut self.values).insert(key.to_owned(), value);
    }

    /// Appends to a list. If the value is not a list, it becomes the first element of one.
    pub(in crate::answer) fn append(&mut self, key: &str, value: Value) {
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
    pub(in crate::answer) fn delete(&mut self, key: &str) {
        Arc::make_mut(&mut self.values).shift_remove(key);
    }
}
