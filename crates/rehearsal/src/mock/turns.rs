//! Several recorded exchanges at once, in the order in which the server once said everything.
//!
//! ```text
//! recorded:  > a   > b   < b: answer   < a: answer       b overtook a
//! replayed:  > a         waits until b is asked, about as long as then
//!                  > b   waits for its answer while b goes on, and a little longer
//!                        < b: answer   < a: answer
//! ```

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rehearsal_core::answer::{Overtaker, Turn};
use tokio::sync::watch;
use tokio::time::Instant;

/// The least time that is waited for another exchange: clients need some to ask.
const LEAST: Duration = Duration::from_millis(100);
/// The most.
const MOST: Duration = Duration::from_secs(30);
/// How much later than once another may be asked: machines are busy.
const LATE: Duration = Duration::from_secs(1);
/// The most that is waited for another to be asked: less than clients wait for an answer.
const UNASKED: Duration = Duration::from_secs(20);
/// How many exchanges of a conversation are remembered to have ended.
const ENDED: usize = 10_000;

/// Which exchanges are played now, and how far they are.
#[derive(Debug, Default)]
pub(super) struct Turns {
    sessions: Mutex<HashMap<u32, Score>>,
    changed: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Score {
    /// What each exchange will say next.
    playing: BTreeMap<u32, u64>,
    ended: BTreeSet<u32>,
    /// What those will say next whose clients were sent away with a question and have not come back.
    away: BTreeMap<u32, u64>,
}

/// An exchange that is played; it has ended when this is dropped.
#[derive(Debug)]
pub(super) struct Playing<'a> {
    turns: &'a Turns,
    session: u32,
    request: u32,
    /// Whether somebody else plays the same, and comes first.
    is_second: bool,
    /// What it says next when its client comes back.
    goes_on: Option<u64>,
    /// When it began.
    since: Instant,
    /// How long it was waited in vain: while nothing moved that comes before.
    waited: Duration,
}

/// How what is to be said next stands to the rest.
#[derive(Clone, Debug, PartialEq)]
enum Standing {
    /// It is next.
    Next,
    /// Something that was asked comes first; what of it is being said, by request.
    Behind(Vec<(u32, u64)>),
    /// Something comes first that nobody has asked yet; until when that may be, since it began.
    Early(Duration),
}

impl Turns {
    fn sessions(&self) -> MutexGuard<'_, HashMap<u32, Score>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An exchange begins.
    pub(super) fn enter(&self, turn: Turn) -> Playing<'_> {
        let mut sessions = self.sessions();
        let score = sessions.entry(turn.session).or_default();
        score.ended.remove(&turn.request);
        score.away.remove(&turn.request);
        let is_second = score.playing.contains_key(&turn.request);
        if !is_second {
            score.playing.insert(turn.request, turn.place);
        }
        let (session, request, since, waited) = (turn.session, turn.request, Instant::now(), Duration::ZERO);
        Playing { turns: self, session, request, is_second, goes_on: None, since, waited }
    }
}

impl Playing<'_> {
    /// Its client is sent away with a question: it has not ended, unless the next round was a request of its own.
    pub(super) fn is_to_go_on(&mut self, next: Option<Turn>) {
        self.goes_on = next.filter(|next| next.request == self.request).map(|next| next.place);
    }

    /// What comes next may have its turn: this one waits, for a while or for its client. Where several rounds are one call, the
    /// next may have begun.
    pub(super) fn goes_on_at(&mut self, next: Option<Turn>) {
        if let Some(next) = next.filter(|next| next.request != self.request) {
            *self = self.turns.enter(next);
            return;
        }
        let place = next.map_or(u64::MAX, |next| next.place);
        let mut sessions = self.turns.sessions();
        let next = sessions.get_mut(&self.session).and_then(|score| score.playing.get_mut(&self.request));
        if let Some(next) = next.filter(|next| !self.is_second && **next != place) {
            *next = place;
            drop(sessions);
            self.turns.changed.send_modify(|count| *count += 1);
        }
    }

    /// Returns when everything was said that comes before, or it has been waited for long enough: until it is asked about as
    /// long as it once took to be asked, and then while it goes on. In all the turns of an exchange together it is waited in vain
    /// no longer than it once took until then, or the little that machines are late.
    pub(super) async fn take_turn(&mut self, turn: Turn) {
        if turn.request != self.request {
            *self = self.turns.enter(turn);
        }
        let mut changed = self.turns.changed.subscribe();
        if let Some(score) = self.turns.sessions().get_mut(&self.session).filter(|_| !self.is_second) {
            score.playing.insert(self.request, turn.place);
        }
        self.turns.changed.send_modify(|count| *count += 1);
        let (mut moved, patience) = (Instant::now(), turn.patience.clamp(LEAST, MOST));
        let mut before = self.stands(turn);
        loop {
            let after = |patience: Duration| moved + patience.saturating_sub(self.waited);
            let until = match &before {
                Standing::Next => return,
                // Others take a breath between what they say, however fast everything is to be.
                Standing::Behind(_) => after(patience.max(LATE)),
                Standing::Early(until) => after(patience).min(self.since + (*until).min(UNASKED)),
            };
            if tokio::time::timeout_at(until, changed.changed()).await.is_err() {
                // What came too late this time is not waited for.
                self.waited += moved.elapsed();
                return;
            }
            let now = self.stands(turn);
            if now != before {
                (before, moved) = (now, Instant::now());
            }
        }
    }

    fn stands(&self, turn: Turn) -> Standing {
        let sessions = self.turns.sessions();
        let Some(score) = sessions.get(&self.session) else { return Standing::Next };
        if self.is_second {
            // The same again comes after it.
            let first = score.playing.get(&self.request).map(|place| (self.request, *place));
            return first.map_or(Standing::Next, |first| Standing::Behind(vec![first]));
        }
        let is_open = |other: &Overtaker| !score.ended.contains(&other.request);
        let unanswered = turn.after.answered.filter(is_open);
        let is_awaited = |request: u32| unanswered.is_some_and(|other| other.request == request);
        let comes_first = |(request, place): &(u32, u64)| *place <= turn.place || is_awaited(*request);
        let others = score.playing.iter().chain(&score.away).map(|(request, place)| (*request, *place));
        let first: Vec<_> = others.filter(|it| it.0 != self.request && comes_first(it)).collect();
        if !first.is_empty() {
            return Standing::Behind(first);
        }
        // Who only spoke before needs to be asked; what it says has its own place.
        let is_asked = |request: &u32| score.playing.contains_key(request) || score.away.contains_key(request);
        let unasked = turn.after.spoke.filter(|other| is_open(other) && !is_asked(&other.request));
        let late = |other: Option<Overtaker>, late: Duration| other.map(|other| other.later.saturating_add(late));
        match late(unanswered, LATE).max(late(unasked, LEAST)) {
            None => Standing::Next,
            Some(until) => Standing::Early(until),
        }
    }
}

impl Drop for Playing<'_> {
    fn drop(&mut self) {
        if self.is_second {
            return;
        }
        let mut sessions = self.turns.sessions();
        if let Some(score) = sessions.get_mut(&self.session) {
            score.playing.remove(&self.request);
            match self.goes_on {
                Some(place) => drop(score.away.insert(self.request, place)),
                None => drop(score.ended.insert(self.request)),
            }
            if score.ended.len() > ENDED {
                score.ended.pop_first();
            }
            if score.away.len() > ENDED {
                score.away.pop_first();
            }
        }
        drop(sessions);
        self.turns.changed.send_modify(|count| *count += 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rehearsal_core::answer::Overtakers;

    fn turn(request: u32, place: u64, after: Option<u32>) -> Turn {
        let answered = after.map(|request| Overtaker { request, later: Duration::from_millis(500) });
        let after = Overtakers { answered, spoke: None };
        Turn { session: 0, request, place, after, patience: Duration::from_secs(3) }
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_overtaken_once_is_overtaken_again() {
        let turns = Turns::default();
        let mut slow = turns.enter(turn(0, 5, Some(1)));
        let waiting = slow.take_turn(turn(0, 5, Some(1)));
        tokio::pin!(waiting);
        assert!(tokio::time::timeout(Duration::from_millis(50), &mut waiting).await.is_err());
        let mut quick = turns.enter(turn(1, 4, None));
        quick.take_turn(turn(1, 4, None)).await;
        assert!(tokio::time::timeout(Duration::from_millis(50), &mut waiting).await.is_err());
        drop(quick);
        let before = Instant::now();
        waiting.await;
        assert!(before.elapsed() < Duration::from_millis(10));
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_sent_away_with_a_question_has_not_ended() {
        let turns = Turns::default();
        let mut slow = turns.enter(turn(0, 5, Some(1)));
        turns.enter(turn(1, 4, None)).is_to_go_on(Some(turn(1, 4, None)));
        let waiting = slow.take_turn(turn(0, 5, Some(1)));
        tokio::pin!(waiting);
        // Longer than for what was not asked.
        assert!(tokio::time::timeout(Duration::from_secs(2), &mut waiting).await.is_err());
        drop(turns.enter(turn(1, 4, None)));
        let before = Instant::now();
        waiting.await;
        assert!(before.elapsed() < Duration::from_millis(10));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_said_after_a_client_came_back_waits_for_it() {
        let turns = Turns::default();
        turns.enter(turn(0, 4, None)).is_to_go_on(Some(turn(0, 4, None)));
        // While the client thinks, the others go on.
        turns.enter(turn(1, 3, None)).take_turn(turn(1, 3, None)).await;
        let mut other = turns.enter(turn(2, 5, None));
        let waiting = other.take_turn(turn(2, 5, None));
        tokio::pin!(waiting);
        assert!(tokio::time::timeout(Duration::from_millis(500), &mut waiting).await.is_err());
        drop(turns.enter(turn(0, 4, None)));
        let before = Instant::now();
        waiting.await;
        assert!(before.elapsed() < Duration::from_millis(10));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_never_asked_is_waited_for_until_it_was_asked_once_and_a_little_longer() {
        let turns = Turns::default();
        let mut slow = turns.enter(turn(0, 5, Some(1)));
        let before = Instant::now();
        slow.take_turn(turn(0, 5, Some(1))).await;
        assert_eq!(before.elapsed().as_millis(), 1500);
    }

    #[tokio::test(start_paused = true)]
    async fn who_spoke_before_is_waited_for_though_somebody_else_was_answered() {
        let turns = Turns::default();
        let spoke = Some(Overtaker { request: 2, later: Duration::ZERO });
        let first = turn(0, 5, Some(1));
        let first = Turn { after: Overtakers { spoke, ..first.after }, ..first };
        let mut slow = turns.enter(first);
        drop(turns.enter(turn(1, 3, None)));
        let waiting = slow.take_turn(first);
        tokio::pin!(waiting);
        assert!(tokio::time::timeout(Duration::from_millis(50), &mut waiting).await.is_err());
        let mut spoken = turns.enter(turn(2, 4, None));
        spoken.take_turn(turn(2, 4, None)).await;
        spoken.goes_on_at(Some(turn(2, 9, None)));
        let before = Instant::now();
        waiting.await;
        assert!(before.elapsed() < Duration::from_millis(10));
    }

    #[tokio::test(start_paused = true)]
    async fn the_same_again_comes_after_it() {
        let turns = Turns::default();
        let mut first = turns.enter(turn(0, 5, Some(1)));
        let mut second = turns.enter(turn(0, 5, Some(1)));
        let both = async {
            let waiting = async {
                second.take_turn(turn(0, 5, Some(1))).await;
                Instant::now()
            };
            let taken = async {
                first.take_turn(turn(0, 5, Some(1))).await;
                tokio::time::sleep(Duration::from_millis(100)).await;
                drop(first);
                Instant::now()
            };
            tokio::join!(waiting, taken)
        };
        let (waited, taken) = both.await;
        assert!(waited >= taken && waited < taken + Duration::from_millis(10), "{:?}", waited - taken);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_longer_to_be_overtaken_than_clients_wait_for_an_answer() {
        let turns = Turns::default();
        let answered = Some(Overtaker { request: 1, later: Duration::from_secs(60) });
        let after = Overtakers { answered, spoke: None };
        let slow = Turn { after, patience: Duration::from_secs(90), ..turn(0, 5, None) };
        let before = Instant::now();
        turns.enter(slow).take_turn(slow).await;
        assert_eq!(before.elapsed().as_secs(), 20);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_asked_and_never_answered_is_waited_for_no_longer_than_it_once_took() {
        let turns = Turns::default();
        let _quick = turns.enter(turn(1, 4, None));
        let mut slow = turns.enter(turn(0, 5, Some(1)));
        let before = Instant::now();
        slow.take_turn(turn(0, 5, Some(1))).await;
        assert_eq!(before.elapsed().as_secs(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn what_goes_on_is_waited_for_longer_than_it_once_took() {
        let turns = Turns::default();
        let mut quick = turns.enter(turn(1, 2, None));
        let mut slow = turns.enter(turn(0, 9, Some(1)));
        let waiting = slow.take_turn(turn(0, 9, Some(1)));
        tokio::pin!(waiting);
        for place in 3..6 {
            assert!(tokio::time::timeout(Duration::from_secs(2), &mut waiting).await.is_err());
            quick.take_turn(turn(1, place, None)).await;
        }
        let before = Instant::now();
        waiting.await;
        assert_eq!(before.elapsed().as_secs(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn all_turns_of_an_exchange_together_wait_no_longer_than_it_once_took() {
        let turns = Turns::default();
        let mut slow = turns.enter(turn(0, 5, Some(1)));
        let before = Instant::now();
        for place in 5..25 {
            slow.take_turn(turn(0, place, Some(1))).await;
        }
        assert_eq!(before.elapsed().as_secs(), 1);
        let _quick = turns.enter(turn(1, 4, None));
        for place in 25..45 {
            slow.take_turn(turn(0, place, Some(1))).await;
        }
        assert_eq!(before.elapsed().as_secs(), 3);
    }
}
