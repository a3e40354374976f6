//! How far a channel has come.

use std::collections::VecDeque;
use std::task::Waker;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

use super::frame::{EventId, Frame};
use super::unanswered::Unanswered;
use super::wreck::Wreck;

/// How far a channel has come.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) life: Life,
    pub(super) stage: Stage,
    pub(super) unanswered: Unanswered,
    pub(super) queue: VecDeque<Frame>,
    /// The position of the newest message.
    pub(super) position: u64,
    /// Set when the stream shall end here and go on in another.
    pub(super) cut: Option<u64>,
    pub(super) readers: u64,
    pub(super) headers: HeaderMap,
    pub(super) waker: Option<Waker>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// More may be said.
    Open,
    /// Every request is answered.
    Done,
    /// The channel was closed, by us or with its session.
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The POST waits for the first thing to say.
    Waiting,
    /// A stream of events takes what there is.
    Attached { reader: u64 },
    /// Nobody listens; somebody may come back.
    Detached,
}

/// How a POST is answered after all.
#[derive(Debug)]
pub(super) enum First {
    /// With these answers as a whole.
    Whole(Vec<Frame>, StatusCode, HeaderMap),
    /// With a stream.
    Events(HeaderMap),
    /// Not at all: the channel was closed.
    Ended,
    /// Wrongly, on purpose.
    Wreck(Box<Wreck>, HeaderMap),
}

/// What a stream takes next.
#[derive(Debug)]
pub(super) enum Next {
    /// An event, as it is written.
    Event(Bytes),
    /// Something that goes wrong on purpose.
    Wreck(Box<Wreck>),
}

/// What became of a channel that nobody listens to any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// Somebody else listens already.
    Superseded,
    /// Everything had been said.
    Finished,
    /// More may be said.
    Unfinished,
}

/// A client that came back: what it missed, and the number of its stream if there is more to come.
#[derive(Debug)]
pub(super) struct Resumed {
    /// The events that it missed.
    pub(super) missed: Vec<(EventId, Bytes)>,
    /// The stream that goes on.
    pub(super) reader: u64,
}

/// Whether a channel can be forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spent {
    /// All is said, and all of it is in the history.
    Yes,
    /// Somebody still takes from it.
    No,
}

impl Flow {
    pub(super) fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    pub(super) fn attach(&mut self) -> u64 {
        self.readers += 1;
        // The cut was made for the stream before; whoever attaches from `Waiting` is that stream.
        if self.stage != Stage::Waiting {
            self.cut = None;
        }
        self.stage = Stage::Attached { reader: self.readers };
        self.wake();
        self.readers
    }

    /// Whether a client is there that will take more.
    pub(super) fn is_heard(&self) -> bool {
        self.stage != Stage::Detached && self.cut.is_none()
    }
}
