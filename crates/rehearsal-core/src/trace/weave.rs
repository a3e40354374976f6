//! Things in the order in which they happened, each under what it belongs to, with bounded memory.

use std::collections::{BTreeMap, VecDeque};

use super::asker::{Askers, COMPARED, best};
use super::tie::{Bond, Tie};

/// How much is looked at to find the order.
pub(super) const WINDOW: usize = 16_384;
/// How many bytes that may be.
const WINDOW_BYTES: usize = 32 << 20;

/// How far before a request the head of its POST may be.
const HEADS: u64 = 256;
/// How many calls without an answer are looked at for each entry.
const UNANSWERED: usize = 64;

/// The place of something: its number, that in its batch, and one that nothing else has.
type Place = (u64, u32, u64);

/// Puts the things of one session in order. It [takes](Weave::take) them in the order in which they were
/// [settled](Tie::settled) and gives them in the order in which they began. A call that took so long that more than the
/// window holds happened meanwhile stands where it was answered.
#[derive(Debug)]
pub struct Weave<T> {
    window: BTreeMap<Place, Item<T>>,
    bytes: usize,
    /// How many things were taken.
    taken: u64,
    /// Calls without an answer: what belongs to them may come after them.
    unanswered: VecDeque<Place>,
    askers: Askers,
}

/// Something, and what belongs to it, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Woven<T> {
    /// The thing itself.
    pub thing: T,
    /// Nothing, unless it is a call.
    pub inside: Vec<T>,
    /// Where a question stands alone because nobody can say which of several calls asked it: the place of the call that
    /// likeliest did.
    pub likely: Option<(u64, u32)>,
}

#[derive(Debug)]
struct Item<T> {
    thing: T,
    tie: Tie,
    bytes: usize,
    owner: Owner,
    /// What may belong to it.
    claims: Vec<Place>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Owner {
    Nobody,
    /// It happened while these were open; they are compared when the first of them is given, where that matters then.
    Open(Vec<Place>),
    /// It happened while this one was open, for which more speaks than for others.
    Perhaps(Place),
    /// It says so.
    Surely(Place),
    /// It says so, but not on its stream.
    Named(Place),
    /// It happened while several were open for which as much speaks.
    Anybody(Vec<Place>),
}

impl<T> Default for Weave<T> {
    fn default() -> Weave<T> {
        let (window, unanswered, askers) = Default::default();
        Weave { window, bytes: 0, taken: 0, unanswered, askers }
    }
}

impl<T> Weave<T> {
    /// Whether it should give something before it takes more.
    pub fn is_full(&self) -> bool {
        self.window.len() >= WINDOW || self.bytes >= WINDOW_BYTES
    }

    /// Takes the next thing, which has about so many bytes.
    pub fn take(&mut self, thing: T, tie: Tie, bytes: usize) {
        self.taken += 1;
        let place = (tie.place.0, tie.place.1, self.taken);
        let (owner, claims) = match tie.is_request() {
            true => (Owner::Nobody, self.claim(place, &tie)),
            false => (self.unanswered_owner(place, &tie), Vec::new()),
        };
        self.bytes += bytes;
        self.window.insert(place, Item { thing, tie, bytes, owner, claims });
    }

    /// What happened may belong to a call that was never answered.
    fn unanswered_owner(&mut self, place: Place, tie: &Tie) -> Owner {
        let mut owner = Owner::Nobody;
        for waiting in &self.unanswered {
            let Some(call) = self.window.get_mut(waiting) else { continue };
            if *waiting > place {
                continue;
            }
            owner = match (tie.bond(&call.tie), &owner) {
                (Bond::None | Bond::Possible, _) | (Bond::Named, Owner::Surely(_)) => continue,
                (Bond::Named, _) => Owner::Named(*waiting),
                (Bond::Sure, _) => Owner::Surely(*waiting),
            };
            call.claims.push(place);
        }
        owner
    }

    /// A call claims what happened while it was open.
    fn claim(&mut self, place: Place, call: &Tie) -> Vec<Place> {
        let mut claims = Vec::new();
        let end = call.end.map_or((u64::MAX, 0, 0), |(seq, item)| (seq, item, 0)).max(place);
        // Over HTTP the head of a POST comes before the request in it.
        let begin = if call.has_channel() { (place.0.saturating_sub(HEADS), 0, 0) } else { place };
        for (at, item) in self.window.range_mut(begin..end) {
            if *at < place && !item.tie.is_head_of(call) {
                continue;
            }
            item.owner = match (item.tie.bond(call), &mut item.owner) {
                (Bond::None, _) | (_, Owner::Surely(_)) => continue,
                (Bond::Sure, _) => Owner::Surely(place),
                (Bond::Named | Bond::Possible, Owner::Named(_)) => continue,
                (Bond::Named, _) => Owner::Named(place),
                // Nobody knows how long it was open.
                (Bond::Possible, _) if call.end.is_none() => continue,
                (Bond::Possible, Owner::Nobody) => Owner::Open(vec![place]),
                (Bond::Possible, Owner::Open(calls)) => {
                    // Of what is no question it matters only whether there are several.
                    let most = if item.tie.is_question() { COMPARED } else { 2 };
                    if calls.len() < most {
                        calls.push(place);
                        claims.push(*at);
                    }
                    continue;
                }
                (Bond::Possible, Owner::Perhaps(_) | Owner::Anybody(_)) => continue,
            };
            claims.push(*at);
        }
        if call.end.is_none() {
            self.unanswered.push_back(place);
            if self.unanswered.len() > UNANSWERED {
                self.unanswered.pop_front();
            }
        }
        claims
    }

    /// Gives the first thing, with what belongs to it.
    pub fn give(&mut self) -> Option<Woven<T>> {
        let (first, item) = self.window.first_key_value()?;
        let place = match item.owner {
            // What comes before the call that it belongs to waits for it.
            Owner::Surely(call) if call > *first && self.window.contains_key(&call) => call,
            Owner::Surely(_)
            | Owner::Named(_)
            | Owner::Perhaps(_)
            | Owner::Nobody
            | Owner::Open(_)
            | Owner::Anybody(_) => *first,
        };
        let Item { thing, tie, claims, owner, .. } = self.remove(&place)?;
        let (mut own, mut is_candidate) = (Vec::new(), false);
        for at in claims {
            self.compare(&at, place, &tie);
            match self.window.get(&at).map(|item| (&item.owner, &item.tie)) {
                Some((Owner::Surely(call) | Owner::Named(call) | Owner::Perhaps(call), _)) if *call == place => {
                    own.extend(self.remove(&at));
                }
                Some((Owner::Anybody(_), tie)) => is_candidate |= tie.is_question(),
                Some((Owner::Surely(_) | Owner::Named(_) | Owner::Perhaps(_) | Owner::Nobody | Owner::Open(_), _))
                | None => {}
            }
        }
        if tie.is_request() {
            self.askers.learn(&tie, own.iter().map(|item| &item.tie), is_candidate);
        }
        let likely = match owner {
            Owner::Anybody(calls) if tie.is_question() => {
                let calls: Vec<(u64, u32)> = calls.into_iter().map(|(seq, item, _)| (seq, item)).collect();
                self.askers.guess(&tie, &calls)
            }
            Owner::Surely(_)
            | Owner::Named(_)
            | Owner::Perhaps(_)
            | Owner::Nobody
            | Owner::Open(_)
            | Owner::Anybody(_) => None,
        };
        Some(Woven { thing, inside: own.into_iter().map(|item| item.thing).collect(), likely })
    }

    /// Finds out to which of the calls something belongs that were open, of which this one is being given.
    fn compare(&mut self, at: &Place, given: Place, call: &Tie) {
        let Some(item) = self.window.get(at) else { return };
        let Owner::Open(calls) = &item.owner else { return };
        let tie = |place: &Place| if *place == given { Some(call) } else { self.window.get(place).map(|it| &it.tie) };
        let best = match calls[..] {
            [only] => vec![only],
            _ => best(&item.tie, calls.iter().filter_map(|place| Some((*place, tie(place)?)))),
        };
        let owner = match best[..] {
            [only] => Owner::Perhaps(only),
            _ => Owner::Anybody(best),
        };
        if let Some(item) = self.window.get_mut(at) {
            item.owner = owner;
        }
    }

    fn remove(&mut self, place: &Place) -> Option<Item<T>> {
        let item = self.window.remove(place)?;
        self.bytes = self.bytes.saturating_sub(item.bytes);
        Some(item)
    }
}
