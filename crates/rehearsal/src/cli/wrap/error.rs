//! Why a configuration could not be wrapped or unwrapped.

use std::io;
use std::path::PathBuf;

/// What is wrong with a configuration, or with what was said about it.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum WrapError {
    /// It could not be read.
    #[error("cannot read {}: {cause}", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why not.
        #[source]
        cause: io::Error,
    },
    /// It could not be written.
    #[error("cannot write {}: {cause}", path.display())]
    Unwritable {
        /// Which file.
        path: PathBuf,
        /// Why not.
        #[source]
        cause: io::Error,
    },
    /// It is not JSON.
    #[error("{}:{line}:{column}: not JSON: expected {expected}", path.display())]
    NotJson {
        /// Which file.
        path: PathBuf,
        /// Where.
        line: usize,
        /// Where in the line.
        column: usize,
        /// What should stand there.
        expected: &'static str,
    },
    /// There are no servers in it.
    #[error("{}: no object `mcpServers` or `servers`", path.display())]
    NoServers {
        /// Which file.
        path: PathBuf,
    },
    /// There is no such server in it.
    #[error("{} has no server {name:?}", path.display())]
    NoServer {
        /// Which file.
        path: PathBuf,
        /// What was looked for.
        name: String,
        /// What is there.
        known: Vec<String>,
    },
    /// No server in it can be recorded this way.
    #[error("no server in {} can be wrapped", path.display())]
    NothingToWrap {
        /// Which file.
        path: PathBuf,
    },
    /// Somebody wrapped it before and put it back by hand.
    #[error("{} is of an earlier wrap, but nothing in {} is wrapped", backup.display(), path.display())]
    StaleBackup {
        /// Which file.
        path: PathBuf,
        /// Its backup.
        backup: PathBuf,
    },
    /// Nothing in it is wrapped.
    #[error("nothing in {} is wrapped", path.display())]
    NotWrapped {
        /// Which file.
        path: PathBuf,
    },
}

impl WrapError {
    /// What to do about it.
    pub(in crate::cli) fn hints(&self) -> Vec<String> {
        match self {
            WrapError::NoServer { name, known, .. } => {
                let close = rehearsal::core::suggest::closest(name, known.iter().map(String::as_str));
                let hint = close.map(|close| format!("did you mean {close:?}?"));
                vec![hint.unwrap_or_else(|| match known.is_empty() {
                    true => "it has none at all".to_owned(),
                    false => format!("it has {}", known.join(", ")),
                })]
            }
            WrapError::StaleBackup { backup, .. } => {
                vec![format!("compare the two, then remove or rename {}", backup.display())]
            }
            WrapError::Unreadable { .. }
            | WrapError::Unwritable { .. }
            | WrapError::NotJson { .. }
            | WrapError::NoServers { .. }
            | WrapError::NothingToWrap { .. }
            | WrapError::NotWrapped { .. } => Vec::new(),
        }
    }
}
