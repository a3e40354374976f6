//! What stands beside a trace that cannot be written.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::append::{contains, torn_at};
use super::recover::{is_begun, journals};

/// What would be [recovered](super::recover) if the trace could be written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unrecovered {
    /// Journals of recorders that were killed, whose sessions are not in the trace.
    pub journals: Vec<PathBuf>,
    /// Where the last line of the trace begins, if it is torn and its session is in one of the journals.
    pub torn_at: Option<u64>,
}

/// Finds what stands beside a trace, and changes nothing. Sessions that still run are left out.
pub fn unrecovered(trace: &Path) -> io::Result<Unrecovered> {
    let mut found = Unrecovered::default();
    for (session_id, path) in journals(trace)? {
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => continue,
            Err(std::fs::TryLockError::Error(error)) => return Err(error),
        }
        if is_begun(&mut file)? && !(trace.exists() && contains(trace, &session_id)?) {
            found.journals.push(path);
        }
    }
    found.journals.sort();
    found.torn_at = torn_at(trace)?;
    Ok(found)
}
