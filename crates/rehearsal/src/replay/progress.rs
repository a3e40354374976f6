//! How far a replay is: which answers were given.

use std::collections::{HashMap, HashSet};
use std::io;

use super::index::Group;
use super::options::Repeat;

/// Which answers were given.
#[derive(Debug, Default)]
pub(super) struct Progress {
    conversations: HashMap<u64, Conversation>,
    /// A bit for each exchange that was given to anybody.
    used: Vec<u64>,
}

/// What was said in one conversation: each begins anew, as each client that starts a server of its own does. Over
/// stateless HTTP all clients share one.
#[derive(Debug, Default)]
struct Conversation {
    cursors: HashMap<(u64, Option<String>), Cursor>,
    /// The pings of which everything was said.
    told: HashSet<u32>,
}

/// To whom answers are given in order.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    pub(super) conversation: u64,
    /// A name, where that counts.
    pub(super) client: Option<String>,
}

#[derive(Clone, Debug, Default)]
struct Cursor {
    /// Where in the group to go on.
    next: u32,
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
    /// There is none for this client.
    None,
}

impl Progress {
    /// The next of a group, of those that suit the client.
    pub(super) fn take(
        &mut self,
        group: Group,
        scope: Scope,
        repeat: Repeat,
        member: impl Fn(u32) -> io::Result<u32>,
        suits: impl Fn(u32) -> io::Result<bool>,
    ) -> io::Result<Taken> {
        let conversation = self.conversations.entry(scope.conversation).or_default();
        let cursor = conversation.cursors.entry((group.first, scope.client)).or_default();
        while cursor.next < group.count {
            let number = member(cursor.next)?;
            cursor.next += 1;
            if suits(number)? {
                cursor.last = Some(number);
                cursor.count += 1;
                if repeat == Repeat::Cycle {
                    cursor.given.push(number);
                }
                note(&mut self.used, number);
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

    /// Whether what was said during a ping is still to be told in a conversation; from now on it is not.
    pub(super) fn tell(&mut self, conversation: u64, ping: u32) -> bool {
        self.conversations.entry(conversation).or_default().told.insert(ping)
    }

    /// A conversation is over.
    pub(super) fn ended(&mut self, conversation: u64) {
        self.conversations.remove(&conversation);
    }

    /// Notes that an exchange was given.
    pub(super) fn note(&mut self, number: u32) {
        note(&mut self.used, number);
    }

    /// Whether an exchange was given.
    pub(super) fn is_used(&self, number: u32) -> bool {
        self.used.get(number as usize / 64).is_some_and(|word| word & (1 << (number % 64)) != 0)
    }
}

fn note(used: &mut Vec<u64>, number: u32) {
    let (word, bit) = (number as usize / 64, number % 64);
    if used.len() <= word {
        used.resize(word + 1, 0);
    }
    used[word] |= 1 << bit;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(repeat: Repeat, times: usize) -> Vec<Taken> {
        let (mut progress, group) = (Progress::default(), Group { first: 7, count: 3 });
        let suits = |number: u32| Ok(number != 11);
        let scope = || Scope { conversation: 0, client: None };
        (0..times).map(|_| progress.take(group, scope(), repeat, |at| Ok(10 + at), suits).unwrap()).collect()
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
