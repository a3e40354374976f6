//! The GET stream, for messages that belong to no request.

use std::sync::Arc;

use rehearsal_core::exchange::Channel;
use tokio::sync::{mpsc, oneshot};

use super::context::{GetOutcome, TransportContext};
use super::event_reader::{EventReader, ReadEvent, Resumption, StreamEnd, long_message, message, partial_message};
use super::post::ReceiverGone;
use super::response::HttpResponse;
use crate::{ChannelEnd, Event, HttpMeta};

/// The GET stream, for messages that belong to no request: opened after the handshake, and again whenever it ends.
#[derive(Debug)]
pub(super) struct GetStream {
    context: Arc<TransportContext>,
    events: mpsc::Sender<Event>,
    resumption: Resumption,
}

impl GetStream {
    pub(super) fn new(context: &Arc<TransportContext>, events: mpsc::Sender<Event>) -> GetStream {
        GetStream { context: Arc::clone(context), events, resumption: context.resumption() }
    }

    /// Reads the stream until the session ends; `opened` resolves at the server's first response.
    pub(super) async fn run(mut self, opened: oneshot::Sender<()>) {
        // An error means that the connection was dropped.
        if let Ok(Some(end)) = self.listen(opened).await {
            let _ = self.events.send(Event::ChannelEnded { channel: Channel::MAIN, end }).await;
        }
    }

    /// Returns how the stream ended for good; `None` if the server offers none, which is optional.
    async fn listen(&mut self, opened: oneshot::Sender<()>) -> Result<Option<ChannelEnd>, ReceiverGone> {
        let first = self.context.open_stream(None).await;
        let _ = opened.send(()); // the receiver may be dropped
        let mut why = match first {
            GetOutcome::Stream(answer) => match self.follow(answer).await? {
                Ok(why) => why,
                Err(end) => return Ok(Some(end)),
            },
            GetOutcome::Refused(_) | GetOutcome::Busy { .. } => return Ok(None),
            GetOutcome::Failed { why } => Some(why),
        };
        while let Some(pause) = self.resumption.pause() {
            tokio::time::sleep(pause).await;
            why = match self.context.open_stream(self.resumption.last_event()).await {
                GetOutcome::Stream(answer) => match self.follow(answer).await? {
                    Ok(why) => why,
                    Err(end) => return Ok(Some(end)),
                },
                GetOutcome::Refused(answer) => {
                    let (head, body) = answer.into_refusal().await;
                    return Ok(Some(ChannelEnd::Refused { head, body }));
                }
                GetOutcome::Busy { why } | GetOutcome::Failed { why } => Some(why),
            };
        }
        let why = why.unwrap_or_else(|| "it ended without an event".to_owned());
        Ok(Some(ChannelEnd::Broken { why: format!("the GET stream: {why} ({} tries)", self.resumption.attempts()) }))
    }

    /// Delivers the messages of one stream. Returns the error at its end, or why the stream cannot be opened again.
    async fn follow(&mut self, answer: HttpResponse) -> Result<Result<Option<String>, ChannelEnd>, ReceiverGone> {
        let mut reader = EventReader::new(answer.body, self.context.options.message_limit);
        loop {
            match reader.next().await {
                ReadEvent::Event(event) => {
                    self.resumption.note(&event);
                    self.deliver(message(&event), &answer.head).await?;
                }
                ReadEvent::End(StreamEnd::Over { why, unfinished }) => {
                    // If the stream can be resumed after an id, the server repeats the partial event.
                    if self.resumption.last_event().is_none() {
                        self.deliver(partial_message(unfinished), &answer.head).await?;
                    }
                    return Ok(Ok(why));
                }
                ReadEvent::End(StreamEnd::TooLong(error)) => {
                    let why = error.to_string();
                    self.deliver(Some(long_message(error.data, error.limit)), &answer.head).await?;
                    return Ok(Err(ChannelEnd::Broken { why }));
                }
            }
        }
    }

    async fn deliver(
        &self,
        message: Option<rehearsal_core::message::Message>,
        head: &Arc<HttpMeta>,
    ) -> Result<(), ReceiverGone> {
        let Some(message) = message else { return Ok(()) };
        let event = Event::Message { channel: Channel::MAIN, message, head: Some(Arc::clone(head)) };
        self.events.send(event).await.map_err(|_| ReceiverGone)
    }
}
