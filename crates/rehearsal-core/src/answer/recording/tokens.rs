//! Progress tokens: what the recorded client called a call, and what another client calls it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::play::RecordedPlay;
use super::recorded::{Recorded, Thing};
use crate::json::RawJson;
use crate::message::Method;
use crate::protocol::meta;

/// Recorded tokens of calls that were answered before they were done, because they became tasks, each in its session and with what
/// a client gave in its place, if anything. Clones know what the others know: such a call may be made while another is played.
#[derive(Clone, Debug, Default)]
pub struct Tokens(Arc<Mutex<Known>>);

/// By session and token.
type Known = HashMap<(u32, String), Option<Value>>;

impl Tokens {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client gave this in the place of a token of a session.
    pub fn put(&self, session: u32, token: String, given: Option<Value>) {
        self.known().insert((session, token), given);
    }

    /// A token of a session means nothing any more.
    pub fn forget(&self, session: u32, token: String) {
        self.known().remove(&(session, token));
    }

    /// What was given for a token of a session, where its call became a task.
    pub fn get(&self, session: u32, token: &str) -> Option<Option<Value>> {
        self.known().get(&(session, token.to_owned())).cloned()
    }
}

fn written(token: Option<RawJson>) -> Option<String> {
    Some(token?.exact().ok()?.to_string())
}

impl Thing {
    /// The token of the call that it is the progress of.
    pub fn progress_token(&self) -> Option<String> {
        let told = self.told().filter(|told| told.method == Method::PROGRESS)?;
        written(told.param(&[meta::PROGRESS_TOKEN]))
    }
}

impl Recorded {
    /// The token that its client gave.
    pub fn token(&self) -> Option<String> {
        let params = self.call.request.message.params()?;
        written(params.at(&["_meta", meta::PROGRESS_TOKEN]))
    }
}

impl RecordedPlay {
    /// The same play, in which something is said of calls that became tasks.
    #[must_use]
    pub fn telling_of(mut self, tokens: Tokens) -> RecordedPlay {
        self.tokens = tokens;
        self
    }

    /// Under which token this client hears progress that was recorded under another.
    pub(super) fn token(&self, recorded: Option<&Value>) -> Option<Value> {
        let ours = || self.asked.meta().get(meta::PROGRESS_TOKEN).cloned();
        let Some(recorded) = recorded.map(Value::to_string) else { return ours() };
        let own: Vec<String> = self.rounds.iter().filter_map(|round| round.token()).collect();
        let session = self.rounds.first().map_or(u32::MAX, |round| round.session);
        match self.tokens.get(session, &recorded) {
            _ if own.contains(&recorded) => ours(),
            Some(given) => given,
            None if own.is_empty() => ours(),
            // Of a call that this client has not made.
            None => None,
        }
    }
}
