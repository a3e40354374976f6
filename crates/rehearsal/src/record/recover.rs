//! Sessions whose recorder was killed.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rehearsal_core::trace::End;

use super::append::{contains, heal_trace};
use super::fold::fold;
use super::spool::{EXTENSION, Spool};

/// A journal that was found beside a trace, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The session.
    pub session_id: String,
    /// Its journal.
    pub journal: PathBuf,
    /// What became of it.
    pub fate: Fate,
}

/// What became of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The session was put into the trace, and the journal was removed.
    Folded {
        /// How many entries it had.
        entries: u64,
    },
    /// The session was in the trace already, and the journal was removed.
    AlreadyThere,
    /// Nothing had been passed on yet; the journal was removed.
    Empty,
    /// The session is still being recorded.
    Running,
    /// It could not be done; the journal is still there.
    Failed {
        /// Why not.
        why: String,
    },
}

/// Puts every session into a trace whose recorder was killed, and cuts off what is left of one that was killed while it
/// wrote to the trace. Sessions that still run are left alone, and so is everything where nothing is to be done.
pub fn recover(trace: &Path) -> io::Result<Vec<Recovered>> {
    heal_trace(trace)?;
    let mut found: Vec<Recovered> = journals(trace)?
        .into_iter()
        .filter_map(|(session_id, journal)| {
            let fate =
                one(trace, &session_id, &journal).unwrap_or_else(|error| Some(Fate::Failed { why: error.to_string() }));
            Some(Recovered { session_id, journal, fate: fate? })
        })
        .collect();
    found.sort_by(|one, other| one.session_id.cmp(&other.session_id));
    Ok(found)
}

/// The journals beside a trace, with the sessions that they are of.
pub fn journals(trace: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let Some(name) = trace.file_name() else { return Ok(Vec::new()) };
    let directory = match trace.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => Path::new("."),
    };
    let prefix = format!("{}.", name.to_string_lossy());
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let file = entry?.file_name().to_string_lossy().into_owned();
        let session_id = file.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(EXTENSION));
        if let Some(session_id) = session_id.filter(|session_id| !session_id.is_empty()) {
            found.push((session_id.to_owned(), Spool::path(trace, session_id)));
        }
    }
    Ok(found)
}

/// What becomes of one journal; `None` where somebody else was faster.
fn one(trace: &Path, session_id: &str, journal: &Path) -> io::Result<Option<Fate>> {
    let mut file = match File::open(journal) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match file.try_lock() {
        Ok(()) => {}
        Err(std::fs::TryLockError::WouldBlock) => return Ok(Some(Fate::Running)),
        Err(std::fs::TryLockError::Error(error)) => return Err(error),
    }
    if file.metadata()?.nlink() == 0 {
        return Ok(None);
    }
    let fate = if !is_begun(&mut file)? {
        Fate::Empty
    } else if trace.exists() && contains(trace, session_id)? {
        Fate::AlreadyThere
    } else {
        Fate::Folded { entries: fold(&mut file, trace, End::Recovered)?.entries }
    };
    std::fs::remove_file(journal)?;
    Ok(Some(fate))
}

/// Whether anything can have been passed on: nothing is, before the first line of a journal is whole.
pub(super) fn is_begun(journal: &mut File) -> io::Result<bool> {
    let mut first = Vec::new();
    journal.seek(SeekFrom::Start(0))?;
    BufReader::new(&*journal).read_until(b'\n', &mut first)?;
    Ok(first.ends_with(b"\n"))
}
