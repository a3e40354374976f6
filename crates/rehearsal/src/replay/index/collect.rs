//! One session on its way into an index.

use std::collections::{BTreeMap, HashMap};

use rehearsal_core::exchange::Side;
use rehearsal_core::message::{Message, Method, Reply};
use rehearsal_core::protocol::{Revision, code, meta};
use rehearsal_core::trace::{Call, Entry, Fate, Inside, Likeness, RequestKey, Span, Start, What, subject};
use serde_json::Value;

use super::key::{about_key, method_key};
use super::layout::{Exchange, Facts, Flags, NONE, NOWHERE, ThingRecord};

/// How many exchanges are kept under a key that only finds what is alike.
const ALIKE: usize = 64;

/// How many tools, prompts or resources are kept under a method.
const SUBJECTS: usize = 10_000;

/// Everything that goes into an index.
#[derive(Debug, Default)]
pub(super) struct Collection {
    pub(super) exchanges: Vec<Exchange>,
    pub(super) things: Vec<(u32, ThingRecord)>,
    pub(super) keys: Vec<(u128, u32)>,
    pub(super) alike: HashMap<u128, Vec<u32>>,
    pub(super) sessions: Vec<Facts>,
}

/// One session, exchange by exchange, in the order in which they were asked.
#[derive(Debug, Default)]
pub(super) struct Session {
    revision: Option<Revision>,
    /// Those in hand, with the place of their answer.
    open: Vec<(u32, u64)>,
    /// The one that was answered last, and the place of the answer.
    settled: Option<(u32, u64)>,
    /// What belongs to nobody, by its place, until it is known who was in hand.
    free: BTreeMap<(u64, u64), ThingRecord>,
    /// Rounds that wait for the next, by what is asked and the state that comes back.
    rounds: HashMap<(RequestKey, Option<String>), u32>,
    /// Of each exchange in hand, what else the server said.
    things: HashMap<u32, Vec<ThingRecord>>,
    taken: u64,
}

impl Collection {
    /// A session begins.
    pub(super) fn start(&mut self, start: Start) -> Session {
        let first = u32::try_from(self.exchanges.len()).unwrap_or(NONE);
        let Start { session_id, server_info, metadata, .. } = start;
        self.sessions.push(Facts { id: session_id, server_info, metadata, first, ..Facts::default() });
        Session::default()
    }

    /// Notes what an exchange is like: others about the same, and the first about each thing of its method.
    fn alike(&mut self, method: &Method, subject: Option<&str>, number: u32) {
        let about = self.alike.entry(about_key(method, subject).0).or_default();
        let is_first = about.is_empty();
        if about.len() < ALIKE {
            about.push(number);
        }
        let all = self.alike.entry(method_key(method.as_str()).0).or_default();
        if is_first && all.len() < SUBJECTS {
            all.push(number);
        }
    }
}

impl Session {
    /// Takes a request of the client's with what belongs to it.
    pub(super) fn exchange(
        &mut self,
        all: &mut Collection,
        likeness: &Likeness,
        call: &Call,
        span: Span,
        inside: Vec<(Inside, Span)>,
    ) {
        let request = &call.request;
        self.settle(all, request.seq);
        let Some(method) = request.message.method().cloned() else { return };
        let number = u32::try_from(all.exchanges.len()).unwrap_or(NONE);
        let params = request.message.params().and_then(|params| params.value().ok());
        let key = likeness.key(&method, params.as_ref());
        let mut flags = Flags::default();
        if is_protocol(&method) {
            flags.add(Flags::PROTOCOL);
        }
        if self.goes_on(all, key, params.as_ref(), number) {
            flags.add(Flags::ROUND);
        } else if is_about_the_request_itself(call, params.as_ref()) {
            flags.add(Flags::PROTOCOL);
        } else {
            all.keys.push((key.0, number));
        }
        all.alike(&method, subject(&request.message).as_deref(), number);
        self.learn(all, call, &method);
        let revision = claimed(params.as_ref()).or(self.revision);
        let revision = revision.map_or(u8::MAX, |revision| revision as u8);
        let session = u32::try_from(all.sessions.len().saturating_sub(1)).unwrap_or(NONE);
        let exchange =
            Exchange { span, session, things: 0, thing_count: 0, next: NONE, after: NOWHERE, revision, flags };
        all.exchanges.push(exchange);
        if Fate::of(call) == Fate::InputRequired {
            let state = answered(call, "requestState");
            self.rounds.insert((key, state), number);
        }
        let mut things: Vec<ThingRecord> = Vec::new();
        for (thing, span) in inside {
            if let Some(facts) = all.sessions.last_mut() {
                transport(facts, &thing);
            }
            match closed_early(call, &thing, span).or_else(|| thing_record(&thing, span)) {
                // What a subscriber is told belongs to whoever made it happen.
                Some(record) if method == Method::SUBSCRIPTIONS_LISTEN => self.leave(record),
                Some(record) => things.push(record),
                None => {}
            }
        }
        self.things.entry(number).or_default().append(&mut things);
        if let Some(answer) = call.response.as_ref().filter(|_| method != Method::SUBSCRIPTIONS_LISTEN) {
            self.overlap(all, number, request.seq, answer.seq);
            self.open.push((number, answer.seq));
        } else {
            self.close(all, number);
        }
    }

    /// Takes what belongs to no exchange.
    pub(super) fn loose(&mut self, thing: &Inside, span: Span) {
        if let Some(record) = thing_record(thing, span) {
            self.leave(record);
        }
    }

    /// The session is over.
    pub(super) fn finish(mut self, all: &mut Collection) {
        self.settle(all, u64::MAX);
        while let Some((number, _)) = self.open.pop() {
            self.close(all, number);
        }
        let left: Vec<u32> = self.things.keys().copied().collect();
        left.into_iter().for_each(|number| self.close(all, number));
    }

    fn leave(&mut self, record: ThingRecord) {
        self.taken += 1;
        self.free.insert((record.seq, self.taken), record);
    }

    /// Notes who overtook whom.
    fn overlap(&mut self, all: &mut Collection, number: u32, place: u64, end: u64) {
        for (other, other_end) in &self.open {
            for number in [number, *other] {
                all.exchanges[number as usize].flags.add(Flags::OVERLAPS);
            }
            if end < *other_end {
                all.exchanges[*other as usize].after = place;
                for thing in self.things.get_mut(other).into_iter().flatten().filter(|thing| thing.seq > end) {
                    thing.after = place;
                }
            }
        }
    }

    /// Everything before this place has happened.
    fn settle(&mut self, all: &mut Collection, place: u64) {
        while let Some(((seq, _), record)) = self.free.first_key_value().map(|(key, record)| (*key, *record)) {
            if seq >= place {
                break;
            }
            self.free.pop_first();
            self.settle_open(all, seq);
            let next = self.open.iter().min_by_key(|(_, end)| *end).map(|(number, _)| *number);
            match (next, self.settled) {
                (Some(number), _) => self.things.entry(number).or_default().push(record),
                (None, Some((number, _))) => {
                    self.things.entry(number).or_default().push(ThingRecord { is_late: true, ..record });
                }
                // Nothing was asked yet, so nobody can tell when it was said.
                (None, None) => {}
            }
        }
        self.settle_open(all, place);
    }

    fn settle_open(&mut self, all: &mut Collection, place: u64) {
        let (done, open): (Vec<_>, Vec<_>) = self.open.iter().partition(|(_, end)| *end < place);
        self.open = open;
        for (number, end) in done {
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
    fn close(&mut self, all: &mut Collection, number: u32) {
        let mut things = self.things.remove(&number).unwrap_or_default();
        things.sort_by_key(|thing| thing.seq);
        all.things.extend(things.into_iter().map(|thing| (number, thing)));
    }

    /// Whether this is the next round of an exchange that waits for it.
    fn goes_on(&mut self, all: &mut Collection, key: RequestKey, params: Option<&Value>, number: u32) -> bool {
        let param = |key: &str| params.and_then(|params| params.get(key));
        let state = param("requestState").map(ToString::to_string);
        if state.is_none() && param("inputResponses").is_none() {
            return false;
        }
        match self.rounds.remove(&(key, state)) {
            Some(before) => {
                all.exchanges[before as usize].next = number;
                true
            }
            None => false,
        }
    }

    /// Learns what the handshake settled.
    fn learn(&mut self, all: &mut Collection, call: &Call, method: &Method) {
        let name = match *method == Method::INITIALIZE {
            true => call.request.message.params().and_then(|params| params.at(&["clientInfo", "name"])),
            false => call.request.message.params().and_then(|params| params.at(&["_meta", meta::CLIENT_INFO, "name"])),
        };
        if let Some(facts) = all.sessions.last_mut().filter(|facts| facts.client.is_none()) {
            facts.client = name.and_then(|name| name.text());
        }
        if *method == Method::INITIALIZE {
            let version = answered(call, "protocolVersion").and_then(|text| serde_json::from_str::<String>(&text).ok());
            self.revision = version.and_then(|version| version.parse().ok());
        }
    }
}

/// Whether a request was refused for what its client claimed or sent as headers, which whoever serves finds out anew.
fn is_about_the_request_itself(call: &Call, params: Option<&Value>) -> bool {
    let response = call.response.as_ref().and_then(|answer| answer.message.as_response());
    let Some(Reply::Error(error)) = response.map(|response| &response.reply) else { return false };
    let claims = params.and_then(|params| params.get("_meta")).and_then(Value::as_object);
    let has = |key: &str| claims.is_some_and(|claims| claims.contains_key(key));
    let half = has(meta::PROTOCOL_VERSION) != has(meta::CLIENT_CAPABILITIES);
    matches!(error.code, code::HEADER_MISMATCH | code::UNSUPPORTED_VERSION)
        || half && error.code == code::INVALID_PARAMS
}

/// Learns how HTTP was spoken.
fn transport(facts: &mut Facts, thing: &Inside) {
    let Inside::Entry(entry) = thing else { return };
    match &entry.what {
        What::Http { from: Side::Server, head, .. } if head.status == Some(200) => {
            match head.headers.get("content-type").map(|kind| kind.starts_with("text/event-stream")) {
                Some(true) => facts.streamed += 1,
                Some(false) => facts.plain += 1,
                None => {}
            }
        }
        What::Event { retry: Some(retry), .. } => facts.retry = Some(*retry),
        What::Http { .. }
        | What::Event { .. }
        | What::Message { .. }
        | What::ChannelEnded { .. }
        | What::Stderr { .. }
        | What::Piece { .. }
        | What::Ended(_) => {}
    }
}

/// The end of the stream of a request that was answered elsewhere, when its client came back.
fn closed_early(call: &Call, thing: &Inside, span: Span) -> Option<ThingRecord> {
    let Inside::Entry(Entry { seq, what: What::ChannelEnded { channel, .. }, .. }) = thing else { return None };
    let answer = call.response.as_ref()?;
    let early = *channel == call.channel() && answer.channel != *channel && *seq < answer.seq;
    early.then_some(ThingRecord { span, seq: *seq, after: NOWHERE, is_call: false, is_late: false })
}

/// The text of a member of the result.
fn answered(call: &Call, key: &str) -> Option<String> {
    let Reply::Result(result) = &call.response.as_ref()?.message.as_response()?.reply else { return None };
    result.field(key).map(|value| value.as_str().to_owned())
}

/// The version that a request claims, since 2026-07-28.
fn claimed(params: Option<&Value>) -> Option<Revision> {
    params?.get("_meta")?.get(meta::PROTOCOL_VERSION)?.as_str()?.parse().ok()
}

fn is_protocol(method: &Method) -> bool {
    let name = method.as_str();
    matches!(
        name,
        "initialize"
            | "ping"
            | "server/discover"
            | "subscriptions/listen"
            | "logging/setLevel"
            | "tools/list"
            | "prompts/list"
            | "resources/list"
            | "resources/templates/list"
    )
}

/// What is replayed of a thing: what the server says, and that the client gave up.
fn thing_record(thing: &Inside, span: Span) -> Option<ThingRecord> {
    let record = |seq, is_call| ThingRecord { span, seq, after: NOWHERE, is_call, is_late: false };
    match thing {
        Inside::Call(call) if call.asker == Side::Server => Some(record(call.request.seq, true)),
        Inside::Call(_) => None,
        Inside::Entry(Entry { seq, what: What::Message { from, message, .. }, .. }) => {
            is_told(*from, message).then(|| record(*seq, false))
        }
        Inside::Entry(_) => None,
    }
}

fn is_told(from: Side, message: &Message) -> bool {
    let Some(notification) = message.as_notification() else { return false };
    match from {
        Side::Client => notification.method == Method::CANCELLED,
        // These are made anew for each client.
        Side::Server => {
            notification.method != Method::SUBSCRIPTION_ACKNOWLEDGED && notification.method != Method::CANCELLED
        }
    }
}
