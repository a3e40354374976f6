//! A trace from which single exchanges are read.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rehearsal_core::answer::{Place, Recorded, Thing};
use rehearsal_core::message::Message;
use rehearsal_core::trace::{Call, Format, Inside, Span};

use super::index::{self, Existing, Facts, Group, Index, IndexError, damaged};
use super::options::Options;
use super::sidecar::converted;
use crate::store::Recording;

/// How many exchanges are kept in memory.
const KEPT: usize = 4096;
/// How long an exchange may be that is kept.
const KEPT_LENGTH: u32 = 16 << 10;
/// How many rounds an exchange may have.
const ROUNDS: usize = 1000;

/// A trace and its index.
#[derive(Debug)]
pub(super) struct Tape {
    file: Arc<File>,
    /// How long the trace was when it was opened; it may grow.
    length: u64,
    pub(super) index: Index,
    kept: Mutex<HashMap<u32, Arc<Recorded>>>,
    facts: Mutex<HashMap<u32, Arc<Facts>>>,
}

impl Tape {
    /// Opens a recording of any format; one that is not ours is turned into a trace first.
    pub(super) fn open(
        recording: &Recording,
        path: Option<&Path>,
        options: &Options,
        existing: Existing,
    ) -> Result<Tape, IndexError> {
        let (recording, path) = match recording.format() {
            Format::Trace => (recording.clone(), path.map(Path::to_owned)),
            _ => converted(recording, path)?,
        };
        let index = index::open(&recording, path.as_deref(), options, existing)?;
        let file = Arc::clone(recording.file());
        let length = file.metadata()?.len();
        Ok(Tape { file, length, index, kept: Mutex::default(), facts: Mutex::default() })
    }

    /// An exchange and its later rounds.
    pub(super) fn rounds(&self, first: u32) -> io::Result<Vec<Arc<Recorded>>> {
        let mut rounds = vec![self.recorded(first)?];
        let mut next = self.index.exchange(first)?.next_round();
        while let Some(number) = next.filter(|_| rounds.len() < ROUNDS) {
            rounds.push(self.recorded(number)?);
            next = self.index.exchange(number)?.next_round();
        }
        Ok(rounds)
    }

    /// One exchange.
    pub(super) fn recorded(&self, number: u32) -> io::Result<Arc<Recorded>> {
        if let Some(kept) = self.kept.lock().unwrap_or_else(PoisonError::into_inner).get(&number) {
            return Ok(Arc::clone(kept));
        }
        let exchange = self.index.exchange(number)?;
        let call = self.call(exchange.span)?;
        let things = self.index.things(&exchange)?.into_iter().map(|thing| {
            let text = self.text(thing.span)?;
            let what = match thing.is_call {
                true => thing.span.call(text).map(|call| Inside::Call(Box::new(call))),
                false => thing.span.entry(text).map(Inside::Entry),
            };
            let place = if thing.is_late { Place::After } else { Place::Before };
            Ok(Thing { what: what.ok_or_else(changed)?, place })
        });
        let things = things.collect::<io::Result<Vec<_>>>()?;
        let facts = self.facts(exchange.session)?;
        let place = format!("session {}, call {}", facts.id, number.saturating_sub(facts.first) + 1);
        let recorded = Arc::new(Recorded {
            number,
            session: exchange.session,
            place: place.into(),
            call,
            things,
            revision: exchange.revision(),
        });
        if exchange.span.length <= KEPT_LENGTH {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.len() >= KEPT {
                kept.clear();
            }
            kept.insert(number, Arc::clone(&recorded));
        }
        Ok(recorded)
    }

    /// A call without what belongs to it.
    pub(super) fn call(&self, span: Span) -> io::Result<Call> {
        span.call(self.text(span)?).ok_or_else(changed)
    }

    /// Those of a group, in order, as many as there are and no more than `limit`.
    pub(super) fn members(&self, group: Group, limit: u32) -> impl Iterator<Item = io::Result<u32>> {
        (0..group.count.min(limit)).map(move |at| self.index.member(group, at))
    }

    /// The exchanges of a session.
    pub(super) fn of_session(&self, session: u32) -> io::Result<Range<u32>> {
        Ok(self.first_of(session)?..self.first_of(session.saturating_add(1))?)
    }

    /// The first exchange of a session; after the last session, what would come next.
    fn first_of(&self, session: u32) -> io::Result<u32> {
        if session < self.index.sessions() { Ok(self.facts(session)?.first) } else { Ok(self.index.exchanges()) }
    }

    /// The place in a group of the first that is in this session or in a later one.
    pub(super) fn place_in(&self, group: Group, session: u32) -> io::Result<u32> {
        self.place_of(group, self.first_of(session)?)
    }

    /// The place in a group of the first that is this exchange or a later one.
    pub(super) fn place_of(&self, group: Group, first: u32) -> io::Result<u32> {
        // They are in the order of the trace.
        let (mut from, mut to) = (0, group.count);
        while from < to {
            let middle = from + (to - from) / 2;
            match self.index.member(group, middle)? < first {
                true => from = middle + 1,
                false => to = middle,
            }
        }
        Ok(from)
    }

    /// Those of a group that belong to a session, the last first, as many as there are and no more than `limit`.
    pub(super) fn members_of_session(&self, group: Group, session: u32, limit: usize) -> io::Result<Vec<u32>> {
        let within = self.place_in(group, session)?..self.place_in(group, session.saturating_add(1))?;
        within.rev().take(limit).map(|at| self.index.member(group, at)).collect()
    }

    /// What is known about a session.
    pub(super) fn facts(&self, session: u32) -> io::Result<Arc<Facts>> {
        if let Some(known) = self.facts.lock().unwrap_or_else(PoisonError::into_inner).get(&session) {
            return Ok(Arc::clone(known));
        }
        let facts = Arc::new(self.index.facts(session)?);
        let mut known = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KEPT {
            known.clear();
        }
        known.insert(session, Arc::clone(&facts));
        Ok(facts)
    }

    fn text(&self, span: Span) -> io::Result<Vec<u8>> {
        if span.offset.saturating_add(u64::from(span.length)) > self.length {
            return Err(damaged());
        }
        let mut text = vec![0; span.length as usize];
        match self.file.read_exact_at(&mut text, span.offset) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(changed()),
            read => read.map(|()| text),
        }
    }
}

/// The request of an exchange, for people and for comparison.
pub(super) fn request(recorded: &Recorded) -> &Message {
    &recorded.call.request.message
}

fn changed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the trace was changed after it was opened; start again")
}
