//! What became of a recording.

use rehearsal_core::redact;

/// What a recorder has recorded so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// How many sessions were started.
    pub sessions: u64,
    /// How many messages were kept.
    pub messages: u64,
    /// What was taken out.
    pub redacted: redact::Summary,
    /// Whether something is missing: a file could not be written.
    pub failed: bool,
}
