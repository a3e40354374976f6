//! Files next to a recording: its index, and its trace if it has another format. A reader never sees a partial one, and
//! a killed replay leaves nothing behind for long.
//!
//! ```text
//! .trace.jsonl.index.x7Kq2a.new ──when it is whole──► trace.jsonl.index
//! ```
//!
//! A file is locked while it is written, and the lock ends with its process. So an unlocked file will never be whole,
//! and the next replay of the same recording removes it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rehearsal_core::trace::{ReadError, TraceWriter};
use tempfile::NamedTempFile;

use super::index::{IndexError, fingerprint};
use crate::store::{BadLines, Recording};

/// A file that a replay keeps next to a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SidecarFile {
    /// `trace.jsonl.index`
    Index,
    /// `cassette.json.trace`, of a recording in another format.
    Trace,
    /// `cassette.json.trace.index`
    IndexOfTrace,
}

impl SidecarFile {
    /// Every kind of file.
    pub const ALL: [SidecarFile; 3] = [SidecarFile::Index, SidecarFile::Trace, SidecarFile::IndexOfTrace];

    /// The path of the file for a recording.
    pub fn path(self, recording: &Path) -> PathBuf {
        let ending = match self {
            SidecarFile::Index => ".index",
            SidecarFile::Trace => ".trace",
            SidecarFile::IndexOfTrace => return SidecarFile::Index.path(&SidecarFile::Trace.path(recording)),
        };
        let mut name = recording.as_os_str().to_owned();
        name.push(ending);
        name.into()
    }
}

/// The extension of a file that is not complete yet.
const NEW: &str = ".new";

/// Creates a temporary file that will be renamed to `path`; `None` if the folder is not writable.
pub(super) fn create_temporary(path: &Path) -> Option<NamedTempFile> {
    let (folder, prefix) = temporary_prefix(path)?;
    let file = tempfile::Builder::new().prefix(&prefix).suffix(NEW).tempfile_in(folder).ok()?;
    // On a file system without locks, no process can find out that the file is unlocked, so it stays.
    let _ = file.as_file().try_lock();
    Some(file)
}

/// Renames a file to its final path. `None` if that fails; a process that has the file open still uses it.
pub(super) fn install(new: NamedTempFile, path: &Path) -> Option<()> {
    let file = new.persist(path).ok()?;
    // From now on it is a file like any other, which may be open for long.
    let _ = file.unlock();
    Some(())
}

/// Removes temporary files whose process has exited.
pub(super) fn remove_stale(path: &Path) {
    let Some((folder, prefix)) = temporary_prefix(path) else { return };
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_new = name.as_bytes().starts_with(prefix.as_bytes()) && name.as_bytes().ends_with(NEW.as_bytes());
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_new
            && is_file
            && let Ok(file) = File::open(entry.path())
            && file.try_lock().is_ok()
        {
            // Another process may have removed it already, or may be the only one with the permission.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// The folder of a file, and the prefix of the temporary files that will replace it.
fn temporary_prefix(path: &Path) -> Option<(PathBuf, OsString)> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut prefix = OsString::from(".");
    prefix.push(path.file_name()?);
    prefix.push(".");
    Some((folder.to_owned(), prefix))
}

/// The size in bytes from which the trace of a recording is kept; a smaller one is converted in a moment.
const KEEP_THRESHOLD: u64 = if cfg!(test) { 64 << 10 } else { 4 << 20 };

/// Converts a recording to a trace. A long one is kept next to the recording, if that is possible, until the recording
/// changes.
pub(super) fn converted(
    recording: &Recording,
    path: Option<&Path>,
) -> Result<(Recording, Option<PathBuf>), IndexError> {
    let length = recording.file().metadata()?.len();
    let convert = || Ok((Recording::in_file(Arc::new(write_trace(recording, tempfile::tempfile()?)?)), None));
    let Some(kept) = path.filter(|_| length >= KEEP_THRESHOLD).map(|path| SidecarFile::Trace.path(path)) else {
        return convert();
    };
    remove_stale(&kept);
    let made_from = made_from(recording)?;
    if let Some(file) = File::open(&kept).ok()
        && file.metadata()?.modified()? == made_from
    {
        return Ok((Recording::in_file(Arc::new(file)), Some(kept)));
    }
    let Some(new) = create_temporary(&kept) else { return convert() };
    let file = match write_trace(recording, new.as_file().try_clone()?) {
        Ok(file) => file,
        // The disk is full.
        Err(IndexError::Io(_) | IndexError::Trace(ReadError::Io(_))) => return convert(),
        Err(error @ IndexError::Trace(_)) => return Err(error),
    };
    file.set_modified(made_from)?;
    file.sync_all()?;
    let kept = install(new, &kept).map(|()| kept);
    Ok((Recording::in_file(Arc::new(file)), kept))
}

/// The time of a kept trace, which identifies its recording: the seconds are those of the recording, and the rest is
/// its fingerprint.
fn made_from(recording: &Recording) -> io::Result<SystemTime> {
    let changed = recording.file().metadata()?.modified()?;
    let seconds = changed.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let nanoseconds = u32::try_from(fingerprint(recording.file())? % 1_000_000_000).unwrap_or_default();
    Ok(UNIX_EPOCH + Duration::new(seconds, nanoseconds))
}

fn write_trace(recording: &Recording, file: File) -> Result<File, IndexError> {
    let mut writer = TraceWriter::new(BufWriter::with_capacity(256 << 10, file), tempfile::tempfile()?);
    for part in recording.parts(BadLines::Refuse) {
        writer.part(&part?)?;
    }
    Ok(writer.finish()?.into_inner().map_err(|error| ReadError::Io(error.into_error()))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Input;

    #[test]
    fn an_unlocked_temporary_file_is_removed_and_a_locked_one_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.jsonl.index");
        // A process that is killed leaves its file and no lock.
        let killed = |path: &Path| drop(create_temporary(path).unwrap().keep().unwrap());
        killed(&path);
        killed(&path);
        killed(&folder.path().join("other.jsonl.index"));
        std::fs::write(&path, "whole").unwrap();
        let locked = create_temporary(&path).unwrap();
        remove_stale(&path);
        let mut left: Vec<_> = folder.path().read_dir().unwrap().map(|it| it.unwrap().file_name()).collect();
        left.sort();
        let [other, mine, whole] = &left[..] else { panic!("{left:?}") };
        assert!(other.to_string_lossy().starts_with(".other.jsonl.index."), "{left:?}");
        assert_eq!(Some(mine.as_os_str()), locked.path().file_name());
        assert_eq!(whole, "trace.jsonl.index");
        install(locked, &path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"");
    }

    #[test]
    fn a_long_recording_is_converted_once_and_again_when_it_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("python.jsonl");
        let session = include_str!("../../../../fixtures/traces/python.jsonl");
        let long = session.repeat(usize::try_from(KEEP_THRESHOLD).unwrap() / session.len() + 1);
        std::fs::write(&path, &long).unwrap();
        let open = || converted(&Recording::open(&Input::from(path.clone())).unwrap(), Some(&path)).unwrap();
        let count = |recording: &Recording| recording.parts(BadLines::Refuse).map(Result::unwrap).count();
        let (first, kept) = open();
        let (parts, kept) = (count(&first), kept.unwrap());
        assert_eq!(kept, folder.path().join("python.jsonl.trace"));
        // The file is not written again: content that was removed without a change of its time stays removed.
        let time = std::fs::metadata(&kept).unwrap().modified().unwrap();
        std::fs::write(&kept, "").unwrap();
        File::options().write(true).open(&kept).unwrap().set_modified(time).unwrap();
        let (again, _) = open();
        assert_eq!(count(&again), 0);
        // The recording changes, but neither its length nor its time does.
        let changed = long.replacen("example-server", "example-sorver", 1);
        assert_ne!(changed, long);
        let time = std::fs::metadata(&path).unwrap().modified().unwrap();
        std::fs::write(&path, changed).unwrap();
        File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
        let (fresh, _) = open();
        assert_eq!(count(&fresh), parts);
    }

    #[test]
    fn a_short_recording_leaves_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("python.jsonl");
        std::fs::write(&path, include_str!("../../../../fixtures/traces/python.jsonl")).unwrap();
        let recording = Recording::open(&Input::from(path.clone())).unwrap();
        assert_eq!(converted(&recording, Some(&path)).unwrap().1, None);
        assert_eq!(folder.path().read_dir().unwrap().count(), 1);
    }
}
