//! Clients that were sent away without state, as they once were: who comes back is known by what it asks.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rehearsal_core::answer::{Asked, SentAway};
use rehearsal_core::protocol::Era;
use rehearsal_core::trace::RequestKey;
use serde_json::Value;

/// How many are remembered; the others carry state.
const LIMIT: usize = 1024;

/// What was asked, and by which client, where that counts.
type Who = (RequestKey, Option<String>);

/// All of them. Of those that ask the same only one is remembered, so that nobody is taken for another.
#[derive(Debug, Default)]
pub(super) struct Away(Mutex<HashMap<Who, SentAway>>);

impl Away {
    fn all(&self) -> MutexGuard<'_, HashMap<Who, SentAway>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers a client; `false` where it has to carry state.
    pub(super) fn put(&self, client: Option<&str>, sent: &SentAway) -> bool {
        let mut all = self.all();
        let who = (sent.key, client.map(str::to_owned));
        if all.len() >= LIMIT || all.contains_key(&who) {
            return false;
        }
        all.insert(who, sent.clone());
        true
    }

    /// The exchange and the step that a client comes back to, where it comes back.
    pub(super) fn take(&self, client: Option<&str>, key: RequestKey, asked: &Asked) -> Option<(u32, usize)> {
        let answers = asked.params.get("inputResponses").and_then(Value::as_object);
        let answers = answers.filter(|_| asked.terms.era() == Era::Modern)?;
        let who = (key, client.map(str::to_owned));
        let mut all = self.all();
        let sent = all.get(&who).filter(|sent| sent.questions.iter().all(|name| answers.contains_key(name)))?;
        let back = (sent.exchange, sent.step);
        all.remove(&who);
        Some(back)
    }
}
