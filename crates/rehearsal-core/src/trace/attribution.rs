//! Finds the call that a notification or a server request belongs to, and the order of the events of a session.
//!
//! The first rule that applies decides:
//!
//! ```text
//! 1  the stream    it was sent on the stream of that call's own HTTP request
//! 2  its fields    the token of the progress, the id of the request, the related task
//! 3  the time      on a stream that calls share: the last call that began and was still pending
//! ```
//!
//! A server request that is sent while no call is pending, for instance right after the handshake, belongs to no call.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hasher};
use std::num::NonZeroU64;

use super::{Entry, EntryBody, RecordedCall};
use crate::exchange::{Channel, Side};
use crate::message::{Message, Method};
use crate::protocol::meta;

/// Maximum number of events in the window in which the order is found.
pub(super) const WINDOW: usize = 16_384;
/// Maximum number of bytes of the events in the window.
const WINDOW_BYTES: usize = 32 << 20;
/// Maximum distance between the head of a POST and the request in it, in sequence numbers.
const HEADS: u64 = 256;
/// Maximum number of later requests without a response between a request without a response and its related events.
const UNANSWERED: usize = 64;

/// The path of the related task's id in the params of a message.
const RELATED_TASK: [&str; 3] = ["_meta", "io.modelcontextprotocol/related-task", "taskId"];

/// The properties of a call or an entry that decide which call an event belongs to. Its size is fixed, however long the
/// message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventLink {
    /// The position in the session, and in its batch.
    place: (u64, u32),
    /// The position of the response, if there is one.
    end: Option<(u64, u32)>,
    channel: Channel,
    /// The stream that carried the response. Over HTTP+SSE that is never the stream of the request.
    answered_on: Channel,
    kind: LinkKind,
    /// The task that the event refers to, or that the call created.
    task: Option<TextHash>,
}

/// Builds the links of one session, and keeps which subscriptions the server acknowledged, by stream and id.
#[derive(Debug, Default)]
pub struct LinkBuilder {
    acknowledged: HashSet<(Channel, TextHash)>,
}

impl LinkBuilder {
    /// Builds the link of an entry.
    pub fn of_entry(&mut self, entry: &Entry) -> EventLink {
        let link = EventLink::of_entry(entry);
        if let LinkKind::Acknowledged { id: Some(id) } = link.kind {
            self.acknowledged.insert((link.channel, id));
        }
        link
    }

    /// Whether a call is a subscription that the server has acknowledged so far.
    pub fn is_acknowledged(&self, call: &EventLink) -> bool {
        matches!(call.kind, LinkKind::Request { id: Some(id), listens: true, .. } if self.acknowledged.contains(&(call.channel, id)))
    }
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinkKind {
    /// A client's request. A subscription stream for the whole session has no server requests of its own. Since
    /// 2026-07-28 a request without a log level has no log messages.
    Request {
        id: Option<TextHash>,
        token: Option<TextHash>,
        listens: bool,
        logs: bool,
    },
    ServerRequest,
    Progress {
        token: Option<TextHash>,
    },
    Cancelled {
        id: Option<TextHash>,
    },
    Log,
    /// The server acknowledged a subscription.
    Acknowledged {
        id: Option<TextHash>,
    },
    /// Any other notification.
    Notification {
        by: Side,
    },
    /// An HTTP head; the first one on a channel is the head of a POST.
    Http {
        is_head: bool,
    },
    /// An event that belongs to no call.
    Unlinked,
}

/// The hash of an id, a token or a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct TextHash(NonZeroU64);

impl TextHash {
    fn from_text(text: &str) -> TextHash {
        let mut hasher = DefaultHasher::new();
        hasher.write(text.as_bytes());
        TextHash(NonZeroU64::new(hasher.finish()).unwrap_or(NonZeroU64::MAX))
    }
}

/// How strong the evidence is that an event belongs to a call. If several calls have the same evidence, the event
/// belongs to the last of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum LinkStrength {
    None,
    /// The call was pending.
    Open,
    /// The event names the call and was sent on another stream.
    Named,
    Sure,
}

impl EventLink {
    /// Builds the link of a call.
    pub fn of_call(call: &RecordedCall) -> EventLink {
        let RecordedCall { asker, request, response } = call;
        let message = &request.message;
        let (kind, task) = match asker {
            Side::Client => {
                let kind = LinkKind::Request {
                    id: message.as_request().map(|request| TextHash::from_text(&request.id.to_string())),
                    token: param(message, &["_meta", meta::PROGRESS_TOKEN]),
                    listens: message.method() == Some(&Method::SUBSCRIPTIONS_LISTEN),
                    logs: param(message, &["_meta", meta::PROTOCOL_VERSION]).is_none()
                        || param(message, &["_meta", meta::LOG_LEVEL]).is_some(),
                };
                (kind, param(message, &["taskId"]))
            }
            Side::Server => (LinkKind::ServerRequest, param(message, &RELATED_TASK)),
        };
        let end = response.as_ref().map(|answer| (answer.seq, answer.item.unwrap_or(0)));
        let (place, channel) = ((request.seq, request.item.unwrap_or(0)), request.channel);
        let answered_on = response.as_ref().map_or(channel, |answer| answer.channel);
        EventLink { place, end, channel, answered_on, kind, task }
    }

    /// Builds the link of an entry without knowledge of its session.
    pub fn of_entry(entry: &Entry) -> EventLink {
        let task = match &entry.what {
            EntryBody::Message { from: Side::Server, message, .. } => param(message, &RELATED_TASK),
            _ => None,
        };
        let (channel, kind) = match &entry.what {
            EntryBody::Message { from, channel, message, .. } => (*channel, kind(*from, message)),
            EntryBody::Http { from, channel, .. } => (*channel, LinkKind::Http { is_head: *from == Side::Client }),
            EntryBody::Event { channel, .. } | EntryBody::ChannelEnded { channel, .. } => {
                (*channel, LinkKind::Http { is_head: false })
            }
            EntryBody::Stderr { .. } | EntryBody::Piece { .. } | EntryBody::Ended(_) => {
                (Channel::MAIN, LinkKind::Unlinked)
            }
        };
        let place = (entry.seq, entry.item.unwrap_or(0));
        EventLink { place, end: None, channel, answered_on: channel, kind, task }
    }

    /// The sequence number of the event; for a call, that of its request.
    pub fn seq(&self) -> u64 {
        self.place.0
    }

    /// The stream of the event; for a call, that of its request.
    pub fn channel(&self) -> Channel {
        self.channel
    }

    /// The sequence number at which the event was complete. A [`TimelineBuilder`] takes events in this order.
    pub fn completed_at(&self) -> u64 {
        self.end.unwrap_or(self.place).0
    }

    fn is_request(&self) -> bool {
        matches!(self.kind, LinkKind::Request { .. })
    }

    /// Whether an event at this position may still belong to the call.
    fn is_open_at(&self, place: (u64, u32)) -> bool {
        self.end.is_none_or(|end| place < end)
    }

    /// Whether this is the head of the POST that carried a call's request.
    fn is_head_of(&self, call: &EventLink) -> bool {
        self.kind == LinkKind::Http { is_head: true } && self.channel == call.channel
    }

    /// The evidence that this event belongs to a client's call.
    fn strength(&self, call: &EventLink) -> LinkStrength {
        let LinkKind::Request { id, token, listens, logs } = call.kind else { return LinkStrength::None };
        let same = self.channel == call.channel;
        let is_own = same && self.channel != Channel::MAIN;
        // A stream that carries the responses of several calls, as with stdio and HTTP+SSE.
        let is_shared = self.channel == call.answered_on && !is_own;
        // The recording has no end for a call without a response, so its end is unknown.
        let open = if call.end.is_some() && !listens { LinkStrength::Open } else { LinkStrength::None };
        // Several clients may count from 1, each on streams of its own.
        let named = |ours: Option<TextHash>, other| match (ours.is_some() && ours == other, same) {
            (true, true) => LinkStrength::Sure,
            (true, false) => LinkStrength::Named,
            (false, _) => LinkStrength::None,
        };
        match self.kind {
            LinkKind::Progress { token: other } => named(token, other),
            LinkKind::Cancelled { id: other } => named(id, other),
            LinkKind::Acknowledged { id: other } if listens => named(id, other),
            LinkKind::ServerRequest | LinkKind::Log | LinkKind::Notification { .. } | LinkKind::Http { .. }
                if is_own =>
            {
                LinkStrength::Sure
            }
            LinkKind::ServerRequest | LinkKind::Log if self.task.is_some() => match call.task == self.task {
                true => LinkStrength::Sure,
                false => LinkStrength::None,
            },
            // The GET stream may carry the server requests of any call.
            LinkKind::ServerRequest => open,
            LinkKind::Log if is_shared && logs => open,
            LinkKind::Notification { by: Side::Server } if is_shared => open,
            LinkKind::Log
            | LinkKind::Notification { .. }
            | LinkKind::Http { .. }
            | LinkKind::Request { .. }
            | LinkKind::Acknowledged { .. }
            | LinkKind::Unlinked => LinkStrength::None,
        }
    }
}

fn kind(from: Side, message: &Message) -> LinkKind {
    match (message.method().map(Method::as_str), from) {
        (Some("notifications/progress"), Side::Server) => {
            LinkKind::Progress { token: param(message, &[meta::PROGRESS_TOKEN]) }
        }
        (Some("notifications/cancelled"), Side::Client) => LinkKind::Cancelled { id: param(message, &["requestId"]) },
        (Some("notifications/message"), Side::Server) => LinkKind::Log,
        (Some("notifications/subscriptions/acknowledged"), Side::Server) => {
            LinkKind::Acknowledged { id: param(message, &["_meta", meta::SUBSCRIPTION_ID]) }
        }
        (Some(_), by) => LinkKind::Notification { by },
        (None, _) => LinkKind::Unlinked,
    }
}

/// The hash of a param.
fn param(message: &Message, path: &[&str]) -> Option<TextHash> {
    Some(TextHash::from_text(message.params()?.at(path)?.as_str()))
}

/// The position of an event: its sequence number, its number in the batch, and a number that makes it unique.
type WindowPosition = (u64, u32, u64);

/// Puts the events of one session in order, with bounded memory. It [takes](TimelineBuilder::push) events in the order in which
/// they were [complete](EventLink::completed_at) and returns them in the order in which they began. If more events happened during
/// a call than the window holds, the call is returned at the position of its response.
#[derive(Debug)]
pub struct TimelineBuilder<T> {
    window: BTreeMap<WindowPosition, Item<T>>,
    bytes: usize,
    /// How many events were taken.
    taken: u64,
}

/// An event with its related events, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderedEvent<T> {
    /// The event itself.
    pub event: T,
    /// The related events of a call; empty for other events.
    pub inside: Vec<T>,
}

#[derive(Debug)]
struct Item<T> {
    event: T,
    link: EventLink,
    bytes: usize,
}

impl<T> Default for TimelineBuilder<T> {
    fn default() -> TimelineBuilder<T> {
        TimelineBuilder { window: BTreeMap::new(), bytes: 0, taken: 0 }
    }
}

impl<T> TimelineBuilder<T> {
    /// Whether an event must be returned before the next one is taken.
    pub fn is_full(&self) -> bool {
        self.window.len() >= WINDOW || self.bytes >= WINDOW_BYTES
    }

    /// Takes the next event; `bytes` is its approximate size.
    pub fn push(&mut self, event: T, link: EventLink, bytes: usize) {
        self.taken += 1;
        self.bytes += bytes;
        self.window.insert((link.place.0, link.place.1, self.taken), Item { event, link, bytes });
    }

    /// Returns the first event with its related events.
    pub fn pop(&mut self) -> Option<OrderedEvent<T>> {
        let (first, item) = self.window.first_key_value()?;
        let place = self.call_of_head(*first, &item.link).unwrap_or(*first);
        let Item { event, link, .. } = self.remove(place)?;
        let inside = if link.is_request() { self.inside(place, &link) } else { Vec::new() };
        let inside = inside.into_iter().filter_map(|place| Some(self.remove(place)?.event)).collect();
        Some(OrderedEvent { event, inside })
    }

    /// The call whose request was in the POST with this head.
    fn call_of_head(&self, place: WindowPosition, head: &EventLink) -> Option<WindowPosition> {
        if !matches!(head.kind, LinkKind::Http { is_head: true }) {
            return None;
        }
        let mut near = self.window.range(place..(place.0.saturating_add(HEADS), 0, 0));
        near.find(|(_, item)| item.link.is_request() && head.is_head_of(&item.link)).map(|(place, _)| *place)
    }

    /// The positions of the related events of a call.
    fn inside(&self, place: WindowPosition, call: &EventLink) -> Vec<WindowPosition> {
        let (mut inside, mut others, mut unanswered) = (Vec::new(), Vec::<(WindowPosition, &EventLink)>::new(), 0);
        for (at, Item { link, .. }) in &self.window {
            if !call.is_open_at(link.place) || unanswered > UNANSWERED {
                break;
            }
            while others.last().is_some_and(|(_, other)| !other.is_open_at(link.place)) {
                others.pop();
            }
            if link.is_request() {
                others.push((*at, link));
                unanswered += usize::from(call.end.is_none() && link.end.is_none());
                continue;
            }
            let strength = link.strength(call);
            let is_better = |(other_place, other): &(WindowPosition, &EventLink)| {
                other.is_open_at(link.place) && (link.strength(other), *other_place) > (strength, place)
            };
            // Over HTTP the head of a POST comes before the request in it.
            let is_late = *at > place || link.is_head_of(call);
            if strength > LinkStrength::None && is_late && !others.iter().rev().any(is_better) {
                inside.push(*at);
            }
        }
        inside
    }

    fn remove(&mut self, place: WindowPosition) -> Option<Item<T>> {
        let item = self.window.remove(&place)?;
        self.bytes = self.bytes.saturating_sub(item.bytes);
        Some(item)
    }
}
