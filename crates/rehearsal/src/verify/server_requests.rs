//! Answers server requests from the recording, and compares them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rehearsal_core::json::RawJson;
use rehearsal_core::message::{ErrorReply, Method, Reply};
use rehearsal_core::protocol::code;
use rehearsal_core::report::Finding;
use serde_json::{Value, json};

use super::ignored_paths::IgnoredPaths;
use super::secrets::Secrets;
use crate::client::{ClientHandlers, HandlerResult, ServerRequest};

const ADDED: &str = "added: the server requests";
const REMOVED: &str = "removed: the server no longer requests";

/// The place of a server request or an input request in a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct RequestPlace {
    /// The sequence number of the request that it is, or that was answered with it.
    pub(super) seq: u64,
    /// The index in a batch.
    pub(super) item: Option<u32>,
    /// The key in `inputRequests`; `None` for a server request.
    pub(super) name: Option<String>,
}

/// A recorded server request or input request, with its response.
#[derive(Clone, Debug)]
pub(super) struct ExpectedRequest {
    /// Its place in the session.
    pub(super) place: RequestPlace,
    /// The method.
    pub(super) method: Method,
    /// The params.
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
    pub(super) fn of_round(place: RequestPlace, request: &Value, reply: Option<Value>) -> Option<ExpectedRequest> {
        let method = request.get("method")?.as_str()?.into();
        let reply = reply.map(|reply| Reply::Result(RawJson::from_value(&reply)));
        Some(ExpectedRequest { place, method, params: request.get("params").cloned().unwrap_or_default(), reply })
    }
}

/// The expected server requests of the active call, shared with the client that answers them.
#[derive(Clone, Debug, Default)]
pub(super) struct ServerRequestChecker {
    state: Arc<Mutex<State>>,
    secrets: Secrets,
    ignored_paths: IgnoredPaths,
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
    /// Sets the redaction of the compared params.
    pub(super) fn without(self, secrets: Secrets) -> ServerRequestChecker {
        ServerRequestChecker { secrets, ..self }
    }

    /// Ignores these paths, which begin at `params`.
    pub(super) fn ignoring(self, ignored_paths: IgnoredPaths) -> ServerRequestChecker {
        ServerRequestChecker { ignored_paths, ..self }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds handlers that answer from the recording, before those of the user.
    pub(super) fn with_recorded_answers(&self, handlers: ClientHandlers) -> ClientHandlers {
        let checker = self.clone();
        handlers.on_any(move |request| checker.answer(request))
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

    fn answer(&self, request: &ServerRequest) -> Option<HandlerResult> {
        let mut state = self.state();
        let clean = |params: &Value| stable(&self.secrets.redact_params(&request.method, params));
        let live = clean(&request.params);
        let without_secrets = |it: &ExpectedRequest| {
            let (mut recorded, mut live) = (clean(&it.params), live.clone());
            self.secrets.redact_both(&mut recorded, &mut live);
            (recorded, live)
        };
        let differences = |it: &ExpectedRequest| {
            let (recorded, live) = without_secrets(it);
            self.ignored_paths.differences(&json!({"params": recorded}), &json!({"params": live}))
        };
        let same = |it: &ExpectedRequest| it.method == request.method && differences(it).is_empty();
        let like = |it: &ExpectedRequest| it.method == request.method;
        let at = state.expected.iter().position(same).or_else(|| state.expected.iter().position(like));
        let Some(recorded) = at.and_then(|at| state.expected.remove(at)) else {
            // A request that may arrive at any time is no difference, whether it is repeated, earlier or later.
            if let Some(known) = next(&mut state.any_time, same) {
                return Some(recorded_reply(&known));
            }
            let message = format!("{ADDED} {}, which was not recorded", request.method);
            let hint = format!("`--answer {}=JSON` answers what the recording does not", request.method);
            state.findings.push(Finding::error(message).hint(hint));
            return None;
        };
        let mismatches: Vec<_> = differences(&recorded).into_iter().map(|difference| difference.mismatch).collect();
        if !mismatches.is_empty() {
            let finding = Finding::error(format!("changed: the params of the server request {}", request.method));
            state.findings.push(finding.because(mismatches));
            let (before, live) = without_secrets(&recorded);
            state.changed.push((recorded.place.clone(), self.ignored_paths.params(before, live)));
        }
        Some(recorded_reply(&recorded))
    }
}

/// The next matching request. The last one stays, for a server that sends more requests than were recorded.
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

/// Params without the members that differ every time.
fn stable(params: &Value) -> Value {
    match params {
        Value::Object(fields) => {
            let volatile = ["_meta", "elicitationId", "task"];
            // An elicitation without `mode` is a form, and before 2025-11-25 it has no `mode`.
            let is_default = |key: &str, value: &Value| key == "mode" && value == "form";
            fields
                .iter()
                .filter(|(key, value)| !volatile.contains(&key.as_str()) && !is_default(key, value))
                .map(|(k, v)| (k.clone(), v.clone()))
                .collect()
        }
        Value::Null => Value::Object(serde_json::Map::new()),
        other => other.clone(),
    }
}
