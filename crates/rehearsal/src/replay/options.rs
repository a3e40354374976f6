//! The options of a replay.

use std::fmt;
use std::sync::Arc;

use rehearsal_core::answer::ReplayPace;
use rehearsal_core::matcher::Matcher;
use rehearsal_core::redact::Redaction;
use rehearsal_core::trace::RequestIdentity;

/// The options of a replay.
#[derive(Clone, Debug)]
pub struct ReplayOptions {
    /// Which requests are equal.
    pub likeness: RequestIdentity,
    /// What else a request must match: paths begin at the request, as in `$.params.arguments.now`.
    pub matchers: Vec<Matcher>,
    /// What happens when all recorded answers of a request were used.
    pub repeat: Repeat,
    /// What happens to a request that was not recorded.
    pub unknown: OnUnmatched,
    /// Which sessions are answered from.
    pub sessions: SessionFilter,
    /// The pace of notifications and answers.
    pub pace: ReplayPace,
    /// The redaction of the trace.
    pub redaction: Redaction,
    /// The callback for the progress of building an index.
    pub on_index: IndexCallback,
}

impl Default for ReplayOptions {
    fn default() -> ReplayOptions {
        ReplayOptions {
            likeness: RequestIdentity::default(),
            matchers: Vec::new(),
            repeat: Repeat::Last,
            unknown: OnUnmatched::Refuse,
            sessions: SessionFilter::default(),
            pace: ReplayPace::None,
            redaction: Redaction::standard(),
            on_index: IndexCallback::default(),
        }
    }
}

/// What happens when all recorded answers of a request were used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// The last one is repeated.
    Last,
    /// The answers start again with the first.
    Cycle,
    /// The request is refused.
    Error,
}

/// What happens to a request that was not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnUnmatched {
    /// The request is refused, with an error that contains the closest recording.
    Refuse,
    /// The first recording of the same tool, or else of the same method, answers.
    First,
}

/// Which sessions are answered from.
#[derive(Clone, Debug, Default)]
pub struct SessionFilter {
    /// Only the session of this id.
    pub id: Option<String>,
    /// Only the sessions with all of this metadata.
    pub metadata: Vec<(String, String)>,
}

impl SessionFilter {
    /// The metadata key of a session that was recorded while another one was replayed: the id of that one.
    pub const ADDS_TO: &str = "adds_to";
}

/// Receives the progress of building an index, every few thousand messages.
#[derive(Clone, Default)]
pub struct IndexCallback(Option<Arc<dyn Fn(IndexProgress) + Send + Sync>>);

/// How far an index is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexProgress {
    /// How many bytes of the trace were read.
    pub bytes: u64,
    /// How many it has.
    pub of: u64,
}

impl IndexCallback {
    /// Builds a callback.
    pub fn new(see: impl Fn(IndexProgress) + Send + Sync + 'static) -> IndexCallback {
        IndexCallback(Some(Arc::new(see)))
    }

    pub(super) fn report(&self, indexed: IndexProgress) {
        if let Some(see) = &self.0 {
            see(indexed);
        }
    }
}

impl fmt::Debug for IndexCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("IndexCallback").field(&self.0.is_some()).finish()
    }
}
