//! What all connections of one server share.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rehearsal_core::answer::{
    Answer, Chain, ChangeNotice, Environment, LoggedOutcome, LoggedRequest, RequestLog, StateSigner,
};
use rehearsal_core::json::RawJson;
use rehearsal_core::message::Method;
use rehearsal_core::script::mock::Delay;
use rehearsal_wire::{Connection, ConnectionEnd};
use tokio::sync::watch;

use super::change_broadcast::{BroadcastEvent, ChangeBroadcast};
use super::handler::Handler;
use super::tasks::TaskTable;
use super::upstream::Upstream;

/// How many requests are logged; beyond it the oldest are dropped.
const MAX_LOGGED: usize = 10_000;

/// A server that answers from a chain. Its clones are the same server.
#[derive(Clone, Debug)]
pub struct Server(pub(super) Arc<ServerState>);

/// Sees every answer of a server, also the refusals of requests that no version has.
pub trait Observer: Send + Sync {
    /// A request was answered.
    fn answered(&self, request: &LoggedRequest, answer: &Answer);
}

impl<F: Fn(&LoggedRequest, &Answer) + Send + Sync> Observer for F {
    fn answered(&self, request: &LoggedRequest, answer: &Answer) {
        self(request, answer);
    }
}

/// What a server does with a request that no source of its chain answers.
#[derive(Clone, Debug, Default)]
pub enum Otherwise {
    /// It refuses the request, with the closest answer.
    #[default]
    Refuse,
    /// It forwards the request to a live server.
    Forward(Arc<Upstream>),
}

impl Otherwise {
    pub(super) fn upstream(&self) -> Option<&Arc<Upstream>> {
        match self {
            Otherwise::Refuse => None,
            Otherwise::Forward(upstream) => Some(upstream),
        }
    }
}

/// What a server has beside its chain.
#[derive(Default)]
pub struct ServerOptions {
    /// What happens to a request that no source answers.
    pub otherwise: Otherwise,
    /// Tools that are carried out rather than answered.
    pub handlers: Vec<Arc<dyn Handler>>,
    /// The observers of every answer.
    pub observers: Vec<Arc<dyn Observer>>,
}

pub(super) struct ServerState {
    chain: RwLock<Arc<Chain>>,
    pub(super) options: ServerOptions,
    signer: StateSigner,
    pub(super) tasks: TaskTable,
    pub(super) log: RequestLog,
    started: Instant,
    pub(super) changes: ChangeBroadcast,
    stopping: watch::Sender<bool>,
    /// The status of an injected `exit` fault.
    exiting: watch::Sender<Option<i32>>,
}

impl fmt::Debug for ServerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerState").field("chain", &self.chain()).finish_non_exhaustive()
    }
}

impl Server {
    /// A server that answers from a chain, and refuses what the chain does not answer.
    pub fn new(chain: Chain) -> Server {
        Server::with_options(chain, ServerOptions::default())
    }

    /// A server that answers from a chain, with handlers, observers or a live server behind it.
    pub fn with_options(chain: Chain, options: ServerOptions) -> Server {
        Server(Arc::new(ServerState {
            chain: RwLock::new(Arc::new(offering(chain, &options))),
            options,
            signer: StateSigner::new(random()),
            tasks: TaskTable::default(),
            log: RequestLog::new(MAX_LOGGED),
            started: Instant::now(),
            changes: ChangeBroadcast::default(),
            stopping: watch::Sender::new(false),
            exiting: watch::Sender::new(None),
        }))
    }

    /// Serves one client until either end closes the connection or the server is [stopped](Server::stop).
    pub async fn serve(&self, connection: Connection) -> ConnectionEnd {
        super::receive::serve(Arc::clone(&self.0), connection).await
    }

    /// Closes every connection. Subscriptions end with their result, and active requests are abandoned.
    pub fn stop(&self) {
        self.0.stopping.send_replace(true);
    }

    /// Answers from another chain from now on. Connections stay open, and clients are notified that the lists changed.
    pub fn replace(&self, chain: Chain) {
        let chain = Arc::new(offering(chain, &self.0.options));
        *self.0.chain.write().unwrap_or_else(PoisonError::into_inner) = chain;
        for change in [ChangeNotice::Tools, ChangeNotice::Prompts, ChangeNotice::Resources] {
            self.0.changes.send(BroadcastEvent::Change(change));
        }
    }

    /// Returns to the state of the start: the state of the chain, the tasks and the request log.
    pub fn reset(&self) {
        self.0.chain().reset();
        self.0.tasks.clear();
        self.0.log.clear();
    }

    /// The requests so far; of more than 10,000 the latest.
    pub fn calls(&self) -> Vec<LoggedRequest> {
        self.0.log.after(0)
    }

    /// The request log.
    pub fn log(&self) -> &RequestLog {
        &self.0.log
    }

    /// The chain that it answers from.
    pub fn chain(&self) -> Arc<Chain> {
        self.0.chain()
    }

    /// Returns once an injected `exit` fault ended the server, with its status. The caller must end just as abruptly.
    pub async fn exited(&self) -> i32 {
        self.0.exited().await
    }

    /// Disconnects from the live server, if there is one.
    pub async fn close_upstream(&self) -> std::io::Result<()> {
        match &self.0.options.otherwise {
            Otherwise::Forward(upstream) => upstream.close().await,
            Otherwise::Refuse => Ok(()),
        }
    }
}

fn offering(chain: Chain, options: &ServerOptions) -> Chain {
    options.handlers.iter().fold(chain, |chain, handler| chain.offering(handler.surface()))
}

impl ServerState {
    pub(super) fn chain(&self) -> Arc<Chain> {
        Arc::clone(&self.chain.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn environment(&self) -> Environment<'_> {
        Environment { now_ms: now_ms(), signer: &self.signer }
    }

    /// Logs an answer, and shows it to the observers.
    pub(super) fn log(
        &self,
        method: Method,
        params: Option<RawJson>,
        received: Instant,
        answer: &Answer,
        outcome: LoggedOutcome,
    ) {
        self.log.write(self.observe(method, params, received, answer, outcome));
    }

    /// Shows an answer to the observers. A refusal of something that is no request in any version is not logged.
    pub(super) fn observe(
        &self,
        method: Method,
        params: Option<RawJson>,
        received: Instant,
        answer: &Answer,
        outcome: LoggedOutcome,
    ) -> LoggedRequest {
        let request = LoggedRequest {
            number: 0,
            method,
            params,
            at: received.saturating_duration_since(self.started),
            took: received.elapsed(),
            outcome,
            provenance: answer.provenance.clone(),
            fault: answer.fault.clone(),
        };
        self.options.observers.iter().for_each(|observer| observer.answered(&request, answer));
        request
    }

    /// Ends the server with a status, as if its process had crashed.
    pub(super) fn exit(&self, status: i32) {
        self.exiting.send_replace(Some(status));
    }

    /// Returns once a fault ended the server.
    pub(super) async fn exited(&self) -> i32 {
        let status = self.exiting.subscribe().wait_for(Option::is_some).await.ok().and_then(|status| *status);
        match status {
            Some(status) => status,
            // The sender is a field of this value, so waiting cannot fail here.
            None => std::future::pending().await,
        }
    }

    /// Returns once the server is stopped.
    pub(super) async fn stopped(&self) {
        // The sender is a field of this value, so waiting cannot fail here.
        let _ = self.stopping.subscribe().wait_for(|stopping| *stopping).await;
    }
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// Random bytes from the operating system.
pub(crate) fn random<const LENGTH: usize>() -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes).expect("without a source of randomness no server can start safely");
    bytes
}

/// A time within a delay, evenly distributed.
pub(super) fn within(delay: Delay) -> Duration {
    let spread = delay.to.saturating_sub(delay.from);
    if spread.is_zero() {
        return delay.from;
    }
    let share = u32::from_be_bytes(random()) as f64 / f64::from(u32::MAX);
    delay.from + spread.mul_f64(share)
}
