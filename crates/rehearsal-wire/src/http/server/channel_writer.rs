//! One response channel: its state, what is written to it, and which of its requests have no response yet.
//!
//! ```text
//! send ──► queue ──► JSON body                                       the response is the first message
//!                └─► events of the attached stream ──► history       otherwise
//! ```

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use rehearsal_core::exchange::Channel;
use rehearsal_core::message::{Body, ErrorReply, Message, Reply, RequestId};
use rehearsal_core::protocol::{Era, code};
use rehearsal_core::transport_fault::TransportFault;
use tokio::sync::{Mutex as AsyncMutex, Notify};

use super::event_stream;
use super::event_stream::{EventId, Frame, FrameKind, History};
use super::fault::FaultyBody;
use super::options::ResponseMode;
use super::rejection::status_of;
use crate::{MESSAGE_LIMIT, SendError};

/// The settings of a channel.
#[derive(Clone, Debug)]
pub(super) struct ChannelConfig {
    /// The era, which selects the HTTP status of errors.
    pub(super) era: Era,
    /// The form in which the POST is answered.
    pub(super) answers: ResponseMode,
    /// Keeps events after they are written. Without it events have no ids, and a broken stream cannot be resumed.
    pub(super) history: Option<Arc<Mutex<History>>>,
    /// The most messages that wait for the client, apart from responses.
    pub(super) queue: usize,
    /// The number of queued bytes from which a sender has to wait.
    pub(super) queue_bytes: usize,
}

/// The sending side of one channel: its queue and its state.
#[derive(Debug)]
pub(super) struct ChannelWriter {
    /// The channel that this writes to.
    pub(super) channel: Channel,
    pub(super) config: ChannelConfig,
    state: Mutex<ChannelState>,
    /// Held by the sender that adds to the queue. The others wait for it in order of arrival, so that an event that is
    /// read wakes one sender and not all of them.
    turn: AsyncMutex<()>,
    /// Notified when the sender that holds the turn may try again.
    room: Notify,
}

/// What is added to the queue.
#[derive(Clone, Copy)]
enum QueuedItem<'a> {
    Message(&'a Message),
    Raw,
    Noise,
}

impl ChannelWriter {
    /// Builds the channel of a POST with these requests.
    pub(super) fn for_post(channel: Channel, requests: Vec<RequestId>, config: ChannelConfig) -> ChannelWriter {
        ChannelWriter::new(channel, requests, ReaderState::Waiting, config)
    }

    /// Builds a channel without a POST. Its messages wait until a stream is attached.
    pub(super) fn for_get_stream(config: ChannelConfig) -> ChannelWriter {
        ChannelWriter::new(Channel::MAIN, Vec::new(), ReaderState::Detached, config)
    }

    fn new(
        channel: Channel,
        requests: Vec<RequestId>,
        reader_state: ReaderState,
        config: ChannelConfig,
    ) -> ChannelWriter {
        let state = ChannelState {
            life: ChannelLife::Open,
            reader_state,
            pending: PendingRequests::new(requests),
            queue: VecDeque::new(),
            bytes: 0,
            position: 0,
            cut: None,
            readers: 0,
            headers: HeaderMap::new(),
            waker: None,
        };
        ChannelWriter { channel, config, state: Mutex::new(state), turn: AsyncMutex::new(()), room: Notify::new() }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, ChannelState> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Queues a message, and waits if an attached client does not read.
    pub(super) async fn send(&self, message: &Message, headers: HeaderMap) -> Result<Reclaimable, SendError> {
        self.put(QueuedItem::Message(message), message.raw(), &headers).await
    }

    /// Queues bytes to be written unchanged. If nothing was sent before, they are the whole body.
    pub(super) async fn send_bytes(&self, bytes: Bytes) -> Result<Reclaimable, SendError> {
        self.put(QueuedItem::Raw, &bytes, &HeaderMap::new()).await
    }

    /// Queues bytes that carry no message, and writes them unchanged before the next message.
    pub(super) async fn noise(&self, bytes: &Bytes) -> Result<Reclaimable, SendError> {
        self.put(QueuedItem::Noise, bytes, &HeaderMap::new()).await
    }

    async fn put(&self, item: QueuedItem<'_>, bytes: &Bytes, headers: &HeaderMap) -> Result<Reclaimable, SendError> {
        let _turn = self.turn.lock().await;
        loop {
            let room = self.room.notified();
            if let Some(spent) = self.push(item, bytes, headers)? {
                return Ok(spent);
            }
            room.await;
        }
    }

    /// Adds to the queue; `None` if it is full.
    fn push(&self, item: QueuedItem<'_>, bytes: &Bytes, headers: &HeaderMap) -> Result<Option<Reclaimable>, SendError> {
        let mut state = self.state();
        if state.life != ChannelLife::Open {
            return Err(SendError::NoChannel);
        }
        let kind = match item {
            QueuedItem::Message(message) => state.pending.kind(message),
            QueuedItem::Raw => FrameKind::Raw,
            QueuedItem::Noise => FrameKind::Noise,
        };
        if kind == FrameKind::Other
            && state.reader_state == ReaderState::Waiting
            && self.config.answers == ResponseMode::Json
        {
            let why = "this POST is answered with JSON, which can only hold the response".to_owned();
            return Err(SendError::Failed { why });
        }
        let is_answer = matches!(kind, FrameKind::Answer { .. });
        let full = state.bytes >= self.config.queue_bytes || (!is_answer && state.queue.len() >= self.config.queue);
        // A client reads a JSON body only when it is complete, so waiting would not make room.
        let is_json_body = state.reader_state == ReaderState::Waiting && self.config.answers == ResponseMode::Json;
        if full && !is_json_body {
            if state.has_reader() {
                return Ok(None);
            }
            // Each request has one response, so the number of responses is limited even without a client that reads.
            if !is_answer {
                let why = format!("no client reads from the channel, and {} messages are queued", state.queue.len());
                return Err(SendError::Failed { why });
            }
        }
        let too_much =
            is_json_body && is_answer && !state.queue.is_empty() && state.bytes + bytes.len() > MESSAGE_LIMIT;
        let refused = match item {
            QueuedItem::Message(message) if too_much => Some(too_large_error(message)),
            QueuedItem::Message(_) | QueuedItem::Raw | QueuedItem::Noise => None,
        };
        let bytes = refused.as_ref().unwrap_or(bytes);
        if let QueuedItem::Message(message) = item {
            state.pending.remove_answered(message);
            state.position += 1;
        }
        if state.reader_state == ReaderState::Waiting {
            state.headers.extend(headers.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        let position = state.position;
        state.put(Frame { position, kind, bytes: bytes.clone(), fault: None });
        // Bytes without framing are a whole body, unless the POST is answered with a stream from the start.
        let streams_at_once = self.config.answers == ResponseMode::Events && self.config.era == Era::Legacy;
        let is_whole = kind == FrameKind::Raw && state.reader_state == ReaderState::Waiting && !streams_at_once;
        if self.channel != Channel::MAIN && (is_whole || state.pending.is_empty()) {
            state.life = ChannelLife::Done;
        }
        // A POST with several responses is polled for the first and for the last, not for each.
        let is_one_of_many = is_answer && state.queue.len() > 1 && state.life == ChannelLife::Open;
        if state.reader_state != ReaderState::Waiting || !is_one_of_many || state.bytes >= self.config.queue_bytes {
            state.wake();
        }
        // Messages for a client that may resume go to the history, which is limited. Only the GET stream starts with
        // its queue.
        if state.reader_state == ReaderState::Detached && self.channel != Channel::MAIN {
            self.keep_all(&mut state);
            return Ok(Some(if state.life == ChannelLife::Done { Reclaimable::Yes } else { Reclaimable::No }));
        }
        Ok(Some(Reclaimable::No))
    }

    /// Decides the form of the HTTP response, as soon as it is known.
    pub(super) fn poll_post_response(&self, context: &mut Context<'_>) -> Poll<PostResponse> {
        let mut state = self.state();
        // A JSON body holds one response only, so messages from before the fault are dropped.
        let is_fault = |frame: &Frame| frame.kind == FrameKind::TransportFault;
        let at =
            if self.config.answers == ResponseMode::Json { state.queue.iter().position(is_fault) } else { Some(0) };
        if let Some(fault) = at.and_then(|at| state.queue.get_mut(at)?.fault.take()) {
            let position = state.position;
            let faulty = self.faulty_post_body(position, *fault);
            return Poll::Ready(PostResponse::Faulty(Box::new(faulty), std::mem::take(&mut state.headers)));
        }
        let code =
            state.queue.iter().find_map(|frame| if let FrameKind::Answer { code } = frame.kind { code } else { None });
        let status = status_of(self.config.era, code);
        let is_related =
            |frame: &Frame| matches!(frame.kind, FrameKind::Other | FrameKind::Noise | FrameKind::TransportFault);
        let only_answers = !state.queue.iter().any(is_related);
        let streams = match self.config.answers {
            ResponseMode::Json => false,
            // Responses to a large batch are streamed instead of being collected until the last one.
            ResponseMode::Auto => {
                let is_much = state.life == ChannelLife::Open && state.bytes >= self.config.queue_bytes;
                !only_answers || state.cut.is_some() || is_much
            }
            // An error with its own HTTP status needs it in the head, so the head waits for the first message.
            ResponseMode::Events => {
                let raw = state.queue.iter().any(|frame| frame.kind == FrameKind::Raw);
                let first_is_seen = !state.queue.is_empty() && status == StatusCode::OK && !raw;
                self.config.era == Era::Legacy || first_is_seen || state.cut.is_some()
            }
        };
        if streams {
            return Poll::Ready(PostResponse::Events(std::mem::take(&mut state.headers)));
        }
        if state.life == ChannelLife::Done {
            let headers = std::mem::take(&mut state.headers);
            return Poll::Ready(PostResponse::Whole(state.take_all().into(), status, headers));
        }
        if state.life == ChannelLife::Ended || state.cut.is_some() {
            return Poll::Ready(PostResponse::Ended);
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }

    /// Takes the headers for the head, if it must be written before the first message.
    pub(super) fn take_headers(&self) -> HeaderMap {
        std::mem::take(&mut self.state().headers)
    }

    /// Attaches the stream of the POST itself.
    pub(super) fn attach(&self) -> u64 {
        self.state().attach()
    }

    /// Attaches a GET stream, unless another one is attached.
    pub(super) fn attach_get_stream(&self) -> Option<u64> {
        let mut state = self.state();
        let busy = matches!(state.reader_state, ReaderState::Attached { .. }) && state.cut.is_none();
        (!busy).then(|| state.attach())
    }

    /// Returns the position of the last message that a stream took.
    pub(super) fn written(&self) -> u64 {
        let state = self.state();
        state.queue.iter().find(|frame| frame.kind.is_message()).map_or(state.position, |frame| frame.position - 1)
    }

    /// Attaches a stream that resumes after an event; `None` if a later event is no longer kept.
    ///
    /// The new stream replaces an attached one. A client that sends the id of its last event has lost the old stream,
    /// even if the server has not noticed yet.
    pub(super) fn resume(&self, last: EventId) -> Option<ResumedStream> {
        let mut state = self.state();
        let missed = self.history().map(|history| history.after(last)).unwrap_or_default();
        let next =
            state.queue.iter().find(|frame| frame.kind.is_message()).map_or(state.position + 1, |frame| frame.position);
        let first = missed.first().map_or(next, |(id, _)| id.position);
        (last.position.checked_add(1) == Some(first)).then(|| ResumedStream { missed, reader: state.attach() })
    }

    /// Polls the next event for a stream; `None` at its end.
    pub(super) fn poll_event(&self, reader: u64, context: &mut Context<'_>) -> Poll<Option<StreamItem>> {
        let mut state = self.state();
        if state.reader_state != (ReaderState::Attached { reader }) {
            return Poll::Ready(None);
        }
        let before_cut = |frame: &Frame| state.cut.is_none_or(|cut| frame.position <= cut);
        if state.queue.front().is_some_and(before_cut) {
            let frame = state.take().expect("its front was just there");
            let next = match (frame.kind, self.keep(&frame), frame.fault) {
                (_, _, Some(fault)) => StreamItem::Faulty(Box::new(self.faulty_stream_body(frame.position, *fault))),
                (FrameKind::Raw | FrameKind::Noise | FrameKind::TransportFault, _, None) => {
                    StreamItem::Event(frame.bytes)
                }
                (FrameKind::Answer { .. } | FrameKind::Other, id, None) => {
                    StreamItem::Event(event_stream::message(id, frame.bytes))
                }
            };
            drop(state);
            self.room.notify_waiters();
            return Poll::Ready(Some(next));
        }
        if state.cut.is_some() || state.life != ChannelLife::Open {
            return Poll::Ready(None);
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }

    /// Closes the channel, because the client cancelled the POST before its response.
    pub(super) fn abandon(&self) -> DetachOutcome {
        let mut state = self.state();
        let left = if state.life == ChannelLife::Open { DetachOutcome::Unfinished } else { DetachOutcome::Finished };
        state.life = ChannelLife::Ended;
        drop(state);
        self.room.notify_waiters();
        left
    }

    /// Detaches a stream, at its end or before.
    pub(super) fn leave(&self, reader: u64) -> DetachOutcome {
        let mut state = self.state();
        if state.reader_state != (ReaderState::Attached { reader }) {
            return DetachOutcome::Superseded;
        }
        state.reader_state = ReaderState::Detached;
        state.cut = None;
        state.waker = None;
        let left = match state.life {
            ChannelLife::Open => DetachOutcome::Unfinished,
            ChannelLife::Done | ChannelLife::Ended => DetachOutcome::Finished,
        };
        if self.channel != Channel::MAIN || left == DetachOutcome::Finished {
            self.keep_all(&mut state);
        }
        drop(state);
        self.room.notify_waiters();
        left
    }

    /// Ends the stream after the queued messages. Later messages wait for a client that resumes.
    pub(super) fn close_stream(&self, retry: Option<Duration>) {
        let mut state = self.state();
        if state.reader_state != ReaderState::Detached && state.life == ChannelLife::Open {
            if let Some(retry) = retry.filter(|_| self.config.answers != ResponseMode::Json) {
                let (position, bytes) = (state.position, event_stream::retry(retry));
                state.put(Frame { position, kind: FrameKind::Noise, bytes, fault: None });
            }
            state.cut = Some(state.position);
        }
        state.wake();
        drop(state);
        self.room.notify_waiters();
    }

    /// Ends the channel after the queued messages.
    pub(super) fn end(&self) {
        let mut state = self.state();
        if state.life == ChannelLife::Open {
            state.life = ChannelLife::Ended;
        }
        state.wake();
        drop(state);
        self.room.notify_waiters();
    }

    fn history(&self) -> Option<MutexGuard<'_, History>> {
        let history = self.config.history.as_ref()?;
        Some(history.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    pub(super) fn keep(&self, frame: &Frame) -> Option<EventId> {
        let id = EventId { channel: self.channel, position: frame.position };
        let mut history = self.history()?;
        if let Some(TransportFault::CutStream(answer)) = frame.fault.as_deref() {
            history.keep(id, answer.clone());
        }
        if frame.kind.is_message() {
            history.keep(id, frame.bytes.clone());
        }
        Some(id)
    }

    pub(super) fn keep_all(&self, state: &mut ChannelState) {
        for frame in state.take_all() {
            self.keep(&frame);
        }
    }
}

/// Builds the error that replaces a response too large for the JSON body.
fn too_large_error(answer: &Message) -> Bytes {
    let id = answer.as_response().and_then(|response| response.id.clone());
    let why =
        format!("the responses are longer than {MESSAGE_LIMIT} bytes; a client that accepts events gets all of them");
    Message::error(id, &ErrorReply::new(code::INTERNAL_ERROR, why)).raw().clone()
}

/// The state of a channel.
#[derive(Debug)]
pub(super) struct ChannelState {
    pub(super) life: ChannelLife,
    pub(super) reader_state: ReaderState,
    pub(super) pending: PendingRequests,
    pub(super) queue: VecDeque<Frame>,
    /// The length of the queue in bytes.
    bytes: usize,
    /// The position of the newest message.
    pub(super) position: u64,
    /// The position after which the stream ends and another one continues; `None` without a cut.
    pub(super) cut: Option<u64>,
    pub(super) readers: u64,
    pub(super) headers: HeaderMap,
    pub(super) waker: Option<Waker>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChannelLife {
    /// More messages may follow.
    Open,
    /// Every request has its response.
    Done,
    /// The channel was closed, by us or with its session.
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReaderState {
    /// The POST waits for its first message.
    Waiting,
    /// A stream of events is attached.
    Attached { reader: u64 },
    /// No stream is attached, but a client may resume.
    Detached,
}

/// The form of the HTTP response to a POST.
#[derive(Debug)]
pub(super) enum PostResponse {
    /// One body with these responses.
    Whole(Vec<Frame>, StatusCode, HeaderMap),
    /// A stream of events.
    Events(HeaderMap),
    /// None, because the channel was closed.
    Ended,
    /// An injected fault.
    Faulty(Box<FaultyBody>, HeaderMap),
}

/// The next item of a stream.
#[derive(Debug)]
pub(super) enum StreamItem {
    /// An event as written to the wire.
    Event(Bytes),
    /// An injected fault.
    Faulty(Box<FaultyBody>),
}

/// The state of a channel after its stream was detached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DetachOutcome {
    /// Another stream is attached already.
    Superseded,
    /// All messages were queued.
    Finished,
    /// More messages may follow.
    Unfinished,
}

/// A resumed stream: the missed events, and the number of its reader.
#[derive(Debug)]
pub(super) struct ResumedStream {
    /// The events that the client missed.
    pub(super) missed: Vec<(EventId, Bytes)>,
    /// The reader of the resumed stream.
    pub(super) reader: u64,
}

/// Whether a channel can be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reclaimable {
    /// The channel is complete, and all its messages are in the history.
    Yes,
    /// A stream still reads from the channel.
    No,
}

impl ChannelState {
    pub(super) fn put(&mut self, frame: Frame) {
        self.bytes += frame.bytes.len();
        self.queue.push_back(frame);
    }

    fn take(&mut self) -> Option<Frame> {
        let frame = self.queue.pop_front()?;
        self.bytes -= frame.bytes.len();
        Some(frame)
    }

    fn take_all(&mut self) -> VecDeque<Frame> {
        self.bytes = 0;
        std::mem::take(&mut self.queue)
    }

    pub(super) fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    pub(super) fn attach(&mut self) -> u64 {
        self.readers += 1;
        // The cut was meant for the previous stream. A stream that attaches in `Waiting` is that stream.
        if self.reader_state != ReaderState::Waiting {
            self.cut = None;
        }
        self.reader_state = ReaderState::Attached { reader: self.readers };
        self.wake();
        self.readers
    }

    /// True if a client is attached that reads further messages.
    pub(super) fn has_reader(&self) -> bool {
        self.reader_state != ReaderState::Detached && self.cut.is_none()
    }
}

/// The pending requests of a POST, with a count for each id: a batch may repeat one.
#[derive(Debug)]
pub(super) struct PendingRequests(HashMap<RequestId, usize>);

impl PendingRequests {
    /// Starts with every request pending.
    pub(super) fn new(requests: Vec<RequestId>) -> PendingRequests {
        let mut counts = HashMap::with_capacity(requests.len());
        requests.into_iter().for_each(|id| *counts.entry(id).or_default() += 1);
        PendingRequests(counts)
    }

    /// True if no request is pending.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Classifies a message: a response to this POST, or a related message.
    pub(super) fn kind(&self, message: &Message) -> FrameKind {
        let answers = match message.body() {
            Body::Batch(messages) => messages.iter().all(|message| self.answered_by(message).is_some()),
            Body::Request(_) | Body::Notification(_) | Body::Response(_) | Body::Garbled(_) => {
                self.answered_by(message).is_some()
            }
        };
        match message.as_response().map(|response| &response.reply) {
            _ if !answers => FrameKind::Other,
            Some(Reply::Error(error)) => FrameKind::Answer { code: Some(error.code) },
            Some(Reply::Result(_)) | None => FrameKind::Answer { code: None },
        }
    }

    /// Removes the requests that a message responds to.
    pub(super) fn remove_answered(&mut self, message: &Message) {
        match message.body() {
            Body::Batch(messages) => messages.iter().for_each(|message| self.remove_answered(message)),
            Body::Request(_) | Body::Notification(_) | Body::Response(_) | Body::Garbled(_) => {
                let Some(id) = self.answered_by(message).cloned() else { return };
                if let Entry::Occupied(mut count) = self.0.entry(id) {
                    *count.get_mut() -= 1;
                    if *count.get() == 0 {
                        count.remove();
                    }
                }
            }
        }
    }

    /// Returns the pending request that a message responds to.
    fn answered_by(&self, message: &Message) -> Option<&RequestId> {
        let id = match message.body() {
            Body::Response(response) => match &response.id {
                Some(id) => id,
                // The id `null` means that the request could not be read. If only one is pending, it is that one.
                None if self.0.len() == 1 => {
                    return self.0.iter().find(|(_, count)| **count == 1).map(|(id, _)| id);
                }
                None => return None,
            },
            // A garbled response counts as the response, so that the client does not wait for another one.
            Body::Garbled(garbled) => garbled.id.as_ref()?,
            Body::Request(_) | Body::Notification(_) | Body::Batch(_) => return None,
        };
        self.0.get_key_value(id).map(|(id, _)| id)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;
    use crate::http::server::event_stream::HistoryTotal;

    fn pending_requests() -> PendingRequests {
        PendingRequests::new(vec![1.into(), "1".into()])
    }

    #[test]
    fn only_the_response_to_a_pending_request_counts_as_its_response() {
        let table = [
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, FrameKind::Answer { code: None }, 1),
            (r#"{"jsonrpc":"2.0","id":"1","error":{"code":-5,"message":""}}"#, FrameKind::Answer { code: Some(-5) }, 1),
            (r#"{"jsonrpc":"2.0","id":2,"result":{}}"#, FrameKind::Other, 2),
            (r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#, FrameKind::Other, 2),
            (r#"{"jsonrpc":"2.0","id":null,"error":{"code":-5,"message":""}}"#, FrameKind::Other, 2),
            (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":3}"#, FrameKind::Answer { code: None }, 1),
            (
                r#"[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":"1","result":{}}]"#,
                FrameKind::Answer { code: None },
                0,
            ),
            (r#"[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","method":"x"}]"#, FrameKind::Other, 1),
        ];
        for (text, kind, left) in table {
            let mut pending = pending_requests();
            let message = Message::parse(text);
            assert_eq!(pending.kind(&message), kind, "{text}");
            pending.remove_answered(&message);
            assert_eq!(pending.0.values().sum::<usize>(), left, "{text}");
        }
    }

    #[test]
    fn an_id_that_a_batch_repeats_needs_as_many_responses() {
        let mut pending = PendingRequests::new(vec![1.into(), 1.into()]);
        let message = Message::parse(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        pending.remove_answered(&message);
        assert!(!pending.is_empty());
        pending.remove_answered(&message);
        assert!(pending.is_empty());
    }

    #[tokio::test]
    async fn a_post_is_woken_by_its_first_and_its_last_response() {
        struct Wakes(AtomicUsize);
        impl Wake for Wakes {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let ids = (1..=100).map(RequestId::Number).collect();
        let writer = ChannelWriter::for_post(Channel(1), ids, config(ResponseMode::Auto, None));
        let wakes = Arc::new(Wakes(AtomicUsize::new(0)));
        let waker = Waker::from(wakes.clone());
        let mut context = Context::from_waker(&waker);
        for id in 1..=100 {
            assert!(writer.poll_post_response(&mut context).is_pending());
            writer.send(&result(id, 10), HeaderMap::new()).await.unwrap();
        }
        let Poll::Ready(PostResponse::Whole(frames, ..)) = writer.poll_post_response(&mut context) else {
            panic!("not answered")
        };
        assert_eq!((frames.len(), wakes.0.load(Ordering::Relaxed)), (100, 2));
    }

    fn config(answers: ResponseMode, history: Option<Arc<Mutex<History>>>) -> ChannelConfig {
        ChannelConfig { era: Era::Legacy, answers, history, queue: 10, queue_bytes: 10_000 }
    }

    fn result(id: i64, length: usize) -> Message {
        let text = "x".repeat(length);
        Message::parse(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"text":"{text}"}}}}"#))
    }

    #[tokio::test]
    async fn an_event_that_is_read_wakes_one_sender() {
        const SENDERS: usize = 200;
        let writer = Arc::new(ChannelWriter::for_get_stream(config(ResponseMode::Events, None)));
        let (reader, polls) = (writer.attach(), Arc::new(AtomicUsize::new(0)));
        let mut senders = tokio::task::JoinSet::new();
        for _ in 0..SENDERS {
            let (writer, polls) = (writer.clone(), polls.clone());
            senders.spawn(async move {
                let message = result(1, 10);
                let mut sending = std::pin::pin!(writer.send(&message, HeaderMap::new()));
                std::future::poll_fn(|context| {
                    polls.fetch_add(1, Ordering::Relaxed);
                    sending.as_mut().poll(context)
                })
                .await
            });
        }
        for _ in 0..SENDERS {
            let event = std::future::poll_fn(|context| writer.poll_event(reader, context)).await;
            assert!(matches!(event, Some(StreamItem::Event(_))));
            tokio::task::yield_now().await;
        }
        while let Some(sent) = senders.join_next().await {
            sent.unwrap().unwrap();
        }
        let polls = polls.load(Ordering::Relaxed);
        assert!(polls < 10 * SENDERS, "{polls} polls");
    }

    #[tokio::test]
    async fn a_channel_without_a_stream_keeps_messages_only_in_the_history() {
        let history = History::new(4, 1000, Arc::new(HistoryTotal::new(1000)));
        let history = Arc::new(Mutex::new(history));
        let writer =
            ChannelWriter::for_post(Channel(1), vec![1.into()], config(ResponseMode::Events, Some(history.clone())));
        let reader = writer.attach();
        assert_eq!(writer.leave(reader), DetachOutcome::Unfinished);
        for id in 100..200 {
            writer.send(&result(id, 10), HeaderMap::new()).await.unwrap();
        }
        assert_eq!(writer.state().queue.len(), 0);
        let last = |position| EventId { channel: Channel(1), position };
        assert_eq!(history.lock().unwrap().after(last(0)).len(), 4);
        assert!(writer.resume(last(95)).is_none(), "position 96 is no longer kept");
        assert_eq!(writer.resume(last(97)).unwrap().missed.len(), 3);
    }

    #[tokio::test]
    async fn a_response_too_large_for_the_json_body_becomes_an_error() {
        let writer = ChannelWriter::for_post(Channel(1), vec![1.into(), 2.into()], config(ResponseMode::Json, None));
        for id in [1, 2] {
            writer.send(&result(id, MESSAGE_LIMIT * 3 / 4), HeaderMap::new()).await.unwrap();
        }
        let mut context = Context::from_waker(Waker::noop());
        let Poll::Ready(PostResponse::Whole(frames, ..)) = writer.poll_post_response(&mut context) else {
            panic!("not answered")
        };
        let second = Message::parse(frames[1].bytes.clone());
        let second = second.as_response().unwrap();
        assert_eq!(second.id, Some(2.into()));
        assert!(matches!(&second.reply, Reply::Error(error) if error.message.contains("accepts events")));
    }

    #[test]
    fn an_error_without_an_id_answers_the_only_pending_request() {
        let mut pending = PendingRequests::new(vec![1.into()]);
        let message = Message::parse(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":""}}"#);
        assert_eq!(pending.kind(&message), FrameKind::Answer { code: Some(-32700) });
        pending.remove_answered(&message);
        assert!(pending.is_empty());
    }
}
