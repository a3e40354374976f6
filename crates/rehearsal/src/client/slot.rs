//! Where an answer is put, and waited for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

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

/// A place for one answer.
pub(super) struct Slot {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    settled: Option<Settled>,
    waker: Option<Waker>,
}

impl Slot {
    pub(super) fn new() -> Arc<Slot> {
        Arc::new(Slot { state: Mutex::default() })
    }

    /// Puts the answer here, and wakes the task that waits for it.
    pub(super) fn settle(&self, settled: Settled) {
        let waker = {
            let mut state = self.state();
            state.settled = Some(settled);
            state.waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }

    /// Takes the answer, if it is there; otherwise wakes the task when it is.
    pub(super) fn poll(&self, context: &mut Context<'_>) -> Poll<Settled> {
        let mut state = self.state();
        if let Some(settled) = state.settled.take() {
            return Poll::Ready(settled);
        }
        match &mut state.waker {
            Some(waker) => waker.clone_from(context.waker()),
            None => state.waker = Some(context.waker().clone()),
        }
        Poll::Pending
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
