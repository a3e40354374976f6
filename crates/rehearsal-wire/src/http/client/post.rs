//! One POST and the messages of its response.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use rehearsal_core::exchange::Channel;
use rehearsal_core::message::{Body, GarbledReason, Message, RequestId};
use rehearsal_core::protocol::Era;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::client_state::{handshake_id, request_ids, version_in_meta};
use super::context::{GetOutcome, TransportContext};
use super::event_reader::{EventReader, ReadEvent, Resumption, StreamEnd, long_message, message, partial_message};
use super::http_client::{RequestBody, RequestFailure};
use super::response::{BodyKind, HttpResponse, REFUSAL_LIMIT, ReadEnd, read, refusal};
use crate::{ChannelEnd, Event, HttpMeta};

/// One POST and the messages of its response.
#[derive(Debug)]
pub(super) struct Post {
    context: Arc<TransportContext>,
    events: mpsc::Sender<Event>,
    channel: Channel,
    era: Era,
    /// The pending requests of the POST.
    pending: Vec<RequestId>,
    /// The `initialize` request among them.
    handshake: Option<RequestId>,
    /// Released when no request is pending: a server that leaves the stream open after that must not block the next
    /// request.
    slot: Option<OwnedSemaphorePermit>,
}

/// The receiver of the events was dropped.
#[derive(Debug)]
pub(super) struct ReceiverGone;

impl Post {
    /// Builds the POST that will send `message`.
    pub(super) fn new(
        context: &Arc<TransportContext>,
        events: mpsc::Sender<Event>,
        channel: Channel,
        message: &Message,
    ) -> Post {
        Post {
            context: Arc::clone(context),
            events,
            channel,
            era: if version_in_meta(message).is_some() { Era::Modern } else { Era::Legacy },
            pending: request_ids(message),
            handshake: handshake_id(message).cloned(),
            slot: None,
        }
    }

    /// Adds the slot that counts this POST among the concurrent requests.
    pub(super) fn with_slot(self, slot: OwnedSemaphorePermit) -> Post {
        Post { slot: Some(slot), ..self }
    }

    /// Posts the message, delivers the response, and reports its end.
    pub(super) async fn run(mut self, headers: HeaderMap, theirs: HeaderMap, body: RequestBody) {
        let end = match post(&self.context, headers, &theirs, body).await {
            Ok(answer) => self.read(answer).await,
            Err(RequestFailure::Broken { why }) => Ok(ChannelEnd::Broken { why }),
            Err(RequestFailure::Unauthorized { why }) => Ok(ChannelEnd::Unauthorized { why }),
        };
        if let Ok(end) = end {
            // An error means that the connection was dropped.
            let _ = self.events.send(Event::ChannelEnded { channel: self.channel, end }).await;
        }
    }

    /// Delivers every message of a response, and returns how it ended.
    pub(super) async fn read(&mut self, answer: HttpResponse) -> Result<ChannelEnd, ReceiverGone> {
        if !answer.status.is_success() {
            return self.read_refusal(answer).await;
        }
        if self.handshake.is_some() {
            self.context.state().handshake_accepted(&answer.head);
        }
        match answer.kind() {
            BodyKind::Json => self.read_json(answer).await,
            BodyKind::Events => self.read_events(answer).await,
            BodyKind::Other => {
                let (head, body) = answer.into_refusal().await;
                Ok(self.end_without_message(head, body))
            }
        }
    }

    /// Reads a response with a status other than 2xx, with or without a message that explains it.
    async fn read_refusal(&mut self, answer: HttpResponse) -> Result<ChannelEnd, ReceiverGone> {
        let read = read(answer.body, self.context.options.message_limit).await;
        let message = Message::parse(read.bytes.clone());
        if matches!(read.end, ReadEnd::Whole) && message.as_garbled().is_none() {
            self.deliver(message, &answer.head).await?;
            return Ok(ChannelEnd::Done);
        }
        Ok(ChannelEnd::Refused { head: answer.head, body: read.bytes.slice(..read.bytes.len().min(REFUSAL_LIMIT)) })
    }

    async fn read_json(&mut self, answer: HttpResponse) -> Result<ChannelEnd, ReceiverGone> {
        let limit = self.context.options.message_limit;
        let read = read(answer.body, limit).await;
        match read.end {
            ReadEnd::Whole if read.bytes.trim_ascii().is_empty() => {
                Ok(self.end_without_message(answer.head, read.bytes))
            }
            ReadEnd::Whole => {
                self.deliver(Message::parse(read.bytes), &answer.head).await?;
                Ok(ChannelEnd::Done)
            }
            ReadEnd::TooLong => {
                self.deliver(long_message(read.bytes, limit), &answer.head).await?;
                Ok(ChannelEnd::Broken { why: format!("the response is longer than the limit of {limit} bytes") })
            }
            ReadEnd::Broken { why } => {
                if !read.bytes.is_empty() {
                    self.deliver(Message::garbled(read.bytes, GarbledReason::PartialLine), &answer.head).await?;
                }
                Ok(ChannelEnd::Broken { why })
            }
        }
    }

    /// Reads a stream of events, and the streams that resume it.
    async fn read_events(&mut self, mut answer: HttpResponse) -> Result<ChannelEnd, ReceiverGone> {
        let mut resumption = self.context.resumption();
        loop {
            let head = Arc::clone(&answer.head);
            let (why, unfinished) = match self.follow(answer, &mut resumption).await? {
                StreamEnd::Over { why, unfinished } => (why, unfinished),
                StreamEnd::TooLong(error) => {
                    let why = error.to_string();
                    self.deliver(long_message(error.data, error.limit), &head).await?;
                    return Ok(ChannelEnd::Broken { why });
                }
            };
            let resumes = !self.pending.is_empty()
                && resumption.last_event().is_some()
                && self.era == Era::Legacy
                && self.context.state().has_resumption();
            if !resumes {
                if let Some(partial) = partial_message(unfinished) {
                    self.deliver(partial, &head).await?;
                }
                return Ok(match (why, self.name_pending()) {
                    (None, None) => ChannelEnd::Done,
                    (Some(why), None) => ChannelEnd::Broken { why },
                    (why, Some(named)) => {
                        let why = why.map_or_else(String::new, |why| format!(": {why}"));
                        ChannelEnd::Broken { why: format!("the stream ended before {named}{why}") }
                    }
                });
            }
            // After a resumption the server repeats the partial event, because it follows the last complete one.
            match self.resume(&mut resumption, why).await {
                Ok(next) => answer = next,
                Err(end) => return Ok(end),
            }
        }
    }

    /// Delivers the messages of one stream.
    async fn follow(&mut self, answer: HttpResponse, resumption: &mut Resumption) -> Result<StreamEnd, ReceiverGone> {
        let mut reader = EventReader::new(answer.body, self.context.options.message_limit);
        loop {
            match reader.next().await {
                ReadEvent::End(end) => return Ok(end),
                ReadEvent::Event(event) => {
                    resumption.note(&event);
                    if let Some(message) = message(&event) {
                        self.deliver(message, &answer.head).await?;
                    }
                }
            }
        }
    }

    /// Waits for the server's `retry`, and requests the rest of a stream.
    async fn resume(&self, resumption: &mut Resumption, mut why: Option<String>) -> Result<HttpResponse, ChannelEnd> {
        let last_event = resumption.last_event().unwrap_or_default().to_owned();
        let lost = |what: &str| {
            let named = self.name_pending().unwrap_or_default();
            let why =
                format!("the stream ended before {named}, and could not be resumed after event {last_event:?}: {what}");
            ChannelEnd::Broken { why }
        };
        let note = self.context.note_resuming(self.channel);
        while let Some(pause) = resumption.pause() {
            let because = why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
            note.set(format!(
                "the stream of the response broke{because}; it was being resumed after event {last_event:?}, attempt {}",
                resumption.attempts()
            ));
            tokio::time::sleep(pause).await;
            match self.context.open_stream(Some(&last_event)).await {
                GetOutcome::Stream(answer) => {
                    resumption.note_reopened();
                    return Ok(answer);
                }
                GetOutcome::Refused(answer) => {
                    let (head, body) = answer.into_refusal().await;
                    return Err(lost(&refusal(&head, &body)));
                }
                GetOutcome::Busy { why: failure } | GetOutcome::Failed { why: failure } => why = Some(failure),
            }
        }
        let why = why.unwrap_or_else(|| "no event arrived".to_owned());
        Err(lost(&format!("{why} ({} tries)", resumption.attempts())))
    }

    /// Delivers a message, and updates the pending requests and the session from it.
    async fn deliver(&mut self, message: Message, head: &Arc<HttpMeta>) -> Result<(), ReceiverGone> {
        self.remove_answered(&message);
        if self.pending.is_empty() {
            self.slot = None;
        }
        let event = Event::Message { channel: self.channel, message, head: Some(Arc::clone(head)) };
        self.events.send(event).await.map_err(|_| ReceiverGone)
    }

    fn remove_answered(&mut self, message: &Message) {
        match message.body() {
            Body::Response(response) => {
                if response.id.is_some() && response.id == self.handshake {
                    self.context.state().handshake_answered(&response.reply);
                }
                self.pending.retain(|id| Some(id) != response.id.as_ref());
            }
            Body::Batch(messages) => messages.iter().for_each(|message| self.remove_answered(message)),
            // A garbled response counts as the response: the server does not repeat it.
            Body::Garbled(garbled) => self.pending.retain(|id| Some(id) != garbled.id.as_ref()),
            Body::Request(_) | Body::Notification(_) => {}
        }
    }

    /// Returns how a response without a message ends the channel. That is correct if no request was sent.
    fn end_without_message(&self, head: Arc<HttpMeta>, body: Bytes) -> ChannelEnd {
        if self.pending.is_empty() && body.trim_ascii().is_empty() {
            ChannelEnd::Done
        } else {
            ChannelEnd::Refused { head, body }
        }
    }

    /// Names the pending request: `the answer to 7`.
    fn name_pending(&self) -> Option<String> {
        let ids: Vec<String> = self.pending.iter().map(ToString::to_string).collect();
        if ids.is_empty() { None } else { Some(format!("the answer to {}", ids.join(", "))) }
    }
}

/// Posts a body with the headers that MCP requires.
pub(super) async fn post(
    context: &TransportContext,
    mut headers: HeaderMap,
    theirs: &HeaderMap,
    body: RequestBody,
) -> Result<HttpResponse, RequestFailure> {
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    context.http_client.request(http::Method::POST, headers, theirs, body).await
}
