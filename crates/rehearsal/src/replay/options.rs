//! How a recording is replayed.

use std::fmt;
use std::sync::Arc;

use rehearsal_core::answer::Pace;
use rehearsal_core::matcher::Matcher;
use rehearsal_core::redact::Redaction;
use rehearsal_core::trace::Likeness;

/// How a recording is replayed.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which requests are equal.
    pub likeness: Likeness,
    /// What else a request must match: paths begin at the request, as in `$.params.arguments.now`.
    pub matchers: Vec<Matcher>,
    /// What is done when all the recorded answers of a request were given.
    pub repeat: Repeat,
    /// What is done about a request that was not recorded.
    pub unknown: Unknown,
    /// Which sessions are answered from.
    pub sessions: Sessions,
    /// How fast.
    pub pace: Pace,
    /// The redaction of the trace.
    pub redaction: Redaction,
    /// The callback for the progress of building an index.
    pub on_index: OnIndex,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            likeness: Likeness::default(),
            matchers: Vec::new(),
            repeat: Repeat::Last,
            unknown: Unknown::Refuse,
            sessions: Sessions::default(),
            pace: Pace::None,
            redaction: Redaction::standard(),
            on_index: OnIndex::default(),
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
pub enum Unknown {
    /// It is refused, with an error that contains the closest recording.
    Refuse,
    /// The first recording of the same tool, or else of the same method, answers.
    First,
}

/// Which sessions are answered from.
#[derive(Clone, Debug, Default)]
pub struct Sessions {
    /// Only the session of this id.
    pub id: Option<String>,
    /// Only those with all of this metadata.
    pub metadata: Vec<(String, String)>,
}

impl Sessions {
    /// Metadata of what was recorded while the session of an id was replayed: that id, by which it is found again.
    pub const ADDS_TO: &str = "adds_to";
}

/// Sees how far an index is built, every few thousand messages.
#[derive(Clone, Default)]
pub struct OnIndex(Option<Arc<dyn Fn(Indexed) + Send + Sync>>);

/// How far an index is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Indexed {
    /// How many bytes of the trace were read.
    pub bytes: u64,
    /// How many it has.
    pub of: u64,
}

impl OnIndex {
    /// Calls this.
    pub fn new(see: impl Fn(Indexed) + Send + Sync + 'static) -> OnIndex {
        OnIndex(Some(Arc::new(see)))
    }

    pub(super) fn see(&self, indexed: Indexed) {
        if let Some(see) = &self.0 {
            see(indexed);
        }
    }
}

impl fmt::Debug for OnIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnIndex").field(&self.0.is_some()).finish()
    }
}
