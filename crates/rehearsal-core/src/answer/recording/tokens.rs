//! Progress tokens: what the recorded client called a call, and what another client calls it.

use std::collections::HashMap;

use serde_json::Value;

use super::play::RecordedPlay;
use super::recorded::{Recorded, Thing};
use crate::json::RawJson;
use crate::message::Method;
use crate::protocol::meta;

/// Recorded tokens of calls that were answered before they were done, because they became tasks, each with what this client
/// gave in its place, if anything.
pub type Tokens = HashMap<String, Option<Value>>;

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
        let recorded = recorded.map(Value::to_string);
        let is_own = self.rounds.iter().any(|round| recorded.is_some() && round.token() == recorded);
        match recorded.and_then(|recorded| self.tokens.get(&recorded)) {
            Some(given) if !is_own => given.clone(),
            Some(_) | None => self.asked.meta().get(meta::PROGRESS_TOKEN).cloned(),
        }
    }
}
