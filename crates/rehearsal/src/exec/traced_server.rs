//! One server of a real run: its connection, its session in the trace, and its results in the cache.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rehearsal_core::exchange::{Channel, Side};
use rehearsal_core::message::{Message, Method, RequestId};
use rehearsal_core::protocol::Tool;
use rehearsal_core::redact::Redaction;
use rehearsal_core::trace::{EntryBody, SessionEnd};
use serde_json::Value;

use super::elapsed_ms;
use super::report::CacheOutcome;
use crate::cache::{Cache, CacheEntry, is_complete};
use crate::client::{Client, ClientBuilder, ClientError, ServerResponse};
use crate::dry_run::Plan;
use crate::dry_run::call::CallEnd;
use crate::dry_run::live::{end_of_response, now_ms};
use crate::record::{Recorder, SessionRecorder};

/// What the servers of a run share.
#[derive(Debug)]
pub(super) struct RunSettings {
    pub(super) cache: Option<Arc<Cache>>,
    /// The tools whose results are not stored, as `server:tool`.
    pub(super) not_cached: BTreeSet<String>,
    pub(super) trace: Option<PathBuf>,
    pub(super) redaction: Redaction,
    pub(super) timeout: Duration,
    pub(super) plan: Plan,
}

/// A connected server.
pub(super) struct TracedServer {
    name: String,
    client: Client,
    trace: Arc<SessionTrace>,
    settings: Arc<RunSettings>,
}

/// The session of a server in the trace.
struct SessionTrace {
    recorder: Recorder,
    session: SessionRecorder,
    /// The id of the session; the results of the server have it in the cache, too.
    id: String,
    position: Mutex<TracePosition>,
}

/// How far a session is recorded.
#[derive(Default)]
struct TracePosition {
    /// The sequence number of the next entry.
    next: u64,
    /// The sequence numbers of the calls that have no result.
    calls: HashMap<RequestId, u64>,
}

/// A call that has ended.
#[derive(Debug)]
pub(super) struct FinishedCall {
    pub(super) end: CallEnd,
    pub(super) took_ms: f64,
    pub(super) cache: CacheOutcome,
}

impl SessionTrace {
    fn begin(name: &str, builder: &ClientBuilder, settings: &RunSettings) -> SessionTrace {
        let recorder = Recorder::builder()
            .redaction(settings.redaction.clone())
            .metadata("server", name)
            .metadata("plan", settings.plan.file())
            .metadata("plan_hash", settings.plan.hash());
        let recorder = match &settings.trace {
            Some(path) => recorder.trace(path),
            None => recorder,
        };
        let recorder = recorder.build();
        let session = recorder.start(builder.server_info());
        let id = session.session_id().unwrap_or_default();
        SessionTrace { recorder, session, id, position: Mutex::default() }
    }

    fn message(&self, from: Side, message: &Message) {
        // The lock keeps the order of the session and of the numbers equal.
        let mut position = self.position();
        let body = EntryBody::Message { from, channel: Channel::MAIN, message: message.clone(), event_id: None };
        self.session.put([body]);
        let sequence = position.next;
        position.next += 1;
        if let Some(request) = message.as_request().filter(|request| request.method == Method::TOOLS_CALL) {
            position.calls.insert(request.id.clone(), sequence);
        }
    }

    fn stderr(&self, line: &str) {
        let mut position = self.position();
        self.session.put([EntryBody::Stderr { line: line.to_owned() }]);
        position.next += 1;
    }

    fn position(&self) -> MutexGuard<'_, TracePosition> {
        self.position.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TracedServer {
    /// Connects to a server and lists its tools.
    pub(super) async fn connect(
        name: String,
        builder: ClientBuilder,
        settings: Arc<RunSettings>,
    ) -> Result<(TracedServer, Vec<Value>), ClientError> {
        let trace = Arc::new(SessionTrace::begin(&name, &builder, &settings));
        let (messages, lines) = (trace.clone(), trace.clone());
        let builder = builder
            .timeout(settings.timeout)
            .on_message(move |from, message| messages.message(from, message))
            .on_stderr(move |line| lines.stderr(line));
        let connected = async {
            let client = builder.connect().await?;
            let tools = client.list_tools().await?;
            Ok((client, tools))
        };
        match connected.await {
            Ok((client, tools)) => {
                let tools = tools.into_iter().map(|Tool { raw, .. }| raw).collect();
                Ok((TracedServer { name, client, trace, settings }, tools))
            }
            Err(error) => {
                let error: ClientError = error;
                trace.session.end(SessionEnd::Failed { why: error.to_string() });
                Err(error)
            }
        }
    }

    /// Calls a tool. When this returns, the result is in the cache.
    pub(super) async fn call(&self, tool: String, arguments: Value) -> FinishedCall {
        let (at_ms, started) = (now_ms(), Instant::now());
        let response = self.client.call_tool(&tool, &arguments).await;
        let took_ms = elapsed_ms(started);
        let end = end_of_response(&response);
        let cache = self.store(tool, arguments, response, (at_ms, took_ms)).await;
        FinishedCall { end, took_ms, cache }
    }

    async fn store(
        &self,
        tool: String,
        arguments: Value,
        response: Result<ServerResponse, ClientError>,
        (at_ms, took_ms): (u64, f64),
    ) -> CacheOutcome {
        let Some(cache) = self.settings.cache.clone() else { return CacheOutcome::Off };
        let Ok(response) = response else { return CacheOutcome::NoReply };
        let sequence = response.request_id().and_then(|id| self.trace.position().calls.remove(id));
        let (Some(reply), Some(sequence)) = (response.reply().filter(|reply| is_complete(reply)), sequence) else {
            return CacheOutcome::NoReply;
        };
        if self.settings.not_cached.contains(&format!("{}:{tool}", self.name)) {
            return CacheOutcome::Excluded;
        }
        let stored = if response.success() { CacheOutcome::Stored } else { CacheOutcome::StoredError };
        let entry = CacheEntry {
            server: self.name.clone(),
            tool,
            arguments,
            reply: reply.clone(),
            run: self.trace.id.clone(),
            sequence,
            at_ms,
            latency_ms: Some(took_ms),
        };
        // Another process may hold the lock of the file for a while.
        match tokio::task::spawn_blocking(move || cache.put(&[entry])).await {
            Ok(Ok(_)) => stored,
            Ok(Err(error)) => CacheOutcome::Failed(error.to_string()),
            Err(_) => CacheOutcome::Failed("the cache panicked".to_owned()),
        }
    }

    /// Closes the connection, ends the server, and appends the session to the trace. Returns whether the trace is complete.
    pub(super) async fn close(&self) -> bool {
        self.client.close().await;
        self.trace.session.end(SessionEnd::ClientClosed { status: None });
        !self.trace.recorder.summary().failed
    }
}
