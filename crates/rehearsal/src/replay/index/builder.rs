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

use super::event_digest::{AnsweredOn, DigestKind, EventDigest, RequestDigest, SessionDigests, VersionRefusal};
use super::lookup::{method_key, refused_key};
use super::records::{EventRecord, ExchangeRecord, Flags, NONE, SessionFacts};

/// At most this many exchanges are kept under a key that finds similar requests.
const MAX_SIMILAR: usize = 1_000;

/// At most this many tools, prompts or resources are kept under a method.
const MAX_SUBJECTS: usize = 10_000;

/// Everything that goes into an index.
#[derive(Debug, Default)]
pub(super) struct IndexBuilder {
    pub(super) exchanges: Vec<ExchangeRecord>,
    pub(super) events: Vec<(u32, EventRecord)>,
    pub(super) keys: Vec<(u128, u32)>,
    pub(super) similar: HashMap<u128, Vec<u32>>,
    pub(super) sessions: Vec<SessionFacts>,
    /// When each of them began, where that is known.
    pub(super) started: Vec<Option<Timestamp>>,
    /// Of the session that is read.
    links: LinkBuilder,
    /// The key of all requests of a method, by the key of all requests about one subject.
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
    last_answered: Option<(u32, u64)>,
    /// Server messages that belong to no request, by place, until the active exchanges at that place are known.
    free: BTreeMap<(u64, u64), EventRecord>,
    /// Server messages before the first response, until the next request.
    early: Vec<EventRecord>,
    /// Rounds that wait for the next.
    chains: RoundChains,
    /// The related events of each active exchange.
    events: HashMap<u32, Vec<EventRecord>>,
    count: u64,
}

/// An exchange that was not answered yet.
#[derive(Clone, Copy, Debug)]
struct PendingExchange {
    number: u32,
    /// The place of its answer.
    end: u64,
}

impl IndexBuilder {
    /// Starts a session.
    pub(super) fn start(&mut self, start: SessionStart) {
        let first = u32::try_from(self.exchanges.len()).unwrap_or(NONE);
        let SessionStart { session_id, server_info, metadata, started_at } = start;
        self.started.push(started_at);
        self.links = LinkBuilder::default();
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
        if let (DigestKind::Request(request), Some(method)) = (&digest.what, request.method()) {
            self.methods.entry(request.about.0).or_insert_with(|| method_key(method.as_str()).0);
        }
        Some(digest)
    }

    /// Builds the digest of an entry that is not a call.
    pub(super) fn digest_entry(&mut self, entry: &Entry, span: FileSpan) -> Option<EventDigest> {
        self.acknowledge(entry);
        EventDigest::of_entry(entry, span, &mut self.links)
    }

    /// Stores the subscription filter that a server acknowledged.
    fn acknowledge(&mut self, entry: &Entry) {
        let EntryBody::Message { from: Side::Server, message, .. } = &entry.what else { return };
        let notification = message.as_notification().filter(|it| it.method == Method::SUBSCRIPTION_ACKNOWLEDGED);
        let filter = notification.and_then(|it| it.param(&["notifications"])?.value().ok());
        if let (Some(Value::Object(filter)), Some(facts)) = (filter, self.sessions.last_mut()) {
            let known = facts.acknowledged.get_or_insert_default();
            for (key, value) in filter {
                match (known.get_mut(&key), value) {
                    (Some(Value::Array(known)), Value::Array(values)) => {
                        let new: Vec<_> = values.into_iter().filter(|it| !known.contains(it)).collect();
                        known.extend(new);
                    }
                    (_, value) => drop(known.insert(key, value)),
                }
            }
        }
    }

    /// Adds the digests of a session that has ended.
    pub(super) fn finish(&mut self, digests: SessionDigests) {
        let mut session = SessionIndexer::default();
        for OrderedEvent { event, inside } in digests.in_order() {
            match &event.what {
                DigestKind::Request(request) => session.exchange(self, &event, request, inside),
                // These belong to no exchange.
                DigestKind::Event { .. }
                | DigestKind::Head { .. }
                | DigestKind::Refused
                | DigestKind::Retry(_)
                | DigestKind::Closed => {
                    event.event_record().into_iter().for_each(|record| session.leave(record));
                }
            }
        }
        session.finish(self);
    }

    /// Adds an exchange to those about the same subject, and the first one about each subject to those of its method.
    fn similar(&mut self, about: RequestKey, number: u32) {
        let same = self.similar.entry(about.0).or_default();
        if same.len() < MAX_SIMILAR {
            same.push(number);
        }
        if let ([_], Some(method)) = (&same[..], self.methods.get(&about.0)) {
            let all = self.similar.entry(*method).or_default();
            if all.len() < MAX_SUBJECTS {
                all.push(number);
            }
        }
    }
}

impl SessionIndexer {
    /// Adds a client request with its related events.
    fn exchange(
        &mut self,
        all: &mut IndexBuilder,
        call: &EventDigest,
        request: &RequestDigest,
        inside: Vec<EventDigest>,
    ) {
        let place = call.link.seq();
        self.close_until(all, place);
        let number = u32::try_from(all.exchanges.len()).unwrap_or(NONE);
        // Before 2026-07-28, an HTTP refusal never depends on the content of the request.
        let is_refused =
            request.claimed.is_none() && inside.iter().any(|event| matches!(event.what, DigestKind::Refused));
        let mut flags = Flags::default();
        if request.is_protocol {
            flags.add(Flags::PROTOCOL);
        }
        if request.answered == AnsweredOn::Never {
            flags.add(Flags::UNANSWERED);
        }
        // An acknowledged subscription may end with an error later, as when its client disconnects.
        if request.listens && request.is_error && !all.links.is_acknowledged(&call.link) {
            flags.add(Flags::LISTEN_REFUSED);
        }
        let from = request.rounds.as_ref().and_then(|rounds| rounds.from);
        let before = from.and_then(|identity| self.chains.link_round(request.key, identity, number, place));
        if before.is_some() {
            flags.add(Flags::ROUND);
        } else if request.refused == Some(VersionRefusal::Version) {
            flags.add(Flags::PROTOCOL);
            all.keys.push((refused_key(request.key).0, number));
        } else if request.refused == Some(VersionRefusal::Itself) || is_refused {
            flags.add(Flags::PROTOCOL);
        } else {
            all.keys.push((request.key.0, number));
        }
        all.similar(request.about, number);
        self.revision = request.agreed.or(self.revision);
        let revision = request.claimed.or(self.revision).map_or(u8::MAX, |revision| revision as u8);
        let session = u32::try_from(all.sessions.len().saturating_sub(1)).unwrap_or(NONE);
        let (span, next) = (call.span, NONE);
        all.exchanges.push(ExchangeRecord { span, session, events: 0, event_count: 0, next, revision, flags });
        if let Some(identity) = request.rounds.as_ref().and_then(|rounds| rounds.to) {
            self.chains.wait(request.key, identity, number, call.link.completed_at());
        }
        for event in &inside {
            if let Some(facts) = all.sessions.last_mut() {
                transport(facts, &event.what);
            }
        }
        if request.answered == AnsweredOn::Never && !request.listens {
            // A replay refuses this request, so its related events are never sent.
            self.unanswered = Some(place);
            return;
        }
        // A replay sends the server messages before the first request as soon as a client may receive them: after the
        // handshake, or with the first answer.
        let mut events = if request.pings { Vec::new() } else { std::mem::take(&mut self.early) };
        events.iter_mut().for_each(|event| event.is_late = request.is_protocol);
        let has_stream = inside.iter().any(|event| event.opens_stream(call));
        for event in inside {
            match event.closed_early(call, request).filter(|_| has_stream).or_else(|| event.event_record()) {
                // A change notice belongs to the call that caused it, and each client pings at its own times.
                Some(record) if request.listens || request.pings => self.leave(record),
                Some(record) => events.push(record),
                None => {}
            }
        }
        self.events.entry(number).or_default().append(&mut events);
        if request.listens {
            // The next notifications are sent because of this subscription.
            if let Some((before, _)) = self.last_answered.replace((number, place)) {
                self.close(all, before);
            }
        } else if !request.pings {
            self.open.push(PendingExchange { number, end: call.link.completed_at() });
        }
    }

    /// Ends the session.
    fn finish(mut self, all: &mut IndexBuilder) {
        self.close_until(all, u64::MAX);
        while let Some(PendingExchange { number, .. }) = self.open.pop() {
            self.close(all, number);
        }
        let left: Vec<u32> = self.events.keys().copied().collect();
        left.into_iter().for_each(|number| self.close(all, number));
        for (number, next) in self.chains.finish() {
            all.exchanges[number as usize].next = next;
        }
        if let Some(facts) = all.sessions.last_mut() {
            facts.undelivered = self.early.len() as u64;
        }
    }

    fn leave(&mut self, record: EventRecord) {
        self.count += 1;
        self.free.insert((record.seq, self.count), record);
    }

    /// Assigns a related event to an exchange.
    fn attach_to(&mut self, number: u32, record: EventRecord) {
        self.events.entry(number).or_default().push(record);
    }

    /// Assigns the server messages before this place, and closes the exchanges that were answered before it.
    fn close_until(&mut self, all: &mut IndexBuilder, place: u64) {
        while let Some(((seq, _), record)) = self.free.first_key_value().map(|(key, record)| (*key, *record)) {
            if seq >= place {
                break;
            }
            self.free.pop_first();
            self.close_answered(all, seq);
            let latest = self.open.iter().max_by_key(|other| other.number);
            // A server request that is sent while only an unanswered call is pending belongs to that call.
            let is_of_unanswered = record.is_call && self.unanswered > self.last_answered.map(|(_, place)| place);
            match (latest.copied(), self.last_answered) {
                (Some(next), _) => self.attach_to(next.number, record),
                (None, _) if is_of_unanswered => {}
                (None, Some((number, _))) => self.attach_to(number, EventRecord { is_late: true, ..record }),
                (None, None) => self.early.push(record),
            }
        }
        self.close_answered(all, place);
    }

    fn close_answered(&mut self, all: &mut IndexBuilder, place: u64) {
        let (done, open): (Vec<_>, Vec<_>) = self.open.iter().partition(|other| other.end < place);
        self.open = open;
        for PendingExchange { number, end, .. } in done {
            if self.last_answered.is_none_or(|(_, last)| last < end) {
                if let Some((before, _)) = self.last_answered.replace((number, end)) {
                    self.close(all, before);
                }
            } else {
                self.close(all, number);
            }
        }
    }

    /// Stores the related events of an exchange that gets no more of them.
    fn close(&mut self, all: &mut IndexBuilder, number: u32) {
        let mut events = self.events.remove(&number).unwrap_or_default();
        events.sort_by_key(|event| event.seq);
        all.events.extend(events.into_iter().map(|event| (number, event)));
    }
}

/// Counts how HTTP was used.
fn transport(facts: &mut SessionFacts, what: &DigestKind) {
    match what {
        DigestKind::Head { is_stream: true } => facts.streamed += 1,
        DigestKind::Head { is_stream: false } => facts.plain += 1,
        DigestKind::Retry(retry) => facts.retry = Some(*retry),
        DigestKind::Request(_) | DigestKind::Event { .. } | DigestKind::Refused | DigestKind::Closed => {}
    }
}

/// At most this many exchanges are searched for the one that a request continues.
const MAX_SCANNED: usize = 1000;

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
    waiting: HashMap<(RequestKey, RequestKey), Vec<WaitingRound>>,
    links: Vec<RoundLink>,
}

#[derive(Clone, Copy, Debug)]
struct WaitingRound {
    number: u32,
    /// The place of the `input_required` result.
    end: u64,
    identity: RoundIdentity,
}

/// A request that continues one of several equal exchanges.
#[derive(Debug)]
struct RoundLink {
    key: RequestKey,
    before: WaitingRound,
    number: u32,
}

impl RoundChains {
    /// An exchange is left open at a place.
    pub(super) fn wait(&mut self, key: RequestKey, identity: RoundIdentity, number: u32, end: u64) {
        self.waiting.entry((key, identity.state)).or_default().push(WaitingRound { number, end, identity });
    }

    /// The waiting exchange that a request at a place continues. One of the same client and with the same input
    /// requests is preferred, and among those the last: a client that starts again has abandoned the earlier ones.
    pub(super) fn link_round(
        &mut self,
        key: RequestKey,
        identity: RoundIdentity,
        number: u32,
        place: u64,
    ) -> Option<u32> {
        let waiting = self.waiting.get_mut(&(key, identity.state))?;
        let from = waiting.len().saturating_sub(MAX_SCANNED);
        let earlier = (from..waiting.len()).filter(|at| waiting[*at].end < place);
        let rank = |at: &usize| {
            let WaitingRound { identity: other, end, .. } = waiting[*at];
            (other.client == identity.client, other.names == identity.names, end)
        };
        let found = earlier.max_by_key(rank)?;
        let before = waiting.remove(found);
        if waiting.is_empty() {
            self.waiting.remove(&(key, identity.state));
        }
        self.links.push(RoundLink { key, before, number });
        Some(before.number)
    }

    /// Each continued exchange with its next round. Among equal exchanges, the first that got input requests is the
    /// first that is continued.
    pub(super) fn finish(mut self) -> Vec<(u32, u32)> {
        self.links.sort_by_key(|RoundLink { key, before, .. }| (*key, before.identity, before.end, before.number));
        let is_same =
            |one: &RoundLink, other: &RoundLink| (one.key, one.before.identity) == (other.key, other.before.identity);
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
        self.events.iter_mut().for_each(|(number, _)| *number = moved(*number));
        self.keys.iter_mut().for_each(|(_, number)| *number = moved(*number));
        for members in self.similar.values_mut() {
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

    /// Which exchange is continued by which, where `(n, None)` gets `input_required` and `(n, Some(identity))` continues.
    fn linked(rounds: &[(u32, Option<RoundIdentity>)]) -> Vec<(u32, u32)> {
        let mut chains = RoundChains::default();
        for (number, back) in rounds {
            let place = u64::from(*number) * 2;
            match back {
                None => chains.wait(KEY, THREAD, *number, place + 1),
                Some(identity) => assert!(chains.link_round(KEY, *identity, *number, place).is_some()),
            }
        }
        chains.finish()
    }

    #[test]
    fn the_round_that_was_opened_first_is_continued_first() {
        let back = Some(THREAD);
        assert_eq!(linked(&[(0, None), (1, None), (2, back), (3, back)]), [(0, 2), (1, 3)]);
        assert_eq!(linked(&[(0, None), (1, back), (2, None), (3, back)]), [(0, 1), (2, 3)]);
    }

    #[test]
    fn an_abandoned_round_is_never_continued() {
        let back = Some(THREAD);
        assert_eq!(linked(&[(0, None), (1, None), (2, back)]), [(1, 2)]);
        assert_eq!(linked(&[(0, None), (1, None), (2, None), (3, back), (4, back)]), [(1, 3), (2, 4)]);
    }

    #[test]
    fn a_round_continues_with_other_names_but_not_another_state() {
        let other = RoundIdentity { names: RequestKey(9), ..THREAD };
        assert_eq!(linked(&[(0, None), (1, Some(other))]), [(0, 1)]);
        let mut chains = RoundChains::default();
        chains.wait(KEY, THREAD, 0, 1);
        assert!(chains.link_round(KEY, RoundIdentity { state: RequestKey(9), ..THREAD }, 1, 2).is_none());
        assert!(chains.link_round(KEY, THREAD, 1, 0).is_none(), "no request continues what is not open yet");
    }
}
