//! A request whose answer is waited for.

use std::sync::Arc;
use std::time::Duration;

use rehearsal_core::exchange::{Channel, Key, Side, Step};
use rehearsal_core::message::{Message, Method, Reason};
use rehearsal_wire::http::client::refusal;
use rehearsal_wire::{ChannelEnd, Ending, Outgoing, SendError};
use serde_json::Value;
use tokio::sync::oneshot;

use super::conversation::{Answered, Conversation, EVIDENCE_WIDTH, Settled};
use super::error::ClientError;

/// How long a cancellation may take to be sent.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Whether a request could be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    Yes,
    /// The server takes nothing any more.
    Closed,
}

/// What to do when nobody waits for the answer any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GiveUp {
    /// Say nothing: `initialize` must not be cancelled.
    Silently,
    /// Send `notifications/cancelled`.
    Notify,
    /// Close the response stream, which is how 2026-07-28 cancels over HTTP; over a pipe, notify.
    CloseStream,
}

/// A request whose answer is waited for; dropping it gives up.
pub(super) struct Running {
    pub(super) conversation: Arc<Conversation>,
    pub(super) key: Key,
    pub(super) method: Method,
    /// `None` once it was sent. Boxed, like everything large that a future would carry along.
    pub(super) outgoing: Option<Box<Outgoing>>,
    pub(super) settled: oneshot::Receiver<Settled>,
    pub(super) limit: Duration,
    pub(super) on_give_up: GiveUp,
    /// Whether there is nothing left to give up.
    pub(super) over: bool,
}

impl Running {
    /// Sends the request, if that has not been done; a server that reads nothing runs into the time-out.
    pub(super) async fn started(mut self) -> Result<Running, ClientError> {
        let limit = self.limit;
        match tokio::time::timeout(limit, self.sent()).await {
            Ok(sent) => sent.map(|_| self),
            Err(_) => Err(self.timed_out()),
        }
    }

    fn timed_out(&self) -> ClientError {
        let evidence = self.conversation.evidence();
        ClientError::TimedOut { method: self.method.clone(), after: self.limit, evidence }
    }

    async fn sent(&mut self) -> Result<Sent, ClientError> {
        let Some(outgoing) = self.outgoing.take() else { return Ok(Sent::Yes) };
        self.conversation.tapped(Side::Client, &outgoing.message);
        match self.conversation.sender.send(*outgoing).await {
            Ok(()) => Ok(Sent::Yes),
            Err(SendError::Closed) => Ok(Sent::Closed),
            Err(cause) => {
                let evidence = self.conversation.evidence();
                Err(ClientError::NotSent { method: self.method.clone(), cause, evidence })
            }
        }
    }

    /// Sends the request, if that has not been done, and waits for the answer, as long as it may take.
    #[expect(clippy::manual_async_fn, reason = "an `async fn` keeps two places for `self`, and moves it between them")]
    pub(super) fn answered(mut self) -> impl Future<Output = Result<Box<Answered>, ClientError>> + Send {
        async move {
            let limit = self.limit;
            match tokio::time::timeout(limit, self.settle()).await {
                Ok(settled) => {
                    let settled = settled?;
                    self.over = true;
                    self.outcome(settled)
                }
                Err(_) => Err(self.timed_out()),
            }
        }
    }

    /// What that means for whoever waits.
    fn outcome(&self, settled: Settled) -> Result<Box<Answered>, ClientError> {
        let (method, evidence) = (self.method.clone(), || self.conversation.evidence());
        match settled {
            Settled::Answered(answered) => match answered.exchange.answer().map(|answer| &answer.message) {
                Some(message) if message.as_garbled().is_some() => {
                    let reason = message.as_garbled().map(|garbled| garbled.reason.clone());
                    let found = message.text().chars().take(EVIDENCE_WIDTH).collect();
                    let reason = reason.unwrap_or(Reason::Purposeless);
                    Err(ClientError::Garbled { method, reason, found, evidence: evidence() })
                }
                _ => Ok(answered),
            },
            Settled::ChannelEnded(ChannelEnd::Refused { head, body }) => {
                let status = head.status.map_or(0, |status| status.as_u16());
                Err(ClientError::Refused { method, status, said: refusal(&head, &body), evidence: evidence() })
            }
            Settled::ChannelEnded(ChannelEnd::Broken { why }) => {
                Err(ClientError::Lost { method, why, evidence: evidence() })
            }
            Settled::ChannelEnded(ChannelEnd::Done) => {
                let why = "the stream ended without an answer".to_owned();
                Err(ClientError::Lost { method, why, evidence: evidence() })
            }
            Settled::Ended(ending) => Err(ClientError::ServerGone { method, ending, evidence: evidence() }),
        }
    }

    async fn settle(&mut self) -> Result<Settled, ClientError> {
        let sent = self.sent().await?;
        // The waiter is dropped without a word only when the reader itself is gone.
        let settled = async { (&mut self.settled).await.unwrap_or(Settled::Ended(Ending::Closed)) };
        match sent {
            Sent::Yes => Ok(settled.await),
            // The reader will say how the server ended, which is the better news; but it may only have closed its stdin.
            Sent::Closed => tokio::time::timeout(LAST_WORDS, settled).await.map_err(|_| {
                let evidence = self.conversation.evidence();
                ClientError::NotSent { method: self.method.clone(), cause: SendError::Closed, evidence }
            }),
        }
    }

    /// Takes the request back.
    pub(super) async fn cancel(mut self, reason: Option<&str>) {
        self.over = true;
        if let Some(message) = self.give_up(reason) {
            farewell(&self.conversation, self.key.channel, message).await;
        }
    }

    /// Ends the exchange; what must be said about that, if anything.
    fn give_up(&mut self, reason: Option<&str>) -> Option<Message> {
        let unsent = self.outgoing.is_some();
        let has_stream = self.key.channel != Channel::MAIN;
        match self.on_give_up {
            GiveUp::CloseStream if has_stream => {
                self.conversation.state().pairing.abandon(&self.key);
                self.conversation.sender.close_channel(self.key.channel);
                None
            }
            GiveUp::Notify | GiveUp::CloseStream if !unsent => {
                let params = match reason {
                    Some(reason) => serde_json::json!({"requestId": &self.key.id, "reason": reason}),
                    None => serde_json::json!({"requestId": &self.key.id}),
                };
                let message = Message::notification(Method::CANCELLED, Some::<&Value>(&params)).ok()?;
                let mut state = self.conversation.state();
                let at = self.conversation.started.elapsed();
                // `None` where the answer came in this very moment: then there is nothing to take back.
                let step = state.pairing.step(Side::Client, self.key.channel, at, message.clone());
                matches!(step, Step::Cancelled { .. }).then_some(message)
            }
            GiveUp::Silently | GiveUp::Notify | GiveUp::CloseStream => {
                self.conversation.state().pairing.abandon(&self.key);
                if has_stream {
                    self.conversation.sender.close_channel(self.key.channel);
                }
                None
            }
        }
    }
}

/// Says that a request is taken back, then stops to listen: whoever is cancelled need not answer, and over HTTP a stream
/// that nobody waits for must not be resumed for ever.
async fn farewell(conversation: &Conversation, channel: Channel, message: Message) {
    let _ = tokio::time::timeout(LAST_WORDS, conversation.tell(channel, message)).await;
    if channel != Channel::MAIN {
        conversation.sender.close_channel(channel);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        let message = self.give_up(None);
        if let (Some(message), Ok(runtime)) = (message, tokio::runtime::Handle::try_current()) {
            let (conversation, channel) = (self.conversation.clone(), self.key.channel);
            runtime.spawn(async move { farewell(&conversation, channel, message).await });
        }
    }
}
