//! Rounds of one exchange, found again among those of others that look the same.
//!
//! ```text
//! > a   < question   > b   < question   > answer   > answer       two go on: the first with a, the second with b
//! > a   < question   > b   < question   > answer                  one goes on: with b, because a was given up
//! ```

use std::collections::HashMap;

use rehearsal_core::trace::RequestKey;

/// How far back it is looked for what a request goes on with.
const LOOKED_AT: usize = 1000;

/// What a round has in common with the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Thread {
    /// The state that comes back; it may be missing.
    pub(super) state: RequestKey,
    /// The names of the questions.
    pub(super) names: RequestKey,
    /// Who is asked.
    pub(super) client: RequestKey,
}

/// The exchanges of a session that are sent away with questions, and those that come back.
#[derive(Debug, Default)]
pub(super) struct Chains {
    /// Those that nobody came back to, by what is asked and the state.
    waiting: HashMap<(RequestKey, RequestKey), Vec<Waiting>>,
    links: Vec<Link>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    number: u32,
    /// The place of the questions.
    end: u64,
    thread: Thread,
}

/// That one of those that look the same goes on, and that somebody came back to one of them.
#[derive(Debug)]
struct Link {
    key: RequestKey,
    before: Waiting,
    number: u32,
}

impl Chains {
    /// An exchange is left open at a place.
    pub(super) fn wait(&mut self, key: RequestKey, thread: Thread, number: u32, end: u64) {
        self.waiting.entry((key, thread.state)).or_default().push(Waiting { number, end, thread });
    }

    /// The one that waits with which a request at a place goes on: of the same client and with the same questions where there is
    /// one, and of those with the last, since whoever begins anew has given up what was before.
    pub(super) fn goes_on(&mut self, key: RequestKey, thread: Thread, number: u32, place: u64) -> Option<u32> {
        let waiting = self.waiting.get_mut(&(key, thread.state))?;
        let from = waiting.len().saturating_sub(LOOKED_AT);
        let heard = (from..waiting.len()).filter(|at| waiting[*at].end < place);
        let rank = |at: &usize| {
            let Waiting { thread: other, end, .. } = waiting[*at];
            (other.client == thread.client, other.names == thread.names, end)
        };
        let found = heard.max_by_key(rank)?;
        let before = waiting.remove(found);
        if waiting.is_empty() {
            self.waiting.remove(&(key, thread.state));
        }
        self.links.push(Link { key, before, number });
        Some(before.number)
    }

    /// Each exchange that goes on, with its next round: of those that look the same, who was asked first comes back first.
    pub(super) fn finish(mut self) -> Vec<(u32, u32)> {
        self.links.sort_by_key(|Link { key, before, .. }| (*key, before.thread, before.end, before.number));
        let is_same = |one: &Link, other: &Link| (one.key, one.before.thread) == (other.key, other.before.thread);
        let mut linked = Vec::with_capacity(self.links.len());
        for same in self.links.chunk_by(is_same) {
            let mut numbers: Vec<u32> = same.iter().map(|link| link.number).collect();
            numbers.sort_unstable();
            linked.extend(same.iter().map(|link| link.before.number).zip(numbers));
        }
        linked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: RequestKey = RequestKey(7);
    const THREAD: Thread = Thread { state: RequestKey(1), names: RequestKey(2), client: RequestKey(3) };

    /// What goes on with what, where `(n, None)` asks and `(n, Some(thread))` comes back.
    fn linked(said: &[(u32, Option<Thread>)]) -> Vec<(u32, u32)> {
        let mut chains = Chains::default();
        for (number, back) in said {
            let place = u64::from(*number) * 2;
            match back {
                None => chains.wait(KEY, THREAD, *number, place + 1),
                Some(thread) => assert!(chains.goes_on(KEY, *thread, *number, place).is_some()),
            }
        }
        chains.finish()
    }

    #[test]
    fn who_was_asked_first_comes_back_first() {
        let back = Some(THREAD);
        assert_eq!(linked(&[(0, None), (1, None), (2, back), (3, back)]), [(0, 2), (1, 3)]);
        assert_eq!(linked(&[(0, None), (1, back), (2, None), (3, back)]), [(0, 1), (2, 3)]);
    }

    #[test]
    fn what_was_given_up_stays_so() {
        let back = Some(THREAD);
        assert_eq!(linked(&[(0, None), (1, None), (2, back)]), [(1, 2)]);
        assert_eq!(linked(&[(0, None), (1, None), (2, None), (3, back), (4, back)]), [(1, 3), (2, 4)]);
    }

    #[test]
    fn other_names_go_on_where_nothing_fits_better_but_another_state_does_not() {
        let other = Thread { names: RequestKey(9), ..THREAD };
        assert_eq!(linked(&[(0, None), (1, Some(other))]), [(0, 1)]);
        let mut chains = Chains::default();
        chains.wait(KEY, THREAD, 0, 1);
        assert!(chains.goes_on(KEY, Thread { state: RequestKey(9), ..THREAD }, 1, 2).is_none());
        assert!(chains.goes_on(KEY, THREAD, 1, 0).is_none(), "nobody answers what is not asked yet");
    }
}
