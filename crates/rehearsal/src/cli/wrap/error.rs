//! Why a configuration could not be wrapped or unwrapped.

use std::io;
use std::path::PathBuf;

use rehearsal::config::ConfigError;

/// What is wrong with a configuration, or with what was said about it.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum WrapError {
    /// What stands in it is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// It could not be written.
    #[error("cannot write {}: {cause}", path.display())]
    Unwritable {
        /// Which file.
        path: PathBuf,
        /// Why not.
        #[source]
        cause: io::Error,
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
            WrapError::StaleBackup { backup, .. } => {
                vec![format!("compare the two, then remove or rename {}", backup.display())]
            }
            WrapError::Config(_)
            | WrapError::Unwritable { .. }
            | WrapError::NothingToWrap { .. }
            | WrapError::NotWrapped { .. } => Vec::new(),
        }
    }
}
