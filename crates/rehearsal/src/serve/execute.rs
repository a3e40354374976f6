//! The actions of a responder, carried out.

use std::sync::Arc;

use rehearsal_core::answer::{Action, ActiveResponder, Answer, ChangeNotice, InputRequest, TaskOptions};
use rehearsal_core::exchange::Channel;
use rehearsal_core::message::Method;
use rehearsal_core::protocol::Era;
use serde_json::Map;

use super::active_request::{ActiveRequest, PendingInputs, StopReason};
use super::change_broadcast::BroadcastEvent;
use super::connection::{Deferred, ServerConnection};
use super::server::within;
use super::tasks;

/// Carries out the actions of a responder, sends its reply, and carries out what follows.
pub(super) async fn execute(call: ActiveRequest, mut responder: ActiveResponder, action: Action) {
    let connection = Arc::clone(&call.connection);
    let mut pending = PendingInputs::default();
    let answer = match until_reply(&call, &mut responder, action, &mut pending).await {
        None => {
            call.cancel_inputs(pending, &Map::new()).await;
            None
        }
        Some(reply) => {
            // The recorded server did not wait for these responses.
            pending.into_values().for_each(|input| connection.remove_pending_input(&input.id));
            match reply {
                ReplyOrTask::Reply(answer) => Some(answer),
                ReplyOrTask::Task(options) => {
                    let answer = tasks::start(&call, responder, options);
                    return call.finish(Some(answer)).await;
                }
            }
        }
    };
    let (chain, request) = (Arc::clone(&call.chain), Arc::clone(&call.request));
    let continues = answer.is_some() && responder.responder.continues_after_reply();
    call.finish(answer).await;
    if !continues {
        return;
    }
    let deferred = Deferred { chain, request, responder };
    if deferred.request.method == Method::INITIALIZE {
        return connection.defer(deferred);
    }
    execute_deferred(&connection, deferred).await;
}

/// How the part of a responder ends that its client waits for.
enum ReplyOrTask {
    Reply(Answer),
    Task(TaskOptions),
}

/// Carries out actions until the reply; `None` if the request needs no answer any more.
async fn until_reply(
    call: &ActiveRequest,
    responder: &mut ActiveResponder,
    mut action: Action,
    pending: &mut PendingInputs,
) -> Option<ReplyOrTask> {
    let connection = &call.connection;
    loop {
        match action {
            Action::Wait(delay) => match call.pause(within(delay)).await {
                Ok(()) => {}
                // The rest of a recording is known, so a client that closed its end gets it at once.
                Err(StopReason::Closing) if responder.responder.is_recorded() => {}
                Err(StopReason::Closing | StopReason::Cancelled) => return None,
            },
            Action::Notify { method, params } => call.notify(method, &params).await,
            Action::NotifySubscribers(change) if responder.responder.is_recorded() => {
                notify_recorded(connection, call.channel, call.request.context.era(), change).await;
            }
            Action::NotifySubscribers(change) => {
                connection.server.changes.send_and_wait(BroadcastEvent::Change(change)).await;
            }
            Action::RequestInput(requests) => call.send_inputs(&requests, None, pending).await,
            Action::AwaitInput(names) => {
                for name in names {
                    if let Some(input) = call.await_input(&name, pending).await.ok()? {
                        responder.responder.set_input(&name, input);
                    }
                }
            }
            Action::CancelInput(name, params) => {
                if let Some(input) = pending.remove(&name) {
                    call.cancel_inputs(PendingInputs::from([(name, input)]), &params).await;
                }
            }
            Action::CloseStream { retry } => connection.close_stream(call.channel, retry.map(within)),
            Action::StartTask(options) => return Some(ReplyOrTask::Task(options)),
            Action::Reply(answer) => return Some(ReplyOrTask::Reply(answer)),
            Action::End => return None,
        }
        action = call.next_action(responder);
    }
}

/// Carries out the actions after the reply.
pub(super) async fn execute_deferred(connection: &ServerConnection, deferred: Deferred) {
    let Deferred { chain, request, mut responder } = deferred;
    loop {
        let action = chain.next(&mut responder, &request, &mut connection.state(), connection.server.environment());
        match action {
            Action::Wait(delay) => {
                tokio::select! {
                    biased;
                    () = connection.closing() => return,
                    () = tokio::time::sleep(within(delay)) => {}
                }
            }
            Action::Notify { method, params } => connection.notify(Channel::MAIN, method, &params).await,
            Action::NotifySubscribers(change) => {
                notify_recorded(connection, Channel::MAIN, request.context.era(), change).await;
            }
            Action::RequestInput(requests) => send_inputs(connection, &requests).await,
            Action::End => return,
            Action::AwaitInput(_)
            | Action::CancelInput(..)
            | Action::CloseStream { .. }
            | Action::StartTask(_)
            | Action::Reply(_) => {}
        }
    }
}

/// Sends a recorded change notice: before 2026-07-28 to the client of the request, if it is subscribed.
async fn notify_recorded(connection: &ServerConnection, channel: Channel, era: Era, change: ChangeNotice) {
    match era {
        Era::Modern => connection.server.changes.send_and_wait(BroadcastEvent::Change(change)).await,
        Era::Legacy if connection.is_subscribed(&change) => {
            connection.notify(channel, change.method(), &change.params()).await;
        }
        Era::Legacy => {}
    }
}

/// Sends server requests whose responses the recording does not need.
async fn send_inputs(connection: &ServerConnection, requests: &[InputRequest]) {
    for request in requests {
        let input = connection.new_pending_input();
        connection.send(Channel::MAIN, request.request(input.id, None)).await;
    }
}
