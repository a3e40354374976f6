//! GET and DELETE of the handshake era: the GET stream, and the end of a session.

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use rehearsal_core::exchange::Channel;
use rehearsal_core::protocol::header;

use super::event_stream::{self, EventId, EventStream};
use super::options::SessionMode;
use super::post::named_session;
use super::rejection::{BAD_REQUEST, HttpReply, Rejection, whole};
use super::session::HttpSession;
use super::sessions::SessionRegistry;
use super::{classify, read_post};
use crate::ConnectionEnd;

/// Opens the GET stream of a session, or resumes a broken stream.
pub(super) fn get(registry: &Arc<SessionRegistry>, parts: &Parts) -> Result<HttpReply, Rejection> {
    let options = &registry.options;
    let session = session(registry, &parts.headers)?;
    if !read_post::accepts_events(&parts.headers) {
        let message = "Not Acceptable: the client must accept text/event-stream";
        return Err(Rejection::new(StatusCode::NOT_ACCEPTABLE, BAD_REQUEST, message));
    }
    let revision = classify::legacy_revision(&parts.headers, session.negotiated(), options)?;
    let permit = registry.reserve_stream()?;
    if let Some(last) = parts.headers.get(header::LAST_EVENT_ID) {
        let last = last.to_str().ok().and_then(|last| last.parse().ok()).ok_or_else(not_kept)?;
        let stream = |missed: Vec<(EventId, Bytes)>| {
            let missed = missed.into_iter().map(|(id, message)| event_stream::message(Some(id), message));
            EventStream::new(session.clone(), missed, options.keep_alive, permit)
        };
        return match session.resume(last) {
            Some((writer, resumed)) => {
                let reader = resumed.reader;
                Ok(stream(resumed.missed).then(writer, reader).into_reply(HeaderMap::new()))
            }
            None => Ok(stream(session.replay(last).ok_or_else(not_kept)?).into_reply(HeaderMap::new())),
        };
    }
    let writer = session.writer(Channel::MAIN).ok_or_else(Rejection::no_session)?;
    // The TypeScript and Python SDKs do the same. With two streams the client could not know which one carries
    // messages.
    let reader = writer.attach_get_stream().ok_or_else(|| {
        let message = "Conflict: the session has a stream already; Last-Event-ID would replace it";
        Rejection::new(StatusCode::CONFLICT, BAD_REQUEST, message)
    })?;
    let id = EventId { channel: Channel::MAIN, position: writer.written() };
    let priming = revision.has_priming_event().then(|| event_stream::priming(id, options.retry));
    let stream = EventStream::new(session.clone(), priming, options.keep_alive, permit);
    Ok(stream.then(writer, reader).into_reply(HeaderMap::new()))
}

/// Ends a session.
pub(super) fn delete(registry: &Arc<SessionRegistry>, parts: &Parts) -> Result<HttpReply, Rejection> {
    let session = session(registry, &parts.headers)?;
    classify::legacy_revision(&parts.headers, session.negotiated(), &registry.options)?;
    session.end(ConnectionEnd::PeerClosed);
    Ok(whole(StatusCode::OK, Bytes::new()))
}

fn session(registry: &SessionRegistry, headers: &HeaderMap) -> Result<Arc<HttpSession>, Rejection> {
    let options = &registry.options;
    let is_modern = options.serves_modern() && classify::version_header(headers).is_some_and(classify::is_modern);
    if is_modern || !options.serves_legacy() || options.sessions == SessionMode::Off {
        return Err(Rejection::method("POST"));
    }
    named_session(registry, headers)
}

fn not_kept() -> Rejection {
    let message = "Bad Request: the events since Last-Event-ID are unknown or no longer kept";
    Rejection::new(StatusCode::BAD_REQUEST, BAD_REQUEST, message)
}
