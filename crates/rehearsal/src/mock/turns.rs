//! Several recorded exchanges at once, in the order in which the server once said everything.
//!
//! ```text
//! recorded:  > a   > b   < b: answer   < a: answer       b overtook a
//! replayed:  > a         waits until b is asked, about as long as then
//!                  > b   waits for its answer while b goes on, and a little longer
//!                        < b: answer   < a: answer
//! ```

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rehearsal_core::answer::Turn;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::score::{LATE, LEAST, Score, Standing};

/// The most time that is waited for another exchange.
const MOST: Duration = Duration::from_secs(30);
/// The most that is waited for another to be asked: less than clients wait for an answer.
const UNASKED: Duration = Duration::from_secs(20);

/// Which exchanges are played now, and how far they are, by recorded conversation.
#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<HashMap<u32, Score>>);

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
    /// Told when it may be its turn.
    told: Arc<Notify>,
    /// When it began.
    since: Instant,
    /// How long it was waited in vain: while nothing moved that comes before.
    waited: Duration,
}

impl Turns {
    fn scores(&self) -> MutexGuard<'_, HashMap<u32, Score>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An exchange begins.
    pub(super) fn enter(&self, turn: Turn) -> Playing<'_> {
        let (session, request, told) = (turn.session, turn.request, Arc::new(Notify::new()));
        let is_second = !self.scores().entry(session).or_default().enter(request, turn.place, &told);
        let (since, waited) = (Instant::now(), Duration::ZERO);
        Playing { turns: self, session, request, is_second, goes_on: None, told, since, waited }
    }
}

impl Playing<'_> {
    fn score<T>(&self, of: impl FnOnce(&mut Score) -> T) -> T {
        of(self.turns.scores().entry(self.session).or_default())
    }

    /// Its client is sent away with a question, and goes on from there when it comes back.
    pub(super) fn is_to_go_on(&mut self, next: Option<Turn>) {
        match next {
            Some(next) if next.request == self.request => self.goes_on = Some(next.place),
            // The next round is a request of its own.
            Some(next) => self.score(|score| score.await_back(next.request, next.place)),
            None => {}
        }
    }

    /// What comes next may have its turn: this one waits, for a while or for its client. Where several rounds are one call, the
    /// next may have begun.
    pub(super) fn goes_on_at(&mut self, next: Option<Turn>) {
        if let Some(next) = next.filter(|next| next.request != self.request) {
            *self = self.turns.enter(next);
        } else if !self.is_second {
            self.score(|score| score.go_on(self.request, next.map_or(u64::MAX, |next| next.place)));
        }
    }

    /// Returns when everything was said that comes before, or it has been waited for long enough: until it is asked about as
    /// long as it once took to be asked, and then while it goes on. In all the turns of an exchange together it is waited in vain
    /// no longer than it once took until then, or the little that machines are late.
    pub(super) async fn take_turn(&mut self, turn: Turn) {
        if turn.request != self.request {
            *self = self.turns.enter(turn);
        }
        if !self.is_second {
            self.score(|score| score.go_on(self.request, turn.place));
        }
        let (mut moved, patience) = (Instant::now(), turn.patience.clamp(LEAST, MOST));
        loop {
            let (standing, last) =
                self.score(|score| if self.is_second { score.stands_second(turn) } else { score.stands(turn) });
            moved = last.map_or(moved, |last| last.max(moved));
            let after = |patience: Duration| moved + patience.saturating_sub(self.waited);
            let until = match standing {
                Standing::Next => return,
                // Others take a breath between what they say, however fast everything is to be.
                Standing::Behind => after(patience.max(LATE)),
                Standing::Early(until) => after(patience).min(self.since + until.min(UNASKED)),
            };
            if Instant::now() >= until {
                // What came too late this time is not waited for.
                self.waited += moved.elapsed();
                self.score(|score| score.forget_away(turn.place));
                return;
            }
            // Whoever waits is told only when it is next: what moved before that is looked at when the time is up.
            drop(tokio::time::timeout_at(until, self.told.notified()).await);
        }
    }
}

impl Drop for Playing<'_> {
    fn drop(&mut self) {
        if !self.is_second {
            self.score(|score| score.leave(self.request, self.goes_on));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rehearsal_core::answer::{Overtaker, Overtakers};

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
    async fn the_next_round_is_waited_for_though_it_is_a_request_of_its_own_and_others_are_not_held_twice() {
        let turns = Turns::default();
        turns.enter(turn(1, 4, None)).is_to_go_on(Some(turn(2, 6, None)));
        {
            let mut slow = turns.enter(turn(0, 8, None));
            let waiting = slow.take_turn(turn(0, 8, None));
            tokio::pin!(waiting);
            assert!(tokio::time::timeout(Duration::from_secs(2), &mut waiting).await.is_err());
            drop(turns.enter(turn(2, 6, None)));
            let before = Instant::now();
            waiting.await;
            assert!(before.elapsed() < Duration::from_millis(10));
        }
        // One that never comes back is waited for once.
        turns.enter(turn(3, 9, None)).is_to_go_on(Some(turn(4, 10, None)));
        for (request, seconds) in [(5, 3), (6, 0)] {
            let before = Instant::now();
            turns.enter(turn(request, 20, None)).take_turn(turn(request, 20, None)).await;
            assert_eq!(before.elapsed().as_secs(), seconds);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_thousand_at_once_have_their_turn_one_after_the_other() {
        let turns: &'static Turns = Box::leak(Box::default());
        let said = Arc::new(Mutex::new(Vec::new()));
        let all = (0..1_000).map(|request| turn(request, 10_000 - u64::from(request), None));
        let playing: Vec<_> = all.map(|turn| (turns.enter(turn), turn)).collect();
        let mut tasks = tokio::task::JoinSet::new();
        for (mut playing, turn) in playing {
            let said = Arc::clone(&said);
            tasks.spawn(async move {
                playing.take_turn(turn).await;
                said.lock().unwrap().push(turn.place);
            });
        }
        tasks.join_all().await;
        let said = said.lock().unwrap();
        assert!(said.is_sorted() && said.len() == 1_000, "{said:?}");
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
