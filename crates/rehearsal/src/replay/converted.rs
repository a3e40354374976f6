//! Recordings of other formats, as traces.
//!
//! ```text
//! cassette.json ──► cassette.json.trace ──► cassette.json.trace.index
//! ```

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rehearsal_core::trace::{ReadError, TraceWriter};

use super::beside::{Beside, clean_beside, new_beside, put_in_place};
use super::index::{IndexError, fingerprint};
use crate::store::{BadLines, Recording};

/// How long a recording is whose trace is worth keeping; what is shorter is there in a moment.
const WORTH_KEEPING: u64 = if cfg!(test) { 64 << 10 } else { 4 << 20 };

/// A recording as a trace, and where that is kept. A long one is kept beside the recording, where that may be, until the
/// recording changes.
pub(super) fn converted(
    recording: &Recording,
    path: Option<&Path>,
) -> Result<(Recording, Option<PathBuf>), IndexError> {
    let length = recording.file().metadata()?.len();
    let in_passing = || Ok((Recording::in_file(Arc::new(written(recording, tempfile::tempfile()?)?)), None));
    let Some(kept) = path.filter(|_| length >= WORTH_KEEPING).map(|path| Beside::Trace.path(path)) else {
        return in_passing();
    };
    clean_beside(&kept);
    let made_from = made_from(recording)?;
    if let Some(file) = File::open(&kept).ok()
        && file.metadata()?.modified()? == made_from
    {
        return Ok((Recording::in_file(Arc::new(file)), Some(kept)));
    }
    let Some(new) = new_beside(&kept) else { return in_passing() };
    let file = match written(recording, new.as_file().try_clone()?) {
        Ok(file) => file,
        // Where there is no room for it.
        Err(IndexError::Io(_) | IndexError::Trace(ReadError::Io(_))) => return in_passing(),
        Err(error @ IndexError::Trace(_)) => return Err(error),
    };
    file.set_modified(made_from)?;
    file.sync_all()?;
    let kept = put_in_place(new, &kept).map(|()| kept);
    Ok((Recording::in_file(Arc::new(file)), kept))
}

/// The time of a kept trace says what it was made from: the seconds are those of the recording, and the rest is a
/// fingerprint of it.
fn made_from(recording: &Recording) -> io::Result<SystemTime> {
    let changed = recording.file().metadata()?.modified()?;
    let seconds = changed.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let nanoseconds = u32::try_from(fingerprint(recording.file())? % 1_000_000_000).unwrap_or_default();
    Ok(UNIX_EPOCH + Duration::new(seconds, nanoseconds))
}

fn written(recording: &Recording, file: File) -> Result<File, IndexError> {
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
    fn a_long_recording_is_converted_once_and_again_when_it_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("python.jsonl");
        let session = include_str!("../../../../fixtures/traces/python.jsonl");
        let long = session.repeat(usize::try_from(WORTH_KEEPING).unwrap() / session.len() + 1);
        std::fs::write(&path, &long).unwrap();
        let open = || converted(&Recording::open(&Input::from(path.clone())).unwrap(), Some(&path)).unwrap();
        let count = |recording: &Recording| recording.parts(BadLines::Refuse).map(Result::unwrap).count();
        let (first, kept) = open();
        let (parts, kept) = (count(&first), kept.unwrap());
        assert_eq!(kept, folder.path().join("python.jsonl.trace"));
        // It is not written again: what somebody takes out of it without changing its time is gone.
        let time = std::fs::metadata(&kept).unwrap().modified().unwrap();
        std::fs::write(&kept, "").unwrap();
        File::options().write(true).open(&kept).unwrap().set_modified(time).unwrap();
        let (again, _) = open();
        assert_eq!(count(&again), 0);
        // The recording is changed, though nobody can tell by its length and its time.
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
