//! Recovers the sessions of recorders that were killed.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use rehearsal_core::trace::SessionEnd;

use super::journal::{EXTENSION, SessionJournal, fold};
use super::notice::{Notice, NoticeListener};
use super::trace_append::{contains, repair_trace, torn_at};

/// A journal next to a trace, and what was done with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The session.
    pub session_id: String,
    /// Its journal.
    pub journal: PathBuf,
    /// What was done with the journal.
    pub outcome: RecoveryOutcome,
}

/// What was done with a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecoveryOutcome {
    /// The session was put into the trace, and the journal was removed.
    Folded {
        /// How many entries it had.
        entries: u64,
    },
    /// The session was in the trace already, and the journal was removed.
    AlreadyInTrace,
    /// Nothing was forwarded yet; the journal was removed.
    Empty,
    /// The session is still being recorded.
    Running,
    /// The recovery failed; the journal still exists.
    Failed {
        /// The cause.
        why: String,
    },
}

/// Appends the sessions of killed recorders to a trace, and removes a line that a killed recorder did not finish.
/// Sessions that still run are left alone. If there is nothing to do, no file is changed.
pub fn recover(trace: &Path) -> io::Result<Vec<Recovered>> {
    repair_trace(trace)?;
    let mut found: Vec<Recovered> = journals(trace)?
        .into_iter()
        .filter_map(|(session_id, journal)| {
            let outcome = one(trace, &session_id, &journal)
                .unwrap_or_else(|error| Some(RecoveryOutcome::Failed { why: error.to_string() }));
            Some(Recovered { session_id, journal, outcome: outcome? })
        })
        .collect();
    found.sort_by(|one, other| one.session_id.cmp(&other.session_id));
    Ok(found)
}

/// The journals next to a trace, with their session ids.
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
            found.push((session_id.to_owned(), SessionJournal::path(trace, session_id)));
        }
    }
    Ok(found)
}

/// Recovers one journal. `None` if another process has removed it.
fn one(trace: &Path, session_id: &str, journal: &Path) -> io::Result<Option<RecoveryOutcome>> {
    let mut file = match File::open(journal) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match file.try_lock() {
        Ok(()) => {}
        Err(std::fs::TryLockError::WouldBlock) => return Ok(Some(RecoveryOutcome::Running)),
        Err(std::fs::TryLockError::Error(error)) => return Err(error),
    }
    if file.metadata()?.nlink() == 0 {
        return Ok(None);
    }
    let outcome = if !is_begun(&mut file)? {
        RecoveryOutcome::Empty
    } else if trace.exists() && contains(trace, session_id)? {
        RecoveryOutcome::AlreadyInTrace
    } else {
        RecoveryOutcome::Folded { entries: fold(&mut file, trace, SessionEnd::Recovered)?.entries }
    };
    std::fs::remove_file(journal)?;
    Ok(Some(outcome))
}

/// Whether bytes may have been forwarded: nothing is forwarded before the first line of the journal is whole.
pub(super) fn is_begun(journal: &mut File) -> io::Result<bool> {
    let mut first = Vec::new();
    journal.seek(SeekFrom::Start(0))?;
    BufReader::new(&*journal).read_until(b'\n', &mut first)?;
    Ok(first.ends_with(b"\n"))
}

/// Appends the sessions of killed recorders to the trace, once, during a recording.
#[derive(Default)]
pub(super) struct LeftoverJournals {
    state: Mutex<State>,
}

#[derive(Default)]
enum State {
    #[default]
    Unseen,
    Recovering(JoinHandle<()>),
    Done,
}

impl LeftoverJournals {
    /// Starts the recovery, if it has not started yet. It runs in the background: a long journal takes a while, and the
    /// connection must not wait for it.
    pub(super) fn begin(&self, trace: &Path, listener: &NoticeListener) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !matches!(*state, State::Unseen) {
            return;
        }
        let none = journals(trace).is_ok_and(|journals| journals.is_empty());
        *state = match none {
            true => State::Done,
            false => {
                let (trace, listener) = (trace.to_owned(), listener.clone());
                State::Recovering(std::thread::spawn(move || recover_leftovers(&trace, &listener)))
            }
        };
    }

    /// Waits until it is done. This blocks.
    pub(super) fn wait(&self) {
        let state = std::mem::replace(&mut *self.state.lock().unwrap_or_else(PoisonError::into_inner), State::Done);
        if let State::Recovering(thread) = state {
            // The panic was printed by the thread.
            let _ = thread.join();
        }
    }
}

fn recover_leftovers(trace: &Path, listener: &NoticeListener) {
    match recover(trace) {
        Ok(found) => {
            for one in found {
                match one.outcome {
                    RecoveryOutcome::Folded { entries } => {
                        listener(&Notice::Recovered { session_id: one.session_id, entries });
                    }
                    RecoveryOutcome::Failed { why } => listener(&Notice::NotRecovered { path: one.journal, why }),
                    // There is nothing to recover, or another recorder still writes it.
                    RecoveryOutcome::AlreadyInTrace | RecoveryOutcome::Empty | RecoveryOutcome::Running => {}
                }
            }
        }
        Err(error) => listener(&Notice::NotRecovered { path: trace.to_owned(), why: error.to_string() }),
    }
}

/// The sessions that [`recover`](super::recover) would append to the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnrecoveredSessions {
    /// Journals of recorders that were killed, whose sessions are not in the trace.
    pub journals: Vec<PathBuf>,
    /// The offset of the last line of the trace, if it is torn and its session is in one of the journals.
    pub torn_at: Option<u64>,
}

/// Finds the journals next to a trace, and changes nothing. Sessions that still run are left out.
pub fn unrecovered(trace: &Path) -> io::Result<UnrecoveredSessions> {
    let mut found = UnrecoveredSessions::default();
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
