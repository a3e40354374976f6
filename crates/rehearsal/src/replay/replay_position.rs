//! How far each connection is in a recording: which recorded answers it got.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::io;

use rehearsal_core::message::Method;

use super::index::ExchangeGroup;
use super::options::Repeat;
use super::recorded_source::PassedBecause;

/// What all connections of a replay used of the recording.
#[derive(Debug, Default)]
pub(super) struct UsedRecordings {
    /// The recorded sessions with which some connection began.
    begun: HashSet<u32>,
    /// The exchanges that some connection got.
    used: BitSet,
}

/// The position of one connection. Each begins with a recorded session that no other began with, as long as there is one, and
/// else with the first; what that session does not have comes from the others. Over stateless HTTP all clients share one
/// connection.
#[derive(Debug, Default)]
pub(super) struct ConnectionPosition {
    /// The session that it began with.
    session: Option<u32>,
    /// The position in each group of equal requests.
    cursors: HashMap<u64, Cursor>,
    /// The groups with one recording that were used. Nearly all groups have one, and cursors for them would be as large
    /// as the recording.
    only: BitSet,
    /// The first page of the last list of each kind that it got.
    first_pages: HashMap<Method, u32>,
    /// The pages of lists that it got.
    listed: HashSet<u32>,
    /// Why the last request was passed.
    pub(super) passed: Option<PassedBecause>,
}

#[derive(Clone, Debug, Default)]
struct Cursor {
    /// The place in the group where it began; after the last comes the first.
    start: u32,
    /// How many were looked at since.
    seen: u32,
    /// The recordings that were used, if they are repeated as a cycle.
    given: Vec<u32>,
    last: Option<u32>,
    count: u64,
    again: usize,
}

/// The recording that answers next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextRecording {
    /// One that the connection did not get before.
    Fresh(u32),
    /// One that it did.
    Again(u32),
    /// It got all of them; this is how many there were.
    Exhausted(u64),
    /// None may answer.
    None,
}

/// The recordings of equal requests, in their order.
pub(super) trait Candidates {
    /// Their group in the index.
    fn group(&self) -> ExchangeGroup;

    /// The number of the recording at a place, from 0.
    fn member(&self, at: u32) -> io::Result<u32>;

    /// The session of a recording.
    fn session(&self, number: u32) -> io::Result<u32>;

    /// Whether a recording may answer.
    fn may_answer(&self, number: u32) -> io::Result<bool>;

    /// The place of the first that is in this session or in a later one.
    fn place(&self, session: u32) -> io::Result<u32>;
}

impl ConnectionPosition {
    /// The next candidate that may answer.
    pub(super) fn take(
        &mut self,
        candidates: &impl Candidates,
        used: &mut UsedRecordings,
        repeat: Repeat,
    ) -> io::Result<NextRecording> {
        let group = candidates.group();
        if group.count == 1 {
            let number = candidates.member(0)?;
            if self.only.has(group.first) {
                return Ok(if repeat == Repeat::Error {
                    NextRecording::Exhausted(1)
                } else {
                    NextRecording::Again(number)
                });
            }
            start(&mut self.session, &mut used.begun, candidates)?;
            if !candidates.may_answer(number)? {
                return Ok(NextRecording::None);
            }
            self.only.add(group.first);
            used.note(number);
            return Ok(NextRecording::Fresh(number));
        }
        let cursor = match self.cursors.entry(group.first) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let start = start(&mut self.session, &mut used.begun, candidates)?;
                new.insert(Cursor { start, ..Cursor::default() })
            }
        };
        while cursor.seen < group.count {
            let number = candidates.member(cursor.start.wrapping_add(cursor.seen) % group.count)?;
            cursor.seen += 1;
            if candidates.may_answer(number)? {
                cursor.last = Some(number);
                cursor.count += 1;
                if repeat == Repeat::Cycle {
                    cursor.given.push(number);
                }
                used.note(number);
                return Ok(NextRecording::Fresh(number));
            }
        }
        Ok(match (cursor.last, repeat) {
            (None, _) => NextRecording::None,
            (Some(_), Repeat::Error) => NextRecording::Exhausted(cursor.count),
            (Some(last), Repeat::Last) => NextRecording::Again(last),
            (Some(last), Repeat::Cycle) => {
                let number = cursor.given.get(cursor.again).copied().unwrap_or(last);
                cursor.again = (cursor.again + 1) % cursor.given.len().max(1);
                NextRecording::Again(number)
            }
        })
    }

    /// Notes the first page of a list that the connection gets.
    pub(super) fn begin_list(&mut self, method: &Method, number: u32) {
        self.first_pages.insert(method.clone(), number);
    }

    /// The last first page of a kind of list that the connection got.
    pub(super) fn first_page(&self, method: &Method) -> Option<u32> {
        self.first_pages.get(method).copied()
    }

    /// Notes a page of a list that the connection gets.
    pub(super) fn list(&mut self, number: u32, used: &mut UsedRecordings) -> NextRecording {
        used.note(number);
        if self.listed.insert(number) { NextRecording::Fresh(number) } else { NextRecording::Again(number) }
    }
}

impl UsedRecordings {
    /// Notes that some connection got an exchange.
    pub(super) fn note(&mut self, number: u32) {
        self.used.add(u64::from(number));
    }

    /// Whether some connection got an exchange.
    pub(super) fn is_used(&self, number: u32) -> bool {
        self.used.has(u64::from(number))
    }
}

/// The place at which a connection begins with the candidates: that of its own session.
fn start(session: &mut Option<u32>, begun: &mut HashSet<u32>, candidates: &impl Candidates) -> io::Result<u32> {
    if session.is_none() {
        *session = begin(begun, candidates)?;
    }
    let session = session.filter(|_| candidates.group().count > 1);
    Ok(session.map(|session| candidates.place(session)).transpose()?.unwrap_or(0))
}

/// A session that no connection started with, else the first. `None` if there is only one recording.
fn begin(begun: &mut HashSet<u32>, candidates: &impl Candidates) -> io::Result<Option<u32>> {
    let count = candidates.group().count;
    let mut at = 0;
    while at < count {
        let number = candidates.member(at)?;
        let session = candidates.session(number)?;
        if candidates.may_answer(number)? && begun.insert(session) {
            return Ok(Some(session));
        }
        // Candidates of sessions that were recorded at the same time need not be next to each other.
        at = candidates.place(session.saturating_add(1))?.max(at + 1);
    }
    Ok((count > 1).then_some(0))
}

/// A set of numbers that are near each other: one bit each.
#[derive(Debug, Default)]
struct BitSet(Vec<u64>);

impl BitSet {
    fn has(&self, number: u64) -> bool {
        let word = usize::try_from(number / 64).ok().and_then(|at| self.0.get(at));
        word.is_some_and(|word| word & (1 << (number % 64)) != 0)
    }

    fn add(&mut self, number: u64) {
        let Ok(at) = usize::try_from(number / 64) else { return };
        if self.0.len() <= at {
            self.0.resize(at + 1, 0);
        }
        self.0[at] |= 1 << (number % 64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recordings from 10 on, each with its session; 11 may answer nothing.
    struct CandidateRecordings(&'static [u32]);

    impl Candidates for CandidateRecordings {
        fn group(&self) -> ExchangeGroup {
            ExchangeGroup { first: 7, count: u32::try_from(self.0.len()).unwrap() }
        }

        fn member(&self, at: u32) -> io::Result<u32> {
            Ok(10 + at)
        }

        fn session(&self, number: u32) -> io::Result<u32> {
            Ok(self.0[number as usize - 10])
        }

        fn may_answer(&self, number: u32) -> io::Result<bool> {
            Ok(number != 11)
        }

        fn place(&self, session: u32) -> io::Result<u32> {
            Ok(u32::try_from(self.0.partition_point(|it| *it < session)).unwrap())
        }
    }

    fn taken(repeat: Repeat, times: usize) -> Vec<NextRecording> {
        let (mut position, mut used) = (ConnectionPosition::default(), UsedRecordings::default());
        (0..times).map(|_| position.take(&CandidateRecordings(&[0, 0, 0]), &mut used, repeat).unwrap()).collect()
    }

    #[test]
    fn a_single_recording_is_replayed_and_then_repeated() {
        for (repeat, again) in [
            (Repeat::Last, NextRecording::Again(10)),
            (Repeat::Cycle, NextRecording::Again(10)),
            (Repeat::Error, NextRecording::Exhausted(1)),
        ] {
            let (mut position, mut used) = (ConnectionPosition::default(), UsedRecordings::default());
            let once = CandidateRecordings(&[3]);
            for expected in [NextRecording::Fresh(10), again, again] {
                assert_eq!(position.take(&once, &mut used, repeat).unwrap(), expected);
            }
            assert!(used.is_used(10));
            let mut other = ConnectionPosition::default();
            assert_eq!(other.take(&once, &mut used, repeat).unwrap(), NextRecording::Fresh(10));
        }
    }

    #[test]
    fn each_connection_begins_with_another_session_and_then_with_the_first() {
        use NextRecording::{Again, Fresh};
        let mut used = UsedRecordings::default();
        // One at a time, as concurrent clients send their requests.
        let mut positions: [ConnectionPosition; 3] = Default::default();
        let mut all = vec![Vec::new(); 3];
        for _ in 0..4 {
            for (position, taken) in positions.iter_mut().zip(&mut all) {
                taken.push(position.take(&CandidateRecordings(&[3, 3, 3, 5]), &mut used, Repeat::Last).unwrap());
            }
        }
        assert_eq!(all[0], [Fresh(10), Fresh(12), Fresh(13), Again(13)]);
        assert_eq!(all[1], [Fresh(13), Fresh(10), Fresh(12), Again(12)]);
        assert_eq!(all[2], all[0]);
    }

    #[test]
    fn answers_are_replayed_in_order_and_then_repeated_as_configured() {
        use NextRecording::{Again, Exhausted, Fresh};
        assert_eq!(taken(Repeat::Last, 4), [Fresh(10), Fresh(12), Again(12), Again(12)]);
        assert_eq!(taken(Repeat::Cycle, 5), [Fresh(10), Fresh(12), Again(10), Again(12), Again(10)]);
        assert_eq!(taken(Repeat::Error, 3), [Fresh(10), Fresh(12), Exhausted(2)]);
    }

    #[test]
    fn a_used_recording_is_marked() {
        let mut used = UsedRecordings::default();
        used.note(130);
        assert_eq!((used.is_used(130), used.is_used(129), used.is_used(9999)), (true, false, false));
    }
}
