//! What all the conversations of one mock share.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rehearsal_core::answer::harness::Harness;
use rehearsal_core::answer::{Answer, CallJournal, CallOutcome, Called, Change, Mock, Seal, State, World};
use rehearsal_core::json::RawJson;
use rehearsal_core::message::Method;
use rehearsal_core::script::mock::Delay;
use rehearsal_wire::{Connection, Ending};
use tokio::sync::watch;

use super::news::{News, Newsroom};
use super::source::{Answers, Source};
use super::tasks::Tasks;

/// How many calls are remembered; the oldest are forgotten.
const CALLS: usize = 10_000;

/// A mock that serves; its clones are the same one.
#[derive(Clone, Debug)]
pub struct Server(pub(super) Arc<Shared>);

/// Whoever wants to know about every answer.
type Listener = Box<dyn Fn(&Called, &Answer) + Send + Sync>;

pub(super) struct Shared {
    source: RwLock<Source>,
    state: Mutex<State>,
    seal: Seal,
    pub(super) tasks: Tasks,
    pub(super) journal: CallJournal,
    began: Instant,
    pub(super) news: Newsroom,
    listener: Option<Listener>,
    stopping: watch::Sender<bool>,
    /// The status with which the server ended on purpose.
    exiting: watch::Sender<Option<i32>>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("source", &self.source()).finish_non_exhaustive()
    }
}

impl Server {
    /// A server that nobody talks to yet.
    pub fn new(mock: Mock) -> Server {
        Server::listened(mock, None)
    }

    /// The same, and somebody is told about every answer.
    pub fn with_listener(mock: Mock, listener: impl Fn(&Called, &Answer) + Send + Sync + 'static) -> Server {
        Server::listened(mock, Some(Box::new(listener)))
    }

    fn listened(mock: Mock, listener: Option<Listener>) -> Server {
        let state = State::new(&mock);
        Server::answering(Source::Mock(Arc::new(mock)), state, listener)
    }

    /// A server that answers from something else than a mock, and tells somebody about every answer.
    pub(crate) fn from_source(
        source: Arc<dyn Answers>,
        listener: impl Fn(&Called, &Answer) + Send + Sync + 'static,
    ) -> Server {
        Server::answering(Source::Other(source), State::default(), Some(Box::new(listener)))
    }

    fn answering(source: Source, state: State, listener: Option<Listener>) -> Server {
        Server(Arc::new(Shared {
            source: RwLock::new(source),
            state: Mutex::new(state),
            seal: Seal::new(random()),
            tasks: Tasks::default(),
            journal: CallJournal::new(CALLS),
            began: Instant::now(),
            news: Newsroom::default(),
            listener,
            stopping: watch::Sender::new(false),
            exiting: watch::Sender::new(None),
        }))
    }

    /// Serves one client until either end closes the connection or the server is [stopped](Server::stop).
    pub async fn serve(&self, connection: Connection) -> Ending {
        super::serve::serve(Arc::clone(&self.0), connection).await
    }

    /// Ends every conversation: subscribers get their final result, whatever still runs is given up.
    pub fn stop(&self) {
        self.0.stopping.send_replace(true);
    }

    /// Answers from another mock from now on. Conversations go on, the state begins anew, and clients are told that
    /// the lists changed.
    pub fn replace(&self, mock: Mock) {
        let mock = Arc::new(mock);
        *self.0.state() = State::new(&mock);
        *self.0.source.write().unwrap_or_else(PoisonError::into_inner) = Source::Mock(mock);
        for change in [Change::Tools, Change::Prompts, Change::Resources] {
            self.0.news.tell(News::Changed(change));
        }
    }

    /// Begins anew: state, counts, tasks, queues and journal are as they were at the start. A test case begins like this.
    pub fn reset(&self) {
        *self.0.state() = self.0.mock().map_or_else(State::default, |mock| State::new(&mock));
        self.0.tasks.clear();
        self.0.journal.clear();
        if let Some(harness) = self.harness() {
            harness.clear();
        }
    }

    /// What was asked so far.
    pub fn calls(&self) -> Vec<Called> {
        self.0.journal.after(0)
    }

    /// The journal itself.
    pub fn journal(&self) -> &CallJournal {
        &self.0.journal
    }

    /// The queues of the universal test tool, where there is one.
    pub fn harness(&self) -> Option<Arc<Harness>> {
        self.0.mock()?.harness().cloned()
    }

    /// Returns once a fault ended the server on purpose, with its status. Conversations are over already; whoever serves
    /// shall end as abruptly.
    pub async fn exited(&self) -> i32 {
        self.0.exited().await
    }

    /// The mock that it answers from, where it answers from one.
    pub fn mock(&self) -> Option<Arc<Mock>> {
        self.0.mock()
    }
}

impl Shared {
    pub(super) fn source(&self) -> Source {
        self.source.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn mock(&self) -> Option<Arc<Mock>> {
        match self.source() {
            Source::Mock(mock) => Some(mock),
            Source::Other(_) => None,
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn world(&self) -> World<'_> {
        World { now_ms: now_ms(), seal: &self.seal }
    }

    /// Takes note of an answer to a request that came at this time.
    pub(super) fn note(
        &self,
        method: Method,
        params: Option<RawJson>,
        since: Instant,
        answer: &Answer,
        outcome: CallOutcome,
    ) {
        let called = Called {
            number: 0,
            method,
            params,
            at: since.saturating_duration_since(self.began),
            took: since.elapsed(),
            outcome,
            provenance: answer.provenance.clone(),
            fault: answer.fault.clone(),
        };
        if let Some(listener) = &self.listener {
            listener(&called, answer);
        }
        self.journal.write(called);
    }

    /// Ends the server with a status, as if it had died.
    pub(super) fn exit(&self, status: i32) {
        self.exiting.send_replace(Some(status));
    }

    /// Returns once the server ended on purpose.
    pub(super) async fn exited(&self) -> i32 {
        let status = self.exiting.subscribe().wait_for(Option::is_some).await.ok().and_then(|status| *status);
        match status {
            Some(status) => status,
            // The sender is a field of ours, so waiting cannot fail while somebody can call this.
            None => std::future::pending().await,
        }
    }

    /// Returns once the server is stopped.
    pub(super) async fn stopped(&self) {
        // The sender is a field of ours, so waiting cannot fail while somebody can call this.
        let _ = self.stopping.subscribe().wait_for(|stopping| *stopping).await;
    }
}

/// Milliseconds since 1970.
pub(super) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// Bytes that nobody can guess.
pub(crate) fn random<const LENGTH: usize>() -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes).expect("a system without randomness serves nobody");
    bytes
}

/// A time within a delay, evenly spread.
pub(super) fn within(delay: Delay) -> Duration {
    let spread = delay.to.saturating_sub(delay.from);
    if spread.is_zero() {
        return delay.from;
    }
    let share = u32::from_be_bytes(random()) as f64 / f64::from(u32::MAX);
    delay.from + spread.mul_f64(share)
}
