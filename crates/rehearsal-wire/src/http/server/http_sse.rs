//! HTTP+SSE of 2024-11-05: a stream for the server's messages, and a second path for the client's.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use hyper::body::Incoming;
use rehearsal_core::exchange::Channel;
use rehearsal_core::message::{Body, Message, RequestId};
use rehearsal_core::protocol::code;
use rehearsal_core::transport_fault::HttpRefusal;
use tokio::sync::oneshot;

use super::event_stream::EventStream;
use super::post::connection_ended;
use super::rejection::{BAD_REQUEST, HttpReply, Rejection, whole};
use super::session::SessionKind;
use super::sessions::SessionRegistry;
use super::{event_stream, fault, read_post};
use crate::HttpMeta;

/// Opens a connection: the first event of the stream is the path to post to.
pub(super) fn open_stream(registry: &Arc<SessionRegistry>, parts: &Parts) -> Result<HttpReply, Rejection> {
    let options = &registry.options;
    if !read_post::accepts_events(&parts.headers) {
        let message = "Not Acceptable: the client must accept text/event-stream";
        return Err(Rejection::new(StatusCode::NOT_ACCEPTABLE, BAD_REQUEST, message));
    }
    let permit = registry.reserve_stream()?;
    let session = registry.start(SessionKind::HttpSse)?;
    let writer = session.writer(Channel::MAIN).ok_or_else(Rejection::closing)?;
    let reader = writer.attach();
    let endpoint = event_stream::endpoint(&format!("{}?sessionId={}", options.message_path, session.id));
    let stream = EventStream::new(session, [endpoint], options.keep_alive, permit);
    Ok(stream.then(writer, reader).into_reply(HeaderMap::new()))
}

/// Receives a message for an open connection.
pub(super) async fn post(
    registry: &Arc<SessionRegistry>,
    parts: Parts,
    body: Incoming,
) -> Result<HttpReply, Rejection> {
    let fields = parts.uri.query().unwrap_or_default().split('&');
    let id = fields.filter_map(|field| field.split_once('=')).find(|(name, _)| *name == "sessionId").map(|(_, id)| id);
    let Some(id) = id else {
        let message = "Bad Request: the address has no sessionId";
        return Err(Rejection::new(StatusCode::BAD_REQUEST, BAD_REQUEST, message));
    };
    let session = registry.find(id, SessionKind::HttpSse).ok_or_else(Rejection::no_session)?;
    let (message, reserved) = read_post::read(&parts.headers, body, registry).await?;
    if matches!(message.body(), Body::Batch(_)) {
        let message = "Invalid Request: 2024-11-05 has no batches over HTTP+SSE";
        return Err(Rejection::new(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, message));
    }
    let head = Arc::new(HttpMeta { status: None, headers: parts.headers });
    let request = message.as_request().map(|request| request.id.clone());
    let pending_posts =
        registry.options.hold_posts.zip(request).map(|(time, id)| (time, session.pending_posts.hold(id)));
    session.deliver(Channel::MAIN, message, head).await.map_err(|_| connection_ended(&session))?;
    drop(reserved);
    if let Some((time, refused)) = pending_posts
        && let Ok(Ok(refused)) = tokio::time::timeout(time, refused).await
    {
        let (status, headers, body) = fault::status(refused, false);
        let mut answer = whole(status, body);
        answer.headers_mut().extend(headers);
        return Ok(answer);
    }
    Ok(whole(StatusCode::ACCEPTED, Bytes::new()))
}

/// The POSTs that are not acknowledged yet, by request id.
#[derive(Debug, Default)]
pub(super) struct PendingPosts(Mutex<HashMap<RequestId, oneshot::Sender<HttpRefusal>>>);

impl PendingPosts {
    /// Adds a POST. The receiver gets its refusal, or an error if it will not be refused.
    pub(super) fn hold(&self, id: RequestId) -> oneshot::Receiver<HttpRefusal> {
        let (sender, receiver) = oneshot::channel();
        self.posts().insert(id, sender);
        receiver
    }

    /// Acknowledges all POSTs, because a response may depend on the client's next POST.
    pub(super) fn release(&self) {
        self.posts().clear();
    }

    /// Refuses the POST of a request. Returns the refusal if that POST is not waiting.
    pub(super) fn refuse(&self, refused: HttpRefusal) -> Option<HttpRefusal> {
        let reply = Message::parse(refused.fallback_error.clone());
        let id = reply.as_response().and_then(|response| response.id.clone());
        match id.and_then(|id| self.posts().remove(&id)) {
            Some(post) => post.send(refused).err(),
            None => Some(refused),
        }
    }

    fn posts(&self) -> MutexGuard<'_, HashMap<RequestId, oneshot::Sender<HttpRefusal>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
