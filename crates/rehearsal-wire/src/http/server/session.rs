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
use super::sessions::SessionRegistry;
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
    HttpSse,
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
    pub(super) _slot: Option<OwnedSemaphorePermit>,
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
    queue_slots: Arc<Semaphore>,
    writers: Mutex<HashMap<Channel, Arc<ChannelWriter>>>,
    history: Option<Arc<Mutex<History>>>,
    queue: usize,
    queue_bytes: usize,
    /// The pending server requests, with their channels.
    server_requests: Mutex<HashMap<RequestId, Channel>>,
    last_channel: AtomicU64,
    negotiated: OnceLock<Revision>,
    ending: OnceLock<ConnectionEnd>,
    began: Instant,
    /// The number of open streams.
    streams: AtomicUsize,
    /// When the client was last active, in milliseconds since the start.
    last_active: AtomicU64,
    /// The number of active HTTP+SSE requests.
    active_requests: AtomicUsize,
    draining: AtomicBool,
    /// The HTTP+SSE POSTs that may still be refused.
    pub(super) pending_posts: PendingPosts,
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
            queue_slots: Arc::new(Semaphore::new(limits.queue.max(1))),
            writers: Mutex::new(HashMap::new()),
            history: (kind == SessionKind::Session).then(|| Arc::new(Mutex::new(history()))),
            queue: limits.queue.max(1),
            queue_bytes: limits.queue_bytes.max(1),
            server_requests: Mutex::new(HashMap::new()),
            last_channel: AtomicU64::new(Channel::MAIN.0),
            negotiated: OnceLock::new(),
            ending: OnceLock::new(),
            began: Instant::now(),
            streams: AtomicUsize::new(0),
            last_active: AtomicU64::new(0),
            active_requests: AtomicUsize::new(0),
            draining: AtomicBool::new(false),
            pending_posts: PendingPosts::default(),
        };
        if matches!(kind, SessionKind::Session | SessionKind::HttpSse) {
            let writer = ChannelWriter::for_get_stream(session.config(ResponseMode::Events));
            session.writers().insert(Channel::MAIN, Arc::new(writer));
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
        self.note_activity();
        let slot = self.queue_slots.clone().acquire_owned().await.map_err(|_| SessionOver)?;
        if self.kind == SessionKind::HttpSse {
            self.active_requests.fetch_add(request_ids(&message).len(), Ordering::Relaxed);
        }
        self.queue_event(Event::Message { channel, message, head: Some(head) }, Some(slot))
    }

    fn queue_event(&self, event: Event, slot: Option<OwnedSemaphorePermit>) -> Result<(), SessionOver> {
        let events = self.events.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        events.as_ref().ok_or(SessionOver)?.send(QueuedEvent { event, _slot: slot }).map_err(|_| SessionOver)
    }

    /// Returns the channel of the server request that a message responds to; [`Channel::MAIN`] for any other message.
    pub(super) fn channel_of(&self, message: &Message) -> Channel {
        let id = message.as_response().and_then(|response| response.id.as_ref());
        id.and_then(|id| self.server_requests().remove(id)).unwrap_or(Channel::MAIN)
    }

    /// Opens a channel for a POST with these requests.
    pub(super) fn open(&self, requests: Vec<RequestId>, answers: ResponseMode) -> Arc<ChannelWriter> {
        let channel = Channel(self.last_channel.fetch_add(1, Ordering::Relaxed) + 1);
        let writer = Arc::new(ChannelWriter::for_post(channel, requests, self.config(answers)));
        self.writers().insert(channel, writer.clone());
        // The session may have ended just before the channel was added.
        if self.ending.get().is_some() {
            writer.end();
        }
        writer
    }

    /// Returns an open channel; `None` after it was completed.
    pub(super) fn writer(&self, channel: Channel) -> Option<Arc<ChannelWriter>> {
        self.writers().get(&channel).cloned()
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
        let writer = self.writer(last.channel)?;
        let resumed = writer.resume(last)?;
        Some((writer, resumed))
    }

    /// Sends a message of the application.
    pub(super) async fn send(&self, outgoing: Outgoing) -> Result<(), SendError> {
        let Outgoing { channel, message, headers } = outgoing;
        let writer = self.open_writer(channel)?;
        self.note(channel, &message);
        let spent = writer.send(&message, headers).await?;
        if spent == Reclaimable::Yes {
            self.remove_channel(channel);
        }
        if self.kind == SessionKind::HttpSse {
            self.pending_posts.release();
            self.note_responses(count_answers(&message));
        }
        Ok(())
    }

    /// Sends bytes unchanged.
    pub(super) async fn send_bytes(&self, channel: Channel, bytes: bytes::Bytes) -> Result<(), SendError> {
        if self.open_writer(channel)?.send_bytes(bytes).await? == Reclaimable::Yes {
            self.remove_channel(channel);
        }
        Ok(())
    }

    /// Carries out a fault. A refusal that reports an unknown session also ends the session.
    pub(super) async fn inject_fault(&self, channel: Channel, fault: TransportFault) -> Result<AfterFault, SendError> {
        let writer = self.open_writer(channel)?;
        let fault = match fault {
            TransportFault::HttpStatus(refused) if self.kind == SessionKind::HttpSse => {
                match self.pending_posts.refuse(refused) {
                    Some(refused) => TransportFault::HttpStatus(refused),
                    None => {
                        self.note_responses(1);
                        return Ok(AfterFault::Continue);
                    }
                }
            }
            other => other,
        };
        self.pending_posts.release();
        if let Some(answer) = fault.answer() {
            self.note(channel, &Message::parse(answer.clone()));
        }
        let is_answer = !matches!(fault, TransportFault::Noise(_) | TransportFault::Flood(_));
        let is_unknown = matches!(&fault, TransportFault::HttpStatus(refused) if refused.status == 404);
        if writer.inject_fault(fault).await? == Reclaimable::Yes {
            self.remove_channel(channel);
        }
        match self.kind {
            SessionKind::Session if is_unknown => self.end(ConnectionEnd::Closed),
            SessionKind::HttpSse if is_answer => self.note_responses(1),
            SessionKind::Session | SessionKind::HttpSse | SessionKind::SharedLegacy | SessionKind::SharedModern => {}
        }
        Ok(AfterFault::Continue)
    }

    fn note_responses(&self, answers: usize) {
        let _ = self
            .active_requests
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| Some(n.saturating_sub(answers)));
        self.end_if_drained();
    }

    fn open_writer(&self, channel: Channel) -> Result<Arc<ChannelWriter>, SendError> {
        match (self.ending.get(), self.writer(channel)) {
            (Some(_), _) => Err(SendError::Closed),
            (None, Some(writer)) => Ok(writer),
            (None, None) => Err(SendError::NoChannel),
        }
    }

    /// Updates the state from a message of the application: pending server requests, the negotiated version.
    fn note(&self, channel: Channel, message: &Message) {
        match message.body() {
            Body::Request(request) if channel != Channel::MAIN => {
                self.server_requests().insert(request.id.clone(), channel);
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
        let Some(writer) = self.writer(channel) else { return };
        match self.kind {
            SessionKind::Session => writer.close_stream(retry),
            SessionKind::HttpSse => self.end(ConnectionEnd::Closed),
            SessionKind::SharedLegacy | SessionKind::SharedModern => {
                writer.end();
                self.remove_channel(channel);
            }
        }
    }

    /// Closes the channel of a POST that the client cancelled before its response.
    pub(super) fn abandon_post(&self, writer: &ChannelWriter) -> DetachOutcome {
        // Without an event id the client cannot resume, so the response would never be read.
        let stream_ended = writer.abandon();
        self.remove_channel(writer.channel);
        if self.kind == SessionKind::Session && writer.channel == Channel(1) && self.negotiated().is_none() {
            // The client never received the id of this session.
            self.end(ConnectionEnd::PeerClosed);
        }
        stream_ended
    }

    /// Handles the end of a stream.
    pub(super) fn stream_ended(&self, writer: &ChannelWriter, reader: u64) {
        self.note_activity();
        match (writer.leave(reader), self.kind) {
            (DetachOutcome::Superseded, _) => {}
            (DetachOutcome::Finished | DetachOutcome::Unfinished, SessionKind::HttpSse) => {
                self.end(ConnectionEnd::PeerClosed)
            }
            (DetachOutcome::Finished, _) => self.remove_channel(writer.channel),
            (DetachOutcome::Unfinished, SessionKind::Session) => {}
            (DetachOutcome::Unfinished, SessionKind::SharedLegacy | SessionKind::SharedModern) => {
                writer.end();
                self.remove_channel(writer.channel);
                self.client_disconnected(writer.channel);
            }
        }
    }

    /// Reports that a client disconnected, if that cancels its request.
    pub(super) fn client_disconnected(&self, channel: Channel) {
        if self.kind == SessionKind::SharedModern {
            let end = ChannelEnd::Broken { why: "the client closed the connection before the response".to_owned() };
            // An error means that the application dropped the connection.
            let _ = self.queue_event(Event::ChannelEnded { channel, end }, None);
        }
    }

    /// Removes a completed channel.
    pub(super) fn remove_channel(&self, channel: Channel) {
        if channel != Channel::MAIN {
            self.writers().remove(&channel);
            let mut server_requests = self.server_requests();
            if !server_requests.is_empty() {
                server_requests.retain(|_, other| *other != channel);
            }
        }
    }

    /// Ends the connection after the queued messages. Only the first ending counts.
    pub(super) fn end(&self, ending: ConnectionEnd) {
        if self.ending.set(ending).is_err() {
            return;
        }
        self.pending_posts.release();
        self.events.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        self.queue_slots.close();
        let writers = std::mem::take(&mut *self.writers());
        writers.values().for_each(|writer| writer.end());
        if let Some(registry) = self.registry.upgrade() {
            registry.remove(self);
        }
    }

    /// Closes the GET stream or the HTTP+SSE stream, because the server shuts down.
    pub(super) fn drain(&self) {
        match self.kind {
            SessionKind::Session => self.close_channel(Channel::MAIN, None),
            SessionKind::HttpSse => {
                self.draining.store(true, Ordering::SeqCst);
                self.end_if_drained();
            }
            SessionKind::SharedLegacy | SessionKind::SharedModern => {}
        }
    }

    fn end_if_drained(&self) {
        if self.draining.load(Ordering::SeqCst) && self.active_requests.load(Ordering::SeqCst) == 0 {
            self.end(ConnectionEnd::Closed);
        }
    }

    fn note_activity(&self) {
        let now = self.began.elapsed().as_millis() as u64;
        self.last_active.fetch_max(now, Ordering::Relaxed);
    }

    /// Returns the time since the last activity; zero while a stream is open.
    pub(super) fn idle(&self) -> Duration {
        match self.streams.load(Ordering::Relaxed) {
            0 => self.began.elapsed().saturating_sub(Duration::from_millis(self.last_active.load(Ordering::Relaxed))),
            _ => Duration::ZERO,
        }
    }

    fn config(&self, answers: ResponseMode) -> ChannelConfig {
        let era = match self.kind {
            SessionKind::Session | SessionKind::HttpSse | SessionKind::SharedLegacy => Era::Legacy,
            SessionKind::SharedModern => Era::Modern,
        };
        ChannelConfig { era, answers, history: self.history.clone(), queue: self.queue, queue_bytes: self.queue_bytes }
    }

    fn writers(&self) -> MutexGuard<'_, HashMap<Channel, Arc<ChannelWriter>>> {
        self.writers.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn server_requests(&self) -> MutexGuard<'_, HashMap<RequestId, Channel>> {
        self.server_requests.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
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
        self.0.note_activity();
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns the ids of the requests in a message.
pub(super) fn request_ids(message: &Message) -> Vec<RequestId> {
    match message.body() {
        Body::Request(request) => vec![request.id.clone()],
        Body::Batch(messages) => messages.iter().flat_map(request_ids).collect(),
        Body::Notification(_) | Body::Response(_) | Body::Garbled(_) => Vec::new(),
    }
}

/// Returns the number of responses in a message.
fn count_answers(message: &Message) -> usize {
    match message.body() {
        Body::Response(_) => 1,
        Body::Batch(messages) => messages.iter().map(count_answers).sum(),
        Body::Request(_) | Body::Notification(_) | Body::Garbled(_) => 0,
    }
}

/// Builds the connection for the application.
pub(super) fn build_connection(session: Arc<HttpSession>, events: mpsc::UnboundedReceiver<QueuedEvent>) -> Connection {
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

    fn inject_fault(&self, channel: Channel, fault: TransportFault) -> BoxFuture<'_, Result<AfterFault, SendError>> {
        Box::pin(self.open.0.inject_fault(channel, fault))
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
