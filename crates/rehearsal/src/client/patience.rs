//! Time-outs that cost nothing until somebody really waits.
//!
//! While a runtime has a timer, it reads the clock several times and has the kernel set a timer of its own whenever it waits
//! for anything. That is as much as a twentieth of a call whose answer comes after a few microseconds. So a call has no timer
//! at first. A thread looks every few milliseconds at who is waiting and tells them; they set one then.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use super::conversation::State;

/// How often the thread looks.
const LOOK: Duration = Duration::from_millis(10);
/// Whoever waits no longer than this sets a timer at once.
pub(super) const SHORT: Duration = Duration::from_millis(100);

type Watched = Weak<Mutex<State>>;

static WATCHING: OnceLock<Option<Sender<Watched>>> = OnceLock::new();

/// Looks after whoever waits in this conversation, until nobody does; `false` where nobody can.
pub(super) fn watch(state: Watched) -> bool {
    let watching = WATCHING.get_or_init(|| {
        let (sender, queue) = channel();
        let thread = std::thread::Builder::new().name("rehearsal-patience".into());
        thread.spawn(move || look(&queue)).is_ok().then_some(sender)
    });
    watching.as_ref().is_some_and(|watching| watching.send(state).is_ok())
}

fn look(queue: &Receiver<Watched>) {
    while let Ok(first) = queue.recv() {
        let mut watched = vec![first];
        while !watched.is_empty() {
            std::thread::sleep(LOOK);
            watched.extend(queue.try_iter());
            watched.retain(|state| {
                // What is dropped here may belong to anybody, and its panic must not end the thread.
                catch_unwind(AssertUnwindSafe(|| state.upgrade().is_some_and(|state| remind(&state)))).unwrap_or(false)
            });
        }
    }
}

/// Tells everybody who waits; `false` where the conversation has been silent since the last look.
fn remind(state: &Mutex<State>) -> bool {
    let (slow, busy) = state.lock().unwrap_or_else(PoisonError::into_inner).slow();
    slow.into_iter().for_each(|slot| slot.slow_down());
    busy
}

/// Whether the clock of this runtime stands still, as it does where a test has paused it.
pub(super) fn clock_stands() -> bool {
    tokio::time::Instant::now() == tokio::time::Instant::now()
}
