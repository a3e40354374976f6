//! The exchanges of one recorded conversation that are played now, in the order in which they speak.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use rehearsal_core::answer::{Overtaker, Turn};
use tokio::sync::Notify;
use tokio::time::Instant;

/// How many exchanges of a conversation are remembered to have ended.
const ENDED: usize = 10_000;
/// How many movements are remembered: those who wait are behind the last of them.
const MOVED: usize = 1_024;
/// How much later than once another may be asked: machines are busy.
pub(super) const LATE: Duration = Duration::from_secs(1);
/// The least time that is waited for another exchange: clients need some to ask.
pub(super) const LEAST: Duration = Duration::from_millis(100);

/// How what is to be said next stands to the rest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Standing {
    /// It is next.
    Next,
    /// Something that was asked comes first.
    Behind,
    /// Something comes first that nobody has asked yet; until when that may be, since it began.
    Early(Duration),
}

#[derive(Debug, Default)]
pub(super) struct Score {
    /// What each exchange will say next.
    playing: HashMap<u32, u64>,
    /// What those will say next whose clients were sent away with a question and have not come back.
    away: BTreeMap<u32, u64>,
    /// All of both, the next to speak first.
    order: BTreeSet<(u64, u32)>,
    ended: BTreeSet<u32>,
    /// Who is told when it is the next to speak.
    waiting: HashMap<u32, Arc<Notify>>,
    /// Who is told when an exchange has ended, because it plays the same.
    seconds: HashMap<u32, Vec<Arc<Notify>>>,
    /// When something moved last that was to be said at a place, or before it.
    moved: BTreeMap<u64, Instant>,
}

impl Score {
    /// Somebody plays an exchange from here; whether nobody else does.
    pub(super) fn enter(&mut self, request: u32, place: u64, told: &Arc<Notify>) -> bool {
        self.ended.remove(&request);
        if let Some(place) = self.away.remove(&request) {
            self.order.remove(&(place, request));
        }
        if self.playing.contains_key(&request) {
            self.seconds.entry(request).or_default().push(Arc::clone(told));
            return false;
        }
        self.playing.insert(request, place);
        self.order.insert((place, request));
        self.waiting.insert(request, Arc::clone(told));
        self.note(place);
        true
    }

    /// An exchange that is played is here now.
    pub(super) fn go_on(&mut self, request: u32, place: u64) {
        let Some(before) = self.playing.get_mut(&request).filter(|before| **before != place) else { return };
        let before = std::mem::replace(before, place);
        self.order.remove(&(before, request));
        self.order.insert((place, request));
        self.note(before);
    }

    /// An exchange is not played any more; it has ended, or goes on from here when its client comes back.
    pub(super) fn leave(&mut self, request: u32, goes_on: Option<u64>) {
        self.waiting.remove(&request);
        self.seconds.remove(&request).into_iter().flatten().for_each(|told| told.notify_one());
        let before = self.playing.remove(&request);
        if let Some(place) = before {
            self.order.remove(&(place, request));
        }
        match goes_on {
            Some(place) => self.await_back(request, place),
            None => drop(self.ended.insert(request)),
        }
        if self.ended.len() > ENDED {
            self.ended.pop_first();
        }
        before.into_iter().for_each(|place| self.note(place));
    }

    /// A client was sent away, and goes on from here when it comes back.
    pub(super) fn await_back(&mut self, request: u32, place: u64) {
        if self.playing.contains_key(&request) {
            return;
        }
        if let Some(before) = self.away.insert(request, place) {
            self.order.remove(&(before, request));
        }
        self.order.insert((place, request));
        if self.away.len() > ENDED
            && let Some((request, place)) = self.away.pop_first()
        {
            self.order.remove(&(place, request));
        }
    }

    /// Those that come before a place and are away have had their time: nobody waits for them again until they are back.
    pub(super) fn forget_away(&mut self, place: u64) {
        let late: Vec<u32> = self.away.iter().filter(|(_, at)| **at <= place).map(|(request, _)| *request).collect();
        for request in late {
            if let Some(at) = self.away.remove(&request) {
                self.order.remove(&(at, request));
                self.note(at);
            }
        }
    }

    /// How a turn stands, and when something last moved that comes before it.
    pub(super) fn stands(&self, turn: Turn) -> (Standing, Option<Instant>) {
        let moved = self.moved.range(..=turn.place).next_back().map(|(_, moved)| *moved);
        (self.standing(turn), moved)
    }

    fn standing(&self, turn: Turn) -> Standing {
        let is_asked = |request: u32| self.playing.contains_key(&request) || self.away.contains_key(&request);
        let is_open = |other: &Overtaker| !self.ended.contains(&other.request);
        let unanswered = turn.after.answered.filter(is_open);
        let first = self.order.iter().find(|(_, request)| *request != turn.request);
        if first.is_some_and(|(place, _)| *place <= turn.place)
            || unanswered.is_some_and(|other| is_asked(other.request))
        {
            return Standing::Behind;
        }
        // Who only spoke before needs to be asked; what it says has its own place.
        let unasked = turn.after.spoke.filter(|other| is_open(other) && !is_asked(other.request));
        let late = |other: Option<Overtaker>, late: Duration| other.map(|other| other.later.saturating_add(late));
        match late(unanswered, LATE).max(late(unasked, LEAST)) {
            None => Standing::Next,
            Some(until) => Standing::Early(until),
        }
    }

    /// Whether an exchange is played by somebody else first, and when something last moved that comes before this turn.
    pub(super) fn stands_second(&self, turn: Turn) -> (Standing, Option<Instant>) {
        let standing = if self.playing.contains_key(&turn.request) { Standing::Behind } else { Standing::Next };
        (standing, self.stands(turn).1)
    }

    /// What was to be said at this place moved; whoever is next now is told.
    fn note(&mut self, place: u64) {
        // What moved earlier and comes later says nothing more.
        drop(self.moved.split_off(&place));
        self.moved.insert(place, Instant::now());
        if self.moved.len() > MOVED {
            self.moved.pop_first();
        }
        if let Some(next) = self.order.first().and_then(|(_, request)| self.waiting.get(request)) {
            next.notify_one();
        }
    }
}
