//! A trace that is served as an MCP server.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use rehearsal_core::answer::{
    Answer, AnswerSource, Chain, HttpNeeds, Introduction, LoggedRequest, ProtocolSource, Provenance,
};
use rehearsal_core::message::{Method, Reply};
use rehearsal_core::protocol::{Era, code};
use rehearsal_core::trace::subject;
use serde_json::Value;

use super::handshakes::{HandshakeCache, MergedHandshake, RefusedHandshakes, merge_handshakes};
use super::index::{Existing, IndexError, SessionFacts, method_key};
use super::indexed_trace::{IndexedTrace, request};
use super::ledger::{LISTED, Ledger, LedgerLine};
use super::options::{ReplayOptions, SessionFilter};
use super::replay_position::UsedRecordings;
use crate::serve::{Observer, Otherwise, Server, ServerOptions, Upstream};
use crate::store::{Input, OpenError, Recording};

/// At most this many recordings are searched for one that may answer.
pub(super) const CANDIDATES: u32 = 64;

/// A recording that is served as an MCP server.
#[derive(Clone, Debug)]
pub struct Replay {
    state: Arc<ReplayState>,
    upstream: Option<Arc<Upstream>>,
}

/// The source of a replay: the recording, and what all connections share.
#[derive(Debug)]
pub(super) struct ReplayState {
    pub(super) trace: IndexedTrace,
    pub(super) options: ReplayOptions,
    /// The sessions that are answered from; `None` for all.
    pub(super) selected: Option<Vec<bool>>,
    /// The handshake for clients whose handshake was not recorded.
    pub(super) introduction: Arc<Introduction>,
    /// The recorded refusals, if no handshake was accepted.
    pub(super) refused: RefusedHandshakes,
    /// The name and version of the server of each session.
    pub(super) handshakes: HandshakeCache,
    pub(super) used: Mutex<UsedRecordings>,
    pub(super) ledger: Mutex<Ledger>,
    /// Why the recording can no longer be read, if that has happened.
    pub(super) unreadable: OnceLock<String>,
    /// Whether unrecorded requests are forwarded to a live server.
    pub(super) is_forwarding: bool,
    pub(super) http: HttpNeeds,
}

/// Why a recording cannot be replayed.
#[derive(thiserror::Error)]
pub enum ReplayError {
    /// It cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It cannot be indexed.
    #[error("{}", about_index(input, cause))]
    Index {
        /// Which.
        input: Input,
        /// Why not.
        cause: IndexError,
    },
    /// No session fits the options.
    #[error("{input}: no session matches the filters")]
    NoSession {
        /// Where.
        input: Input,
        /// The ids of some of its sessions.
        known: Vec<String>,
    },
}

debug_as_display!(ReplayError);

/// At most this many sessions are named if none fits the options.
const MAX_NAMED: u32 = 100;

/// A bad line has its place in the file.
fn about_index(input: &Input, cause: &IndexError) -> String {
    match cause {
        IndexError::Trace(error) => format!("{input}, {error}"),
        IndexError::Io(error) => format!("cannot index {input}: {error}"),
    }
}

/// Why a recording cannot be served, wherever it is from.
enum OpenFailure {
    Index(IndexError),
    NoSession { known: Vec<String> },
}

impl<E: Into<IndexError>> From<E> for OpenFailure {
    fn from(cause: E) -> OpenFailure {
        OpenFailure::Index(cause.into())
    }
}

impl Replay {
    /// Opens a recording, and its index, which is built if it is missing.
    pub fn open(input: &Input, options: ReplayOptions) -> Result<Replay, ReplayError> {
        Replay::open_with(input, options, None)
    }

    /// Opens a recording; requests that were not recorded are forwarded to `upstream`.
    pub fn open_with(input: &Input, options: ReplayOptions, upstream: Option<Upstream>) -> Result<Replay, ReplayError> {
        let recording = Recording::open(input)?;
        // A pipe contains another recording the next time, so it has no index file.
        let path = match input {
            Input::File(path) => Some(path.as_path()).filter(|path| path.is_file()),
            Input::Stdin => None,
        };
        Replay::from_recording(&recording, path, options, upstream).map_err(|unserved| match unserved {
            OpenFailure::Index(cause) => ReplayError::Index { input: input.clone(), cause },
            OpenFailure::NoSession { known } => ReplayError::NoSession { input: input.clone(), known },
        })
    }

    fn from_recording(
        recording: &Recording,
        path: Option<&Path>,
        options: ReplayOptions,
        upstream: Option<Upstream>,
    ) -> Result<Replay, OpenFailure> {
        let open = |existing| {
            let trace = IndexedTrace::open(recording, path, &options, existing)?;
            let selected = selected(&trace, &options)?;
            let pooled = merge_handshakes(&trace, selected.as_deref())?;
            let http = http_needs(&trace)?;
            Ok((trace, selected, pooled, http))
        };
        let (trace, selected, MergedHandshake { opening, refused }, http) = match open(Existing::Use) {
            Err(IndexError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => open(Existing::Replace),
            opened => opened,
        }?;
        if selected.as_ref().is_some_and(|selected| !selected.contains(&true)) {
            let named = (0..trace.index.sessions().min(MAX_NAMED)).map(|session| Ok(trace.index.facts(session)?.id));
            return Err(OpenFailure::NoSession { known: named.collect::<io::Result<_>>()? });
        }
        let state = Arc::new(ReplayState {
            trace,
            options,
            selected,
            introduction: Arc::new(opening),
            refused,
            handshakes: HandshakeCache::default(),
            used: Mutex::default(),
            ledger: Mutex::default(),
            unreadable: OnceLock::new(),
            is_forwarding: upstream.is_some(),
            http,
        });
        Ok(Replay { state, upstream: upstream.map(Arc::new) })
    }

    /// A server that answers from the recording.
    pub fn server(&self) -> Server {
        self.observed_server(Vec::new())
    }

    /// A server that answers from the recording. The observers see every answer.
    pub fn observed_server(&self, observers: Vec<Arc<dyn Observer>>) -> Server {
        let chain = Chain::new(vec![Arc::clone(&self.state) as Arc<dyn AnswerSource>, Arc::new(ProtocolSource)]);
        let ledger: Arc<dyn Observer> = Arc::clone(&self.state) as Arc<dyn Observer>;
        let otherwise = self.upstream.clone().map_or(Otherwise::Refuse, Otherwise::Forward);
        let observers = std::iter::once(ledger).chain(observers).collect();
        Server::with_options(chain, ServerOptions { otherwise, observers, ..ServerOptions::default() })
    }

    /// Disconnects from the live server, if there is one, and completes its recording.
    pub async fn close(&self) -> io::Result<()> {
        match &self.upstream {
            Some(upstream) => upstream.close().await,
            None => Ok(()),
        }
    }

    /// How many exchanges there are.
    pub fn exchanges(&self) -> u32 {
        self.state.trace.index.exchanges()
    }

    /// Warnings that should be printed before the first client connects: the recording answers nothing, or refuses
    /// every client.
    ///
    /// ```text
    /// the recording has no calls: everything but the handshake and pings is refused
    /// ```
    pub fn notices(&self) -> io::Result<Vec<&'static str>> {
        let mut notices = Vec::new();
        if self.upstream.is_none() && !self.has_calls()? {
            notices.push("the recording has no calls: everything but the handshake and pings is refused");
        }
        if self.state.refused.by(Era::Legacy).is_some() {
            notices.push(
                "every recorded handshake was refused, so this replay refuses every client with the recorded error",
            );
        }
        Ok(notices)
    }

    fn has_calls(&self) -> io::Result<bool> {
        for session in (0..self.state.trace.index.sessions()).filter(|session| self.state.is_selected(*session)) {
            if !self.state.trace.of_session(session)?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The requests so far, and the recordings that were not requested.
    pub fn ledger(&self) -> io::Result<Ledger> {
        let mut ledger = self.state.ledger().clone();
        if let Some(upstream) = &self.upstream {
            (ledger.forwarded, ledger.failed) = upstream.counts();
        }
        for session in (0..self.state.trace.index.sessions()).filter(|session| self.state.is_selected(*session)) {
            ledger.undelivered += self.state.trace.index.facts(session)?.undelivered;
        }
        let used = self.state.used();
        for number in 0..self.exchanges() {
            if used.is_used(number) {
                continue;
            }
            let exchange = self.state.trace.index.exchange(number)?;
            let is_selected = self.state.is_selected(exchange.session);
            if !exchange.flags.counts() || !is_selected {
                continue;
            }
            ledger.unused += 1;
            if ledger.unused_recordings.len() < LISTED {
                let recorded = self.state.trace.recorded(number)?;
                let message = request(&recorded);
                ledger.unused_recordings.push(LedgerLine {
                    method: message.method().map(ToString::to_string).unwrap_or_default(),
                    name: subject(message),
                    recording: Some(recorded.place.to_string()),
                    count: 1,
                });
            }
        }
        Ok(ledger)
    }
}

impl Observer for ReplayState {
    /// Counts a request that was not answered from the recording. Clients that try versions are not counted.
    fn answered(&self, request: &LoggedRequest, answer: &Answer) {
        let is_handshake = [Method::INITIALIZE, Method::DISCOVER].contains(&request.method);
        let field = |key: &str| request.params.as_ref().and_then(|params| params.field(key)?.text());
        let is_unmatched = match (&answer.provenance, &answer.reply) {
            // A request that is repeated with input was counted before.
            (Provenance::Live, _) => field("requestState").is_none(),
            (Provenance::Refusal, _) => !is_handshake,
            (Provenance::Protocol, Reply::Error(error)) => !is_handshake && error.code != code::UNSUPPORTED_VERSION,
            (Provenance::Protocol, Reply::Result(_)) => false,
            (
                Provenance::Script { .. }
                | Provenance::Harness { .. }
                | Provenance::Recording { .. }
                | Provenance::Cache { .. }
                | Provenance::Schema { .. }
                | Provenance::Placeholder { .. },
                _,
            ) => false,
        };
        if is_unmatched {
            self.ledger().unmatched(request.method.as_str(), field("name").or_else(|| field("uri")));
        }
    }
}

/// What serving over HTTP needs: the arguments that are repeated in headers, and how the recorded server used streams.
fn http_needs(trace: &IndexedTrace) -> io::Result<HttpNeeds> {
    let mut header_schemas: HashMap<String, Arc<Value>> = HashMap::new();
    let lists = trace.index.group(method_key(Method::TOOLS_LIST.as_str()))?;
    for number in lists.into_iter().flat_map(|group| trace.members(group, CANDIDATES)) {
        let recorded = trace.recorded(number?)?;
        let Some(Reply::Result(result)) = recorded.reply() else { continue };
        let tools = result.field("tools").and_then(|tools| tools.value().ok());
        for tool in tools.iter().filter_map(Value::as_array).flatten() {
            if let (Some(name), Some(schema)) = (tool["name"].as_str(), tool.get("inputSchema"))
                && schema.to_string().contains("x-mcp-header")
            {
                header_schemas.insert(name.to_owned(), Arc::new(schema.clone()));
            }
        }
    }
    let known = (0..trace.index.sessions().min(CANDIDATES)).map(|session| trace.index.facts(session));
    let known = known.collect::<io::Result<Vec<SessionFacts>>>()?;
    let only_streams = known.iter().all(|facts| facts.plain == 0) && known.iter().any(|facts| facts.streamed > 0);
    let retry = known.iter().find_map(|facts| facts.retry).map(Duration::from_millis);
    Ok(HttpNeeds { header_schemas, only_streams, retry, ..HttpNeeds::default() })
}

/// The sessions that are answered from; `None` for all.
fn selected(trace: &IndexedTrace, options: &ReplayOptions) -> io::Result<Option<Vec<bool>>> {
    let wanted = &options.sessions;
    if wanted.id.is_none() && wanted.metadata.is_empty() {
        return Ok(None);
    }
    let suits = |session: u32| {
        let facts = trace.index.facts(session)?;
        let has = |(key, value): &(String, String)| match facts.metadata.get(key) {
            Some(Value::String(text)) => text == value,
            Some(other) => &other.to_string() == value,
            None => false,
        };
        let is_of = |id: &str| id == facts.id || facts.metadata.get(SessionFilter::ADDS_TO).is_some_and(|to| to == id);
        Ok(wanted.id.as_deref().is_none_or(is_of) && wanted.metadata.iter().all(has))
    };
    (0..trace.index.sessions()).map(suits).collect::<io::Result<_>>().map(Some)
}

/// Whether a session is one of the selected ones.
pub(super) fn is_selected(selected: Option<&[bool]>, session: u32) -> bool {
    selected.is_none_or(|all| all.get(session as usize).copied().unwrap_or_default())
}
