//! What the server asks, answered from the recording.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rehearsal_core::json::RawJson;
use rehearsal_core::message::{ErrorReply, Method, Reply};
use rehearsal_core::protocol::code;
use rehearsal_core::report::Finding;
use serde_json::{Value, json};

use super::passed_over::PassedOver;
use super::secrets::Secrets;
use crate::client::{Answer, Answers, Asked};

const ADDED: &str = "added: the server asks";
const REMOVED: &str = "removed: the server no longer asks";

/// Where a question stands in a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    /// The sequence number of the request that it is, or that was answered with it.
    pub(super) seq: u64,
    /// Which of a batch.
    pub(super) item: Option<u32>,
    /// What it is called among `inputRequests`; `None` where it is a request of its own.
    pub(super) name: Option<String>,
}

/// A recorded question, and what it was told.
#[derive(Clone, Debug)]
pub(super) struct Recorded {
    /// Where it stands.
    pub(super) place: Place,
    /// Which.
    pub(super) method: Method,
    /// With what.
    pub(super) params: Value,
    /// What the client said, if anything.
    pub(super) reply: Option<Reply>,
}

impl Recorded {
    /// Whether it is asked when the server likes: the roots are the same whatever is being done.
    pub(super) fn is_any_time(&self) -> bool {
        self.method == Method::ROOTS_LIST
    }

    /// Whether both ask for the same.
    pub(super) fn asks_the_same(&self, other: &Recorded) -> bool {
        self.method == other.method && stable(&self.params) == stable(&other.params)
    }

    /// A question of a round of 2026-07-28, and the answer that came with the next request.
    pub(super) fn of_round(place: Place, question: &Value, reply: Option<Value>) -> Option<Recorded> {
        let method = question.get("method")?.as_str()?.into();
        let reply = reply.map(|reply| Reply::Result(RawJson::from_value(&reply)));
        Some(Recorded { place, method, params: question.get("params").cloned().unwrap_or_default(), reply })
    }
}

/// The questions of the request that is being made, shared with the client that answers them.
#[derive(Clone, Debug, Default)]
pub(super) struct Questions {
    state: Arc<Mutex<State>>,
    secrets: Secrets,
    passed_over: PassedOver,
}

#[derive(Debug, Default)]
struct State {
    /// Those that belong to the request that is being made.
    expected: VecDeque<Recorded>,
    /// Those that may come at any time, in their order.
    any_time: Vec<Recorded>,
    findings: Vec<Finding>,
    changed: Vec<(Place, Value)>,
}

impl Questions {
    /// These, compared without secrets.
    pub(super) fn without(self, secrets: Secrets) -> Questions {
        Questions { secrets, ..self }
    }

    /// These, compared without what is passed over; its paths begin at `params`.
    pub(super) fn passing_over(self, passed_over: PassedOver) -> Questions {
        Questions { passed_over, ..self }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers from the recording first, and otherwise as was given.
    pub(super) fn before(&self, given: Answers) -> Answers {
        let questions = self.clone();
        given.before_all(move |asked| questions.answer(asked))
    }

    /// A session begins in which this may be asked at any time.
    pub(super) fn begin(&self, any_time: Vec<Recorded>) {
        *self.state() = State { any_time, ..State::default() };
    }

    /// What the next request is expected to ask.
    pub(super) fn expect(&self, recorded: Vec<Recorded>) {
        let mut state = self.state();
        let any_time = std::mem::take(&mut state.any_time);
        *state = State { expected: recorded.into(), any_time, ..State::default() };
    }

    /// What was found out about them, and what those that are asked in other words ask now.
    pub(super) fn findings(&self) -> (Vec<Finding>, Vec<(Place, Value)>) {
        let mut state = self.state();
        let any_time = std::mem::take(&mut state.any_time);
        let now = State { any_time, ..State::default() };
        let State { expected, mut findings, changed, .. } = std::mem::replace(&mut *state, now);
        findings.extend(expected.iter().map(|it| Finding::error(format!("{REMOVED} {}", it.method))));
        (findings, changed)
    }

    /// Whether a finding says that a question came or went.
    pub(super) fn is_come_or_gone(finding: &Finding) -> bool {
        finding.message.starts_with(ADDED) || finding.message.starts_with(REMOVED)
    }

    fn answer(&self, asked: &Asked) -> Option<Answer> {
        let mut state = self.state();
        let clean = |params: &Value| stable(&self.secrets.clean_params(&asked.method, params));
        let live = clean(&asked.params);
        let without_secrets = |it: &Recorded| {
            let (mut recorded, mut live) = (clean(&it.params), live.clone());
            self.secrets.take_out(&mut recorded, &mut live);
            (recorded, live)
        };
        let drifted = |it: &Recorded| {
            let (recorded, live) = without_secrets(it);
            self.passed_over.drifted(&json!({"params": recorded}), &json!({"params": live}))
        };
        let same = |it: &Recorded| it.method == asked.method && drifted(it).is_empty();
        let like = |it: &Recorded| it.method == asked.method;
        let at = state.expected.iter().position(same).or_else(|| state.expected.iter().position(like));
        let Some(recorded) = at.and_then(|at| state.expected.remove(at)) else {
            // Asked now and again, or a little earlier or later than it was: then there is nothing to tell.
            if let Some(known) = next(&mut state.any_time, same) {
                return Some(given(&known));
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
        Some(given(&recorded))
    }
}

/// The next of these; the last of them stays, for whoever asks more often than was recorded.
fn next(recorded: &mut Vec<Recorded>, wanted: impl Fn(&Recorded) -> bool) -> Option<Recorded> {
    let mut such = recorded.iter().enumerate().filter(|(_, it)| wanted(it)).map(|(at, _)| at);
    let at = such.next()?;
    let is_last = such.next().is_none();
    Some(if is_last { recorded[at].clone() } else { recorded.remove(at) })
}

/// What a question was answered with.
fn given(recorded: &Recorded) -> Answer {
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
            // A question is a form where it does not say what it is, and before 2025-11-25 it cannot.
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
