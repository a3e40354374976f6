//! Records a server behind a URL, with a session for each client.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use http::Uri;
use rehearsal_core::exchange::Channel;
use rehearsal_core::trace::{HttpHead, SessionEnd};
use rehearsal_wire::MESSAGE_LIMIT;
use rehearsal_wire::http::client::resolve_endpoint;
use rehearsal_wire::http::proxy::{ExchangeObserver, HttpProxy, HttpProxyOptions, ProxyBindError, ProxyTap};
use serde_json::{Map, Value};

use super::exchange_recorder::ExchangeRecorder;
use crate::record::{Recorder, SessionRecorder};

/// Maximum number of open sessions. Beyond it, the one without a request for the longest time ends.
const SESSIONS_LIMIT: usize = 256;

/// All sessions that have not ended.
pub(super) struct Sessions {
    recorder: Recorder,
    url: Uri,
    state: Mutex<SessionTable>,
}

#[derive(Default)]
struct SessionTable {
    /// The session of the whole run.
    run: Option<Arc<ActiveSession>>,
    /// By `Mcp-Session-Id`.
    by_id: HashMap<String, Arc<ActiveSession>>,
    /// By the path and query that clients of HTTP+SSE post to.
    by_endpoint: HashMap<String, Arc<ActiveSession>>,
    /// The sessions whose handshake named none, by the socket of the handshake.
    unnamed: HashMap<u64, Arc<ActiveSession>>,
    /// The last of these sessions.
    last_unnamed: Option<Arc<ActiveSession>>,
    /// All sessions but that of the whole run.
    all: Vec<Arc<ActiveSession>>,
    /// Counts uses.
    now: u64,
    /// Sessions that are being appended to the trace.
    folding: Vec<JoinHandle<()>>,
}

/// A session that has not ended.
pub(super) struct ActiveSession {
    pub(super) recorder: SessionRecorder,
    channels: AtomicU64,
    state: Mutex<SessionLife>,
}

#[derive(Default)]
struct SessionLife {
    /// The number of requests that have not ended.
    open: usize,
    /// How the session ends when these requests have ended.
    end: Option<SessionEnd>,
    used: u64,
}

/// The transport of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    Streamable,
    TwoEndpoints,
}

impl Sessions {
    pub(super) fn new(recorder: Recorder, url: Uri) -> Sessions {
        Sessions { recorder, url, state: Mutex::default() }
    }

    /// The session of the whole run.
    pub(super) fn run(&self) -> Arc<ActiveSession> {
        let mut state = self.state();
        let run = state.run.get_or_insert_with(|| self.start(Transport::Streamable)).clone();
        state.enter(&run);
        run
    }

    /// Starts a session.
    pub(super) fn begin(&self, transport: Transport) -> Arc<ActiveSession> {
        let mut state = self.state();
        self.begin_in(&mut state, transport)
    }

    /// The session with this id; begins it if it was not recorded yet.
    pub(super) fn named(&self, id: &str) -> Arc<ActiveSession> {
        let mut state = self.state();
        if let Some(session) = state.by_id.get(id).cloned() {
            state.enter(&session);
            return session;
        }
        let session = self.begin_in(&mut state, Transport::Streamable);
        state.by_id.insert(id.to_owned(), session.clone());
        session
    }

    fn begin_in(&self, state: &mut SessionTable, transport: Transport) -> Arc<ActiveSession> {
        let session = self.start(transport);
        state.all.push(session.clone());
        state.enter(&session);
        if state.all.len() > SESSIONS_LIMIT
            && let Some(oldest) = state.oldest()
        {
            state.end(&oldest, SessionEnd::Stopped);
        }
        session
    }

    /// The session whose clients post to this target.
    pub(super) fn posted_to(&self, target: &str) -> Option<Arc<ActiveSession>> {
        let mut state = self.state();
        let session = state.by_endpoint.get(target).cloned()?;
        state.enter(&session);
        Some(session)
    }

    /// The session of a handshake without `Mcp-Session-Id`: the one on this socket, or the last one.
    pub(super) fn unnamed(&self, socket: u64) -> Option<Arc<ActiveSession>> {
        let mut state = self.state();
        let session = state.unnamed.get(&socket).or(state.last_unnamed.as_ref()).cloned()?;
        state.enter(&session);
        Some(session)
    }

    /// Adds the `Mcp-Session-Id` that the server gave a session.
    pub(super) fn name(&self, session: &Arc<ActiveSession>, id: &str) {
        self.state().by_id.insert(id.to_owned(), session.clone());
    }

    /// Adds a session whose handshake the server accepted without an `Mcp-Session-Id`.
    pub(super) fn add_unnamed(&self, session: &Arc<ActiveSession>, socket: u64) {
        let mut state = self.state();
        state.unnamed.insert(socket, session.clone());
        state.last_unnamed = Some(session.clone());
    }

    /// Registers the URL for POSTs that the server sent on a stream, which was requested at `target`.
    pub(super) fn endpoint(&self, session: &Arc<ActiveSession>, target: &str, endpoint: &str) {
        let mut parts = self.url.clone().into_parts();
        parts.path_and_query = target.parse().ok().or(parts.path_and_query);
        let Ok(base) = Uri::from_parts(parts) else { return };
        let Ok(url) = resolve_endpoint(&base, endpoint) else { return };
        let target = url.path_and_query().map_or("/", |target| target.as_str());
        self.state().by_endpoint.insert(target.to_owned(), session.clone());
    }

    /// Ends a request of a session, and the session if that was its last request.
    pub(super) fn leave(&self, session: &Arc<ActiveSession>) {
        let end = {
            let mut life = session.life();
            life.open = life.open.saturating_sub(1);
            if life.open == 0 { life.end.take() } else { None }
        };
        if let Some(end) = end {
            self.state().end(session, end);
        }
    }

    /// Ends all sessions, and waits until they are in the trace. This blocks.
    pub(super) fn finish(&self, end: &SessionEnd) {
        let folding = {
            let mut state = self.state();
            for session in std::mem::take(&mut state.all).into_iter().chain(state.run.take()) {
                state.end(&session, end.clone());
            }
            std::mem::take(&mut state.folding)
        };
        for thread in folding {
            // A panic there was shown where it happened.
            let _ = thread.join();
        }
    }

    fn start(&self, transport: Transport) -> Arc<ActiveSession> {
        let mut info = Map::new();
        let transport = match transport {
            Transport::Streamable => "streamable-http",
            Transport::TwoEndpoints => "http+sse",
        };
        info.insert("transport".to_owned(), Value::from(transport));
        info.insert("url".to_owned(), Value::from(self.url.to_string()));
        Arc::new(ActiveSession {
            recorder: self.recorder.start(info),
            channels: AtomicU64::new(1),
            state: Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, SessionTable> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionTable {
    fn enter(&mut self, session: &ActiveSession) {
        self.now += 1;
        let mut life = session.life();
        life.open += 1;
        life.used = self.now;
    }

    /// The session without a pending request that was used least recently.
    fn oldest(&self) -> Option<Arc<ActiveSession>> {
        let idle = self.all.iter().filter(|session| session.life().open == 0);
        idle.min_by_key(|session| session.life().used).cloned()
    }

    /// Removes a session and appends it to the trace, which may take a moment.
    fn end(&mut self, session: &Arc<ActiveSession>, end: SessionEnd) {
        let other = |other: &Arc<ActiveSession>| !Arc::ptr_eq(session, other);
        self.by_id.retain(|_, session| other(session));
        self.by_endpoint.retain(|_, session| other(session));
        self.unnamed.retain(|_, session| other(session));
        self.last_unnamed = self.last_unnamed.take().filter(other);
        self.all.retain(other);
        self.folding.retain(|thread| !thread.is_finished());
        let recorder = session.recorder.clone();
        self.folding.push(std::thread::spawn(move || recorder.end(end)));
    }
}

impl ActiveSession {
    /// A channel for the next request.
    pub(super) fn channel(&self) -> Channel {
        Channel(self.channels.fetch_add(1, Ordering::Relaxed))
    }

    /// Ends the session when all its requests have ended.
    pub(super) fn ends(&self, end: SessionEnd) {
        self.life().end.get_or_insert(end);
    }

    fn life(&self) -> MutexGuard<'_, SessionLife> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A proxy between clients and a server that records the sessions.
///
/// ```no_run
/// use rehearsal::record::{HttpRecording, Recorder};
/// use rehearsal::transport::HttpProxyOptions;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let recorder = Recorder::builder().trace("trace.jsonl").build();
/// let options = HttpProxyOptions::new("127.0.0.1:0".parse()?, "https://mcp.example/mcp")?;
/// let recording = HttpRecording::start(&recorder, options).await?;
/// println!("listening on {}", recording.url());
/// tokio::signal::ctrl_c().await?;
/// recording.stop().await;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct HttpRecording {
    proxy: HttpProxy,
    tap: Arc<HttpTap>,
}

struct HttpTap {
    sessions: Arc<Sessions>,
}

impl HttpRecording {
    /// Starts to listen, and forwards all bytes.
    pub async fn start(recorder: &Recorder, options: HttpProxyOptions) -> Result<HttpRecording, ProxyBindError> {
        let sessions = Arc::new(Sessions::new(recorder.clone(), options.upstream.clone()));
        let tap = Arc::new(HttpTap { sessions });
        let proxy = HttpProxy::bind(options, tap.clone()).await?;
        Ok(HttpRecording { proxy, tap })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.proxy.address()
    }

    /// The address that clients use in the place of the server's: only host and port are others.
    pub fn url(&self) -> String {
        self.proxy.url()
    }

    /// Stops listening, ends every stream, and puts every session into the trace.
    pub async fn stop(self) {
        let HttpRecording { proxy, tap } = self;
        proxy.shutdown().await;
        // Reading long journals takes a while and must not block the runtime.
        let folded = tokio::task::spawn_blocking(move || tap.sessions.finish(&SessionEnd::Stopped));
        // A panic there was shown where it happened.
        let _ = folded.await;
    }
}

impl ProxyTap for HttpTap {
    fn begin(&self, socket: u64, head: HttpHead) -> Box<dyn ExchangeObserver> {
        Box::new(ExchangeRecorder::new(self.sessions.clone(), socket, MESSAGE_LIMIT, head))
    }
}

impl std::fmt::Debug for HttpTap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpTap").finish_non_exhaustive()
    }
}
