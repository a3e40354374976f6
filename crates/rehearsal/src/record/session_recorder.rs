//! The recorder of one session.

use std::borrow::Cow;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fmt, io};

use rehearsal_core::exchange::{Channel, Side};
use rehearsal_core::message::Message;
use rehearsal_core::redact::{RedactedSecret, Redaction};
use rehearsal_core::trace::{
    Entry, EntryBody, SessionEnd, SessionStart, SharedLog, write_entry, write_lines, write_start,
};
use serde_json::{Map, Value};

use super::clock::{Clock, session_id};
use super::hooks::HookCaller;
use super::journal::{SessionJournal, SharedJournal, private_file};
use super::multiline_secrets::MultilineSecrets;
use super::notice::Notice;
use super::partial_message::PartialPolicy;
use super::recorder::Recorder;

/// One session that is recorded. Cheap to clone; every part of the recorder that adds to it holds one.
///
/// When the last one is dropped without [`end`](SessionRecorder::end), the session ends as stopped.
#[derive(Clone)]
pub struct SessionRecorder {
    session: Arc<SharedSession>,
}

struct SharedSession {
    recorder: Recorder,
    state: Mutex<State>,
    /// `None` without hooks.
    caller: Option<HookCaller>,
}

enum State {
    NotStarted {
        /// Whether the notice about it was sent already.
        was_notified: bool,
    },
    Running(Box<ActiveRecording>),
    Ended,
}

struct ActiveRecording {
    session_id: String,
    clock: Clock,
    /// The sequence number of the next entry.
    next: u64,
    journal: Option<SessionJournal>,
    /// A journal that can no longer be written, and why.
    cut_off: Option<(SessionJournal, String)>,
    log: Option<SharedJournal>,
    /// The next lines of the journal; the buffer is reused.
    lines: Vec<u8>,
    /// The next lines of the log; the buffer is reused.
    log_lines: Vec<u8>,
    multiline: MultilineSecrets,
}

/// An input of a session recorder.
pub(super) enum RecordedInput<'b> {
    /// One entry.
    Entry(EntryBody),
    /// Whole messages without secrets, each with its line end. They are parsed when a reader needs them.
    Lines { from: Side, channel: Channel, bytes: Cow<'b, [u8]> },
}

impl SessionRecorder {
    pub(super) fn new(recorder: Recorder) -> SessionRecorder {
        let hooks = &recorder.settings.hooks;
        let caller = (!hooks.is_empty()).then(|| HookCaller::new(hooks.clone()));
        let state = Mutex::new(State::NotStarted { was_notified: false });
        SessionRecorder { session: Arc::new(SharedSession { recorder, state, caller }) }
    }

    /// Starts the session; a second call does nothing. At the same time, journals that killed recorders left next to
    /// the trace are recovered.
    pub fn start(&self, server_info: Map<String, Value>) {
        let mut state = self.session.state();
        if let State::NotStarted { .. } = *state {
            let settings = &self.session.recorder.settings;
            if let Some(trace) = &settings.trace {
                settings.orphans.begin(trace, self.session.recorder.listener());
            }
            *state = State::Running(Box::new(ActiveRecording::begin(&self.session.recorder, server_info)));
            self.session.recorder.count(|summary| summary.sessions += 1);
        }
    }

    /// The id of the session, while it is recorded.
    pub fn session_id(&self) -> Option<String> {
        match &*self.session.state() {
            State::Running(running) => Some(running.session_id.clone()),
            State::NotStarted { .. } | State::Ended => None,
        }
    }

    /// Which part of a partial message is recorded when it is forwarded.
    pub(super) fn pieces(&self) -> PartialPolicy {
        match self.session.recorder.settings.redaction.is_none() {
            true => PartialPolicy::Raw,
            false => PartialPolicy::Redacted,
        }
    }

    /// Records entries, in this order and with the same time. When this returns the kernel has all of them, so a
    /// message that is forwarded after that is recorded even if this process is killed.
    ///
    /// This never fails: if the disk is full, the recording stops, not the connection.
    pub fn put(&self, entries: impl IntoIterator<Item = EntryBody>) {
        self.record_lines(entries.into_iter().map(RecordedInput::Entry));
    }

    /// The redaction that decides whether lines may be kept verbatim. `None` if a hook or a log needs each message
    /// parsed.
    pub(super) fn line_redaction(&self) -> Option<&Redaction> {
        let settings = &self.session.recorder.settings;
        (settings.log.is_none() && self.session.caller.is_none()).then_some(&settings.redaction)
    }

    /// Adds entries, and lines that are kept verbatim, to the session.
    pub(super) fn record_lines<'b>(&self, inputs: impl IntoIterator<Item = RecordedInput<'b>>) {
        let mut seen = Vec::new();
        let inputs = inputs.into_iter().inspect(|input| match input {
            RecordedInput::Entry(what) if self.session.caller.is_some() => seen.push(what.clone()),
            RecordedInput::Entry(_) | RecordedInput::Lines { .. } => {}
        });
        let was_notified = match &mut *self.session.state() {
            State::Running(running) => {
                running.put(&self.session.recorder, inputs);
                true
            }
            State::NotStarted { was_notified } => std::mem::replace(was_notified, true),
            State::Ended => true,
        };
        if !was_notified {
            self.session.recorder.notify(&Notice::NotStarted);
        }
        if let Some(caller) = &self.session.caller {
            seen.iter().for_each(|what| caller.call(what, self.session.recorder.listener()));
        }
    }

    /// Ends the session and appends it to the trace; a second call does nothing.
    ///
    /// This reads the journal once, so it takes a moment after a long session, and it blocks.
    pub fn end(&self, end: SessionEnd) {
        self.session.end(end);
    }
}

impl SharedSession {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, end: SessionEnd) {
        let running = {
            let mut state = self.state();
            match std::mem::replace(&mut *state, State::Ended) {
                State::Running(running) => Some(running),
                // The session may still be started.
                other @ State::NotStarted { .. } => {
                    *state = other;
                    None
                }
                State::Ended => None,
            }
        };
        if let Some(mut running) = running {
            running.put(&self.recorder, [RecordedInput::Entry(EntryBody::Ended(end))]);
            running.fold(&self.recorder);
            self.recorder.settings.orphans.wait();
        }
    }
}

impl Drop for SharedSession {
    fn drop(&mut self) {
        self.end(SessionEnd::Stopped);
    }
}

impl ActiveRecording {
    fn begin(recorder: &Recorder, server_info: Map<String, Value>) -> ActiveRecording {
        let clock = Clock::start();
        let session_id = session_id();
        let settings = &recorder.settings;
        let start = SessionStart {
            session_id: session_id.clone(),
            server_info,
            started_at: Some(clock.began_at),
            metadata: settings.metadata.clone(),
        };
        let (start, hits) = settings.redaction.start(start);
        if !hits.is_empty() {
            recorder.count(|summary| summary.redacted.add(hits));
        }
        let mut lines = Vec::with_capacity(4096);
        write_start(&mut lines, &start);
        let journal = settings.trace.as_deref().and_then(|trace| {
            let journal = check(trace).and_then(|()| SessionJournal::create(trace, &session_id, &lines));
            journal.map_err(|error| recorder.notify(&stopped(trace, &error))).ok()
        });
        let log = settings.log.as_deref().and_then(|path| {
            let log = SharedJournal::open(path).and_then(|mut log| log.append(&lines).map(|()| log));
            log.map_err(|error| recorder.notify(&stopped(path, &error))).ok()
        });
        let (multiline, log_lines) = Default::default();
        ActiveRecording { session_id, clock, next: 0, journal, cut_off: None, log, lines, log_lines, multiline }
    }

    fn put<'b>(&mut self, recorder: &Recorder, inputs: impl IntoIterator<Item = RecordedInput<'b>>) {
        let at = self.clock.elapsed();
        let mut messages = 0;
        self.lines.clear();
        self.log_lines.clear();
        for input in inputs {
            let seq = self.next;
            let what = match input {
                RecordedInput::Entry(what) => what,
                RecordedInput::Lines { from, channel, bytes } => {
                    let count = memchr::memchr_iter(b'\n', &bytes).count() as u64;
                    messages += count;
                    self.next += count;
                    if self.journal.is_some() {
                        write_lines(&mut self.lines, seq, at, from, channel, &bytes);
                    }
                    continue;
                }
            };
            let redaction = &recorder.settings.redaction;
            let (what, hits) = match redaction.is_none() {
                true => (what, Vec::new()),
                false => self.multiline.redact_entry(what, |what| redacted(redaction, what)),
            };
            let hits = match &what {
                // The whole line has the same secrets.
                EntryBody::Piece { .. } => Vec::new(),
                EntryBody::Message { .. } => {
                    messages += 1;
                    self.next += 1;
                    hits
                }
                EntryBody::Http { .. }
                | EntryBody::Event { .. }
                | EntryBody::ChannelEnded { .. }
                | EntryBody::Stderr { .. }
                | EntryBody::Ended(_) => {
                    self.next += 1;
                    hits
                }
            };
            if !hits.is_empty() {
                recorder.count(|summary| summary.redacted.add(hits));
            }
            let entry = Entry::new(seq, at, what);
            if self.journal.is_some() {
                write_entry(&mut self.lines, &entry, None);
            }
            // The log is for the user, so it has no partial messages, unless it is the only file.
            let is_piece = matches!(entry.what, EntryBody::Piece { .. });
            if self.log.is_some() && !(is_piece && self.journal.is_some()) {
                let session = SharedLog { session_id: &self.session_id, started_at: self.clock.began_at };
                write_entry(&mut self.log_lines, &entry, Some(&session));
            }
        }
        if messages > 0 {
            recorder.count(|summary| summary.messages += messages);
        }
        if let Some(Err(error)) = self.journal.as_mut().map(|journal| journal.append(&self.lines)) {
            self.stop_recording(recorder, &error);
        }
        if let Some(Err(error)) = self.log.as_mut().map(|log| log.append(&self.log_lines)) {
            let path = self.log.take().map(|log| log.path).unwrap_or_default();
            recorder.notify(&stopped(&path, &error));
        }
        // The memory of a very long message is freed.
        for lines in [&mut self.lines, &mut self.log_lines] {
            if lines.capacity() > 1024 * 1024 {
                *lines = Vec::new();
            }
        }
    }

    /// The journal can no longer be written. Its content is appended to the trace when the session ends.
    fn stop_recording(&mut self, recorder: &Recorder, error: &io::Error) {
        if let Some(journal) = self.journal.take() {
            recorder.notify(&stopped(&journal.path, error));
            self.cut_off = Some((journal, error.to_string()));
        }
    }

    /// Appends the session to the trace.
    fn fold(self, recorder: &Recorder) {
        let (journal, otherwise) = match (self.journal, self.cut_off) {
            (Some(journal), _) => (journal, SessionEnd::Stopped),
            (None, Some((journal, why))) => (journal, SessionEnd::Failed { why: format!("recording stopped: {why}") }),
            (None, None) => return,
        };
        let Some(trace) = &recorder.settings.trace else { return };
        let path = journal.path.clone();
        if let Err(error) = journal.fold(trace, otherwise) {
            let (trace, why) = (trace.clone(), error.to_string());
            recorder.notify(&Notice::NotInTrace { trace, journal: path, why });
        }
    }
}

/// Redacts an entry. The open values of a partial message were closed, so that it is redacted as a message.
fn redacted(redaction: &Redaction, what: EntryBody) -> (EntryBody, Vec<RedactedSecret>) {
    if let EntryBody::Piece { from, channel, offset: 0, bytes } = &what
        && !redaction.is_none()
    {
        let message = Message::parse(bytes.clone());
        if message.as_garbled().is_none() {
            let bytes = redaction.message(&message).map_or(bytes.clone(), |message| message.raw().clone());
            return (EntryBody::Piece { from: *from, channel: *channel, offset: 0, bytes }, Vec::new());
        }
    }
    redaction.redact_entry_body(what)
}

/// Checks that sessions can be appended to a trace, so that the error is reported before the connection starts.
fn check(trace: &Path) -> io::Result<()> {
    let file = private_file().append(true).create(true).open(trace)?;
    match file.metadata()?.is_file() {
        true => Ok(()),
        false => Err(io::Error::other("not a regular file")),
    }
}

fn stopped(path: &Path, error: &io::Error) -> Notice {
    Notice::Stopped { path: path.to_owned(), why: error.to_string() }
}

impl fmt::Debug for SessionRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionRecorder").field("session_id", &self.session_id()).finish_non_exhaustive()
    }
}
