//! The recorder: where a recording is written, and with which settings.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rehearsal_core::json::RawJson;
use rehearsal_core::message::{Method, Reply};
use rehearsal_core::redact::Redaction;
use serde_json::{Map, Value};

use super::hooks::Hooks;
use super::notice::{Notice, NoticeListener, Summary, on_stderr};
use super::recover::LeftoverJournals;
use super::session_recorder::SessionRecorder;

/// Records sessions, with settings for the files, the redaction and the hooks. Cheap to clone.
///
/// [`StdioRecording`](super::StdioRecording) records a server process and [`HttpRecording`](super::HttpRecording) a
/// server at a URL. [`ReplayServer`](crate::ReplayServer) has an example that records over HTTP. A program that moves
/// the messages itself uses the recorder directly:
///
/// ```
/// use rehearsal::Recorder;
/// use rehearsal::trace::SessionEnd;
///
/// let directory = tempfile::tempdir().unwrap();
/// let recorder = Recorder::builder()
///     .trace(directory.path().join("trace.jsonl"))
///     .metadata("purpose", "an example")
///     .on_request(|method, _| println!("requested: {method}"))
///     .build();
/// let session = recorder.start(serde_json::Map::new());
/// session.end(SessionEnd::Stopped);
/// assert_eq!(recorder.summary().sessions, 1);
/// ```
#[derive(Clone)]
pub struct Recorder {
    pub(super) settings: Arc<Settings>,
}

/// The settings and counters that all sessions share.
pub(super) struct Settings {
    pub(super) trace: Option<PathBuf>,
    pub(super) log: Option<PathBuf>,
    pub(super) redaction: Redaction,
    pub(super) metadata: Map<String, Value>,
    pub(super) hooks: Hooks,
    listener: NoticeListener,
    summary: Mutex<Summary>,
    pub(super) orphans: LeftoverJournals,
}

/// The settings of a recorder.
#[must_use = "nothing is recorded before `build` and `start`"]
pub struct RecorderBuilder {
    settings: Settings,
}

impl Recorder {
    /// Returns a builder with the default settings. Without a file nothing is written, but hooks are called.
    pub fn builder() -> RecorderBuilder {
        let settings = Settings {
            trace: None,
            log: None,
            redaction: Redaction::standard(),
            metadata: Map::new(),
            hooks: Hooks::default(),
            listener: on_stderr(),
            summary: Mutex::default(),
            orphans: LeftoverJournals::default(),
        };
        RecorderBuilder { settings }
    }

    /// Starts a session. `server_info` describes the server: `command` and `arguments`, or `url`, and `transport`.
    pub fn start(&self, server_info: Map<String, Value>) -> SessionRecorder {
        let session = self.session();
        session.start(server_info);
        session
    }

    /// Returns a session that has not started. Entries before [`SessionRecorder::start`] are not recorded, and a notice
    /// reports that.
    pub fn session(&self) -> SessionRecorder {
        SessionRecorder::new(self.clone())
    }

    /// Counts what was recorded so far, over all sessions.
    pub fn summary(&self) -> Summary {
        self.settings.summary.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn count(&self, count: impl FnOnce(&mut Summary)) {
        count(&mut self.settings.summary.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn notify(&self, notice: &Notice) {
        if notice.is_failure() {
            self.count(|summary| summary.failed = true);
        }
        (self.settings.listener)(notice);
    }

    pub(super) fn listener(&self) -> &NoticeListener {
        &self.settings.listener
    }
}

impl RecorderBuilder {
    /// Appends every session to this file, one a line, when it ends.
    pub fn trace(mut self, path: impl Into<PathBuf>) -> RecorderBuilder {
        self.settings.trace = Some(path.into());
        self
    }

    /// Appends every entry to this file, one a line, as it happens.
    pub fn log(mut self, path: impl Into<PathBuf>) -> RecorderBuilder {
        self.settings.log = Some(path.into());
        self
    }

    /// The redaction of everything that is written; [`Redaction::standard`] by default.
    pub fn redaction(mut self, redaction: Redaction) -> RecorderBuilder {
        self.settings.redaction = redaction;
        self
    }

    /// Adds metadata to every session.
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> RecorderBuilder {
        self.settings.metadata.insert(key.into(), value.into());
        self
    }

    /// Passes the method and the params of every request, of either side, to `hook`: after it is recorded and before it
    /// is forwarded.
    ///
    /// The connection waits for the hook; if the hook panics, the connection continues. The hook gets them before
    /// redaction.
    pub fn on_request(mut self, hook: impl Fn(&Method, Option<&RawJson>) + Send + Sync + 'static) -> RecorderBuilder {
        self.settings.hooks.request.push(Arc::new(hook));
        self
    }

    /// Passes the method and the reply of every answered request, of either side, to `hook`.
    pub fn on_response(mut self, hook: impl Fn(&Method, &Reply) + Send + Sync + 'static) -> RecorderBuilder {
        self.settings.hooks.response.push(Arc::new(hook));
        self
    }

    /// Passes notices to this function instead of printing them to stderr.
    pub fn on_notice(mut self, notify: impl Fn(&Notice) + Send + Sync + 'static) -> RecorderBuilder {
        self.settings.listener = Arc::new(notify);
        self
    }

    /// Builds the recorder.
    pub fn build(self) -> Recorder {
        Recorder { settings: Arc::new(self.settings) }
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings { trace, log, .. } = &*self.settings;
        f.debug_struct("Recorder").field("trace", trace).field("log", log).finish_non_exhaustive()
    }
}

impl fmt::Debug for RecorderBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings { trace, log, .. } = &self.settings;
        f.debug_struct("RecorderBuilder").field("trace", trace).field("log", log).finish_non_exhaustive()
    }
}
