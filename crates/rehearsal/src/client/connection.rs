//! The connection to one server: its messages, pending requests and answers.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::HeaderMap;
use rehearsal_core::exchange::{
    Channel, Exchange, ExchangeKey, ExchangeLimit, Pairing, PairingEvent, Side, TimedMessage, Unpaired,
};
use rehearsal_core::json::RawJson;
use rehearsal_core::message::{Body, GarbledReason, Message, Method, Request};
use rehearsal_wire::{ChannelEnd, Connection, ConnectionEnd, Event, Outgoing, Receiver, SendError, Sender};
use tokio::sync::{Notify, watch};
use tokio::task::{JoinHandle, JoinSet};

use super::error::{Evidence, NoiseSource};
use super::handlers::{ClientHandlers, ServerRequest};
use super::pending_request::{CancelMode, PendingRequest, RequestOutcome, ResponseSlot, UnsentRequest};

/// Limits of the notifications of one request, and of unread ones.
const NOTIFICATIONS: ExchangeLimit = ExchangeLimit { notifications: 10_000, bytes: 64 * 1024 * 1024 };
/// At most this many server requests are answered at once; further ones wait.
const MAX_OPEN_SERVER_REQUESTS: usize = 256;
/// How long the server may take to read the response to its request.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// Time for a server to request the roots, and after each response to apply them. Servers do not report when they have.
const ROOTS_PAUSE: Duration = Duration::from_millis(100);
/// The longest wait for a server that requests the roots again and again.
const ROOTS_TIMEOUT: Duration = Duration::from_secs(2);
/// How many lines of noise and how many stray answers are kept as evidence.
const EVIDENCE_LIMIT: usize = 20;
/// Maximum number of characters of each.
const EVIDENCE_WIDTH: usize = 300;

/// Receives every message of either side, with its sender.
pub(super) type MessageObserver = Arc<dyn Fn(Side, &Message) + Send + Sync>;
/// Receives the notifications that belong to one request.
pub(super) type NotificationObserver = Arc<dyn Fn(&Message) + Send + Sync>;

/// Redacts a text of the server.
pub(super) type RedactText = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// A connection with one server.
pub(super) struct ClientConnection {
    pub(super) sender: Arc<dyn Sender>,
    pub(super) started: Instant,
    next_id: AtomicI64,
    handlers: ClientHandlers,
    observer: Option<MessageObserver>,
    redact: Option<RedactText>,
    state: Mutex<ClientConnectionState>,
    /// Notified when a message arrives that belongs to no request, and when the connection ends.
    arrived: Notify,
    /// Changes each time a response to `roots/list` was written.
    roots_sent: watch::Sender<()>,
}

pub(super) struct ClientConnectionState {
    pub(super) pairing: Pairing<Option<WaitingRequest>>,
    inbox: VecDeque<Message>,
    inbox_bytes: usize,
    noise: VecDeque<String>,
    strays: VecDeque<String>,
    pub(super) ended: Option<ConnectionEnd>,
}

pub(super) struct WaitingRequest {
    slot: Arc<ResponseSlot>,
    watch: Option<NotificationObserver>,
}

/// An answered request.
#[derive(Debug)]
pub(super) struct CompletedRequest {
    pub(super) exchange: Box<Exchange>,
    /// The HTTP status of the response; `None` without HTTP.
    pub(super) status: Option<u16>,
}

/// A request to send.
pub(super) struct OutgoingRequest {
    pub(super) message: Message,
    pub(super) token: Option<RawJson>,
    /// Boxed, because most requests have none.
    pub(super) headers: Option<Box<HeaderMap>>,
    pub(super) limit: Duration,
    pub(super) watch: Option<NotificationObserver>,
    pub(super) cancel_mode: CancelMode,
}

impl ClientConnection {
    /// Starts to read.
    pub(super) fn start(
        connection: Connection,
        handlers: ClientHandlers,
        observer: Option<MessageObserver>,
        redact: Option<RedactText>,
    ) -> (Arc<ClientConnection>, JoinHandle<()>) {
        let Connection { sender, receiver } = connection;
        let connection = Arc::new(ClientConnection {
            sender,
            started: Instant::now(),
            next_id: AtomicI64::new(1),
            handlers,
            observer,
            redact,
            state: Mutex::new(ClientConnectionState {
                pairing: Pairing::new(NOTIFICATIONS),
                inbox: VecDeque::new(),
                inbox_bytes: 0,
                noise: VecDeque::new(),
                strays: VecDeque::new(),
                ended: None,
            }),
            arrived: Notify::new(),
            roots_sent: watch::Sender::new(()),
        });
        let reading = tokio::spawn(read(connection.clone(), receiver));
        (connection, reading)
    }

    /// An id that this connection has not used.
    pub(super) fn next_id(&self) -> i64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// The evidence so far.
    pub(super) fn evidence(&self) -> Box<Evidence> {
        let state = self.state();
        Box::new(Evidence {
            exit_status: self.sender.exit_status(),
            last_stderr: self.sender.last_stderr(),
            noise: state.noise.iter().cloned().collect(),
            noise_on: if self.sender.takes_headers() { NoiseSource::Http } else { NoiseSource::Stdout },
            strays: state.strays.iter().cloned().collect(),
            trouble: None,
        })
    }

    /// Begins an exchange. The request is sent at once where the transport takes it without waiting, and otherwise by
    /// [`PendingRequest::started`] or [`PendingRequest::answered`].
    #[inline]
    pub(super) fn begin(self: &Arc<Self>, request: OutgoingRequest) -> PendingRequest {
        let OutgoingRequest { message, token, headers, limit, watch, cancel_mode } = request;
        let (id, method) = match message.body() {
            Body::Request(Request { id, method, .. }) => (id.clone(), method.clone()),
            _ => unreachable!("an outgoing request has a request as its body"),
        };
        let channel = self.sender.open_channel();
        let key = ExchangeKey { channel, asker: Side::Client, id };
        let now = tokio::time::Instant::now();
        let at = now.into_std().duration_since(self.started);
        let slot = ResponseSlot::new();
        let raw = message.raw().clone();
        self.observe(Side::Client, &message);
        let ended = {
            let mut state = self.state();
            if state.ended.is_none() {
                let waiter = WaitingRequest { slot: slot.clone(), watch };
                state.pairing.open(key.clone(), TimedMessage { at, message }, token.as_ref(), Some(waiter));
            }
            state.ended.clone()
        };
        let unsent = match ended {
            Some(ending) => {
                slot.settle(RequestOutcome::Ended(ending));
                None
            }
            None => match headers.is_none().then(|| self.sender.try_send(channel, &raw)).flatten() {
                Some(Ok(())) => None,
                Some(Err(error)) => Some(UnsentRequest::Refused(error)),
                None => self.state().pairing.request(&key).map(|request| {
                    let headers = headers.map(|headers| *headers).unwrap_or_default();
                    UnsentRequest::Waiting(Box::new(Outgoing { channel, message: request.message.clone(), headers }))
                }),
            },
        };
        let deadline = now.checked_add(limit);
        PendingRequest::new(self.clone(), key, method, unsent, slot, limit, deadline, cancel_mode)
    }

    /// Sends a message that has no response: a notification or a response.
    pub(super) async fn send_notification(&self, channel: Channel, message: Message) -> Result<(), SendError> {
        self.observe(Side::Client, &message);
        self.sender.send(Outgoing::new(channel, message)).await
    }

    /// When a user last answered a server request.
    pub(super) fn last_user_activity(&self) -> Option<tokio::time::Instant> {
        self.handlers.last_user_activity()
    }

    /// Awaits `work` for at most `limit`, which starts again while the user logs in.
    pub(super) async fn in_time<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
        let mut work = std::pin::pin!(work);
        loop {
            match tokio::time::timeout(limit, &mut work).await {
                Ok(done) => return Some(done),
                Err(_) if self.sender.is_waiting_for_login() => {}
                Err(_) => return None,
            }
        }
    }

    /// Returns the first unread notification that `wanted` accepts; waits for it if needed. `Err` is the end.
    pub(super) async fn notification(&self, wanted: impl Fn(&Message) -> bool) -> Result<Message, ConnectionEnd> {
        loop {
            let arrived = self.arrived.notified();
            {
                let mut state = self.state();
                if let Some(at) = state.inbox.iter().position(&wanted) {
                    let found = state.inbox.remove(at).ok_or(ConnectionEnd::PeerClosed)?;
                    state.inbox_bytes -= found.raw().len();
                    return Ok(found);
                }
                if let Some(ending) = &state.ended {
                    return Err(ending.clone());
                }
            }
            arrived.await;
        }
    }

    /// Takes all unread notifications.
    pub(super) fn take_notifications(&self) -> Vec<Message> {
        let mut state = self.state();
        state.inbox_bytes = 0;
        state.inbox.drain(..).collect()
    }

    pub(super) fn state(&self) -> MutexGuard<'_, ClientConnectionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn observe(&self, from: Side, message: &Message) {
        if let Some(observer) = &self.observer {
            catch_panic(|| observer(from, message));
        }
    }

    /// Processes a message of the server. The key of a server request is added to `requests`.
    fn handle_message(&self, channel: Channel, message: Message, status: Option<u16>, requests: &mut Vec<ExchangeKey>) {
        self.observe(Side::Server, &message);
        let at = self.started.elapsed();
        let mut state = self.state();
        if let Some(repeated) = echoed_request(&state.pairing, channel, &message) {
            let waiter = state.pairing.abandon(&repeated).and_then(|(_, waiter)| waiter);
            drop(state);
            return waiter.into_iter().for_each(|waiter| waiter.slot.settle(RequestOutcome::Echoed));
        }
        let step = state.pairing.step(Side::Server, channel, at, message);
        drop(state);
        self.take(step, status, requests);
    }

    fn take(&self, step: PairingEvent<Option<WaitingRequest>>, status: Option<u16>, requests: &mut Vec<ExchangeKey>) {
        match step {
            PairingEvent::Completed { exchange, tag: Some(waiter) } => {
                waiter.slot.settle(RequestOutcome::Completed(CompletedRequest { exchange, status }));
            }
            PairingEvent::Attached { key } => {
                let mut state = self.state();
                let notification = state.pairing.last_notification(&key);
                let watch = state.pairing.tag_mut(&key).and_then(|waiter| waiter.as_ref()?.watch.clone());
                drop(state);
                if let (Some(watch), Some(notification)) = (watch, notification) {
                    catch_panic(|| watch(&notification));
                }
            }
            PairingEvent::Opened { key, .. } => requests.push(key),
            PairingEvent::Unpaired { message, why } => self.keep(message.message, why),
            PairingEvent::Batch(steps) => steps.into_iter().for_each(|step| self.take(step, status, requests)),
            PairingEvent::Completed { tag: None, .. } | PairingEvent::Cancelled { .. } => {}
        }
    }

    /// Answers a server request.
    async fn answer(self: Arc<Self>, key: ExchangeKey) {
        let server_request = self.state().pairing.request(&key).and_then(|request| {
            let request = request.message.as_request()?;
            let params = request.params.as_ref().and_then(|params| params.value().ok()).unwrap_or_default();
            Some(ServerRequest { method: request.method.clone(), params })
        });
        let Some(server_request) = server_request else { return };
        let message = Message::reply(key.id.clone(), &self.handlers.handle(&server_request).reply().await);
        let at = self.started.elapsed();
        self.state().pairing.step(Side::Client, key.channel, at, message.clone());
        // A server that has exited or does not read gets no response. The reader reports that to the pending requests.
        let _ = tokio::time::timeout(ANSWER_LIMIT, self.send_notification(key.channel, message)).await;
        if server_request.method == Method::ROOTS_LIST {
            self.roots_sent.send_replace(());
        }
    }

    /// Waits until the server sent no `roots/list` for a pause: it has had time to apply the roots.
    pub(super) async fn roots_applied(&self) {
        let mut sent = self.roots_sent.subscribe();
        let quiet = async { while let Ok(Ok(())) = tokio::time::timeout(ROOTS_PAUSE, sent.changed()).await {} };
        let _ = tokio::time::timeout(ROOTS_TIMEOUT, quiet).await;
    }

    /// The beginning of a text of the server, as evidence. Secrets are redacted before it is cut: a secret that is cut
    /// is no longer recognized.
    pub(super) fn shown(&self, text: &str) -> String {
        match &self.redact {
            Some(redact) => redact(text).chars().take(EVIDENCE_WIDTH).collect(),
            None => text.chars().take(EVIDENCE_WIDTH).collect(),
        }
    }

    fn keep(&self, message: Message, why: Unpaired) {
        let mut state = self.state();
        let (ring, item) = match why {
            Unpaired::Notification => {
                state.inbox_bytes += message.raw().len();
                state.inbox.push_back(message);
                while state.inbox.len() > NOTIFICATIONS.notifications || state.inbox_bytes > NOTIFICATIONS.bytes {
                    let Some(oldest) = state.inbox.pop_front() else { break };
                    state.inbox_bytes -= oldest.raw().len();
                }
                drop(state);
                self.arrived.notify_waiters();
                return;
            }
            Unpaired::Garbled if message.text().trim().is_empty() => return,
            Unpaired::Garbled => {
                let reason = message.as_garbled().map(|garbled| &garbled.reason);
                let plain = matches!(reason, None | Some(GarbledReason::NotJson { .. }));
                let why = reason.filter(|_| !plain).map(|reason| format!(" ({reason})")).unwrap_or_default();
                (&mut state.noise, format!("{}{why}", self.shown(&message.text())))
            }
            Unpaired::UnexpectedResponse => (&mut state.strays, self.shown(&message.text())),
        };
        push(ring, item);
    }

    fn channel_ended(&self, channel: Channel, end: &ChannelEnd) {
        if channel == Channel::MAIN {
            if let ChannelEnd::Refused { head, body } = end {
                let status = head.status.map_or(0, |status| status.as_u16());
                let body = self.shown(&String::from_utf8_lossy(body));
                push(
                    &mut self.state().noise,
                    format!("HTTP status {status} for a message that needs no response: {body}"),
                );
            }
            return;
        }
        let lost = self.state().pairing.abandon_channel(channel);
        for waiter in lost.into_iter().filter_map(|(_, waiter)| waiter) {
            waiter.slot.settle(RequestOutcome::ChannelEnded(end.clone()));
        }
    }

    /// Reports the end to every pending request. Only the first end is kept.
    pub(super) fn ended(&self, ending: &ConnectionEnd) {
        let lost = {
            let mut state = self.state();
            state.ended.get_or_insert_with(|| ending.clone());
            state.pairing.finish()
        };
        for waiter in lost.into_iter().filter_map(|(_, waiter)| waiter) {
            waiter.slot.settle(RequestOutcome::Ended(ending.clone()));
        }
        self.arrived.notify_waiters();
    }
}

fn push(ring: &mut VecDeque<String>, item: String) {
    if ring.len() == EVIDENCE_LIMIT {
        ring.pop_front();
    }
    ring.push_back(item);
}

/// The key of a pending request that the server sends back unchanged, as `cat` does.
fn echoed_request(
    pairing: &Pairing<Option<WaitingRequest>>,
    channel: Channel,
    message: &Message,
) -> Option<ExchangeKey> {
    let key = ExchangeKey { channel, asker: Side::Client, id: message.as_request()?.id.clone() };
    let ours = pairing.request(&key)?.message.raw();
    (message.raw().trim_ascii_end() == &ours[..]).then_some(key)
}

/// Calls a function of the user. If it panics, the panic is printed as usual, and the connection continues.
fn catch_panic(call: impl FnOnce()) {
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call));
}

async fn read(connection: Arc<ClientConnection>, mut receiver: Box<dyn Receiver>) {
    // Aborted with this task, so that an answer that is still computed does not keep the connection alive.
    let mut answering = JoinSet::new();
    let mut requests = Vec::new();
    loop {
        match receiver.receive().await {
            Event::Message { channel, message, head } => {
                let status = head.and_then(|head| head.status).map(|status| status.as_u16());
                connection.handle_message(channel, message, status, &mut requests);
            }
            Event::ChannelEnded { channel, end } => connection.channel_ended(channel, &end),
            Event::Ended(ending) => return connection.ended(&ending),
        }
        for key in requests.drain(..) {
            while answering.try_join_next().is_some() {}
            if answering.len() >= MAX_OPEN_SERVER_REQUESTS {
                answering.join_next().await;
            }
            answering.spawn(connection.clone().answer(key));
        }
    }
}

impl fmt::Debug for ClientConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientConnection").field("sender", &self.sender).finish_non_exhaustive()
    }
}
