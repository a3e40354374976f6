//! What a trace consists of, whatever its file format: sessions of calls and entries.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Map, Value};

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

/// Names and values of headers as they came, in order.
///
/// All in one text: whoever records HTTP sees two heads a call, and a string for each name and value would be half of
/// what that costs.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers {
    text: String,
    /// Where each name and its value end; the next name begins there.
    ends: Vec<(usize, usize)>,
}

impl Headers {
    /// Those of a head as it came; bytes that are not UTF-8 are shown as `�`.
    pub fn lossy<'a>(fields: impl Iterator<Item = (&'a str, &'a [u8])> + Clone) -> Headers {
        let bytes = fields.clone().map(|(name, value)| name.len() + value.len()).sum();
        let (mut text, mut ends) = (Vec::with_capacity(bytes), Vec::with_capacity(fields.clone().count()));
        for (name, value) in fields.clone() {
            text.extend_from_slice(name.as_bytes());
            let name_end = text.len();
            text.extend_from_slice(value);
            ends.push((name_end, text.len()));
        }
        // One look at all of them; half a letter at the end of a value must not be made whole by the next.
        match String::from_utf8(text) {
            Ok(text) if ends.iter().all(|(_, end)| text.is_char_boundary(*end)) => Headers { text, ends },
            _ => fields.map(|(name, value)| (name, String::from_utf8_lossy(value))).collect(),
        }
    }

    /// One more.
    fn push(&mut self, name: &str, value: &str) {
        self.text.push_str(name);
        let name_end = self.text.len();
        self.text.push_str(value);
        self.ends.push((name_end, self.text.len()));
    }

    /// Where name and value of each stand.
    fn places(&self) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
        let mut start = 0;
        self.ends.iter().map(move |&(name_end, end)| (std::mem::replace(&mut start, end)..name_end, name_end..end))
    }

    /// Name and value of each.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.places().map(|(name, value)| (&self.text[name], &self.text[value]))
    }

    /// The values of all headers of this name, however it is spelled.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let is_named = move |place: Range<usize>| self.text.as_bytes()[place].eq_ignore_ascii_case(name.as_bytes());
        self.places().filter_map(move |(name, value)| is_named(name).then(|| &self.text[value]))
    }

    /// The value of the first header of this name, however it is spelled.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// All names and values, one behind the other.
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
    fn a_header_is_found_however_it_is_spelled() {
        let headers: Headers = [("Accept", "a"), ("x", ""), ("aCCept", "b")].into_iter().collect();
        assert_eq!((headers.get("accept"), headers.get("X"), headers.get("")), (Some("a"), Some(""), None));
        assert_eq!(headers.all("ACCEPT").collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn half_a_letter_stays_half_a_letter() {
        let half = |fields: &[(&'static str, &'static [u8])]| Headers::lossy(fields.iter().copied());
        let headers = half(&[("a", b"\xc3"), ("", b"\xa9"), ("b", "é".as_bytes())]);
        assert_eq!(headers.iter().collect::<Vec<_>>(), [("a", "�"), ("", "�"), ("b", "é")]);
    }

    proptest! {
        #[test]
        fn whatever_came_is_kept_as_text(fields: Vec<(String, Vec<u8>)>) {
            let headers = Headers::lossy(fields.iter().map(|(name, value)| (name.as_str(), value.as_slice())));
            let texts = fields.iter().map(|(name, value)| (name, String::from_utf8_lossy(value)));
            prop_assert_eq!(headers, texts.collect());
        }

        #[test]
        fn names_and_values_come_back_in_their_order(pairs: Vec<(String, String)>) {
            let headers: Headers = pairs.iter().map(|(name, value)| (name, value)).collect();
            let back: Vec<_> = headers.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            prop_assert_eq!(back, pairs);
        }
    }
}
