//! One response that is a stream of events, and when a broken stream is resumed.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use rehearsal_core::message::{Message, Reason};

use super::http_client::in_words;
use crate::http::sse;
use crate::http::sse::{Decoder, EventTooLong};

/// One response that is a stream of events.
#[derive(Debug)]
pub(super) struct Reader {
    body: Incoming,
    decoder: Decoder,
    limit: usize,
    /// How the stream ended, to be told after the events that came before.
    end: Option<StreamEnd>,
}

/// What a stream gave.
#[derive(Debug)]
pub(super) enum Next {
    Event(sse::Event),
    /// The stream is over.
    End(StreamEnd),
}

/// Why a stream is over.
#[derive(Debug)]
pub(super) enum StreamEnd {
    /// The server ended it, or it broke.
    Over {
        /// What went wrong, if anything did.
        why: Option<String>,
        /// What was read of an event that never became complete.
        unfinished: Option<sse::Event>,
    },
    /// The server sent an event beyond the limit.
    TooLong(EventTooLong),
}

impl Reader {
    pub(super) fn new(body: Incoming, limit: usize) -> Reader {
        Reader { body, decoder: Decoder::new(limit), limit, end: None }
    }

    /// The next event, or how the stream ended.
    pub(super) async fn next(&mut self) -> Next {
        loop {
            if let Some(event) = self.decoder.next_event() {
                return Next::Event(event);
            }
            if let Some(end) = self.end.take() {
                return Next::End(end);
            }
            let why = match self.body.frame().await {
                Some(Ok(frame)) => {
                    let data = frame.into_data().unwrap_or_default();
                    self.end = self.decoder.push(&data).err().map(StreamEnd::TooLong);
                    continue;
                }
                Some(Err(error)) => Some(in_words(&error)),
                None => None,
            };
            let unfinished = std::mem::replace(&mut self.decoder, Decoder::new(self.limit)).finish();
            self.end = Some(StreamEnd::Over { why, unfinished });
        }
    }
}

/// The message in an event; none where it has no data, as in a priming event.
///
/// Clients ignore an event with a name that they do not know. What is in it is therefore no answer, but it is kept.
pub(super) fn message(event: &sse::Event) -> Option<Message> {
    if event.data.is_empty() {
        return None;
    }
    if event.is_message() {
        return Some(Message::parse(event.data.clone()));
    }
    let name = event.event.as_deref().unwrap_or_default();
    let detail = format!("an event named `{name}` instead of `message`");
    Some(Message::garbled(sse::encode(event), Reason::NotJson { detail }))
}

/// What is left of a message whose stream ended too early.
pub(super) fn half_message(unfinished: Option<sse::Event>) -> Option<Message> {
    let data = unfinished.map(|event| event.data).filter(|data| !data.is_empty())?;
    Some(Message::garbled(data, Reason::HalfLine))
}

/// What is kept of a message beyond the limit.
pub(super) fn long_message(data: Bytes, limit: usize) -> Message {
    Message::garbled(data, Reason::TooLong { limit })
}

/// However often a stream breaks, the next try is not further away than this, unless the server says so.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A server that says `retry: 0` and ends every stream at once is not asked more often than this.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);

/// When and where a broken stream goes on: after the last event that was seen, and not before the server's `retry`.
#[derive(Clone, Debug)]
pub(super) struct Resumption {
    last_event: Option<String>,
    retry: Duration,
    tries: u32,
    /// Tries since the last event.
    tried: u32,
}

impl Resumption {
    /// Nothing was seen yet.
    pub(super) fn new(retry: Duration, tries: u32) -> Resumption {
        Resumption { last_event: None, retry, tries, tried: 0 }
    }

    /// An event came.
    pub(super) fn note(&mut self, event: &sse::Event) {
        self.tried = 0;
        self.retry = event.retry.unwrap_or(self.retry);
        if let Some(id) = &event.id {
            self.last_event = Some(id.clone()).filter(|id| !id.is_empty());
        }
    }

    /// The server let us in again. It may have nothing to say yet and let us poll; how long is for the caller to decide.
    pub(super) fn reached(&mut self) {
        self.tried = 0;
    }

    /// The last event that has an id.
    pub(super) fn last_event(&self) -> Option<&str> {
        self.last_event.as_deref()
    }

    /// How often the stream was opened again since the last event.
    pub(super) fn tried(&self) -> u32 {
        self.tried
    }

    /// How long to wait before the next try; `None` after too many of them in vain.
    ///
    /// The server's `retry` is the least; every try in vain doubles it.
    pub(super) fn pause(&mut self) -> Option<Duration> {
        if self.tried == self.tries {
            return None;
        }
        let doubled = self.retry.saturating_mul(1 << self.tried.min(16));
        self.tried += 1;
        Some(doubled.min(LONGEST_PAUSE).max(self.retry).max(SHORTEST_PAUSE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: Option<&str>, retry: Option<u64>) -> sse::Event {
        sse::Event { id: id.map(str::to_owned), retry: retry.map(Duration::from_millis), ..sse::Event::default() }
    }

    fn pauses(resumption: &mut Resumption) -> Vec<u64> {
        std::iter::from_fn(|| resumption.pause()).map(|pause| pause.as_millis() as u64).collect()
    }

    #[test]
    fn the_server_says_how_long_to_wait_and_tries_in_vain_wait_longer() {
        let mut resumption = Resumption::new(Duration::from_secs(1), 3);
        assert_eq!(pauses(&mut resumption), [1000, 2000, 4000]);
        resumption.note(&event(Some("a"), Some(10)));
        assert_eq!(pauses(&mut resumption), [50, 50, 50], "never more often than that");
        resumption.note(&event(Some("a"), Some(100)));
        assert_eq!(pauses(&mut resumption), [100, 200, 400]);
        resumption.note(&event(None, Some(60_000)));
        assert_eq!(pauses(&mut resumption), [60_000; 3], "longer than our longest, but the server said so");
        resumption.note(&event(None, Some(20_000)));
        assert_eq!(pauses(&mut resumption), [20_000, 30_000, 30_000]);
    }

    #[test]
    fn a_server_that_lets_us_poll_is_polled_at_its_own_pace() {
        let mut resumption = Resumption::new(Duration::from_millis(200), 2);
        for _ in 0..10 {
            assert_eq!(resumption.pause(), Some(Duration::from_millis(200)));
            resumption.reached();
        }
    }

    #[test]
    fn the_last_id_counts_until_it_is_taken_back() {
        let mut resumption = Resumption::new(Duration::ZERO, 1);
        assert_eq!(resumption.last_event(), None);
        resumption.note(&event(Some("a"), None));
        resumption.note(&event(None, None));
        assert_eq!(resumption.last_event(), Some("a"));
        resumption.note(&event(Some(""), None));
        assert_eq!(resumption.last_event(), None);
    }
}
