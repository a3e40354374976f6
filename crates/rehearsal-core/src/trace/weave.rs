//! Things in the order in which they happened, each under what it belongs to, with bounded memory.

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};

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
}

/// Something, and what belongs to it, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Woven<T> {
    /// The thing itself.
    pub thing: T,
    /// Nothing, unless it is a call.
    pub inside: Vec<T>,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Nobody,
    /// It happened while this one was open, for which so much speaks, and more than for others.
    Perhaps(Place, i64),
    /// It says so.
    Surely(Place),
    /// It says so, but not on its stream.
    Named(Place),
    /// It happened while several were open for which as much speaks.
    Anybody(i64),
}

impl<T> Default for Weave<T> {
    fn default() -> Weave<T> {
        Weave { window: BTreeMap::new(), bytes: 0, taken: 0, unanswered: VecDeque::new() }
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
            owner = match (tie.bond(&call.tie), owner) {
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
            item.owner = match (item.tie.bond(call), item.owner) {
                (Bond::None, _) | (_, Owner::Surely(_)) => continue,
                (Bond::Sure, _) => Owner::Surely(place),
                (Bond::Named | Bond::Possible, Owner::Named(_)) => continue,
                (Bond::Named, _) => Owner::Named(place),
                // Nobody knows how long it was open.
                (Bond::Possible, _) if call.end.is_none() => continue,
                (Bond::Possible, Owner::Nobody) => Owner::Perhaps(place, item.tie.speaks_for(call)),
                (Bond::Possible, Owner::Perhaps(_, most) | Owner::Anybody(most)) => {
                    let speaks = item.tie.speaks_for(call);
                    match speaks.cmp(&most) {
                        Ordering::Less => continue,
                        Ordering::Equal => Owner::Anybody(most),
                        Ordering::Greater => Owner::Perhaps(place, speaks),
                    }
                }
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
            Owner::Surely(_) | Owner::Named(_) | Owner::Perhaps(..) | Owner::Nobody | Owner::Anybody(_) => *first,
        };
        let Item { thing, claims, .. } = self.remove(&place)?;
        let mut inside = Vec::new();
        for at in claims {
            let is_its_own = self.window.get(&at).is_some_and(|item| match item.owner {
                Owner::Surely(call) | Owner::Named(call) | Owner::Perhaps(call, _) => call == place,
                Owner::Nobody | Owner::Anybody(_) => false,
            });
            if is_its_own {
                inside.extend(self.remove(&at).map(|item| item.thing));
            }
        }
        Some(Woven { thing, inside })
    }

    fn remove(&mut self, place: &Place) -> Option<Item<T>> {
        let item = self.window.remove(place)?;
        self.bytes = self.bytes.saturating_sub(item.bytes);
        Some(item)
    }
}
