//! The state shared by all tasks of a connection.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use http::header::{ACCEPT, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use rehearsal_core::exchange::Channel;
use rehearsal_core::protocol::header;

use super::answer::{HttpResponse, refusal};
use super::event_reader::Resumption;
use super::http_client::{HttpClient, RequestBody};
use super::memory::ClientState;
use super::{ConnectError, HttpClientOptions};

/// The state shared by all tasks of a connection.
#[derive(Debug)]
pub(super) struct TransportContext {
    pub(super) peer: HttpClient,
    pub(super) options: HttpClientOptions,
    memory: Mutex<ClientState>,
    /// The broken streams that are being resumed, with the error.
    troubles: Mutex<HashMap<Channel, String>>,
}

/// Marks a stream as being resumed, until this is dropped.
pub(super) struct ResumeNote<'a> {
    context: &'a TransportContext,
    channel: Channel,
}

impl ResumeNote<'_> {
    /// Sets the last error.
    pub(super) fn is(&self, what: String) {
        self.context.troubles().insert(self.channel, what);
    }
}

impl Drop for ResumeNote<'_> {
    fn drop(&mut self) {
        self.context.troubles().remove(&self.channel);
    }
}

/// The result of a GET for a stream.
#[derive(Debug)]
pub(super) enum GetOutcome {
    /// The server opened a stream.
    Stream(HttpResponse),
    /// The server refused to open a stream.
    Refused(HttpResponse),
    /// The server is overloaded, or has not noticed yet that the previous stream is closed. A later attempt may
    /// succeed.
    Busy { why: String },
    /// The server could not be reached.
    Failed { why: String },
}

impl TransportContext {
    pub(super) fn new(options: HttpClientOptions) -> Result<TransportContext, ConnectError> {
        Ok(TransportContext {
            peer: HttpClient::new(&options)?,
            options,
            memory: Mutex::default(),
            troubles: Mutex::default(),
        })
    }

    pub(super) fn memory(&self) -> MutexGuard<'_, ClientState> {
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
    pub(super) fn note_resuming(&self, channel: Channel) -> ResumeNote<'_> {
        ResumeNote { context: self, channel }
    }

    pub(super) fn resumption(&self) -> Resumption {
        Resumption::new(self.options.retry, self.options.tries)
    }

    /// Requests a stream; with `last_event` it resumes after that event.
    pub(super) async fn listen(&self, last_event: Option<&str>) -> GetOutcome {
        let mut headers = self.memory().headers();
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        match last_event.map(|id| HeaderValue::from_bytes(id.as_bytes())) {
            None => {}
            Some(Ok(id)) => {
                headers.insert(header::LAST_EVENT_ID, id);
            }
            Some(Err(_)) => {
                return GetOutcome::Failed { why: "the last event's id cannot stand in a header".to_owned() };
            }
        }
        match self.peer.request(Method::GET, headers, &HeaderMap::new(), RequestBody::empty()).await {
            Ok(answer) if answer.is_event_stream() => GetOutcome::Stream(answer),
            Ok(answer) if is_busy(answer.status) => {
                let (head, body) = answer.into_refusal().await;
                GetOutcome::Busy { why: refusal(&head, &body) }
            }
            Ok(answer) => GetOutcome::Refused(answer),
            Err(error) => GetOutcome::Failed { why: error.to_string() },
        }
    }
}

fn is_busy(status: StatusCode) -> bool {
    matches!(status, StatusCode::CONFLICT | StatusCode::TOO_MANY_REQUESTS) || status.is_server_error()
}
