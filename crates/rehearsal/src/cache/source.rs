//! The source of the answer chain that answers from the cache.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};

use rehearsal_core::answer::{
    Answer, AnswerContext, AnswerSource, IncomingRequest, MatchDepth, Offer, Provenance, WrittenFor,
};
use rehearsal_core::message::{ErrorReply, Method};
use rehearsal_core::protocol::code;
use serde_json::Value;

use super::cache::Cache;
use super::entry::CachedAnswer;
use super::freshness::{AnswerFreshness, StaleAnswer};
use super::key::ArgumentsKey;

/// Answers calls of the tools of one server with the results of exactly these arguments.
#[derive(Debug)]
pub struct CacheSource {
    cache: Arc<Cache>,
    server: String,
    freshness: AnswerFreshness,
    /// The calls that were passed on because their answer is stale.
    stale: Mutex<HashMap<CallKey, StaleAnswer>>,
}

/// A tool with arguments.
type CallKey = (String, ArgumentsKey);

impl CacheSource {
    /// The results of a server, by its name in the configuration.
    pub fn new(cache: Arc<Cache>, server: impl Into<String>) -> CacheSource {
        let freshness = AnswerFreshness { now_ms: cache.now_ms(), ..AnswerFreshness::default() };
        CacheSource { cache, server: server.into(), freshness, stale: Mutex::default() }
    }

    /// Passes calls on whose answers do not meet this.
    #[must_use]
    pub fn requiring(self, freshness: AnswerFreshness) -> CacheSource {
        CacheSource { freshness, ..self }
    }

    /// Why the answer of a call that was passed on could not be used, if there is one.
    pub fn stale(&self, tool: &str, arguments: &Value) -> Option<StaleAnswer> {
        let stale = self.stale.lock().unwrap_or_else(PoisonError::into_inner);
        if stale.is_empty() {
            return None;
        }
        stale.get(&(tool.to_owned(), ArgumentsKey::new(arguments))).copied()
    }
}

/// The results for each tool and its arguments, and how many calls of this connection they answered.
type Results = HashMap<CallKey, (Vec<CachedAnswer>, usize)>;

impl AnswerSource for CacheSource {
    fn begin(&self, request: &Arc<IncomingRequest>, context: &mut AnswerContext<'_>) -> Offer {
        let Some(tool) = request.subject().filter(|_| request.method == Method::TOOLS_CALL) else {
            return Offer::Pass(MatchDepth::Nothing);
        };
        let key = ArgumentsKey::new(request.params.get("arguments").unwrap_or(&Value::Null));
        let (entries, answered) = match context.memory::<Results>().entry((tool.to_owned(), key)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => match self.cache.answers(&self.server, tool, key) {
                Ok(entries) => new.insert((entries, 0)),
                Err(error) => {
                    return Offer::Answer(Answer::refusal(ErrorReply::new(code::INTERNAL_ERROR, error.to_string())));
                }
            },
        };
        let is_repeated = *answered >= entries.len();
        let Some(found) = entries.get(*answered).or(entries.last()) else { return Offer::Pass(MatchDepth::Name) };
        *answered += 1;
        if let Err(stale) = self.freshness.check(found) {
            self.stale.lock().unwrap_or_else(PoisonError::into_inner).insert((tool.to_owned(), key), stale);
            return Offer::Pass(MatchDepth::Name);
        }
        let place = format!("{}:{tool} {key}", self.server);
        let provenance = Provenance::Cache { place: place.into(), at_ms: found.entry.at_ms };
        let mut answer = Answer::new(found.entry.reply.clone(), provenance);
        answer.written_for = WrittenFor::Verbatim;
        if is_repeated {
            answer
                .remarks
                .push("the recorded run has fewer calls with these arguments; its last result is repeated".to_owned());
        }
        Offer::Answer(answer)
    }
}
