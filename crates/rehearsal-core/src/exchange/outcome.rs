//! A request and what became of it, with the side and the channel that it was sent on.

use std::fmt;
use std::time::Duration;

use crate::message::{Body, Message, Reply, RequestId};

/// What makes a request unique in a connection.
///
/// Before 2026-07-28 the server may ask too, so the asker is part of it; over stateless HTTP unrelated clients use the
/// same ids at the same time, so the channel is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The stream that it was asked on.
    pub channel: Channel,
    /// Who asked.
    pub asker: Side,
    /// What the asker called it.
    pub id: RequestId,
}

/// A message and when it passed, counted from the start of the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamped {
    /// When.
    pub at: Duration,
    /// What.
    pub message: Message,
}

/// A request and what became of it, with the notifications that belong to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Which request.
    pub key: Key,
    /// The question.
    pub request: Stamped,
    /// Progress, log messages and cancellations that belong to it, in order.
    pub notifications: Vec<Stamped>,
    /// What became of it.
    pub outcome: Outcome,
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was answered, possibly with something [garbled](Body::Garbled).
    Replied(Stamped),
    /// The asker took it back; the answer may still have come.
    Cancelled {
        /// When it was taken back.
        at: Duration,
        /// The answer that came all the same.
        late: Option<Stamped>,
    },
    /// The conversation ended first, or the id was used again.
    Unanswered,
}

impl Exchange {
    /// The answer, if one came and could be understood.
    pub fn reply(&self) -> Option<&Reply> {
        match self.answer()?.message.body() {
            Body::Response(response) => Some(&response.reply),
            Body::Request(_) | Body::Notification(_) | Body::Batch(_) | Body::Garbled(_) => None,
        }
    }

    /// The message that answered, understood or not.
    pub fn answer(&self) -> Option<&Stamped> {
        match &self.outcome {
            Outcome::Replied(answer) => Some(answer),
            Outcome::Cancelled { late, .. } => late.as_ref(),
            Outcome::Unanswered => None,
        }
    }

    /// From question to answer.
    pub fn took(&self) -> Option<Duration> {
        Some(self.answer()?.at.saturating_sub(self.request.at))
    }
}

/// One of the two ends of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The application that uses tools.
    Client,
    /// The program that offers them.
    Server,
}

impl Side {
    /// The other end.
    pub fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Client => "client",
            Side::Server => "server",
        })
    }
}

/// The stream inside a connection that a message must be answered on.
///
/// A pipe has one. Over HTTP every POST is one, and what belongs to no POST is on [`Channel::MAIN`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Channel(pub u64);

impl Channel {
    /// The only channel of a pipe; the standing stream of HTTP.
    pub const MAIN: Channel = Channel(0);
}
