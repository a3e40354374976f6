//! The state shared by all tasks of a connection.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use http::header::{ACCEPT, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use rehearsal_core::exchange::Channel;
use rehearsal_core::protocol::header;

use super::client_state::ClientState;
use super::event_reader::Resumption;
use super::http_client::{HttpClient, RequestBody};
use super::response::{HttpResponse, refusal};
use super::{ConnectError, HttpClientOptions};

/// The state shared by all tasks of a connection.
#[derive(Debug)]
pub(super) struct TransportContext {
    pub(super) http_client: HttpClient,
    pub(super) options: HttpClientOptions,
    state: Mutex<ClientState>,
    /// The broken streams that are being resumed, with the error.
    resume_errors: Mutex<HashMap<Channel, String>>,
}

/// Marks a stream as being resumed, until this is dropped.
pub(super) struct ResumeNote<'a> {
    context: &'a TransportContext,
    channel: Channel,
}

impl ResumeNote<'_> {
    /// Sets the last error.
    pub(super) fn set(&self, what: String) {
        self.context.resume_errors().insert(self.channel, what);
    }
}

impl Drop for ResumeNote<'_> {
    fn drop(&mut self) {
        self.context.resume_errors().remove(&self.channel);
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
            http_client: HttpClient::new(&options)?,
            options,
            state: Mutex::default(),
            resume_errors: Mutex::default(),
        })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, ClientState> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn resume_errors(&self) -> MutexGuard<'_, HashMap<Channel, String>> {
        self.resume_errors.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Returns the error that currently delays a response on a channel.
    pub(super) fn resume_error(&self, channel: Channel) -> Option<String> {
        self.resume_errors().get(&channel).cloned()
    }

    /// Marks the stream of a channel as being resumed.
    pub(super) fn note_resuming(&self, channel: Channel) -> ResumeNote<'_> {
        ResumeNote { context: self, channel }
    }

    pub(super) fn resumption(&self) -> Resumption {
        Resumption::new(self.options.retry, self.options.tries)
    }

    /// Requests a stream; with `last_event` it resumes after that event.
    pub(super) async fn open_stream(&self, last_event: Option<&str>) -> GetOutcome {
        let mut headers = self.state().headers();
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        match last_event.map(|id| HeaderValue::from_bytes(id.as_bytes())) {
            None => {}
            Some(Ok(id)) => {
                headers.insert(header::LAST_EVENT_ID, id);
            }
            Some(Err(_)) => {
                return GetOutcome::Failed { why: "no header can hold the last event's id".to_owned() };
            }
        }
        match self.http_client.request(Method::GET, headers, &HeaderMap::new(), RequestBody::empty()).await {
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
