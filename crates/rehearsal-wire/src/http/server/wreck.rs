//! The body of an answer that goes wrong on purpose.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use tokio::time::Sleep;

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
