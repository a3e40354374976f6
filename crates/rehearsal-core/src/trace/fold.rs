//! Folds a journal into a trace: takes entries, returns calls and the other entries.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::{Entry, EntryBody, Part, PlacedMessage, RecordedCall, SessionEnd, SessionStart};
use crate::exchange::{
    Channel, Exchange, ExchangeKey, ExchangeLimit, OpenChannels, Pairing, PairingEvent, Side, TimedMessage,
};
use crate::message::{Body, GarbledReason, Message, Method, Reply};
use crate::protocol::meta;

/// Limits of a session in memory while it is folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoldLimit {
    /// Maximum number of pending requests.
    pub requests: usize,
    /// Maximum number of bytes of the pending requests.
    pub bytes: usize,
}

impl Default for FoldLimit {
    fn default() -> FoldLimit {
        FoldLimit { requests: 100_000, bytes: 64 << 20 }
    }
}

/// Maximum number of parts that wait for the name of the server.
const MAX_HELD: usize = 64;

/// Maximum number of bytes that are kept of a line that has not ended.
const PIECES: usize = 64 << 20;

/// Pairs the entries of one session, in recorded order, and returns its parts.
///
/// Every message is in exactly one part. The fold keeps the partial line of each side and the pending requests. Beyond
/// the [limit](FoldLimit) the oldest request ends without a response; its response, if it arrives later, is an entry of
/// its own.
#[derive(Debug)]
pub struct JournalFold {
    /// The start, until the server has sent its name.
    start: Option<SessionStart>,
    started_at: Option<Timestamp>,
    held: Vec<Part>,
    pairing: Pairing<MessageMeta>,
    /// The pending requests, oldest first.
    open: BTreeMap<(u64, u32), ExchangeKey>,
    bytes: usize,
    elsewhere: OpenChannels,
    /// The partial message of each side on each channel.
    pieces: BTreeMap<(Side, Channel), Vec<u8>>,
    /// The next unused sequence number.
    next: u64,
    last: Duration,
    end: Option<(u64, Duration, SessionEnd)>,
    limit: FoldLimit,
}

/// The metadata of a message.
#[derive(Clone, Debug, Default)]
struct MessageMeta {
    seq: u64,
    item: Option<u32>,
    event_id: Option<String>,
}

impl JournalFold {
    /// Begins a session.
    pub fn new(start: SessionStart) -> JournalFold {
        JournalFold::with_limit(start, FoldLimit::default())
    }

    /// Begins a session with another limit.
    pub fn with_limit(start: SessionStart, limit: FoldLimit) -> JournalFold {
        JournalFold {
            started_at: start.started_at,
            start: Some(start),
            held: Vec::new(),
            // Notifications are entries of their own, so that an exchange is never larger than its two messages.
            pairing: Pairing::new(ExchangeLimit { notifications: 0, bytes: 0 }),
            open: BTreeMap::new(),
            bytes: 0,
            elsewhere: OpenChannels::default(),
            pieces: BTreeMap::new(),
            next: 0,
            last: Duration::ZERO,
            end: None,
            limit,
        }
    }

    /// How many requests are pending.
    pub fn open_count(&self) -> usize {
        self.open.len()
    }

    /// Takes the next entry; the parts that it completes are appended to `parts`.
    pub fn entry(&mut self, entry: Entry, parts: &mut Vec<Part>) {
        self.last = self.last.max(entry.at);
        let Entry { seq, item, at, what } = entry;
        if !matches!(what, EntryBody::Piece { .. } | EntryBody::Ended(_)) {
            self.next = self.next.max(seq.saturating_add(1));
        }
        match what {
            EntryBody::Message { from, channel, message, event_id } => {
                self.pieces.remove(&(from, channel));
                if let Body::Batch(messages) = message.body() {
                    for (item, message) in (0..).zip(messages) {
                        let place = MessageMeta { seq, item: Some(item), event_id: event_id.clone() };
                        self.message(from, channel, at, message.clone(), place, parts);
                    }
                } else {
                    self.message(from, channel, at, message, MessageMeta { seq, item, event_id }, parts);
                }
            }
            EntryBody::Ended(end) => {
                if let Some((seq, at, end)) = self.end.replace((seq, at, end)) {
                    self.push(Part::Entry(Entry { seq, item, at, what: EntryBody::Ended(end) }), parts);
                }
            }
            EntryBody::ChannelEnded { channel, .. } => {
                self.elsewhere.ended(channel);
                // The recorder has already written the partial message as an entry.
                self.pieces.retain(|(_, other), _| *other != channel);
                self.push(Part::Entry(Entry { seq, item, at, what }), parts);
            }
            EntryBody::Piece { from, channel, offset, bytes } => {
                let kept: usize = self.pieces.values().map(Vec::len).sum();
                let line = self.pieces.entry((from, channel)).or_default();
                let others = kept - line.len();
                line.truncate(offset);
                let room = PIECES.saturating_sub(others + line.len()).min(bytes.len());
                line.extend_from_slice(&bytes[..room]);
            }
            EntryBody::Http { .. } | EntryBody::Event { .. } | EntryBody::Stderr { .. } => {
                self.push(Part::Entry(Entry { seq, item, at, what }), parts);
            }
        }
    }

    /// Ends the session: pending requests end without a response, and a partial line becomes a garbled message.
    /// `otherwise` is the end of the session if no entry has it.
    pub fn finish(mut self, otherwise: Option<SessionEnd>, parts: &mut Vec<Part>) {
        for ((from, channel), line) in std::mem::take(&mut self.pieces) {
            if line.is_empty() {
                continue;
            }
            let message = Message::garbled(line, GarbledReason::PartialLine);
            let place = MessageMeta { seq: self.next, ..MessageMeta::default() };
            self.next = self.next.saturating_add(1);
            self.message(from, channel, self.last, message, place, parts);
        }
        let unanswered: Vec<ExchangeKey> = std::mem::take(&mut self.open).into_values().collect();
        for key in unanswered {
            if let Some((exchange, place)) = self.pairing.abandon(&key) {
                self.call(exchange, place, None, parts);
            }
        }
        self.release(parts);
        let (at, end) = match self.end.take() {
            Some((_, at, end)) => (at, Some(end)),
            None => (self.last, otherwise),
        };
        let ended_at = self.started_at.and_then(|started| started.checked_add(at).ok());
        parts.push(Part::Finish { ended_at, end });
    }

    fn message(
        &mut self,
        from: Side,
        channel: Channel,
        at: Duration,
        message: Message,
        place: MessageMeta,
        parts: &mut Vec<Part>,
    ) {
        let request_channel = match message.body() {
            Body::Response(response) => self.elsewhere.request_channel(from.other(), channel, response.id.as_ref()),
            Body::Request(_) | Body::Notification(_) | Body::Batch(_) | Body::Garbled(_) => channel,
        };
        match self.pairing.step(from, request_channel, at, message.clone()) {
            PairingEvent::Opened { key, displaced } => {
                if let Some((exchange, place)) = displaced {
                    self.close(&exchange, &place);
                    self.call(exchange, place, None, parts);
                }
                self.opened(key, message.raw().len(), place, parts);
            }
            PairingEvent::Completed { exchange, tag } => {
                self.close(&exchange, &tag);
                let response =
                    PlacedMessage { seq: place.seq, item: place.item, at, channel, message, event_id: place.event_id };
                self.call(exchange, tag, Some(response), parts);
            }
            PairingEvent::Cancelled { expired, .. } => {
                self.loose(from, channel, at, message, place, parts);
                if let Some((exchange, place)) = expired {
                    self.close(&exchange, &place);
                    self.call(exchange, place, None, parts);
                }
            }
            // A batch inside a batch is garbled, so there is none here.
            PairingEvent::Attached { .. } | PairingEvent::Unpaired { .. } | PairingEvent::Batch(_) => {
                self.loose(from, channel, at, message, place, parts);
            }
        }
    }

    fn opened(&mut self, key: ExchangeKey, bytes: usize, place: MessageMeta, parts: &mut Vec<Part>) {
        if let Some(tag) = self.pairing.tag_mut(&key) {
            *tag = place.clone();
        }
        self.elsewhere.opened(&key);
        self.open.insert((place.seq, place.item.unwrap_or(0)), key);
        self.bytes += bytes;
        while self.open.len() > self.limit.requests || self.bytes > self.limit.bytes {
            let Some((_, oldest)) = self.open.pop_first() else { break };
            let Some((exchange, place)) = self.pairing.abandon(&oldest) else { continue };
            self.close(&exchange, &place);
            self.call(exchange, place, None, parts);
        }
    }

    fn close(&mut self, exchange: &Exchange, place: &MessageMeta) {
        self.open.remove(&(place.seq, place.item.unwrap_or(0)));
        self.bytes = self.bytes.saturating_sub(exchange.request.message.raw().len());
        self.elsewhere.closed(&exchange.key);
    }

    fn call(
        &mut self,
        exchange: Box<Exchange>,
        place: MessageMeta,
        response: Option<PlacedMessage>,
        parts: &mut Vec<Part>,
    ) {
        let Exchange { key, request: TimedMessage { at, message }, .. } = *exchange;
        let MessageMeta { seq, item, event_id } = place;
        let request = PlacedMessage { seq, item, at, channel: key.channel, message, event_id };
        let call = RecordedCall { asker: key.asker, request, response };
        if let Some(start) = &mut self.start
            && let Some(info) = identity(&call)
        {
            for (name, value) in info {
                start.server_info.entry(name).or_insert(value);
            }
            self.release(parts);
        }
        self.push(Part::Call(Box::new(call)), parts);
    }

    fn loose(
        &mut self,
        from: Side,
        channel: Channel,
        at: Duration,
        message: Message,
        MessageMeta { seq, item, event_id }: MessageMeta,
        parts: &mut Vec<Part>,
    ) {
        let what = EntryBody::Message { from, channel, message, event_id };
        self.push(Part::Entry(Entry { seq, item, at, what }), parts);
    }

    /// Returns a part, after the start.
    fn push(&mut self, part: Part, parts: &mut Vec<Part>) {
        if self.start.is_none() {
            parts.push(part);
            return;
        }
        self.held.push(part);
        if self.held.len() >= MAX_HELD {
            self.release(parts);
        }
    }

    fn release(&mut self, parts: &mut Vec<Part>) {
        if let Some(start) = self.start.take() {
            parts.push(Part::Start(start));
            parts.append(&mut self.held);
        }
    }
}

/// The name, title and version that the server sends in the response to this call. Since 2026-07-28 any response may
/// contain them.
pub(super) fn identity(call: &RecordedCall) -> Option<Vec<(String, Value)>> {
    let method = call.request.message.method()?;
    let Reply::Result(result) = &call.response.as_ref()?.message.as_response()?.reply else { return None };
    let is_first = *method == Method::INITIALIZE || *method == Method::DISCOVER;
    let info = result.at(&["_meta", meta::SERVER_INFO]);
    let info = info.or_else(|| result.field("serverInfo").filter(|_| is_first));
    let info = info.filter(|_| call.asker == Side::Client)?;
    let mut facts = Vec::new();
    for name in ["name", "title", "version"] {
        if let Some(text) = info.field(name).and_then(|value| value.text()) {
            facts.push((name.to_owned(), Value::from(text)));
        }
    }
    (!facts.is_empty()).then_some(facts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Map;

    struct Fixture {
        fold: JournalFold,
        seq: u64,
        parts: Vec<Part>,
    }

    impl Fixture {
        fn new(limit: FoldLimit) -> Fixture {
            let started_at = Some("2026-07-28T12:00:00Z".parse().unwrap());
            let start =
                SessionStart { session_id: "a".into(), server_info: Map::new(), started_at, metadata: Map::new() };
            Fixture { fold: JournalFold::with_limit(start, limit), seq: 0, parts: Vec::new() }
        }

        fn happens(&mut self, what: EntryBody) {
            self.fold.entry(Entry::new(self.seq, Duration::from_millis(self.seq), what), &mut self.parts);
            self.seq += 1;
        }

        fn sends(&mut self, from: Side, channel: u64, text: &str) {
            let message = Message::parse(text.to_owned());
            self.happens(EntryBody::Message { from, channel: Channel(channel), message, event_id: None });
        }

        fn ends(mut self) -> Vec<Part> {
            self.fold.finish(None, &mut self.parts);
            self.parts
        }

        /// `request-response` of each call by sequence number, and the numbers of the other entries.
        #[track_caller]
        fn shape(self) -> String {
            let words = self.ends().into_iter().filter_map(|part| match part {
                Part::Start(_) | Part::Finish { .. } => None,
                Part::Call(call) => {
                    let answer = call.response.map_or("?".to_owned(), |response| response.seq.to_string());
                    Some(format!("{}-{answer}", call.request.seq))
                }
                Part::Entry(entry) => Some(entry.seq.to_string()),
            });
            words.collect::<Vec<_>>().join(" ")
        }
    }

    impl Default for Fixture {
        fn default() -> Fixture {
            Fixture::new(FoldLimit::default())
        }
    }

    fn call(id: u32) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call"}}"#)
    }

    fn result(id: u32) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
    }

    use Side::{Client, Server};

    #[test]
    fn late_duplicate_and_unexpected_responses_and_reused_ids_lose_nothing() {
        let mut fixture = Fixture::default();
        fixture.sends(Client, 0, &call(1));
        fixture.sends(Client, 0, &call(2));
        fixture.sends(Server, 0, &result(2));
        fixture.sends(Server, 0, &result(2));
        fixture.sends(Client, 0, &call(1));
        fixture.sends(Server, 0, &result(1));
        fixture.sends(Server, 0, &result(9));
        fixture.sends(Client, 0, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        fixture.sends(Server, 0, "noise");
        fixture.sends(Client, 0, &call(5));
        fixture.sends(Client, 0, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#);
        fixture.sends(Server, 0, &result(5));
        fixture.sends(Client, 0, &call(6));
        assert_eq!(fixture.shape(), "1-2 3 0-? 4-5 6 7 8 10 9-11 12-?");
    }

    #[test]
    fn a_client_response_in_its_own_post_is_paired() {
        let mut fixture = Fixture::default();
        fixture.sends(Client, 1, &call(1));
        fixture.sends(Server, 1, &call(1));
        fixture.sends(Client, 2, &result(1));
        fixture.sends(Server, 1, &result(1));
        let parts = fixture.ends();
        let Part::Call(call) = &parts[1] else { panic!("{parts:?}") };
        let answer = call.response.as_ref().unwrap();
        assert_eq!((call.asker, call.channel(), answer.channel, answer.seq), (Server, Channel(1), Channel(2), 2));
    }

    #[test]
    fn a_response_on_a_resumed_stream_is_paired() {
        let mut fixture = Fixture::default();
        fixture.sends(Client, 1, &call(7));
        fixture.happens(EntryBody::ChannelEnded { channel: Channel(1), why: Some("cut".into()) });
        fixture.sends(Server, 2, &result(7));
        assert_eq!(fixture.shape(), "1 0-2");
    }

    #[test]
    fn a_second_response_does_not_complete_the_request_of_another_client() {
        let mut fixture = Fixture::default();
        fixture.sends(Client, 1, &call(1));
        fixture.sends(Client, 2, &call(1));
        fixture.sends(Server, 1, &result(1));
        fixture.sends(Server, 1, &result(1));
        fixture.sends(Server, 2, &result(1));
        assert_eq!(fixture.shape(), "0-2 3 1-4");
    }

    #[test]
    fn the_messages_of_a_batch_are_paired_one_by_one() {
        let mut fixture = Fixture::default();
        fixture.sends(Client, 0, &format!("[{},{},5]", call(1), call(2)));
        fixture.sends(Server, 0, &format!("[{},{}]", result(2), result(1)));
        let parts = fixture.ends();
        let items = |parts: &[Part]| -> Vec<_> {
            let item = |part: &Part| match part {
                Part::Call(call) => (call.request.item, call.response.as_ref().unwrap().item),
                Part::Entry(entry) => (entry.item, None),
                Part::Start(_) | Part::Finish { .. } => (None, None),
            };
            parts[1..4].iter().map(item).collect()
        };
        assert_eq!(items(&parts), [(Some(2), None), (Some(1), Some(0)), (Some(0), Some(1))]);
    }

    #[test]
    fn beyond_the_limit_the_oldest_request_ends_unanswered() {
        let mut fixture = Fixture::new(FoldLimit { requests: 2, ..FoldLimit::default() });
        (1..=3).for_each(|id| fixture.sends(Client, 0, &call(id)));
        fixture.sends(Server, 0, &result(1));
        fixture.sends(Server, 0, &result(3));
        assert_eq!(fixture.shape(), "0-? 3 2-4 1-?");
        let mut fixture = Fixture::new(FoldLimit { bytes: 100, ..FoldLimit::default() });
        (1..=3).for_each(|id| fixture.sends(Client, 0, &call(id)));
        assert_eq!(fixture.fold.open_count(), 2, "each has 46 bytes");
    }

    #[test]
    fn unanswered_requests_with_one_id_stay_within_the_limit() {
        let mut fixture = Fixture::new(FoldLimit { requests: 1000, ..FoldLimit::default() });
        for channel in 1..=100_000 {
            fixture.sends(Client, channel, &call(1));
            fixture.parts.clear();
        }
        assert_eq!(fixture.fold.open_count(), 1000);
    }

    #[test]
    fn the_start_waits_for_server_info() {
        let mut fixture = Fixture::default();
        fixture.happens(EntryBody::Stderr { line: "listening".into() });
        fixture.sends(Client, 0, r#"{"jsonrpc":"2.0","id":0,"method":"initialize"}"#);
        assert!(fixture.parts.is_empty());
        let answer = r#"{"jsonrpc":"2.0","id":0,"result":{"serverInfo":{"name":"weather","version":"1.2"}}}"#;
        fixture.sends(Server, 0, answer);
        let Part::Start(start) = &fixture.parts[0] else { panic!("{:?}", fixture.parts) };
        assert_eq!(serde_json::to_string(&start.server_info).unwrap(), r#"{"name":"weather","version":"1.2"}"#);
        assert_eq!(fixture.shape(), "0 1-2");
    }

    #[test]
    fn without_server_info_a_limited_number_of_entries_is_held() {
        let mut fixture = Fixture::default();
        (0..MAX_HELD).for_each(|_| fixture.happens(EntryBody::Stderr { line: "x".into() }));
        assert_eq!(fixture.parts.len(), MAX_HELD + 1);
    }

    #[test]
    fn pieces_become_the_complete_line_or_a_partial_line() {
        let piece_on = |from, channel, offset, bytes: &'static str| EntryBody::Piece {
            from,
            channel: Channel(channel),
            offset,
            bytes: bytes.into(),
        };
        let piece = |from, offset, bytes| piece_on(from, 0, offset, bytes);
        let mut fixture = Fixture::default();
        fixture.happens(piece_on(Client, 7, 0, "{\"half of"));
        fixture.happens(piece_on(Client, 8, 0, "{\"this channel has ended"));
        fixture.happens(EntryBody::ChannelEnded { channel: Channel(8), why: None });
        fixture.happens(piece(Client, 0, "{\"json"));
        fixture.happens(piece(Server, 0, "noi"));
        fixture.happens(piece(Client, 6, "nrpc\":"));
        fixture.sends(Client, 0, &call(1));
        fixture.happens(piece(Server, 3, "s"));
        fixture.happens(piece(Server, 2, "n-"));
        let parts = fixture.ends();
        let [_, Part::Entry(_), Part::Entry(request), Part::Entry(half), Part::Call(_), _] = &parts[..] else {
            panic!("{parts:?}")
        };
        let EntryBody::Message { from: Client, channel: Channel(7), message, .. } = &request.what else {
            panic!("{request:?}")
        };
        assert_eq!(message, &Message::garbled("{\"half of", GarbledReason::PartialLine));
        let EntryBody::Message { from: Server, message, .. } = &half.what else { panic!("{half:?}") };
        assert_eq!(message, &Message::garbled("non-", GarbledReason::PartialLine));
    }

    #[test]
    fn a_session_ends_at_its_end_entry_or_its_last_entry() {
        let mut fixture = Fixture::default();
        fixture.sends(Client, 0, &call(1));
        fixture.happens(EntryBody::Ended(SessionEnd::Stopped));
        fixture.happens(EntryBody::Stderr { line: "late".into() });
        let finish = fixture.ends().pop();
        let ended_at = Some("2026-07-28T12:00:00.001Z".parse().unwrap());
        assert_eq!(finish, Some(Part::Finish { ended_at, end: Some(SessionEnd::Stopped) }));
        let mut fixture = Fixture::default();
        fixture.sends(Client, 0, &call(1));
        fixture.sends(Client, 0, &call(2));
        assert_eq!(fixture.ends().pop(), Some(Part::Finish { ended_at, end: None }));
    }
}
