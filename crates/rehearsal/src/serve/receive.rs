//! The loop of one connection: messages in, answers out.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rehearsal_core::answer::{Answer, Decision, IncomingRequest, Passed, RequestContext, Surface};
use rehearsal_core::exchange::Channel;
use rehearsal_core::message::{
    Body, ErrorReply, Garbled, GarbledReason, Message, Method, Notification, Reply, Request, RequestId,
};
use rehearsal_core::protocol::code;
use rehearsal_wire::{Connection, ConnectionEnd, Event, HttpMeta};
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;

use super::active_request::{ActiveRequest, outcome};
use super::connection::ServerConnection;
use super::execute::{execute, execute_deferred};
use super::handler::{Handler, RequestHandle};
use super::server::{Otherwise, ServerState};
use super::upstream::Upstream;
use super::{subscriptions, tasks};

/// How long the last answers may take to be written when the connection closes.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// How long the process may take to exit after an injected `exit` fault, before its connections are closed.
const EXIT_GRACE: Duration = Duration::from_millis(200);

/// After how many messages of a batch other connections get their turn.
const BATCH_TURN: usize = 64;

/// Serves one client until either end closes the connection or the server is stopped.
pub(super) async fn serve(server: Arc<ServerState>, connection: Connection) -> ConnectionEnd {
    let Connection { sender, mut receiver } = connection;
    let connection = Arc::new(ServerConnection::new(server, sender));
    let mut tasks = JoinSet::new();
    let ending = {
        let stopped = stopped(&connection);
        tokio::pin!(stopped);
        loop {
            let is_full = connection.outbox.is_full();
            let event = tokio::select! {
                // While messages arrive, nothing else is polled; the transport yields often enough.
                biased;
                event = receiver.receive(), if !is_full => event,
                () = connection.outbox.has_room(), if is_full => continue,
                Some(_) = tasks.join_next() => continue,
                end = &mut stopped => match end {
                    Stopped::Gracefully => break ConnectionEnd::Closed,
                    Stopped::Abruptly => {
                        // The owner of the server is about to exit or to drop the socket.
                        tokio::time::sleep(EXIT_GRACE).await;
                        connection.close();
                        connection.abort();
                        return ConnectionEnd::Closed;
                    }
                },
            };
            match event {
                Event::Message { channel, message, head } => {
                    let mut receiver = MessageReceiver { connection: &connection, channel, tasks: &mut tasks };
                    receiver.receive(&message, head.as_deref()).await;
                }
                Event::ChannelEnded { channel, .. } => connection.channel_ended(channel),
                Event::Ended(ending) => break ending,
            }
        }
    };
    connection.close();
    // A client that closes its end may still read the answers to its requests; one that does not read is not waited for.
    let _ = tokio::time::timeout(FLUSH_TIMEOUT, async { while tasks.join_next().await.is_some() {} }).await;
    connection.flush_and_close().await;
    ending
}

/// How the server ends a connection.
enum Stopped {
    Gracefully,
    Abruptly,
}

async fn stopped(connection: &ServerConnection) -> Stopped {
    tokio::select! {
        () = connection.server.stopped() => Stopped::Gracefully,
        () = connection.sending_stopped() => Stopped::Gracefully,
        _ = connection.server.exited() => Stopped::Abruptly,
    }
}

/// Handles the messages of a channel.
struct MessageReceiver<'a> {
    connection: &'a Arc<ServerConnection>,
    channel: Channel,
    /// The tasks that answer requests and send messages.
    tasks: &'a mut JoinSet<()>,
}

impl MessageReceiver<'_> {
    async fn receive(&mut self, message: &Message, head: Option<&HttpMeta>) {
        match message.body() {
            Body::Batch(messages) if self.has_batches() => {
                self.connection.begin_batch(self.channel, messages);
                for (index, message) in messages.iter().enumerate() {
                    if index % BATCH_TURN == BATCH_TURN - 1 {
                        tokio::task::yield_now().await;
                    }
                    self.receive_one(message, head);
                }
            }
            Body::Batch(_) => self.refuse(None, &invalid("only 2025-03-26 has batches")),
            Body::Request(_) | Body::Notification(_) | Body::Response(_) | Body::Garbled(_) => {
                self.receive_one(message, head);
            }
        }
    }

    fn has_batches(&self) -> bool {
        self.connection.state().legacy.client.as_ref().is_some_and(|client| client.revision.has_batches())
    }

    fn receive_one(&mut self, message: &Message, head: Option<&HttpMeta>) {
        let received = Instant::now();
        let server = &self.connection.server;
        match message.body() {
            Body::Request(request) => match self.handle_request(request, head, received) {
                Ok(None) => {}
                Ok(Some(answer)) => {
                    let (method, params) = (request.method.clone(), request.params.clone());
                    server.log(method, params, received, &answer, outcome(&answer.reply));
                    self.send(answer.message(request.id.clone()));
                }
                Err(error) => {
                    let answer = Answer::protocol(Reply::Error(error.clone()));
                    let (method, params) = (request.method.clone(), request.params.clone());
                    server.observe(method, params, received, &answer, outcome(&answer.reply));
                    self.refuse(Some(request.id.clone()), &error);
                }
            },
            Body::Notification(notification) => self.receive_notification(notification),
            Body::Response(response) => {
                if let Some(id) = &response.id {
                    self.connection.receive_input(id, response.reply.clone());
                }
            }
            Body::Garbled(garbled) => {
                if let Some(error) = garbled_error(garbled) {
                    if let Some(method) = garbled_method(message) {
                        let answer = Answer::protocol(Reply::Error(error.clone()));
                        server.observe(method, None, received, &answer, outcome(&answer.reply));
                    }
                    self.refuse(garbled.id.clone(), &error);
                }
            }
            Body::Batch(_) => self.refuse(None, &invalid("a batch inside a batch")),
        }
    }

    /// Begins to answer a request. An answer that nothing has to happen before is returned.
    ///
    /// What changes the state of the connection happens here, in the order of the messages. Whatever waits does so in a task of
    /// its own, so the next message is read at once.
    fn handle_request(
        &mut self,
        request: &Request,
        head: Option<&HttpMeta>,
        received: Instant,
    ) -> Result<Option<Answer>, ErrorReply> {
        let connection = self.connection;
        let server = &connection.server;
        let chain = server.chain();
        let mut state = connection.state();
        let params = read_params(request)?;
        let context = chain.request_context(&request.method, &params, &state.legacy)?;
        let mut incoming = IncomingRequest::new(request.method.clone(), params, context);
        if let Some(head) = head.filter(|_| chain.surface().http.reads_headers) {
            incoming.headers = headers(head);
        }
        let incoming = Arc::new(incoming);
        let handler = server.options.handlers.iter().find(|handler| handler.handles(&incoming));
        let upstream = server.options.otherwise.upstream().filter(|upstream| {
            upstream.is_merged() && state.surface.is_none() && Upstream::needs_surface(&incoming.method)
        });
        let next = match (handler, upstream) {
            (Some(handler), _) => Next::Handle(Arc::clone(handler)),
            (None, Some(upstream)) => Next::Merge(Arc::clone(upstream)),
            (None, None) => {
                let decision = chain.begin(&incoming, &mut state, server.environment());
                let decision = match (decision, &server.options.otherwise) {
                    (Decision::Unanswered(passed), Otherwise::Refuse) => {
                        Decision::Answer(chain.refusal(&incoming, &passed, &mut state, server.environment()))
                    }
                    (decision, _) => decision,
                };
                match decision {
                    Decision::Answer(answer) if answer.fault.is_none() && answer.delay.is_none() => {
                        return Ok(Some(answer));
                    }
                    decision => Next::Decided(Box::new(decision)),
                }
            }
        };
        // After `initialize`, what is sent is in the version that was negotiated.
        let negotiated = state.legacy.context().filter(|_| incoming.method == Method::INITIALIZE);
        let incoming = match negotiated {
            Some(context) => Arc::new(IncomingRequest { context, ..IncomingRequest::clone(&incoming) }),
            None => incoming,
        };
        drop(state);
        let cancelled = connection.activate(self.channel, &request.id, incoming.context.era())?;
        let call = ActiveRequest {
            connection: Arc::clone(connection),
            chain,
            channel: self.channel,
            id: request.id.clone(),
            request: incoming,
            params: request.params.clone(),
            cancelled,
            received,
        };
        self.tasks.spawn(carry_out(call, next));
        Ok(None)
    }

    fn receive_notification(&mut self, notification: &Notification) {
        if notification.method == Method::CANCELLED {
            let id = notification.param(&["requestId"]).and_then(|id| id.value().ok()).and_then(|id| match id {
                Value::Number(number) => number.as_i64().map(RequestId::Number),
                Value::String(text) => Some(RequestId::Text(text)),
                Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
            });
            if let Some(id) = id {
                self.connection.cancel(self.channel, &id);
            }
        } else if notification.method == Method::INITIALIZED && self.connection.mark_initialized() {
            // Subscribed here and not in the task, so that no change is missed before the task runs.
            let changes = self.connection.server.changes.subscribe();
            self.tasks.spawn(subscriptions::notify_legacy(Arc::clone(self.connection), changes));
            if let Some(deferred) = self.connection.take_deferred() {
                let connection = Arc::clone(self.connection);
                self.tasks.spawn(async move { execute_deferred(&connection, deferred).await });
            }
        }
    }

    fn refuse(&mut self, id: Option<RequestId>, error: &ErrorReply) {
        self.send(Message::error(id, error));
    }

    /// Sends a message. What the transport does not take at once waits in the outbox, and a task sends it, so that the next
    /// message is read: the client may be writing before it reads.
    fn send(&mut self, message: Message) {
        if !self.connection.post(self.channel, message) {
            return;
        }
        let connection = Arc::clone(self.connection);
        let mut sending: Pin<Box<dyn Future<Output = ()> + Send>> =
            Box::pin(async move { connection.send_outbox().await });
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        // A task that is spawned is polled again, with a waker of its own.
        if sending.as_mut().poll(&mut context).is_pending() {
            self.tasks.spawn(sending);
        }
    }
}

/// What happens with a request that is not answered at once.
enum Next {
    Decided(Box<Decision>),
    Handle(Arc<dyn Handler>),
    /// What the upstream offers is read first, and then the chain decides.
    Merge(Arc<Upstream>),
}

async fn carry_out(call: ActiveRequest, next: Next) {
    let decision = match next {
        Next::Decided(decision) => *decision,
        Next::Merge(upstream) => {
            // A handshake has no context yet; the upstream is connected with what it will settle.
            let context = match call.request.method == Method::INITIALIZE {
                true => RequestContext::from_handshake(&call.request.params, call.chain.surface().revisions()),
                false => None,
            };
            let context = context.unwrap_or_else(|| call.request.context.clone());
            let offered = upstream.surface(RequestHandle(&call), &context);
            match until_cancelled(&call, offered).await {
                None => return call.finish(None).await,
                Some(Err(why)) => return call.finish(Some(upstream.failure(&why))).await,
                Some(Ok(offered)) => begin_merged(&call, offered),
            }
        }
        Next::Handle(handler) => {
            let answer = until_cancelled(&call, handler.call(RequestHandle(&call))).await;
            let answer = answer.map(|answer| call.finished(answer));
            return call.finish(answer).await;
        }
    };
    match decision {
        Decision::Answer(answer) => call.finish(Some(answer)).await,
        Decision::Respond(responder, action) => execute(call, responder, action).await,
        Decision::Listen(filter, first) => {
            let answer = subscriptions::listen(&call, &filter, first).await;
            call.finish(answer).await;
        }
        Decision::Task(task) => {
            let server = &call.connection.server;
            let is_unknown = task.id().is_some_and(|id| server.tasks.find(id).is_none());
            if let Some(upstream) = server.options.otherwise.upstream().filter(|_| is_unknown).cloned() {
                return forward(call, &upstream, &Passed::default()).await;
            }
            let answer = tasks::answer(&call, task).await.map(|answer| call.finished(answer));
            call.finish(answer).await;
        }
        Decision::Unanswered(passed) => match call.connection.server.options.otherwise.upstream().cloned() {
            Some(upstream) => forward(call, &upstream, &passed).await,
            None => {
                let answer = call.refusal(&passed);
                call.finish(Some(answer)).await;
            }
        },
    }
}

/// Begins to answer a request, now that it is known what the upstream offers.
fn begin_merged(call: &ActiveRequest, offered: Surface) -> Decision {
    let misspelt = call.chain.surface().misspelt(&offered);
    let mut state = call.connection.state();
    state.merge(&call.chain, offered);
    match call.chain.begin(&call.request, &mut state, call.connection.server.environment()) {
        Decision::Answer(mut answer) => {
            answer.remarks.extend(misspelt);
            Decision::Answer(answer)
        }
        decision => decision,
    }
}

/// Answers a request by the upstream.
async fn forward(call: ActiveRequest, upstream: &Upstream, passed: &Passed) {
    let answer = until_cancelled(&call, upstream.forward(RequestHandle(&call))).await;
    let answer = answer.map(|answer| call.forwarded(passed, answer));
    call.finish(answer).await;
}

/// Waits for something, unless the client cancels the request. A client that closed its end still gets the answer, as long as
/// the connection is [flushed](FLUSH_TIMEOUT).
async fn until_cancelled<T>(call: &ActiveRequest, future: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        () = call.cancelled() => None,
        output = future => Some(output),
    }
}

/// The params of a request, or what is wrong with them.
fn read_params(request: &Request) -> Result<Value, ErrorReply> {
    let wrong = |why: String| ErrorReply::new(code::INVALID_PARAMS, why);
    let Some(params) = &request.params else { return Ok(json!({})) };
    let params = params.value().map_err(|error| wrong(error.to_string()))?;
    if params.is_object() { Ok(params) } else { Err(wrong("params must be an object".to_owned())) }
}

/// The headers of a request by their names in lower case. Several values of one name are joined with commas.
fn headers(head: &HttpMeta) -> Value {
    let mut headers: Map<String, Value> = Map::new();
    for (name, value) in &head.headers {
        let text = String::from_utf8_lossy(value.as_bytes()).into_owned();
        match headers.get_mut(name.as_str()) {
            Some(Value::String(before)) => *before = format!("{before}, {text}"),
            Some(_) | None => {
                headers.insert(name.as_str().to_owned(), text.into());
            }
        }
    }
    Value::Object(headers)
}

/// The error for a garbled message; `None` for a blank line.
fn garbled_error(garbled: &Garbled) -> Option<ErrorReply> {
    if garbled.reason == GarbledReason::Blank {
        return None;
    }
    let code = code::for_garbled(&garbled.reason);
    Some(ErrorReply::new(code, garbled.to_string()))
}

/// The method of a garbled message, if it has one and an id.
fn garbled_method(message: &Message) -> Option<Method> {
    let members: Map<String, Value> = serde_json::from_slice(message.raw()).ok()?;
    members.get("method").filter(|_| members.contains_key("id"))?.as_str().map(Method::from)
}

fn invalid(message: &str) -> ErrorReply {
    ErrorReply::new(code::INVALID_REQUEST, message)
}
