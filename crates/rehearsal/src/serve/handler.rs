//! Tools that are carried out rather than answered, and how they reach the client.

use std::sync::{Arc, Weak};

use rehearsal_core::answer::{Answer, ChangeNotice, IncomingRequest, InputRequest, Surface};
use rehearsal_core::exchange::Channel;
use rehearsal_core::message::{Method, Reply};
use rehearsal_core::protocol::{Era, LogLevel};
use rehearsal_wire::BoxFuture;
use serde_json::Value;

use super::active_request::ActiveRequest;
use super::change_broadcast::BroadcastEvent;
use super::connection::ServerConnection;

/// Tools of the server's own. A handler may wait and may use live servers, so it is no [source](rehearsal_core::answer)
/// of a chain.
pub trait Handler: Send + Sync {
    /// What it offers; merged into what the chain offers.
    fn surface(&self) -> Surface;

    /// Whether a request is for this handler.
    fn handles(&self, request: &IncomingRequest) -> bool;

    /// Answers a request. The future is dropped if the client cancels the request.
    fn call<'a>(&'a self, request: RequestHandle<'a>) -> BoxFuture<'a, Answer>;
}

/// A request that is answered by waiting: by a [`Handler`] or by a live server.
#[derive(Clone, Copy, Debug)]
pub struct RequestHandle<'a>(pub(super) &'a ActiveRequest);

impl RequestHandle<'_> {
    /// The request.
    pub fn request(&self) -> &IncomingRequest {
        &self.0.request
    }

    /// Sends a notification while the request is active, if the client requested it. In 2026-07-28 change notices go to
    /// the subscribed clients.
    pub async fn notify(&self, method: Method, params: &Value) {
        let context = &self.0.request.context;
        if method == Method::LOG_MESSAGE {
            if !context.logs.include(LogLevel::from_params(params)) {
                return;
            }
        } else if context.era() == Era::Modern && method != Method::PROGRESS {
            self.0.connection.notify_subscribers(&method, params);
            return;
        }
        self.0.notify(method, params).await;
    }

    /// Requests input from the client, as a server of the handshake era does; `None` if the request needs no answer any
    /// more.
    pub async fn request_input(&self, requests: &[InputRequest]) -> Option<Vec<(String, Result<Value, String>)>> {
        self.0.request_input(requests, None).await.ok()
    }

    /// Whether other clients may share the connection, as over stateless HTTP.
    pub(crate) fn is_shared(&self) -> bool {
        self.0.request.context.era() == Era::Modern && self.0.channel != Channel::MAIN
    }

    /// The connection that the request came on.
    pub(crate) fn connection(&self) -> ConnectionHandle {
        ConnectionHandle(Arc::downgrade(&self.0.connection))
    }
}

impl ServerConnection {
    /// Sends a change notice to the clients of 2026-07-28 that subscribed to it.
    fn notify_subscribers(&self, method: &Method, params: &Value) {
        if let Some(change) = ChangeNotice::from_notification(method, params) {
            self.server.changes.send(BroadcastEvent::Change(change));
        }
    }
}

/// A connection on which messages can be sent that belong to no request.
#[derive(Clone, Debug)]
pub struct ConnectionHandle(Weak<ServerConnection>);

impl ConnectionHandle {
    /// Whether both are the same connection.
    pub(crate) fn is(&self, other: &ConnectionHandle) -> bool {
        Weak::ptr_eq(&self.0, &other.0)
    }

    /// Whether the connection is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.strong_count() == 0
    }

    /// Sends a notification. In 2026-07-28 only change notices can be sent, to the subscribed clients.
    pub(crate) async fn notify(&self, era: Era, method: Method, params: &Value) {
        let Some(connection) = self.0.upgrade() else { return };
        match era {
            Era::Legacy => connection.notify(Channel::MAIN, method, params).await,
            Era::Modern => connection.notify_subscribers(&method, params),
        }
    }

    /// Sends a server request; `None` if the connection closes before the response.
    pub(crate) async fn request_input(&self, request: &InputRequest) -> Option<Reply> {
        let connection = self.0.upgrade()?;
        let input = connection.new_pending_input();
        connection.send(Channel::MAIN, request.request(input.id, None)).await;
        tokio::select! {
            biased;
            reply = input.reply => reply.ok(),
            () = connection.closing() => None,
        }
    }

    /// Discards what the upstream offered, so that it is read again.
    pub(crate) fn discard_surface(&self) {
        if let Some(connection) = self.0.upgrade() {
            connection.state().surface = None;
        }
    }
}
