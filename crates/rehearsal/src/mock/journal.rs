//! What was asked of a mock.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};

use rehearsal_core::answer::Provenance;
use rehearsal_core::json::RawJson;
use rehearsal_core::message::Method;
use serde_json::Value;

/// How many calls are remembered; the oldest are forgotten.
const LIMIT: usize = 100_000;

/// A request that was answered.
#[derive(Clone, Debug)]
pub struct Called {
    /// What was asked for.
    pub method: Method,
    /// With what.
    pub params: Option<RawJson>,
    /// Who supplied the answer.
    pub provenance: Provenance,
}

impl Called {
    /// The tool or prompt that was asked for, or the URI of the resource.
    pub fn name(&self) -> Option<String> {
        let params = self.params.as_ref()?;
        params.field("name").or_else(|| params.field("uri")).and_then(|name| name.text())
    }

    /// The arguments; an empty object where there were none.
    pub fn arguments(&self) -> Value {
        let arguments = self.params.as_ref().and_then(|params| params.field("arguments"));
        arguments.and_then(|arguments| arguments.value().ok()).unwrap_or_else(|| Value::Object(Default::default()))
    }
}

/// What was asked, in the order in which it was answered.
#[derive(Debug, Default)]
pub(super) struct Journal(Mutex<VecDeque<Called>>);

impl Journal {
    pub(super) fn note(&self, called: Called) {
        let mut calls = self.calls();
        if calls.len() == LIMIT {
            calls.pop_front();
        }
        calls.push_back(called);
    }

    pub(super) fn all(&self) -> Vec<Called> {
        self.calls().iter().cloned().collect()
    }

    pub(super) fn clear(&self) {
        self.calls().clear();
    }

    fn calls(&self) -> MutexGuard<'_, VecDeque<Called>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
