//! Files that are kept beside a recording: nobody ever sees half of one, and whoever is killed leaves nothing behind for long.
//!
//! ```text
//! .trace.jsonl.index.x7Kq2a.new ──when it is whole──► trace.jsonl.index
//! ```
//!
//! While a new one is written it is locked, and a lock ends with its process. So what is not locked will never be whole, and whoever
//! replays the same recording next removes it.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// A file that a replay keeps beside a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// `trace.jsonl.index`
    Index,
    /// `cassette.json.trace`, of a recording in another format.
    Trace,
    /// `cassette.json.trace.index`
    IndexOfTrace,
}

impl Beside {
    /// All of them.
    pub const ALL: [Beside; 3] = [Beside::Index, Beside::Trace, Beside::IndexOfTrace];

    /// Where it is.
    pub fn path(self, recording: &Path) -> PathBuf {
        let ending = match self {
            Beside::Index => ".index",
            Beside::Trace => ".trace",
            Beside::IndexOfTrace => return Beside::Index.path(&Beside::Trace.path(recording)),
        };
        let mut name = recording.as_os_str().to_owned();
        name.push(ending);
        name.into()
    }
}

/// What the name of a file ends with that is not whole yet.
const NEW: &str = ".new";

/// A file that will take the place of another in the same folder, where there may be one.
pub(super) fn new_beside(path: &Path) -> Option<NamedTempFile> {
    let (folder, prefix) = unfinished(path)?;
    let file = tempfile::Builder::new().prefix(&prefix).suffix(NEW).tempfile_in(folder).ok()?;
    // Where files cannot be locked nobody finds out that one is not, so it stays.
    let _ = file.as_file().try_lock();
    Some(file)
}

/// Puts a file in the place of another. `None` where that cannot be; whoever has it open uses it all the same.
pub(super) fn put_in_place(new: NamedTempFile, path: &Path) -> Option<()> {
    let file = new.persist(path).ok()?;
    // From now on it is a file like any other, which may be open for long.
    let _ = file.unlock();
    Some(())
}

/// Removes what was to take the place of a file and never will, because nobody writes it any more.
pub(super) fn clean_beside(path: &Path) {
    let Some((folder, prefix)) = unfinished(path) else { return };
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_new = name.as_bytes().starts_with(prefix.as_bytes()) && name.as_bytes().ends_with(NEW.as_bytes());
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_new
            && is_file
            && let Ok(file) = File::open(entry.path())
            && file.try_lock().is_ok()
        {
            // Somebody else may have been faster, or alone may do it.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// The folder of a file, and what the names of those begin with that will take its place.
fn unfinished(path: &Path) -> Option<(PathBuf, OsString)> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut prefix = OsString::from(".");
    prefix.push(path.file_name()?);
    prefix.push(".");
    Some((folder.to_owned(), prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_writes_any_more_goes_and_what_somebody_writes_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.jsonl.index");
        // A process that is killed leaves its file and no lock.
        let killed = |path: &Path| drop(new_beside(path).unwrap().keep().unwrap());
        killed(&path);
        killed(&path);
        killed(&folder.path().join("other.jsonl.index"));
        std::fs::write(&path, "whole").unwrap();
        let living = new_beside(&path).unwrap();
        clean_beside(&path);
        let mut left: Vec<_> = folder.path().read_dir().unwrap().map(|it| it.unwrap().file_name()).collect();
        left.sort();
        let [other, mine, whole] = &left[..] else { panic!("{left:?}") };
        assert!(other.to_string_lossy().starts_with(".other.jsonl.index."), "{left:?}");
        assert_eq!(Some(mine.as_os_str()), living.path().file_name());
        assert_eq!(whole, "trace.jsonl.index");
        put_in_place(living, &path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"");
    }
}
