//! What a trace consists of, whatever its file format.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{End, Entry};
use crate::exchange::{Channel, Side};
use crate::message::Message;

/// One piece of a trace. A session is a `Start`, any number of calls and entries, and a `Finish`; then the next begins.
///
/// Calls come in the order in which they were settled, entries in the order of their sequence numbers. Every message is in
/// exactly one of them, and the sequence numbers give the whole order.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// A session begins.
    Start(Start),
    /// A request and its answer.
    Call(Box<Call>),
    /// What is not a call: notifications, garbled lines, stderr, HTTP heads.
    Entry(Entry),
    /// The session is over.
    Finish {
        /// When, where that is known.
        ended_at: Option<Timestamp>,
        /// How, where that is known.
        end: Option<End>,
    },
}

/// What is known when a session begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// Unique to this session.
    pub session_id: String,
    /// What was recorded: `command`, `arguments`, `url`, `transport`, and the server's `name` and `version` once known.
    pub server_info: Map<String, Value>,
    /// When the session began, where that is known.
    pub started_at: Option<Timestamp>,
    /// Whatever the user wants to remember.
    pub metadata: Map<String, Value>,
}

/// A request and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Who asked. Before 2026-07-28 the server may ask too.
    pub asker: Side,
    /// The question: always a request.
    pub request: Placed,
    /// The answer, understood or not; `None` if none came.
    pub response: Option<Placed>,
}

/// A message with its place and time in the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The place in the whole order of the session.
    pub seq: u64,
    /// The place in the batch that carried it, where one did.
    pub item: Option<u32>,
    /// When, counted from the start of the session.
    pub at: Duration,
    /// On which stream; over HTTP the answer to a server's question comes in a POST of its own.
    pub channel: Channel,
    /// What was said.
    pub message: Message,
    /// The id of the server-sent event that carried it, where one did.
    pub event_id: Option<String>,
}

impl Placed {
    /// A message on the only channel of a pipe.
    pub fn new(seq: u64, at: Duration, message: Message) -> Placed {
        Placed { seq, item: None, at, channel: Channel::MAIN, message, event_id: None }
    }
}

impl Call {
    /// The stream that it was asked on.
    pub fn channel(&self) -> Channel {
        self.request.channel
    }

    /// From question to answer.
    pub fn took(&self) -> Option<Duration> {
        Some(self.response.as_ref()?.at.saturating_sub(self.request.at))
    }
}
