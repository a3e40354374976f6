//! A trace in recorded order, with each related event inside its call.
//!
//! ```text
//! calls, by their responses ─┐
//!                            ├─► window ──► in the order of the requests, with the related events inside each call
//! other entries, in order ───┘
//! ```

use std::iter::Peekable;

use jiff::Timestamp;

use super::{
    Entry, EntryBody, EventLink, OrderedEvent, Part, ReadError, RecordedCall, SessionEnd, SessionStart, TimelineBuilder,
};
use crate::exchange::Side;

/// One event in a timeline.
#[derive(Clone, Debug, PartialEq)]
pub enum TimelineItem {
    /// A session begins.
    Start(SessionStart),
    /// A call with its related events.
    Call {
        /// The call.
        call: Box<RecordedCall>,
        /// The related events, in order: progress, log messages, cancellations, server requests, and the HTTP around
        /// the call.
        inside: Vec<RelatedEvent>,
    },
    /// An event that belongs to no call.
    Entry(Entry),
    /// The session is over.
    Finish {
        /// When the session ended, if known.
        ended_at: Option<Timestamp>,
        /// How the session ended, if known.
        end: Option<SessionEnd>,
    },
}

/// A related event of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum RelatedEvent {
    /// A request of the other side.
    Call(Box<RecordedCall>),
    /// Any other event.
    Entry(Entry),
}

impl RelatedEvent {
    /// Whether this is the client's cancellation of the request.
    pub fn is_cancellation(&self) -> bool {
        let RelatedEvent::Entry(Entry { what: EntryBody::Message { from: Side::Client, message, .. }, .. }) = self
        else {
            return false;
        };
        message.method().is_some_and(|method| method.as_str() == "notifications/cancelled")
    }

    /// Whether this is the server's acknowledgement of a subscription.
    pub fn is_subscription_ack(&self) -> bool {
        let RelatedEvent::Entry(Entry { what: EntryBody::Message { from: Side::Server, message, .. }, .. }) = self
        else {
            return false;
        };
        message.method().is_some_and(|method| method.as_str() == "notifications/subscriptions/acknowledged")
    }
}

/// Puts a trace in recorded order with bounded memory, with a [`TimelineBuilder`].
pub struct Timeline<C: Iterator, E: Iterator> {
    calls: FilePass<C>,
    entries: FilePass<E>,
    builder: TimelineBuilder<RelatedEvent>,
    /// Whether a session is being read.
    open: bool,
    finish: Option<TimelineItem>,
    /// The number of the last bad line that was reported; both readers find it.
    reported_line: u64,
}

/// One of the two readers of the file.
struct FilePass<I: Iterator> {
    parts: Peekable<I>,
    /// Whether this session has no more parts for this reader.
    done: bool,
}

impl<C, E> Timeline<C, E>
where
    C: Iterator<Item = Result<Part, ReadError>>,
    E: Iterator<Item = Result<Part, ReadError>>,
{
    /// Takes two readers of the same file: one for its calls, and one for the other entries. Each ignores the parts of
    /// the other.
    pub fn new(calls: C, entries: E) -> Timeline<C, E> {
        let (calls, entries) = (calls.peekable(), entries.peekable());
        Timeline {
            calls: FilePass { parts: calls, done: false },
            entries: FilePass { parts: entries, done: false },
            builder: TimelineBuilder::default(),
            open: false,
            finish: None,
            reported_line: 0,
        }
    }

    /// Begins the next session.
    fn begin(&mut self) -> Option<Result<TimelineItem, ReadError>> {
        // The other reader finds the same start, unless the line is bad there.
        let other = self.entries.parts.next();
        match self.calls.parts.next()? {
            Ok(Part::Start(start)) => {
                self.open = true;
                (self.calls.done, self.entries.done) = (false, !matches!(other, Some(Ok(_))));
                Some(Ok(TimelineItem::Start(start)))
            }
            Ok(Part::Call(_) | Part::Entry(_) | Part::Finish { .. }) => self.begin(),
            Err(error) => {
                self.reported_line = error.line().unwrap_or(u64::MAX);
                Some(Err(error))
            }
        }
    }

    /// Adds the next event to the builder; `false` at the end of the session.
    fn read_next(&mut self) -> Result<bool, ReadError> {
        let call = self.calls.rank(|part| match part {
            Part::Call(call) => Some(call.response.as_ref().unwrap_or(&call.request).seq),
            Part::Entry(_) | Part::Start(_) | Part::Finish { .. } => None,
        });
        let entry = self.entries.rank(|part| match part {
            Part::Entry(entry) => Some(entry.seq),
            Part::Call(_) | Part::Start(_) | Part::Finish { .. } => None,
        });
        let next = match (call, entry) {
            (None, None) => return Ok(false),
            (Some(call), Some(entry)) if call < entry => self.calls.next(),
            (Some(_), None) => self.calls.next(),
            (_, Some(_)) => self.entries.next(),
        };
        match next {
            Some(Ok(Part::Call(call))) => {
                self.push(EventLink::of_call(&call), RelatedEvent::Call(call));
            }
            Some(Ok(Part::Entry(entry))) => self.push(EventLink::of_entry(&entry), RelatedEvent::Entry(entry)),
            Some(Ok(Part::Finish { ended_at, end })) => self.finish = Some(TimelineItem::Finish { ended_at, end }),
            Some(Ok(Part::Start(_))) | None => {}
            Some(Err(error)) => {
                let line = error.line().unwrap_or(u64::MAX);
                if line > self.reported_line {
                    self.reported_line = line;
                    return Err(error);
                }
            }
        }
        Ok(true)
    }

    fn push(&mut self, link: EventLink, event: RelatedEvent) {
        let bytes = size(&event);
        self.builder.push(event, link, bytes);
    }
}

impl<C, E> Iterator for Timeline<C, E>
where
    C: Iterator<Item = Result<Part, ReadError>>,
    E: Iterator<Item = Result<Part, ReadError>>,
{
    type Item = Result<TimelineItem, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if !self.open {
            return self.begin();
        }
        while !self.builder.is_full() {
            match self.read_next() {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => return Some(Err(error)),
            }
        }
        match self.builder.pop() {
            Some(OrderedEvent { event: RelatedEvent::Call(call), inside }) => {
                return Some(Ok(TimelineItem::Call { call, inside }));
            }
            Some(OrderedEvent { event: RelatedEvent::Entry(entry), .. }) => {
                return Some(Ok(TimelineItem::Entry(entry)));
            }
            None => {}
        }
        self.open = false;
        self.builder = TimelineBuilder::default();
        let finish = self.finish.take();
        Some(Ok(finish.unwrap_or(TimelineItem::Finish { ended_at: None, end: None })))
    }
}

impl<I: Iterator<Item = Result<Part, ReadError>>> FilePass<I> {
    /// The sequence number of the next part of this session for this reader: errors come first, the end last.
    fn rank(&mut self, rank: impl Fn(&Part) -> Option<u64>) -> Option<u64> {
        while !self.done {
            match self.parts.peek() {
                Some(Ok(part @ (Part::Call(_) | Part::Entry(_)))) => match rank(part) {
                    Some(rank) => return Some(rank),
                    None => drop(self.parts.next()),
                },
                Some(Ok(Part::Finish { .. })) => return Some(u64::MAX),
                Some(Err(_)) => return Some(0),
                Some(Ok(Part::Start(_))) | None => self.done = true,
            }
        }
        None
    }

    fn next(&mut self) -> Option<Result<Part, ReadError>> {
        let part = self.parts.next();
        self.done = !matches!(part, Some(Ok(Part::Call(_) | Part::Entry(_))));
        part
    }
}

/// The approximate size of an event in memory.
fn size(event: &RelatedEvent) -> usize {
    match event {
        RelatedEvent::Call(call) => {
            let answer = call.response.as_ref().map_or(0, |answer| answer.message.raw().len());
            call.request.message.raw().len() + answer
        }
        RelatedEvent::Entry(entry) => match &entry.what {
            EntryBody::Message { message, .. } => message.raw().len(),
            EntryBody::Http { head, .. } => head.headers.text().len(),
            EntryBody::Event { data, .. } => data.len(),
            EntryBody::Stderr { line } => line.len(),
            EntryBody::Piece { bytes, .. } => bytes.len(),
            EntryBody::ChannelEnded { .. } | EntryBody::Ended(_) => 0,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::{Channel, Side};
    use crate::message::Message;
    use crate::trace::attribution::WINDOW;
    use crate::trace::{JournalFold, arbitrary};
    use proptest::prelude::*;
    use serde_json::Map;
    use std::time::Duration;

    fn start() -> SessionStart {
        SessionStart { session_id: "a".into(), server_info: Map::new(), started_at: None, metadata: Map::new() }
    }

    fn parts(entries: Vec<Entry>) -> Vec<Part> {
        let (mut fold, mut parts) = (JournalFold::new(start()), Vec::new());
        entries.into_iter().for_each(|entry| fold.entry(entry, &mut parts));
        fold.finish(None, &mut parts);
        parts
    }

    fn timeline(parts: &[Part]) -> Vec<TimelineItem> {
        let half = || parts.iter().cloned().map(Ok);
        Timeline::new(half(), half()).map(Result::unwrap).collect()
    }

    const CALL: &str = r#""id":1,"method":"tools/call","params":{"_meta":{"progressToken":7}}"#;
    const RESULT: &str = r#""id":1,"result":{}"#;
    const CHANGED: &str = r#""method":"notifications/tools/list_changed""#;
    use Side::{Client, Server};

    /// The message of a word in a test's session.
    fn message(word: &str) -> (Side, &'static str) {
        match word {
            "call" => (Client, CALL),
            "result" => (Server, RESULT),
            "second" => (Client, r#""id":2,"method":"tools/call""#),
            "second-result" => (Server, r#""id":2,"result":{}"#),
            "about-task" => (Client, r#""id":1,"method":"tasks/result","params":{"taskId":"t"}"#),
            "ask" => (Server, r#""id":1,"method":"sampling/createMessage""#),
            "answer" => (Client, RESULT),
            "roots" => (Server, r#""id":9,"method":"roots/list""#),
            "roots-of-task" => (
                Server,
                r#""id":9,"method":"roots/list","params":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}"#,
            ),
            "roots-answer" => (Client, r#""id":9,"result":{"roots":[]}"#),
            "progress" => (Server, r#""method":"notifications/progress","params":{"progressToken":7}"#),
            "log" => (Server, r#""method":"notifications/message","params":{}"#),
            "cancel" => (Client, r#""method":"notifications/cancelled","params":{"requestId":1}"#),
            "changed" => (Server, CHANGED),
            other => panic!("{other}"),
        }
    }

    /// Each event outside of calls by its number, with its related events in brackets. A word may name its channel.
    fn shape(script: &str) -> String {
        let entry = |(seq, word): (u64, &str)| {
            let (word, channel) = word.split_once('@').unwrap_or((word, "0"));
            let (from, members) = message(word);
            let message = Message::parse(format!(r#"{{"jsonrpc":"2.0",{members}}}"#));
            let what = EntryBody::Message { from, channel: Channel(channel.parse().unwrap()), message, event_id: None };
            Entry::new(seq, Duration::from_millis(seq), what)
        };
        let parts = parts((0..).zip(script.split(' ')).map(entry).collect());
        let number = |inside: &RelatedEvent| match inside {
            RelatedEvent::Call(call) => call.request.seq.to_string(),
            RelatedEvent::Entry(entry) => entry.seq.to_string(),
        };
        let words = timeline(&parts).into_iter().filter_map(|moment| match moment {
            TimelineItem::Start(_) | TimelineItem::Finish { .. } => None,
            TimelineItem::Entry(entry) => Some(entry.seq.to_string()),
            TimelineItem::Call { call, inside } if inside.is_empty() => Some(call.request.seq.to_string()),
            TimelineItem::Call { call, inside } => {
                let inside: Vec<_> = inside.iter().map(number).collect();
                Some(format!("{}[{}]", call.request.seq, inside.join(" ")))
            }
        });
        words.collect::<Vec<_>>().join(" ")
    }

    #[track_caller]
    fn shapes(table: &[(&str, &str)]) {
        for (script, expected) in table {
            assert_eq!(shape(script), *expected, "{script}");
        }
    }

    #[test]
    fn an_event_that_names_a_call_is_inside_it() {
        shapes(&[
            ("call progress ask answer log changed cancel result progress", "0[1 2 4 5 6] 8"),
            // The call has no response.
            ("call progress second second-result progress log cancel", "0[1 4 6] 2 5"),
            // The token is known on any stream.
            ("call@1 second@2 progress@3 progress@2 second-result@2 result@1", "0[2 3] 1"),
            // Two clients may use one token, each on streams of its own.
            ("call@1 call@2 progress@2 progress@1 progress@2 result@1 progress@2 result@2", "0[3] 1[2 4 6]"),
            ("call@1 call@2 progress@2 progress@1 progress@2", "0[3] 1[2 4]"),
            ("about-task second roots-of-task roots-answer second-result result", "0[2] 1"),
            ("call second roots-of-task roots-answer second-result result", "0 1 2"),
        ]);
    }

    #[test]
    fn an_event_on_the_stream_of_a_call_is_inside_it() {
        shapes(&[
            ("call@1 second@2 ask@2 log@1 answer@3 second-result@2 result@1", "0[3] 1[2]"),
            // A server request on the GET stream belongs to the latest pending call.
            ("call@4 second@5 ask@4 roots@3 roots-answer@6 answer@7 result@4 second-result@5", "0[2] 1[3]"),
            ("call@4 second@5 result@4 second-result@5 roots@3 roots-answer@6", "0 1 4"),
        ]);
    }

    #[test]
    fn other_events_belong_to_the_latest_open_call() {
        shapes(&[
            ("call second ask answer second-result result", "0 1[2]"),
            ("call second second-result ask answer result", "0[3] 1"),
            ("call second ask answer progress second-result log result", "0[4 6] 1[2]"),
            ("call second changed second-result result", "0 1[2]"),
            ("call result ask answer second second-result", "0 2 4"),
            // The recording has no end for a call without a response, so it may have ended before.
            ("call second ask answer result", "0[2] 1"),
        ]);
    }

    #[test]
    fn the_http_head_of_a_post_is_inside_its_call() {
        let head = |from, status: Option<u16>| EntryBody::Http {
            from,
            channel: Channel(1),
            head: crate::trace::HttpHead { method: None, target: None, status, headers: Default::default() },
        };
        let message = |from, members: &str| {
            let message = Message::parse(format!(r#"{{"jsonrpc":"2.0",{members}}}"#));
            EntryBody::Message { from, channel: Channel(1), message, event_id: None }
        };
        let bodies = [head(Client, None), message(Client, CALL), head(Server, Some(200)), message(Server, RESULT)];
        let entries = (0..).zip(bodies).map(|(seq, what)| Entry::new(seq, Duration::ZERO, what)).collect();
        let items = timeline(&parts(entries));
        let [TimelineItem::Start(_), TimelineItem::Call { inside, .. }, TimelineItem::Finish { .. }] = &items[..]
        else {
            panic!("{items:?}")
        };
        assert_eq!(inside.len(), 2);
    }

    #[test]
    fn a_call_longer_than_the_window_is_placed_at_its_response() {
        let message = |from, members: &str| {
            let message = Message::parse(format!(r#"{{"jsonrpc":"2.0",{members}}}"#));
            EntryBody::Message { from, channel: Channel::MAIN, message, event_id: None }
        };
        let mut bodies = vec![message(Client, CALL)];
        bodies.extend((0..WINDOW * 2).map(|_| message(Client, CHANGED)));
        bodies.push(message(Server, RESULT));
        let entries = (0..).zip(bodies).map(|(seq, what)| Entry::new(seq, Duration::ZERO, what)).collect();
        let items = timeline(&parts(entries));
        assert_eq!(items.len(), 1 + WINDOW * 2 + 1 + 1);
        let place = items.iter().position(|moment| matches!(moment, TimelineItem::Call { .. })).unwrap();
        assert!(place > WINDOW, "{place}");
    }

    #[test]
    fn a_bad_line_is_reported_once() {
        let bad = || ReadError::Bad { line: 3, column: 1, expected: "x".into() };
        let half = || {
            vec![
                Ok(Part::Start(start())),
                Err(bad()),
                Ok(Part::Start(start())),
                Ok(Part::Finish { ended_at: None, end: None }),
            ]
        };
        let reported_line: Vec<bool> =
            Timeline::new(half().into_iter(), half().into_iter()).map(|moment| moment.is_ok()).collect();
        assert_eq!(reported_line, [true, false, true, true, true]);
    }

    proptest! {
        #[test]
        fn every_part_is_in_the_timeline_once(entries in arbitrary::entries()) {
            let parts = parts(entries);
            let mut reported_line: Vec<String> = Vec::new();
            for moment in timeline(&parts) {
                match moment {
                    TimelineItem::Start(start) => reported_line.push(format!("{:?}", Part::Start(start))),
                    TimelineItem::Finish { ended_at, end } => reported_line.push(format!("{:?}", Part::Finish { ended_at, end })),
                    TimelineItem::Entry(entry) => reported_line.push(format!("{:?}", Part::Entry(entry))),
                    TimelineItem::Call { call, inside } => {
                        reported_line.push(format!("{:?}", Part::Call(call)));
                        reported_line.extend(inside.into_iter().map(|inside| match inside {
                            RelatedEvent::Call(call) => format!("{:?}", Part::Call(call)),
                            RelatedEvent::Entry(entry) => format!("{:?}", Part::Entry(entry)),
                        }));
                    }
                }
            }
            let mut expected: Vec<String> = parts.iter().map(|part| format!("{part:?}")).collect();
            expected.sort();
            reported_line.sort();
            prop_assert_eq!(reported_line, expected);
        }
    }
}
