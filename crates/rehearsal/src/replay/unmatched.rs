//! A request that no recording answers, and the recording that is closest to it.

use std::io;

use rehearsal_core::answer::{IncomingRequest, Unmatched};
use rehearsal_core::matcher::{JsonPathMatcher, Matcher};
use rehearsal_core::trace::{RequestIdentity, RequestKey, subject};
use serde_json::Value;

use super::index::{method_key, subject_key};
use super::indexed_trace::request as request_of;
use super::recorded_source::MAX_SCANNED;
use super::replay::{CANDIDATES, ReplayState};

/// At most this many recordings are compared to find the closest.
const MAX_COMPARED: usize = 1_000;
/// Maximum number of bytes of the recordings that are compared.
const COMPARED_LIMIT: u64 = 16 << 20;

impl ReplayState {
    /// The mismatches of a request with the matchers in the options, which it must match in addition to its recording.
    pub(super) fn constraint_mismatch(
        &self,
        request: &IncomingRequest,
        key: RequestKey,
    ) -> io::Result<Option<Unmatched>> {
        if self.options.matchers.is_empty() {
            return Ok(None);
        }
        // This view includes the members that a request identity ignores.
        let whole = RequestIdentity::default().view(&request.method, Some(&request.params));
        let mut mismatches = Vec::new();
        for matcher in &self.options.matchers {
            let found = matcher.check(&whole);
            if found.is_empty() {
                continue;
            }
            if let Matcher::At(at) = matcher
                && !at.finds(&whole)
                && !self.is_recorded_with(at, key, request)?
            {
                continue;
            }
            mismatches.extend(found);
        }
        if mismatches.is_empty() {
            return Ok(None);
        }
        let view = self.options.likeness.view(&request.method, Some(&request.params));
        let place = match self.closest_recording(request, &view)? {
            Unmatched::Closest { place, .. } => Some(place),
            Unmatched::NeverRecorded
            | Unmatched::ConstraintFailed { .. }
            | Unmatched::Exhausted { .. }
            | Unmatched::Task { .. }
            | Unmatched::RecordingEnded { .. }
            | Unmatched::Unanswered { .. } => None,
        };
        Ok(Some(Unmatched::ConstraintFailed { place, mismatches }))
    }

    /// Whether all recordings under a key, and there are some, have what a path finds.
    fn is_recorded_with(&self, at: &JsonPathMatcher, key: RequestKey, request: &IncomingRequest) -> io::Result<bool> {
        let recorded = self.answering(key, CANDIDATES as usize)?;
        for number in &recorded {
            let recorded = self.trace.recorded(*number)?;
            let params = request_of(&recorded).params().and_then(|params| params.value().ok());
            if !at.finds(&RequestIdentity::default().view(&request.method, params.as_ref())) {
                return Ok(false);
            }
        }
        Ok(!recorded.is_empty())
    }

    /// The recording that differs least.
    pub(super) fn closest_recording(&self, request: &IncomingRequest, view: &Value) -> io::Result<Unmatched> {
        let (mut failed, mut bytes) = (None, 0);
        let recorded = self.comparable(request)?.into_iter().map_while(|number| {
            if bytes > COMPARED_LIMIT {
                return None;
            }
            let read = self.trace.index.exchange(number).and_then(|exchange| {
                bytes += u64::from(exchange.span.length);
                self.trace.call(exchange.span)
            });
            let params = match read {
                Ok(call) => call.request.message.params().and_then(|params| params.value().ok()),
                Err(error) => {
                    failed = Some(error);
                    return None;
                }
            };
            Some((number, self.options.likeness.view(&request.method, params.as_ref())))
        });
        let closest = RequestIdentity::closest(view, recorded);
        match (failed, closest) {
            (Some(error), _) => Err(error),
            (None, None) => Ok(Unmatched::NeverRecorded),
            (None, Some(closest)) => {
                let place = self.trace.recorded(closest.which)?.place.to_string();
                Ok(Unmatched::Closest { place, mismatches: closest.mismatches })
            }
        }
    }

    /// The recordings that a request is compared with to find the closest: those about the same subject, or else any.
    fn comparable(&self, request: &IncomingRequest) -> io::Result<Vec<u32>> {
        let mut similar = self.similar(request, MAX_COMPARED)?;
        let mut all = Vec::new();
        for number in &similar {
            let recorded = self.trace.recorded(*number)?;
            let about = subject(request_of(&recorded));
            if about.as_deref() == request.subject() {
                return Ok(similar);
            }
            if all.len() < MAX_COMPARED {
                all.extend(self.answering(subject_key(&request.method, about.as_deref()), MAX_COMPARED)?);
            }
        }
        similar.append(&mut all);
        similar.sort_unstable();
        similar.dedup();
        similar.truncate(MAX_COMPARED);
        Ok(similar)
    }

    /// The first recording of the same kind with an answer.
    pub(super) fn first_similar(&self, request: &IncomingRequest) -> io::Result<Option<u32>> {
        for number in self.similar(request, MAX_COMPARED)? {
            if self.trace.index.exchange(number)?.flags.is_answered() {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// Recordings that may answer here and are about the same subject, or else of the same method.
    fn similar(&self, request: &IncomingRequest, limit: usize) -> io::Result<Vec<u32>> {
        let about = self.answering(subject_key(&request.method, request.subject()), limit)?;
        if !about.is_empty() {
            return Ok(about);
        }
        if self.selected.is_none() {
            return self.answering(method_key(request.method.as_str()), limit);
        }
        // The index has only the first similar requests, which may be of other sessions.
        let (mut about, mut others, mut scanned) = (Vec::new(), Vec::new(), 0);
        for session in (0..self.trace.index.sessions()).filter(|session| self.is_selected(*session)) {
            for number in self.trace.of_session(session)? {
                scanned += 1;
                if scanned > MAX_SCANNED || about.len() >= limit {
                    return Ok(if about.is_empty() { others } else { about });
                }
                let recorded = self.trace.recorded(number)?;
                if request_of(&recorded).method() != Some(&request.method) || !self.may_answer(number)? {
                    continue;
                }
                if subject(request_of(&recorded)).as_deref() == request.subject() {
                    about.push(number);
                } else if others.len() < limit {
                    others.push(number);
                }
            }
        }
        Ok(if about.is_empty() { others } else { about })
    }

    /// The recordings under a key that may answer here.
    pub(super) fn answering(&self, key: RequestKey, limit: usize) -> io::Result<Vec<u32>> {
        let Some(group) = self.trace.index.group(key)? else { return Ok(Vec::new()) };
        let members = self.trace.members(group, MAX_SCANNED);
        let fitting = members.filter_map(|number| {
            let fits = number.and_then(|number| Ok((number, self.may_answer(number)?)));
            fits.map(|(number, fits)| fits.then_some(number)).transpose()
        });
        fitting.take(limit).collect()
    }
}
