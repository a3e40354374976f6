//! Why a recording could not be served, and what to do about it.

use std::io::ErrorKind;
use std::path::PathBuf;

use rehearsal::core::trace::ReadError;
use rehearsal::replay::{IndexError, ReplayError};
use rehearsal::wire::http::server::BindError;

use super::exit::Exit;
use super::failure::bind_hints;
use super::suggestion::suggestion;
use super::trace::on_lines;

/// Why a recording could not be served.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReplayFailure {
    /// It cannot be read.
    #[error("{error}")]
    Open {
        /// Why not.
        error: ReplayError,
        /// The session that was wanted, where one was.
        session: Option<String>,
    },
    /// A path is none.
    #[error("--ignore {path}: not a JSONPath: {why}")]
    Path {
        /// What was written.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// There is no server to ask.
    #[error("--unmatched forward needs the server: --url URL, or -- COMMAND")]
    NoServer,
    /// There is nothing to ask a server.
    #[error("a server is asked only with --unmatched forward")]
    NeedlessServer,
    /// There is nothing to record.
    #[error("-o records what a real server says, and none is asked without --unmatched forward")]
    NeedlessOutput,
    /// It cannot listen.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The recording can no longer be read.
    #[error("cannot read {}: {cause}", trace.display())]
    Read {
        /// Which.
        trace: PathBuf,
        /// Why not.
        cause: std::io::Error,
    },
    /// The ledger would take the place of something that is needed.
    #[error("--ledger {}: that is {what}", path.display())]
    LedgerInUse {
        /// Where.
        path: PathBuf,
        /// What is there.
        what: &'static str,
    },
    /// The ledger cannot be written.
    #[error("cannot write the ledger to {}: {cause}", path.display())]
    Ledger {
        /// Where.
        path: PathBuf,
        /// Why not.
        cause: std::io::Error,
    },
}

impl ReplayFailure {
    /// The exit status that it leads to.
    pub(super) fn exit(&self) -> Exit {
        match self {
            ReplayFailure::Open { .. }
            | ReplayFailure::Path { .. }
            | ReplayFailure::NoServer
            | ReplayFailure::NeedlessServer
            | ReplayFailure::NeedlessOutput
            | ReplayFailure::Read { .. }
            | ReplayFailure::LedgerInUse { .. }
            | ReplayFailure::Ledger { .. } => Exit::BadInput,
            ReplayFailure::Bind(_) => Exit::ServerFailed,
        }
    }

    /// What to do about it.
    pub(super) fn hints(&self) -> Vec<String> {
        let hint = match self {
            ReplayFailure::Open { error, session } => return open_hints(error, session.as_deref()),
            ReplayFailure::Path { .. } => {
                "a path begins with `$`: $.params.arguments.now, or $..timestamp for all of them".to_owned()
            }
            ReplayFailure::NoServer => {
                "the server that was recorded: --unmatched forward -- npx -y some-server".to_owned()
            }
            ReplayFailure::NeedlessServer | ReplayFailure::NeedlessOutput => {
                "`--unmatched forward` asks it what was not recorded".to_owned()
            }
            ReplayFailure::Bind(error) => return bind_hints(error),
            ReplayFailure::LedgerInUse { .. } => "--ledger takes a file of its own: ledger.json".to_owned(),
            ReplayFailure::Ledger { cause, .. } if cause.kind() == ErrorKind::StorageFull => {
                "make room, or give it a file on another disk".to_owned()
            }
            ReplayFailure::Ledger { .. } => "--ledger takes a file in a folder that is there: ledger.json".to_owned(),
            ReplayFailure::Read { .. } => return Vec::new(),
        };
        vec![hint]
    }
}

/// What to do about a recording that cannot be served.
fn open_hints(error: &ReplayError, session: Option<&str>) -> Vec<String> {
    match error {
        ReplayError::NoSession { known, .. } => match session {
            Some(session) if known.iter().any(|it| it == session) => {
                vec![format!("session {session} has other metadata: `rehearse trace show` shows it")]
            }
            Some(session) => vec![suggestion(session, known, "sessions")],
            None => vec!["`rehearse trace show` shows what is known about each session".to_owned()],
        },
        ReplayError::Index { cause: IndexError::Trace(ReadError::Format { .. }), .. } => {
            vec!["update rehearse, or record again".to_owned()]
        }
        ReplayError::Index { input, cause: IndexError::Trace(error) } => {
            if let Some(laid_out) = error.laid_out() {
                return vec![on_lines(laid_out).to_owned()];
            }
            vec![format!("`rehearse trace convert --skip-bad {input} sound.jsonl` keeps the lines that can be read")]
        }
        ReplayError::Index { cause: IndexError::Io(cause), .. } if cause.kind() == ErrorKind::StorageFull => {
            vec!["TMPDIR names a folder with more room, for the index of the recording".to_owned()]
        }
        ReplayError::Index { cause: IndexError::Io(_), .. } | ReplayError::Open(_) => Vec::new(),
    }
}
