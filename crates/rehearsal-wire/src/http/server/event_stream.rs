//! The body of an answer that is a stream of events.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use http_body_util::Either;
use hyper::body::{Body, Frame};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Interval, MissedTickBehavior};

use super::flow::Next;
use super::frame::KEEP_ALIVE;
use super::outlet::Outlet;
use super::refusal::Answer;
use super::session::{Busy, Session};
use super::wreck::{Broken, Piece, Wreck};

/// A stream of events: first what it was given, then what a channel says.
#[derive(Debug)]
pub(super) struct EventStream {
    session: Arc<Session>,
    first: VecDeque<Bytes>,
    source: Option<Source>,
    /// What goes wrong on purpose, instead of everything else.
    wreck: Option<Box<Wreck>>,
    keep_alive: Interval,
    _busy: Busy,
    _permit: OwnedSemaphorePermit,
}

#[derive(Debug)]
struct Source {
    outlet: Arc<Outlet>,
    reader: u64,
}

impl EventStream {
    /// Events that are there already, and nothing more.
    pub(super) fn of(
        session: Arc<Session>,
        first: impl IntoIterator<Item = Bytes>,
        keep_alive: Duration,
        permit: OwnedSemaphorePermit,
    ) -> EventStream {
        let mut keep_alive = tokio::time::interval_at(Instant::now() + keep_alive, keep_alive);
        keep_alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let _busy = Busy::new(&session);
        let first = first.into_iter().collect();
        EventStream { session, first, source: None, wreck: None, keep_alive, _busy, _permit: permit }
    }

    /// Goes on with what a channel says to this reader.
    pub(super) fn then(mut self, outlet: Arc<Outlet>, reader: u64) -> EventStream {
        self.source = Some(Source { outlet, reader });
        self
    }

    /// Goes wrong.
    pub(super) fn wrecked(mut self, wreck: Box<Wreck>) -> EventStream {
        self.wreck = Some(wreck);
        self
    }

    /// As an answer.
    pub(super) fn answer(self, headers: HeaderMap) -> Answer {
        let mut answer = Response::new(Either::Right(self));
        let head = answer.headers_mut();
        head.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        head.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        // Proxies that gather a whole response before they pass it on would turn a stream into silence.
        head.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
        head.extend(headers);
        answer
    }
}

impl Body for EventStream {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let this = self.get_mut();
        if let Some(wreck) = &mut this.wreck {
            match ready!(wreck.poll(context)) {
                Piece::Bytes(bytes) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                Piece::Over => return Poll::Ready(None),
                Piece::Broken => return Poll::Ready(Some(Err(Broken))),
                Piece::GoesOn => this.wreck = None,
            }
        }
        let next = match (this.first.pop_front(), &this.source) {
            (Some(event), _) => Poll::Ready(Some(Next::Event(event))),
            (None, Some(source)) => source.outlet.poll_event(source.reader, context),
            (None, None) => Poll::Ready(None),
        };
        match next {
            Poll::Ready(Some(Next::Event(event))) => {
                this.keep_alive.reset();
                Poll::Ready(Some(Ok(Frame::data(event))))
            }
            Poll::Ready(Some(Next::Wreck(wreck))) => {
                this.wreck = Some(wreck);
                Pin::new(this).poll_frame(context)
            }
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => this.keep_alive.poll_tick(context).map(|_| Some(Ok(Frame::data(KEEP_ALIVE)))),
        }
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        if let Some(source) = &self.source {
            self.session.left(&source.outlet, source.reader);
        }
    }
}
