//! The journal of a session that runs.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rehearsal_core::trace::End;

use super::fold::fold;

/// How the name of a journal beside its trace ends.
pub(super) const EXTENSION: &str = ".journal";

/// A journal beside its trace. It is locked for as long as its recorder lives, so whoever gets the lock knows that
/// the recorder is dead.
#[derive(Debug)]
pub(super) struct Spool {
    pub(super) path: PathBuf,
    file: File,
    /// How long the file is, up to the last entry that is whole.
    length: u64,
}

impl Spool {
    /// `trace.jsonl.SESSION.journal`
    pub(super) fn path(trace: &Path, session_id: &str) -> PathBuf {
        let mut path = OsString::from(trace);
        path.push(".");
        path.push(session_id);
        path.push(EXTENSION);
        PathBuf::from(path)
    }

    /// Begins a journal with its first line.
    pub(super) fn create(trace: &Path, session_id: &str, first: &[u8]) -> io::Result<Spool> {
        let path = Spool::path(trace, session_id);
        loop {
            let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
            file.lock()?;
            // Whoever recovers removes journals that are empty and not locked, such as this one a moment ago.
            if file.metadata()?.nlink() > 0 {
                let mut spool = Spool { path, file, length: 0 };
                let begun = spool.append(first);
                if begun.is_err() {
                    let _ = std::fs::remove_file(&spool.path);
                }
                return begun.map(|()| spool);
            }
        }
    }

    /// Puts the session into the trace and removes the journal, which is left where that fails.
    pub(super) fn fold(mut self, trace: &Path, otherwise: End) -> io::Result<()> {
        fold(&mut self.file, trace, otherwise)?;
        std::fs::remove_file(&self.path)
    }

    /// Appends whole lines: all of them, or as many as there is room for.
    pub(super) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let mut rest = lines;
        let failed = loop {
            if rest.is_empty() {
                self.length += lines.len() as u64;
                return Ok(());
            }
            match self.file.write(rest) {
                Ok(0) => break io::ErrorKind::WriteZero.into(),
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break error,
            }
        };
        let written = &lines[..lines.len() - rest.len()];
        self.length += memchr::memrchr(b'\n', written).map_or(0, |end| end + 1) as u64;
        // A torn end is ignored by whoever reads it, so it does no harm where it cannot be cut off.
        let _ = self.file.set_len(self.length).and_then(|()| self.file.seek(SeekFrom::Start(self.length)));
        Err(failed)
    }
}
