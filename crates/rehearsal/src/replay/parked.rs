//! Requests that wait, at the real server, for their client to come back with what the server wants to know.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rehearsal_core::answer::{Asked, Question};
use rehearsal_core::message::ErrorReply;
use rehearsal_core::protocol::code;
use rehearsal_core::trace::{Likeness, RequestKey};
use serde_json::Value;
use tokio::sync::oneshot;

use super::line::Work;
use crate::client::Answer;
use crate::mock::random;

/// How many questions wait; the oldest requests are given up. Fewer than a [`Client`](crate::Client) leaves open at once, so
/// that it goes on reading.
const LIMIT: usize = 128;
/// How long a client may take to come back.
const LIFE: Duration = Duration::from_secs(15 * 60);
/// How our state begins, so that it is not taken for that of a recording.
const MARK: &str = "live-";

/// What the real server wants to know, and who waits for it.
pub(super) type Open = (Question, oneshot::Sender<Answer>);

/// A request whose client was sent away.
pub(super) struct Waiting {
    state: String,
    key: RequestKey,
    since: Instant,
    pub(super) work: Work,
    pub(super) open: Vec<Open>,
}

/// All of them, oldest first. The state that a client carries is a word that nobody can guess.
#[derive(Default)]
pub(super) struct Parked(Mutex<VecDeque<Waiting>>);

impl Parked {
    fn all(&self) -> MutexGuard<'_, VecDeque<Waiting>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a client comes back with state that was given here, or might have been.
    pub(super) fn is_state(asked: &Asked) -> bool {
        asked.params.get("requestState").and_then(Value::as_str).is_some_and(|state| state.starts_with(MARK))
    }

    /// Keeps a request until its client comes back with this state.
    pub(super) fn put(&self, asked: &Asked, work: Work, open: Vec<Open>) -> String {
        let word: String = random::<16>().iter().map(|byte| format!("{byte:02x}")).collect();
        let (state, key) = (format!("{MARK}{word}"), key(asked));
        work.park();
        self.purge();
        let mut all = self.all();
        let mut questions = open.len() + all.iter().map(|waiting| waiting.open.len()).sum::<usize>();
        while questions > LIMIT
            && let Some(oldest) = all.pop_front()
        {
            questions -= oldest.open.len();
        }
        all.push_back(Waiting { state: state.clone(), key, since: Instant::now(), work, open });
        state
    }

    /// Gives up those whose client did not come back in time.
    pub(super) fn purge(&self) {
        self.all().retain(|waiting| waiting.since.elapsed() < LIFE);
    }

    /// Gives up the one that waits longest; `false` where none waits.
    pub(super) fn give_up(&self) -> bool {
        self.all().pop_front().is_some()
    }

    /// The request that a client comes back to.
    pub(super) fn take(&self, asked: &Asked) -> Result<Waiting, ErrorReply> {
        let state = asked.params.get("requestState").and_then(Value::as_str).unwrap_or_default();
        let key = key(asked);
        self.purge();
        let mut all = self.all();
        let at = all.iter().position(|waiting| waiting.state == state && waiting.key == key);
        let waiting = at.and_then(|at| all.remove(at)).ok_or_else(|| {
            let why = "requestState was not given for this request, or too long ago";
            ErrorReply::new(code::INVALID_PARAMS, why)
        })?;
        waiting.work.resume();
        Ok(waiting)
    }

    /// Gives all of them up.
    pub(super) fn clear(&self) {
        self.all().clear();
    }
}

fn key(asked: &Asked) -> RequestKey {
    Likeness::default().key(&asked.method, Some(&asked.params))
}
