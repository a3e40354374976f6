//! Opens the index of a trace, and builds it where there is none that fits.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use rehearsal_core::trace::{Likeness, ReadError, RequestKey};
use serde_json::json;

use super::build::collect;
use super::layout::Origin;
use super::lookup::Index;
use super::write::write;
use crate::replay::beside::{Beside, clean_beside, new_beside, put_in_place};
use crate::replay::options::{Indexed, Options};
use crate::store::Recording;

/// How much of each end of a trace is looked at to tell whether it is the same.
const SAMPLE: u64 = 16 << 10;

/// Why there is no index.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The trace is broken.
    #[error(transparent)]
    Trace(#[from] ReadError),
    /// Something could not be read or written.
    #[error("cannot index the trace: {0}")]
    Io(#[from] io::Error),
}

/// What to do with an index that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::replay) enum Existing {
    /// Use it, if it is of this trace.
    Use,
    /// Build another; this one is damaged.
    Replace,
}

/// The index of a trace: the one that lies beside it, if it fits; otherwise a new one, which is left there where that
/// may be, and in a temporary file where it may not.
pub(in crate::replay) fn open(
    recording: &Recording,
    path: Option<&Path>,
    options: &Options,
    existing: Existing,
) -> Result<Index, IndexError> {
    let likeness = &options.likeness;
    let origin = origin(recording.file(), likeness)?;
    let beside = path.map(|path| Beside::Index.path(path));
    beside.iter().for_each(|beside| clean_beside(beside));
    let found = beside.as_deref().filter(|_| existing == Existing::Use);
    if let Some(file) = found.and_then(|beside| File::open(beside).ok())
        // What cannot be read is as good as not there.
        && let Some(index) = Index::read(file).ok().flatten().filter(|index| index.head().origin == origin)
    {
        return Ok(index);
    }
    let see = |bytes| options.on_index.see(Indexed { bytes, of: origin.length });
    let build = |file: &mut File| -> Result<(), IndexError> {
        let all = collect(recording.trace_reader(), likeness, see)?;
        write(file, all, origin)?;
        Ok(())
    };
    let file = match kept(beside.as_deref(), build) {
        Some(Ok(file)) => file,
        Some(Err(error @ IndexError::Trace(_))) => return Err(error),
        // Where there is no room for it, or it may not be.
        Some(Err(IndexError::Io(_))) | None => {
            let mut file = tempfile::tempfile()?;
            build(&mut file)?;
            file
        }
    };
    let index = Index::read(file)?;
    index.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "what was written cannot be read").into())
}

/// A new index beside the trace; `None` where nothing may be put there.
fn kept(
    beside: Option<&Path>,
    build: impl Fn(&mut File) -> Result<(), IndexError>,
) -> Option<Result<File, IndexError>> {
    let beside = beside?;
    let mut file = new_beside(beside)?;
    let written = build(file.as_file_mut()).and_then(|()| {
        // Whatever happens to the machine, there is never half an index in its place.
        file.as_file().sync_all()?;
        Ok(file.as_file().try_clone()?)
    });
    if written.is_ok() {
        put_in_place(file, beside);
    }
    Some(written)
}

/// A number that changes with a file, with as much of it as is looked at.
pub(in crate::replay) fn fingerprint(file: &File) -> io::Result<u128> {
    let Origin { length, changed, sample, .. } = origin(file, &Likeness::default())?;
    Ok(RequestKey::of(&json!([length, changed.to_string(), sample.to_string()])).0)
}

/// What tells one trace from another, and from itself when it has grown.
fn origin(trace: &File, likeness: &Likeness) -> io::Result<Origin> {
    let metadata = trace.metadata()?;
    let length = metadata.len();
    let mut sample = vec![0; usize::try_from(length.min(SAMPLE)).unwrap_or_default()];
    trace.read_exact_at(&mut sample, 0)?;
    let mut text = String::from_utf8_lossy(&sample).into_owned();
    trace.read_exact_at(&mut sample, length - length.min(SAMPLE))?;
    text.push_str(&String::from_utf8_lossy(&sample));
    let seconds = u128::try_from(metadata.mtime()).unwrap_or_default();
    let changed = seconds * 1_000_000_000 + u128::try_from(metadata.mtime_nsec()).unwrap_or_default();
    let sample = RequestKey::of(&json!(text)).0;
    Ok(Origin { length, changed, sample, likeness: likeness.fingerprint().0 })
}
