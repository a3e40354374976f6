//! Finds the request that each message belongs to.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;

use super::{Channel, Exchange, ExchangeKey, Outcome, Side, TimedMessage};
use crate::json::RawJson;
use crate::message::{Body, GarbledReason, Message, Method, Notification, RequestId};
use crate::protocol::meta;

/// Pairs the messages of one connection in any order; every message is part of a result.
///
/// `T` is the caller's data for a pending request, such as the task that waits for the response.
#[derive(Debug)]
pub struct Pairing<T = ()> {
    open: RecentMap<OpenExchange<T>>,
    tokens: HashMap<(Side, Bytes), Vec<ExchangeKey>>,
    cancelled: VecDeque<ExchangeKey>,
    limit: ExchangeLimit,
}

/// Limits of the data that is kept for one exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangeLimit {
    /// Maximum number of notifications.
    pub notifications: usize,
    /// Maximum number of bytes of notifications.
    pub bytes: usize,
}

impl ExchangeLimit {
    /// No limit.
    pub const NONE: ExchangeLimit = ExchangeLimit { notifications: usize::MAX, bytes: usize::MAX };
}

/// A pending exchange. It is in its box from the beginning, so that returning it costs no copy.
#[derive(Debug)]
struct OpenExchange<T> {
    exchange: Box<Exchange>,
    extra: Option<Box<Extra>>,
    tag: T,
}

/// Data that few exchanges have.
#[derive(Debug, Default)]
struct Extra {
    /// The number of bytes of its notifications.
    bytes: usize,
    token: Option<Bytes>,
}

/// The result of pairing a message.
#[derive(Debug)]
pub enum PairingEvent<T> {
    /// The message is a request: an exchange begins.
    Opened {
        /// The key of the exchange.
        key: ExchangeKey,
        /// The pending exchange that had the same key; it ends unanswered.
        displaced: Option<(Box<Exchange>, T)>,
    },
    /// The message is a notification that belongs to a pending exchange.
    Attached {
        /// The key of the exchange.
        key: ExchangeKey,
    },
    /// The message is a cancellation: the exchange stays for a late response.
    Cancelled {
        /// The key of the exchange.
        key: ExchangeKey,
        /// The exchange that was cancelled first, if there are too many; its response is no longer expected.
        expired: Option<(Box<Exchange>, T)>,
    },
    /// The message is a response: an exchange ends.
    Completed {
        /// The whole exchange.
        exchange: Box<Exchange>,
        /// The caller's data.
        tag: T,
    },
    /// The message belongs to no request.
    Unpaired {
        /// The message.
        message: TimedMessage,
        /// The reason.
        why: Unpaired,
    },
    /// The message is a batch: the results of each of its messages, in order.
    Batch(Vec<PairingEvent<T>>),
}

/// Why a message belongs to no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unpaired {
    /// A notification about the connection, or one whose request is unknown.
    Notification,
    /// A response without a pending request, or a second response.
    UnexpectedResponse,
    /// A garbled message.
    Garbled,
}

/// Maximum number of cancelled requests that are kept for a late response.
const CANCELLED_LIMIT: usize = 1024;

impl<T> Default for Pairing<T> {
    fn default() -> Self {
        Pairing::new(ExchangeLimit::NONE)
    }
}

impl<T> Pairing<T> {
    /// Notifications beyond the limit of one exchange are returned as unpaired.
    pub fn new(limit: ExchangeLimit) -> Pairing<T> {
        let (open, tokens, cancelled) = Default::default();
        Pairing { open, tokens, cancelled, limit }
    }

    /// How many requests are pending.
    pub fn open_count(&self) -> usize {
        self.open.len()
    }

    /// The caller's data for a pending exchange.
    pub fn tag_mut(&mut self, key: &ExchangeKey) -> Option<&mut T> {
        self.open.get_mut(key).map(|open| &mut open.tag)
    }

    /// The request of a pending exchange.
    pub fn request(&self, key: &ExchangeKey) -> Option<&TimedMessage> {
        self.open.get(key).map(|open| &open.exchange.request)
    }

    /// The last notification that was attached to a pending exchange.
    pub fn last_notification(&self, key: &ExchangeKey) -> Option<Message> {
        self.open.get(key)?.exchange.notifications.last().map(|stamped| stamped.message.clone())
    }

    /// Begins an exchange with a request whose progress token is already known.
    #[inline]
    pub fn open(
        &mut self,
        key: ExchangeKey,
        request: TimedMessage,
        token: Option<&RawJson>,
        tag: T,
    ) -> Option<(Box<Exchange>, T)> {
        let (notifications, outcome) = (Vec::new(), Outcome::Unanswered);
        let exchange = Box::new(Exchange { key: key.clone(), request, notifications, outcome });
        let extra = token.map(|token| {
            let token = token.bytes().clone();
            self.tokens.entry((key.asker, token.clone())).or_default().push(key.clone());
            Box::new(Extra { bytes: 0, token: Some(token) })
        });
        let displaced = self.open.insert(key, OpenExchange { exchange, extra, tag })?;
        self.forget(&displaced);
        Some((displaced.exchange, displaced.tag))
    }

    /// Ends an exchange without a response.
    pub fn abandon(&mut self, key: &ExchangeKey) -> Option<(Box<Exchange>, T)> {
        let open = self.remove(key)?;
        Some((open.exchange, open.tag))
    }

    /// Ends every exchange of a channel without a response, because the channel was closed.
    pub fn abandon_channel(&mut self, channel: Channel) -> Vec<(Box<Exchange>, T)> {
        let keys_of = |asker| self.open.of_asker(asker, channel).map(|(key, _)| key);
        let keys: Vec<ExchangeKey> = keys_of(Side::Client).chain(keys_of(Side::Server)).cloned().collect();
        keys.iter().filter_map(|key| self.abandon(key)).collect()
    }

    /// Ends every exchange, because the connection was closed.
    pub fn finish(&mut self) -> Vec<(Box<Exchange>, T)> {
        self.tokens.clear();
        self.cancelled.clear();
        std::mem::take(&mut self.open).into_values().map(|open| (open.exchange, open.tag)).collect()
    }

    fn remove(&mut self, key: &ExchangeKey) -> Option<OpenExchange<T>> {
        let open = self.open.remove(key)?;
        self.forget(&open);
        Some(open)
    }

    /// Removes the exchange from the maps of ids and tokens.
    fn forget(&mut self, open: &OpenExchange<T>) {
        let key = &open.exchange.key;
        if let Some(token) = open.extra.as_ref().and_then(|extra| extra.token.as_ref()) {
            let slot = (key.asker, token.clone());
            if let Some(keys) = self.tokens.get_mut(&slot) {
                // Only one entry: the request that displaces this one may have the same key and token.
                if let Some(at) = keys.iter().position(|other| other == key) {
                    keys.remove(at);
                }
                if keys.is_empty() {
                    self.tokens.remove(&slot);
                }
            }
        }
        if open.is_cancelled() {
            self.cancelled.retain(|other| other != key);
        }
    }
}

impl<T: Default> Pairing<T> {
    /// Pairs the next message, which `from` sent on `channel` at the time `at`.
    pub fn step(&mut self, from: Side, channel: Channel, at: Duration, message: Message) -> PairingEvent<T> {
        match message.body() {
            Body::Request(request) => {
                let key = ExchangeKey { channel, asker: from, id: request.id.clone() };
                let token = request.param(&["_meta", meta::PROGRESS_TOKEN]);
                let displaced = self.open(key.clone(), TimedMessage { at, message }, token.as_ref(), T::default());
                PairingEvent::Opened { key, displaced }
            }
            Body::Response(response) => match response.id.clone() {
                Some(id) => self.answer(ExchangeKey { channel, asker: from.other(), id }, TimedMessage { at, message }),
                // `null` means that the id of the request could not be read; if one request is pending, it must be that
                // one.
                None => match self.only_open(channel, from.other()) {
                    Some(key) => self.answer(key, TimedMessage { at, message }),
                    None => PairingEvent::Unpaired {
                        message: TimedMessage { at, message },
                        why: Unpaired::UnexpectedResponse,
                    },
                },
            },
            Body::Notification(notification) => {
                let key = self.owner(from, channel, notification);
                let is_cancellation = notification.method == Method::CANCELLED;
                self.attach(key, TimedMessage { at, message }, is_cancellation)
            }
            Body::Garbled(garbled) => {
                // A partial response ends the exchange, so that its caller does not wait for a timeout.
                let named = garbled.id.clone().map(|id| ExchangeKey { channel, asker: from.other(), id });
                let key = named.or_else(|| self.only_open(channel, from.other()).filter(|_| is_cut_answer(&message)));
                match key.filter(|key| self.open.get(key).is_some()) {
                    Some(key) => self.answer(key, TimedMessage { at, message }),
                    None => PairingEvent::Unpaired { message: TimedMessage { at, message }, why: Unpaired::Garbled },
                }
            }
            Body::Batch(messages) => {
                let messages = messages.clone();
                PairingEvent::Batch(messages.into_iter().map(|message| self.step(from, channel, at, message)).collect())
            }
        }
    }

    fn answer(&mut self, key: ExchangeKey, answer: TimedMessage) -> PairingEvent<T> {
        match self.remove(&key) {
            Some(OpenExchange { mut exchange, tag, .. }) => {
                match &mut exchange.outcome {
                    Outcome::Cancelled { late, .. } => *late = Some(answer),
                    outcome @ (Outcome::Unanswered | Outcome::Replied(_)) => *outcome = Outcome::Replied(answer),
                }
                PairingEvent::Completed { exchange, tag }
            }
            None => PairingEvent::Unpaired { message: answer, why: Unpaired::UnexpectedResponse },
        }
    }

    fn attach(&mut self, key: Option<ExchangeKey>, message: TimedMessage, is_cancellation: bool) -> PairingEvent<T> {
        let open = key.as_ref().and_then(|key| self.open.get_mut(key));
        let (Some(key), Some(open)) = (key, open) else {
            return PairingEvent::Unpaired { message, why: Unpaired::Notification };
        };
        if is_cancellation && !open.is_cancelled() {
            open.exchange.outcome = Outcome::Cancelled { at: message.at, late: None };
            open.exchange.notifications.push(message);
            self.cancelled.push_back(key.clone());
            let oldest = if self.cancelled.len() > CANCELLED_LIMIT { self.cancelled.pop_front() } else { None };
            return PairingEvent::Cancelled { key, expired: oldest.and_then(|key| self.abandon(&key)) };
        }
        let extra = open.extra.get_or_insert_default();
        let bytes = extra.bytes.saturating_add(message.message.raw().len());
        if open.exchange.notifications.len() >= self.limit.notifications || bytes > self.limit.bytes {
            return PairingEvent::Unpaired { message, why: Unpaired::Notification };
        }
        open.exchange.notifications.push(message);
        extra.bytes = bytes;
        PairingEvent::Attached { key }
    }

    /// The key of the request that a notification belongs to.
    fn owner(&self, from: Side, channel: Channel, notification: &Notification) -> Option<ExchangeKey> {
        match notification.method.as_str() {
            "notifications/progress" => {
                let token = notification.param(&[meta::PROGRESS_TOKEN])?;
                let keys = self.tokens.get(&(from.other(), token.bytes().clone()))?;
                let same_channel = keys.iter().rfind(|key| key.channel == channel);
                // The GET stream of HTTP may carry the progress of any POST.
                same_channel.or_else(|| keys.last().filter(|_| channel == Channel::MAIN)).cloned()
            }
            "notifications/cancelled" => {
                let id = notification.param(&["requestId"])?;
                let id = match id.value().ok()? {
                    serde_json::Value::String(text) => RequestId::Text(text),
                    value => RequestId::Number(value.as_i64()?),
                };
                let exact = ExchangeKey { channel, asker: from, id };
                if self.open.get(&exact).is_some() {
                    return Some(exact);
                }
                // Over HTTP a cancellation is a POST of its own, so any channel is accepted if only one has the id.
                let mut others =
                    self.open.iter().map(|(key, _)| key).filter(|key| key.asker == from && key.id == exact.id);
                others.next().filter(|_| others.next().is_none()).cloned()
            }
            // A log message names no request; if one request is pending, it belongs to that one.
            "notifications/message" => self.only_open(channel, from.other()),
            _ => None,
        }
    }
}

impl<T> Pairing<T> {
    /// The key of the only request that `asker` has pending on `channel`, if there is exactly one.
    pub fn only_open(&self, channel: Channel, asker: Side) -> Option<ExchangeKey> {
        let open = self.open.of_asker(asker, channel);
        // A cancelled request only waits for a late response; other messages do not belong to it.
        let mut waiting = open.filter(|(_, open)| !open.is_cancelled()).map(|(key, _)| key);
        let only = waiting.next()?;
        waiting.next().is_none().then(|| only.clone())
    }
}

impl<T> OpenExchange<T> {
    fn is_cancelled(&self) -> bool {
        matches!(self.exchange.outcome, Outcome::Cancelled { .. })
    }
}

/// Whether this is the beginning of a message that was too long, and not of a request or a notification.
fn is_cut_answer(message: &Message) -> bool {
    let too_long = message.as_garbled().is_some_and(|garbled| matches!(garbled.reason, GarbledReason::TooLong { .. }));
    too_long && !message.text().contains("\"method\"")
}

/// A map that keeps its newest entry outside the tree. Most clients wait for a response before the next request, so
/// they never use the tree.
#[derive(Debug)]
pub(super) struct RecentMap<V> {
    newest: Option<(ExchangeKey, V)>,
    others: BTreeMap<ExchangeKey, V>,
}

impl<V> Default for RecentMap<V> {
    fn default() -> RecentMap<V> {
        RecentMap { newest: None, others: BTreeMap::new() }
    }
}

impl<V> RecentMap<V> {
    pub(super) fn len(&self) -> usize {
        self.others.len() + usize::from(self.newest.is_some())
    }

    #[inline]
    pub(super) fn get(&self, key: &ExchangeKey) -> Option<&V> {
        match &self.newest {
            Some((newest, value)) if newest == key => Some(value),
            _ => self.others.get(key),
        }
    }

    pub(super) fn get_mut(&mut self, key: &ExchangeKey) -> Option<&mut V> {
        match &mut self.newest {
            Some((newest, value)) if newest == key => Some(value),
            _ => self.others.get_mut(key),
        }
    }

    /// Inserts a value, and returns the previous value of this key.
    #[inline]
    pub(super) fn insert(&mut self, key: ExchangeKey, value: V) -> Option<V> {
        let displaced = self.remove(&key);
        if let Some((older, value)) = self.newest.replace((key, value)) {
            self.others.insert(older, value);
        }
        displaced
    }

    #[inline]
    pub(super) fn remove(&mut self, key: &ExchangeKey) -> Option<V> {
        match &self.newest {
            Some((newest, _)) if newest == key => self.newest.take().map(|(_, value)| value),
            _ => self.others.remove(key),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&ExchangeKey, &V)> {
        self.others.iter().chain(self.newest.iter().map(|(key, value)| (key, value)))
    }

    pub(super) fn into_values(self) -> impl Iterator<Item = V> {
        self.others.into_values().chain(self.newest.map(|(_, value)| value))
    }

    /// The values of one side on one channel.
    pub(super) fn of_asker(&self, asker: Side, channel: Channel) -> impl Iterator<Item = (&ExchangeKey, &V)> {
        let here = move |key: &ExchangeKey| key.channel == channel && key.asker == asker;
        let first = ExchangeKey { channel, asker, id: RequestId::Number(i64::MIN) };
        let others = self.others.range(first..).take_while(move |(key, _)| here(key));
        others.chain(self.newest.iter().map(|(key, value)| (key, value)).filter(move |(key, _)| here(key)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A connection under test: every step is one millisecond later.
    #[derive(Default)]
    struct Fixture {
        pairing: Pairing,
        now: u64,
    }

    impl Fixture {
        fn on(&mut self, channel: u64, from: Side, text: &str) -> PairingEvent<()> {
            self.now += 1;
            self.pairing.step(from, Channel(channel), Duration::from_millis(self.now), Message::parse(text.to_owned()))
        }

        fn client(&mut self, text: &str) -> PairingEvent<()> {
            self.on(0, Side::Client, text)
        }

        fn server(&mut self, text: &str) -> PairingEvent<()> {
            self.on(0, Side::Server, text)
        }
    }

    fn call(id: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call"}}"#)
    }

    fn call_with_token(id: &str, token: &str) -> String {
        let params = format!(r#"{{"_meta":{{"progressToken":{token}}}}}"#);
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#)
    }

    fn result(id: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
    }

    fn progress(token: &str) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1}}}}"#
        )
    }

    fn cancel(id: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#)
    }

    const LOG: &str = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#;
    const UNREADABLE: &str = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}"#;

    #[track_caller]
    fn completed(step: PairingEvent<()>) -> Box<Exchange> {
        match step {
            PairingEvent::Completed { exchange, tag: () } => exchange,
            other => panic!("not completed: {other:?}"),
        }
    }

    #[track_caller]
    fn unpaired(step: PairingEvent<()>) -> Unpaired {
        match step {
            PairingEvent::Unpaired { why, .. } => why,
            other => panic!("not unpaired: {other:?}"),
        }
    }

    #[track_caller]
    fn attached(step: PairingEvent<()>) -> RequestId {
        match step {
            PairingEvent::Attached { key } => key.id,
            other => panic!("not attached: {other:?}"),
        }
    }

    #[test]
    fn the_same_id_from_both_sides_does_not_collide() {
        let mut fixture = Fixture::default();
        fixture.client(&call("1"));
        fixture.server(r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#);
        let ours = completed(fixture.client(&result("1")));
        assert_eq!((ours.key.asker, ours.request.message.method()), (Side::Server, Some(&Method::ROOTS_LIST)));
        let theirs = completed(fixture.server(&result("1")));
        assert_eq!((theirs.key.asker, theirs.request.message.method()), (Side::Client, Some(&Method::TOOLS_CALL)));
    }

    #[test]
    fn a_number_and_a_string_are_different_ids() {
        let mut fixture = Fixture::default();
        fixture.client(&call("1"));
        assert_eq!(unpaired(fixture.server(&result(r#""1""#))), Unpaired::UnexpectedResponse);
        completed(fixture.server(&result("1")));
    }

    #[test]
    fn responses_out_of_order_are_paired_with_their_requests() {
        let mut fixture = Fixture::default();
        for id in ["1", r#""b""#, "3"] {
            fixture.client(&call(id));
        }
        for (id, took) in [("3", 1), ("1", 4), (r#""b""#, 4)] {
            let exchange = completed(fixture.server(&result(id)));
            assert_eq!(exchange.key.id.to_string(), id);
            assert_eq!(exchange.took(), Some(Duration::from_millis(took)));
            assert!(matches!(exchange.reply(), Some(crate::message::Reply::Result(_))));
        }
        assert_eq!(unpaired(fixture.server(&result("3"))), Unpaired::UnexpectedResponse, "a second answer");
        assert_eq!(fixture.pairing.open_count(), 0);
    }

    #[test]
    fn progress_is_paired_by_its_token() {
        let mut fixture = Fixture::default();
        fixture.client(&call_with_token("1", r#""a""#));
        fixture.client(&call_with_token("2", "7"));
        assert_eq!(attached(fixture.server(&progress("7"))), RequestId::Number(2));
        assert_eq!(attached(fixture.server(&progress(r#""a""#))), RequestId::Number(1));
        assert_eq!(unpaired(fixture.server(&progress(r#""7""#))), Unpaired::Notification, "a string is no number");
        assert_eq!(
            unpaired(fixture.client(&progress("7"))),
            Unpaired::Notification,
            "the asker does not make progress"
        );
        assert_eq!(completed(fixture.server(&result("2"))).notifications.len(), 1);
        assert_eq!(unpaired(fixture.server(&progress("7"))), Unpaired::Notification, "too late");
    }

    #[test]
    fn progress_with_a_shared_token_belongs_to_the_request_on_its_channel() {
        let mut fixture = Fixture::default();
        fixture.on(1, Side::Client, &call_with_token("1", "7"));
        fixture.on(2, Side::Client, &call_with_token("2", "7"));
        assert_eq!(attached(fixture.on(1, Side::Server, &progress("7"))), RequestId::Number(1));
        assert_eq!(attached(fixture.on(2, Side::Server, &progress("7"))), RequestId::Number(2));
    }

    #[test]
    fn a_log_message_belongs_to_the_only_open_request() {
        let mut fixture = Fixture::default();
        assert_eq!(unpaired(fixture.server(LOG)), Unpaired::Notification, "nothing is open");
        fixture.client(&call("1"));
        assert_eq!(attached(fixture.server(LOG)), RequestId::Number(1));
        fixture.client(&call("2"));
        assert_eq!(unpaired(fixture.server(LOG)), Unpaired::Notification, "it could be either's");
        fixture.on(5, Side::Client, &call("3"));
        assert_eq!(attached(fixture.on(5, Side::Server, LOG)), RequestId::Number(3), "alone on its channel");
    }

    #[test]
    fn the_same_id_on_two_channels_is_two_requests() {
        let mut fixture = Fixture::default();
        fixture.on(1, Side::Client, &call("1"));
        fixture.on(2, Side::Client, &call("1"));
        assert_eq!(completed(fixture.on(2, Side::Server, &result("1"))).key.channel, Channel(2));
        assert_eq!(unpaired(fixture.on(2, Side::Server, &result("1"))), Unpaired::UnexpectedResponse);
        assert_eq!(completed(fixture.on(1, Side::Server, &result("1"))).key.channel, Channel(1));
    }

    #[test]
    fn abandon_channel_ends_only_the_requests_of_that_channel() {
        let mut fixture = Fixture::default();
        fixture.on(1, Side::Client, &call("1"));
        fixture.on(1, Side::Server, &call(r#""x""#));
        fixture.on(2, Side::Client, &call("1"));
        let lost = fixture.pairing.abandon_channel(Channel(1));
        assert_eq!(lost.len(), 2);
        assert!(lost.iter().all(|(exchange, ())| exchange.outcome == Outcome::Unanswered));
        completed(fixture.on(2, Side::Server, &result("1")));
    }

    #[test]
    fn a_cancelled_request_keeps_its_late_response() {
        let mut fixture = Fixture::default();
        fixture.client(&call("1"));
        assert!(matches!(fixture.client(&cancel("1")), PairingEvent::Cancelled { expired: None, .. }));
        let exchange = completed(fixture.server(&result("1")));
        let Outcome::Cancelled { at, late: Some(late) } = &exchange.outcome else { panic!("{exchange:?}") };
        assert_eq!((*at, late.at), (Duration::from_millis(2), Duration::from_millis(3)));
        assert_eq!(exchange.notifications.len(), 1, "the cancellation itself");
    }

    #[test]
    fn beyond_the_limit_the_oldest_cancelled_request_is_dropped() {
        let mut fixture = Fixture::default();
        for id in 0..=CANCELLED_LIMIT {
            fixture.client(&call(&id.to_string()));
            let PairingEvent::Cancelled { expired, .. } = fixture.client(&cancel(&id.to_string())) else {
                panic!("{id}")
            };
            let expired = expired.map(|(exchange, ())| exchange.key.id);
            assert_eq!(expired, (id == CANCELLED_LIMIT).then_some(RequestId::Number(0)));
        }
        assert_eq!(fixture.pairing.open_count(), CANCELLED_LIMIT);
    }

    #[test]
    fn a_reused_id_displaces_the_first_request() {
        let mut fixture = Fixture::default();
        fixture.client(&call_with_token("1", "5"));
        let PairingEvent::Opened { displaced, .. } = fixture.client(&call("1")) else { panic!("not opened") };
        let (displaced, ()) = displaced.unwrap();
        assert_eq!((displaced.request.at, displaced.outcome), (Duration::from_millis(1), Outcome::Unanswered));
        assert_eq!(unpaired(fixture.server(&progress("5"))), Unpaired::Notification, "its token went with it");
        assert_eq!(completed(fixture.server(&result("1"))).request.at, Duration::from_millis(2));
    }

    #[test]
    fn an_error_with_a_null_id_completes_the_only_open_request() {
        let mut fixture = Fixture::default();
        assert_eq!(unpaired(fixture.server(UNREADABLE)), Unpaired::UnexpectedResponse);
        fixture.client(&call("1"));
        fixture.client(&call("2"));
        assert_eq!(unpaired(fixture.server(UNREADABLE)), Unpaired::UnexpectedResponse, "it could be either's");
        completed(fixture.server(&result("1")));
        assert_eq!(completed(fixture.server(UNREADABLE)).key.id, RequestId::Number(2));
    }

    #[test]
    fn a_garbled_response_with_an_id_completes_its_request() {
        let mut fixture = Fixture::default();
        fixture.client(&call("1"));
        let exchange = completed(fixture.server(r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#));
        assert!(exchange.reply().is_none());
        assert!(exchange.answer().unwrap().message.as_garbled().is_some());
        assert_eq!(unpaired(fixture.server(r#"{"id":1,"result":{}}"#)), Unpaired::Garbled, "no pending request");
        assert_eq!(unpaired(fixture.server("Server running on stdio")), Unpaired::Garbled);
    }

    #[test]
    fn a_truncated_response_completes_the_only_open_request() {
        let cut = |text: &'static str| Message::garbled(text, GarbledReason::TooLong { limit: 10 });
        let mut fixture = Fixture::default();
        fixture.client(&call("1"));
        let request = cut(r#"{"jsonrpc":"2.0","method":"no"#);
        let step = fixture.pairing.step(Side::Server, Channel::MAIN, Duration::ZERO, request);
        assert_eq!(unpaired(step), Unpaired::Garbled, "it is no answer");
        let answer = cut(r#"{"jsonrpc":"2.0","id":1,"resu"#);
        completed(fixture.pairing.step(Side::Server, Channel::MAIN, Duration::ZERO, answer));
    }

    #[test]
    fn each_message_of_a_batch_is_paired_separately() {
        let mut fixture = Fixture::default();
        let PairingEvent::Batch(steps) = fixture.client(&format!("[{},{},5]", call("1"), call("2"))) else {
            panic!("no batch")
        };
        assert!(matches!(
            &steps[..],
            [
                PairingEvent::Opened { .. },
                PairingEvent::Opened { .. },
                PairingEvent::Unpaired { why: Unpaired::Garbled, .. }
            ]
        ));
        let PairingEvent::Batch(steps) = fixture.server(&format!("[{},{}]", result("2"), result("1"))) else {
            panic!("no batch")
        };
        let ids: Vec<_> = steps.into_iter().map(|step| completed(step).key.id).collect();
        assert_eq!(ids, [RequestId::Number(2), RequestId::Number(1)]);
    }

    #[test]
    fn notifications_beyond_the_limit_are_unpaired() {
        let mut fixture =
            Fixture { pairing: Pairing::new(ExchangeLimit { notifications: 2, ..ExchangeLimit::NONE }), now: 0 };
        fixture.client(&call("1"));
        attached(fixture.server(LOG));
        attached(fixture.server(LOG));
        assert_eq!(unpaired(fixture.server(LOG)), Unpaired::Notification);
        assert_eq!(completed(fixture.server(&result("1"))).notifications.len(), 2);
    }

    #[test]
    fn notifications_beyond_the_byte_limit_of_their_exchange_are_unpaired() {
        let mut fixture =
            Fixture { pairing: Pairing::new(ExchangeLimit { bytes: 2 * LOG.len(), ..ExchangeLimit::NONE }), now: 0 };
        fixture.on(1, Side::Client, &call("1"));
        fixture.on(2, Side::Client, &call("2"));
        attached(fixture.on(1, Side::Server, LOG));
        attached(fixture.on(1, Side::Server, LOG));
        assert_eq!(unpaired(fixture.on(1, Side::Server, LOG)), Unpaired::Notification);
        assert_eq!(attached(fixture.on(2, Side::Server, LOG)), RequestId::Number(2));
        assert!(
            matches!(fixture.on(1, Side::Client, &cancel("1")), PairingEvent::Cancelled { .. }),
            "this one is always kept"
        );
        assert_eq!(completed(fixture.on(1, Side::Server, &result("1"))).notifications.len(), 3);
        assert_eq!(completed(fixture.on(2, Side::Server, &result("2"))).notifications.len(), 1);
    }

    proptest! {
        #[test]
        fn pairing_loses_nothing(
            messages in proptest::collection::vec(messages(), 0..60),
            notifications in 0..4usize,
            bytes in prop_oneof![Just(usize::MAX), 0..400usize],
        ) {
            let mut pairing = Pairing::<()>::new(ExchangeLimit { notifications, bytes });
            let (mut sent, mut paired) = (Vec::new(), Vec::new());
            for (number, (from, channel, text)) in messages.into_iter().enumerate() {
                let message = Message::parse(text);
                let at = Duration::from_millis(number as u64);
                match message.body() {
                    Body::Batch(messages) => sent.extend(messages.iter().map(|message| (at, message.raw().clone()))),
                    _ => sent.push((at, message.raw().clone())),
                }
                collect(pairing.step(from, channel, at, message), &mut paired);
            }
            pairing.finish().into_iter().for_each(|(exchange, ())| collect_exchange(*exchange, &mut paired));
            prop_assert_eq!(pairing.open_count(), 0);
            let mut paired: Vec<_> = paired.into_iter().map(|item| (item.at, item.message.raw().clone())).collect();
            sent.sort();
            paired.sort();
            prop_assert_eq!(sent, paired);
        }
    }

    /// Random messages with sender and channel; few ids, tokens and channels, so that they repeat.
    fn messages() -> impl Strategy<Value = (Side, Channel, String)> {
        let side = prop_oneof![Just(Side::Client), Just(Side::Server)];
        let id = proptest::sample::select(vec!["1", "2", r#""1""#]);
        let one = (0..10, id.clone(), id).prop_map(|(kind, id, token)| match kind {
            0 => call(id),
            1 => call_with_token(id, token),
            2 | 3 => result(id),
            4 => progress(token),
            5 => cancel(id),
            6 => LOG.to_owned(),
            7 => UNREADABLE.to_owned(),
            8 => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}},"error":{{}}}}"#),
            _ => "noise".to_owned(),
        });
        let batch =
            proptest::collection::vec(one.clone(), 1..4).prop_map(|messages| format!("[{}]", messages.join(",")));
        (side, (0..3u64).prop_map(Channel), prop_oneof![8 => one, 1 => batch])
    }

    fn collect(step: PairingEvent<()>, paired: &mut Vec<TimedMessage>) {
        match step {
            PairingEvent::Opened { displaced: ended, .. } | PairingEvent::Cancelled { expired: ended, .. } => {
                ended.into_iter().for_each(|(exchange, ())| collect_exchange(*exchange, paired));
            }
            PairingEvent::Completed { exchange, tag: () } => collect_exchange(*exchange, paired),
            PairingEvent::Attached { .. } => {}
            PairingEvent::Unpaired { message, .. } => paired.push(message),
            PairingEvent::Batch(steps) => steps.into_iter().for_each(|step| collect(step, paired)),
        }
    }

    fn collect_exchange(exchange: Exchange, paired: &mut Vec<TimedMessage>) {
        paired.push(exchange.request);
        paired.extend(exchange.notifications);
        match exchange.outcome {
            Outcome::Replied(answer) => paired.push(answer),
            Outcome::Cancelled { late, .. } => paired.extend(late),
            Outcome::Unanswered => {}
        }
    }

    fn key() -> impl Strategy<Value = ExchangeKey> {
        (0..3_u64, any::<bool>(), -1..4_i64).prop_map(|(channel, client, id)| ExchangeKey {
            channel: Channel(channel),
            asker: if client { Side::Client } else { Side::Server },
            id: if id < 0 { RequestId::Text("x".into()) } else { RequestId::Number(id) },
        })
    }

    proptest! {
        #[test]
        fn a_recent_map_behaves_like_a_btree_map(steps in prop::collection::vec((any::<bool>(), key()), 0..40)) {
            let (mut ours, mut plain) = (RecentMap::default(), BTreeMap::new());
            for (number, (insert, key)) in steps.into_iter().enumerate() {
                match insert {
                    true => prop_assert_eq!(ours.insert(key.clone(), number), plain.insert(key.clone(), number)),
                    false => prop_assert_eq!(ours.remove(&key), plain.remove(&key)),
                }
                prop_assert_eq!((ours.len(), ours.get(&key)), (plain.len(), plain.get(&key)));
                prop_assert_eq!(ours.get_mut(&key), plain.get_mut(&key));
                let sorted: BTreeMap<_, _> = ours.iter().map(|(key, value)| (key.clone(), *value)).collect();
                prop_assert_eq!(&sorted, &plain);
                let ExchangeKey { channel, asker, .. } = key;
                let mut here: Vec<_> = ours.of_asker(asker, channel).collect();
                here.sort();
                let same = |key: &ExchangeKey| key.channel == channel && key.asker == asker;
                prop_assert_eq!(here, plain.iter().filter(|(key, _)| same(key)).collect::<Vec<_>>());
            }
            let mut owned: Vec<_> = ours.into_values().collect();
            owned.sort();
            let mut expected: Vec<_> = plain.into_values().collect();
            expected.sort();
            prop_assert_eq!(owned, expected);
        }
    }
}
