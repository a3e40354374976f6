//! The notices of a recorder for the user.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use rehearsal_core::redact;

/// A finding of the recorder that the user should know; the connection continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// An entry was added to a session that was never started; it is not recorded.
    NotStarted,
    /// A file can no longer be written, so recording into it has stopped.
    Stopped {
        /// The file.
        path: PathBuf,
        /// The cause.
        why: String,
    },
    /// A session could not be appended to its trace; its journal still exists.
    NotInTrace {
        /// The trace.
        trace: PathBuf,
        /// The journal.
        journal: PathBuf,
        /// The cause.
        why: String,
    },
    /// A session whose recorder was killed is in the trace now.
    Recovered {
        /// The id of the session.
        session_id: String,
        /// The number of its entries.
        entries: u64,
    },
    /// The journal of an earlier recorder could not be appended to the trace; it still exists.
    NotRecovered {
        /// Its journal, or the trace.
        path: PathBuf,
        /// The cause.
        why: String,
    },
    /// A hook panicked. It is called again the next time.
    HookPanicked {
        /// The kind of the hook: `request` or `response`.
        hook: &'static str,
        /// The method that it was called for.
        method: String,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::NotStarted => f.write_str("the session was never started; nothing of it is recorded"),
            Notice::Stopped { path, why } => {
                write!(f, "RECORDING STOPPED: cannot write {}: {why}; the connection continues", path.display())
            }
            Notice::NotInTrace { trace, journal, why } => write!(
                f,
                "RECORDING FAILED: cannot put the session into {}: {why}; what was recorded is in {}",
                trace.display(),
                journal.display()
            ),
            Notice::Recovered { session_id, entries } => {
                let entries = if *entries == 1 { "1 entry".to_owned() } else { format!("{entries} entries") };
                write!(f, "recovered session {session_id}, whose recorder was killed: {entries}")
            }
            Notice::NotRecovered { path, why } => {
                write!(f, "cannot recover what an earlier recorder left in {}: {why}", path.display())
            }
            Notice::HookPanicked { hook, method } => write!(f, "a {hook} hook panicked at {method}; it is ignored"),
        }
    }
}

impl Notice {
    /// Whether a part of the recording is missing because of this.
    pub fn is_failure(&self) -> bool {
        match self {
            Notice::Stopped { .. } | Notice::NotInTrace { .. } => true,
            // An earlier session is still in its journal, and nothing is missing from this one.
            Notice::NotStarted
            | Notice::Recovered { .. }
            | Notice::NotRecovered { .. }
            | Notice::HookPanicked { .. } => false,
        }
    }
}

/// Receives notices.
pub(super) type NoticeListener = Arc<dyn Fn(&Notice) + Send + Sync>;

/// Prints notices to stderr.
pub(super) fn on_stderr() -> NoticeListener {
    Arc::new(|notice| eprintln!("rehearsal: {notice}"))
}

/// What a recorder has recorded so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The number of sessions that were started.
    pub sessions: u64,
    /// The number of messages that were recorded.
    pub messages: u64,
    /// The secrets that were redacted.
    pub redacted: redact::RedactionSummary,
    /// Whether something is missing: a file could not be written.
    pub failed: bool,
}
