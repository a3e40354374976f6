//! The parts of a trace in any file format: sessions of calls and entries.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::exchange::{Channel, Side};
use crate::message::Message;

/// One part of a trace. A session is a `Start`, any number of calls and entries, and a `Finish`; then the next begins.
///
/// Calls come in the order in which they were complete, entries in the order of their sequence numbers. Every message
/// is in exactly one part, and the sequence numbers are the recorded order.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// A session begins.
    Start(SessionStart),
    /// A request and its response.
    Call(Box<RecordedCall>),
    /// An entry that is not part of a call: a notification, a garbled message, stderr, an HTTP head.
    Entry(Entry),
    /// The session is over.
    Finish {
        /// When the session ended, if known.
        ended_at: Option<Timestamp>,
        /// How the session ended, if known.
        end: Option<SessionEnd>,
    },
}

/// The facts that are known when a session begins.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionStart {
    /// Unique to this session.
    pub session_id: String,
    /// The recorded server: `command`, `arguments`, `url`, `transport`, and the server's `name` and `version` once
    /// known.
    pub server_info: Map<String, Value>,
    /// When the session began, if known.
    pub started_at: Option<Timestamp>,
    /// Data that the user adds to the session.
    pub metadata: Map<String, Value>,
}

/// A recorded request with its response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedCall {
    /// The side that sent the request. Before 2026-07-28 the server may send requests too.
    pub asker: Side,
    /// The message of the request; its body is always a request.
    pub request: PlacedMessage,
    /// The message of the response, which may be garbled; `None` if there was none.
    pub response: Option<PlacedMessage>,
}

/// A message with its position and time in the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedMessage {
    /// The position in the recorded order of the session.
    pub seq: u64,
    /// The position in the batch that carried the message, if there was one.
    pub item: Option<u32>,
    /// The time since the start of the session.
    pub at: Duration,
    /// The stream that carried the message. Over HTTP the response to a server request is in a POST of its own.
    pub channel: Channel,
    /// The message.
    pub message: Message,
    /// The id of the server-sent event that carried the message, if there was one.
    pub event_id: Option<String>,
}

impl PlacedMessage {
    /// A message on the only channel of stdio.
    pub fn new(seq: u64, at: Duration, message: Message) -> PlacedMessage {
        PlacedMessage { seq, item: None, at, channel: Channel::MAIN, message, event_id: None }
    }
}

impl RecordedCall {
    /// The stream that carried the request.
    pub fn channel(&self) -> Channel {
        self.request.channel
    }

    /// The time between the request and the response.
    pub fn took(&self) -> Option<Duration> {
        Some(self.response.as_ref()?.at.saturating_sub(self.request.at))
    }
}

/// One event in a session: one line of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The position in the recorded order of the session, from 0. A piece has the position of the entry that follows
    /// it.
    pub seq: u64,
    /// The position in the batch of 2025-03-26 that carried the message, if it was split; the messages of a batch share
    /// a `seq`.
    pub item: Option<u32>,
    /// The time since the start of the session.
    pub at: Duration,
    /// The event.
    pub what: EntryBody,
}

impl Entry {
    /// An entry as the recorder writes it: batches are not split.
    pub fn new(seq: u64, at: Duration, what: EntryBody) -> Entry {
        Entry { seq, item: None, at, what }
    }
}

/// An event of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryBody {
    /// A message was sent; it may be garbled.
    Message {
        /// The side that sent the message.
        from: Side,
        /// The channel on which it must be answered.
        channel: Channel,
        /// The message.
        message: Message,
        /// The id of the server-sent event that carried the message, if there was one.
        event_id: Option<String>,
    },
    /// An HTTP request or response began; its body holds the messages on its channel.
    Http {
        /// The side that sent it.
        from: Side,
        /// The channel of the POST or GET.
        channel: Channel,
        /// Its first line and headers.
        head: HttpHead,
    },
    /// A server-sent event without a message: priming, `retry`, or the `endpoint` of HTTP+SSE.
    Event {
        /// The channel of the stream.
        channel: Channel,
        /// The name of the event, if it has one.
        name: Option<String>,
        /// The id of the event, if it has one.
        id: Option<String>,
        /// The data of the event.
        data: String,
        /// The time to wait before reconnecting, in milliseconds, if the event has it.
        retry: Option<u64>,
    },
    /// A channel of HTTP ended.
    ChannelEnded {
        /// The channel.
        channel: Channel,
        /// The error, if there was one.
        why: Option<String>,
    },
    /// The server wrote a line to its stderr.
    Stderr {
        /// The line; bytes that are not UTF-8 are shown as `�`.
        line: String,
    },
    /// A piece of a message was forwarded before the message was complete. Only journals have pieces. The next message
    /// of the same side on the channel is the whole message, and its pieces are dropped. If none follows, the recorder
    /// was killed in the middle of it, and the pieces together are a garbled message, a partial line.
    Piece {
        /// The side that sent it.
        from: Side,
        /// The channel.
        channel: Channel,
        /// The offset in the line; bytes that were kept from there on are replaced.
        offset: usize,
        /// The bytes of the piece.
        bytes: Bytes,
    },
    /// The session ended.
    Ended(SessionEnd),
}

/// The first line and the headers of an HTTP request or response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpHead {
    /// The method of a request, such as `POST`.
    pub method: Option<String>,
    /// The path and query of a request.
    pub target: Option<String>,
    /// The status of a response.
    pub status: Option<u16>,
    /// Names and values of the headers as received, in order.
    pub headers: Headers,
}

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionEnd {
    /// The client closed its side, and the server exited after that, with this status if it is a process.
    ClientClosed {
        /// The exit status of the server.
        status: Option<i32>,
    },
    /// The server exited while the client was connected.
    ServerExited {
        /// The exit status.
        status: Option<i32>,
        /// The signal that killed it.
        signal: Option<i32>,
    },
    /// The user stopped the recorder.
    Stopped,
    /// The transport or the recorder failed.
    Failed {
        /// The error as text.
        why: String,
    },
    /// The recorder was killed; the session was restored from its journal afterwards.
    Recovered,
}

/// Names and values of headers as received, in order.
///
/// They are in one text: an HTTP recorder stores two heads for each call, and a string for each name and value would
/// double the cost.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers {
    text: String,
    /// The end of each name and of its value; the next name begins at the end of the value.
    ends: Vec<(usize, usize)>,
}

impl Headers {
    /// The headers of a head as received; bytes that are not UTF-8 are shown as `�`.
    pub fn lossy<'a>(fields: impl Iterator<Item = (&'a str, &'a [u8])> + Clone) -> Headers {
        let bytes = fields.clone().map(|(name, value)| name.len() + value.len()).sum();
        let (mut text, mut ends) = (Vec::with_capacity(bytes), Vec::with_capacity(fields.clone().count()));
        for (name, value) in fields.clone() {
            text.extend_from_slice(name.as_bytes());
            let name_end = text.len();
            text.extend_from_slice(value);
            ends.push((name_end, text.len()));
        }
        // All values are checked at once. An incomplete character at the end of a value must not be completed by the
        // next value.
        match String::from_utf8(text) {
            Ok(text) if ends.iter().all(|(_, end)| text.is_char_boundary(*end)) => Headers { text, ends },
            _ => fields.map(|(name, value)| (name, String::from_utf8_lossy(value))).collect(),
        }
    }

    /// Adds a header.
    fn push(&mut self, name: &str, value: &str) {
        self.text.push_str(name);
        let name_end = self.text.len();
        self.text.push_str(value);
        self.ends.push((name_end, self.text.len()));
    }

    /// The ranges of each name and value.
    fn places(&self) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
        let mut start = 0;
        self.ends.iter().map(move |&(name_end, end)| (std::mem::replace(&mut start, end)..name_end, name_end..end))
    }

    /// The name and the value of each header.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.places().map(|(name, value)| (&self.text[name], &self.text[value]))
    }

    /// The values of all headers with this name, case-insensitive.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let is_named = move |place: Range<usize>| self.text.as_bytes()[place].eq_ignore_ascii_case(name.as_bytes());
        self.places().filter_map(move |(name, value)| is_named(name).then(|| &self.text[value]))
    }

    /// The value of the first header with this name, case-insensitive.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// All names and values, concatenated.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl<N: AsRef<str>, V: AsRef<str>> FromIterator<(N, V)> for Headers {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Headers {
        let mut headers = Headers::default();
        pairs.into_iter().for_each(|(name, value)| headers.push(name.as_ref(), value.as_ref()));
        headers
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn header_names_are_case_insensitive() {
        let headers: Headers = [("Accept", "a"), ("x", ""), ("aCCept", "b")].into_iter().collect();
        assert_eq!((headers.get("accept"), headers.get("X"), headers.get("")), (Some("a"), Some(""), None));
        assert_eq!(headers.all("ACCEPT").collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn a_lone_surrogate_is_kept() {
        let half = |fields: &[(&'static str, &'static [u8])]| Headers::lossy(fields.iter().copied());
        let headers = half(&[("a", b"\xc3"), ("", b"\xa9"), ("b", "é".as_bytes())]);
        assert_eq!(headers.iter().collect::<Vec<_>>(), [("a", "�"), ("", "�"), ("b", "é")]);
    }

    proptest! {
        #[test]
        fn any_header_is_kept_as_text(fields: Vec<(String, Vec<u8>)>) {
            let headers = Headers::lossy(fields.iter().map(|(name, value)| (name.as_str(), value.as_slice())));
            let texts = fields.iter().map(|(name, value)| (name, String::from_utf8_lossy(value)));
            prop_assert_eq!(headers, texts.collect());
        }

        #[test]
        fn names_and_values_are_read_back_in_their_order(pairs: Vec<(String, String)>) {
            let headers: Headers = pairs.iter().map(|(name, value)| (name, value)).collect();
            let back: Vec<_> = headers.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            prop_assert_eq!(back, pairs);
        }
    }
}
