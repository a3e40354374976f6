//! Finds the era of a server, and negotiates the version.
//!
//! ```text
//! auto:  server/discover ── its result, or an error of the stateless era ──► modern
//!              │
//!              └─ any other response, or none ──► initialize ── 400/404/405 over HTTP ──► HTTP+SSE
//! ```
//!
//! The statuses 401, 403 and 5xx do not decide the era.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rehearsal_core::exchange::Channel;
use rehearsal_core::json::RawJson;
use rehearsal_core::message::{ErrorReply, Message, Method, Reply};
use rehearsal_core::protocol::{Revision, code, meta};
use rehearsal_wire::{ConnectionEnd, StopOutcome};
use serde_json::{Map, Value, json};
use tokio::task::JoinHandle;

use super::builder::ClientBuilder;
use super::client::{Client, HandshakeResult};
use super::connection::{ClientConnection, CompletedRequest, OutgoingRequest};
use super::error::ClientError;
use super::pending_request::{CancelMode, PendingRequest};
use super::target::Protocol;

/// The state that the attempts of a handshake share.
struct Handshake<'a> {
    builder: &'a ClientBuilder,
    capabilities: Value,
    /// The connection that was opened last.
    opened: &'a Mutex<Option<Arc<OpenConnection>>>,
}

/// An open connection and the task that reads it. Dropping it closes the connection.
#[derive(Debug)]
pub(super) struct OpenConnection {
    pub(super) connection: Arc<ClientConnection>,
    reading: JoinHandle<()>,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        // Now, because the runtime may end the task later.
        self.connection.sender.abort();
        self.reading.abort();
        // The aborted task no longer reports the end to the pending requests.
        self.connection.ended(&ConnectionEnd::Closed);
    }
}

/// A server that is being connected to. It can be closed before the handshake is over.
///
/// Dropping it kills the server, unless it has a client.
pub struct Connecting {
    builder: ClientBuilder,
    /// The connection that was opened last.
    opened: Mutex<Option<Arc<OpenConnection>>>,
}

impl Connecting {
    pub(super) fn new(builder: ClientBuilder) -> Connecting {
        Connecting { builder, opened: Mutex::default() }
    }

    /// Starts the server or connects to it, and negotiates a version.
    pub async fn connect(&self) -> Result<Client, ClientError> {
        let builder = &self.builder;
        if let Some(what) = &builder.inapplicable {
            return Err(ClientError::BadTarget { what: what.clone() });
        }
        let capabilities = builder.capabilities.clone().unwrap_or_else(|| builder.handlers.capabilities());
        let handshake = Handshake { builder, capabilities, opened: &self.opened };
        let (opened, negotiated) = match (builder.assumed, builder.protocol) {
            (Some(revision), _) => (handshake.open(false).await?, HandshakeResult::assumed(revision)),
            (None, Protocol::Modern) => {
                let opened = handshake.open(false).await?;
                let discovered = handshake.discover(&opened).await?;
                let negotiated = modern(&discovered)?;
                (opened, negotiated)
            }
            (None, Protocol::Legacy(revision)) => handshake.legacy(revision).await?,
            (None, Protocol::Auto) => handshake.auto().await?,
        };
        let (handlers, capabilities) = (builder.handlers.clone(), &handshake.capabilities);
        Ok(Client::new(opened, negotiated, builder.timeout, handlers, capabilities, &builder.client_info))
    }

    /// Closes the connection, during or after the handshake. A server process may exit by itself; then it gets SIGTERM, then
    /// SIGKILL. Returns which of these was needed.
    pub async fn close(&self) -> StopOutcome {
        let opened = locked(&self.opened).take();
        match opened {
            Some(opened) => opened.connection.sender.close().await,
            None => StopOutcome::AlreadyExited,
        }
    }
}

impl fmt::Debug for Connecting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connecting").field("target", &self.builder.target).finish_non_exhaustive()
    }
}

fn locked(opened: &Mutex<Option<Arc<OpenConnection>>>) -> MutexGuard<'_, Option<Arc<OpenConnection>>> {
    opened.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Handshake<'_> {
    /// Opens a connection and sends nothing on it.
    async fn open(&self, sse: bool) -> Result<Arc<OpenConnection>, ClientError> {
        let connection = self.builder.target.open(sse, self.builder.timeout).await?;
        let ClientBuilder { handlers, observer, redact, .. } = self.builder;
        let (connection, reading) =
            ClientConnection::start(connection, handlers.clone(), observer.clone(), redact.clone());
        let opened = Arc::new(OpenConnection { connection, reading });
        *locked(self.opened) = Some(opened.clone());
        Ok(opened)
    }

    /// Finds the era with a probe, then negotiates as that era requires.
    async fn auto(&self) -> Result<(Arc<OpenConnection>, HandshakeResult), ClientError> {
        let opened = self.open(false).await?;
        let verdict = match self.probe(&opened).await {
            ProbeResult::Legacy => outcome(self.initialize(&opened, Revision::LATEST_LEGACY).await),
            verdict => verdict,
        };
        match verdict {
            ProbeResult::Agreed(negotiated) => Ok((opened, negotiated)),
            ProbeResult::Failed(error) if self.builder.target.may_be_sse() && refuses_transport(&error) => {
                self.sse(error).await
            }
            ProbeResult::Legacy => Err(ClientError::NoCommonVersion { theirs: Vec::new(), ours: None }),
            // Some old servers exit on a request before `initialize`, so they are started again without the probe.
            ProbeResult::ServerExited(_) if self.builder.target.can_reopen() => {
                *locked(self.opened) = None;
                drop(opened);
                self.legacy(Revision::LATEST_LEGACY).await
            }
            ProbeResult::ServerExited(error) | ProbeResult::Failed(error) => Err(error),
        }
    }

    async fn probe(&self, opened: &OpenConnection) -> ProbeResult {
        let mut probe = Box::pin(self.discover(opened));
        if let Some(answer) = opened.connection.in_time(self.builder.probe, &mut probe).await {
            return era(answer);
        }
        // No response yet. The server may still be starting, so the probe stays open while we try the handshake.
        let mut handshake = Box::pin(self.initialize(opened, Revision::LATEST_LEGACY));
        tokio::select! {
            answer = &mut probe => match era(answer) {
                ProbeResult::Legacy => outcome(handshake.await),
                verdict => verdict,
            },
            negotiated = &mut handshake => match negotiated {
                // A server that has seen a request of the stateless era may refuse the handshake for it.
                Err(ClientError::ErrorReply { error, .. }) if code::is_modern(error.code) => era(probe.await),
                negotiated => outcome(negotiated),
            },
        }
    }

    async fn legacy(&self, revision: Revision) -> Result<(Arc<OpenConnection>, HandshakeResult), ClientError> {
        let opened = self.open(false).await?;
        match self.initialize(&opened, revision).await {
            Err(error) if self.builder.target.may_be_sse() && refuses_transport(&error) => self.sse(error).await,
            negotiated => Ok((opened, negotiated?)),
        }
    }

    /// Connects over HTTP+SSE, after Streamable HTTP was refused.
    async fn sse(&self, refused: ClientError) -> Result<(Arc<OpenConnection>, HandshakeResult), ClientError> {
        let revision = match self.builder.protocol {
            Protocol::Legacy(revision) => revision,
            Protocol::Auto | Protocol::Modern => Revision::LATEST_LEGACY,
        };
        let opened = match self.open(true).await {
            Ok(opened) => opened,
            Err(error) => {
                return Err(ClientError::NoTransport { streamable: Box::new(refused), sse: Box::new(error) });
            }
        };
        let negotiated = self.initialize(&opened, revision).await?;
        Ok((opened, negotiated))
    }

    /// Sends `server/discover`. If the server refuses the version and lists a modern one as supported, it is sent once
    /// more.
    async fn discover(&self, opened: &OpenConnection) -> Result<CompletedRequest, ClientError> {
        let answered = self.discover_once(opened).answered().await?;
        let again = match answered.exchange.reply() {
            Some(Reply::Error(error)) => refused_versions(error).is_some_and(|theirs| has_modern(&theirs)),
            Some(Reply::Result(_)) | None => false,
        };
        if again { self.discover_once(opened).answered().await } else { Ok(answered) }
    }

    fn discover_once(&self, opened: &OpenConnection) -> PendingRequest {
        let mut meta = Map::new();
        meta.insert(meta::PROTOCOL_VERSION.into(), Revision::LATEST_MODERN.as_str().into());
        meta.insert(meta::CLIENT_CAPABILITIES.into(), self.capabilities.clone());
        meta.insert(meta::CLIENT_INFO.into(), self.builder.client_info.clone());
        self.send(opened, Method::DISCOVER, &json!({"_meta": meta}), self.builder.timeout)
    }

    async fn initialize(&self, opened: &OpenConnection, revision: Revision) -> Result<HandshakeResult, ClientError> {
        let params = json!({
            "protocolVersion": revision.as_str(),
            "capabilities": self.capabilities,
            "clientInfo": self.builder.client_info,
        });
        let answer = self.send(opened, Method::INITIALIZE, &params, self.builder.timeout).answered().await?;
        let result = result(&answer, Method::INITIALIZE)?;
        let theirs = result.get("protocolVersion").and_then(Value::as_str).unwrap_or_default().to_owned();
        let agreed = theirs.parse::<Revision>().ok().filter(|revision| revision.has_handshake());
        let Some(revision) = agreed else {
            let ours = match self.builder.protocol {
                Protocol::Legacy(revision) => Some(revision),
                Protocol::Auto | Protocol::Modern => None,
            };
            return Err(ClientError::NoCommonVersion { theirs: vec![theirs], ours });
        };
        let initialized = Message::notification(Method::INITIALIZED, None::<&()>);
        let initialized = initialized.map_err(|cause| ClientError::BadParams { method: Method::INITIALIZED, cause })?;
        let (method, after) = (Method::INITIALIZED, self.builder.timeout);
        let connection = &opened.connection;
        match connection.in_time(after, connection.send_notification(Channel::MAIN, initialized)).await {
            Some(Ok(())) => {}
            Some(Err(cause)) => {
                return Err(ClientError::NotSent { method, cause, evidence: opened.connection.evidence() });
            }
            None => return Err(ClientError::TimedOut { method, after, evidence: opened.connection.evidence() }),
        }
        let server_info = result.get("serverInfo").cloned().unwrap_or_default();
        Ok(HandshakeResult::new(revision, server_info, &result, answer.exchange.reply()))
    }

    fn send(&self, opened: &OpenConnection, method: Method, params: &Value, limit: Duration) -> PendingRequest {
        let id = opened.connection.next_id().into();
        let message = Message::request(id, method, Some(params)).expect("a JSON value can always be written");
        opened.connection.begin(OutgoingRequest {
            message,
            token: None,
            headers: None,
            limit,
            watch: None,
            cancel_mode: CancelMode::Silent,
        })
    }
}

/// The result of a probe.
enum ProbeResult {
    /// A version was negotiated.
    Agreed(HandshakeResult),
    /// A handshake is needed.
    Legacy,
    /// The server exited when it received the probe.
    ServerExited(ClientError),
    /// The probe failed without deciding the era.
    Failed(ClientError),
}

/// Converts the result of a handshake to the result of the probe.
fn outcome(negotiated: Result<HandshakeResult, ClientError>) -> ProbeResult {
    match negotiated {
        Ok(negotiated) => ProbeResult::Agreed(negotiated),
        Err(error @ ClientError::ServerClosed { .. }) => ProbeResult::ServerExited(error),
        Err(error) => ProbeResult::Failed(error),
    }
}

fn era(answer: Result<CompletedRequest, ClientError>) -> ProbeResult {
    let answered = match answer {
        Ok(answered) => answered,
        Err(error @ ClientError::ServerClosed { .. }) => return ProbeResult::ServerExited(error),
        Err(error) if is_refusal(&error) => return ProbeResult::Legacy,
        Err(error) => return ProbeResult::Failed(error),
    };
    match answered.exchange.reply() {
        Some(Reply::Error(error)) if error.code == code::UNSUPPORTED_VERSION => {
            let theirs = refused_versions(error).unwrap_or_default();
            let legacy = |version: &String| version.parse::<Revision>().is_ok_and(Revision::has_handshake);
            if theirs.iter().any(legacy) {
                ProbeResult::Legacy
            } else {
                ProbeResult::Failed(ClientError::NoCommonVersion { theirs, ours: None })
            }
        }
        // An error of the stateless era is returned as it is. Statuses such as 401 and 503 do not decide the era.
        Some(Reply::Error(error)) if code::is_modern(error.code) || is_inconclusive(answered.status) => {
            let (error, status) = (error.clone(), answered.status);
            ProbeResult::Failed(ClientError::ErrorReply { method: Method::DISCOVER, error, status })
        }
        Some(Reply::Error(_)) | None => ProbeResult::Legacy,
        // Some servers return a result for every method.
        Some(Reply::Result(result)) if !is_discovery(result) => ProbeResult::Legacy,
        Some(Reply::Result(_)) => modern(&answered).map_or_else(ProbeResult::Failed, ProbeResult::Agreed),
    }
}

/// Whether the error shows that the server is running but does not support the method.
fn is_refusal(error: &ClientError) -> bool {
    match error {
        // Servers of the handshake era refuse unknown requests with 4xx and no message.
        ClientError::Refused { status, .. } => matches!(status, 400 | 404 | 405 | 406 | 415 | 422),
        ClientError::Garbled { .. } | ClientError::TimedOut { .. } => true,
        _ => false,
    }
}

/// Whether this is a result of `server/discover`.
pub(crate) fn is_discovery(result: &RawJson) -> bool {
    result.value().is_ok_and(|result| result.get("supportedVersions").is_some_and(Value::is_array))
}

fn is_inconclusive(status: Option<u16>) -> bool {
    matches!(status, Some(401 | 403 | 429 | 500..))
}

fn modern(discovered: &CompletedRequest) -> Result<HandshakeResult, ClientError> {
    let result = result(discovered, Method::DISCOVER)?;
    let theirs = versions(result.get("supportedVersions"));
    if !has_modern(&theirs) {
        return Err(ClientError::NoCommonVersion { theirs, ours: Some(Revision::LATEST_MODERN) });
    }
    let server_info = result.get("_meta").and_then(|meta| meta.get(meta::SERVER_INFO));
    // Early drafts had it in the body, and some servers still do.
    let server_info = server_info.or_else(|| result.get("serverInfo")).cloned().unwrap_or_default();
    Ok(HandshakeResult::new(Revision::LATEST_MODERN, server_info, &result, discovered.exchange.reply()))
}

/// The versions that a server lists in its error for an unsupported version.
fn refused_versions(error: &ErrorReply) -> Option<Vec<String>> {
    let data = error.data.as_ref().filter(|_| error.code == code::UNSUPPORTED_VERSION)?.value().ok()?;
    Some(versions(data.get("supported")))
}

fn has_modern(theirs: &[String]) -> bool {
    theirs.iter().any(|version| version == Revision::LATEST_MODERN.as_str())
}

fn versions(list: Option<&Value>) -> Vec<String> {
    let list = list.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(|version| version.as_str().map(str::to_owned)).collect()
}

fn result(answered: &CompletedRequest, method: Method) -> Result<Value, ClientError> {
    match answered.exchange.reply() {
        Some(Reply::Result(result)) => {
            result.value().map_err(|error| ClientError::BadResult { method, what: error.to_string() })
        }
        Some(Reply::Error(error)) => {
            Err(ClientError::ErrorReply { method, error: error.clone(), status: answered.status })
        }
        None => Err(ClientError::BadResult { method, what: "no answer".to_owned() }),
    }
}

/// Whether the endpoint does not support Streamable HTTP, so that HTTP+SSE is tried.
fn refuses_transport(error: &ClientError) -> bool {
    matches!(
        error,
        ClientError::Refused { status: 400 | 404 | 405, .. }
            | ClientError::ErrorReply { status: Some(400 | 404 | 405), .. }
    )
}
