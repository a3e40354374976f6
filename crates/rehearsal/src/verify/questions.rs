//! Answers server requests from the recording, and compares them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rehearsal_core::json::RawJson;
use rehearsal_core::message::{ErrorReply, Method, Reply};
use rehearsal_core::protocol::code;
use rehearsal_core::report::Finding;
use serde_json::{Value, json};

use super::passed_over::IgnoredPaths;
use super::secrets::Secrets;
use crate::client::{ClientHandlers, HandlerResult, ServerRequest};

const ADDED: &str = "added: the server asks";
const REMOVED: &str = "removed: the server no longer asks";

/// The place of a server request or an input request in a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct RequestPlace {
    /// The sequence number of the request that it is, or that was answered with it.
    pub(super) seq: u64,
    /// Which of a batch.
    pub(super) item: Option<u32>,
    /// What it is called among `inputRequests`; `None` where it is a request of its own.
    pub(super) name: Option<String>,
}

/// A recorded server request or input request, with its response.
#[derive(Clone, Debug)]
pub(super) struct ExpectedRequest {
    /// Its place in the session.
    pub(super) place: RequestPlace,
    /// Which.
    pub(super) method: Method,
    /// With what.
    pub(super) params: Value,
    /// The reply of the recorded client, if any.
    pub(super) reply: Option<Reply>,
}

impl ExpectedRequest {
    /// Whether the server may send it at any time: the roots do not depend on the active call.
    pub(super) fn is_unscheduled(&self) -> bool {
        self.method == Method::ROOTS_LIST
    }

    /// Whether method and params are equal.
    pub(super) fn same_request(&self, other: &ExpectedRequest) -> bool {
        self.method == other.method && stable(&self.params) == stable(&other.params)
    }

    /// Builds an input request of 2026-07-28 with its response, which came with the next request.
    pub(super) fn of_round(place: RequestPlace, question: &Value, reply: Option<Value>) -> Option<ExpectedRequest> {
        let method = question.get("method")?.as_str()?.into();
        let reply = reply.map(|reply| Reply::Result(RawJson::from_value(&reply)));
        Some(ExpectedRequest { place, method, params: question.get("params").cloned().unwrap_or_default(), reply })
    }
}

/// The expected server requests of the active call, shared with the client that answers them.
#[derive(Clone, Debug, Default)]
pub(super) struct ServerRequestChecker {
    state: Arc<Mutex<State>>,
    secrets: Secrets,
    passed_over: IgnoredPaths,
}

#[derive(Debug, Default)]
struct State {
    /// The requests that belong to the active call.
    expected: VecDeque<ExpectedRequest>,
    /// The requests that may arrive at any time, in their order.
    any_time: Vec<ExpectedRequest>,
    findings: Vec<Finding>,
    changed: Vec<(RequestPlace, Value)>,
}

impl ServerRequestChecker {
    /// These, compared without secrets.
    pub(super) fn without(self, secrets: Secrets) -> ServerRequestChecker {
        ServerRequestChecker { secrets, ..self }
    }

    /// Ignores these paths, which begin at `params`.
    pub(super) fn passing_over(self, passed_over: IgnoredPaths) -> ServerRequestChecker {
        ServerRequestChecker { passed_over, ..self }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers from the recording first, and otherwise as was given.
    pub(super) fn before(&self, given: ClientHandlers) -> ClientHandlers {
        let questions = self.clone();
        given.on_any(move |asked| questions.answer(asked))
    }

    /// Begins a session in which these requests may arrive at any time.
    pub(super) fn begin(&self, any_time: Vec<ExpectedRequest>) {
        *self.state() = State { any_time, ..State::default() };
    }

    /// Sets the requests that are expected during the next call.
    pub(super) fn expect(&self, recorded: Vec<ExpectedRequest>) {
        let mut state = self.state();
        let any_time = std::mem::take(&mut state.any_time);
        *state = State { expected: recorded.into(), any_time, ..State::default() };
    }

    /// The findings about the requests of the last call, and the live params of those that changed.
    pub(super) fn findings(&self) -> (Vec<Finding>, Vec<(RequestPlace, Value)>) {
        let mut state = self.state();
        let any_time = std::mem::take(&mut state.any_time);
        let now = State { any_time, ..State::default() };
        let State { expected, mut findings, changed, .. } = std::mem::replace(&mut *state, now);
        findings.extend(expected.iter().map(|it| Finding::error(format!("{REMOVED} {}", it.method))));
        (findings, changed)
    }

    /// Whether a finding is about an added or a removed server request.
    pub(super) fn is_added_or_removed(finding: &Finding) -> bool {
        finding.message.starts_with(ADDED) || finding.message.starts_with(REMOVED)
    }

    fn answer(&self, asked: &ServerRequest) -> Option<HandlerResult> {
        let mut state = self.state();
        let clean = |params: &Value| stable(&self.secrets.clean_params(&asked.method, params));
        let live = clean(&asked.params);
        let without_secrets = |it: &ExpectedRequest| {
            let (mut recorded, mut live) = (clean(&it.params), live.clone());
            self.secrets.redact_both(&mut recorded, &mut live);
            (recorded, live)
        };
        let drifted = |it: &ExpectedRequest| {
            let (recorded, live) = without_secrets(it);
            self.passed_over.drifted(&json!({"params": recorded}), &json!({"params": live}))
        };
        let same = |it: &ExpectedRequest| it.method == asked.method && drifted(it).is_empty();
        let like = |it: &ExpectedRequest| it.method == asked.method;
        let at = state.expected.iter().position(same).or_else(|| state.expected.iter().position(like));
        let Some(recorded) = at.and_then(|at| state.expected.remove(at)) else {
            // A request that may arrive at any time is no difference, whether it is repeated, earlier or later.
            if let Some(known) = next(&mut state.any_time, same) {
                return Some(recorded_reply(&known));
            }
            let surprise = format!("{ADDED} {}, which was not recorded", asked.method);
            let hint = format!("`--answer {}=JSON` answers what the recording does not", asked.method);
            state.findings.push(Finding::error(surprise).hint(hint));
            return None;
        };
        let mismatches: Vec<_> = drifted(&recorded).into_iter().map(|drifted| drifted.mismatch).collect();
        if !mismatches.is_empty() {
            let finding = Finding::error(format!("changed: what the server asks with {}", asked.method));
            state.findings.push(finding.because(mismatches));
            let (before, live) = without_secrets(&recorded);
            state.changed.push((recorded.place.clone(), self.passed_over.params(before, live)));
        }
        Some(recorded_reply(&recorded))
    }
}

/// The next of these. The last one stays, for a server that sends more requests than were recorded.
fn next(recorded: &mut Vec<ExpectedRequest>, wanted: impl Fn(&ExpectedRequest) -> bool) -> Option<ExpectedRequest> {
    let mut such = recorded.iter().enumerate().filter(|(_, it)| wanted(it)).map(|(at, _)| at);
    let at = such.next()?;
    let is_last = such.next().is_none();
    Some(if is_last { recorded[at].clone() } else { recorded.remove(at) })
}

/// The recorded answer to a server request.
fn recorded_reply(recorded: &ExpectedRequest) -> HandlerResult {
    match &recorded.reply {
        Some(Reply::Result(result)) => Ok(result.value().unwrap_or_default()),
        Some(Reply::Error(error)) => Err(error.clone()),
        None => {
            Err(ErrorReply::new(code::INTERNAL_ERROR, format!("{} was not answered in the recording", recorded.method)))
        }
    }
}

/// Params without what is another one every time.
fn stable(params: &Value) -> Value {
    match params {
        Value::Object(fields) => {
            let volatile = ["_meta", "elicitationId", "task"];
            // An elicitation without `mode` is a form, and before 2025-11-25 it has no `mode`.
            let goes_without_saying = |key: &str, value: &Value| key == "mode" && value == "form";
            fields
                .iter()
                .filter(|(key, value)| !volatile.contains(&key.as_str()) && !goes_without_saying(key, value))
                .map(|(k, v)| (k.clone(), v.clone()))
                .collect()
        }
        Value::Null => Value::Object(serde_json::Map::new()),
        other => other.clone(),
    }
}
