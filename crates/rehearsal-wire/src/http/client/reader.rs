//! One response that is a stream of events.

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use rehearsal_core::message::{Message, Reason};

use super::peer::in_words;
use crate::http::sse::{self, Decoder, EventTooLong};

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
