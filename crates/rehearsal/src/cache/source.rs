//! The source of the answer chain that answers from the cache.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use rehearsal_core::answer::{
    Answer, AnswerContext, AnswerSource, IncomingRequest, MatchDepth, Offer, Provenance, WrittenFor,
};
use rehearsal_core::message::{ErrorReply, Method};
use rehearsal_core::protocol::code;
use serde_json::Value;

use super::key::ArgumentsKey;
use super::sqlite::{Cache, CacheEntry};

/// Answers calls of the tools of one server with the results of exactly these arguments.
#[derive(Debug)]
pub struct CacheSource {
    cache: Arc<Cache>,
    server: String,
}

impl CacheSource {
    /// The results of a server, by its name in the configuration.
    pub fn new(cache: Arc<Cache>, server: impl Into<String>) -> CacheSource {
        CacheSource { cache, server: server.into() }
    }
}

/// The results for each tool and its arguments, and how many calls of this connection they answered.
type Results = HashMap<(String, ArgumentsKey), (Vec<CacheEntry>, usize)>;

impl AnswerSource for CacheSource {
    fn begin(&self, request: &Arc<IncomingRequest>, context: &mut AnswerContext<'_>) -> Offer {
        let Some(tool) = request.subject().filter(|_| request.method == Method::TOOLS_CALL) else {
            return Offer::Pass(MatchDepth::Nothing);
        };
        let key = ArgumentsKey::new(request.params.get("arguments").unwrap_or(&Value::Null));
        let (entries, answered) = match context.memory::<Results>().entry((tool.to_owned(), key)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => match self.cache.results(&self.server, tool, key) {
                Ok(entries) => new.insert((entries, 0)),
                Err(error) => {
                    return Offer::Answer(Answer::refusal(ErrorReply::new(code::INTERNAL_ERROR, error.to_string())));
                }
            },
        };
        let is_repeated = *answered >= entries.len();
        let Some(found) = entries.get(*answered).or(entries.last()) else { return Offer::Pass(MatchDepth::Name) };
        *answered += 1;
        let place = format!("{}:{tool} {key}", self.server);
        let provenance = Provenance::Cache { place: place.into(), at_ms: found.at_ms };
        let mut answer = Answer::new(found.reply.clone(), provenance);
        answer.written_for = WrittenFor::Verbatim;
        if is_repeated {
            answer
                .remarks
                .push("the recorded run has fewer calls with these arguments; its last result is repeated".to_owned());
        }
        Offer::Answer(answer)
    }
}
