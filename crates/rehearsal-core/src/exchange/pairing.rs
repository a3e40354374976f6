//! Finds for every message the request that it belongs to.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;

use super::{Channel, Exchange, Key, Outcome, Side, Stamped};
use crate::json::RawJson;
use crate::message::{Body, Message, Method, Notification, Reason, RequestId};
use crate::protocol::meta;

/// Pairs the messages of one connection, whatever their order; it never loses one.
///
/// `T` is whatever the caller keeps beside an open request, such as who waits for the answer.
#[derive(Debug)]
pub struct Pairing<T = ()> {
    /// Boxed, so that finding and moving keys touches nothing else.
    open: BTreeMap<Key, Box<Open<T>>>,
    tokens: HashMap<(Side, Bytes), Vec<Key>>,
    cancelled: VecDeque<Key>,
    notifications_limit: usize,
}

#[derive(Debug)]
struct Open<T> {
    request: Stamped,
    notifications: Vec<Stamped>,
    cancelled_at: Option<Duration>,
    token: Option<Bytes>,
    tag: T,
}

/// Where a message went.
#[derive(Debug)]
pub enum Step<T> {
    /// A request: an exchange begins.
    Opened {
        /// Which.
        key: Key,
        /// The one that had the same id and was still open; it ends unanswered.
        displaced: Option<(Exchange, T)>,
    },
    /// A notification that belongs to an open exchange.
    Attached {
        /// Which.
        key: Key,
    },
    /// A cancellation: the exchange stays open for a late answer.
    Cancelled {
        /// Which.
        key: Key,
        /// One that was cancelled long ago and is no longer waited for.
        expired: Option<(Exchange, T)>,
    },
    /// An answer: an exchange ends.
    Settled {
        /// The whole of it.
        exchange: Exchange,
        /// What the caller kept beside it.
        tag: T,
    },
    /// It belongs to no request.
    Loose {
        /// The message.
        message: Stamped,
        /// Why.
        why: Loose,
    },
    /// A batch: each of its messages, in order.
    Batch(Vec<Step<T>>),
}

/// Why a message belongs to no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loose {
    /// A notification about the connection, or one whose request is not known.
    Notification,
    /// An answer that nobody asked for, or a second one.
    UnaskedAnswer,
    /// It could not be understood.
    Garbled,
}

/// How many cancelled requests are remembered in case their answer still comes.
const CANCELLED_LIMIT: usize = 1024;

impl<T> Default for Pairing<T> {
    fn default() -> Self {
        Pairing::new(usize::MAX)
    }
}

impl<T> Pairing<T> {
    /// At most `notifications_limit` notifications are kept in one exchange; further ones come back as loose.
    pub fn new(notifications_limit: usize) -> Pairing<T> {
        let (open, tokens, cancelled) = Default::default();
        Pairing { open, tokens, cancelled, notifications_limit }
    }

    /// How many requests wait for an answer.
    pub fn open_count(&self) -> usize {
        self.open.len()
    }

    /// The caller's own value beside an open exchange.
    pub fn tag_mut(&mut self, key: &Key) -> Option<&mut T> {
        self.open.get_mut(key).map(|open| &mut open.tag)
    }

    /// The request of an open exchange.
    pub fn request(&self, key: &Key) -> Option<&Stamped> {
        self.open.get(key).map(|open| &open.request)
    }

    /// What was last attached to an open exchange.
    pub fn last_notification(&self, key: &Key) -> Option<Message> {
        self.open.get(key)?.notifications.last().map(|stamped| stamped.message.clone())
    }

    /// Begins an exchange with a request whose progress token is already known.
    pub fn open(&mut self, key: Key, request: Stamped, token: Option<&RawJson>, tag: T) -> Option<(Exchange, T)> {
        let displaced = self.remove(&key).map(|open| open.settle(key.clone(), None));
        let token = token.map(|token| token.bytes().clone());
        if let Some(token) = &token {
            self.tokens.entry((key.asker, token.clone())).or_default().push(key.clone());
        }
        let open = Open { request, notifications: Vec::new(), cancelled_at: None, token, tag };
        self.open.insert(key, Box::new(open));
        displaced
    }

    /// Ends an exchange without an answer.
    pub fn abandon(&mut self, key: &Key) -> Option<(Exchange, T)> {
        Some(self.remove(key)?.settle(key.clone(), None))
    }

    /// Ends every exchange of a channel without an answer, because the channel is gone.
    pub fn abandon_channel(&mut self, channel: Channel) -> Vec<(Exchange, T)> {
        let of_channel = |asker| {
            self.open
                .range(first(channel, asker)..)
                .map(|(key, _)| key)
                .take_while(move |key| key.channel == channel && key.asker == asker)
        };
        let keys: Vec<Key> = of_channel(Side::Client).chain(of_channel(Side::Server)).cloned().collect();
        keys.iter().filter_map(|key| self.abandon(key)).collect()
    }

    /// Ends every exchange, because the conversation is over.
    pub fn finish(&mut self) -> Vec<(Exchange, T)> {
        self.tokens.clear();
        self.cancelled.clear();
        std::mem::take(&mut self.open).into_iter().map(|(key, open)| open.settle(key, None)).collect()
    }

    fn remove(&mut self, key: &Key) -> Option<Box<Open<T>>> {
        let open = self.open.remove(key)?;
        if let Some(token) = &open.token {
            let slot = (key.asker, token.clone());
            if let Some(keys) = self.tokens.get_mut(&slot) {
                keys.retain(|other| other != key);
                if keys.is_empty() {
                    self.tokens.remove(&slot);
                }
            }
        }
        if open.cancelled_at.is_some() {
            self.cancelled.retain(|other| other != key);
        }
        Some(open)
    }
}

impl<T: Default> Pairing<T> {
    /// Takes the next message: `from` said it on `channel`, `at` this time.
    pub fn step(&mut self, from: Side, channel: Channel, at: Duration, message: Message) -> Step<T> {
        match message.body() {
            Body::Request(request) => {
                let key = Key { channel, asker: from, id: request.id.clone() };
                let token = request.param(&["_meta", meta::PROGRESS_TOKEN]);
                let displaced = self.open(key.clone(), Stamped { at, message }, token.as_ref(), T::default());
                Step::Opened { key, displaced }
            }
            Body::Response(response) => match response.id.clone() {
                Some(id) => self.answer(Key { channel, asker: from.other(), id }, Stamped { at, message }),
                // `null` says that the question could not be read; where only one is open it can only be that one.
                None => match self.only_open(channel, from.other()) {
                    Some(key) => self.answer(key, Stamped { at, message }),
                    None => Step::Loose { message: Stamped { at, message }, why: Loose::UnaskedAnswer },
                },
            },
            Body::Notification(notification) => {
                let key = self.owner(from, channel, notification);
                let is_cancellation = notification.method == Method::CANCELLED;
                self.attach(key, Stamped { at, message }, is_cancellation)
            }
            Body::Garbled(garbled) => {
                // Half an answer is better news for the one who waits than silence.
                let named = garbled.id.clone().map(|id| Key { channel, asker: from.other(), id });
                let key = named.or_else(|| self.only_open(channel, from.other()).filter(|_| is_cut_answer(&message)));
                match key.filter(|key| self.open.contains_key(key)) {
                    Some(key) => self.answer(key, Stamped { at, message }),
                    None => Step::Loose { message: Stamped { at, message }, why: Loose::Garbled },
                }
            }
            Body::Batch(messages) => {
                let messages = messages.clone();
                Step::Batch(messages.into_iter().map(|message| self.step(from, channel, at, message)).collect())
            }
        }
    }

    fn answer(&mut self, key: Key, answer: Stamped) -> Step<T> {
        match self.remove(&key) {
            Some(open) => {
                let (exchange, tag) = open.settle(key, Some(answer));
                Step::Settled { exchange, tag }
            }
            None => Step::Loose { message: answer, why: Loose::UnaskedAnswer },
        }
    }

    fn attach(&mut self, key: Option<Key>, message: Stamped, is_cancellation: bool) -> Step<T> {
        let open = key.as_ref().and_then(|key| self.open.get_mut(key));
        let (Some(key), Some(open)) = (key, open) else {
            return Step::Loose { message, why: Loose::Notification };
        };
        if is_cancellation && open.cancelled_at.is_none() {
            open.cancelled_at = Some(message.at);
            open.notifications.push(message);
            self.cancelled.push_back(key.clone());
            let oldest = if self.cancelled.len() > CANCELLED_LIMIT { self.cancelled.pop_front() } else { None };
            return Step::Cancelled { key, expired: oldest.and_then(|key| self.abandon(&key)) };
        }
        if open.notifications.len() >= self.notifications_limit {
            return Step::Loose { message, why: Loose::Notification };
        }
        open.notifications.push(message);
        Step::Attached { key }
    }

    /// The request that a notification belongs to.
    fn owner(&self, from: Side, channel: Channel, notification: &Notification) -> Option<Key> {
        match notification.method.as_str() {
            "notifications/progress" => {
                let token = notification.param(&[meta::PROGRESS_TOKEN])?;
                let keys = self.tokens.get(&(from.other(), token.bytes().clone()))?;
                let same_channel = keys.iter().rfind(|key| key.channel == channel);
                // The standing stream of HTTP may carry progress of any POST.
                same_channel.or_else(|| keys.last().filter(|_| channel == Channel::MAIN)).cloned()
            }
            "notifications/cancelled" => {
                let id = notification.param(&["requestId"])?;
                let id = match id.value().ok()? {
                    serde_json::Value::String(text) => RequestId::Text(text),
                    value => RequestId::Number(value.as_i64()?),
                };
                let exact = Key { channel, asker: from, id };
                if self.open.contains_key(&exact) {
                    return Some(exact);
                }
                // Over HTTP a cancellation is a POST of its own: any channel will do if there is only one.
                let mut others = self.open.keys().filter(|key| key.asker == from && key.id == exact.id);
                others.next().filter(|_| others.next().is_none()).cloned()
            }
            // A log message does not say whose it is; where only one request is open it can only be that one's.
            "notifications/message" => self.only_open(channel, from.other()),
            _ => None,
        }
    }
}

impl<T> Pairing<T> {
    /// The one request that `asker` has open on `channel`, if there is exactly one.
    pub fn only_open(&self, channel: Channel, asker: Side) -> Option<Key> {
        let mut open = self.open.range(first(channel, asker)..).map(|(key, _)| key);
        let here = |key: &&Key| key.channel == channel && key.asker == asker;
        let only = open.next().filter(here)?;
        open.next().filter(here).is_none().then(|| only.clone())
    }
}

impl<T> Open<T> {
    fn settle(self, key: Key, answer: Option<Stamped>) -> (Exchange, T) {
        let outcome = match (self.cancelled_at, answer) {
            (Some(at), late) => Outcome::Cancelled { at, late },
            (None, Some(answer)) => Outcome::Replied(answer),
            (None, None) => Outcome::Unanswered,
        };
        (Exchange { key, request: self.request, notifications: self.notifications, outcome }, self.tag)
    }
}

/// Whether this is the beginning of a message that was too long, and not of a request or a notification.
fn is_cut_answer(message: &Message) -> bool {
    let too_long = message.as_garbled().is_some_and(|garbled| matches!(garbled.reason, Reason::TooLong { .. }));
    too_long && !message.text().contains("\"method\"")
}

/// The least key of a channel and an asker.
fn first(channel: Channel, asker: Side) -> Key {
    Key { channel, asker, id: RequestId::Number(i64::MIN) }
}
