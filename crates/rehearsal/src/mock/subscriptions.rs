//! Telling clients what changed: subscribers of both eras.
//!
//! ```text
//! news ──► tell     on the standing stream, what the connection subscribed to   before 2026-07-28
//!     └──► listen   on the stream of the request, what that request named       since 2026-07-28
//! ```

use std::sync::Arc;

use rehearsal_core::answer::{Act, Change, RecordedPlay, Wanted, end_of_subscription, on_subscription};
use rehearsal_core::exchange::Channel;
use rehearsal_core::message::{Method, Reply};
use rehearsal_core::protocol::Revision;
use serde_json::{Value, json};

use super::call::{Call, Stop};
use super::news::{Ear, News};
use super::server::within;
use super::session::Session;

/// Tells a client of the handshake era until the conversation ends.
pub(super) async fn tell(session: Arc<Session>, mut ear: Ear) {
    loop {
        let told = tokio::select! {
            told = ear.next() => told,
            () = session.closing() => return,
        };
        let News::Changed(change) = told else { continue };
        if session.wants(&change) {
            session.notify(Channel::MAIN, change.method(), &change.params()).await;
        }
    }
}

impl Session {
    /// Whether a client of the handshake era wants to know about a change.
    pub(super) fn wants(&self, change: &Change) -> bool {
        match change {
            Change::Resource(uri) => self.memory().subscriptions.contains(uri),
            Change::Tools | Change::Prompts | Change::Resources => true,
            Change::Task(..) => false,
        }
    }
}

/// `subscriptions/listen`: acknowledges what it can tell, then tells it until the client has heard enough.
/// What was recorded after another client had begun to listen comes first.
pub(super) async fn listen(
    call: &Call,
    info: &Value,
    wanted: &Wanted,
    mut first: Option<Box<RecordedPlay>>,
    revision: Revision,
) -> Option<Reply> {
    let mut ear = call.session.server.news.listen();
    let accepted = on_subscription(json!({"notifications": wanted.accepted()}), &call.id);
    call.notify(Method::SUBSCRIPTION_ACKNOWLEDGED, &accepted).await;
    while let Some(act) = first.as_mut().and_then(|play| play.afterwards()) {
        match act {
            // Whoever has heard enough meanwhile is told that below.
            Act::Wait(delay) => drop(call.pause(within(delay)).await),
            Act::Tell(change) if wanted.includes(&change) => {
                call.notify(change.method(), &on_subscription(change.params(), &call.id)).await;
            }
            Act::Tell(_)
            | Act::Notify { .. }
            | Act::Ask(_)
            | Act::CloseStream { .. }
            | Act::Detach(_)
            | Act::Pose(_)
            | Act::Hear(_)
            | Act::Withdraw(..)
            | Act::Reply(_) => {}
        }
    }
    loop {
        let told = tokio::select! {
            told = ear.next() => told,
            stop = call.stopped() => return match stop {
                Stop::Cancelled => None,
                Stop::Closing => Some(Reply::Result(end_of_subscription(info, &call.id, revision))),
            },
        };
        match told {
            News::Changed(change) if wanted.includes(&change) => {
                call.notify(change.method(), &on_subscription(change.params(), &call.id)).await;
            }
            News::Task(id) if wanted.includes_task(&id) => {
                let Some(running) = call.session.server.tasks.find(&id) else { continue };
                let params = running.task().told();
                call.notify(Method::TASKS_NOTIFICATION, &on_subscription(params, &call.id)).await;
            }
            News::Changed(_) | News::Task(_) => {}
        }
    }
}
