//! Events in, answers out: the loop of one conversation.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use rehearsal_core::answer::{Answer, Asked, Begun};
use rehearsal_core::exchange::Channel;
use rehearsal_core::message::{Body, ErrorReply, Garbled, Message, Method, Notification, Reason, Request, RequestId};
use rehearsal_core::protocol::code;
use rehearsal_wire::{Connection, Ending, Event, HttpHead};
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;

use super::call::{Call, outcome};
use super::server::Shared;
use super::session::Session;
use super::source::{Forwards, Live};
use super::{perform, subscriptions, tasks};

/// How long the last answers may take to leave once the conversation has ended.
const FAREWELL: Duration = Duration::from_secs(2);

/// How long a server that died on purpose has to be gone before its conversations end by themselves.
const GRAVE: Duration = Duration::from_millis(200);

/// Serves one client until either end closes the connection or the server is stopped.
pub(super) async fn serve(server: Arc<Shared>, connection: Connection) -> Ending {
    let Connection { sender, mut receiver } = connection;
    let session = Arc::new(Session::new(server, sender));
    let mut tasks = JoinSet::new();
    let ending = {
        let stopped = stopped(&session);
        tokio::pin!(stopped);
        loop {
            let event = tokio::select! {
                event = receiver.receive() => event,
                Some(_) = tasks.join_next() => continue,
                end = &mut stopped => match end {
                    Stopped::Politely => break Ending::Closed,
                    Stopped::Abruptly => {
                        // Whoever serves is about to take the socket or the process away, without a last word.
                        tokio::time::sleep(GRAVE).await;
                        session.close();
                        session.abort();
                        session.server.source().ended(session.number);
                        return Ending::Closed;
                    }
                },
            };
            match event {
                Event::Message { channel, message, head } => {
                    hear(&session, channel, &message, head.as_deref(), &mut tasks).await;
                }
                Event::ChannelEnded { channel, .. } => session.channel_ended(channel),
                Event::Ended(ending) => break ending,
            }
        }
    };
    session.close();
    // Whoever closes stdin may still read what was asked before; whoever reads nothing is not waited for.
    let _ = tokio::time::timeout(FAREWELL, async { while tasks.join_next().await.is_some() {} }).await;
    session.hang_up().await;
    session.server.source().ended(session.number);
    ending
}

/// How a conversation ends from our side.
enum Stopped {
    Politely,
    Abruptly,
}

/// Returns once the conversation is to end.
async fn stopped(session: &Session) -> Stopped {
    tokio::select! {
        () = session.server.stopped() => Stopped::Politely,
        () = session.fell_silent() => Stopped::Politely,
        _ = session.server.exited() => Stopped::Abruptly,
    }
}

async fn hear(
    session: &Arc<Session>,
    channel: Channel,
    message: &Message,
    head: Option<&HttpHead>,
    tasks: &mut JoinSet<()>,
) {
    match message.body() {
        Body::Batch(messages) if session.memory().handshake.as_ref().is_some_and(|it| it.revision.has_batches()) => {
            session.begin_batch(channel, messages);
            for message in messages {
                hear_one(session, channel, message, head, tasks).await;
            }
        }
        Body::Batch(_) => refuse(session, channel, None, &invalid("only 2025-03-26 has batches"), tasks).await,
        Body::Request(_) | Body::Notification(_) | Body::Response(_) | Body::Garbled(_) => {
            hear_one(session, channel, message, head, tasks).await;
        }
    }
}

async fn hear_one(
    session: &Arc<Session>,
    channel: Channel,
    message: &Message,
    head: Option<&HttpHead>,
    tasks: &mut JoinSet<()>,
) {
    let since = Instant::now();
    match message.body() {
        Body::Request(request) => match take_up(session, channel, request, head, since, tasks) {
            Ok(None) => {}
            Ok(Some(answer)) => {
                let (method, params) = (request.method.clone(), request.params.clone());
                session.server.note(method, params, since, &answer, outcome(&answer.reply));
                send(session, channel, answer.message(request.id.clone()), tasks).await;
            }
            Err(error) => refuse(session, channel, Some(request.id.clone()), &error, tasks).await,
        },
        Body::Notification(notification) => note(session, channel, notification, tasks),
        Body::Response(response) => {
            if let Some(id) = &response.id {
                session.answered(id, response.reply.clone());
            }
        }
        Body::Garbled(garbled) => {
            if let Some(error) = complaint(garbled) {
                if let Some(method) = meant(message) {
                    session.server.source().refused(&method, None, &error);
                }
                refuse(session, channel, garbled.id.clone(), &error, tasks).await;
            }
        }
        Body::Batch(_) => refuse(session, channel, None, &invalid("a batch inside a batch"), tasks).await,
    }
}

/// Begins to work on a request, and answers at once what can be.
///
/// What changes the memory of the connection happens here, in the order in which it was said. Whatever waits does so in
/// a task of its own, so the next message is heard at once.
fn take_up(
    session: &Arc<Session>,
    channel: Channel,
    request: &Request,
    head: Option<&HttpHead>,
    since: Instant,
    tasks: &mut JoinSet<()>,
) -> Result<Option<Answer>, ErrorReply> {
    let source = session.server.source();
    let mut memory = session.memory();
    let understood = understood(request).and_then(|params| {
        let terms = source.terms(&request.method, &params, &memory)?;
        Ok((params, terms))
    });
    let (params, terms) =
        understood.inspect_err(|error| source.refused(&request.method, request.params.as_ref(), error))?;
    let (era, revision) = (terms.era(), terms.revision);
    let mut asked = Asked::new(request.method.clone(), params, terms);
    asked.conversation = session.number;
    if let Some(head) = head.filter(|_| source.reads_headers()) {
        asked.headers = headers(head);
    }
    let begun = source.begin(asked, &mut memory, &mut session.server.state(), &session.server.world());
    drop(memory);
    let begun = match begun {
        Begun::Answered(answer) if answer.fault.is_none() && answer.delay.is_none() => return Ok(Some(answer)),
        begun => begun,
    };
    let cancelled = session.begin(channel, &request.id, era)?;
    let (session, id, method) = (Arc::clone(session), request.id.clone(), request.method.clone());
    let call = Call { session, channel, id, method, params: request.params.clone(), cancelled, since };
    match begun {
        Begun::Answered(answer) => {
            tasks.spawn(call.settle(Some(answer)));
        }
        Begun::Plays(play, act) => {
            tasks.spawn(perform::perform(call, play, act));
        }
        Begun::Listens(wanted, info, first) => {
            tasks.spawn(async move {
                let reply = subscriptions::listen(&call, &info, &wanted, first, revision).await;
                call.settle(reply.map(Answer::protocol)).await;
            });
        }
        Begun::AboutTask(about, terms, mock) => {
            tasks.spawn(async move {
                let reply = tasks::answer_request(&call, &mock, &terms, about).await;
                call.settle(reply.map(Answer::protocol)).await;
            });
        }
        Begun::Unknown(answer, asked) => match source.forwards() {
            None => {
                tasks.spawn(call.settle(Some(answer)));
            }
            Some(forwards) => {
                tasks.spawn(async move {
                    let answer = forwarded(&call, &asked, forwards.as_ref()).await;
                    call.settle(answer).await;
                });
            }
        },
    }
    Ok(None)
}

/// The params of a request, or what is wrong with them.
fn understood(request: &Request) -> Result<Value, ErrorReply> {
    let wrong = |why: String| ErrorReply::new(code::INVALID_PARAMS, why);
    let Some(params) = &request.params else { return Ok(json!({})) };
    let params = params.value().map_err(|error| wrong(error.to_string()))?;
    if params.is_object() { Ok(params) } else { Err(wrong("params must be an object".to_owned())) }
}

/// What the real server says, now that nobody else knows.
async fn forwarded(call: &Call, asked: &Asked, forwards: &dyn Forwards) -> Option<Answer> {
    // Whoever closes its end still hears what it asked for, in the time of the farewell.
    tokio::select! {
        biased;
        () = call.cancelled() => None,
        answer = forwards.forward(Live { call, asked }) => Some(answer),
    }
}

/// The headers of a request by their names in lower case; of several of one name, all of them.
fn headers(head: &HttpHead) -> Value {
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

fn note(session: &Arc<Session>, channel: Channel, notification: &Notification, tasks: &mut JoinSet<()>) {
    if notification.method == Method::CANCELLED {
        let id = notification.param(&["requestId"]).and_then(|id| id.value().ok()).and_then(|id| match id {
            Value::Number(number) => number.as_i64().map(RequestId::Number),
            Value::String(text) => Some(RequestId::Text(text)),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        });
        if let Some(id) = id {
            session.cancel(channel, &id);
        }
    } else if notification.method == Method::INITIALIZED && session.becomes_ready() {
        // Subscribed here and not in the task, so that nothing is missed that happens before the task begins.
        let ear = session.server.news.listen();
        tasks.spawn(subscriptions::tell(Arc::clone(session), ear));
        if let Some(play) = session.waiting() {
            let session = Arc::clone(session);
            tasks.spawn(async move { perform::afterwards(&session, *play).await });
        }
    }
}

/// What to say about a message that was not understood; nothing about a blank line.
fn complaint(garbled: &Garbled) -> Option<ErrorReply> {
    if garbled.reason == Reason::Blank {
        return None;
    }
    let code = code::for_garbled(&garbled.reason);
    Some(ErrorReply::new(code, garbled.to_string()))
}

/// What a message asks for that was not understood, where it asks for something.
fn meant(message: &Message) -> Option<Method> {
    let members: Map<String, Value> = serde_json::from_slice(message.raw()).ok()?;
    members.get("method").filter(|_| members.contains_key("id"))?.as_str().map(Method::from)
}

fn invalid(message: &str) -> ErrorReply {
    ErrorReply::new(code::INVALID_REQUEST, message)
}

async fn refuse(
    session: &Arc<Session>,
    channel: Channel,
    id: Option<RequestId>,
    error: &ErrorReply,
    tasks: &mut JoinSet<()>,
) {
    send(session, channel, Message::error(id, error), tasks).await;
}

/// Sends at once what the transport takes at once. A client that does not read is waited for in a task, so that it is
/// still heard: it may be waiting for us to read.
async fn send(session: &Arc<Session>, channel: Channel, message: Message, tasks: &mut JoinSet<()>) {
    let session = Arc::clone(session);
    let mut sending: Pin<Box<dyn Future<Output = ()> + Send>> =
        Box::pin(async move { session.send(channel, message).await });
    let sent = std::future::poll_fn(|context| Poll::Ready(sending.as_mut().poll(context).is_ready())).await;
    if !sent {
        tasks.spawn(sending);
    }
}
