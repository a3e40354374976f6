//! Injected faults of a channel, and the response bodies that carry them out.
//!
//! ```text
//! fault ──► the POST has no head yet ──► a faulty response with a head: JSON, a stream of events, or neither
//!       └─► a stream is open ──────────► a faulty part of the stream
//! ```

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use rehearsal_core::exchange::Channel;
use rehearsal_core::transport_fault::{DisconnectAt, HttpRefusal, TransportFault, first_half};
use tokio::time::Sleep;

use super::channel_writer::{ChannelLife, ChannelWriter, ReaderState, Reclaimable};
use super::event_stream;
use super::event_stream::{EventId, Frame, FrameKind};
use super::options::ResponseMode;
use crate::SendError;

/// The size of one write of a flood, in bytes.
const FLOOD_CHUNK: usize = 32 * 1024;

impl ChannelWriter {
    /// Carries out a fault. Noise precedes the response; any other fault replaces it.
    pub(super) async fn inject_fault(&self, fault: TransportFault) -> Result<Reclaimable, SendError> {
        match fault {
            TransportFault::Noise(lines) => {
                for line in lines {
                    self.noise(&match self.sends_events() {
                        true => event_stream::message(None, Bytes::from(line)),
                        false => Bytes::from(line + "\n"),
                    })
                    .await?;
                }
                Ok(Reclaimable::No)
            }
            // The client does not read our stderr here. Comments, or spaces before JSON, are also bytes that it must
            // read and discard.
            TransportFault::Flood(mut bytes) => {
                let wave = if self.sends_events() { comments() } else { Bytes::from_static(&[b' '; FLOOD_CHUNK]) };
                while bytes > 0 {
                    let length = wave.len().min(usize::try_from(bytes).unwrap_or(usize::MAX));
                    // A truncated comment would merge with the event after it.
                    let wave = if self.sends_events() { wave.clone() } else { wave.slice(..length) };
                    self.noise(&wave).await?;
                    bytes -= length as u64;
                }
                Ok(Reclaimable::No)
            }
            other => self.replace(other),
        }
    }

    fn sends_events(&self) -> bool {
        self.config.answers != ResponseMode::Json || self.state().reader_state != ReaderState::Waiting
    }

    /// Queues a fault that replaces the response.
    fn replace(&self, fault: TransportFault) -> Result<Reclaimable, SendError> {
        let mut state = self.state();
        if state.life != ChannelLife::Open {
            return Err(SendError::NoChannel);
        }
        // A response that is kept for resumption has a position among the messages.
        state.position += u64::from(matches!(fault, TransportFault::CutStream(_)));
        let position = state.position;
        let fault = Some(Box::new(fault));
        state.put(Frame { position, kind: FrameKind::TransportFault, bytes: Bytes::new(), fault });
        if self.channel != Channel::MAIN {
            state.life = ChannelLife::Done;
        }
        state.wake();
        if state.life == ChannelLife::Done && state.reader_state == ReaderState::Detached {
            self.keep_all(&mut state);
            return Ok(Reclaimable::Yes);
        }
        Ok(Reclaimable::No)
    }

    /// Keeps a response for a client that resumes, and returns whether that is possible.
    fn keep_for_resume(&self, position: u64, answer: &Bytes) -> bool {
        self.keep(&Frame { position, kind: FrameKind::Other, bytes: answer.clone(), fault: None }).is_some()
    }

    /// Builds a fault as the whole HTTP response to a POST.
    pub(super) fn faulty_post_body(&self, position: u64, fault: TransportFault) -> FaultyBody {
        let events = self.config.answers == ResponseMode::Events;
        let json = |answer: Bytes, end| FaultyBody::new(FaultyHead::Json { length: answer.len() }, [answer], end);
        let whole = |answer: Bytes, end| match events {
            true => FaultyBody::new(FaultyHead::Events, [event_stream::message(None, answer)], end),
            false => json(answer, end),
        };
        let part = |answer: Bytes, end| match events {
            true => FaultyBody::new(FaultyHead::Events, [first_half(&event_stream::message(None, answer))], end),
            false => FaultyBody::new(FaultyHead::Json { length: answer.len() }, [first_half(&answer)], end),
        };
        match fault {
            TransportFault::RawAnswers(mut answers) if answers.len() == 1 => whole(answers.remove(0), BodyEnd::Proper),
            TransportFault::RawAnswers(answers) if self.config.answers == ResponseMode::Json => {
                json(Bytes::from(answers.join(&b'\n')), BodyEnd::Proper)
            }
            TransportFault::RawAnswers(answers) => FaultyBody::new(
                FaultyHead::Events,
                answers.into_iter().map(|answer| event_stream::message(None, answer)),
                BodyEnd::Proper,
            ),
            TransportFault::Truncate(answer) => part(answer, BodyEnd::Stall),
            TransportFault::Disconnect { at: DisconnectAt::Before, .. } => {
                FaultyBody::new(FaultyHead::None, [], BodyEnd::Broken)
            }
            TransportFault::Disconnect { answer, at: DisconnectAt::During } => part(answer, BodyEnd::Broken),
            TransportFault::Disconnect { answer, at: DisconnectAt::After } => whole(answer, BodyEnd::Closed),
            TransportFault::SlowWrite { answer, piece, pause } => {
                whole(answer, BodyEnd::Proper).in_pieces(piece, pause)
            }
            TransportFault::HttpStatus(refused) => refusal(refused, self.config.history.is_some()),
            TransportFault::CutStream(answer) if self.config.answers == ResponseMode::Json => {
                part(answer, BodyEnd::Broken)
            }
            TransportFault::CutStream(answer) => {
                let head =
                    if self.keep_for_resume(position, &answer) { FaultyHead::Resumable } else { FaultyHead::Events };
                FaultyBody::new(head, [first_half(&event_stream::message(None, answer))], BodyEnd::Broken)
            }
            TransportFault::ContentType { answer, content_type } => {
                let headers = HeaderMap::from_iter(HeaderValue::try_from(content_type).map(|it| (CONTENT_TYPE, it)));
                FaultyBody::new(FaultyHead::Other { status: StatusCode::OK, headers }, [answer], BodyEnd::Proper)
            }
            TransportFault::Noise(_) | TransportFault::Flood(_) => {
                unreachable!("noise never replaces a response")
            }
        }
    }

    /// Builds a fault within a stream.
    pub(super) fn faulty_stream_body(&self, position: u64, fault: TransportFault) -> FaultyBody {
        let usual = if self.channel == Channel::MAIN { BodyEnd::Continue } else { BodyEnd::Proper };
        // As over a pipe, the next message on the main channel follows the partial one directly.
        let silence = if self.channel == Channel::MAIN { BodyEnd::Continue } else { BodyEnd::Stall };
        let stream = |pieces: Vec<Bytes>, end| FaultyBody::new(FaultyHead::Events, pieces, end);
        let event = |answer: Bytes| event_stream::message(None, answer);
        match fault {
            TransportFault::RawAnswers(answers) => stream(answers.into_iter().map(event).collect(), usual),
            TransportFault::Truncate(answer) => stream(vec![first_half(&event(answer))], silence),
            TransportFault::Disconnect { at: DisconnectAt::Before, .. } => stream(Vec::new(), BodyEnd::Broken),
            TransportFault::Disconnect { answer, at: DisconnectAt::During } => {
                stream(vec![first_half(&event(answer))], BodyEnd::Broken)
            }
            TransportFault::Disconnect { answer, at: DisconnectAt::After } => {
                stream(vec![event(answer)], BodyEnd::Broken)
            }
            TransportFault::SlowWrite { answer, piece, pause } => {
                stream(vec![event(answer)], usual).in_pieces(piece, pause)
            }
            TransportFault::HttpStatus(refused) => stream(vec![event(refused.fallback_error)], usual),
            TransportFault::CutStream(answer) => {
                let id = EventId { channel: self.channel, position: position.saturating_sub(1) };
                let part = stream(vec![first_half(&event(answer))], BodyEnd::Broken);
                if self.config.history.is_some() { part.with_first(event_stream::id_only_event(id)) } else { part }
            }
            TransportFault::ContentType { answer, content_type } => {
                stream(vec![event_stream::named(&content_type, answer)], usual)
            }
            TransportFault::Noise(_) | TransportFault::Flood(_) => {
                unreachable!("noise never replaces a response")
            }
        }
    }
}

/// Builds a refusal as the whole HTTP response to a POST.
fn refusal(refused: HttpRefusal, in_session: bool) -> FaultyBody {
    let (status, headers, body) = status(refused, in_session);
    FaultyBody::new(FaultyHead::Other { status, headers }, [body], BodyEnd::Proper)
}

/// Returns the status, headers and body of a refusal.
pub(super) fn status(refused: HttpRefusal, in_session: bool) -> (StatusCode, HeaderMap, Bytes) {
    let status = StatusCode::from_u16(refused.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let body = refused.body.unwrap_or_else(|| match status {
        // The message of the TypeScript SDK. Some clients check the code in addition to the status.
        StatusCode::NOT_FOUND if in_session => {
            Bytes::from_static(br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}"#)
        }
        _ => Bytes::from(status.canonical_reason().unwrap_or_default().to_owned()),
    });
    let content_type = if body.starts_with(b"{") { "application/json" } else { "text/plain" };
    let mut headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(content_type))]);
    for (name, value) in refused.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.insert(name, value);
        }
    }
    (status, headers, body)
}

/// Builds comments that fill one write of a flood.
fn comments() -> Bytes {
    let mut comments = BytesMut::with_capacity(FLOOD_CHUNK);
    while comments.len() < FLOOD_CHUNK {
        comments.put_slice(b": this line is only a flood, and there is more of it\n\n");
    }
    comments.freeze()
}

/// How long bytes have to be sent before their socket is closed.
const FLUSH_WAIT: Duration = Duration::from_millis(50);

/// The rest of a faulty response.
#[derive(Debug)]
pub(super) struct FaultyBody {
    /// The head of the response, if the fault replaces the whole response.
    pub(super) head: FaultyHead,
    pieces: VecDeque<Bytes>,
    pause: Duration,
    end: BodyEnd,
    sleep: Option<Pin<Box<Sleep>>>,
}

/// The head of a faulty response.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FaultyHead {
    /// JSON with this `Content-Length`.
    Json {
        /// The announced number of bytes.
        length: usize,
    },
    /// A stream of events.
    Events,
    /// A stream of events that starts with an id to resume from.
    Resumable,
    /// Another content type or status.
    Other {
        /// The HTTP status.
        status: StatusCode,
        /// All headers.
        headers: HeaderMap,
    },
    /// None: the socket is closed without a response.
    None,
}

/// What follows the last piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyEnd {
    /// The regular end of the body.
    Proper,
    /// The regular end of the body, then the end of the connection.
    Closed,
    /// Nothing: the body stays incomplete.
    Stall,
    /// The socket is closed within the body.
    Broken,
    /// The stream continues normally.
    Continue,
}

/// The next step of a faulty response.
#[derive(Debug)]
pub(super) enum BodyChunk {
    /// Write these bytes.
    Bytes(Bytes),
    /// End the body.
    Over,
    /// Close the socket.
    Broken,
    /// Continue normally.
    Continue,
}

/// The error of a body that closes its socket.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the connection was broken on purpose")]
pub(super) struct AbortConnection;

impl From<Infallible> for AbortConnection {
    fn from(never: Infallible) -> AbortConnection {
        match never {}
    }
}

impl FaultyBody {
    /// Builds a faulty response from pieces and an end.
    pub(super) fn new(head: FaultyHead, pieces: impl IntoIterator<Item = Bytes>, end: BodyEnd) -> FaultyBody {
        FaultyBody { head, pieces: pieces.into_iter().collect(), pause: Duration::ZERO, end, sleep: None }
    }

    /// Splits the bytes into pieces of this size, with a pause between them.
    pub(super) fn in_pieces(mut self, piece: usize, pause: Duration) -> FaultyBody {
        let mut whole: Bytes = self.pieces.iter().flat_map(|piece| piece.iter().copied()).collect();
        self.pieces.clear();
        while !whole.is_empty() {
            self.pieces.push_back(whole.split_to(piece.clamp(1, whole.len())));
        }
        self.pause = pause;
        self
    }

    /// Adds a piece at the front.
    pub(super) fn with_first(mut self, first: Bytes) -> FaultyBody {
        self.pieces.push_front(first);
        self
    }

    /// Builds the status and headers; `None` if no head is sent.
    pub(super) fn response<B>(&self, body: B) -> Option<Response<B>> {
        let mut answer = Response::new(body);
        let headers = answer.headers_mut();
        match &self.head {
            FaultyHead::Json { length } => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                headers.insert(CONTENT_LENGTH, HeaderValue::from(*length));
            }
            FaultyHead::Events | FaultyHead::Resumable => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
                headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
            }
            FaultyHead::Other { status, headers: others } => {
                headers.extend(others.clone());
                *answer.status_mut() = *status;
            }
            FaultyHead::None => return None,
        }
        if self.end == BodyEnd::Closed {
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        Some(answer)
    }

    /// Polls the next step.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<BodyChunk> {
        if let Some(sleep) = &mut self.sleep {
            ready!(sleep.as_mut().poll(context));
            self.sleep = None;
            if self.pieces.is_empty() {
                return Poll::Ready(BodyChunk::Broken);
            }
        }
        if let Some(piece) = self.pieces.pop_front() {
            if self.pieces.is_empty() && self.end == BodyEnd::Broken {
                // Closing the socket drops unsent bytes, so the last ones get time to be sent.
                self.sleep = Some(Box::pin(tokio::time::sleep(FLUSH_WAIT)));
            } else if !self.pieces.is_empty() && !self.pause.is_zero() {
                self.sleep = Some(Box::pin(tokio::time::sleep(self.pause)));
            }
            return Poll::Ready(BodyChunk::Bytes(piece));
        }
        match self.end {
            BodyEnd::Proper | BodyEnd::Closed => Poll::Ready(BodyChunk::Over),
            BodyEnd::Broken => Poll::Ready(BodyChunk::Broken),
            BodyEnd::Continue => Poll::Ready(BodyChunk::Continue),
            // The body is dropped when the client disconnects or the server shuts down.
            BodyEnd::Stall => Poll::Pending,
        }
    }
}
