//! One connection with a client, or the one that all stateless requests share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use rehearsal_core::exchange::Channel;
use rehearsal_core::message::{Body, Message, Reply, RequestId};
use rehearsal_core::protocol::{Era, Revision};
use rehearsal_core::transport_fault::{AfterFault, TransportFault};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::channel_writer::{ChannelConfig, ChannelWriter, DetachOutcome, Reclaimable, ResumedStream};
use super::event_stream::{EventId, History};
use super::http_sse::PendingPosts;
use super::options::ResponseMode;
use super::registry::SessionRegistry;
use crate::{
    BoxFuture, ChannelEnd, Connection, ConnectionEnd, Event, HttpMeta, Outgoing, Receiver, SendError, Sender,
    StopOutcome,
};

/// The kind of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionKind {
    /// A session of Streamable HTTP, with an `Mcp-Session-Id`.
    Session,
    /// An HTTP+SSE stream and its POSTs.
    TwoEndpoints,
    /// All requests of the handshake era, if sessions are off.
    SharedLegacy,
    /// All requests of the stateless era.
    SharedModern,
}

/// An event in the queue of the application.
#[derive(Debug)]
pub(super) struct QueuedEvent {
    /// The event.
    pub(super) event: Event,
    /// Released when the application receives the event; only messages need one.
    pub(super) _place: Option<OwnedSemaphorePermit>,
}

/// The error of a connection that has ended.
#[derive(Debug)]
pub(super) struct SessionOver;

/// One connection with a client.
#[derive(Debug)]
pub(super) struct HttpSession {
    /// The id in the client's requests; empty for a shared connection.
    pub(super) id: String,
    /// The kind of connection.
    pub(super) kind: SessionKind,
    registry: Weak<SessionRegistry>,
    /// `None` after the connection ended.
    events: Mutex<Option<mpsc::UnboundedSender<QueuedEvent>>>,
    places: Arc<Semaphore>,
    outlets: Mutex<HashMap<Channel, Arc<ChannelWriter>>>,
    history: Option<Arc<Mutex<History>>>,
    queue: usize,
    queue_bytes: usize,
    /// The pending server requests, with their channels.
    asked: Mutex<HashMap<RequestId, Channel>>,
    last_channel: AtomicU64,
    negotiated: OnceLock<Revision>,
    ending: OnceLock<ConnectionEnd>,
    began: Instant,
    /// The number of open streams.
    streams: AtomicUsize,
    /// When the client was last active, in milliseconds since the start.
    heard: AtomicU64,
    /// The number of active HTTP+SSE requests.
    running: AtomicUsize,
    draining: AtomicBool,
    /// The HTTP+SSE POSTs that may still be refused.
    pub(super) held: PendingPosts,
}

impl HttpSession {
    /// Builds a connection and the queue of its events.
    pub(super) fn new(
        id: String,
        kind: SessionKind,
        registry: &Arc<SessionRegistry>,
    ) -> (Arc<HttpSession>, mpsc::UnboundedReceiver<QueuedEvent>) {
        let (events, receiver) = mpsc::unbounded_channel();
        let limits = &registry.options.limits;
        let history = || History::new(limits.history, limits.history_bytes, registry.history_total.clone());
        let session = HttpSession {
            id,
            kind,
            registry: Arc::downgrade(registry),
            events: Mutex::new(Some(events)),
            places: Arc::new(Semaphore::new(limits.queue.max(1))),
            outlets: Mutex::new(HashMap::new()),
            history: (kind == SessionKind::Session).then(|| Arc::new(Mutex::new(history()))),
            queue: limits.queue.max(1),
            queue_bytes: limits.queue_bytes.max(1),
            asked: Mutex::new(HashMap::new()),
            last_channel: AtomicU64::new(Channel::MAIN.0),
            negotiated: OnceLock::new(),
            ending: OnceLock::new(),
            began: Instant::now(),
            streams: AtomicUsize::new(0),
            heard: AtomicU64::new(0),
            running: AtomicUsize::new(0),
            draining: AtomicBool::new(false),
            held: PendingPosts::default(),
        };
        if matches!(kind, SessionKind::Session | SessionKind::TwoEndpoints) {
            let outlet = ChannelWriter::for_get_stream(session.terms(ResponseMode::Events));
            session.outlets().insert(Channel::MAIN, Arc::new(outlet));
        }
        (Arc::new(session), receiver)
    }

    /// Returns the negotiated version, after the handshake.
    pub(super) fn negotiated(&self) -> Option<Revision> {
        self.negotiated.get().copied()
    }

    /// Returns how the connection ended, if it has.
    pub(super) fn ending(&self) -> Option<&ConnectionEnd> {
        self.ending.get()
    }

    /// Delivers a message to the application, and waits if its queue is full.
    pub(super) async fn deliver(
        &self,
        channel: Channel,
        message: Message,
        head: Arc<HttpMeta>,
    ) -> Result<(), SessionOver> {
        self.touch();
        let place = self.places.clone().acquire_owned().await.map_err(|_| SessionOver)?;
        if self.kind == SessionKind::TwoEndpoints {
            self.running.fetch_add(requests(&message).len(), Ordering::Relaxed);
        }
        self.tell(Event::Message { channel, message, head: Some(head) }, Some(place))
    }

    fn tell(&self, event: Event, place: Option<OwnedSemaphorePermit>) -> Result<(), SessionOver> {
        let events = self.events.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        events.as_ref().ok_or(SessionOver)?.send(QueuedEvent { event, _place: place }).map_err(|_| SessionOver)
    }

    /// Returns the channel of the server request that a message responds to; [`Channel::MAIN`] for any other message.
    pub(super) fn channel_of(&self, message: &Message) -> Channel {
        let id = message.as_response().and_then(|response| response.id.as_ref());
        id.and_then(|id| self.asked().remove(id)).unwrap_or(Channel::MAIN)
    }

    /// Opens a channel for a POST with these requests.
    pub(super) fn open(&self, requests: Vec<RequestId>, answers: ResponseMode) -> Arc<ChannelWriter> {
        let channel = Channel(self.last_channel.fetch_add(1, Ordering::Relaxed) + 1);
        let outlet = Arc::new(ChannelWriter::of_post(channel, requests, self.terms(answers)));
        self.outlets().insert(channel, outlet.clone());
        // The session may have ended just before the channel was added.
        if self.ending.get().is_some() {
            outlet.end();
        }
        outlet
    }

    /// Returns an open channel; `None` after it was completed.
    pub(super) fn outlet(&self, channel: Channel) -> Option<Arc<ChannelWriter>> {
        self.outlets().get(&channel).cloned()
    }

    /// Returns the kept events after `last` of a closed channel; `None` if some are missing.
    pub(super) fn replay(&self, last: EventId) -> Option<Vec<(EventId, bytes::Bytes)>> {
        let history = self.history.as_ref()?.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let missed = history.after(last);
        match missed.first() {
            Some((first, _)) => (last.position.checked_add(1) == Some(first.position)).then_some(missed),
            None => (history.newest(last.channel) == Some(last.position)).then_some(missed),
        }
    }

    /// Resumes a stream of an open channel after `last`; `None` if some events are missing.
    pub(super) fn resume(&self, last: EventId) -> Option<(Arc<ChannelWriter>, ResumedStream)> {
        let outlet = self.outlet(last.channel)?;
        let resumed = outlet.resume(last)?;
        Some((outlet, resumed))
    }

    /// Sends a message of the application.
    pub(super) async fn send(&self, outgoing: Outgoing) -> Result<(), SendError> {
        let Outgoing { channel, message, headers } = outgoing;
        let outlet = self.reach(channel)?;
        self.note(channel, &message);
        let spent = outlet.send(&message, headers).await?;
        if spent == Reclaimable::Yes {
            self.forget(channel);
        }
        if self.kind == SessionKind::TwoEndpoints {
            self.held.release();
            self.answered(answers(&message));
        }
        Ok(())
    }

    /// Sends bytes unchanged.
    pub(super) async fn send_bytes(&self, channel: Channel, bytes: bytes::Bytes) -> Result<(), SendError> {
        if self.reach(channel)?.send_bytes(bytes).await? == Reclaimable::Yes {
            self.forget(channel);
        }
        Ok(())
    }

    /// Carries out a fault. A refusal that reports an unknown session also ends the session.
    pub(super) async fn misbehave(&self, channel: Channel, misdeed: TransportFault) -> Result<AfterFault, SendError> {
        let outlet = self.reach(channel)?;
        let misdeed = match misdeed {
            TransportFault::HttpStatus(refused) if self.kind == SessionKind::TwoEndpoints => {
                match self.held.refuse(refused) {
                    Some(refused) => TransportFault::HttpStatus(refused),
                    None => {
                        self.answered(1);
                        return Ok(AfterFault::Continue);
                    }
                }
            }
            other => other,
        };
        self.held.release();
        if let Some(answer) = misdeed.answer() {
            self.note(channel, &Message::parse(answer.clone()));
        }
        let is_answer = !matches!(misdeed, TransportFault::Noise(_) | TransportFault::Flood(_));
        let is_unknown = matches!(&misdeed, TransportFault::HttpStatus(refused) if refused.status == 404);
        if outlet.inject_fault(misdeed).await? == Reclaimable::Yes {
            self.forget(channel);
        }
        match self.kind {
            SessionKind::Session if is_unknown => self.end(ConnectionEnd::Closed),
            SessionKind::TwoEndpoints if is_answer => self.answered(1),
            SessionKind::Session
            | SessionKind::TwoEndpoints
            | SessionKind::SharedLegacy
            | SessionKind::SharedModern => {}
        }
        Ok(AfterFault::Continue)
    }

    fn answered(&self, answers: usize) {
        let _ = self.running.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| Some(n.saturating_sub(answers)));
        self.end_if_drained();
    }

    fn reach(&self, channel: Channel) -> Result<Arc<ChannelWriter>, SendError> {
        match (self.ending.get(), self.outlet(channel)) {
            (Some(_), _) => Err(SendError::Closed),
            (None, Some(outlet)) => Ok(outlet),
            (None, None) => Err(SendError::NoChannel),
        }
    }

    /// Updates the state from a message of the application: pending server requests, the negotiated version.
    fn note(&self, channel: Channel, message: &Message) {
        match message.body() {
            Body::Request(request) if channel != Channel::MAIN => {
                self.asked().insert(request.id.clone(), channel);
            }
            Body::Batch(messages) => messages.iter().for_each(|message| self.note(channel, message)),
            // The first POST of a session is its `initialize`.
            Body::Response(response) if self.kind == SessionKind::Session && channel == Channel(1) => {
                if let Reply::Result(result) = &response.reply {
                    let version = result.field("protocolVersion").and_then(|version| version.text());
                    if let Some(revision) = version.and_then(|version| version.parse().ok()) {
                        let _ = self.negotiated.set(revision);
                    }
                }
            }
            Body::Request(_) | Body::Response(_) | Body::Notification(_) | Body::Garbled(_) => {}
        }
    }

    /// Closes the stream of a channel. In a session the channel stays open, and the client may resume after `retry`.
    pub(super) fn close_channel(&self, channel: Channel, retry: Option<Duration>) {
        let Some(outlet) = self.outlet(channel) else { return };
        match self.kind {
            SessionKind::Session => outlet.close_stream(retry),
            SessionKind::TwoEndpoints => self.end(ConnectionEnd::Closed),
            SessionKind::SharedLegacy | SessionKind::SharedModern => {
                outlet.end();
                self.forget(channel);
            }
        }
    }

    /// Closes the channel of a POST that the client cancelled before its response.
    pub(super) fn abandoned(&self, outlet: &ChannelWriter) -> DetachOutcome {
        // Without an event id the client cannot resume, so the response would never be read.
        let left = outlet.abandon();
        self.forget(outlet.channel);
        if self.kind == SessionKind::Session && outlet.channel == Channel(1) && self.negotiated().is_none() {
            // The client never received the id of this session.
            self.end(ConnectionEnd::PeerClosed);
        }
        left
    }

    /// Handles the end of a stream.
    pub(super) fn left(&self, outlet: &ChannelWriter, reader: u64) {
        self.touch();
        match (outlet.leave(reader), self.kind) {
            (DetachOutcome::Superseded, _) => {}
            (DetachOutcome::Finished | DetachOutcome::Unfinished, SessionKind::TwoEndpoints) => {
                self.end(ConnectionEnd::PeerClosed)
            }
            (DetachOutcome::Finished, _) => self.forget(outlet.channel),
            (DetachOutcome::Unfinished, SessionKind::Session) => {}
            (DetachOutcome::Unfinished, SessionKind::SharedLegacy | SessionKind::SharedModern) => {
                outlet.end();
                self.forget(outlet.channel);
                self.client_disconnected(outlet.channel);
            }
        }
    }

    /// Reports that a client disconnected, if that cancels its request.
    pub(super) fn client_disconnected(&self, channel: Channel) {
        if self.kind == SessionKind::SharedModern {
            let end = ChannelEnd::Broken { why: "the client closed the connection before the answer".to_owned() };
            // An error means that the application dropped the connection.
            let _ = self.tell(Event::ChannelEnded { channel, end }, None);
        }
    }

    /// Removes a completed channel.
    pub(super) fn forget(&self, channel: Channel) {
        if channel != Channel::MAIN {
            self.outlets().remove(&channel);
            let mut asked = self.asked();
            if !asked.is_empty() {
                asked.retain(|_, other| *other != channel);
            }
        }
    }

    /// Ends the connection after the queued messages. Only the first ending counts.
    pub(super) fn end(&self, ending: ConnectionEnd) {
        if self.ending.set(ending).is_err() {
            return;
        }
        self.held.release();
        self.events.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        self.places.close();
        let outlets = std::mem::take(&mut *self.outlets());
        outlets.values().for_each(|outlet| outlet.end());
        if let Some(registry) = self.registry.upgrade() {
            registry.remove(self);
        }
    }

    /// Closes the GET stream or the HTTP+SSE stream, because the server shuts down.
    pub(super) fn drain(&self) {
        match self.kind {
            SessionKind::Session => self.close_channel(Channel::MAIN, None),
            SessionKind::TwoEndpoints => {
                self.draining.store(true, Ordering::SeqCst);
                self.end_if_drained();
            }
            SessionKind::SharedLegacy | SessionKind::SharedModern => {}
        }
    }

    fn end_if_drained(&self) {
        if self.draining.load(Ordering::SeqCst) && self.running.load(Ordering::SeqCst) == 0 {
            self.end(ConnectionEnd::Closed);
        }
    }

    fn touch(&self) {
        let now = self.began.elapsed().as_millis() as u64;
        self.heard.fetch_max(now, Ordering::Relaxed);
    }

    /// Returns the time since the last activity; zero while a stream is open.
    pub(super) fn idle(&self) -> Duration {
        match self.streams.load(Ordering::Relaxed) {
            0 => self.began.elapsed().saturating_sub(Duration::from_millis(self.heard.load(Ordering::Relaxed))),
            _ => Duration::ZERO,
        }
    }

    fn terms(&self, answers: ResponseMode) -> ChannelConfig {
        let era = match self.kind {
            SessionKind::Session | SessionKind::TwoEndpoints | SessionKind::SharedLegacy => Era::Legacy,
            SessionKind::SharedModern => Era::Modern,
        };
        ChannelConfig { era, answers, history: self.history.clone(), queue: self.queue, queue_bytes: self.queue_bytes }
    }

    fn outlets(&self) -> MutexGuard<'_, HashMap<Channel, Arc<ChannelWriter>>> {
        self.outlets.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn asked(&self) -> MutexGuard<'_, HashMap<RequestId, Channel>> {
        self.asked.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Marks a session as active while a request is being handled.
#[derive(Debug)]
pub(super) struct ActivityGuard(Arc<HttpSession>);

impl ActivityGuard {
    /// Starts to mark the session as active.
    pub(super) fn new(session: &Arc<HttpSession>) -> ActivityGuard {
        session.streams.fetch_add(1, Ordering::Relaxed);
        ActivityGuard(session.clone())
    }
}

impl Drop for ActivityGuard {
    fn drop(&mut self) {
        self.0.touch();
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns the ids of the requests in a message.
pub(super) fn requests(message: &Message) -> Vec<RequestId> {
    match message.body() {
        Body::Request(request) => vec![request.id.clone()],
        Body::Batch(messages) => messages.iter().flat_map(requests).collect(),
        Body::Notification(_) | Body::Response(_) | Body::Garbled(_) => Vec::new(),
    }
}

/// Returns the number of responses in a message.
fn answers(message: &Message) -> usize {
    match message.body() {
        Body::Response(_) => 1,
        Body::Batch(messages) => messages.iter().map(answers).sum(),
        Body::Request(_) | Body::Notification(_) | Body::Garbled(_) => 0,
    }
}

/// Builds the connection for the application.
pub(super) fn connection(session: Arc<HttpSession>, events: mpsc::UnboundedReceiver<QueuedEvent>) -> Connection {
    let open = Arc::new(OpenGuard(session));
    Connection {
        sender: Arc::new(SessionSender { open: open.clone() }),
        receiver: Box::new(SessionReceiver { open, events }),
    }
}

/// Ends the connection when both halves are dropped.
#[derive(Debug)]
struct OpenGuard(Arc<HttpSession>);

impl Drop for OpenGuard {
    fn drop(&mut self) {
        self.0.end(ConnectionEnd::Closed);
    }
}

#[derive(Debug)]
struct SessionSender {
    open: Arc<OpenGuard>,
}

impl Sender for SessionSender {
    /// A server request that belongs to no client request goes to the GET stream.
    fn open_channel(&self) -> Channel {
        Channel::MAIN
    }

    fn send(&self, outgoing: Outgoing) -> BoxFuture<'_, Result<(), SendError>> {
        Box::pin(self.open.0.send(outgoing))
    }

    fn send_bytes(&self, channel: Channel, bytes: Bytes) -> BoxFuture<'_, Result<(), SendError>> {
        Box::pin(self.open.0.send_bytes(channel, bytes))
    }

    fn inject_fault(&self, channel: Channel, misdeed: TransportFault) -> BoxFuture<'_, Result<AfterFault, SendError>> {
        Box::pin(self.open.0.misbehave(channel, misdeed))
    }

    fn close_channel(&self, channel: Channel) {
        self.open.0.close_channel(channel, None);
    }

    fn close_channel_for(&self, channel: Channel, retry: Duration) {
        self.open.0.close_channel(channel, Some(retry));
    }

    fn abort(&self) {
        self.open.0.end(ConnectionEnd::Closed);
    }

    fn close(&self) -> BoxFuture<'_, StopOutcome> {
        self.abort();
        Box::pin(async { StopOutcome::AlreadyExited })
    }
}

#[derive(Debug)]
struct SessionReceiver {
    open: Arc<OpenGuard>,
    events: mpsc::UnboundedReceiver<QueuedEvent>,
}

impl Receiver for SessionReceiver {
    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<Event> {
        self.events.poll_recv(context).map(|queued| match queued {
            Some(queued) => queued.event,
            None => Event::Ended(self.open.0.ending().cloned().unwrap_or(ConnectionEnd::Closed)),
        })
    }
}
