//! Injected faults of a channel, and the response bodies that carry them out.
//!
//! ```text
//! misdeed ──► the POST still waits ──► a wreck with a head: JSON, a stream of events, or neither
//!         └─► a stream runs ─────────► a wreck in the middle of it
//! ```

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use rehearsal_core::answer::fault::{Misdeed, Moment, Refused, half};
use rehearsal_core::exchange::Channel;
use tokio::time::Sleep;

use super::channel_writer::{Life, Outlet, Spent, Stage};
use super::event_stream;
use super::event_stream::{EventId, Frame, Kind};
use super::options::Answers;
use crate::SendError;

/// How much of a flood is written at once.
const WAVE: usize = 32 * 1024;

impl Outlet {
    /// Does something wrong. Noise comes before the answer; anything else stands in its place.
    pub(super) async fn misbehave(&self, misdeed: Misdeed) -> Result<Spent, SendError> {
        match misdeed {
            Misdeed::Noise(lines) => {
                for line in lines {
                    self.noise(&match self.speaks_events() {
                        true => event_stream::message(None, Bytes::from(line)),
                        false => Bytes::from(line + "\n"),
                    })
                    .await?;
                }
                Ok(Spent::No)
            }
            // Nobody listens to our stderr here. Comments, and space before JSON, are as useless and must be read too.
            Misdeed::Flood(mut bytes) => {
                let wave = if self.speaks_events() { comments() } else { Bytes::from_static(&[b' '; WAVE]) };
                while bytes > 0 {
                    let length = wave.len().min(usize::try_from(bytes).unwrap_or(usize::MAX));
                    // A comment that is cut off would swallow the event after it.
                    let wave = if self.speaks_events() { wave.clone() } else { wave.slice(..length) };
                    self.noise(&wave).await?;
                    bytes -= length as u64;
                }
                Ok(Spent::No)
            }
            other => self.replace(other),
        }
    }

    fn speaks_events(&self) -> bool {
        self.terms.answers != Answers::Json || self.flow().stage != Stage::Waiting
    }

    /// Puts a misdeed in the place of the answer.
    fn replace(&self, misdeed: Misdeed) -> Result<Spent, SendError> {
        let mut flow = self.flow();
        if flow.life != Life::Open {
            return Err(SendError::NoChannel);
        }
        // What is kept for clients that come back has a place among the messages.
        flow.position += u64::from(matches!(misdeed, Misdeed::Cut(_)));
        let position = flow.position;
        let misdeed = Some(Box::new(misdeed));
        flow.put(Frame { position, kind: Kind::Misdeed, bytes: Bytes::new(), misdeed });
        if self.channel != Channel::MAIN {
            flow.life = Life::Done;
        }
        flow.wake();
        if flow.life == Life::Done && flow.stage == Stage::Detached {
            self.keep_all(&mut flow);
            return Ok(Spent::Yes);
        }
        Ok(Spent::No)
    }

    /// Keeps an answer for whoever comes back; whether anybody can.
    fn keep_cut(&self, position: u64, answer: &Bytes) -> bool {
        self.keep(&Frame { position, kind: Kind::Aside, bytes: answer.clone(), misdeed: None }).is_some()
    }

    /// The misdeed as the whole answer to a POST.
    pub(super) fn wreck_of_post(&self, position: u64, misdeed: Misdeed) -> Wreck {
        let events = self.terms.answers == Answers::Events;
        let json = |answer: Bytes, end| Wreck::new(Head::Json { length: answer.len() }, [answer], end);
        let whole = |answer: Bytes, end| match events {
            true => Wreck::new(Head::Events, [event_stream::message(None, answer)], end),
            false => json(answer, end),
        };
        let part = |answer: Bytes, end| match events {
            true => Wreck::new(Head::Events, [half(&event_stream::message(None, answer))], end),
            false => Wreck::new(Head::Json { length: answer.len() }, [half(&answer)], end),
        };
        match misdeed {
            Misdeed::Answer(mut answers) if answers.len() == 1 => whole(answers.remove(0), End::Proper),
            Misdeed::Answer(answers) if self.terms.answers == Answers::Json => {
                json(Bytes::from(answers.join(&b'\n')), End::Proper)
            }
            Misdeed::Answer(answers) => Wreck::new(
                Head::Events,
                answers.into_iter().map(|answer| event_stream::message(None, answer)),
                End::Proper,
            ),
            Misdeed::Half(answer) => part(answer, End::Silence),
            Misdeed::Disconnect { moment: Moment::Before, .. } => Wreck::new(Head::None, [], End::Broken),
            Misdeed::Disconnect { answer, moment: Moment::During } => part(answer, End::Broken),
            Misdeed::Disconnect { answer, moment: Moment::After } => whole(answer, End::Closed),
            Misdeed::Drip { answer, piece, pause } => whole(answer, End::Proper).dripping(piece, pause),
            Misdeed::Refuse(refused) => refusal(refused, self.terms.history.is_some()),
            Misdeed::Cut(answer) if self.terms.answers == Answers::Json => part(answer, End::Broken),
            Misdeed::Cut(answer) => {
                let head = if self.keep_cut(position, &answer) { Head::Resumable } else { Head::Events };
                Wreck::new(head, [half(&event_stream::message(None, answer))], End::Broken)
            }
            Misdeed::ContentType { answer, content_type } => {
                let headers = HeaderMap::from_iter(HeaderValue::try_from(content_type).map(|it| (CONTENT_TYPE, it)));
                Wreck::new(Head::Other { status: StatusCode::OK, headers }, [answer], End::Proper)
            }
            Misdeed::Noise(_) | Misdeed::Flood(_) => unreachable!("noise has no place in the place of the answer"),
        }
    }

    /// The misdeed in the middle of a stream.
    pub(super) fn wreck_of_stream(&self, position: u64, misdeed: Misdeed) -> Wreck {
        let usual = if self.channel == Channel::MAIN { End::GoesOn } else { End::Proper };
        // The same silence as over a pipe: what comes next on a stream of all answers runs into the half.
        let silence = if self.channel == Channel::MAIN { End::GoesOn } else { End::Silence };
        let stream = |pieces: Vec<Bytes>, end| Wreck::new(Head::Events, pieces, end);
        let event = |answer: Bytes| event_stream::message(None, answer);
        match misdeed {
            Misdeed::Answer(answers) => stream(answers.into_iter().map(event).collect(), usual),
            Misdeed::Half(answer) => stream(vec![half(&event(answer))], silence),
            Misdeed::Disconnect { moment: Moment::Before, .. } => stream(Vec::new(), End::Broken),
            Misdeed::Disconnect { answer, moment: Moment::During } => stream(vec![half(&event(answer))], End::Broken),
            Misdeed::Disconnect { answer, moment: Moment::After } => stream(vec![event(answer)], End::Broken),
            Misdeed::Drip { answer, piece, pause } => stream(vec![event(answer)], usual).dripping(piece, pause),
            Misdeed::Refuse(refused) => stream(vec![event(refused.instead)], usual),
            Misdeed::Cut(answer) => {
                let id = EventId { channel: self.channel, position: position.saturating_sub(1) };
                let part = stream(vec![half(&event(answer))], End::Broken);
                if self.terms.history.is_some() { part.after(event_stream::bookmark(id)) } else { part }
            }
            Misdeed::ContentType { answer, content_type } => {
                stream(vec![event_stream::named(&content_type, answer)], usual)
            }
            Misdeed::Noise(_) | Misdeed::Flood(_) => unreachable!("noise has no place in the place of the answer"),
        }
    }
}

/// A refusal as the whole answer to a POST.
fn refusal(refused: Refused, in_session: bool) -> Wreck {
    let (status, headers, body) = status(refused, in_session);
    Wreck::new(Head::Other { status, headers }, [body], End::Proper)
}

/// A status and what comes with it.
pub(super) fn status(refused: Refused, in_session: bool) -> (StatusCode, HeaderMap, Bytes) {
    let status = StatusCode::from_u16(refused.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let body = refused.body.unwrap_or_else(|| match status {
        // What the TypeScript SDK says; some clients look for the code besides the status.
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

/// Comments that fill a wave.
fn comments() -> Bytes {
    let mut comments = BytesMut::with_capacity(WAVE);
    while comments.len() < WAVE {
        comments.put_slice(b": nobody needs to know this, and there is more of it\n\n");
    }
    comments.freeze()
}

/// How long bytes have to leave before their socket is closed.
const FAREWELL: Duration = Duration::from_millis(50);

/// An answer that goes wrong: what is left of it.
#[derive(Debug)]
pub(super) struct Wreck {
    /// How it begins, where it is the whole answer to a POST.
    pub(super) head: Head,
    pieces: VecDeque<Bytes>,
    pause: Duration,
    end: End,
    sleep: Option<Pin<Box<Sleep>>>,
}

/// How an answer begins.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// As JSON of this length, as far as anybody is told.
    Json {
        /// How many bytes are announced.
        length: usize,
    },
    /// As a stream of events.
    Events,
    /// As a stream of events that begins with an id to come back with.
    Resumable,
    /// As something else.
    Other {
        /// The status.
        status: StatusCode,
        /// Every header.
        headers: HeaderMap,
    },
    /// Not at all: the socket is closed without a word.
    None,
}

/// What comes after the last piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The proper end of the body.
    Proper,
    /// The proper end of the body, and then that of the socket.
    Closed,
    /// Nothing, and the body is not over.
    Silence,
    /// The socket is closed in the middle of the body.
    Broken,
    /// The stream goes on as if nothing had happened.
    GoesOn,
}

/// What a wreck gives next.
#[derive(Debug)]
pub(super) enum Piece {
    /// Bytes.
    Bytes(Bytes),
    /// The body is over.
    Over,
    /// The socket is to be closed.
    Broken,
    /// The rest is as usual.
    GoesOn,
}

/// A body that ends its socket.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the connection was broken on purpose")]
pub(super) struct Broken;

impl From<Infallible> for Broken {
    fn from(never: Infallible) -> Broken {
        match never {}
    }
}

impl Wreck {
    /// Some bytes and an end.
    pub(super) fn new(head: Head, pieces: impl IntoIterator<Item = Bytes>, end: End) -> Wreck {
        Wreck { head, pieces: pieces.into_iter().collect(), pause: Duration::ZERO, end, sleep: None }
    }

    /// In pieces of this many bytes, with a pause between them.
    pub(super) fn dripping(mut self, piece: usize, pause: Duration) -> Wreck {
        let mut whole: Bytes = self.pieces.iter().flat_map(|piece| piece.iter().copied()).collect();
        self.pieces.clear();
        while !whole.is_empty() {
            self.pieces.push_back(whole.split_to(piece.clamp(1, whole.len())));
        }
        self.pause = pause;
        self
    }

    /// The same, with this first.
    pub(super) fn after(mut self, first: Bytes) -> Wreck {
        self.pieces.push_front(first);
        self
    }

    /// The status and headers; `None` where not even they are sent.
    pub(super) fn response<B>(&self, body: B) -> Option<Response<B>> {
        let mut answer = Response::new(body);
        let headers = answer.headers_mut();
        match &self.head {
            Head::Json { length } => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                headers.insert(CONTENT_LENGTH, HeaderValue::from(*length));
            }
            Head::Events | Head::Resumable => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
                headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
            }
            Head::Other { status, headers: others } => {
                headers.extend(others.clone());
                *answer.status_mut() = *status;
            }
            Head::None => return None,
        }
        if self.end == End::Closed {
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        Some(answer)
    }

    /// The next piece.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Piece> {
        if let Some(sleep) = &mut self.sleep {
            ready!(sleep.as_mut().poll(context));
            self.sleep = None;
            if self.pieces.is_empty() {
                return Poll::Ready(Piece::Broken);
            }
        }
        if let Some(piece) = self.pieces.pop_front() {
            if self.pieces.is_empty() && self.end == End::Broken {
                // The socket takes what is written with it to its grave, so the last bytes get a head start.
                self.sleep = Some(Box::pin(tokio::time::sleep(FAREWELL)));
            } else if !self.pieces.is_empty() && !self.pause.is_zero() {
                self.sleep = Some(Box::pin(tokio::time::sleep(self.pause)));
            }
            return Poll::Ready(Piece::Bytes(piece));
        }
        match self.end {
            End::Proper | End::Closed => Poll::Ready(Piece::Over),
            End::Broken => Poll::Ready(Piece::Broken),
            End::GoesOn => Poll::Ready(Piece::GoesOn),
            // Whoever holds the body drops it when its client leaves or the server shuts down.
            End::Silence => Poll::Pending,
        }
    }
}
