//! Change notices for the clients of both eras.
//!
//! ```text
//! broadcast ──► notify_legacy   on the GET stream, what the connection subscribed to    before 2026-07-28
//!          └──► listen          on the stream of the request, what the request named    since 2026-07-28
//! ```

use std::sync::Arc;

use rehearsal_core::answer::{
    Action, ActiveResponder, Answer, ChangeNotice, SubscriptionFilter, subscription_result, with_subscription_id,
};
use rehearsal_core::exchange::Channel;
use rehearsal_core::message::{Method, Reply};
use serde_json::{Value, json};

use super::active_request::{ActiveRequest, StopReason};
use super::change_broadcast::{BroadcastEvent, ChangeReceiver};
use super::connection::ServerConnection;
use super::server::within;

/// Notifies a client of the handshake era until the connection closes.
pub(super) async fn notify_legacy(connection: Arc<ServerConnection>, mut changes: ChangeReceiver) {
    loop {
        let event = tokio::select! {
            event = changes.next() => event,
            () = connection.closing() => return,
        };
        let BroadcastEvent::Change(change) = event else { continue };
        if connection.is_subscribed(&change) {
            connection.notify(Channel::MAIN, change.method(), &change.params()).await;
        }
    }
}

/// `subscriptions/listen`: acknowledges the filter, then notifies until the client cancels. What was recorded after another
/// client's subscription comes first.
pub(super) async fn listen(
    call: &ActiveRequest,
    filter: &SubscriptionFilter,
    mut first: Option<ActiveResponder>,
) -> Option<Answer> {
    let mut changes = call.connection.server.changes.subscribe();
    let accepted = with_subscription_id(json!({"notifications": filter.accepted()}), &call.id);
    call.notify(Method::SUBSCRIPTION_ACKNOWLEDGED, &accepted).await;
    let notify = async |change: &ChangeNotice, params: Value| {
        call.notify(change.method(), &with_subscription_id(params, &call.id)).await;
    };
    while let Some(responder) = &mut first {
        match call.next_action(responder) {
            // A client that cancels meanwhile is noticed below.
            Action::Wait(delay) => drop(call.pause(within(delay)).await),
            Action::NotifySubscribers(change) if filter.includes(&change) => notify(&change, change.params()).await,
            Action::End => first = None,
            Action::NotifySubscribers(_)
            | Action::Notify { .. }
            | Action::RequestInput(_)
            | Action::AwaitInput(_)
            | Action::CancelInput(..)
            | Action::CloseStream { .. }
            | Action::StartTask(_)
            | Action::Reply(_) => {}
        }
    }
    loop {
        let event = tokio::select! {
            event = changes.next() => event,
            stop = call.stopped() => return match stop {
                StopReason::Cancelled => None,
                StopReason::Closing => {
                    let state = call.connection.state();
                    let surface = state.surface.as_ref().unwrap_or(call.chain.surface());
                    let revision = call.request.context.revision;
                    let result = subscription_result(&surface.server_info(), &call.id, revision);
                    Some(Answer::protocol(Reply::Result(result)))
                }
            },
        };
        match event {
            BroadcastEvent::Change(change) if filter.includes(&change) => notify(&change, change.params()).await,
            BroadcastEvent::Task(id, details) if filter.includes_task(&id) => {
                let params = with_subscription_id(Value::clone(&details), &call.id);
                call.notify(Method::TASKS_NOTIFICATION, &params).await;
            }
            BroadcastEvent::Change(_) | BroadcastEvent::Task(..) => {}
        }
    }
}
