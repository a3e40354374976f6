//! One event of a stream, and how it is written.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;
use rehearsal_core::answer::fault::Misdeed;
use rehearsal_core::exchange::Channel;

use crate::http::sse::{self, Event};

/// Something that waits to be written on a channel.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    /// Its place among the messages of the channel, from 1.
    pub(super) position: u64,
    /// What it is.
    pub(super) kind: Kind,
    /// The message, or the bytes as they are.
    pub(super) bytes: Bytes,
    /// What goes wrong on purpose here.
    pub(super) misdeed: Option<Box<Misdeed>>,
}

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An answer to a request of the POST; with its code where it is an error.
    Answer {
        /// The code of the error.
        code: Option<i64>,
    },
    /// Anything else: a notification, a question.
    Aside,
    /// Bytes without framing.
    Raw,
    /// Bytes without framing that nobody needs: they never make a body whole.
    Noise,
    /// No bytes, but something that goes wrong on purpose.
    Misdeed,
}

impl Kind {
    /// Whether it has a place among the messages of its channel.
    pub(super) fn is_message(self) -> bool {
        matches!(self, Kind::Answer { .. } | Kind::Aside)
    }
}

/// The name of an event: its stream and its place in it. Unique in its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EventId {
    /// The stream.
    pub(super) channel: Channel,
    /// The place; 0 is the empty event that some streams begin with.
    pub(super) position: u64,
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.channel.0, self.position)
    }
}

impl FromStr for EventId {
    type Err = NotOurs;

    fn from_str(text: &str) -> Result<EventId, NotOurs> {
        let (channel, position) = text.split_once('-').ok_or(NotOurs)?;
        let number = |text: &str| text.parse::<u64>().map_err(|_| NotOurs);
        Ok(EventId { channel: Channel(number(channel)?), position: number(position)? })
    }
}

/// An event id that we did not write.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotOurs;

/// A message as an event.
pub(super) fn message(id: Option<EventId>, data: Bytes) -> Bytes {
    let id = id.map(|id| id.to_string());
    sse::encode(&Event { event: Some("message".to_owned()), data, id, retry: None })
}

/// The event that tells a client of HTTP+SSE where to post.
pub(super) fn endpoint(uri: &str) -> Bytes {
    let data = Bytes::copy_from_slice(uri.as_bytes());
    sse::encode(&Event { event: Some("endpoint".to_owned()), data, id: None, retry: None })
}

/// The empty event that gives a client of 2025-11-25 an id to come back with.
pub(super) fn priming(id: EventId, retry: Option<Duration>) -> Bytes {
    sse::encode(&Event { event: None, data: Bytes::new(), id: Some(id.to_string()), retry })
}

/// How long a client should wait before it comes back; no event, so nobody takes it for a message.
pub(super) fn retry(time: Duration) -> Bytes {
    format!("retry: {}\n\n", time.as_millis()).into()
}

/// An event that no client takes for a message, for its id alone: before 2025-11-25 an empty one would be taken for one.
pub(super) fn bookmark(id: EventId) -> Bytes {
    sse::encode(&Event {
        event: Some("bookmark".to_owned()),
        data: Bytes::new(),
        id: Some(id.to_string()),
        retry: None,
    })
}

/// A message under another name.
pub(super) fn named(name: &str, data: Bytes) -> Bytes {
    sse::encode(&Event { event: Some(name.to_owned()), data, id: None, retry: None })
}

/// A comment, which shows that the stream lives.
pub(super) const KEEP_ALIVE: Bytes = Bytes::from_static(b": keep-alive\n\n");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_a_message_is_a_line_of_data() {
        let id = Some(EventId { channel: Channel(3), position: 7 });
        assert_eq!(message(id, Bytes::from_static(b"{}")), "event: message\nid: 3-7\ndata: {}\n\n");
        assert_eq!(
            message(None, Bytes::from_static(b"{\r\n\"a\":\r1\n}")),
            "event: message\ndata: {\ndata: \"a\":\ndata: 1\ndata: }\n\n"
        );
        assert_eq!(endpoint("/message?sessionId=x"), "event: endpoint\ndata: /message?sessionId=x\n\n");
    }

    #[test]
    fn the_priming_event_has_an_id_and_no_data() {
        let id = EventId { channel: Channel(1), position: 0 };
        assert_eq!(priming(id, None), "id: 1-0\ndata: \n\n");
        assert_eq!(priming(id, Some(Duration::from_millis(500))), "id: 1-0\nretry: 500\ndata: \n\n");
    }

    #[test]
    fn an_event_id_that_we_did_not_write_is_not_ours() {
        let id = EventId { channel: Channel(12), position: 345 };
        assert_eq!(id.to_string().parse(), Ok(id));
        for text in ["", "1", "-", "1-", "-1", "a-b", "1-2-3", "99999999999999999999-1"] {
            assert_eq!(text.parse::<EventId>(), Err(NotOurs), "{text}");
        }
    }
}
