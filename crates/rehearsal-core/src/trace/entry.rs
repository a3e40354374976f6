//! One thing that happened in a session.

use std::time::Duration;

use bytes::Bytes;

use super::headers::Headers;
use crate::exchange::{Channel, Side};
use crate::message::Message;

/// One thing that happened in a session: one line of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The place in the whole order of the session, from 0. A piece takes none: it has that of what comes next.
    pub seq: u64,
    /// The place in the batch that carried it, where a batch of 2025-03-26 was taken apart; its messages share a `seq`.
    pub item: Option<u32>,
    /// When, counted from the start of the session.
    pub at: Duration,
    /// What.
    pub what: What,
}

impl Entry {
    /// What happened, as it is recorded: batches are whole.
    pub fn new(seq: u64, at: Duration, what: What) -> Entry {
        Entry { seq, item: None, at, what }
    }
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A message passed, understood or not.
    Message {
        /// Who said it.
        from: Side,
        /// Where it must be answered.
        channel: Channel,
        /// What was said.
        message: Message,
        /// The id of the server-sent event that carried it, where one did.
        event_id: Option<String>,
    },
    /// An HTTP request or response began; the messages on its channel are in its body.
    Http {
        /// Who sent it.
        from: Side,
        /// Which POST or GET.
        channel: Channel,
        /// Its first line and headers.
        head: HttpHead,
    },
    /// A server-sent event without a message: priming, `retry`, or the `endpoint` of HTTP+SSE.
    Event {
        /// On which stream.
        channel: Channel,
        /// Its name, where it has one.
        name: Option<String>,
        /// Its id, where it has one.
        id: Option<String>,
        /// Its data.
        data: String,
        /// How long to wait before coming back, in milliseconds, where it says so.
        retry: Option<u64>,
    },
    /// Nothing more comes on a channel of HTTP.
    ChannelEnded {
        /// Which.
        channel: Channel,
        /// What went wrong, where something did.
        why: Option<String>,
    },
    /// The server wrote a line to its stderr.
    Stderr {
        /// The line; bytes that are not UTF-8 are shown as `�`.
        line: String,
    },
    /// Some of a message was passed on before its end had come. Only journals have this: the message that the same side
    /// says next on the channel is the whole of it, and nothing is left of its pieces then. Where none follows, the
    /// recorder was killed in the middle of it, and the pieces together are a garbled message, half a line.
    Piece {
        /// Who said it.
        from: Side,
        /// Where.
        channel: Channel,
        /// Where it stands in the line; what was kept from there on is replaced.
        offset: usize,
        /// What was passed on.
        bytes: Bytes,
    },
    /// The session ended.
    Ended(End),
}

/// The first line and the headers of an HTTP request or response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpHead {
    /// `POST` and its kin, on a request.
    pub method: Option<String>,
    /// The path and query, on a request.
    pub target: Option<String>,
    /// On a response.
    pub status: Option<u16>,
    /// Names and values as they came, in order.
    pub headers: Headers,
}

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The client closed its side, and the server ended after that, with this status where it is a process.
    ClientClosed {
        /// The exit status of the server.
        status: Option<i32>,
    },
    /// The server ended by itself.
    ServerExited {
        /// The exit status.
        status: Option<i32>,
        /// The signal that killed it.
        signal: Option<i32>,
    },
    /// The recorder was told to stop.
    Stopped,
    /// Something broke.
    Failed {
        /// What, in words.
        why: String,
    },
    /// The recorder was killed; the session was put together from its journal afterwards.
    Recovered,
}
