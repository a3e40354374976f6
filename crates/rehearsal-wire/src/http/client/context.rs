//! The state shared by all tasks of a connection.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use http::header::{ACCEPT, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use rehearsal_core::exchange::Channel;
use rehearsal_core::protocol::header;

use super::answer::{Answer, refusal};
use super::event_reader::Resumption;
use super::http_client::{Peer, Posted};
use super::memory::Memory;
use super::{ConnectError, Options};

/// The state shared by all tasks of a connection.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) peer: Peer,
    pub(super) options: Options,
    memory: Mutex<Memory>,
    /// The broken streams that are being resumed, with the error.
    troubles: Mutex<HashMap<Channel, String>>,
}

/// Marks a stream as being resumed, until this is dropped.
pub(super) struct Trouble<'a> {
    context: &'a Context,
    channel: Channel,
}

impl Trouble<'_> {
    /// Sets the last error.
    pub(super) fn is(&self, what: String) {
        self.context.troubles().insert(self.channel, what);
    }
}

impl Drop for Trouble<'_> {
    fn drop(&mut self) {
        self.context.troubles().remove(&self.channel);
    }
}

/// The result of a GET for a stream.
#[derive(Debug)]
pub(super) enum Listening {
    /// The server opened a stream.
    Stream(Answer),
    /// The server refused to open a stream.
    Refused(Answer),
    /// The server is overloaded, or has not noticed yet that the previous stream is closed. A later attempt may
    /// succeed.
    Busy { why: String },
    /// The server could not be reached.
    Failed { why: String },
}

impl Context {
    pub(super) fn new(options: Options) -> Result<Context, ConnectError> {
        Ok(Context { peer: Peer::new(&options)?, options, memory: Mutex::default(), troubles: Mutex::default() })
    }

    pub(super) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn troubles(&self) -> MutexGuard<'_, HashMap<Channel, String>> {
        self.troubles.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Returns the error that currently delays a response on a channel.
    pub(super) fn trouble(&self, channel: Channel) -> Option<String> {
        self.troubles().get(&channel).cloned()
    }

    /// Marks the stream of a channel as being resumed.
    pub(super) fn in_trouble(&self, channel: Channel) -> Trouble<'_> {
        Trouble { context: self, channel }
    }

    pub(super) fn resumption(&self) -> Resumption {
        Resumption::new(self.options.retry, self.options.tries)
    }

    /// Requests a stream; with `last_event` it resumes after that event.
    pub(super) async fn listen(&self, last_event: Option<&str>) -> Listening {
        let mut headers = self.memory().headers();
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        match last_event.map(|id| HeaderValue::from_bytes(id.as_bytes())) {
            None => {}
            Some(Ok(id)) => {
                headers.insert(header::LAST_EVENT_ID, id);
            }
            Some(Err(_)) => {
                return Listening::Failed { why: "the last event's id cannot stand in a header".to_owned() };
            }
        }
        match self.peer.request(Method::GET, headers, &HeaderMap::new(), Posted::empty()).await {
            Ok(answer) if answer.is_event_stream() => Listening::Stream(answer),
            Ok(answer) if is_busy(answer.status) => {
                let (head, body) = answer.into_refusal().await;
                Listening::Busy { why: refusal(&head, &body) }
            }
            Ok(answer) => Listening::Refused(answer),
            Err(error) => Listening::Failed { why: error.to_string() },
        }
    }
}

fn is_busy(status: StatusCode) -> bool {
    matches!(status, StatusCode::CONFLICT | StatusCode::TOO_MANY_REQUESTS) || status.is_server_error()
}
