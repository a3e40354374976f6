//! How far a replay is: which answers were given.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::io;

use rehearsal_core::message::Method;

use super::index::Group;
use super::options::Repeat;

/// Which answers were given.
#[derive(Debug, Default)]
pub(super) struct Progress {
    conversations: HashMap<u64, Conversation>,
    /// The recorded sessions with which some conversation began.
    begun: HashSet<u32>,
    /// The exchanges that were given to anybody.
    used: Bits,
}

/// What was said in one conversation. Each begins with a recorded session that no other began with, while there is one, and
/// else with the first; what that one does not have, and what comes after it, is that of the others. Over stateless HTTP
/// all clients share one conversation.
#[derive(Debug, Default)]
struct Conversation {
    /// The session that it began with.
    session: Option<u32>,
    /// How far it is with recordings that are alike, for each group.
    cursors: HashMap<u64, Cursor>,
    /// The groups of one that were given. Nearly all are of one, and a cursor would be as large as the recording.
    only: Bits,
    /// The first page of the last list of each kind that it was given.
    first_pages: HashMap<Method, u32>,
    /// The pages of lists that were given.
    listed: HashSet<u32>,
}

#[derive(Clone, Debug, Default)]
struct Cursor {
    /// Where in the group it began; after the last comes the first.
    start: u32,
    /// How many were looked at since.
    seen: u32,
    /// Those that were given, where they begin anew.
    given: Vec<u32>,
    last: Option<u32>,
    count: u64,
    again: usize,
}

/// Which recording is to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// One that was not given before.
    Fresh(u32),
    /// One that was.
    Again(u32),
    /// There were so many, and all were given.
    UsedUp(u64),
    /// There is none that suits.
    None,
}

/// The recordings that are alike, in their order.
pub(super) trait Alike {
    /// Which they are.
    fn group(&self) -> Group;

    /// The number of the recording at a place, from 0.
    fn member(&self, at: u32) -> io::Result<u32>;

    /// The session of a recording.
    fn session(&self, number: u32) -> io::Result<u32>;

    /// Whether a recording may be given.
    fn suits(&self, number: u32) -> io::Result<bool>;

    /// The place of the first that is in this session or in a later one.
    fn place(&self, session: u32) -> io::Result<u32>;
}

impl Progress {
    /// The next of those that are alike and suit.
    pub(super) fn take(&mut self, alike: &impl Alike, conversation: u64, repeat: Repeat) -> io::Result<Taken> {
        let group = alike.group();
        let conversation = self.conversations.entry(conversation).or_default();
        if group.count == 1 {
            let number = alike.member(0)?;
            if conversation.only.has(group.first) {
                return Ok(if repeat == Repeat::Error { Taken::UsedUp(1) } else { Taken::Again(number) });
            }
            start(&mut conversation.session, &mut self.begun, alike)?;
            if !alike.suits(number)? {
                return Ok(Taken::None);
            }
            conversation.only.add(group.first);
            self.used.add(u64::from(number));
            return Ok(Taken::Fresh(number));
        }
        let cursor = match conversation.cursors.entry(group.first) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let start = start(&mut conversation.session, &mut self.begun, alike)?;
                new.insert(Cursor { start, ..Cursor::default() })
            }
        };
        while cursor.seen < group.count {
            let number = alike.member(cursor.start.wrapping_add(cursor.seen) % group.count)?;
            cursor.seen += 1;
            if alike.suits(number)? {
                cursor.last = Some(number);
                cursor.count += 1;
                if repeat == Repeat::Cycle {
                    cursor.given.push(number);
                }
                self.used.add(u64::from(number));
                return Ok(Taken::Fresh(number));
            }
        }
        Ok(match (cursor.last, repeat) {
            (None, _) => Taken::None,
            (Some(_), Repeat::Error) => Taken::UsedUp(cursor.count),
            (Some(last), Repeat::Last) => Taken::Again(last),
            (Some(last), Repeat::Cycle) => {
                let number = cursor.given.get(cursor.again).copied().unwrap_or(last);
                cursor.again = (cursor.again + 1) % cursor.given.len().max(1);
                Taken::Again(number)
            }
        })
    }

    /// A conversation was given the first page of a list.
    pub(super) fn begin_list(&mut self, conversation: u64, method: &Method, number: u32) {
        self.conversations.entry(conversation).or_default().first_pages.insert(method.clone(), number);
    }

    /// The last first page of a kind of list that a conversation was given.
    pub(super) fn first_page(&self, conversation: u64, method: &Method) -> Option<u32> {
        self.conversations.get(&conversation)?.first_pages.get(method).copied()
    }

    /// Gives a conversation a page of a list.
    pub(super) fn list(&mut self, conversation: u64, number: u32) -> Taken {
        self.used.add(u64::from(number));
        let listed = &mut self.conversations.entry(conversation).or_default().listed;
        if listed.insert(number) { Taken::Fresh(number) } else { Taken::Again(number) }
    }

    /// A conversation is over.
    pub(super) fn ended(&mut self, conversation: u64) {
        self.conversations.remove(&conversation);
    }

    /// Notes that an exchange was given.
    pub(super) fn note(&mut self, number: u32) {
        self.used.add(u64::from(number));
    }

    /// Whether an exchange was given.
    pub(super) fn is_used(&self, number: u32) -> bool {
        self.used.has(u64::from(number))
    }
}

/// The place from which those that are alike are given in a conversation: that of its own session.
fn start(session: &mut Option<u32>, begun: &mut HashSet<u32>, alike: &impl Alike) -> io::Result<u32> {
    if session.is_none() {
        *session = begin(begun, alike)?;
    }
    let session = session.filter(|_| alike.group().count > 1);
    Ok(session.map(|session| alike.place(session)).transpose()?.unwrap_or(0))
}

/// A session that no conversation began with; the first where there is none. `None` where one recording is not enough to
/// tell.
fn begin(begun: &mut HashSet<u32>, alike: &impl Alike) -> io::Result<Option<u32>> {
    let count = alike.group().count;
    let mut at = 0;
    while at < count {
        let number = alike.member(at)?;
        let session = alike.session(number)?;
        if alike.suits(number)? && begun.insert(session) {
            return Ok(Some(session));
        }
        // Where sessions were recorded at the same time, theirs need not stand together.
        at = alike.place(session.saturating_add(1))?.max(at + 1);
    }
    Ok((count > 1).then_some(0))
}

/// A set of numbers that are near each other: one bit each.
#[derive(Debug, Default)]
struct Bits(Vec<u64>);

impl Bits {
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

    /// Recordings from 10 on, each with its session; 11 suits nobody.
    struct Recordings(&'static [u32]);

    impl Alike for Recordings {
        fn group(&self) -> Group {
            Group { first: 7, count: u32::try_from(self.0.len()).unwrap() }
        }

        fn member(&self, at: u32) -> io::Result<u32> {
            Ok(10 + at)
        }

        fn session(&self, number: u32) -> io::Result<u32> {
            Ok(self.0[number as usize - 10])
        }

        fn suits(&self, number: u32) -> io::Result<bool> {
            Ok(number != 11)
        }

        fn place(&self, session: u32) -> io::Result<u32> {
            Ok(u32::try_from(self.0.partition_point(|it| *it < session)).unwrap())
        }
    }

    fn taken(repeat: Repeat, times: usize) -> Vec<Taken> {
        let mut progress = Progress::default();
        (0..times).map(|_| progress.take(&Recordings(&[0, 0, 0]), 0, repeat).unwrap()).collect()
    }

    #[test]
    fn what_was_recorded_once_is_given_and_then_repeated() {
        for (repeat, again) in
            [(Repeat::Last, Taken::Again(10)), (Repeat::Cycle, Taken::Again(10)), (Repeat::Error, Taken::UsedUp(1))]
        {
            let mut progress = Progress::default();
            let once = Recordings(&[3]);
            for expected in [Taken::Fresh(10), again, again] {
                assert_eq!(progress.take(&once, 0, repeat).unwrap(), expected);
            }
            assert!(progress.is_used(10));
            assert_eq!(progress.take(&once, 1, repeat).unwrap(), Taken::Fresh(10));
        }
    }

    #[test]
    fn each_conversation_begins_with_another_session_and_then_with_the_first() {
        use Taken::{Again, Fresh};
        let mut progress = Progress::default();
        // One at a time, as clients do that talk at the same time.
        let mut all = vec![Vec::new(); 3];
        for _ in 0..4 {
            for (conversation, taken) in all.iter_mut().enumerate() {
                taken.push(progress.take(&Recordings(&[3, 3, 3, 5]), conversation as u64, Repeat::Last).unwrap());
            }
        }
        assert_eq!(all[0], [Fresh(10), Fresh(12), Fresh(13), Again(13)]);
        assert_eq!(all[1], [Fresh(13), Fresh(10), Fresh(12), Again(12)]);
        assert_eq!(all[2], all[0]);
    }

    #[test]
    fn answers_are_given_in_order_and_then_as_told() {
        use Taken::{Again, Fresh, UsedUp};
        assert_eq!(taken(Repeat::Last, 4), [Fresh(10), Fresh(12), Again(12), Again(12)]);
        assert_eq!(taken(Repeat::Cycle, 5), [Fresh(10), Fresh(12), Again(10), Again(12), Again(10)]);
        assert_eq!(taken(Repeat::Error, 3), [Fresh(10), Fresh(12), UsedUp(2)]);
    }

    #[test]
    fn what_was_given_is_remembered() {
        let mut progress = Progress::default();
        progress.note(130);
        assert_eq!((progress.is_used(130), progress.is_used(129), progress.is_used(9999)), (true, false, false));
    }
}
