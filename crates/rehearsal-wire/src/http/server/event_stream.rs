//! The body of a response that is a stream of events, its frames, and the events kept for a client that resumes.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use http_body_util::Either;
use hyper::body::{self, Body};
use rehearsal_core::exchange::Channel;
use rehearsal_core::transport_fault::TransportFault;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Interval, MissedTickBehavior};

use super::channel_writer::{ChannelWriter, StreamItem};
use super::fault::{AbortConnection, BodyChunk, FaultyBody};
use super::rejection::HttpReply;
use super::session::{ActivityGuard, HttpSession};
use crate::http::sse;
use crate::http::sse::SseEvent;

/// A stream of events: first the given ones, then those of a channel.
#[derive(Debug)]
pub(super) struct EventStream {
    session: Arc<HttpSession>,
    first: VecDeque<Bytes>,
    source: Option<Source>,
    /// The injected fault, which replaces everything else.
    faulty: Option<Box<FaultyBody>>,
    keep_alive: Interval,
    _busy: ActivityGuard,
    _permit: OwnedSemaphorePermit,
}

#[derive(Debug)]
struct Source {
    writer: Arc<ChannelWriter>,
    reader: u64,
}

impl EventStream {
    /// Builds a stream of the given events.
    pub(super) fn new(
        session: Arc<HttpSession>,
        first: impl IntoIterator<Item = Bytes>,
        keep_alive: Duration,
        permit: OwnedSemaphorePermit,
    ) -> EventStream {
        let mut keep_alive = tokio::time::interval_at(Instant::now() + keep_alive, keep_alive);
        keep_alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let _busy = ActivityGuard::new(&session);
        let first = first.into_iter().collect();
        EventStream { session, first, source: None, faulty: None, keep_alive, _busy, _permit: permit }
    }

    /// Continues with the events of a channel for this reader.
    pub(super) fn then(mut self, writer: Arc<ChannelWriter>, reader: u64) -> EventStream {
        self.source = Some(Source { writer, reader });
        self
    }

    /// Replaces the stream by an injected fault.
    pub(super) fn with_fault(mut self, faulty: Box<FaultyBody>) -> EventStream {
        self.faulty = Some(faulty);
        self
    }

    /// Builds the HTTP response.
    pub(super) fn into_reply(self, headers: HeaderMap) -> HttpReply {
        let mut answer = Response::new(Either::Right(self));
        let head = answer.headers_mut();
        head.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        head.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        // Some proxies buffer a whole response before they forward it; this header turns that off.
        head.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
        head.extend(headers);
        answer
    }
}

impl Body for EventStream {
    type Data = Bytes;
    type Error = AbortConnection;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<body::Frame<Bytes>, AbortConnection>>> {
        let this = self.get_mut();
        if let Some(faulty) = &mut this.faulty {
            match ready!(faulty.poll(context)) {
                BodyChunk::Bytes(bytes) => return Poll::Ready(Some(Ok(body::Frame::data(bytes)))),
                BodyChunk::Over => return Poll::Ready(None),
                BodyChunk::Broken => return Poll::Ready(Some(Err(AbortConnection))),
                BodyChunk::Continue => this.faulty = None,
            }
        }
        let next = match (this.first.pop_front(), &this.source) {
            (Some(event), _) => Poll::Ready(Some(StreamItem::Event(event))),
            (None, Some(source)) => source.writer.poll_event(source.reader, context),
            (None, None) => Poll::Ready(None),
        };
        match next {
            Poll::Ready(Some(StreamItem::Event(event))) => {
                this.keep_alive.reset();
                Poll::Ready(Some(Ok(body::Frame::data(event))))
            }
            Poll::Ready(Some(StreamItem::Faulty(faulty))) => {
                this.faulty = Some(faulty);
                Pin::new(this).poll_frame(context)
            }
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => this.keep_alive.poll_tick(context).map(|_| Some(Ok(body::Frame::data(KEEP_ALIVE)))),
        }
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        if let Some(source) = &self.source {
            self.session.stream_ended(&source.writer, source.reader);
        }
    }
}

/// A frame that waits to be written on a channel.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    /// Its position among the messages of the channel, from 1.
    pub(super) position: u64,
    /// The kind of frame.
    pub(super) kind: FrameKind,
    /// The message, or the bytes to write unchanged.
    pub(super) bytes: Bytes,
    /// The fault to inject here.
    pub(super) fault: Option<Box<TransportFault>>,
}

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameKind {
    /// A response to a request of the POST, with its code if it is an error.
    Answer {
        /// The code of the error.
        code: Option<i64>,
    },
    /// Another message: a notification or a server request.
    Other,
    /// Bytes without framing.
    Raw,
    /// Bytes without framing that carry no message: they never complete a body.
    Noise,
    /// An injected fault instead of bytes.
    TransportFault,
}

impl FrameKind {
    /// True if the frame has a position among the messages of its channel.
    pub(super) fn is_message(self) -> bool {
        matches!(self, FrameKind::Answer { .. } | FrameKind::Other)
    }
}

/// The id of an event: its stream and its position there. It is unique in its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EventId {
    /// The stream.
    pub(super) channel: Channel,
    /// The position; 0 is the empty event that some streams start with.
    pub(super) position: u64,
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.channel.0, self.position)
    }
}

impl FromStr for EventId {
    type Err = ForeignEventId;

    fn from_str(text: &str) -> Result<EventId, ForeignEventId> {
        let (channel, position) = text.split_once('-').ok_or(ForeignEventId)?;
        let number = |text: &str| text.parse::<u64>().map_err(|_| ForeignEventId);
        Ok(EventId { channel: Channel(number(channel)?), position: number(position)? })
    }
}

/// An event id that this server did not write.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ForeignEventId;

/// Encodes a message as an event.
pub(super) fn message(id: Option<EventId>, data: Bytes) -> Bytes {
    let id = id.map(|id| id.to_string());
    sse::encode(&SseEvent { event: Some("message".to_owned()), data, id, retry: None })
}

/// Encodes the event that sends an HTTP+SSE client the path to post to.
pub(super) fn endpoint(uri: &str) -> Bytes {
    let data = Bytes::copy_from_slice(uri.as_bytes());
    sse::encode(&SseEvent { event: Some("endpoint".to_owned()), data, id: None, retry: None })
}

/// Encodes the empty event that gives a client of 2025-11-25 an id to resume from.
pub(super) fn priming(id: EventId, retry: Option<Duration>) -> Bytes {
    sse::encode(&SseEvent { event: None, data: Bytes::new(), id: Some(id.to_string()), retry })
}

/// Encodes the time that a client should wait before it reconnects. It has no data, so no client takes it for a
/// message.
pub(super) fn retry(time: Duration) -> Bytes {
    format!("retry: {}\n\n", time.as_millis()).into()
}

/// Encodes an event that only carries an id. It has a name of its own, because a client before 2025-11-25 would take an
/// empty event for a message.
pub(super) fn id_only_event(id: EventId) -> Bytes {
    sse::encode(&SseEvent {
        event: Some("bookmark".to_owned()),
        data: Bytes::new(),
        id: Some(id.to_string()),
        retry: None,
    })
}

/// Encodes a message as an event with this name.
pub(super) fn named(name: &str, data: Bytes) -> Bytes {
    sse::encode(&SseEvent { event: Some(name.to_owned()), data, id: None, retry: None })
}

/// A comment, which shows that the connection is open.
pub(super) const KEEP_ALIVE: Bytes = Bytes::from_static(b": keep-alive\n\n");

/// The latest events of all streams of a session, oldest first.
#[derive(Debug)]
pub(super) struct History {
    kept: VecDeque<(EventId, Bytes)>,
    bytes: usize,
    events_limit: usize,
    bytes_limit: usize,
    total: Arc<HistoryTotal>,
}

/// The number of bytes in the histories of all sessions of a listener.
#[derive(Debug)]
pub(super) struct HistoryTotal {
    bytes: AtomicUsize,
    limit: usize,
}

impl HistoryTotal {
    /// Sets the limit in bytes.
    pub(super) fn new(limit: usize) -> HistoryTotal {
        HistoryTotal { bytes: AtomicUsize::new(0), limit }
    }
}

impl History {
    /// Builds a history with limits on its events and bytes, and on the bytes of all sessions together.
    pub(super) fn new(events_limit: usize, bytes_limit: usize, total: Arc<HistoryTotal>) -> History {
        History { kept: VecDeque::new(), bytes: 0, events_limit, bytes_limit, total }
    }

    /// Keeps an event, and drops the oldest ones beyond the limits.
    pub(super) fn keep(&mut self, id: EventId, message: Bytes) {
        self.bytes += message.len();
        self.total.bytes.fetch_add(message.len(), Ordering::Relaxed);
        self.kept.push_back((id, message));
        while self.is_too_much() {
            let Some((_, message)) = self.kept.pop_front() else { break };
            self.bytes -= message.len();
            self.total.bytes.fetch_sub(message.len(), Ordering::Relaxed);
        }
    }

    fn is_too_much(&self) -> bool {
        let of_all = self.total.bytes.load(Ordering::Relaxed);
        self.kept.len() > self.events_limit || self.bytes > self.bytes_limit || of_all > self.total.limit
    }

    /// Returns the later events of the same stream.
    pub(super) fn after(&self, last: EventId) -> Vec<(EventId, Bytes)> {
        let later = |id: &EventId| id.channel == last.channel && id.position > last.position;
        self.kept.iter().filter(|(id, _)| later(id)).cloned().collect()
    }

    /// Returns the newest position of a stream; `None` if none of its events is kept.
    pub(super) fn newest(&self, channel: Channel) -> Option<u64> {
        self.kept.iter().rev().find(|(id, _)| id.channel == channel).map(|(id, _)| id.position)
    }
}

impl Drop for History {
    fn drop(&mut self) {
        self.total.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_a_message_is_a_line_of_data() {
        let id = Some(EventId { channel: Channel(3), position: 7 });
        assert_eq!(message(id, Bytes::from_static(b"{}")), "event: message\nid: 3-7\ndata: {}\n\n");
        assert_eq!(
            message(None, Bytes::from_static(b"{\r\n\"a\":\r1\n}")),
            "event: message\ndata: {\ndata: \"a\":\ndata: 1\ndata: }\n\n"
        );
        assert_eq!(endpoint("/message?sessionId=x"), "event: endpoint\ndata: /message?sessionId=x\n\n");
    }

    #[test]
    fn the_priming_event_has_an_id_and_no_data() {
        let id = EventId { channel: Channel(1), position: 0 };
        assert_eq!(priming(id, None), "id: 1-0\ndata: \n\n");
        assert_eq!(priming(id, Some(Duration::from_millis(500))), "id: 1-0\nretry: 500\ndata: \n\n");
    }

    #[test]
    fn a_foreign_event_id_is_refused() {
        let id = EventId { channel: Channel(12), position: 345 };
        assert_eq!(id.to_string().parse(), Ok(id));
        for text in ["", "1", "-", "1-", "-1", "a-b", "1-2-3", "99999999999999999999-1"] {
            assert_eq!(text.parse::<EventId>(), Err(ForeignEventId), "{text}");
        }
    }

    fn positions(history: &History, channel: u64, position: u64) -> Vec<u64> {
        let last = EventId { channel: Channel(channel), position };
        history.after(last).into_iter().map(|(id, _)| id.position).collect()
    }

    #[test]
    fn the_history_returns_later_events_of_the_same_stream() {
        let mut history = History::new(10, 1000, total(1000));
        for (channel, position) in [(1, 1), (2, 1), (1, 2), (1, 3)] {
            history.keep(EventId { channel: Channel(channel), position }, Bytes::from_static(b"{}"));
        }
        assert_eq!(positions(&history, 1, 1), [2, 3]);
        assert_eq!(positions(&history, 2, 0), [1]);
        assert_eq!(history.newest(Channel(1)), Some(3));
        assert_eq!(history.newest(Channel(9)), None);
    }

    fn total(limit: usize) -> Arc<HistoryTotal> {
        Arc::new(HistoryTotal::new(limit))
    }

    #[test]
    fn the_histories_of_all_sessions_share_one_limit() {
        let total = total(10);
        let id = |position| EventId { channel: Channel(1), position };
        let mut first = History::new(10, 1000, total.clone());
        let mut second = History::new(10, 1000, total.clone());
        first.keep(id(1), Bytes::from_static(b"123456"));
        for position in 1..=3 {
            second.keep(id(position), Bytes::from_static(b"{}"));
        }
        assert_eq!((positions(&first, 1, 0), positions(&second, 1, 0)), (vec![1], vec![2, 3]));
        drop(first);
        second.keep(id(4), Bytes::from_static(b"123456"));
        assert_eq!(positions(&second, 1, 0), [2, 3, 4]);
        drop(second);
        assert_eq!(total.bytes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn the_history_drops_its_oldest_events() {
        let mut by_count = History::new(2, 1000, total(1000));
        let mut by_bytes = History::new(10, 4, total(1000));
        for position in 1..=5 {
            let id = EventId { channel: Channel(1), position };
            by_count.keep(id, Bytes::from_static(b"{}"));
            by_bytes.keep(id, Bytes::from_static(b"{}"));
        }
        assert_eq!(positions(&by_count, 1, 0), [4, 5]);
        assert_eq!(positions(&by_bytes, 1, 0), [4, 5]);
    }
}
