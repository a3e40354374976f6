//! The digest of a session while it is indexed: the place of each message, without its content.

use std::iter;

use rehearsal_core::exchange::Side;
use rehearsal_core::message::{Message, Method, Notification, Reply};
use rehearsal_core::protocol::{Era, Revision, code, meta};
use rehearsal_core::trace::{
    CallStatus, Entry, EntryBody, EventLink, FileSpan, LinkBuilder, OrderedEvent, RecordedCall, RequestIdentity,
    RequestKey, TimelineBuilder, subject,
};
use serde_json::{Value, json};

use super::builder::RoundIdentity;
use super::lookup::subject_key;
use super::records::EventRecord;

/// The number of digests whose memory is freed together.
const CHUNK: usize = 4096;

/// The digest of one call or entry.
#[derive(Debug)]
pub(super) struct EventDigest {
    pub(super) link: EventLink,
    pub(super) span: FileSpan,
    pub(super) what: DigestKind,
}

/// What a replay does with a call or entry.
#[derive(Debug)]
pub(super) enum DigestKind {
    /// A client request.
    Request(RequestDigest),
    /// A notification or a request of the server.
    Event { is_call: bool },
    /// The head of an answer over HTTP.
    Head { is_stream: bool },
    /// HTTP refused a request because of its session or its version.
    Refused,
    /// How many milliseconds clients should wait before they reconnect to a closed stream.
    Retry(u64),
    /// A stream ended.
    Closed,
}

/// The digest of a client request.
#[derive(Debug)]
pub(super) struct RequestDigest {
    pub(super) key: RequestKey,
    /// The key of all requests about the same tool, prompt or resource.
    pub(super) about: RequestKey,
    pub(super) answered: AnsweredOn,
    /// Whether the answer was an error.
    pub(super) is_error: bool,
    /// The links to other input rounds, if there are any.
    pub(super) rounds: Option<Box<RoundLinks>>,
    /// The version in its `_meta`, since 2026-07-28.
    pub(super) claimed: Option<Revision>,
    /// The version that an `initialize` agreed on, before 2026-07-28.
    pub(super) agreed: Option<Revision>,
    /// Whether it was refused for what its client claimed or sent as headers.
    pub(super) refused: Option<VersionRefusal>,
    /// Whether the client library sends it, as with handshakes and lists, and not the application.
    pub(super) is_protocol: bool,
    /// Whether it is a `subscriptions/listen`.
    pub(super) listens: bool,
    /// Whether it is a ping, which each client sends at its own times.
    pub(super) pings: bool,
}

/// How a request was refused for what its client claimed or sent as headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VersionRefusal {
    /// For a reason that the replay checks itself.
    Itself,
    /// For a version that exists, but that this server refused. In another one it may have answered the same request.
    Version,
}

/// The stream on which a request was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnsweredOn {
    Never,
    OnItsStream,
    /// On another stream, after its client reconnected.
    Elsewhere,
}

/// How a request continues an exchange, or its response leaves it open.
#[derive(Debug)]
pub(super) struct RoundLinks {
    /// The identity of the round that it continues.
    pub(super) from: Option<RoundIdentity>,
    /// The identity of the next round.
    pub(super) to: Option<RoundIdentity>,
}

impl EventDigest {
    /// Builds the digest of a call; `None` for one that cannot be sent again.
    pub(super) fn of_call(call: &RecordedCall, span: FileSpan, likeness: &RequestIdentity) -> Option<EventDigest> {
        let what = match call.asker {
            Side::Client => DigestKind::Request(RequestDigest::new(call, likeness)?),
            Side::Server => DigestKind::Event { is_call: true },
        };
        Some(EventDigest { link: EventLink::of_call(call), span, what })
    }

    /// Builds the digest of an entry; `None` for an entry that a replay does not need.
    pub(super) fn of_entry(entry: &Entry, span: FileSpan, links: &mut LinkBuilder) -> Option<EventDigest> {
        let link = links.of_entry(entry);
        let what = match &entry.what {
            EntryBody::Message { from, message, .. } if is_replayed(*from, message) => {
                DigestKind::Event { is_call: false }
            }
            EntryBody::Http { from: Side::Server, head, .. } if head.status == Some(200) => {
                let kind = head.headers.get("content-type")?;
                DigestKind::Head { is_stream: kind.starts_with("text/event-stream") }
            }
            EntryBody::Http { from: Side::Server, head, .. } if matches!(head.status, Some(400 | 404)) => {
                DigestKind::Refused
            }
            EntryBody::Event { retry: Some(retry), .. } => DigestKind::Retry(*retry),
            EntryBody::ChannelEnded { .. } => DigestKind::Closed,
            EntryBody::Message { .. }
            | EntryBody::Http { .. }
            | EntryBody::Event { .. }
            | EntryBody::Stderr { .. }
            | EntryBody::Piece { .. }
            | EntryBody::Ended(_) => return None,
        };
        Some(EventDigest { link, span, what })
    }

    /// The record of a message that the server sent and a replay sends again.
    pub(super) fn event_record(&self) -> Option<EventRecord> {
        let DigestKind::Event { is_call } = self.what else { return None };
        Some(self.record(is_call))
    }

    /// Whether the request is answered by a stream of its own. Over HTTP+SSE it never is: what ends there early is only the
    /// reply to the POST.
    pub(super) fn opens_stream(&self, call: &EventDigest) -> bool {
        matches!(self.what, DigestKind::Head { is_stream: true }) && self.link.channel() == call.link.channel()
    }

    /// The end of the stream of a request that was answered elsewhere.
    pub(super) fn closed_early(&self, call: &EventDigest, request: &RequestDigest) -> Option<EventRecord> {
        let is_its_own = matches!(self.what, DigestKind::Closed) && self.link.channel() == call.link.channel();
        let is_early = request.answered == AnsweredOn::Elsewhere && self.link.seq() < call.link.completed_at();
        (is_its_own && is_early).then(|| self.record(false))
    }

    fn record(&self, is_call: bool) -> EventRecord {
        let (span, seq) = (self.span, self.link.seq());
        EventRecord { span, seq, is_call, is_late: false }
    }
}

impl RequestDigest {
    fn new(call: &RecordedCall, likeness: &RequestIdentity) -> Option<RequestDigest> {
        let message = &call.request.message;
        let method = message.method()?;
        let params = message.params().and_then(|params| params.value().ok());
        let params = params.as_ref();
        let agreed = (*method == Method::INITIALIZE).then(|| answered(call, "protocolVersion")).flatten();
        Some(RequestDigest {
            key: likeness.key(method, params),
            about: subject_key(method, subject(message).as_deref()),
            answered: match &call.response {
                None => AnsweredOn::Never,
                Some(answer) if answer.channel == call.channel() => AnsweredOn::OnItsStream,
                Some(_) => AnsweredOn::Elsewhere,
            },
            is_error: matches!(reply(call), Some(Reply::Error(_))),
            rounds: RoundLinks::from_call(call, params).map(Box::new),
            claimed: claimed(params),
            agreed: agreed.and_then(|version| version.as_str()?.parse().ok()),
            refused: VersionRefusal::from_call(call, params),
            is_protocol: is_protocol(method),
            listens: *method == Method::SUBSCRIPTIONS_LISTEN,
            pings: *method == Method::PING,
        })
    }
}

impl RoundLinks {
    fn from_call(call: &RecordedCall, params: Option<&Value>) -> Option<RoundLinks> {
        let param = |key: &str| params.and_then(|params| params.get(key));
        let (state, answers) = (param("requestState"), param("inputResponses"));
        let (continues, is_open) =
            (state.is_some() || answers.is_some(), CallStatus::from_call(call) == CallStatus::InputRequired);
        if !continues && !is_open {
            return None;
        }
        let client = RequestKey::from_view(&json!(claims(params).and_then(|claims| claims.get(meta::CLIENT_INFO))));
        let identity = |state: Option<&Value>, named: Option<&Value>| {
            let named = named.and_then(Value::as_object).into_iter().flatten();
            let mut names: Vec<&String> = named.map(|(name, _)| name).collect();
            names.sort_unstable();
            RoundIdentity {
                state: RequestKey::from_view(&json!(state)),
                names: RequestKey::from_view(&json!(names)),
                client,
            }
        };
        let member = |key: &str| answered(call, key);
        Some(RoundLinks {
            from: continues.then(|| identity(state, answers)),
            to: is_open.then(|| identity(member("requestState").as_ref(), member("inputRequests").as_ref())),
        })
    }
}

/// The recorded reply to a request.
fn reply(call: &RecordedCall) -> Option<&Reply> {
    Some(&call.response.as_ref()?.message.as_response()?.reply)
}

/// A member of the result.
fn answered(call: &RecordedCall, key: &str) -> Option<Value> {
    let Some(Reply::Result(result)) = reply(call) else { return None };
    result.field(key)?.value().ok()
}

fn claims(params: Option<&Value>) -> Option<&Value> {
    params?.get("_meta")
}

/// The version in the `_meta` of a request, if it is a known one.
fn claimed(params: Option<&Value>) -> Option<Revision> {
    claims(params)?.get(meta::PROTOCOL_VERSION)?.as_str()?.parse().ok()
}

impl VersionRefusal {
    fn from_call(call: &RecordedCall, params: Option<&Value>) -> Option<VersionRefusal> {
        let Some(Reply::Error(error)) = reply(call) else { return None };
        let has = |key: &str| claims(params).is_some_and(|claims| claims.get(key).is_some());
        let half = has(meta::PROTOCOL_VERSION) != has(meta::CLIENT_CAPABILITIES);
        let opens = call.request.message.method() == Some(&Method::DISCOVER);
        let is_modern = claimed(params).is_some_and(|claimed| claimed.era() == Era::Modern);
        match error.code {
            code::HEADER_MISMATCH => Some(VersionRefusal::Itself),
            // A refused handshake is replayed like any other error.
            code::UNSUPPORTED_VERSION if is_modern && opens => None,
            code::UNSUPPORTED_VERSION if is_modern && !half => Some(VersionRefusal::Version),
            // Before 2026-07-28 no request contains its version.
            code::UNSUPPORTED_VERSION => has(meta::PROTOCOL_VERSION).then_some(VersionRefusal::Itself),
            code::INVALID_PARAMS => half.then_some(VersionRefusal::Itself),
            _ => None,
        }
    }
}

/// Whether the client library sends this method, so that it depends on the version and the client whether it is sent.
fn is_protocol(method: &Method) -> bool {
    let name = method.as_str();
    matches!(
        name,
        "initialize"
            | "ping"
            | "server/discover"
            | "subscriptions/listen"
            | "resources/subscribe"
            | "resources/unsubscribe"
            | "tasks/list"
            | "tasks/cancel"
            | "logging/setLevel"
            | "tools/list"
            | "prompts/list"
            | "resources/list"
            | "resources/templates/list"
    )
}

fn is_replayed(from: Side, message: &Message) -> bool {
    // A replay acknowledges a subscription with the filter of its own client.
    let is_sent = |notification: &Notification| notification.method != Method::SUBSCRIPTION_ACKNOWLEDGED;
    from == Side::Server && message.as_notification().is_some_and(is_sent)
}

/// The digests of one session.
#[derive(Debug, Default)]
pub(super) struct SessionDigests {
    pub(super) calls: DigestQueue,
    pub(super) entries: DigestQueue,
}

/// Digests in their order. Their memory is freed while they are read.
#[derive(Debug, Default)]
pub(super) struct DigestQueue(Vec<Vec<EventDigest>>);

impl SessionDigests {
    /// The digests in recorded order, each related event inside its call.
    pub(super) fn in_order(self) -> impl Iterator<Item = OrderedEvent<EventDigest>> {
        let mut calls = self.calls.0.into_iter().flatten().peekable();
        let mut entries = self.entries.0.into_iter().flatten().peekable();
        let mut timeline = TimelineBuilder::default();
        iter::from_fn(move || {
            while !timeline.is_full() {
                let is_call = match (calls.peek(), entries.peek()) {
                    (Some(call), Some(entry)) => call.link.completed_at() < entry.link.completed_at(),
                    (call, _) => call.is_some(),
                };
                let Some(next) = (if is_call { calls.next() } else { entries.next() }) else { break };
                let link = next.link;
                timeline.push(next, link, 0);
            }
            timeline.pop()
        })
    }
}

impl Extend<EventDigest> for DigestQueue {
    fn extend<I: IntoIterator<Item = EventDigest>>(&mut self, digests: I) {
        for digest in digests {
            match self.0.last_mut().filter(|chunk| chunk.len() < CHUNK) {
                Some(chunk) => chunk.push(digest),
                None => {
                    let mut chunk = Vec::with_capacity(if self.0.is_empty() { 1 } else { CHUNK });
                    chunk.push(digest);
                    self.0.push(chunk);
                }
            }
        }
    }
}
