//! The source of the answer chain that answers from the cache.

use std::collections::HashMap;
use std::sync::Arc;

use rehearsal_core::answer::{
    Answer, AnswerContext, AnswerSource, IncomingRequest, MatchDepth, Offer, Provenance, WrittenFor,
};
use rehearsal_core::message::{ErrorReply, Method};
use rehearsal_core::protocol::code;
use serde_json::Value;

use super::key::ArgumentsKey;
use super::sqlite::Cache;

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

/// How often each call was answered on a connection.
type Occurrences = HashMap<(String, ArgumentsKey), usize>;

impl AnswerSource for CacheSource {
    fn begin(&self, request: &Arc<IncomingRequest>, context: &mut AnswerContext<'_>) -> Offer {
        let Some(tool) = request.subject().filter(|_| request.method == Method::TOOLS_CALL) else {
            return Offer::Pass(MatchDepth::Nothing);
        };
        let key = ArgumentsKey::new(request.params.get("arguments").unwrap_or(&Value::Null));
        let occurrences = context.memory::<Occurrences>();
        let occurrence = occurrences.entry((tool.to_owned(), key)).or_default();
        let found = match self.cache.get(&self.server, tool, key, *occurrence) {
            Ok(Some(found)) => found,
            Ok(None) => return Offer::Pass(MatchDepth::Name),
            Err(error) => {
                return Offer::Answer(Answer::refusal(ErrorReply::new(code::INTERNAL_ERROR, error.to_string())));
            }
        };
        *occurrence += 1;
        let place = format!("{}:{tool} {key}", self.server);
        let provenance = Provenance::Cache { place: place.into(), at_ms: found.entry.at_ms };
        let mut answer = Answer::new(found.entry.reply, provenance);
        answer.written_for = WrittenFor::Verbatim;
        if found.is_repeated && *occurrence > 1 {
            answer
                .remarks
                .push("the recorded run has fewer calls with these arguments; its last result is repeated".to_owned());
        }
        Offer::Answer(answer)
    }
}
