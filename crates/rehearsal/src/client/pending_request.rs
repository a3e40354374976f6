//! A pending request, and the slot for its response.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rehearsal_core::exchange::{Channel, ExchangeKey, PairingEvent, Side};
use rehearsal_core::message::{GarbledReason, Message, Method};
#[cfg(feature = "http")]
use rehearsal_wire::http::client::refusal;
use rehearsal_wire::{ChannelEnd, ConnectionEnd, Outgoing, SendError};
use serde_json::Value;
use tokio::time::{Instant, Sleep};

use super::connection::{ClientConnection, CompletedRequest};
use super::error::ClientError;

/// How long a cancellation may take to be sent.
const CANCEL_SEND_TIMEOUT: Duration = Duration::from_secs(2);
/// When a request without an answer is checked for the first time: is the server's stdin still open?
const CLOSED_CHECK: Duration = Duration::from_secs(2);

/// Whether a request could be sent.
#[derive(Debug)]
enum SendState {
    Sent,
    /// The transport failed. The reader may be about to report how the server ended.
    Failed(SendError),
}

/// How a request is cancelled when its future is dropped or times out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CancelMode {
    /// Sends nothing: `initialize` must not be cancelled.
    Silent,
    /// Send `notifications/cancelled`.
    Notify,
    /// Close the response stream, which is how 2026-07-28 cancels over HTTP; over a pipe, notify.
    CloseStream,
}

/// A request that was not sent yet.
pub(super) enum UnsentRequest {
    /// The transport would have had to wait. Boxed, like everything large that a future would carry along.
    Waiting(Box<Outgoing>),
    /// The transport refused it.
    Refused(SendError),
}

/// A pending request; dropping it cancels it.
pub(super) struct PendingRequest {
    connection: Arc<ClientConnection>,
    pub(super) key: ExchangeKey,
    method: Method,
    /// `None` once it was sent.
    unsent: Option<UnsentRequest>,
    slot: Arc<ResponseSlot>,
    limit: Duration,
    /// `None` if the limit is beyond what an `Instant` can hold.
    deadline: Option<Instant>,
    /// Set if the answer did not arrive at once.
    timer: Option<Pin<Box<Sleep>>>,
    /// Whether it may never have reached the server.
    lost: bool,
    cancel_mode: CancelMode,
    /// Whether it has ended, so that dropping it cancels nothing.
    over: bool,
}

impl PendingRequest {
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "its fields, from the one place that makes it")]
    pub(super) fn new(
        connection: Arc<ClientConnection>,
        key: ExchangeKey,
        method: Method,
        unsent: Option<UnsentRequest>,
        slot: Arc<ResponseSlot>,
        limit: Duration,
        deadline: Option<Instant>,
        cancel_mode: CancelMode,
    ) -> PendingRequest {
        PendingRequest {
            connection,
            key,
            method,
            unsent,
            slot,
            limit,
            deadline,
            timer: None,
            lost: false,
            cancel_mode,
            over: false,
        }
    }

    /// Sends the request unless it was sent. A server that does not read exceeds the timeout.
    pub(super) async fn started(mut self) -> Result<PendingRequest, ClientError> {
        self.sent().await?;
        Ok(self)
    }

    /// Restarts the timeout.
    pub(super) fn restart_timeout(mut self) -> PendingRequest {
        self.deadline = Instant::now().checked_add(self.limit);
        self.timer = None;
        self
    }

    fn timed_out(&self) -> ClientError {
        let mut evidence = self.connection.evidence();
        evidence.trouble = self.connection.sender.current_problem(self.key.channel);
        if self.lost {
            return ClientError::NotSent { method: self.method.clone(), cause: SendError::Closed, evidence };
        }
        ClientError::TimedOut { method: self.method.clone(), after: self.limit, evidence }
    }

    async fn sent(&mut self) -> Result<SendState, ClientError> {
        let sent = match self.unsent.take() {
            None => return Ok(SendState::Sent),
            Some(UnsentRequest::Refused(cause)) => Err(cause),
            Some(UnsentRequest::Waiting(outgoing)) => {
                let sender = self.connection.sender.clone();
                let mut sending = sender.send(*outgoing);
                let within_deadline = poll_fn(|context| match sending.as_mut().poll(context) {
                    Poll::Ready(sent) => Poll::Ready(Some(sent)),
                    Poll::Pending => self.poll_deadline(context).map(|()| None),
                });
                within_deadline.await.ok_or_else(|| self.timed_out())?
            }
        };
        match sent {
            Ok(()) => Ok(SendState::Sent),
            Err(cause @ (SendError::Closed | SendError::Failed { .. })) => Ok(SendState::Failed(cause)),
            Err(cause) => {
                let evidence = self.connection.evidence();
                Err(ClientError::NotSent { method: self.method.clone(), cause, evidence })
            }
        }
    }

    /// Ready when the timeout has expired.
    fn poll_deadline(&mut self, context: &mut Context<'_>) -> Poll<()> {
        // Some limits are beyond what an `Instant` can hold.
        let Some(deadline) = self.deadline else { return Poll::Pending };
        let timer = self.timer.get_or_insert_with(|| {
            let first_check = deadline.checked_sub(self.limit.saturating_sub(CLOSED_CHECK)).unwrap_or(deadline);
            Box::pin(tokio::time::sleep_until(first_check))
        });
        while timer.as_mut().poll(context).is_ready() {
            // The end of the server would be the better error; but the server may only have closed its stdin.
            self.lost = self.unsent.is_none() && self.connection.sender.is_closed();
            let user_activity = self.connection.last_user_activity();
            let after_user = user_activity.and_then(|time| time.checked_add(self.limit));
            let next = if let Some(after_user) = after_user.filter(|time| *time > timer.deadline().max(deadline)) {
                // The timeout does not run while a user answers a server request.
                Some(after_user)
            } else if self.connection.sender.is_waiting_for_login() {
                // The timeout does not run during a login.
                Instant::now().checked_add(self.limit)
            } else {
                Some(deadline).filter(|deadline| !self.lost && timer.deadline() < *deadline)
            };
            let Some(next) = next else { return Poll::Ready(()) };
            timer.as_mut().reset(next);
        }
        Poll::Pending
    }

    /// The answer, or `None` when the timeout has expired.
    fn poll_outcome(&mut self, context: &mut Context<'_>) -> Poll<Option<RequestOutcome>> {
        match self.slot.poll(context) {
            Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
            Poll::Pending => self.poll_deadline(context).map(|()| None),
        }
    }

    /// Sends the request unless it was sent, and waits for the answer until the timeout.
    pub(super) async fn answered(&mut self) -> Result<CompletedRequest, ClientError> {
        let outcome = match self.unsent {
            None => poll_fn(|context| self.poll_outcome(context)).await,
            // Boxed, because it is large and rare.
            Some(_) => Box::pin(self.send_and_wait()).await?,
        };
        match outcome {
            Some(outcome) => {
                self.over = true;
                self.to_result(outcome)
            }
            None => Err(self.timed_out()),
        }
    }

    /// Turns the end of the request into the caller's result.
    fn to_result(&self, outcome: RequestOutcome) -> Result<CompletedRequest, ClientError> {
        let (method, evidence) = (self.method.clone(), || self.connection.evidence());
        match outcome {
            RequestOutcome::Completed(answered) => match answered.exchange.answer().map(|answer| &answer.message) {
                Some(message) if message.as_garbled().is_some() => {
                    let reason = message.as_garbled().map(|garbled| garbled.reason.clone());
                    let found = self.connection.shown(&message.text());
                    let reason = reason.unwrap_or(GarbledReason::NoMethodOrResult);
                    Err(ClientError::Garbled { method, reason, found, evidence: evidence() })
                }
                _ => Ok(answered),
            },
            RequestOutcome::Echoed => Err(ClientError::Echoed { method, evidence: evidence() }),
            RequestOutcome::ChannelEnded(ChannelEnd::Refused { head, body }) => {
                let status = head.status.map_or(0, |status| status.as_u16());
                Err(ClientError::Refused { method, status, text: refusal(&head, &body), evidence: evidence() })
            }
            RequestOutcome::ChannelEnded(ChannelEnd::Unauthorized { why }) => {
                Err(ClientError::NotAuthorized { method, why })
            }
            RequestOutcome::ChannelEnded(ChannelEnd::Broken { why }) => {
                Err(ClientError::StreamBroken { method, why, evidence: evidence() })
            }
            RequestOutcome::ChannelEnded(ChannelEnd::Done) => {
                let why = "the stream ended without an answer".to_owned();
                Err(ClientError::StreamBroken { method, why, evidence: evidence() })
            }
            RequestOutcome::Ended(ending) => Err(ClientError::ServerClosed { method, ending, evidence: evidence() }),
        }
    }

    async fn send_and_wait(&mut self) -> Result<Option<RequestOutcome>, ClientError> {
        let sent = self.sent().await?;
        let outcome = poll_fn(|context| self.poll_outcome(context));
        match sent {
            SendState::Sent => Ok(outcome.await),
            // How the server ended explains more; but it may only have closed its stdin.
            SendState::Failed(cause) => tokio::time::timeout(CANCEL_SEND_TIMEOUT, outcome).await.map_err(|_| {
                let evidence = self.connection.evidence();
                ClientError::NotSent { method: self.method.clone(), cause, evidence }
            }),
        }
    }

    /// Cancels the request.
    pub(super) async fn cancel(mut self, reason: Option<&str>) {
        self.over = true;
        if let Some(message) = self.cancel_exchange(reason) {
            send_cancellation(&self.connection, self.key.channel, message).await;
        }
    }

    /// Ends the exchange. Returns the notification that cancels it, if one is to be sent.
    fn cancel_exchange(&mut self, reason: Option<&str>) -> Option<Message> {
        let unsent = self.unsent.is_some();
        let has_stream = self.key.channel != Channel::MAIN;
        match self.cancel_mode {
            CancelMode::CloseStream if has_stream => {
                self.connection.state().pairing.abandon(&self.key);
                self.connection.sender.close_channel(self.key.channel);
                None
            }
            CancelMode::Notify | CancelMode::CloseStream if !unsent => {
                let params = match reason {
                    Some(reason) => serde_json::json!({"requestId": &self.key.id, "reason": reason}),
                    None => serde_json::json!({"requestId": &self.key.id}),
                };
                let message = Message::notification(Method::CANCELLED, Some::<&Value>(&params)).ok()?;
                let mut state = self.connection.state();
                let at = self.connection.started.elapsed();
                // `None` if the answer arrived just now: then there is nothing to cancel.
                let step = state.pairing.step(Side::Client, self.key.channel, at, message.clone());
                matches!(step, PairingEvent::Cancelled { .. }).then_some(message)
            }
            CancelMode::Silent | CancelMode::Notify | CancelMode::CloseStream => {
                self.connection.state().pairing.abandon(&self.key);
                if has_stream {
                    self.connection.sender.close_channel(self.key.channel);
                }
                None
            }
        }
    }
}

/// Sends the cancellation, then closes the channel. A server need not respond to a cancelled request, and over HTTP a
/// stream without a pending request must not be resumed for ever.
async fn send_cancellation(connection: &ClientConnection, channel: Channel, message: Message) {
    let _ = tokio::time::timeout(CANCEL_SEND_TIMEOUT, connection.send_notification(channel, message)).await;
    if channel != Channel::MAIN {
        connection.sender.close_channel(channel);
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        let message = self.cancel_exchange(None);
        if let (Some(message), Ok(runtime)) = (message, tokio::runtime::Handle::try_current()) {
            let (connection, channel) = (self.connection.clone(), self.key.channel);
            runtime.spawn(async move { send_cancellation(&connection, channel, message).await });
        }
    }
}

/// How a pending request ended.
pub(super) enum RequestOutcome {
    Completed(CompletedRequest),
    /// The server echoed the request.
    Echoed,
    ChannelEnded(ChannelEnd),
    Ended(ConnectionEnd),
}

/// A slot for the answer of one request.
pub(super) struct ResponseSlot {
    state: Mutex<SlotState>,
}

#[derive(Default)]
struct SlotState {
    outcome: Option<RequestOutcome>,
    waker: Option<Waker>,
}

impl ResponseSlot {
    pub(super) fn new() -> Arc<ResponseSlot> {
        Arc::new(ResponseSlot { state: Mutex::default() })
    }

    /// Stores the answer, and wakes the task that waits for it.
    pub(super) fn settle(&self, outcome: RequestOutcome) {
        let waker = {
            let mut state = self.state();
            state.outcome = Some(outcome);
            state.waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }

    /// Returns the answer if it has arrived; otherwise wakes the task when it arrives.
    pub(super) fn poll(&self, context: &mut Context<'_>) -> Poll<RequestOutcome> {
        let mut state = self.state();
        if let Some(outcome) = state.outcome.take() {
            return Poll::Ready(outcome);
        }
        match &mut state.waker {
            Some(waker) => waker.clone_from(context.waker()),
            None => state.waker = Some(context.waker().clone()),
        }
        Poll::Pending
    }

    fn state(&self) -> MutexGuard<'_, SlotState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
/// Without HTTP no request is refused with a status.
#[cfg(not(feature = "http"))]
fn refusal(head: &rehearsal_wire::HttpMeta, _: &[u8]) -> String {
    format!("the server answered {:?}", head.status)
}
