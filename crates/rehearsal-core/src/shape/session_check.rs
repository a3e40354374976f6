//! Checks the messages of a recorded session against the shapes of its version.

use super::headers::check_heads;
use super::message::{check_notification, check_request, check_response};
use crate::exchange::{Channel, Side};
use crate::message::{Body, Message, Method, Reply, Request, RequestId};
use crate::protocol::{Era, Revision, header, meta};
use crate::report::{Finding, Location};
use crate::trace::{Entry, EntryBody, PlacedMessage, RecordedCall, RelatedEvent, TimelineItem};

/// A finding and its message.
#[derive(Clone, Debug, PartialEq)]
pub struct LocatedFinding {
    /// Who sent the message.
    pub from: Side,
    /// The method of the request or notification; for a response, that of its request.
    pub method: Option<String>,
    /// The version whose shapes the message was checked against.
    pub revision: Revision,
    /// The sequence number of the message in its session.
    pub sequence: u64,
    /// What is wrong with it.
    pub finding: Finding,
}

/// Follows one session, and finds its version and the invalid messages. Memory does not grow with the session.
///
/// The version is the one that `initialize` negotiated. A request with a version in `_meta` uses that version, and so
/// do its response and its related events. If the recording has neither, the version in the HTTP header is used, and
/// otherwise 2025-11-25.
#[derive(Clone, Debug, Default)]
pub struct SessionCheck {
    agreed: Option<Revision>,
    /// Whether a request named a version of the modern era.
    stateless: bool,
    messages: u64,
    /// The id of the last garbled request; its receiver refuses it with that id.
    garbled: Option<RequestId>,
}

impl SessionCheck {
    /// The version of the session, if it is known so far.
    pub fn revision(&self) -> Option<Revision> {
        self.agreed.or(self.stateless.then_some(Revision::LATEST_MODERN))
    }

    /// How many messages were checked.
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// Checks the next event, and returns what is wrong with it.
    pub fn check(&mut self, item: &TimelineItem) -> Vec<LocatedFinding> {
        let mut found = Vec::new();
        match item {
            TimelineItem::Start(_) => *self = SessionCheck::default(),
            TimelineItem::Call { call, inside } => self.call(call, inside, &mut found),
            TimelineItem::Entry(entry) => self.entry(entry, None, &mut found),
            TimelineItem::Finish { .. } => {}
        }
        found
    }

    fn call(&mut self, call: &RecordedCall, inside: &[RelatedEvent], found: &mut Vec<LocatedFinding>) {
        let Some(request) = call.request.message.as_request() else { return };
        let revision = self.version_of(call, request, inside);
        let about = MessageContext { method: Some(&request.method), revision };
        self.messages += 1;
        about.report(&call.request, call.asker, check_request(request, call.asker, revision), found);
        batch(&about, &call.request, call.asker, found);
        for (sequence, from, finding) in check_heads(call, request, inside, revision) {
            about.report_at(sequence, from, finding, found);
        }
        for event in inside {
            match event {
                RelatedEvent::Call(call) => self.call(call, &[], found),
                RelatedEvent::Entry(entry) => self.entry(entry, Some(revision), found),
            }
        }
        if let Some(response) = &call.response {
            self.messages += 1;
            let from = call.asker.other();
            batch(&about, response, from, found);
            match response.message.body() {
                Body::Response(answer) => {
                    let findings = check_response(answer, request, call.asker, revision);
                    about.report(response, from, findings, found);
                    if let Reply::Result(result) = &answer.reply
                        && request.method == Method::INITIALIZE
                    {
                        let version = result.field("protocolVersion").and_then(|version| version.text());
                        about.report(response, from, self.agree(version.as_deref()), found);
                    }
                }
                Body::Garbled(_) | Body::Request(_) | Body::Notification(_) | Body::Batch(_) => {
                    about.report(response, from, vec![garbled(&response.message)], found);
                }
            }
        }
    }

    fn entry(&mut self, entry: &Entry, within: Option<Revision>, found: &mut Vec<LocatedFinding>) {
        let EntryBody::Message { from, message, .. } = &entry.what else { return };
        self.messages += 1;
        let place = PlacedMessage { item: entry.item, ..PlacedMessage::new(entry.seq, entry.at, message.clone()) };
        self.loose(&place, *from, within, found);
    }

    /// Checks a message that is neither a request nor a response to one.
    fn loose(&mut self, place: &PlacedMessage, from: Side, within: Option<Revision>, found: &mut Vec<LocatedFinding>) {
        let message = &place.message;
        let subscribed = message.params().is_some_and(|params| params.at(&["_meta", meta::SUBSCRIPTION_ID]).is_some());
        let known = within.or_else(|| if subscribed { Some(Revision::LATEST_MODERN) } else { self.revision() });
        let revision = known.unwrap_or(Revision::LATEST_LEGACY);
        let about = MessageContext { method: message.method(), revision };
        batch(&about, place, from, found);
        let findings = match message.body() {
            Body::Notification(notification) => check_notification(notification, from, revision),
            Body::Request(request) => check_request(request, from, revision),
            Body::Response(response) => {
                let id = response.id.as_ref().map_or("null".to_owned(), ToString::to_string);
                let error = matches!(response.reply, Reply::Error(_));
                // An error about a garbled message has the message's id, or none.
                if error && (response.id.is_none() || response.id == self.garbled) {
                    Vec::new()
                } else {
                    let finding = Finding::warning(format!("a response with id {id}, but no such request is pending"));
                    vec![finding.hint("a response has the id of its request, and a request has one response")]
                }
            }
            Body::Batch(all) => {
                for message in all {
                    let place = PlacedMessage { message: message.clone(), item: Some(1), ..place.clone() };
                    self.loose(&place, from, within, found);
                }
                refused_batch(revision).into_iter().collect()
            }
            Body::Garbled(unread) => {
                self.garbled = unread.id.clone();
                vec![garbled(message)]
            }
        };
        about.report(place, from, findings, found);
    }

    /// The version of a call.
    fn version_of(&mut self, call: &RecordedCall, request: &Request, inside: &[RelatedEvent]) -> Revision {
        if call.asker == Side::Server {
            return self.revision().unwrap_or(Revision::LATEST_LEGACY);
        }
        if request.param(&["_meta", meta::PROTOCOL_VERSION]).is_some() {
            // The version may be an unknown one: only the modern era has one in `_meta`.
            self.stateless = true;
            return Revision::LATEST_MODERN;
        }
        if request.method == Method::INITIALIZE {
            let agreed = call.response.as_ref().and_then(|response| {
                let Reply::Result(result) = &response.message.as_response()?.reply else { return None };
                result.field("protocolVersion")?.text()
            });
            let wanted = request.param(&["protocolVersion"]).and_then(|version| version.text());
            let legacy = |text: String| text.parse().ok().filter(|it: &Revision| it.has_handshake());
            return agreed.and_then(legacy).or_else(|| wanted.and_then(legacy)).unwrap_or(Revision::LATEST_LEGACY);
        }
        let sent = || version_header(inside, call.channel())?.parse().ok();
        self.agreed.or_else(sent).or_else(|| self.revision()).unwrap_or(Revision::LATEST_LEGACY)
    }

    /// Stores the version that `initialize` negotiated.
    fn agree(&mut self, version: Option<&str>) -> Vec<Finding> {
        let wrong = |version: &str, why: String| {
            let finding = Finding::error(format!("initialize negotiates version {version:?}"));
            vec![finding.hint(why)]
        };
        match version.map(|version| (version, version.parse::<Revision>())) {
            Some((_, Ok(revision))) if revision.era() == Era::Legacy => {
                self.agreed = Some(revision);
                Vec::new()
            }
            Some((version, Ok(revision))) => wrong(version, format!("{revision} has no handshake")),
            Some((version, Err(unknown))) => wrong(version, unknown.to_string()),
            // The check of the shape has reported this.
            None => Vec::new(),
        }
    }
}

/// What a message refers to.
struct MessageContext<'a> {
    method: Option<&'a Method>,
    revision: Revision,
}

impl MessageContext<'_> {
    fn report(&self, place: &PlacedMessage, from: Side, findings: Vec<Finding>, found: &mut Vec<LocatedFinding>) {
        findings.into_iter().for_each(|finding| self.report_at(place.seq, from, finding, found));
    }

    fn report_at(&self, sequence: u64, from: Side, finding: Finding, found: &mut Vec<LocatedFinding>) {
        let finding = finding.at(Location::Message { sequence });
        let method = self.method.map(ToString::to_string);
        found.push(LocatedFinding { from, method, revision: self.revision, sequence, finding });
    }
}

/// Reports a batch in a version without batches, once for its first message.
fn batch(about: &MessageContext<'_>, place: &PlacedMessage, from: Side, found: &mut Vec<LocatedFinding>) {
    if place.item == Some(0) {
        about.report(place, from, refused_batch(about.revision).into_iter().collect(), found);
    }
}

fn refused_batch(revision: Revision) -> Option<Finding> {
    let finding = Finding::error(format!("{revision} has no batches"));
    (!revision.has_batches()).then(|| finding.hint("only 2025-03-26 has several messages in an array"))
}

fn garbled(message: &Message) -> Finding {
    match message.body() {
        Body::Garbled(garbled) => Finding::error(format!("not a message: {garbled}")),
        Body::Request(_) | Body::Notification(_) | Body::Response(_) | Body::Batch(_) => {
            Finding::error("not a response, but recorded as one")
        }
    }
}

fn version_header(inside: &[RelatedEvent], on: Channel) -> Option<String> {
    let mut heads = inside.iter().filter_map(|event| match event {
        RelatedEvent::Entry(Entry { what: EntryBody::Http { from: Side::Client, channel, head }, .. })
            if *channel == on =>
        {
            Some(head)
        }
        RelatedEvent::Entry(_) | RelatedEvent::Call(_) => None,
    });
    heads.next()?.headers.get(header::PROTOCOL_VERSION).map(|version| version.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{JournalFold, SessionStart, Timeline, arbitrary};
    use Side::{Client, Server};
    use proptest::prelude::*;
    use serde_json::Map;
    use std::time::Duration;

    fn located(entries: Vec<Entry>) -> (Vec<LocatedFinding>, SessionCheck) {
        let start =
            SessionStart { session_id: "a".into(), server_info: Map::new(), started_at: None, metadata: Map::new() };
        let (mut fold, mut parts) = (JournalFold::new(start), Vec::new());
        entries.into_iter().for_each(|entry| fold.entry(entry, &mut parts));
        fold.finish(None, &mut parts);
        let half = || parts.iter().cloned().map(Ok);
        let mut conversation = SessionCheck::default();
        let mut found = Vec::new();
        for item in Timeline::new(half(), half()) {
            found.extend(conversation.check(&item.unwrap()));
        }
        (found, conversation)
    }

    /// The version and the text of each finding.
    fn findings_of(sent: &[(Side, &str)]) -> Vec<String> {
        let entry = |(seq, (from, members)): (u64, &(Side, &str))| {
            let text =
                if members.starts_with('"') { format!(r#"{{"jsonrpc":"2.0",{members}}}"#) } else { (*members).into() };
            let what = EntryBody::Message {
                from: *from,
                channel: Channel::MAIN,
                message: Message::parse(text),
                event_id: None,
            };
            Entry::new(seq, Duration::from_millis(seq), what)
        };
        let (found, _) = located((0..).zip(sent).map(entry).collect());
        found.into_iter().map(|it| format!("{} {}: {}", it.sequence, it.revision, it.finding.message)).collect()
    }

    const INITIALIZE: &str = r#""id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}"#;
    const OLDEST: &str =
        r#""id":0,"result":{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#;
    const NEWER: &str =
        r#""id":0,"result":{"protocolVersion":"2026-07-28","capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#;
    const UNKNOWN: &str =
        r#""id":0,"result":{"protocolVersion":"2024-10-07","capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#;
    const CALL: &str = r#""id":1,"method":"tools/call","params":{"name":"a"}"#;
    const AUDIO: &str = r#""id":1,"result":{"content":[{"type":"audio","data":"","mimeType":"audio/wav"}]}"#;
    const STATELESS: &str = r#""id":2,"method":"tools/call","params":{"name":"a","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}"#;
    const PLAIN: &str = r#""id":2,"result":{"content":[]}"#;

    #[test]
    fn messages_are_checked_against_the_negotiated_version() {
        let sent = [(Client, INITIALIZE), (Server, OLDEST), (Client, CALL), (Server, AUDIO)];
        assert_eq!(findings_of(&sent), ["3 2024-11-05: wrong result of tools/call in 2024-11-05"]);
    }

    #[test]
    fn a_request_is_checked_against_the_version_in_its_meta() {
        let sent = [(Client, INITIALIZE), (Server, OLDEST), (Client, STATELESS), (Server, PLAIN)];
        assert_eq!(findings_of(&sent), ["3 2026-07-28: wrong result of tools/call in 2026-07-28"]);
    }

    #[test]
    fn a_handshake_that_negotiates_an_unsupported_version_is_reported() {
        let newer = findings_of(&[(Client, INITIALIZE), (Server, NEWER)]);
        assert_eq!(newer, ["1 2025-11-25: initialize negotiates version \"2026-07-28\""]);
        let unknown = findings_of(&[(Client, INITIALIZE), (Server, UNKNOWN)]);
        assert_eq!(unknown, ["1 2025-11-25: initialize negotiates version \"2024-10-07\""]);
    }

    #[test]
    fn noise_unexpected_responses_and_batches_are_reported() {
        let ping = r#"[{"jsonrpc":"2.0","id":7,"method":"ping"},{"jsonrpc":"2.0","id":8,"method":"ping"}]"#;
        let sent = [
            (Client, INITIALIZE),
            (Server, OLDEST),
            (Server, "Server running on stdio"),
            (Server, r#""id":99,"result":{}"#),
            (Server, r#""id":null,"error":{"code":-32700,"message":"m"}"#),
            (Client, ping),
        ];
        assert_eq!(
            findings_of(&sent),
            [
                "2 2024-11-05: not a message: not JSON: expected value at line 1 column 1",
                "3 2024-11-05: a response with id 99, but no such request is pending",
                "5 2024-11-05: 2024-11-05 has no batches",
            ]
        );
    }

    proptest! {
        #[test]
        fn any_session_can_be_checked_and_every_finding_has_a_location(entries in arbitrary::entries()) {
            let (found, _) = located(entries);
            let placed = |it: &LocatedFinding| it.finding.place == Some(Location::Message { sequence: it.sequence });
            prop_assert!(found.iter().all(placed));
        }
    }
}
