//! The journals of a recorder: one for each running session, folded into the trace at its end, and the one of `--log FILE`.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rehearsal_core::trace::{JournalFold, JournalLine, JournalReader, Part, ReadError, SessionEnd, TraceWriter};

use super::trace_append::append;

/// The extension of a journal next to its trace.
pub(super) const EXTENSION: &str = ".journal";

/// The options with which each trace, journal and log is opened. A new file has mode 0600, because a recording may
/// contain secrets that no rule recognizes.
pub(super) fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// A journal next to its trace. Its recorder holds a lock on it until the recorder exits, so a journal that can be
/// locked has no recorder any more.
#[derive(Debug)]
pub(super) struct SessionJournal {
    pub(super) path: PathBuf,
    file: File,
    /// The length of the file up to the last whole entry.
    length: u64,
}

impl SessionJournal {
    /// `trace.jsonl.SESSION.journal`
    pub(super) fn path(trace: &Path, session_id: &str) -> PathBuf {
        let mut path = OsString::from(trace);
        path.push(".");
        path.push(session_id);
        path.push(EXTENSION);
        PathBuf::from(path)
    }

    /// Creates a journal with its first line.
    pub(super) fn create(trace: &Path, session_id: &str, first: &[u8]) -> io::Result<SessionJournal> {
        let path = SessionJournal::path(trace, session_id);
        loop {
            let file = private_file().read(true).write(true).create_new(true).open(&path)?;
            file.lock()?;
            // A recovering process removes empty journals without a lock, and this one was both until just now.
            if file.metadata()?.nlink() > 0 {
                let mut journal = SessionJournal { path, file, length: 0 };
                let begun = journal.append(first);
                if begun.is_err() {
                    let _ = std::fs::remove_file(&journal.path);
                }
                return begun.map(|()| journal);
            }
        }
    }

    /// Appends the session to the trace and removes the journal. If that fails, the journal stays.
    pub(super) fn fold(mut self, trace: &Path, otherwise: SessionEnd) -> io::Result<()> {
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
        // If truncating fails too, the torn end does no harm: readers ignore it.
        let _ = self.file.set_len(self.length).and_then(|()| self.file.seek(SeekFrom::Start(self.length)));
        Err(failed)
    }
}

/// The content of a journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Folded {
    /// The number of entries.
    pub(super) entries: u64,
}

/// Reads a journal and appends its session to a trace. Memory is bounded, whatever the length.
///
/// `otherwise` is the end of the session if the journal has none.
pub(super) fn fold(journal: &mut File, trace: &Path, otherwise: SessionEnd) -> io::Result<Folded> {
    let directory = match trace.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => Path::new("."),
    };
    // Files without names disappear if the process is killed.
    let (line, side) = (tempfile::tempfile_in(directory)?, tempfile::tempfile_in(directory)?);
    journal.seek(SeekFrom::Start(0))?;
    let mut writer = TraceWriter::new(BufWriter::new(line), side);
    let mut parts = Vec::new();
    let mut folded = Folded::default();
    let mut fold = None;
    for line in JournalReader::new(BufReader::with_capacity(64 * 1024, &mut *journal)).skip_bad(true) {
        match line {
            Ok(JournalLine::Start(start)) => fold = Some(JournalFold::new(start)),
            Ok(JournalLine::Entry { entry, .. }) => {
                folded.entries += 1;
                if let Some(fold) = &mut fold {
                    fold.entry(entry, &mut parts);
                }
            }
            Err(ReadError::Io(error)) => return Err(error),
            // Only a recorder writes a journal, and it writes whole lines. A line that was damaged by hand is skipped.
            Err(_) => {}
        }
        write(&mut writer, &mut parts)?;
    }
    let Some(fold) = fold else {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "its first line does not name the session"));
    };
    fold.finish(Some(otherwise), &mut parts);
    write(&mut writer, &mut parts)?;
    let mut line = writer.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
    append(trace, &mut line)?;
    Ok(folded)
}

fn write<S: io::Read + io::Write + Seek>(
    writer: &mut TraceWriter<BufWriter<File>, S>,
    parts: &mut Vec<Part>,
) -> io::Result<()> {
    parts.drain(..).try_for_each(|part| writer.part(&part))
}

/// A journal that any number of sessions append to, of one recorder or of many.
#[derive(Debug)]
pub(super) struct SharedJournal {
    pub(super) path: PathBuf,
    file: File,
}

impl SharedJournal {
    /// Opens or creates a journal.
    pub(super) fn open(path: &Path) -> io::Result<SharedJournal> {
        let mut file = private_file().append(true).create(true).open(path)?;
        if is_torn(path) {
            // A recorder was killed, or the disk was full, in the middle of a line. It stays a separate line.
            file.write_all(b"\n")?;
        }
        Ok(SharedJournal { path: path.to_owned(), file })
    }

    /// Appends whole lines in one write. The kernel does not mix it with writes of other processes.
    pub(super) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        self.file.write_all(lines)
    }
}

/// Whether a file ends in the middle of a line.
pub(super) fn is_torn(path: &Path) -> bool {
    let last = || -> io::Result<u8> {
        // Pipes and terminals have no end.
        let metadata = std::fs::metadata(path)?;
        if !metadata.is_file() || metadata.len() == 0 {
            return Ok(b'\n');
        }
        let mut file = File::open(path)?;
        file.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        file.read_exact(&mut last)?;
        Ok(last[0])
    };
    last().is_ok_and(|last| last != b'\n')
}
