//! Events in, answers out: the loop of one conversation.

use std::sync::Arc;
use std::time::Duration;

use rehearsal_core::answer::Terms;
use rehearsal_core::exchange::Channel;
use rehearsal_core::message::{Body, ErrorReply, Garbled, Message, Method, Notification, Reason, Request, RequestId};
use rehearsal_core::protocol::{Era, Revision, code};
use rehearsal_wire::{Connection, Ending, Event};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::call::Call;
use crate::server::Shared;
use crate::session::Session;
use crate::{answer, subscriptions, tools};

/// How long the last answers may take to leave once the conversation has ended.
const FAREWELL: Duration = Duration::from_secs(2);

/// Serves one client until either end closes the connection or the server is stopped.
pub(crate) async fn serve(server: Arc<Shared>, connection: Connection) -> Ending {
    let Connection { sender, mut receiver } = connection;
    let session = Arc::new(Session::new(server, sender));
    let mut tasks = JoinSet::new();
    let ending = loop {
        let event = tokio::select! {
            event = receiver.receive() => event,
            Some(_) = tasks.join_next() => continue,
            () = session.server.stopped() => break Ending::Closed,
        };
        match event {
            Event::Message { channel, message, .. } => hear(&session, channel, &message, &mut tasks).await,
            Event::ChannelEnded { channel, .. } => session.channel_ended(channel),
            Event::Ended(ending) => break ending,
        }
    };
    session.close();
    // Whoever closes stdin may still read what was asked before; whoever reads nothing is not waited for.
    let _ = tokio::time::timeout(FAREWELL, async { while tasks.join_next().await.is_some() {} }).await;
    session.hang_up().await;
    ending
}

async fn hear(session: &Arc<Session>, channel: Channel, message: &Message, tasks: &mut JoinSet<()>) {
    match message.body() {
        Body::Batch(messages) if session.memory().handshake.as_ref().is_some_and(|it| it.revision.has_batches()) => {
            for message in messages {
                hear_one(session, channel, message, tasks).await;
            }
        }
        Body::Batch(_) => refuse(session, channel, None, invalid("only 2025-03-26 has batches")).await,
        Body::Request(_) | Body::Notification(_) | Body::Response(_) | Body::Garbled(_) => {
            hear_one(session, channel, message, tasks).await;
        }
    }
}

async fn hear_one(session: &Arc<Session>, channel: Channel, message: &Message, tasks: &mut JoinSet<()>) {
    match message.body() {
        Body::Request(request) => {
            if let Err(error) = take_up(session, channel, request, tasks) {
                refuse(session, channel, Some(request.id.clone()), error).await;
            }
        }
        Body::Notification(notification) => note(session, channel, notification, tasks),
        Body::Response(response) => {
            if let Some(id) = &response.id {
                session.answered(id, response.reply.clone());
            }
        }
        Body::Garbled(garbled) => {
            if let Some(error) = complaint(garbled) {
                refuse(session, channel, garbled.id.clone(), error).await;
            }
        }
        Body::Batch(_) => refuse(session, channel, None, invalid("a batch inside a batch")).await,
    }
}

/// Begins to work on a request.
///
/// What changes the memory of the connection happens here, in the order in which it was said. Whatever waits does so in
/// a task of its own, so the next message is heard at once.
fn take_up(
    session: &Arc<Session>,
    channel: Channel,
    request: &Request,
    tasks: &mut JoinSet<()>,
) -> Result<(), ErrorReply> {
    let params = match &request.params {
        None => json!({}),
        Some(params) => params.value().map_err(|error| ErrorReply::new(code::INVALID_PARAMS, error.to_string()))?,
    };
    if !params.is_object() {
        return Err(ErrorReply::new(code::INVALID_PARAMS, "params must be an object"));
    }
    let terms = Terms::of(&request.method, &params, &session.memory(), &Revision::ALL)?;
    let era = terms.era();
    let cancelled = session.begin(channel, &request.id, era)?;
    let (session, id, method) = (Arc::clone(session), request.id.clone(), request.method.clone());
    let call = Call { session, channel, id, method, params, terms, cancelled };
    match (era, request.method.as_str()) {
        (_, "tools/call") => tasks.spawn(async move {
            let outcome = tools::call(&call).await;
            call.settle(outcome).await;
        }),
        (Era::Modern, "subscriptions/listen") => tasks.spawn(async move {
            let outcome = subscriptions::listen(&call).await;
            call.settle(outcome).await;
        }),
        _ => {
            let outcome = answer::answer(&call);
            tasks.spawn(call.settle(outcome))
        }
    };
    Ok(())
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
        tasks.spawn(subscriptions::tell(Arc::clone(session)));
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

fn invalid(message: &str) -> ErrorReply {
    ErrorReply::new(code::INVALID_REQUEST, message)
}

async fn refuse(session: &Session, channel: Channel, id: Option<RequestId>, error: ErrorReply) {
    session.send(channel, Message::error(id, &error)).await;
}
