//! Telling clients what changed: subscribers of both eras.
//!
//! ```text
//! touch ──► changes ──► tell     on the standing stream, what the connection subscribed to   before 2026-07-28
//!                  └──► listen   on the stream of the request, what that request named       since 2026-07-28
//! ```

use std::sync::Arc;

use rehearsal_core::exchange::Channel;
use rehearsal_core::message::{Message, Method};
use rehearsal_core::protocol::meta;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::call::{Call, Stop};
use crate::instead::Instead;
use crate::resources;
use crate::session::Session;

/// Something that a client may want to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// A resource has new contents.
    Resource {
        /// Which.
        uri: &'static str,
    },
    /// The list of tools is another.
    Tools,
}

impl Change {
    fn method(self) -> Method {
        match self {
            Change::Resource { .. } => Method::RESOURCE_UPDATED,
            Change::Tools => Method::TOOLS_CHANGED,
        }
    }

    fn params(self) -> Value {
        match self {
            Change::Resource { uri } => json!({"uri": uri}),
            Change::Tools => json!({}),
        }
    }
}

/// What the tool `touch` does: everybody who wants to know is told, on whatever connection.
pub(crate) fn touch(call: &Call) {
    for change in [Change::Resource { uri: resources::GREETING }, Change::Tools] {
        // Nobody listening is not a failure.
        let _ = call.session.server.changes.send(change);
    }
}

/// Tells a client of the handshake era until the conversation ends.
pub(crate) async fn tell(session: Arc<Session>) {
    let mut changes = session.server.changes.subscribe();
    loop {
        let change = tokio::select! {
            change = next(&mut changes) => change,
            () = session.closing() => return,
        };
        let wanted = match change {
            Change::Resource { uri } => session.memory().subscriptions.contains(uri),
            Change::Tools => true,
        };
        if wanted {
            let message = Message::notification(change.method(), Some(&change.params()));
            session.send(Channel::MAIN, message.expect("a JSON value can always be written")).await;
        }
    }
}

/// `subscriptions/listen`: acknowledges what it can tell, then tells it until the client has heard enough.
pub(crate) async fn listen(call: &Call) -> Result<Value, Instead> {
    let mut changes = call.session.server.changes.subscribe();
    let wanted = Wanted::read(call)?;
    call.notify(Method::SUBSCRIPTION_ACKNOWLEDGED, tagged(call, json!({"notifications": wanted.accepted()}))).await;
    loop {
        let change = tokio::select! {
            change = next(&mut changes) => change,
            stop = call.stopped() => return match stop {
                Stop::Cancelled => Err(Instead::Silence),
                Stop::Closing => Ok(tagged(call, json!({}))),
            },
        };
        if wanted.includes(change) {
            call.notify(change.method(), tagged(call, change.params())).await;
        }
    }
}

/// The part of what was asked for that can ever happen here.
#[derive(Debug)]
struct Wanted {
    tools: bool,
    resources: Option<Vec<String>>,
}

impl Wanted {
    fn read(call: &Call) -> Result<Wanted, Instead> {
        let Some(asked) = call.params.get("notifications").filter(|asked| asked.is_object()) else {
            return Err(Instead::invalid_params("subscriptions/listen needs an object `notifications`"));
        };
        let readable = |uri: &&str| resources::contents(uri).is_some();
        let resources = asked
            .get("resourceSubscriptions")
            .and_then(Value::as_array)
            .map(|uris| uris.iter().filter_map(Value::as_str).filter(readable).map(str::to_owned).collect());
        Ok(Wanted { tools: asked["toolsListChanged"] == true, resources })
    }

    fn accepted(&self) -> Value {
        let mut accepted = json!({});
        if self.tools {
            accepted["toolsListChanged"] = true.into();
        }
        if let Some(uris) = &self.resources {
            accepted["resourceSubscriptions"] = json!(uris);
        }
        accepted
    }

    fn includes(&self, change: Change) -> bool {
        match change {
            Change::Tools => self.tools,
            Change::Resource { uri } => self.resources.iter().flatten().any(|wanted| wanted == uri),
        }
    }
}

/// Everything on a subscription names the request that it belongs to.
fn tagged(call: &Call, mut params: Value) -> Value {
    params["_meta"] = json!({meta::SUBSCRIPTION_ID: call.id});
    params
}

/// The next change; a subscriber that is too slow misses some, and every change says only "look again".
async fn next(changes: &mut broadcast::Receiver<Change>) -> Change {
    loop {
        match changes.recv().await {
            Ok(change) => return change,
            Err(RecvError::Lagged(_)) => {}
            // The server outlives its sessions, so this is never reached; waiting for ever is right if it were.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}
