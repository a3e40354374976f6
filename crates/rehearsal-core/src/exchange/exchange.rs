//! A request with its outcome, its side and its channel.

use std::fmt;
use std::time::Duration;

use crate::message::{Body, Message, Reply, RequestId};

/// The key that identifies a request in a connection.
///
/// It includes the side, because before 2026-07-28 the server may send requests too. It includes the channel, because
/// over stateless HTTP unrelated clients use the same ids at the same time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExchangeKey {
    /// The stream that carried the request.
    pub channel: Channel,
    /// The side that sent the request.
    pub asker: Side,
    /// The id that the side chose.
    pub id: RequestId,
}

/// A message with its time since the start of the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimedMessage {
    /// The time.
    pub at: Duration,
    /// The message.
    pub message: Message,
}

/// A request with its outcome and the notifications that belong to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The key of the request.
    pub key: ExchangeKey,
    /// The request.
    pub request: TimedMessage,
    /// The progress, log messages and cancellations that belong to it, in order.
    pub notifications: Vec<TimedMessage>,
    /// The outcome.
    pub outcome: Outcome,
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It got a response, which may be [garbled](Body::Garbled).
    Replied(TimedMessage),
    /// Its sender cancelled it; the response may still have arrived.
    Cancelled {
        /// The time of the cancellation.
        at: Duration,
        /// The response, if it still arrived.
        late: Option<TimedMessage>,
    },
    /// The connection was closed before a response, or the id was used again.
    Unanswered,
}

impl Exchange {
    /// The reply, if there is a response that is not garbled.
    pub fn reply(&self) -> Option<&Reply> {
        match self.answer()?.message.body() {
            Body::Response(response) => Some(&response.reply),
            Body::Request(_) | Body::Notification(_) | Body::Batch(_) | Body::Garbled(_) => None,
        }
    }

    /// The message of the response, which may be garbled.
    pub fn answer(&self) -> Option<&TimedMessage> {
        match &self.outcome {
            Outcome::Replied(answer) => Some(answer),
            Outcome::Cancelled { late, .. } => late.as_ref(),
            Outcome::Unanswered => None,
        }
    }

    /// The time between the request and the response.
    pub fn took(&self) -> Option<Duration> {
        Some(self.answer()?.at.saturating_sub(self.request.at))
    }
}

/// One of the two sides of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The application that uses tools.
    Client,
    /// The program that offers them.
    Server,
}

impl Side {
    /// The other side.
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

/// The stream in a connection that a message must be answered on.
///
/// Stdio has one. Over HTTP every POST is one, and messages outside of POSTs are on [`Channel::MAIN`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Channel(pub u64);

impl Channel {
    /// The only channel of stdio; the GET stream of HTTP.
    pub const MAIN: Channel = Channel(0);
}
