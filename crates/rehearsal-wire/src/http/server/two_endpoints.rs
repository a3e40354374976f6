//! HTTP+SSE of 2024-11-05: a stream to listen to, and a second address to post to.

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use hyper::body::Incoming;
use rehearsal_core::exchange::Channel;
use rehearsal_core::message::Body;
use rehearsal_core::protocol::code;

use super::accept;
use super::event_stream::EventStream;
use super::frame;
use super::intake;
use super::misbehave;
use super::post::gone;
use super::refusal::{Answer, BAD_REQUEST, Refusal, whole};
use super::registry::Registry;
use super::session::Kind;
use crate::HttpHead;

/// Opens a conversation: the stream first says where to post.
pub(super) fn listen(registry: &Arc<Registry>, parts: &Parts) -> Result<Answer, Refusal> {
    let options = &registry.options;
    if !accept::takes_events(&parts.headers) {
        let message = "Not Acceptable: the client must accept text/event-stream";
        return Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, BAD_REQUEST, message));
    }
    let permit = registry.stream()?;
    let session = registry.begin(Kind::TwoEndpoints)?;
    let outlet = session.outlet(Channel::MAIN).ok_or_else(Refusal::closing)?;
    let reader = outlet.attach();
    let endpoint = frame::endpoint(&format!("{}?sessionId={}", options.message_path, session.id));
    let stream = EventStream::of(session, [endpoint], options.keep_alive, permit);
    Ok(stream.then(outlet, reader).answer(HeaderMap::new()))
}

/// Takes a message for a conversation that is open.
pub(super) async fn post(registry: &Arc<Registry>, parts: Parts, body: Incoming) -> Result<Answer, Refusal> {
    let fields = parts.uri.query().unwrap_or_default().split('&');
    let id = fields.filter_map(|field| field.split_once('=')).find(|(name, _)| *name == "sessionId").map(|(_, id)| id);
    let Some(id) = id else {
        let message = "Bad Request: the address has no sessionId";
        return Err(Refusal::new(StatusCode::BAD_REQUEST, BAD_REQUEST, message));
    };
    let session = registry.find(id, Kind::TwoEndpoints).ok_or_else(Refusal::no_session)?;
    let message = intake::read(&parts.headers, body, &registry.options.limits).await?;
    if matches!(message.body(), Body::Batch(_)) {
        let message = "Invalid Request: 2024-11-05 has no batches over HTTP+SSE";
        return Err(Refusal::new(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, message));
    }
    let head = Arc::new(HttpHead { status: None, headers: parts.headers });
    let request = message.as_request().map(|request| request.id.clone());
    let held = registry.options.hold_posts.zip(request).map(|(time, id)| (time, session.held.hold(id)));
    session.deliver(Channel::MAIN, message, head).await.map_err(|_| gone(&session))?;
    if let Some((time, refused)) = held
        && let Ok(Ok(refused)) = tokio::time::timeout(time, refused).await
    {
        let (status, headers, body) = misbehave::status(refused, false);
        let mut answer = whole(status, body);
        answer.headers_mut().extend(headers);
        return Ok(answer);
    }
    Ok(whole(StatusCode::ACCEPTED, Bytes::new()))
}
