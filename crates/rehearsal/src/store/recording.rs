//! Recordings: files and streams, whatever their format, opened and read.

use std::convert::Infallible;
use std::fmt;
use std::fs::{File, TryLockError};
use std::io::{self, BufReader, Read, Write};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use rehearsal_core::trace::dialect::RecordingReader;
use rehearsal_core::trace::{
    DETECT_BYTES, Format, JournalReader, JournalSessions, Part, ReadError, SessionEnd, Timeline, TraceReader, detect,
};

use super::read_at::{ReadAt, SessionOrder};
use crate::record::{UnrecoveredSessions, last_line};

/// The source of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A file.
    File(PathBuf),
    /// stdin: `-` on the command line.
    Stdin,
}

impl FromStr for Input {
    type Err = Infallible;

    fn from_str(word: &str) -> Result<Input, Infallible> {
        Ok(match word {
            "-" => Input::Stdin,
            path => Input::File(path.into()),
        })
    }
}

impl From<PathBuf> for Input {
    fn from(path: PathBuf) -> Input {
        if path.as_os_str() == "-" { Input::Stdin } else { Input::File(path) }
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Input::File(path) => write!(f, "{}", path.display()),
            Input::Stdin => f.write_str("stdin"),
        }
    }
}

/// Number of bytes of a file that are read at once.
const BUFFER: usize = 256 << 10;

/// How a line that cannot be read is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadLines {
    /// The line is an error that ends the reading.
    Refuse,
    /// The bad line is reported, and the next one is read.
    Skip,
}

/// The parts of a recording, in the order of its file.
pub type Parts = Box<dyn Iterator<Item = Result<Part, ReadError>> + Send>;

/// A recording in the order in which it happened.
pub type RecordingTimeline = Timeline<Parts, Parts>;

/// A file of recordings. It may be read any number of times.
#[derive(Clone, Debug)]
pub struct Recording {
    file: Arc<File>,
    /// The number of bytes that are read, from the beginning of the file.
    length: u64,
    format: Format,
    /// Journals of killed recorders, whose sessions could not be appended to the file.
    journals: Vec<Arc<File>>,
    /// The order in which the sessions are read, if it differs from the order of the file.
    order: Option<Arc<SessionOrder>>,
}

/// Why a recording cannot be opened.
#[derive(thiserror::Error)]
pub enum OpenError {
    /// The file does not exist, or cannot be read.
    #[error("cannot read {input}: {cause}")]
    Unreadable {
        /// The source.
        input: Input,
        /// The error of the operating system.
        cause: io::Error,
    },
    /// The file has none of the formats that can be read.
    #[error("{input}: not a recording: it begins with {first:?}")]
    Unknown {
        /// The source.
        input: Input,
        /// The first characters of the file.
        first: String,
    },
}

debug_as_display!(OpenError);

impl Recording {
    /// Opens a recording and detects its format. A source that cannot be read twice, such as a pipe, is first copied to a
    /// temporary file.
    pub fn open(input: &Input) -> Result<Recording, OpenError> {
        let file = opened(input).map_err(unreadable(input))?;
        let mut first = Vec::new();
        ReadAt::new(file.clone()).take(DETECT_BYTES as u64).read_to_end(&mut first).map_err(unreadable(input))?;
        let blank = first.trim_ascii().is_empty() && first.len() < DETECT_BYTES;
        // A file without a session is a trace like any other.
        let format = detect(&first).or(blank.then_some(Format::Trace));
        match format {
            Some(format) => Recording::snapshot(file, format).map_err(unreadable(input)),
            None => Err(OpenError::Unknown { input: input.clone(), first: beginning(&first) }),
        }
    }

    /// Opens a recording of a known format. A format that can only be written has no parts.
    pub fn open_as(input: &Input, format: Format) -> Result<Recording, OpenError> {
        let file = opened(input).map_err(unreadable(input))?;
        Recording::snapshot(file, format).map_err(unreadable(input))
    }

    /// Opens the current content of a file. While a recorder appends a session to a trace, it holds the lock of the
    /// trace: then the last line is unfinished and is not read.
    fn snapshot(file: Arc<File>, format: Format) -> io::Result<Recording> {
        if format != Format::Trace {
            return Ok(Recording::from_file(file, format));
        }
        let locked = file.try_lock_shared();
        let length = file.metadata()?.len();
        let length = match locked {
            Ok(()) => file.unlock().map(|()| length)?,
            Err(TryLockError::WouldBlock) => last_line(&file, length)?,
            // This file system has no locks.
            Err(TryLockError::Error(_)) => length,
        };
        Ok(Recording { length, ..Recording::from_file(file, format) })
    }

    fn from_file(file: Arc<File>, format: Format) -> Recording {
        Recording { file, length: u64::MAX, format, journals: Vec::new(), order: None }
    }

    /// Opens a trace with the journals of killed recorders that could not be added to it. The sessions of the journals are
    /// read after those of the trace. An unfinished last line of the trace is skipped if a journal has its session. If the
    /// trace does not exist, only the journals are read.
    pub fn open_with(input: &Input, unrecovered: &UnrecoveredSessions) -> Result<Recording, OpenError> {
        let only_journals = matches!(input, Input::File(path) if !path.exists()) && !unrecovered.journals.is_empty();
        let recording = match only_journals {
            true => Recording::from_file(Arc::new(tempfile::tempfile().map_err(unreadable(input))?), Format::Trace),
            false => Recording::open(input)?,
        };
        let journals = unrecovered.journals.iter().map(|path| {
            let cause = unreadable(&Input::File(path.clone()));
            File::open(path).map(Arc::new).map_err(cause)
        });
        let journals = journals.collect::<Result<_, OpenError>>()?;
        let length = unrecovered.torn_at.unwrap_or(u64::MAX).min(recording.length);
        Ok(Recording { length, journals, ..recording })
    }

    /// The recording with its sessions in the order of their start, if it is known. Sessions of journals are last.
    pub fn in_order(self) -> io::Result<Recording> {
        let order = match self.format {
            Format::Trace => SessionOrder::read_from(&self.file, self.length)?.map(Arc::new),
            _ => None,
        };
        Ok(Recording { order, ..self })
    }

    /// The recording with its sessions in the order of the file.
    #[must_use]
    pub fn in_file_order(&self) -> Recording {
        Recording { order: None, ..self.clone() }
    }

    /// The position, from 1, at which a session is read, by its position in the file.
    pub fn place_of(&self, session: usize) -> usize {
        self.order.as_ref().and_then(|order| order.place_of(session)).unwrap_or(session)
    }

    /// The position in the file, from 1, of each session, in the order in which the sessions are read. Empty if both orders
    /// are equal.
    pub fn session_numbers(&self) -> Vec<usize> {
        self.order.as_ref().map(|order| order.numbers()).unwrap_or_default()
    }

    /// The detected format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// A reader of a trace, from its beginning.
    pub(crate) fn trace_reader(&self) -> TraceReader<BufReader<ReadAt>> {
        let input = ReadAt::new(self.file.clone()).up_to(self.length);
        TraceReader::new(BufReader::with_capacity(BUFFER, input))
    }

    /// The file itself.
    pub(crate) fn file(&self) -> &Arc<File> {
        &self.file
    }

    /// A recording of a temporary trace without a name.
    pub(crate) fn in_file(file: Arc<File>) -> Recording {
        Recording::from_file(file, Format::Trace)
    }

    /// The parts of the recording, in the order of the file.
    pub fn parts(&self, bad: BadLines) -> Parts {
        self.read(bad, PartFilter::All)
    }

    /// The events of the recording, in the order in which they happened.
    pub fn timeline(&self, bad: BadLines) -> RecordingTimeline {
        Timeline::new(self.read(bad, PartFilter::Calls), self.read(bad, PartFilter::Entries))
    }

    fn read(&self, bad: BadLines, which: PartFilter) -> Parts {
        let parts = self.read_file(bad, which);
        match self.journals.is_empty() {
            true => parts,
            false => Box::new(parts.chain(self.journals.clone().into_iter().flat_map(recovered))),
        }
    }

    fn read_file(&self, bad: BadLines, which: PartFilter) -> Parts {
        let input = ReadAt::new(self.file.clone()).up_to(self.length).ordered(self.order.clone());
        let input = BufReader::with_capacity(BUFFER, input);
        let skip = bad == BadLines::Skip;
        match self.format {
            Format::Trace => {
                let reader = TraceReader::new(input).skip_bad(skip);
                let reader = match which {
                    PartFilter::All => reader,
                    PartFilter::Calls => reader.only_calls(),
                    PartFilter::Entries => reader.only_entries(),
                };
                match self.order.clone() {
                    None => Box::new(reader),
                    Some(order) => Box::new(reader.map(move |part| part.map_err(|error| order.placed(error)))),
                }
            }
            Format::Journal => Box::new(JournalSessions::new(JournalReader::new(input).skip_bad(skip))),
            Format::PythonTrace
            | Format::PythonLog
            | Format::McpRecorder
            | Format::McpCassette
            | Format::Mcporter
            | Format::Mcptest
            | Format::Har => Box::new(RecordingReader::skipping(self.format, input, skip).into_iter().flatten()),
        }
    }
}

/// Which parts of a recording are read. The others are skipped.
#[derive(Clone, Copy)]
enum PartFilter {
    All,
    Calls,
    Entries,
}

fn unreadable(input: &Input) -> impl Fn(io::Error) -> OpenError + use<> {
    let input = input.clone();
    move |cause| OpenError::Unreadable { input: input.clone(), cause }
}

/// The session of a journal whose recorder was killed, in the format of a trace.
fn recovered(journal: Arc<File>) -> impl Iterator<Item = Result<Part, ReadError>> {
    let input = BufReader::with_capacity(BUFFER, ReadAt::new(journal));
    let parts = JournalSessions::new(JournalReader::new(input).skip_bad(true));
    parts.filter(|part| matches!(part, Ok(_) | Err(ReadError::Io(_)))).map(|part| match part {
        Ok(Part::Finish { ended_at, end }) => Ok(Part::Finish { ended_at, end: end.or(Some(SessionEnd::Recovered)) }),
        other => other,
    })
}

fn opened(input: &Input) -> io::Result<Arc<File>> {
    match input {
        Input::Stdin => copied(&mut io::stdin().lock()),
        Input::File(path) => {
            let mut file = File::open(path)?;
            let kind = file.metadata()?.file_type();
            if kind.is_dir() {
                return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
            }
            if kind.is_file() { Ok(Arc::new(file)) } else { copied(&mut file) }
        }
    }
}

/// Copies `from` to a temporary file without a name.
fn copied(from: &mut dyn Read) -> io::Result<Arc<File>> {
    let mut file = tempfile::tempfile()?;
    io::copy(from, &mut file)?;
    file.flush()?;
    Ok(Arc::new(file))
}

/// The first characters of a file, for an error.
fn beginning(first: &[u8]) -> String {
    let text = String::from_utf8_lossy(&first[..first.len().min(200)]).into_owned();
    let line = text.trim_start().lines().next().unwrap_or_default();
    match line.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_is_being_appended_is_skipped_until_complete() {
        let line = |id: &str| format!("{{\"format\":1,\"session_id\":\"{id}\",\"calls\":[]}}\n");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.jsonl");
        let second = line("b");
        let (begun, rest) = second.split_at(second.len() / 2);
        std::fs::write(&path, line("a") + begun).unwrap();
        let sessions = || -> Result<Vec<String>, String> {
            let recording = Recording::open(&Input::File(path.clone())).unwrap();
            let calls = recording.parts(BadLines::Refuse).filter_map(|part| match part {
                Ok(Part::Start(start)) => Some(Ok(start.session_id)),
                Ok(Part::Call(_) | Part::Entry(_) | Part::Finish { .. }) => None,
                Err(error) => Some(Err(error.to_string())),
            });
            calls.collect()
        };
        let mut recorder = File::options().append(true).open(&path).unwrap();
        recorder.lock().unwrap();
        assert_eq!(sessions().unwrap(), ["a"]);
        recorder.write_all(rest.as_bytes()).unwrap();
        recorder.unlock().unwrap();
        assert_eq!(sessions().unwrap(), ["a", "b"]);
        // A line that no recorder is writing is reported.
        recorder.write_all(begun.as_bytes()).unwrap();
        assert!(sessions().unwrap_err().starts_with("line 3"));
    }
}
