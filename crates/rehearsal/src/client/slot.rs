//! Where an answer is put, and waited for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use rehearsal_wire::{ChannelEnd, Ending};

use super::conversation::Answered;

/// What a waiter is told.
pub(super) enum Settled {
    Answered(Answered),
    /// The request itself came back.
    Repeated,
    ChannelEnded(ChannelEnd),
    Ended(Ending),
}

/// How it stands with an answer.
pub(super) enum Standing {
    Settled(Settled),
    /// It is waited for, and whether that already takes long.
    Waiting(Pace),
}

/// Whether an answer can still be expected any moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// It may come before it is worth setting a timer.
    Quick,
    /// Whoever waits should set a timer for when to give up.
    Slow,
}

/// A place for one answer.
pub(super) struct Slot {
    state: Mutex<State>,
}

struct State {
    settled: Option<Settled>,
    pace: Pace,
    waker: Option<Waker>,
}

impl Slot {
    pub(super) fn new(pace: Pace) -> Arc<Slot> {
        Arc::new(Slot { state: Mutex::new(State { settled: None, pace, waker: None }) })
    }

    /// Puts the answer here; whoever waits is woken.
    pub(super) fn settle(&self, settled: Settled) {
        self.change(|state| state.settled = Some(settled));
    }

    /// Tells whoever waits that it takes long.
    pub(super) fn slow_down(&self) {
        self.change(|state| state.pace = Pace::Slow);
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let waker = {
            let mut state = self.state();
            change(&mut state);
            state.waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }

    /// Takes the answer, if it is there; otherwise wakes whoever asks when something changes.
    pub(super) fn poll(&self, context: &mut Context<'_>) -> Standing {
        let mut state = self.state();
        match state.settled.take() {
            Some(settled) => Standing::Settled(settled),
            None => Standing::Waiting(state.wait(context)),
        }
    }

    /// Only how long it takes; the answer stays here.
    pub(super) fn poll_pace(&self, context: &mut Context<'_>) -> Pace {
        self.state().wait(context)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn wait(&mut self, context: &mut Context<'_>) -> Pace {
        match &mut self.waker {
            Some(waker) => waker.clone_from(context.waker()),
            None => self.waker = Some(context.waker().clone()),
        }
        self.pace
    }
}
