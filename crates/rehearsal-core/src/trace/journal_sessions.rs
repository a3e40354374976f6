//! Reads the sessions of a journal as those of a trace.

use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, Seek};

use serde_json::Map;

use super::journal_reader::VerbatimRun;
use super::{JournalFold, JournalLine, JournalReader, Part, ReadError, SessionStart};

/// The parts of a journal: its sessions one after the other, though their lines may be mixed.
///
/// The journal is read once to find its sessions, and then each session from its first line to its last. Bad lines are
/// reported during the first reading, before any part.
#[derive(Debug)]
pub struct JournalSessions<R> {
    journal: JournalReader<R>,
    sessions: Vec<SessionSpan>,
    /// The session of the lines without a session id, and the latest span of each session.
    current: Option<usize>,
    latest: HashMap<String, usize>,
    stage: ReadPhase,
    ready: VecDeque<Part>,
}

/// The position of a session in the file.
#[derive(Debug)]
struct SessionSpan {
    /// `None` if no line has it.
    session_id: Option<String>,
    from: LinePosition,
    to: u64,
}

/// A position between two lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinePosition {
    pub(super) position: u64,
    pub(super) line: u64,
    /// The position among verbatim messages.
    pub(super) verbatim: Option<VerbatimRun>,
}

#[derive(Debug)]
enum ReadPhase {
    Scanning,
    /// Reading the session with this number.
    Reading(usize, Box<JournalFold>),
    /// About to read the session with this number.
    Before(usize),
    Over,
}

impl<R: BufRead + Seek> JournalSessions<R> {
    /// Reads a journal.
    pub fn new(journal: JournalReader<R>) -> JournalSessions<R> {
        JournalSessions {
            journal,
            sessions: Vec::new(),
            current: None,
            latest: HashMap::new(),
            stage: ReadPhase::Scanning,
            ready: VecDeque::new(),
        }
    }

    /// Finds the sessions. It stops at a bad line; another call continues after it.
    fn scan(&mut self) -> Result<(), ReadError> {
        loop {
            let from = self.journal.mark();
            let Some(line) = self.journal.next().transpose()? else { return Ok(()) };
            let to = self.journal.mark().position;
            match line {
                JournalLine::Start(SessionStart { session_id, .. }) => {
                    self.begin(Some(session_id), from);
                }
                JournalLine::Entry { session_id, .. } => {
                    let known = match &session_id {
                        Some(session_id) => self.latest.get(session_id).copied(),
                        None => self.current,
                    };
                    let number = known.unwrap_or_else(|| self.begin(session_id, from));
                    self.sessions[number].to = to;
                }
            }
        }
    }

    fn begin(&mut self, session_id: Option<String>, from: LinePosition) -> usize {
        let number = self.sessions.len();
        if let Some(session_id) = &session_id {
            self.latest.insert(session_id.clone(), number);
        }
        self.current = Some(number);
        self.sessions.push(SessionSpan { session_id, from, to: from.position });
        number
    }

    fn enter(&mut self, number: usize) -> Result<(), ReadError> {
        let Some(span) = self.sessions.get(number) else {
            self.stage = ReadPhase::Over;
            return Ok(());
        };
        let id = span.session_id.clone();
        self.journal.go_to(span.from)?;
        let mut start = SessionStart {
            session_id: id.clone().unwrap_or_else(|| "unknown".to_owned()),
            server_info: Map::new(),
            started_at: None,
            metadata: Map::new(),
        };
        let back = self.journal.mark();
        match self.journal.next() {
            Some(Ok(JournalLine::Start(found))) => start = found,
            Some(_) | None => self.journal.go_to(back)?,
        }
        self.stage = ReadPhase::Reading(number, Box::new(JournalFold::new(start)));
        Ok(())
    }

    /// Takes the next line of the session; ends the session after its last line.
    fn step(&mut self) -> Result<(), ReadError> {
        let ReadPhase::Reading(number, fold) = &mut self.stage else { return Ok(()) };
        let span = &self.sessions[*number];
        let mut parts = Vec::new();
        if self.journal.mark().position < span.to {
            match self.journal.next() {
                Some(Ok(JournalLine::Entry { session_id, entry })) => {
                    if session_id.is_none() || session_id == span.session_id {
                        fold.entry(entry, &mut parts);
                    }
                }
                // The line belongs to another session, or its error was reported already.
                Some(Ok(JournalLine::Start(_)) | Err(_)) => {}
                None => self.journal.go_to(LinePosition { position: span.to, line: 0, verbatim: None })?,
            }
        } else {
            let next = ReadPhase::Before(*number + 1);
            if let ReadPhase::Reading(_, fold) = std::mem::replace(&mut self.stage, next) {
                fold.finish(None, &mut parts);
            }
        }
        self.ready.extend(parts);
        Ok(())
    }
}

impl<R: BufRead + Seek> Iterator for JournalSessions<R> {
    type Item = Result<Part, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(part) = self.ready.pop_front() {
                return Some(Ok(part));
            }
            let done = match self.stage {
                ReadPhase::Scanning => {
                    let looked = self.scan();
                    match &looked {
                        Ok(()) => self.stage = ReadPhase::Before(0),
                        Err(_) if self.journal.skips_bad() => {}
                        Err(_) => self.stage = ReadPhase::Over,
                    }
                    looked
                }
                ReadPhase::Before(number) => self.enter(number),
                ReadPhase::Reading(..) => self.step(),
                ReadPhase::Over => return None,
            };
            if let Err(error) = done {
                if matches!(error, ReadError::Io(_)) {
                    self.stage = ReadPhase::Over;
                }
                return Some(Err(error));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Entry, EntryBody, SharedLog, write_entry, write_start};
    use std::io::Cursor;
    use std::time::Duration;

    fn start(session_id: &str) -> SessionStart {
        SessionStart { session_id: session_id.into(), server_info: Map::new(), started_at: None, metadata: Map::new() }
    }

    fn shape(journal: &[u8], skip_bad: bool) -> String {
        let reader = JournalReader::new(Cursor::new(journal)).skip_bad(skip_bad);
        let word = |part: Result<Part, ReadError>| match part {
            Ok(Part::Start(start)) => format!("{}:", start.session_id),
            Ok(Part::Entry(Entry { what: EntryBody::Stderr { line }, .. })) => line,
            Ok(other) => format!("{other:?}").chars().take_while(|c| c.is_alphabetic()).collect(),
            Err(error) => format!("({error})"),
        };
        JournalSessions::new(reader).map(word).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn sessions_whose_lines_are_mixed_are_given_one_after_the_other() {
        let mut log = Vec::new();
        let mut line = |session_id, text: &str| {
            let log_line = SharedLog { session_id, started_at: jiff::Timestamp::UNIX_EPOCH };
            let entry = Entry::new(0, Duration::ZERO, EntryBody::Stderr { line: text.into() });
            if text.is_empty() {
                write_start(&mut log, &start(session_id))
            } else {
                write_entry(&mut log, &entry, Some(&log_line))
            }
        };
        for (session_id, text) in [
            ("a", ""),
            ("a", "a1"),
            ("b", ""),
            ("a", "a2"),
            ("b", "b1"),
            ("c", "c1"),
            ("a", "a3"),
            ("b", "b2"),
            ("a", ""),
            ("a", "a4"),
        ] {
            line(session_id, text);
        }
        let expected = "a: a1 a2 a3 Finish b: b1 b2 Finish c: c1 Finish a: a4 Finish";
        assert_eq!(shape(&log, false), expected);
        log.extend_from_slice(b"noise\n");
        assert_eq!(shape(&log, false), "(line 11, column 1: expected an object: `{`)");
        assert_eq!(shape(&log, true), format!("(line 11, column 1: expected an object: `{{`) {expected}"));
    }

    #[test]
    fn session_ids_are_optional_in_a_journal_of_one_session() {
        let mut journal = Vec::new();
        write_start(&mut journal, &start("a"));
        for text in ["1", "2"] {
            write_entry(&mut journal, &Entry::new(0, Duration::ZERO, EntryBody::Stderr { line: text.into() }), None);
        }
        assert_eq!(shape(&journal, false), "a: 1 2 Finish");
        let second = journal.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        assert_eq!(shape(&journal[second..], false), "unknown: 1 2 Finish");
        assert_eq!(shape(b"", false), "");
    }
}
