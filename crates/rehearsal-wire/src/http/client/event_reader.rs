//! Reads a response that is a stream of events, and decides when a broken stream is resumed.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use rehearsal_core::message::{GarbledReason, Message};

use super::http_client::join_causes;
use crate::http::sse;
use crate::http::sse::{Decoder, EventTooLong};

/// Reads a response that is a stream of events.
#[derive(Debug)]
pub(super) struct EventReader {
    body: Incoming,
    decoder: Decoder,
    limit: usize,
    /// How the stream ended. It is returned after the events before it.
    end: Option<StreamEnd>,
}

/// An item of a stream.
#[derive(Debug)]
pub(super) enum ReadEvent {
    Event(sse::SseEvent),
    /// The stream ended.
    End(StreamEnd),
}

/// Why a stream ended.
#[derive(Debug)]
pub(super) enum StreamEnd {
    /// The server closed the stream, or the connection broke.
    Over {
        /// The error, if the stream broke.
        why: Option<String>,
        /// The incomplete event at the end of the stream.
        unfinished: Option<sse::SseEvent>,
    },
    /// The server sent an event beyond the limit.
    TooLong(EventTooLong),
}

impl EventReader {
    pub(super) fn new(body: Incoming, limit: usize) -> EventReader {
        EventReader { body, decoder: Decoder::new(limit), limit, end: None }
    }

    /// Returns the next event, or how the stream ended.
    pub(super) async fn next(&mut self) -> ReadEvent {
        loop {
            if let Some(event) = self.decoder.next_event() {
                return ReadEvent::Event(event);
            }
            if let Some(end) = self.end.take() {
                return ReadEvent::End(end);
            }
            let why = match self.body.frame().await {
                Some(Ok(frame)) => {
                    let data = frame.into_data().unwrap_or_default();
                    self.end = self.decoder.push(&data).err().map(StreamEnd::TooLong);
                    continue;
                }
                Some(Err(error)) => Some(join_causes(&error)),
                None => None,
            };
            let unfinished = std::mem::replace(&mut self.decoder, Decoder::new(self.limit)).finish();
            self.end = Some(StreamEnd::Over { why, unfinished });
        }
    }
}

/// Returns the message in an event; `None` if the event has no data, such as a priming event.
///
/// Clients ignore events with an unknown name. The data of such an event is therefore no response, but it is kept as a
/// garbled message.
pub(super) fn message(event: &sse::SseEvent) -> Option<Message> {
    if event.data.is_empty() {
        return None;
    }
    if event.is_message() {
        return Some(Message::parse(event.data.clone()));
    }
    let name = event.event.as_deref().unwrap_or_default();
    let detail = format!("an event named `{name}` instead of `message`");
    Some(Message::garbled(sse::encode(event), GarbledReason::NotJson { detail }))
}

/// Returns the partial message of a stream that ended too early.
pub(super) fn partial_message(unfinished: Option<sse::SseEvent>) -> Option<Message> {
    let data = unfinished.map(|event| event.data).filter(|data| !data.is_empty())?;
    Some(Message::garbled(data, GarbledReason::PartialLine))
}

/// Returns the kept part of a message beyond the limit.
pub(super) fn long_message(data: Bytes, limit: usize) -> Message {
    Message::garbled(data, GarbledReason::TooLong { limit })
}

/// The longest pause between two attempts to resume a stream, unless the server's `retry` is longer.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// The shortest pause between two attempts, for a server that sends `retry: 0` and closes every stream at once.
const MIN_PAUSE: Duration = Duration::from_millis(50);

/// When and where a broken stream is resumed: after the last received event, and no earlier than the server's `retry`.
#[derive(Clone, Debug)]
pub(super) struct Resumption {
    last_event: Option<String>,
    retry: Duration,
    tries: u32,
    /// Attempts since the last event.
    attempts: u32,
}

impl Resumption {
    /// Starts without a last event.
    pub(super) fn new(retry: Duration, tries: u32) -> Resumption {
        Resumption { last_event: None, retry, tries, attempts: 0 }
    }

    /// Notes an event that arrived.
    pub(super) fn note(&mut self, event: &sse::SseEvent) {
        self.attempts = 0;
        self.retry = event.retry.unwrap_or(self.retry);
        if let Some(id) = &event.id {
            self.last_event = Some(id.clone()).filter(|id| !id.is_empty());
        }
    }

    /// Notes that the server opened the stream again. It may have no event yet and let the client poll; the caller
    /// decides for how long.
    pub(super) fn note_reopened(&mut self) {
        self.attempts = 0;
    }

    /// Returns the id of the last event that has one.
    pub(super) fn last_event(&self) -> Option<&str> {
        self.last_event.as_deref()
    }

    /// Returns the number of attempts since the last event.
    pub(super) fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Returns how long to wait before the next attempt; `None` after too many attempts without an event.
    ///
    /// The pause starts at the server's `retry`. Each attempt without an event doubles it.
    pub(super) fn pause(&mut self) -> Option<Duration> {
        if self.attempts == self.tries {
            return None;
        }
        let doubled = self.retry.saturating_mul(1 << self.attempts.min(16));
        self.attempts += 1;
        Some(doubled.min(MAX_PAUSE).max(self.retry).max(MIN_PAUSE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: Option<&str>, retry: Option<u64>) -> sse::SseEvent {
        sse::SseEvent { id: id.map(str::to_owned), retry: retry.map(Duration::from_millis), ..sse::SseEvent::default() }
    }

    fn pauses(resumption: &mut Resumption) -> Vec<u64> {
        std::iter::from_fn(|| resumption.pause()).map(|pause| pause.as_millis() as u64).collect()
    }

    #[test]
    fn the_pause_starts_at_the_servers_retry_and_doubles() {
        let mut resumption = Resumption::new(Duration::from_secs(1), 3);
        assert_eq!(pauses(&mut resumption), [1000, 2000, 4000]);
        resumption.note(&event(Some("a"), Some(10)));
        assert_eq!(pauses(&mut resumption), [50, 50, 50], "the shortest pause");
        resumption.note(&event(Some("a"), Some(100)));
        assert_eq!(pauses(&mut resumption), [100, 200, 400]);
        resumption.note(&event(None, Some(60_000)));
        assert_eq!(pauses(&mut resumption), [60_000; 3], "the server's retry exceeds the longest pause");
        resumption.note(&event(None, Some(20_000)));
        assert_eq!(pauses(&mut resumption), [20_000, 30_000, 30_000]);
    }

    #[test]
    fn a_reopened_stream_resets_the_pause_to_the_servers_retry() {
        let mut resumption = Resumption::new(Duration::from_millis(200), 2);
        for _ in 0..10 {
            assert_eq!(resumption.pause(), Some(Duration::from_millis(200)));
            resumption.note_reopened();
        }
    }

    #[test]
    fn an_empty_id_resets_the_last_event_id() {
        let mut resumption = Resumption::new(Duration::ZERO, 1);
        assert_eq!(resumption.last_event(), None);
        resumption.note(&event(Some("a"), None));
        resumption.note(&event(None, None));
        assert_eq!(resumption.last_event(), Some("a"));
        resumption.note(&event(Some(""), None));
        assert_eq!(resumption.last_event(), None);
    }
}
