//! Streamable HTTP.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method as HttpMethod};
use rehearsal_core::exchange::Channel;
use rehearsal_core::message::{Body, Message, Method};
use tokio::sync::{OnceCell, Semaphore, mpsc, oneshot};
use tokio::time::timeout;

use super::channel_tasks::{ChannelTasks, HttpReceiver, QUEUE_CAPACITY};
use super::client_state::request_ids;
use super::context::TransportContext;
use super::get_stream::GetStream;
use super::http_client::RequestBody;
use super::post::{Post, post};
use super::response::{BodyKind, HttpResponse, REFUSAL_LIMIT, read, refusal};
use super::{ConnectError, HttpClientOptions};
use crate::{BoxFuture, ChannelEnd, Connection, Event, Outgoing, SendError, Sender, StopOutcome};

/// How long the opening of the GET stream may delay the caller's next message.
///
/// A server drops the messages that it sends before the stream is open, so a test that waits for one would fail now and
/// then. Some servers respond to a GET only with their first event; for those this limit ends the wait.
const GET_STREAM_WAIT: Duration = Duration::from_millis(500);

/// How long the server may take to respond to the DELETE that ends a session.
const DELETE_TIMEOUT: Duration = Duration::from_secs(2);

/// Connects to a Streamable HTTP server of either era. Nothing is sent yet.
///
/// * A request on its own channel is its own POST. Its response and related messages arrive on that channel, followed
///   by [`Event::ChannelEnded`].
/// * Sending a notification or a response returns when the server has accepted it, so that later messages arrive later.
///   A refusal ends its channel. If that channel still carries the stream of a request, the stream continues, and
///   `send` returns the refusal as its error.
/// * If a refusal carries a JSON-RPC message, that message is delivered; the HTTP status is in its head.
/// * After the handshake the client repeats the session and the version, opens the GET stream, and resumes broken
///   streams. It does none of that for requests with a version in `_meta`.
pub fn connect(options: HttpClientOptions) -> Result<Connection, ConnectError> {
    let (events, queue) = mpsc::channel(QUEUE_CAPACITY);
    let tasks = Arc::new(ChannelTasks::default());
    let slots = Arc::new(Semaphore::new(options.concurrent_requests.clamp(1, Semaphore::MAX_PERMITS)));
    let sender = StreamableSender {
        context: Arc::new(TransportContext::new(options)?),
        events: Mutex::new(Some(events)),
        tasks: Arc::clone(&tasks),
        slots,
        next_channel: AtomicU64::new(Channel::MAIN.0 + 1),
        closed: OnceCell::new(),
    };
    Ok(Connection { sender: Arc::new(sender), receiver: Box::new(HttpReceiver::new(queue, tasks)) })
}

#[derive(Debug)]
struct StreamableSender {
    context: Arc<TransportContext>,
    /// `None` after the connection was closed.
    events: Mutex<Option<mpsc::Sender<Event>>>,
    tasks: Arc<ChannelTasks>,
    slots: Arc<Semaphore>,
    next_channel: AtomicU64,
    closed: OnceCell<()>,
}

/// Whether the server accepted a message that has no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Acceptance {
    Accepted,
    /// The server refused it; the events contain the reason.
    Refused,
}

impl StreamableSender {
    fn events(&self) -> Result<mpsc::Sender<Event>, SendError> {
        let events = self.events.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        events.clone().ok_or(SendError::Closed)
    }

    fn check_length(&self, message: &Message) -> Result<(), SendError> {
        let (length, limit) = (message.raw().len(), self.context.options.message_limit);
        if length > limit { Err(SendError::TooLong { length, limit }) } else { Ok(()) }
    }

    /// Starts a POST whose response arrives as events, and returns when its body is being written.
    async fn post_request(&self, channel: Channel, message: Message, theirs: HeaderMap) -> Result<(), SendError> {
        self.check_length(&message)?;
        let slot = Arc::clone(&self.slots).acquire_owned().await.map_err(|_| SendError::Closed)?;
        let request = Post::new(&self.context, self.events()?, channel, &message).with_slot(slot);
        let headers = self.context.state().headers_for(&message);
        let (body, on_start) = RequestBody::new(message.raw().clone());
        if !self.tasks.spawn(Some(channel), request.run(headers, theirs, body)) {
            return Err(SendError::Closed);
        }
        // An error means that the body was dropped; the reason arrives as an event.
        let _ = on_start.await;
        Ok(())
    }

    /// Posts a notification or a response, and returns when the server has accepted or refused it.
    async fn post_notification(
        &self,
        channel: Channel,
        message: Message,
        theirs: HeaderMap,
    ) -> Result<Acceptance, SendError> {
        self.check_length(&message)?;
        self.events()?;
        let headers = self.context.state().headers_for(&message);
        let (body, _) = RequestBody::new(message.raw().clone());
        let limit = self.context.options.accept_timeout;
        let decided = self.context.http_client.run_with_limit(limit, async {
            let posted = post(&self.context, headers, &theirs, body).await;
            let answer = posted.map_err(|error| error.to_string())?;
            match (answer.status.is_success(), answer.kind()) {
                // A connection can be reused only if the body was read to its end.
                (true, BodyKind::Other) => drop(read(answer.body, REFUSAL_LIMIT).await),
                (true, BodyKind::Json | BodyKind::Events) => self.drain_response(channel, &message, answer),
                (false, _) => return self.report_refusal(channel, answer).await,
            }
            Ok(Acceptance::Accepted)
        });
        let why = match decided.await {
            Some(Ok(acceptance)) => return Ok(acceptance),
            Some(Err(why)) => why,
            None => format!("the server did not accept the message within {limit:?}"),
        };
        Err(SendError::Failed { why })
    }

    /// Delivers the body that a server sends for a notification or a response, without ending the message's channel.
    fn drain_response(&self, channel: Channel, message: &Message, answer: HttpResponse) {
        let Ok(events) = self.events() else { return };
        let mut reader = Post::new(&self.context, events, channel, message);
        self.tasks.spawn(None, async move {
            // The end of this body does not affect the channel, and no request is pending on it.
            let _ = reader.read(answer).await;
        });
    }

    /// Reports a refusal: as events if the channel has no other use, otherwise as an error.
    async fn report_refusal(&self, channel: Channel, answer: HttpResponse) -> Result<Acceptance, String> {
        let head = Arc::clone(&answer.head);
        let body = read(answer.body, self.context.options.message_limit).await.bytes;
        let live = self.tasks.is_live(channel);
        let text = refusal(&head, &body);
        let message = Some(Message::parse(body.clone())).filter(|message| message.as_garbled().is_none());
        let end = match &message {
            Some(_) => ChannelEnd::Done,
            None => ChannelEnd::Refused { head: Arc::clone(&head), body: body.slice(..body.len().min(REFUSAL_LIMIT)) },
        };
        let Ok(events) = self.events() else { return Err(text) };
        // Sent by a task, because the caller of `send` may be the one who empties the queue.
        self.tasks.spawn(None, async move {
            if let Some(message) = message {
                let _ = events.send(Event::Message { channel, message, head: Some(head) }).await;
            }
            if !live {
                let _ = events.send(Event::ChannelEnded { channel, end }).await;
            }
        });
        if live { Err(text) } else { Ok(Acceptance::Refused) }
    }

    /// Opens the GET stream of a new session.
    async fn open_get_stream(&self) -> Result<(), SendError> {
        let get_stream = GetStream::new(&self.context, self.events()?);
        let (opened, on_opened) = oneshot::channel();
        self.tasks.stop(Channel::MAIN);
        self.tasks.spawn(Some(Channel::MAIN), get_stream.run(opened));
        let _ = timeout(GET_STREAM_WAIT, on_opened).await;
        Ok(())
    }

    async fn close_session(&self) {
        self.slots.close();
        let events = self.events.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        let (has_session, headers) = {
            let state = self.context.state();
            (state.has_session(), state.headers())
        };
        if has_session {
            let none = HeaderMap::new();
            let delete = self.context.http_client.request(HttpMethod::DELETE, headers, &none, RequestBody::empty());
            // Not every server lets a client end its session, so there is a time limit.
            let _ = timeout(DELETE_TIMEOUT, delete).await;
        }
        self.tasks.close();
        drop(events);
    }
}

impl Sender for StreamableSender {
    fn open_channel(&self) -> Channel {
        Channel(self.next_channel.fetch_add(1, Ordering::Relaxed))
    }

    fn send(&self, outgoing: Outgoing) -> BoxFuture<'_, Result<(), SendError>> {
        Box::pin(async move {
            let Outgoing { channel, message, headers } = outgoing;
            let expects_response = match message.body() {
                Body::Notification(_) | Body::Response(_) => false,
                Body::Batch(_) => !request_ids(&message).is_empty(),
                Body::Request(_) | Body::Garbled(_) => true,
            };
            if expects_response {
                return self.post_request(channel, message, headers).await;
            }
            let completes_handshake =
                message.method() == Some(&Method::INITIALIZED) && self.context.state().has_handshake();
            match self.post_notification(channel, message, headers).await? {
                Acceptance::Accepted if completes_handshake => self.open_get_stream().await,
                Acceptance::Accepted | Acceptance::Refused => Ok(()),
            }
        })
    }

    fn send_bytes(&self, channel: Channel, bytes: Bytes) -> BoxFuture<'_, Result<(), SendError>> {
        Box::pin(self.post_request(channel, Message::parse(bytes), HeaderMap::new()))
    }

    fn close_channel(&self, channel: Channel) {
        self.tasks.stop(channel);
    }

    fn is_waiting_for_login(&self) -> bool {
        self.context.http_client.is_waiting_for_login()
    }

    fn current_problem(&self, channel: Channel) -> Option<String> {
        self.context.resume_error(channel)
    }

    fn abort(&self) {
        self.events.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        self.tasks.close();
    }

    fn close(&self) -> BoxFuture<'_, StopOutcome> {
        Box::pin(async {
            self.closed.get_or_init(|| self.close_session()).await;
            StopOutcome::AlreadyExited
        })
    }
}
