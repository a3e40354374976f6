//! Several recorded exchanges at once, in the order in which the server once said everything.
//!
//! ```text
//! recorded:  > a   > b   < b: answer   < a: answer       b overtook a
//! replayed:  > a            waits for b, no longer than it once took
//!                  > b   < b: answer   < a: answer
//! ```

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rehearsal_core::answer::Turn;
use tokio::sync::watch;

/// The least time that is waited for another exchange: clients need some to ask.
const LEAST: Duration = Duration::from_millis(100);
/// The most.
const MOST: Duration = Duration::from_secs(30);
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
    playing: BTreeMap<u64, u64>,
    ended: BTreeSet<u64>,
}

/// An exchange that is played; it has ended when this is dropped.
#[derive(Debug)]
pub(super) struct Playing<'a> {
    turns: &'a Turns,
    session: u32,
    request: u64,
    /// Whether somebody else plays the same.
    is_second: bool,
    /// Whether it goes on when its client comes back.
    goes_on: bool,
    /// How long it was waited for what did not come.
    waited: Duration,
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
        let is_second = score.playing.contains_key(&turn.request);
        if !is_second {
            score.playing.insert(turn.request, turn.place);
        }
        Playing {
            turns: self,
            session: turn.session,
            request: turn.request,
            is_second,
            goes_on: false,
            waited: Duration::ZERO,
        }
    }
}

impl Playing<'_> {
    /// Its client is sent away with a question: it has not ended.
    pub(super) fn is_to_go_on(&mut self) {
        self.goes_on = true;
    }

    /// Returns when everything was said that comes before, or it has been waited for long enough: in all the turns of an
    /// exchange together, no longer than it once took until then.
    pub(super) async fn take_turn(&mut self, turn: Turn) {
        if self.is_second {
            return;
        }
        let mut changed = self.turns.changed.subscribe();
        if let Some(score) = self.turns.sessions().get_mut(&self.session) {
            score.playing.insert(self.request, turn.place);
        }
        self.turns.changed.send_modify(|count| *count += 1);
        let come = async {
            while !self.is_next(turn) {
                if changed.changed().await.is_err() {
                    return;
                }
            }
        };
        let left = turn.patience.clamp(LEAST, MOST).saturating_sub(self.waited);
        if tokio::time::timeout(left, come).await.is_err() {
            // What came too late this time is not waited for.
            self.waited += left;
        }
    }

    fn is_next(&self, turn: Turn) -> bool {
        let sessions = self.turns.sessions();
        let Some(score) = sessions.get(&self.session) else { return true };
        let is_first = score.playing.iter().all(|(request, place)| *request == self.request || *place > turn.place);
        is_first && turn.after.is_none_or(|other| score.ended.contains(&other))
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
            if !self.goes_on {
                score.ended.insert(self.request);
            }
            if score.ended.len() > ENDED {
                score.ended.pop_first();
            }
        }
        drop(sessions);
        self.turns.changed.send_modify(|count| *count += 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(request: u64, place: u64, after: Option<u64>) -> Turn {
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
        let before = tokio::time::Instant::now();
        waiting.await;
        assert!(before.elapsed() < Duration::from_millis(10));
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_sent_away_with_a_question_has_not_ended() {
        let turns = Turns::default();
        let mut slow = turns.enter(turn(0, 5, Some(1)));
        turns.enter(turn(1, 4, None)).is_to_go_on();
        let waiting = slow.take_turn(turn(0, 5, Some(1)));
        tokio::pin!(waiting);
        assert!(tokio::time::timeout(Duration::from_millis(50), &mut waiting).await.is_err());
        drop(turns.enter(turn(1, 4, None)));
        let before = tokio::time::Instant::now();
        waiting.await;
        assert!(before.elapsed() < Duration::from_millis(10));
    }

    #[tokio::test(start_paused = true)]
    async fn what_never_comes_is_waited_for_no_longer_than_it_once_took() {
        let turns = Turns::default();
        let mut slow = turns.enter(turn(0, 5, Some(1)));
        let before = tokio::time::Instant::now();
        slow.take_turn(turn(0, 5, Some(1))).await;
        assert_eq!(before.elapsed().as_secs(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn all_turns_of_an_exchange_together_wait_no_longer_than_it_once_took() {
        let turns = Turns::default();
        let mut slow = turns.enter(turn(0, 5, Some(1)));
        let before = tokio::time::Instant::now();
        for place in 5..25 {
            slow.take_turn(turn(0, place, Some(1))).await;
        }
        assert_eq!(before.elapsed().as_secs(), 3);
    }
}
