//! How a recording is replayed.

use std::fmt;
use std::sync::Arc;

use rehearsal_core::answer::ReplayPace;
use rehearsal_core::matcher::Matcher;
use rehearsal_core::redact::Redaction;
use rehearsal_core::trace::RequestIdentity;

/// How a recording is replayed.
#[derive(Clone, Debug)]
pub struct ReplayOptions {
    /// Which requests are equal.
    pub likeness: RequestIdentity,
    /// What else a request must match: paths begin at the request, as in `$.params.arguments.now`.
    pub matchers: Vec<Matcher>,
    /// What is done when all the recorded answers of a request were given.
    pub repeat: Repeat,
    /// What is done about a request that was not recorded.
    pub unknown: OnUnmatched,
    /// Which sessions are answered from.
    pub sessions: SessionFilter,
    /// How fast.
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

/// What is done when all the recorded answers of a request were given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// The last one is given again.
    Last,
    /// The answers start again with the first.
    Cycle,
    /// It is refused.
    Error,
}

/// What is done about a request that was not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnUnmatched {
    /// It is refused, with an error that contains the closest recording.
    Refuse,
    /// The first recording of the same tool, or else of the same method, answers.
    First,
}

/// Which sessions are answered from.
#[derive(Clone, Debug, Default)]
pub struct SessionFilter {
    /// Only the session of this id.
    pub id: Option<String>,
    /// Only those with all of this metadata.
    pub metadata: Vec<(String, String)>,
}

impl SessionFilter {
    /// Metadata of what was recorded while the session of an id was replayed: that id, by which it is found again.
    pub const ADDS_TO: &str = "adds_to";
}

/// Sees how far an index is built, every few thousand messages.
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
    /// Calls this.
    pub fn new(see: impl Fn(IndexProgress) + Send + Sync + 'static) -> IndexCallback {
        IndexCallback(Some(Arc::new(see)))
    }

    pub(super) fn note_task_end(&self, indexed: IndexProgress) {
        if let Some(see) = &self.0 {
            see(indexed);
        }
    }
}

impl fmt::Debug for IndexCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnIndex").field(&self.0.is_some()).finish()
    }
}
