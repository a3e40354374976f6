//! Collects the sessions of a trace for its index.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use rehearsal_core::exchange::Side;
use rehearsal_core::message::Method;
use rehearsal_core::protocol::Revision;
use rehearsal_core::trace::{
    Entry, EntryBody, FileSpan, LinkBuilder, OrderedEvent, RecordedCall, RequestIdentity, RequestKey, SessionStart,
};
use serde_json::Value;

use super::digest::{AnsweredOn, DigestKind, EventDigest, IncomingRequest, SessionDigests, VersionRefusal};
use super::layout::{EventRecord, ExchangeRecord, Flags, NONE, SessionFacts};
use super::lookup::{method_key, refused_key};

/// How many exchanges are kept under a key that only finds what is alike.
const ALIKE: usize = 1_000;

/// How many tools, prompts or resources are kept under a method.
const SUBJECTS: usize = 10_000;

/// Everything that goes into an index.
#[derive(Debug, Default)]
pub(super) struct IndexBuilder {
    pub(super) exchanges: Vec<ExchangeRecord>,
    pub(super) things: Vec<(u32, EventRecord)>,
    pub(super) keys: Vec<(u128, u32)>,
    pub(super) alike: HashMap<u128, Vec<u32>>,
    pub(super) sessions: Vec<SessionFacts>,
    /// When each of them began, where that is known.
    pub(super) started: Vec<Option<Timestamp>>,
    /// Of the session that is read.
    ties: LinkBuilder,
    /// The key of all of a method, by that of all about one thing.
    methods: HashMap<u128, u128>,
}

/// One session, exchange by exchange, in the order of the requests.
#[derive(Debug, Default)]
struct SessionIndexer {
    revision: Option<Revision>,
    /// The active exchanges.
    open: Vec<PendingExchange>,
    /// The place of the last request that was never answered.
    unanswered: Option<u64>,
    /// The one that was answered last, and the place of the answer.
    settled: Option<(u32, u64)>,
    /// Server messages that belong to no request, by place, until the active exchanges at that place are known.
    free: BTreeMap<(u64, u64), EventRecord>,
    /// Server messages before the first response, until the next request.
    early: Vec<EventRecord>,
    /// Rounds that wait for the next.
    chains: RoundChains,
    /// The related events of each active exchange.
    things: HashMap<u32, Vec<EventRecord>>,
    taken: u64,
}

/// An exchange that was not answered yet.
#[derive(Clone, Copy, Debug)]
struct PendingExchange {
    number: u32,
    /// The place of its answer.
    end: u64,
}

impl IndexBuilder {
    /// A session begins.
    pub(super) fn start(&mut self, start: SessionStart) {
        let first = u32::try_from(self.exchanges.len()).unwrap_or(NONE);
        let SessionStart { session_id, server_info, metadata, started_at } = start;
        self.started.push(started_at);
        self.ties = LinkBuilder::default();
        self.sessions.push(SessionFacts { id: session_id, server_info, metadata, first, ..SessionFacts::default() });
    }

    /// Builds the digest of a call, and stores what is not in the digest.
    pub(super) fn digest(
        &mut self,
        call: &RecordedCall,
        span: FileSpan,
        likeness: &RequestIdentity,
    ) -> Option<EventDigest> {
        let digest = EventDigest::of_call(call, span, likeness)?;
        let request = &call.request.message;
        if let (DigestKind::IncomingRequest(asked), Some(method)) = (&digest.what, request.method()) {
            self.methods.entry(asked.about.0).or_insert_with(|| method_key(method.as_str()).0);
        }
        Some(digest)
    }

    /// Builds the digest of an entry that is not a call.
    pub(super) fn digest_entry(&mut self, entry: &Entry, span: FileSpan) -> Option<EventDigest> {
        self.acknowledge(entry);
        EventDigest::of_entry(entry, span, &mut self.ties)
    }

    /// Stores the subscription filter that a server acknowledged.
    fn acknowledge(&mut self, entry: &Entry) {
        let EntryBody::Message { from: Side::Server, message, .. } = &entry.what else { return };
        let told = message.as_notification().filter(|told| told.method == Method::SUBSCRIPTION_ACKNOWLEDGED);
        let promised = told.and_then(|told| told.param(&["notifications"])?.value().ok());
        if let (Some(Value::Object(promised)), Some(facts)) = (promised, self.sessions.last_mut()) {
            let known = facts.acknowledged.get_or_insert_default();
            for (what, promised) in promised {
                match (known.get_mut(&what), promised) {
                    (Some(Value::Array(known)), Value::Array(promised)) => {
                        let new: Vec<_> = promised.into_iter().filter(|it| !known.contains(it)).collect();
                        known.extend(new);
                    }
                    (_, promised) => drop(known.insert(what, promised)),
                }
            }
        }
    }

    /// The session is over, and this is what was in it.
    pub(super) fn finish(&mut self, digests: SessionDigests) {
        let mut session = SessionIndexer::default();
        for OrderedEvent { event: thing, inside } in digests.in_order() {
            match &thing.what {
                DigestKind::IncomingRequest(asked) => session.exchange(self, &thing, asked, inside),
                // What belongs to no exchange.
                DigestKind::Event { .. }
                | DigestKind::Head { .. }
                | DigestKind::Refused
                | DigestKind::Retry(_)
                | DigestKind::Closed => {
                    thing.said().into_iter().for_each(|record| session.leave(record));
                }
            }
        }
        session.finish(self);
    }

    /// Adds an exchange to those about the same subject, and the first one about each subject to those of its method.
    fn similar(&mut self, about: RequestKey, number: u32) {
        let same = self.alike.entry(about.0).or_default();
        if same.len() < ALIKE {
            same.push(number);
        }
        if let ([_], Some(method)) = (&same[..], self.methods.get(&about.0)) {
            let all = self.alike.entry(*method).or_default();
            if all.len() < SUBJECTS {
                all.push(number);
            }
        }
    }
}

impl SessionIndexer {
    /// Takes a request of the client's with what belongs to it.
    fn exchange(
        &mut self,
        all: &mut IndexBuilder,
        call: &EventDigest,
        asked: &IncomingRequest,
        inside: Vec<EventDigest>,
    ) {
        let place = call.tie.seq();
        self.close_until(all, place);
        let number = u32::try_from(all.exchanges.len()).unwrap_or(NONE);
        // Before 2026-07-28, an HTTP refusal never depends on the content of the request.
        let is_refused =
            asked.claimed.is_none() && inside.iter().any(|thing| matches!(thing.what, DigestKind::Refused));
        let mut flags = Flags::default();
        if asked.is_protocol {
            flags.add(Flags::PROTOCOL);
        }
        if asked.answered == AnsweredOn::Never {
            flags.add(Flags::UNANSWERED);
        }
        // An acknowledged subscription may end with an error later, as when its client disconnects.
        if asked.listens && asked.is_error && !all.ties.is_acknowledged(&call.tie) {
            flags.add(Flags::LISTEN_REFUSED);
        }
        let from = asked.rounds.as_ref().and_then(|rounds| rounds.from);
        let before = from.and_then(|thread| self.chains.link_round(asked.key, thread, number, place));
        if before.is_some() {
            flags.add(Flags::ROUND);
        } else if asked.refused == Some(VersionRefusal::Version) {
            flags.add(Flags::PROTOCOL);
            all.keys.push((refused_key(asked.key).0, number));
        } else if asked.refused == Some(VersionRefusal::Itself) || is_refused {
            flags.add(Flags::PROTOCOL);
        } else {
            all.keys.push((asked.key.0, number));
        }
        all.similar(asked.about, number);
        self.revision = asked.agreed.or(self.revision);
        let revision = asked.claimed.or(self.revision).map_or(u8::MAX, |revision| revision as u8);
        let session = u32::try_from(all.sessions.len().saturating_sub(1)).unwrap_or(NONE);
        let (span, next) = (call.span, NONE);
        all.exchanges.push(ExchangeRecord { span, session, things: 0, thing_count: 0, next, revision, flags });
        if let Some(thread) = asked.rounds.as_ref().and_then(|rounds| rounds.to) {
            self.chains.wait(asked.key, thread, number, call.tie.completed_at());
        }
        for thing in &inside {
            if let Some(facts) = all.sessions.last_mut() {
                transport(facts, &thing.what);
            }
        }
        if asked.answered == AnsweredOn::Never && !asked.listens {
            // It is refused, so what the server sent for it is never sent again.
            self.unanswered = Some(place);
            return;
        }
        // What the server sent before the first request is sent as soon as a client may receive it: after the handshake, or with
        // the first answer.
        let mut things = if asked.pings { Vec::new() } else { std::mem::take(&mut self.early) };
        things.iter_mut().for_each(|thing| thing.is_late = asked.is_protocol);
        let has_stream = inside.iter().any(|thing| thing.opens_stream(call));
        for thing in inside {
            match thing.closed_early(call, asked).filter(|_| has_stream).or_else(|| thing.said()) {
                // What a subscriber is sent belongs to the call that caused it, and no client pings as often as another.
                Some(record) if asked.listens || asked.pings => self.leave(record),
                Some(record) => things.push(record),
                None => {}
            }
        }
        self.things.entry(number).or_default().append(&mut things);
        if asked.listens {
            // The next notifications are sent because of this subscription.
            if let Some((before, _)) = self.settled.replace((number, place)) {
                self.close(all, before);
            }
        } else if !asked.pings {
            self.open.push(PendingExchange { number, end: call.tie.completed_at() });
        }
    }

    /// The session is over.
    fn finish(mut self, all: &mut IndexBuilder) {
        self.close_until(all, u64::MAX);
        while let Some(PendingExchange { number, .. }) = self.open.pop() {
            self.close(all, number);
        }
        let left: Vec<u32> = self.things.keys().copied().collect();
        left.into_iter().for_each(|number| self.close(all, number));
        for (number, next) in self.chains.finish() {
            all.exchanges[number as usize].next = next;
        }
        if let Some(facts) = all.sessions.last_mut() {
            facts.unsaid = self.early.len() as u64;
        }
    }

    fn leave(&mut self, record: EventRecord) {
        self.taken += 1;
        self.free.insert((record.seq, self.taken), record);
    }

    /// Assigns a related event to an exchange.
    fn attach_to(&mut self, number: u32, record: EventRecord) {
        self.things.entry(number).or_default().push(record);
    }

    /// Everything before this place has happened.
    fn close_until(&mut self, all: &mut IndexBuilder, place: u64) {
        while let Some(((seq, _), record)) = self.free.first_key_value().map(|(key, record)| (*key, *record)) {
            if seq >= place {
                break;
            }
            self.free.pop_first();
            self.settle_open(all, seq);
            let latest = self.open.iter().max_by_key(|other| other.number);
            // A request of the server's that comes while only a call without an answer is open can be of no other.
            let is_of_unanswered = record.is_call && self.unanswered > self.settled.map(|(_, place)| place);
            match (latest.copied(), self.settled) {
                (Some(next), _) => self.attach_to(next.number, record),
                (None, _) if is_of_unanswered => {}
                (None, Some((number, _))) => self.attach_to(number, EventRecord { is_late: true, ..record }),
                (None, None) => self.early.push(record),
            }
        }
        self.settle_open(all, place);
    }

    fn settle_open(&mut self, all: &mut IndexBuilder, place: u64) {
        let (done, open): (Vec<_>, Vec<_>) = self.open.iter().partition(|other| other.end < place);
        self.open = open;
        for PendingExchange { number, end, .. } in done {
            if self.settled.is_none_or(|(_, last)| last < end) {
                if let Some((before, _)) = self.settled.replace((number, end)) {
                    self.close(all, before);
                }
            } else {
                self.close(all, number);
            }
        }
    }

    /// Nothing more comes to an exchange.
    fn close(&mut self, all: &mut IndexBuilder, number: u32) {
        let mut things = self.things.remove(&number).unwrap_or_default();
        things.sort_by_key(|thing| thing.seq);
        all.things.extend(things.into_iter().map(|thing| (number, thing)));
    }
}

/// Counts how HTTP was used.
fn transport(facts: &mut SessionFacts, what: &DigestKind) {
    match what {
        DigestKind::Head { is_stream: true } => facts.streamed += 1,
        DigestKind::Head { is_stream: false } => facts.plain += 1,
        DigestKind::Retry(retry) => facts.retry = Some(*retry),
        DigestKind::IncomingRequest(_) | DigestKind::Event { .. } | DigestKind::Refused | DigestKind::Closed => {}
    }
}

/// At most this many exchanges are searched for the one that a request continues.
const LOOKED_AT: usize = 1000;

/// What a round has in common with the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RoundIdentity {
    /// The request state that the next round returns; it may be missing.
    pub(super) state: RequestKey,
    /// The names of the input requests.
    pub(super) names: RequestKey,
    /// The client that receives them.
    pub(super) client: RequestKey,
}

/// The exchanges of a session that ended with `input_required`, and the requests that continue them.
#[derive(Debug, Default)]
pub(super) struct RoundChains {
    /// Exchanges that no request has continued yet, by request and state.
    waiting: HashMap<(RequestKey, RequestKey), Vec<SuspendedRequest>>,
    links: Vec<RoundLink>,
}

#[derive(Clone, Copy, Debug)]
struct SuspendedRequest {
    number: u32,
    /// The place of the `input_required` result.
    end: u64,
    thread: RoundIdentity,
}

/// A request that continues one of several equal exchanges.
#[derive(Debug)]
struct RoundLink {
    key: RequestKey,
    before: SuspendedRequest,
    number: u32,
}

impl RoundChains {
    /// An exchange is left open at a place.
    pub(super) fn wait(&mut self, key: RequestKey, thread: RoundIdentity, number: u32, end: u64) {
        self.waiting.entry((key, thread.state)).or_default().push(SuspendedRequest { number, end, thread });
    }

    /// The waiting exchange that a request at a place continues. One of the same client and with the same input
    /// requests is preferred, and among those the last: a client that starts again has abandoned the earlier ones.
    pub(super) fn link_round(
        &mut self,
        key: RequestKey,
        thread: RoundIdentity,
        number: u32,
        place: u64,
    ) -> Option<u32> {
        let waiting = self.waiting.get_mut(&(key, thread.state))?;
        let from = waiting.len().saturating_sub(LOOKED_AT);
        let heard = (from..waiting.len()).filter(|at| waiting[*at].end < place);
        let rank = |at: &usize| {
            let SuspendedRequest { thread: other, end, .. } = waiting[*at];
            (other.client == thread.client, other.names == thread.names, end)
        };
        let found = heard.max_by_key(rank)?;
        let before = waiting.remove(found);
        if waiting.is_empty() {
            self.waiting.remove(&(key, thread.state));
        }
        self.links.push(RoundLink { key, before, number });
        Some(before.number)
    }

    /// Each continued exchange with its next round. Among equal exchanges, the first that got input requests is the
    /// first that is continued.
    pub(super) fn finish(mut self) -> Vec<(u32, u32)> {
        self.links.sort_by_key(|RoundLink { key, before, .. }| (*key, before.thread, before.end, before.number));
        let is_same =
            |one: &RoundLink, other: &RoundLink| (one.key, one.before.thread) == (other.key, other.before.thread);
        let mut linked = Vec::with_capacity(self.links.len());
        for same in self.links.chunk_by(is_same) {
            let mut numbers: Vec<u32> = same.iter().map(|link| link.number).collect();
            numbers.sort_unstable();
            linked.extend(same.iter().map(|link| link.before.number).zip(numbers));
        }
        linked
    }
}

impl IndexBuilder {
    /// The collection with all exchanges in the order in which their sessions began, if that is known of all of them.
    pub(super) fn in_order(mut self) -> IndexBuilder {
        let known: Option<Vec<_>> = self.started.iter().copied().collect();
        let Some(started) = known.filter(|started| !started.is_sorted()) else { return self };
        let mut order: Vec<usize> = (0..started.len()).collect();
        order.sort_by_key(|session| started[*session]);
        let end = u32::try_from(self.exchanges.len()).unwrap_or(NONE);
        let first = |session: usize| self.sessions.get(session).map_or(end, |facts| facts.first);
        let (mut places, mut sessions) = (vec![NONE; self.exchanges.len()], vec![NONE; started.len()]);
        let (mut firsts, mut next) = (Vec::with_capacity(order.len()), 0);
        for (place, session) in (0..).zip(&order) {
            sessions[*session] = place;
            firsts.push(next);
            for number in first(*session)..first(*session + 1) {
                places[number as usize] = next;
                next += 1;
            }
        }
        let moved = |number: u32| places.get(number as usize).copied().unwrap_or(NONE);
        for exchange in &mut self.exchanges {
            exchange.session = sessions.get(exchange.session as usize).copied().unwrap_or(NONE);
            exchange.next = moved(exchange.next);
        }
        self.things.iter_mut().for_each(|(number, _)| *number = moved(*number));
        self.keys.iter_mut().for_each(|(_, number)| *number = moved(*number));
        for members in self.alike.values_mut() {
            members.iter_mut().for_each(|number| *number = moved(*number));
            members.sort_unstable();
        }
        let mut exchanges: Vec<_> = (0..).zip(std::mem::take(&mut self.exchanges)).collect();
        exchanges.sort_by_key(|(number, _)| moved(*number));
        self.exchanges = exchanges.into_iter().map(|(_, exchange)| exchange).collect();
        let mut facts: Vec<_> = sessions.into_iter().zip(std::mem::take(&mut self.sessions)).collect();
        facts.sort_by_key(|(place, _)| *place);
        self.sessions =
            facts.into_iter().zip(firsts).map(|((_, facts), first)| SessionFacts { first, ..facts }).collect();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: RequestKey = RequestKey(7);
    const THREAD: RoundIdentity = RoundIdentity { state: RequestKey(1), names: RequestKey(2), client: RequestKey(3) };

    /// Which exchange is continued by which, where `(n, None)` gets `input_required` and `(n, Some(thread))` continues.
    fn linked(said: &[(u32, Option<RoundIdentity>)]) -> Vec<(u32, u32)> {
        let mut chains = RoundChains::default();
        for (number, back) in said {
            let place = u64::from(*number) * 2;
            match back {
                None => chains.wait(KEY, THREAD, *number, place + 1),
                Some(thread) => assert!(chains.link_round(KEY, *thread, *number, place).is_some()),
            }
        }
        chains.finish()
    }

    #[test]
    fn who_was_asked_first_comes_back_first() {
        let back = Some(THREAD);
        assert_eq!(linked(&[(0, None), (1, None), (2, back), (3, back)]), [(0, 2), (1, 3)]);
        assert_eq!(linked(&[(0, None), (1, back), (2, None), (3, back)]), [(0, 1), (2, 3)]);
    }

    #[test]
    fn what_was_given_up_stays_so() {
        let back = Some(THREAD);
        assert_eq!(linked(&[(0, None), (1, None), (2, back)]), [(1, 2)]);
        assert_eq!(linked(&[(0, None), (1, None), (2, None), (3, back), (4, back)]), [(1, 3), (2, 4)]);
    }

    #[test]
    fn other_names_go_on_where_nothing_fits_better_but_another_state_does_not() {
        let other = RoundIdentity { names: RequestKey(9), ..THREAD };
        assert_eq!(linked(&[(0, None), (1, Some(other))]), [(0, 1)]);
        let mut chains = RoundChains::default();
        chains.wait(KEY, THREAD, 0, 1);
        assert!(chains.link_round(KEY, RoundIdentity { state: RequestKey(9), ..THREAD }, 1, 2).is_none());
        assert!(chains.link_round(KEY, THREAD, 1, 0).is_none(), "nobody answers what is not asked yet");
    }
}
