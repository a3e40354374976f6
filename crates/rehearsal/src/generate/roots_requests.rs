//! Which `roots/list` requests a server sent for a call, and which it sent unrelated to any call.
//!
//! Many servers request the roots after the handshake and after each `notifications/roots/list_changed`. With stdio, and
//! on the GET stream, nothing in the request shows whether a call that is in flight is its reason.

use std::collections::BTreeSet;

use rehearsal_core::exchange::Channel;
use rehearsal_core::message::Method;
use rehearsal_core::trace::RecordedCall;

use super::server_model::{DistinctRequest, PrecedingEvent};

/// The position of a message: the number of its session, and its sequence number in it.
type Position = (usize, u64);

/// All `roots/list` requests of the recordings.
#[derive(Debug, Default)]
pub(super) struct RootsRequests {
    requests: BTreeSet<Position>,
    /// The requests that belong to no answer.
    unattached: Vec<Position>,
    /// The `notifications/roots/list_changed` of the clients.
    changes: BTreeSet<Position>,
    /// The requests during a call, in the order of the answers.
    during_calls: Vec<DuringCall>,
}

/// A `roots/list` that was sent while a call was in flight, possibly for another reason.
#[derive(Debug)]
pub(super) struct DuringCall {
    pub(super) position: Position,
    /// The index of the call's request in the model.
    pub(super) request: usize,
    /// The index of the answer.
    pub(super) answer: usize,
    /// The index of the `roots/list` among the events before the answer.
    pub(super) event: usize,
}

/// How a `roots/list` is related to the call during which it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    /// The call is its reason.
    Related,
    /// Only the time relates them.
    Unclear,
    /// The server returned the result of the call before it got the roots.
    Unrelated,
}

/// The relation of a server request to the call during which it was sent.
pub(super) fn relation(request: &RecordedCall, call: &RecordedCall) -> Relation {
    let is_on_own_stream = request.channel() != Channel::MAIN && request.channel() == call.channel();
    if !is_roots_list(request) || is_on_own_stream || names_task(request) {
        return Relation::Related;
    }
    let end = |call: &RecordedCall| call.response.as_ref().map(|response| (response.seq, response.item));
    match (end(request), end(call)) {
        (Some(roots), Some(result)) if roots < result => Relation::Unclear,
        _ => Relation::Unrelated,
    }
}

pub(super) fn is_roots_list(request: &RecordedCall) -> bool {
    request.request.message.method() == Some(&Method::ROOTS_LIST)
}

fn names_task(request: &RecordedCall) -> bool {
    let params = request.request.message.params();
    params.is_some_and(|params| params.at(&["_meta", "io.modelcontextprotocol/related-task"]).is_some())
}

impl RootsRequests {
    /// Adds a `notifications/roots/list_changed`.
    pub(super) fn add_change(&mut self, position: Position) {
        self.changes.insert(position);
    }

    /// Adds a request that belongs to no answer.
    pub(super) fn add_unattached(&mut self, position: Position) {
        self.requests.insert(position);
        self.unattached.push(position);
    }

    /// Adds a request that was sent during a call.
    pub(super) fn add_during_call(&mut self, request: DuringCall) {
        self.requests.insert(request.position);
        self.during_calls.push(request);
    }

    /// Whether this is the first request since the handshake or the last change of the roots.
    fn follows_change(&self, position: Position) -> bool {
        let session = (position.0, 0)..position;
        let change = self.changes.range(session.clone()).next_back();
        self.requests.range(session).next_back().is_none_or(|earlier| Some(earlier) < change)
    }

    /// Removes the requests that the server sent unrelated to a call from the answers, and makes the unclear ones optional.
    /// `sessions` has the session of each answer of each request. Returns how many were removed.
    pub(super) fn settle(self, requests: &mut [DistinctRequest], sessions: &[Vec<usize>]) -> usize {
        let is_habit = self.unattached.iter().any(|position| self.follows_change(*position));
        let mut removed = 0;
        // From the last one, so that the indexes of the others stay valid.
        for DuringCall { position, request, answer, event } in self.during_calls.iter().rev() {
            if !self.follows_change(*position) {
                continue;
            }
            let answers = &mut requests[*request].answers;
            let others = answers.iter().zip(&sessions[*request]).enumerate().filter(|(at, _)| at != answer);
            let mut same_session = others.filter(|(_, (_, session))| **session == position.0);
            let is_needed = same_session.all(|(_, (other, _))| other.before.iter().any(requests_roots));
            let before = &mut answers[*answer].before;
            if is_habit || !is_needed {
                before.remove(*event);
                removed += 1;
            } else if let PrecedingEvent::InputRequests(inputs) = &mut before[*event] {
                inputs.iter_mut().for_each(|input| input.optional = true);
            }
        }
        removed
    }
}

fn requests_roots(event: &PrecedingEvent) -> bool {
    match event {
        PrecedingEvent::InputRequests(inputs) => inputs.iter().any(|input| input.method == Method::ROOTS_LIST),
        PrecedingEvent::Notification { .. } | PrecedingEvent::EmptyRound => false,
    }
}
