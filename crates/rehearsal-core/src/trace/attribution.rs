//! Which call a notification or a server request belongs to, and the order in which everything happened.
//!
//! The first that holds decides:
//!
//! ```text
//! 1  the stream    it came on the stream of an HTTP request of its own
//! 2  what it names the token of the progress, the id of the request, the related task
//! 3  the time      on a stream that calls share: the call that began last and was open
//! ```
//!
//! A server request while no call is open, such as one right after the handshake, belongs to no call.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hasher};
use std::num::NonZeroU64;

use super::{Call, Entry, What};
use crate::exchange::{Channel, Side};
use crate::message::{Message, Method};
use crate::protocol::meta;

/// How much is looked at to find the order.
pub(super) const WINDOW: usize = 16_384;
/// How many bytes that may be.
const WINDOW_BYTES: usize = 32 << 20;
/// How far before a request the head of its POST may be.
const HEADS: u64 = 256;
/// How many later requests without a response may come between one without a response and what belongs to it.
const UNANSWERED: usize = 64;

/// Where a message says to which task it belongs.
const RELATED_TASK: [&str; 3] = ["_meta", "io.modelcontextprotocol/related-task", "taskId"];

/// What must be known of a call or an entry to find out what belongs to it, or to what it belongs: a few numbers, however
/// long it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tie {
    /// Its place in the session, and in its batch.
    place: (u64, u32),
    /// The place of its answer, where it has one.
    end: Option<(u64, u32)>,
    channel: Channel,
    /// The stream that it was answered on; over HTTP+SSE that is never its own.
    answered_on: Channel,
    kind: Kind,
    /// The task that it is about, or names as its own.
    task: Option<Mark>,
}

/// Makes the ties of one session, and notes which subscriptions the server acknowledged, by stream and id.
#[derive(Debug, Default)]
pub struct Ties {
    acknowledged: HashSet<(Channel, Mark)>,
}

impl Ties {
    /// Makes the tie of an entry.
    pub fn of_entry(&mut self, entry: &Entry) -> Tie {
        let tie = Tie::of_entry(entry);
        if let Kind::Acknowledged { id: Some(id) } = tie.kind {
            self.acknowledged.insert((tie.channel, id));
        }
        tie
    }

    /// Whether a call is a subscription that was acknowledged, by what was seen so far.
    pub fn lets_in(&self, call: &Tie) -> bool {
        matches!(call.kind, Kind::Request { id: Some(id), listens: true, .. } if self.acknowledged.contains(&(call.channel, id)))
    }
}

/// What kind of event it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A client's request. One that listens for the whole session has no server requests of its own, and since 2026-07-28
    /// one that sets no log level has no log messages.
    Request {
        id: Option<Mark>,
        token: Option<Mark>,
        listens: bool,
        logs: bool,
    },
    ServerRequest,
    Progress {
        token: Option<Mark>,
    },
    Cancelled {
        id: Option<Mark>,
    },
    Log,
    /// The server accepted a subscription.
    Acknowledged {
        id: Option<Mark>,
    },
    /// Any other notification.
    Notification {
        by: Side,
    },
    /// HTTP around messages; its first is the head of a POST.
    Http {
        is_head: bool,
    },
    /// It belongs to nothing.
    Free,
}

/// The hash of an id, a token or a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Mark(NonZeroU64);

impl Mark {
    fn of(text: &str) -> Mark {
        let mut hasher = DefaultHasher::new();
        hasher.write(text.as_bytes());
        Mark(NonZeroU64::new(hasher.finish()).unwrap_or(NonZeroU64::MAX))
    }
}

/// How sure it is that an event belongs to a call; of several calls with the same one, the event belongs to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Bond {
    None,
    /// The call was open.
    Open,
    /// It names the call, on another stream.
    Named,
    Sure,
}

impl Tie {
    /// Makes the tie of a call.
    pub fn of_call(call: &Call) -> Tie {
        let Call { asker, request, response } = call;
        let message = &request.message;
        let (kind, task) = match asker {
            Side::Client => {
                let kind = Kind::Request {
                    id: message.as_request().map(|request| Mark::of(&request.id.to_string())),
                    token: param(message, &["_meta", meta::PROGRESS_TOKEN]),
                    listens: message.method() == Some(&Method::SUBSCRIPTIONS_LISTEN),
                    logs: param(message, &["_meta", meta::PROTOCOL_VERSION]).is_none()
                        || param(message, &["_meta", meta::LOG_LEVEL]).is_some(),
                };
                (kind, param(message, &["taskId"]))
            }
            Side::Server => (Kind::ServerRequest, param(message, &RELATED_TASK)),
        };
        let end = response.as_ref().map(|answer| (answer.seq, answer.item.unwrap_or(0)));
        let (place, channel) = ((request.seq, request.item.unwrap_or(0)), request.channel);
        let answered_on = response.as_ref().map_or(channel, |answer| answer.channel);
        Tie { place, end, channel, answered_on, kind, task }
    }

    /// Makes the tie of an entry.
    pub fn of_entry(entry: &Entry) -> Tie {
        let task = match &entry.what {
            What::Message { from: Side::Server, message, .. } => param(message, &RELATED_TASK),
            _ => None,
        };
        let (channel, kind) = match &entry.what {
            What::Message { from, channel, message, .. } => (*channel, kind(*from, message)),
            What::Http { from, channel, .. } => (*channel, Kind::Http { is_head: *from == Side::Client }),
            What::Event { channel, .. } | What::ChannelEnded { channel, .. } => {
                (*channel, Kind::Http { is_head: false })
            }
            What::Stderr { .. } | What::Piece { .. } | What::Ended(_) => (Channel::MAIN, Kind::Free),
        };
        let place = (entry.seq, entry.item.unwrap_or(0));
        Tie { place, end: None, channel, answered_on: channel, kind, task }
    }

    /// Its place in the session; that of the request, for a call.
    pub fn seq(&self) -> u64 {
        self.place.0
    }

    /// The stream that it was on; that of the request, for a call.
    pub fn channel(&self) -> Channel {
        self.channel
    }

    /// The place at which it was settled, in whose order a [`Weave`] takes events.
    pub fn settled(&self) -> u64 {
        self.end.unwrap_or(self.place).0
    }

    fn is_request(&self) -> bool {
        matches!(self.kind, Kind::Request { .. })
    }

    /// Whether a call may still have something that happened at a place.
    fn is_open_at(&self, place: (u64, u32)) -> bool {
        self.end.is_none_or(|end| place < end)
    }

    /// Whether this is the head of the POST that a call came in.
    fn is_head_of(&self, call: &Tie) -> bool {
        self.kind == Kind::Http { is_head: true } && self.channel == call.channel
    }

    /// How this event is bound to a client's call.
    fn bond(&self, call: &Tie) -> Bond {
        let Kind::Request { id, token, listens, logs } = call.kind else { return Bond::None };
        let same = self.channel == call.channel;
        let is_own = same && self.channel != Channel::MAIN;
        // A stream that several calls are answered on, as over stdio and HTTP+SSE.
        let is_shared = self.channel == call.answered_on && !is_own;
        // Nobody knows how long a call without an answer was open.
        let open = if call.end.is_some() && !listens { Bond::Open } else { Bond::None };
        // Several clients may count from 1, each on streams of its own.
        let named = |ours: Option<Mark>, other| match (ours.is_some() && ours == other, same) {
            (true, true) => Bond::Sure,
            (true, false) => Bond::Named,
            (false, _) => Bond::None,
        };
        match self.kind {
            Kind::Progress { token: other } => named(token, other),
            Kind::Cancelled { id: other } => named(id, other),
            Kind::Acknowledged { id: other } if listens => named(id, other),
            Kind::ServerRequest | Kind::Log | Kind::Notification { .. } | Kind::Http { .. } if is_own => Bond::Sure,
            Kind::ServerRequest | Kind::Log if self.task.is_some() => match call.task == self.task {
                true => Bond::Sure,
                false => Bond::None,
            },
            // The standing stream of HTTP may have server requests of any call.
            Kind::ServerRequest => open,
            Kind::Log if is_shared && logs => open,
            Kind::Notification { by: Side::Server } if is_shared => open,
            Kind::Log
            | Kind::Notification { .. }
            | Kind::Http { .. }
            | Kind::Request { .. }
            | Kind::Acknowledged { .. }
            | Kind::Free => Bond::None,
        }
    }
}

fn kind(from: Side, message: &Message) -> Kind {
    match (message.method().map(Method::as_str), from) {
        (Some("notifications/progress"), Side::Server) => {
            Kind::Progress { token: param(message, &[meta::PROGRESS_TOKEN]) }
        }
        (Some("notifications/cancelled"), Side::Client) => Kind::Cancelled { id: param(message, &["requestId"]) },
        (Some("notifications/message"), Side::Server) => Kind::Log,
        (Some("notifications/subscriptions/acknowledged"), Side::Server) => {
            Kind::Acknowledged { id: param(message, &["_meta", meta::SUBSCRIPTION_ID]) }
        }
        (Some(_), by) => Kind::Notification { by },
        (None, _) => Kind::Free,
    }
}

/// The mark of a param.
fn param(message: &Message, path: &[&str]) -> Option<Mark> {
    Some(Mark::of(message.params()?.at(path)?.as_str()))
}

/// The place of an event: its number, that in its batch, and one that no other event has.
type Place = (u64, u32, u64);

/// Puts the events of one session in order, with bounded memory. It [takes](Weave::take) them in the order in which they
/// were [settled](Tie::settled) and gives them in the order in which they began. A call that took so long that more than
/// the window holds happened meanwhile stands where it was answered.
#[derive(Debug)]
pub struct Weave<T> {
    window: BTreeMap<Place, Item<T>>,
    bytes: usize,
    /// How many events were taken.
    taken: u64,
}

/// An event, and what belongs to it, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Woven<T> {
    /// The event itself.
    pub thing: T,
    /// Nothing, unless it is a call.
    pub inside: Vec<T>,
}

#[derive(Debug)]
struct Item<T> {
    thing: T,
    tie: Tie,
    bytes: usize,
}

impl<T> Default for Weave<T> {
    fn default() -> Weave<T> {
        Weave { window: BTreeMap::new(), bytes: 0, taken: 0 }
    }
}

impl<T> Weave<T> {
    /// Whether it should give something before it takes more.
    pub fn is_full(&self) -> bool {
        self.window.len() >= WINDOW || self.bytes >= WINDOW_BYTES
    }

    /// Takes the next event, which has about so many bytes.
    pub fn take(&mut self, thing: T, tie: Tie, bytes: usize) {
        self.taken += 1;
        self.bytes += bytes;
        self.window.insert((tie.place.0, tie.place.1, self.taken), Item { thing, tie, bytes });
    }

    /// Gives the first event, with what belongs to it.
    pub fn give(&mut self) -> Option<Woven<T>> {
        let (first, item) = self.window.first_key_value()?;
        let place = self.call_of_head(*first, &item.tie).unwrap_or(*first);
        let Item { thing, tie, .. } = self.remove(place)?;
        let inside = if tie.is_request() { self.inside(place, &tie) } else { Vec::new() };
        let inside = inside.into_iter().filter_map(|place| Some(self.remove(place)?.thing)).collect();
        Some(Woven { thing, inside })
    }

    /// The call that came in the POST of a head.
    fn call_of_head(&self, place: Place, head: &Tie) -> Option<Place> {
        if !matches!(head.kind, Kind::Http { is_head: true }) {
            return None;
        }
        let mut near = self.window.range(place..(place.0.saturating_add(HEADS), 0, 0));
        near.find(|(_, item)| item.tie.is_request() && head.is_head_of(&item.tie)).map(|(place, _)| *place)
    }

    /// The places of what belongs to a call that is given.
    fn inside(&self, place: Place, call: &Tie) -> Vec<Place> {
        let (mut inside, mut others, mut unanswered) = (Vec::new(), Vec::<(Place, &Tie)>::new(), 0);
        for (at, Item { tie, .. }) in &self.window {
            if !call.is_open_at(tie.place) || unanswered > UNANSWERED {
                break;
            }
            while others.last().is_some_and(|(_, other)| !other.is_open_at(tie.place)) {
                others.pop();
            }
            if tie.is_request() {
                others.push((*at, tie));
                unanswered += usize::from(call.end.is_none() && tie.end.is_none());
                continue;
            }
            let bond = tie.bond(call);
            let is_better = |(other_place, other): &(Place, &Tie)| {
                other.is_open_at(tie.place) && (tie.bond(other), *other_place) > (bond, place)
            };
            // Over HTTP the head of a POST comes before the request in it.
            let is_late = *at > place || tie.is_head_of(call);
            if bond > Bond::None && is_late && !others.iter().rev().any(is_better) {
                inside.push(*at);
            }
        }
        inside
    }

    fn remove(&mut self, place: Place) -> Option<Item<T>> {
        let item = self.window.remove(&place)?;
        self.bytes = self.bytes.saturating_sub(item.bytes);
        Some(item)
    }
}
