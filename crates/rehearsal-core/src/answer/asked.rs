//! One request, and everything that its answer may depend on.

use serde_json::{Map, Value, json};

use super::Terms;
use crate::message::{ErrorReply, Method};
use crate::protocol::{Era, Revision, code};

/// One request, and everything that its answer may depend on.
#[derive(Clone, Debug)]
pub struct Asked {
    /// What is asked for.
    pub method: Method,
    /// With what: an object, empty where the request had none.
    pub params: Value,
    /// In which version, by whom.
    pub terms: Terms,
    /// HTTP headers by their names in lower case, an object; empty over stdio.
    pub headers: Value,
    /// Which conversation it belongs to, among all of this process.
    pub conversation: u64,
}

impl Asked {
    /// A request without headers.
    pub fn new(method: Method, params: Value, terms: Terms) -> Asked {
        Asked { method, params, terms, headers: json!({}), conversation: 0 }
    }

    /// The refusal of a method that its version does not know.
    pub fn no_method(&self) -> ErrorReply {
        let message = format!("there is no method {} in {}", self.method, self.terms.revision);
        ErrorReply::new(code::METHOD_NOT_FOUND, message)
    }

    /// The era in which this client takes a task in place of an answer, where it does.
    pub fn task_era(&self) -> Option<Era> {
        let wants = self.params.get("task").is_some_and(Value::is_object);
        match self.terms.era() {
            Era::Modern => self.terms.has_tasks_extension().then_some(Era::Modern),
            Era::Legacy => (wants && self.terms.revision == Revision::V2025_11_25).then_some(Era::Legacy),
        }
    }

    /// `_meta` of the request.
    pub(super) fn meta(&self) -> &Value {
        self.params.get("_meta").unwrap_or(&Value::Null)
    }
}

/// What of the world a rule may look at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts<'a> {
    pub(super) asked: &'a Asked,
    /// How often this was asked for, from 1.
    pub(super) call: u64,
    pub(super) state: &'a Map<String, Value>,
}
