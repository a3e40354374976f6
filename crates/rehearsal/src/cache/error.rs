//! Why the cache cannot be used, and what the user can do about it.

use std::io;
use std::path::PathBuf;

/// Why the cache cannot be used.
#[derive(thiserror::Error)]
pub enum CacheError {
    /// Its folder cannot be created.
    #[error("cannot create {}: {cause}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The reason.
        #[source]
        cause: io::Error,
    },
    /// SQLite cannot open, read or write the file.
    #[error("the cache {}: {cause}", path.display())]
    Store {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        cause: rusqlite::Error,
    },
    /// A newer version of `rehearse` wrote the file.
    #[error("the cache {} has version {found}, this program reads version {supported}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The version of its tables.
        found: i64,
        /// The newest version that this program reads.
        supported: i64,
    },
    /// A stored value is not JSON.
    #[error("the cache {} is damaged: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The value.
        what: String,
    },
}

debug_as_display!(CacheError);

impl CacheError {
    /// What the user can do.
    pub fn hint(&self) -> Option<&'static str> {
        use rusqlite::ErrorCode::{
            CannotOpen, DatabaseBusy, DatabaseCorrupt, DatabaseLocked, DiskFull, NotADatabase, PermissionDenied,
            ReadOnly,
        };
        match self {
            CacheError::Folder { .. } => Some("name another file: --cache FILE"),
            CacheError::Version { .. } => Some("update rehearse, or use another file: --cache FILE"),
            CacheError::Damaged { .. } => Some("move the file to another place and import the recordings again"),
            CacheError::Store { cause, .. } => match cause.sqlite_error_code()? {
                NotADatabase | DatabaseCorrupt => Some(
                    "the file is damaged, or is not a cache: move it to another place and import the recordings again",
                ),
                DiskFull => Some("free space on the disk, or name a file on another one: --cache FILE"),
                ReadOnly | PermissionDenied => {
                    Some("permit writing to the file and its folder, or name another file: --cache FILE")
                }
                CannotOpen => {
                    Some("check that the file and its folder can be written, or name another file: --cache FILE")
                }
                DatabaseBusy | DatabaseLocked => {
                    Some("another process writes to the cache; run the command again when it has ended")
                }
                _ => None,
            },
        }
    }
}
