//! A trace from which single exchanges are read.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rehearsal_core::answer::{EventPhase, RecordedExchange, ReplayEvent};
use rehearsal_core::message::Message;
use rehearsal_core::trace::{FileSpan, Format, RecordedCall, RelatedEvent, RequestKey};

use super::index::{self, ExchangeGroup, Existing, Index, IndexError, SessionFacts, damaged};
use super::options::ReplayOptions;
use super::sidecar::converted;
use crate::store::Recording;

/// At most this many exchanges are kept in memory.
const CACHE_CAPACITY: usize = 4096;
/// Maximum number of bytes of an exchange that is kept in memory.
const CACHE_ITEM_LIMIT: u32 = 16 << 10;
/// Maximum number of input rounds of an exchange.
const MAX_ROUNDS: usize = 1000;

/// An exchange that was read, and the number of its next round.
type ReadExchange = (Arc<RecordedExchange>, Option<u32>);

/// A trace and its index.
#[derive(Debug)]
pub(super) struct IndexedTrace {
    file: Arc<File>,
    /// How long the trace was when it was opened; it may grow.
    length: u64,
    pub(super) index: Index,
    /// Exchanges that were read, each with the number of its next round.
    kept: Mutex<HashMap<u32, ReadExchange>>,
    /// Requests that were recorded once, with their exchange.
    found: Mutex<HashMap<RequestKey, (ExchangeGroup, u32)>>,
    facts: Mutex<HashMap<u32, Arc<SessionFacts>>>,
}

impl IndexedTrace {
    /// Opens a recording of any format; one that is not a trace is converted first.
    pub(super) fn open(
        recording: &Recording,
        path: Option<&Path>,
        options: &ReplayOptions,
        existing: Existing,
    ) -> Result<IndexedTrace, IndexError> {
        let (recording, path) = match recording.format() {
            Format::Trace => (recording.clone(), path.map(Path::to_owned)),
            _ => converted(recording, path)?,
        };
        let index = index::open(&recording, path.as_deref(), options, existing)?;
        let file = Arc::clone(recording.file());
        let length = file.metadata()?.len();
        Ok(IndexedTrace {
            file,
            length,
            index,
            kept: Mutex::default(),
            found: Mutex::default(),
            facts: Mutex::default(),
        })
    }

    /// An exchange and its later rounds.
    pub(super) fn rounds(&self, first: u32) -> io::Result<Vec<Arc<RecordedExchange>>> {
        let (first, mut next) = self.read(first)?;
        let mut rounds = vec![first];
        while let Some(number) = next.filter(|_| rounds.len() < MAX_ROUNDS) {
            let (round, after) = self.read(number)?;
            rounds.push(round);
            next = after;
        }
        Ok(rounds)
    }

    /// The exchanges of a key, and the only one if there is one.
    pub(super) fn find(&self, key: RequestKey) -> io::Result<Option<(ExchangeGroup, Option<u32>)>> {
        let found = || self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((group, only)) = found().get(&key) {
            return Ok(Some((*group, Some(*only))));
        }
        let Some(group) = self.index.group(key)? else { return Ok(None) };
        if group.count != 1 {
            return Ok(Some((group, None)));
        }
        let only = self.index.member(group, 0)?;
        let mut found = found();
        if found.len() >= CACHE_CAPACITY {
            found.clear();
        }
        found.insert(key, (group, only));
        Ok(Some((group, Some(only))))
    }

    /// One exchange.
    pub(super) fn recorded(&self, number: u32) -> io::Result<Arc<RecordedExchange>> {
        self.read(number).map(|(recorded, _)| recorded)
    }

    /// One exchange, and the number of its next round.
    fn read(&self, number: u32) -> io::Result<ReadExchange> {
        if let Some(kept) = self.kept.lock().unwrap_or_else(PoisonError::into_inner).get(&number) {
            return Ok(kept.clone());
        }
        let exchange = self.index.exchange(number)?;
        let call = self.call(exchange.span)?;
        let events = self.index.events(&exchange)?.into_iter().map(|event| {
            let text = self.text(event.span)?;
            let what = match event.is_call {
                true => event.span.call(text).map(|call| RelatedEvent::Call(Box::new(call))),
                false => event.span.entry(text).map(RelatedEvent::Entry),
            };
            let phase = if event.is_late { EventPhase::After } else { EventPhase::Before };
            Ok(ReplayEvent { event: what.ok_or_else(changed)?, phase })
        });
        let events = events.collect::<io::Result<Vec<_>>>()?;
        let facts = self.facts(exchange.session)?;
        let place = format!("session {}, call {}", facts.id, number.saturating_sub(facts.first) + 1);
        let recorded = Arc::new(RecordedExchange {
            number,
            session: exchange.session,
            place: place.into(),
            call,
            events,
            revision: exchange.revision(),
            adapted: Arc::default(),
        });
        let read = (recorded, exchange.next_round());
        if exchange.span.length <= CACHE_ITEM_LIMIT {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.len() >= CACHE_CAPACITY {
                kept.clear();
            }
            kept.insert(number, read.clone());
        }
        Ok(read)
    }

    /// A call without its related events.
    pub(super) fn call(&self, span: FileSpan) -> io::Result<RecordedCall> {
        span.call(self.text(span)?).ok_or_else(changed)
    }

    /// The exchanges of a group, in order, at most `limit`.
    pub(super) fn members(&self, group: ExchangeGroup, limit: u32) -> impl Iterator<Item = io::Result<u32>> {
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
    pub(super) fn place_in(&self, group: ExchangeGroup, session: u32) -> io::Result<u32> {
        self.place_of(group, self.first_of(session)?)
    }

    /// The place in a group of the first that is this exchange or a later one.
    pub(super) fn place_of(&self, group: ExchangeGroup, first: u32) -> io::Result<u32> {
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

    /// The exchanges of a group that belong to a session, the last first, at most `limit`.
    pub(super) fn members_of_session(&self, group: ExchangeGroup, session: u32, limit: usize) -> io::Result<Vec<u32>> {
        let within = self.place_in(group, session)?..self.place_in(group, session.saturating_add(1))?;
        within.rev().take(limit).map(|at| self.index.member(group, at)).collect()
    }

    /// The facts about a session.
    pub(super) fn facts(&self, session: u32) -> io::Result<Arc<SessionFacts>> {
        if let Some(known) = self.facts.lock().unwrap_or_else(PoisonError::into_inner).get(&session) {
            return Ok(Arc::clone(known));
        }
        let facts = Arc::new(self.index.facts(session)?);
        let mut known = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= CACHE_CAPACITY {
            known.clear();
        }
        known.insert(session, Arc::clone(&facts));
        Ok(facts)
    }

    fn text(&self, span: FileSpan) -> io::Result<Vec<u8>> {
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

/// The request of an exchange, for messages and for comparison.
pub(super) fn request(recorded: &RecordedExchange) -> &Message {
    &recorded.call.request.message
}

fn changed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the trace was changed after it was opened; start again")
}
