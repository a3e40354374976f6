//! A request that no recording answers: what came closest, and what is done about it.

use std::io;

use rehearsal_core::answer::{Answer, Asked, Begun, Provenance, Unmatched, World};
use rehearsal_core::json::RawJson;
use rehearsal_core::matcher::{At, Matcher};
use rehearsal_core::message::{ErrorReply, Method, Reply};
use rehearsal_core::protocol::code;
use rehearsal_core::trace::{Likeness, RequestKey, subject};
use serde_json::Value;

use super::answers::LOOKED_AT;
use super::index::{about_key, method_key};
use super::options::Unknown;
use super::replay::{CANDIDATES, Shared};
use super::tape::request;

/// How many recordings are compared to find the closest.
const COMPARED: usize = 1_000;
/// How long they may be together.
const COMPARED_BYTES: u64 = 16 << 20;

impl Shared {
    /// Where a request does not fulfil what it must beside being recorded.
    pub(super) fn unfit(&self, asked: &Asked, view: &Value, key: RequestKey) -> io::Result<Option<Unmatched>> {
        if self.options.matchers.is_empty() {
            return Ok(None);
        }
        // With everything that does not count otherwise.
        let whole = Likeness::default().view(&asked.method, Some(&asked.params));
        let mut mismatches = Vec::new();
        for matcher in &self.options.matchers {
            let found = matcher.check(&whole);
            if found.is_empty() {
                continue;
            }
            if let Matcher::At(at) = matcher
                && !at.finds(&whole)
                && !self.is_recorded_with(at, key, asked)?
            {
                continue;
            }
            mismatches.extend(found);
        }
        if mismatches.is_empty() {
            return Ok(None);
        }
        let place = match self.closest(asked, view)? {
            Unmatched::Closest { place, .. } => Some(place),
            Unmatched::Nothing
            | Unmatched::Unfit { .. }
            | Unmatched::UsedUp { .. }
            | Unmatched::Task { .. }
            | Unmatched::Ended { .. }
            | Unmatched::Unanswered { .. } => None,
        };
        Ok(Some(Unmatched::Unfit { place, mismatches }))
    }

    /// Whether all recordings under a key, and there are some, have what a path finds.
    fn is_recorded_with(&self, at: &At, key: RequestKey, asked: &Asked) -> io::Result<bool> {
        let recorded = self.suiting(key, CANDIDATES as usize)?;
        for number in &recorded {
            let recorded = self.tape.recorded(*number)?;
            let params = request(&recorded).params().and_then(|params| params.value().ok());
            if !at.finds(&Likeness::default().view(&asked.method, params.as_ref())) {
                return Ok(false);
            }
        }
        Ok(!recorded.is_empty())
    }

    /// What is done about a request that was not recorded.
    pub(super) fn unknown(&self, asked: Asked, why: &Unmatched, world: &World<'_>) -> io::Result<Begun> {
        let name = name(&asked).map(str::to_owned);
        self.ledger().unmatched(asked.method.as_str(), name);
        if self.options.unknown == Unknown::First
            && self.upstream.is_none()
            && let Some(first) = self.first_alike(&asked)?
        {
            let key = self.options.likeness.key(&asked.method, Some(&asked.params));
            self.progress().note(first);
            return self.play(first, asked, key, world, 0);
        }
        let answer = why.refusal(&asked.method, &asked.params);
        Ok(Begun::Unknown(answer, Box::new(asked)))
    }

    /// Refuses a request because of what it is.
    pub(super) fn refuse(&self, asked: &Asked, error: ErrorReply) -> Begun {
        self.ledger().unmatched(asked.method.as_str(), name(asked).map(str::to_owned));
        Begun::Answered(Answer::protocol(Reply::Error(error)))
    }

    /// Counts a request that was refused before it came here. Who tries versions, and hears which there are, has asked
    /// for nothing yet.
    pub(super) fn count_refused(&self, method: &Method, params: Option<&RawJson>, error: &ErrorReply) {
        let opens = [Method::INITIALIZE, Method::DISCOVER].contains(method);
        if !opens && error.code != code::UNSUPPORTED_VERSION {
            let field = |key: &str| params.and_then(|params| params.field(key)?.text());
            self.ledger().unmatched(method.as_str(), field("name").or_else(|| field("uri")));
        }
    }

    /// The answer to a request whose recording cannot be read.
    pub(super) fn unread(&self, method: &Method, name: Option<&str>, why: &str) -> Answer {
        self.ledger().unmatched(method.as_str(), name.map(str::to_owned));
        let reply = Reply::Error(ErrorReply::new(code::INTERNAL_ERROR, why.to_owned()));
        Answer { provenance: Provenance::Nobody, remarks: vec![format!("{method}: {why}")], ..Answer::protocol(reply) }
    }

    /// The recording that differs least.
    pub(super) fn closest(&self, asked: &Asked, view: &Value) -> io::Result<Unmatched> {
        let (mut failed, mut bytes) = (None, 0);
        let recorded = self.comparable(asked)?.into_iter().map_while(|number| {
            if bytes > COMPARED_BYTES {
                return None;
            }
            let read = self.tape.index.exchange(number).and_then(|exchange| {
                bytes += u64::from(exchange.span.length);
                self.tape.call(exchange.span)
            });
            let params = match read {
                Ok(call) => call.request.message.params().and_then(|params| params.value().ok()),
                Err(error) => {
                    failed = Some(error);
                    return None;
                }
            };
            Some((number, self.options.likeness.view(&asked.method, params.as_ref())))
        });
        let closest = Likeness::closest(view, recorded);
        match (failed, closest) {
            (Some(error), _) => Err(error),
            (None, None) => Ok(Unmatched::Nothing),
            (None, Some(closest)) => {
                let place = self.tape.recorded(closest.which)?.place.to_string();
                Ok(Unmatched::Closest { place, mismatches: closest.mismatches })
            }
        }
    }

    /// Those that a request is compared with to find the closest: all that are about the same thing, or else about any.
    fn comparable(&self, asked: &Asked) -> io::Result<Vec<u32>> {
        let mut alike = self.alike(asked, COMPARED)?;
        let mut all = Vec::new();
        for number in &alike {
            let recorded = self.tape.recorded(*number)?;
            let about = subject(request(&recorded));
            if about.as_deref() == name(asked) {
                return Ok(alike);
            }
            if all.len() < COMPARED {
                all.extend(self.suiting(about_key(&asked.method, about.as_deref()), COMPARED)?);
            }
        }
        alike.append(&mut all);
        alike.sort_unstable();
        alike.dedup();
        alike.truncate(COMPARED);
        Ok(alike)
    }

    /// The first recording of the same kind that was answered.
    fn first_alike(&self, asked: &Asked) -> io::Result<Option<u32>> {
        for number in self.alike(asked, COMPARED)? {
            if self.tape.index.exchange(number)?.flags.is_answered() {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// Recordings that may answer here and are about the same thing, or else of the same method.
    fn alike(&self, asked: &Asked, limit: usize) -> io::Result<Vec<u32>> {
        let about = self.suiting(about_key(&asked.method, name(asked)), limit)?;
        if !about.is_empty() {
            return Ok(about);
        }
        if self.selected.is_none() {
            return self.suiting(method_key(asked.method.as_str()), limit);
        }
        // Of what is alike the index has only the first ones, and those may be of other sessions.
        let (mut about, mut others, mut looked_at) = (Vec::new(), Vec::new(), 0);
        for session in (0..self.tape.index.sessions()).filter(|session| self.is_selected(*session)) {
            for number in self.tape.of_session(session)? {
                looked_at += 1;
                if looked_at > LOOKED_AT || about.len() >= limit {
                    return Ok(if about.is_empty() { others } else { about });
                }
                let recorded = self.tape.recorded(number)?;
                if request(&recorded).method() != Some(&asked.method) || !self.suits(number)? {
                    continue;
                }
                if subject(request(&recorded)).as_deref() == name(asked) {
                    about.push(number);
                } else if others.len() < limit {
                    others.push(number);
                }
            }
        }
        Ok(if about.is_empty() { others } else { about })
    }

    /// The recordings under a key that may answer here.
    pub(super) fn suiting(&self, key: RequestKey, limit: usize) -> io::Result<Vec<u32>> {
        let Some(group) = self.tape.index.group(key)? else { return Ok(Vec::new()) };
        let members = self.tape.members(group, LOOKED_AT);
        let suiting = members.filter_map(|number| {
            let suits = number.and_then(|number| Ok((number, self.suits(number)?)));
            suits.map(|(number, suits)| suits.then_some(number)).transpose()
        });
        suiting.take(limit).collect()
    }
}

/// What a request is about.
pub(super) fn name(asked: &Asked) -> Option<&str> {
    asked.params.get("name").or_else(|| asked.params.get("uri")).and_then(Value::as_str)
}
