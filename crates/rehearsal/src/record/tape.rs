//! One session that is being recorded.

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

use super::across_lines::MultilineSecrets;
use super::clock::{Clock, session_id};
use super::hooks::HookCaller;
use super::journal::{SessionJournal, SharedJournal, private_file};
use super::notice::Notice;
use super::recorder::Recorder;
use super::unfinished::PartialPolicy;

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
    /// Only where there are hooks.
    caller: Option<HookCaller>,
}

enum State {
    NotStarted {
        /// Whether the notice about it was sent already.
        told: bool,
    },
    Running(Box<ActiveRecording>),
    Ended,
}

struct ActiveRecording {
    session_id: String,
    clock: Clock,
    /// The place of the next entry.
    next: u64,
    spool: Option<SessionJournal>,
    /// A spool that could no longer be written, and why.
    cut_off: Option<(SessionJournal, String)>,
    log: Option<SharedJournal>,
    /// Lines for the journal; the buffer is reused.
    lines: Vec<u8>,
    /// Lines for the log; the buffer is reused.
    log_lines: Vec<u8>,
    across: MultilineSecrets,
}

/// What is put on a tape.
pub(super) enum RecordedInput<'b> {
    /// Anything.
    What(EntryBody),
    /// Whole messages without secrets, each with its line end. They are parsed when a reader needs them.
    Lines { from: Side, channel: Channel, bytes: Cow<'b, [u8]> },
}

impl SessionRecorder {
    pub(super) fn new(recorder: Recorder) -> SessionRecorder {
        let hooks = &recorder.settings.hooks;
        let caller = (!hooks.is_empty()).then(|| HookCaller::new(hooks.clone()));
        let state = Mutex::new(State::NotStarted { told: false });
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

    /// The name of the session, while it runs.
    pub fn session_id(&self) -> Option<String> {
        match &*self.session.state() {
            State::Running(running) => Some(running.session_id.clone()),
            State::NotStarted { .. } | State::Ended => None,
        }
    }

    /// What is kept of a line that has not ended when it is passed on.
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
    pub fn put(&self, whats: impl IntoIterator<Item = EntryBody>) {
        self.record_lines(whats.into_iter().map(RecordedInput::What));
    }

    /// The redaction that decides whether lines may be kept verbatim. `None` if a hook or a log needs each message
    /// parsed.
    pub(super) fn line_redaction(&self) -> Option<&Redaction> {
        let settings = &self.session.recorder.settings;
        (settings.log.is_none() && self.session.caller.is_none()).then_some(&settings.redaction)
    }

    /// Adds entries, and lines that are kept verbatim, to the session.
    pub(super) fn record_lines<'b>(&self, passed: impl IntoIterator<Item = RecordedInput<'b>>) {
        let mut seen = Vec::new();
        let passed = passed.into_iter().inspect(|passed| match passed {
            RecordedInput::What(what) if self.session.caller.is_some() => seen.push(what.clone()),
            RecordedInput::What(_) | RecordedInput::Lines { .. } => {}
        });
        let told = match &mut *self.session.state() {
            State::Running(running) => {
                running.put(&self.session.recorder, passed);
                true
            }
            State::NotStarted { told } => std::mem::replace(told, true),
            State::Ended => true,
        };
        if !told {
            self.session.recorder.tell(&Notice::NotStarted);
        }
        if let Some(caller) = &self.session.caller {
            seen.iter().for_each(|what| caller.call(what, self.session.recorder.listener()));
        }
    }

    /// Ends the session and puts it into the trace; a second time it does nothing.
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
                // It may still be started.
                other @ State::NotStarted { .. } => {
                    *state = other;
                    None
                }
                State::Ended => None,
            }
        };
        if let Some(mut running) = running {
            running.put(&self.recorder, [RecordedInput::What(EntryBody::Ended(end))]);
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
        let spool = settings.trace.as_deref().and_then(|trace| {
            let spool = check(trace).and_then(|()| SessionJournal::create(trace, &session_id, &lines));
            spool.map_err(|error| recorder.tell(&stopped(trace, &error))).ok()
        });
        let log = settings.log.as_deref().and_then(|path| {
            let log = SharedJournal::open(path).and_then(|mut log| log.append(&lines).map(|()| log));
            log.map_err(|error| recorder.tell(&stopped(path, &error))).ok()
        });
        let (across, log_lines) = Default::default();
        ActiveRecording { session_id, clock, next: 0, spool, cut_off: None, log, lines, log_lines, across }
    }

    fn put<'b>(&mut self, recorder: &Recorder, passed: impl IntoIterator<Item = RecordedInput<'b>>) {
        let at = self.clock.elapsed();
        let mut messages = 0;
        self.lines.clear();
        self.log_lines.clear();
        for passed in passed {
            let seq = self.next;
            let what = match passed {
                RecordedInput::What(what) => what,
                RecordedInput::Lines { from, channel, bytes } => {
                    let count = memchr::memchr_iter(b'\n', &bytes).count() as u64;
                    messages += count;
                    self.next += count;
                    if self.spool.is_some() {
                        write_lines(&mut self.lines, seq, at, from, channel, &bytes);
                    }
                    continue;
                }
            };
            let redaction = &recorder.settings.redaction;
            let (what, hits) = match redaction.is_none() {
                true => (what, Vec::new()),
                false => self.across.redact_entry(what, |what| redacted(redaction, what)),
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
            if self.spool.is_some() {
                write_entry(&mut self.lines, &entry, None);
            }
            // The log is for the user, so it has no partial messages, unless it is the only file.
            let is_piece = matches!(entry.what, EntryBody::Piece { .. });
            if self.log.is_some() && !(is_piece && self.spool.is_some()) {
                let session = SharedLog { session_id: &self.session_id, started_at: self.clock.began_at };
                write_entry(&mut self.log_lines, &entry, Some(&session));
            }
        }
        if messages > 0 {
            recorder.count(|summary| summary.messages += messages);
        }
        if let Some(Err(error)) = self.spool.as_mut().map(|spool| spool.append(&self.lines)) {
            self.stop_recording(recorder, &error);
        }
        if let Some(Err(error)) = self.log.as_mut().map(|log| log.append(&self.log_lines)) {
            let path = self.log.take().map(|log| log.path).unwrap_or_default();
            recorder.tell(&stopped(&path, &error));
        }
        // One message of many megabytes must not be paid for until the end.
        for lines in [&mut self.lines, &mut self.log_lines] {
            if lines.capacity() > 1024 * 1024 {
                *lines = Vec::new();
            }
        }
    }

    /// The journal can no longer be written. Its content is appended to the trace when the session ends.
    fn stop_recording(&mut self, recorder: &Recorder, error: &io::Error) {
        if let Some(spool) = self.spool.take() {
            recorder.tell(&stopped(&spool.path, error));
            self.cut_off = Some((spool, error.to_string()));
        }
    }

    /// Puts the session into the trace.
    fn fold(self, recorder: &Recorder) {
        let (spool, otherwise) = match (self.spool, self.cut_off) {
            (Some(spool), _) => (spool, SessionEnd::Stopped),
            (None, Some((spool, why))) => (spool, SessionEnd::Failed { why: format!("recording stopped: {why}") }),
            (None, None) => return,
        };
        let Some(trace) = &recorder.settings.trace else { return };
        let journal = spool.path.clone();
        if let Err(error) = spool.fold(trace, otherwise) {
            recorder.tell(&Notice::NotInTrace { trace: trace.clone(), journal, why: error.to_string() });
        }
    }
}

/// What happened, without its secrets. The beginning of a message was closed, so that it is judged as a message.
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
        f.debug_struct("Tape").field("session_id", &self.session_id()).finish_non_exhaustive()
    }
}
