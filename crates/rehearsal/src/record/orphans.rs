//! Journals that earlier recorders left beside a trace when they were killed.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use super::notice::{Listener, Notice};
use super::recover::{Fate, journals, recover};

/// Puts what earlier recorders left into the trace, once, while we record.
#[derive(Default)]
pub(super) struct Orphans {
    state: Mutex<State>,
}

#[derive(Default)]
enum State {
    #[default]
    Unseen,
    Recovering(JoinHandle<()>),
    Done,
}

impl Orphans {
    /// Begins, if nobody has: a long journal takes a while, and the conversation must not wait for it.
    pub(super) fn begin(&self, trace: &Path, listener: &Listener) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !matches!(*state, State::Unseen) {
            return;
        }
        let none = journals(trace).is_ok_and(|journals| journals.is_empty());
        *state = match none {
            true => State::Done,
            false => {
                let (trace, listener) = (trace.to_owned(), listener.clone());
                State::Recovering(std::thread::spawn(move || adopt(&trace, &listener)))
            }
        };
    }

    /// Waits until it is done. This blocks.
    pub(super) fn wait(&self) {
        let state = std::mem::replace(&mut *self.state.lock().unwrap_or_else(PoisonError::into_inner), State::Done);
        if let State::Recovering(thread) = state {
            // A panic there was shown where it happened.
            let _ = thread.join();
        }
    }
}

fn adopt(trace: &Path, listener: &Listener) {
    match recover(trace) {
        Ok(found) => {
            for one in found {
                match one.fate {
                    Fate::Folded { entries } => {
                        listener(&Notice::Recovered { session_id: one.session_id, entries });
                    }
                    Fate::Failed { why } => listener(&Notice::NotRecovered { path: one.journal, why }),
                    // Nothing is new, or somebody else's business.
                    Fate::AlreadyThere | Fate::Empty | Fate::Running => {}
                }
            }
        }
        Err(error) => listener(&Notice::NotRecovered { path: trace.to_owned(), why: error.to_string() }),
    }
}
