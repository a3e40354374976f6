//! Handles a message that a client posts, and builds the HTTP response.

use std::future::poll_fn;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use http::header::{CONTENT_TYPE, HeaderName};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body_util::Either;
use hyper::body::Incoming;
use rehearsal_core::exchange::Channel;
use rehearsal_core::message::{Body, Message, Method, RequestId};
use rehearsal_core::protocol::{Revision, code, header};

use super::channel_writer::{ChannelWriter, DetachOutcome, PostResponse};
use super::classify::{self, PostKind};
use super::event_stream::{self, EventId, EventStream, Frame};
use super::fault::FaultyHead;
use super::options::{ResponseMode, SessionMode};
use super::read_post;
use super::read_post::Reserved;
use super::rejection::{BAD_REQUEST, CloseSocket, HttpReply, Rejection, whole};
use super::session::{ActivityGuard, HttpSession, SessionKind, request_ids};
use super::sessions::SessionRegistry;
use crate::{ConnectionEnd, HttpMeta};

/// Handles a POST to the path of Streamable HTTP.
pub(super) async fn post(
    registry: &Arc<SessionRegistry>,
    parts: Parts,
    body: Incoming,
) -> Result<HttpReply, Rejection> {
    let options = &registry.options;
    let (message, reserved) = read_post::read(&parts.headers, body, registry).await?;
    let head = Arc::new(HttpMeta { status: None, headers: parts.headers });
    let id = only_id(&message);
    let refuse = |rejection: Rejection| rejection.with_id(id.as_ref());
    let (session, revision) = match classify::classify(&message, &head.headers, options)? {
        PostKind::Stateless => (registry.shared(SessionKind::SharedModern).map_err(refuse)?, Revision::LATEST_MODERN),
        PostKind::Handshake { wants } => {
            // A client that accepts no response form must not leave a session behind.
            read_post::choose_form(&head.headers, options.answers)
                .ok_or_else(Rejection::not_acceptable)
                .map_err(refuse)?;
            let session = match options.sessions {
                SessionMode::On => registry.start(SessionKind::Session),
                SessionMode::Off => registry.shared(SessionKind::SharedLegacy),
            };
            (session.map_err(refuse)?, wants.unwrap_or(Revision::WITHOUT_HEADER))
        }
        PostKind::Session => {
            let session = match options.sessions {
                SessionMode::On => named_session(registry, &head.headers),
                SessionMode::Off => registry.shared(SessionKind::SharedLegacy),
            };
            let session = session.map_err(refuse)?;
            let revision = classify::legacy_revision(&head.headers, session.negotiated(), options).map_err(refuse)?;
            // The negotiated version counts, whatever the header contains: the application refuses batches by it, too.
            check_batch(&message, session.negotiated().unwrap_or(revision))?;
            (session, revision)
        }
    };
    deliver(registry, session, revision, (message, reserved), head).await.map_err(refuse)
}

/// Returns the session that a request of the handshake era names.
pub(super) fn named_session(registry: &SessionRegistry, headers: &HeaderMap) -> Result<Arc<HttpSession>, Rejection> {
    let Some(id) = headers.get(header::SESSION_ID) else {
        let message = "Bad Request: Mcp-Session-Id header is required";
        return Err(Rejection::new(StatusCode::BAD_REQUEST, BAD_REQUEST, message));
    };
    let session = id.to_str().ok().and_then(|id| registry.find(id, SessionKind::Session));
    session.ok_or_else(Rejection::no_session)
}

fn check_batch(message: &Message, revision: Revision) -> Result<(), Rejection> {
    let Body::Batch(messages) = message.body() else { return Ok(()) };
    let refuse = |message: String| Err(Rejection::new(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, message));
    if !revision.has_batches() {
        return refuse(format!("Invalid Request: {revision} has no batches"));
    }
    if messages.iter().any(|message| message.method() == Some(&Method::INITIALIZE)) {
        return refuse("Invalid Request: initialize must not be part of a batch".to_owned());
    }
    Ok(())
}

fn only_id(message: &Message) -> Option<RequestId> {
    message.as_request().map(|request| request.id.clone())
}

/// Delivers a message to the application, and builds the HTTP response from the application's messages.
async fn deliver(
    registry: &Arc<SessionRegistry>,
    session: Arc<HttpSession>,
    revision: Revision,
    (message, reserved): (Message, Reserved),
    head: Arc<HttpMeta>,
) -> Result<HttpReply, Rejection> {
    let options = &registry.options;
    let requests = request_ids(&message);
    if requests.is_empty() {
        for (channel, part) in split_by_channel(&session, message) {
            session.deliver(channel, part, head.clone()).await.map_err(|_| connection_ended(&session))?;
        }
        return Ok(whole(StatusCode::ACCEPTED, Bytes::new()));
    }
    let answers = read_post::choose_form(&head.headers, options.answers).ok_or_else(Rejection::not_acceptable)?;
    let permit = registry.reserve_stream()?;
    let (theirs, message) = split_batch(message);
    for answer in theirs {
        let channel = session.channel_of(&answer);
        session.deliver(channel, answer, head.clone()).await.map_err(|_| connection_ended(&session))?;
    }
    let is_batch = matches!(message.body(), Body::Batch(_));
    let begins_session = session.kind == SessionKind::Session && message.method() == Some(&Method::INITIALIZE);
    let mut waiting = WaitingPost::new(&session, session.open(requests, answers));
    let writer = waiting.writer.clone();
    session.deliver(writer.channel, message, head).await.map_err(|_| connection_ended(&session))?;
    waiting.is_known = true;
    drop(reserved);

    let first = tokio::select! {
        biased;
        first = poll_fn(|context| writer.poll_post_response(context)) => first,
        // A silent connection looks broken. A stream can send comments to show that it is open.
        () = tokio::time::sleep(options.keep_alive), if answers != ResponseMode::Json => PostResponse::Events(writer.take_headers()),
    };
    let name = |headers: &mut HeaderMap| {
        if begins_session && let Ok(id) = HeaderValue::from_str(&session.id) {
            headers.insert(HeaderName::from_static("mcp-session-id"), id);
        }
    };
    match first {
        PostResponse::Whole(frames, status, mut headers) => {
            waiting.answered();
            session.remove_channel(writer.channel);
            if begins_session && session.negotiated().is_none() {
                // A refused handshake leaves no session behind.
                session.end(ConnectionEnd::Closed);
            } else {
                name(&mut headers);
            }
            let mut answer = whole(status, join_body(frames, is_batch));
            answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            answer.headers_mut().extend(headers);
            Ok(answer)
        }
        PostResponse::Events(mut headers) => {
            name(&mut headers);
            let reader = writer.attach();
            waiting.answered();
            let priming = session.kind == SessionKind::Session && revision.has_priming_event();
            let priming =
                priming.then(|| event_stream::priming(EventId { channel: writer.channel, position: 0 }, options.retry));
            let stream = EventStream::new(session.clone(), priming, options.keep_alive, permit);
            Ok(stream.then(writer, reader).into_reply(headers))
        }
        PostResponse::Faulty(faulty, mut headers) => {
            waiting.answered();
            session.remove_channel(writer.channel);
            if begins_session && session.negotiated().is_none() {
                session.end(ConnectionEnd::Closed);
            } else {
                name(&mut headers);
            }
            let first = (faulty.head == FaultyHead::Resumable).then(|| {
                let id = EventId { channel: writer.channel, position: 0 };
                if revision.has_priming_event() {
                    event_stream::priming(id, options.retry)
                } else {
                    event_stream::id_only_event(id)
                }
            });
            let stream = EventStream::new(session.clone(), None, options.keep_alive, permit);
            let Some(head) = faulty.response(()) else { return Ok(CloseSocket::reply()) };
            let faulty = first.into_iter().fold(faulty, |faulty, first| Box::new(faulty.with_first(first)));
            let mut answer = head.map(|()| Either::Right(stream.with_fault(faulty)));
            answer.headers_mut().extend(headers);
            Ok(answer)
        }
        PostResponse::Ended => {
            waiting.answered();
            session.remove_channel(writer.channel);
            match (session.ending(), answers) {
                (Some(_), _) => Err(connection_ended(&session)),
                (None, ResponseMode::Json) => Ok(whole(StatusCode::OK, Bytes::new())),
                (None, ResponseMode::Auto | ResponseMode::Events) => {
                    Ok(EventStream::new(session.clone(), None, options.keep_alive, permit)
                        .into_reply(writer.take_headers()))
                }
            }
        }
    }
}

/// Splits a message without requests by channel. It stays one message, unless the responses in a batch belong to
/// different channels.
fn split_by_channel(session: &HttpSession, message: Message) -> Vec<(Channel, Message)> {
    let Body::Batch(messages) = message.body() else { return vec![(session.channel_of(&message), message)] };
    let parts: Vec<_> = messages.iter().map(|part| (session.channel_of(part), part.clone())).collect();
    match &parts[..] {
        [(first, _), rest @ ..] if rest.iter().all(|(channel, _)| channel == first) => vec![(*first, message)],
        _ => parts,
    }
}

/// Separates the responses in a batch with requests from the rest. The responses belong to the channels of their server
/// requests. The requests are answered on the channel of the POST.
fn split_batch(message: Message) -> (Vec<Message>, Message) {
    let Body::Batch(messages) = message.body() else { return (Vec::new(), message) };
    let (answers, rest): (Vec<_>, Vec<_>) =
        messages.iter().cloned().partition(|message| message.as_response().is_some());
    if answers.is_empty() {
        return (answers, message);
    }
    let rest = join_array(rest.iter().map(Message::raw));
    (answers, Message::parse(rest))
}

/// Joins messages to a JSON array.
fn join_array<'a>(items: impl Iterator<Item = &'a Bytes>) -> Bytes {
    let mut array = BytesMut::new();
    for (at, item) in items.enumerate() {
        array.put_u8(if at == 0 { b'[' } else { b',' });
        array.put_slice(item);
    }
    array.put_u8(b']');
    array.freeze()
}

/// Builds the refusal for a request whose connection ended.
pub(super) fn connection_ended(session: &HttpSession) -> Rejection {
    match session.kind {
        SessionKind::Session | SessionKind::HttpSse => Rejection::no_session(),
        SessionKind::SharedLegacy | SessionKind::SharedModern => Rejection::closing(),
    }
}

/// Joins the responses to one body; for a batch it is an array.
fn join_body(frames: Vec<Frame>, is_batch: bool) -> Bytes {
    match &frames[..] {
        [noise @ .., answer]
            if !noise.is_empty() && noise.iter().all(|frame| frame.kind == event_stream::FrameKind::Noise) =>
        {
            [noise, std::slice::from_ref(answer)].concat().iter().flat_map(|frame| frame.bytes.clone()).collect()
        }
        [frame]
            if !is_batch
                || frame.bytes.trim_ascii_start().starts_with(b"[")
                || frame.kind == event_stream::FrameKind::Raw =>
        {
            frame.bytes.clone()
        }
        frames => join_array(frames.iter().map(|frame| &frame.bytes)),
    }
}

/// A POST that waits for its response. If it is dropped before that, the client has disconnected.
struct WaitingPost {
    session: Arc<HttpSession>,
    writer: Arc<ChannelWriter>,
    /// True if the application has received the message.
    is_known: bool,
    is_answered: bool,
    _busy: ActivityGuard,
}

impl WaitingPost {
    fn new(session: &Arc<HttpSession>, writer: Arc<ChannelWriter>) -> WaitingPost {
        WaitingPost {
            session: session.clone(),
            writer,
            is_known: false,
            is_answered: false,
            _busy: ActivityGuard::new(session),
        }
    }

    fn answered(mut self) {
        self.is_answered = true;
    }
}

impl Drop for WaitingPost {
    fn drop(&mut self) {
        if !self.is_answered {
            let left = self.session.abandon_post(&self.writer);
            if self.is_known && left == DetachOutcome::Unfinished {
                self.session.client_disconnected(self.writer.channel);
            }
        }
    }
}
