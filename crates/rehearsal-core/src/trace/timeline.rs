//! A trace in the order in which it happened, each thing under what it belongs to.
//!
//! ```text
//! calls, as they were settled ─┐
//!                              ├─► window ──► by the time of the question, with what belongs to each call inside it
//! the rest, as it happened ────┘
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::iter::Peekable;

use jiff::Timestamp;

use super::bond::{Bond, bond, is_head, token_of};
use super::{Call, End, Entry, Part, ReadError, Start, What};
use crate::exchange::{Channel, Side};

/// One thing in a timeline.
#[derive(Clone, Debug, PartialEq)]
pub enum Moment {
    /// A session begins.
    Start(Start),
    /// A call, and what belongs to it.
    Call {
        /// The call.
        call: Box<Call>,
        /// Progress, log messages, cancellations and questions of the server's that belong to it, and the HTTP around
        /// it, in order.
        inside: Vec<Inside>,
    },
    /// Something that belongs to no call, or nobody can say to which.
    Entry(Entry),
    /// The session is over.
    Finish {
        /// When, where that is known.
        ended_at: Option<Timestamp>,
        /// How, where that is known.
        end: Option<End>,
    },
}

/// What belongs to a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Inside {
    /// A question of the other side's.
    Call(Box<Call>),
    /// Anything else.
    Entry(Entry),
}

/// How much is looked at to find the order.
const WINDOW: usize = 16_384;
/// How many bytes that may be.
const WINDOW_BYTES: usize = 32 << 20;

/// How far before a request the head of its POST may be.
const HEADS: u64 = 256;
/// How many calls without an answer are looked at for each entry.
const UNANSWERED: usize = 64;

/// The place of a message: its number, that in its batch, and one that nothing else has.
type Place = (u64, u32, u64);

/// Puts a trace in order with bounded memory. A call that took so long that more than the window holds happened
/// meanwhile stands where it was answered.
pub struct Timeline<C: Iterator, E: Iterator> {
    calls: Half<C>,
    entries: Half<E>,
    window: BTreeMap<Place, Item>,
    bytes: usize,
    /// How many things were taken into the window.
    taken: u64,
    /// Calls without an answer: what belongs to them may come after them.
    unanswered: VecDeque<Place>,
    /// Whether a session is being read.
    open: bool,
    finish: Option<Moment>,
    /// The last line that was told to be bad; both halves find it.
    told: u64,
}

/// One of the two ways through the file.
struct Half<I: Iterator> {
    parts: Peekable<I>,
    /// Whether this session has no more of its kind.
    done: bool,
}

#[derive(Debug)]
struct Item {
    thing: Inside,
    owner: Owner,
    /// What may belong to it.
    claims: Vec<Place>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Nobody,
    /// It happened while this one was open.
    Perhaps(Place),
    /// It says so.
    Surely(Place),
    /// It happened while several were open.
    Anybody,
}

impl<C, E> Timeline<C, E>
where
    C: Iterator<Item = Result<Part, ReadError>>,
    E: Iterator<Item = Result<Part, ReadError>>,
{
    /// Takes two readers of the same file: one for its calls, and one for the rest. What is not theirs is passed over.
    pub fn new(calls: C, entries: E) -> Timeline<C, E> {
        let (calls, entries) = (calls.peekable(), entries.peekable());
        Timeline {
            calls: Half { parts: calls, done: false },
            entries: Half { parts: entries, done: false },
            window: BTreeMap::new(),
            bytes: 0,
            taken: 0,
            unanswered: VecDeque::new(),
            open: false,
            finish: None,
            told: 0,
        }
    }

    /// Begins the next session.
    fn begin(&mut self) -> Option<Result<Moment, ReadError>> {
        // The other half finds the same, unless it is bad there.
        let other = self.entries.parts.next();
        match self.calls.parts.next()? {
            Ok(Part::Start(start)) => {
                self.open = true;
                (self.calls.done, self.entries.done) = (false, !matches!(other, Some(Ok(_))));
                Some(Ok(Moment::Start(start)))
            }
            Ok(Part::Call(_) | Part::Entry(_) | Part::Finish { .. }) => self.begin(),
            Err(error) => {
                self.told = error.line().unwrap_or(u64::MAX);
                Some(Err(error))
            }
        }
    }

    /// Takes the next thing into the window; `false` where the session has no more.
    fn take(&mut self) -> Result<bool, ReadError> {
        let call = self.calls.rank(|part| match part {
            Part::Call(call) => Some(call.response.as_ref().map_or(call.request.seq, |answer| answer.seq)),
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
            Some(Ok(Part::Call(call))) => self.insert_call(call),
            Some(Ok(Part::Entry(entry))) => {
                self.insert_entry(entry);
            }
            Some(Ok(Part::Finish { ended_at, end })) => self.finish = Some(Moment::Finish { ended_at, end }),
            Some(Ok(Part::Start(_))) | None => {}
            Some(Err(error)) => {
                let line = error.line().unwrap_or(u64::MAX);
                if line > self.told {
                    self.told = line;
                    return Err(error);
                }
            }
        }
        Ok(true)
    }

    /// An entry may belong to a call that was never answered.
    fn insert_entry(&mut self, entry: Entry) {
        self.taken += 1;
        let place = (entry.seq, entry.item.unwrap_or(0), self.taken);
        let thing = Inside::Entry(entry);
        self.bytes += size(&thing);
        let mut owner = Owner::Nobody;
        for waiting in &self.unanswered {
            let Some(Item { thing: Inside::Call(call), claims, .. }) = self.window.get_mut(waiting) else { continue };
            let bond = || bond(call, token_of(&call.request.message).as_ref(), &thing);
            if *waiting < place && matches!(bond(), Bond::Sure) {
                claims.push(place);
                owner = Owner::Surely(*waiting);
            }
        }
        self.window.insert(place, Item { thing, owner, claims: Vec::new() });
    }

    /// A call claims what happened while it was open.
    fn insert_call(&mut self, call: Box<Call>) {
        let (seq, item) = (call.request.seq, call.request.item.unwrap_or(0));
        let place = (seq, item, self.taken + 1);
        let mut claims = Vec::new();
        if call.asker == Side::Client {
            let answer = call.response.as_ref();
            let end = answer.map_or((u64::MAX, 0, 0), |answer| (answer.seq, answer.item.unwrap_or(0), 0)).max(place);
            let mut token = None;
            // Over HTTP the head of a POST comes before the request in it.
            let begin = match call.channel() {
                Channel::MAIN => place,
                Channel(_) => (seq.saturating_sub(HEADS), 0, 0),
            };
            for (at, item) in self.window.range_mut(begin..end) {
                if *at < place && !is_head(&call, &item.thing) {
                    continue;
                }
                let token = token.get_or_insert_with(|| token_of(&call.request.message));
                item.owner = match (bond(&call, token.as_ref(), &item.thing), item.owner) {
                    (Bond::None, _) | (_, Owner::Surely(_)) => continue,
                    (Bond::Sure, _) => Owner::Surely(place),
                    // Nobody knows how long it was open.
                    (Bond::Possible, _) if answer.is_none() => continue,
                    (Bond::Possible, Owner::Nobody) => Owner::Perhaps(place),
                    (Bond::Possible, Owner::Perhaps(_) | Owner::Anybody) => Owner::Anybody,
                };
                claims.push(*at);
            }
            if answer.is_none() {
                self.unanswered.push_back(place);
                if self.unanswered.len() > UNANSWERED {
                    self.unanswered.pop_front();
                }
            }
        }
        self.taken += 1;
        let thing = Inside::Call(call);
        self.bytes += size(&thing);
        self.window.insert(place, Item { thing, owner: Owner::Nobody, claims });
    }

    /// Takes the first thing out of the window, with what belongs to it.
    fn pop(&mut self) -> Option<Moment> {
        let (first, item) = self.window.first_key_value()?;
        let place = match item.owner {
            // What comes before the call that it belongs to waits for it.
            Owner::Surely(call) if call > *first && self.window.contains_key(&call) => call,
            Owner::Surely(_) | Owner::Perhaps(_) | Owner::Nobody | Owner::Anybody => *first,
        };
        let Item { thing, claims, .. } = self.window.remove(&place)?;
        self.bytes = self.bytes.saturating_sub(size(&thing));
        match thing {
            Inside::Entry(entry) => Some(Moment::Entry(entry)),
            Inside::Call(call) => {
                let mut inside = Vec::new();
                for at in claims {
                    let owner = self.window.get(&at).map(|item| item.owner);
                    if owner == Some(Owner::Surely(place)) || owner == Some(Owner::Perhaps(place)) {
                        inside.extend(self.window.remove(&at).map(|item| item.thing));
                    }
                }
                self.bytes = self.bytes.saturating_sub(inside.iter().map(size).sum());
                Some(Moment::Call { call, inside })
            }
        }
    }
}

impl<C, E> Iterator for Timeline<C, E>
where
    C: Iterator<Item = Result<Part, ReadError>>,
    E: Iterator<Item = Result<Part, ReadError>>,
{
    type Item = Result<Moment, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if !self.open {
            return self.begin();
        }
        while self.window.len() < WINDOW && self.bytes < WINDOW_BYTES {
            match self.take() {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => return Some(Err(error)),
            }
        }
        if let Some(moment) = self.pop() {
            return Some(Ok(moment));
        }
        self.open = false;
        self.unanswered.clear();
        let finish = self.finish.take();
        Some(Ok(finish.unwrap_or(Moment::Finish { ended_at: None, end: None })))
    }
}

impl<I: Iterator<Item = Result<Part, ReadError>>> Half<I> {
    /// Where the next thing of this session stands that counts here: an error before everything, the end after it.
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

/// About how much memory something takes.
fn size(thing: &Inside) -> usize {
    match thing {
        Inside::Call(call) => {
            let answer = call.response.as_ref().map_or(0, |answer| answer.message.raw().len());
            call.request.message.raw().len() + answer
        }
        Inside::Entry(entry) => match &entry.what {
            What::Message { message, .. } => message.raw().len(),
            What::Http { head, .. } => head.headers.text().len(),
            What::Event { data, .. } => data.len(),
            What::Stderr { line } => line.len(),
            What::Piece { bytes, .. } => bytes.len(),
            What::ChannelEnded { .. } | What::Ended(_) => 0,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Message;
    use crate::trace::{Fold, Start, arbitrary};
    use proptest::prelude::*;
    use serde_json::Map;
    use std::time::Duration;

    fn start() -> Start {
        Start { session_id: "a".into(), server_info: Map::new(), started_at: None, metadata: Map::new() }
    }

    fn parts(entries: Vec<Entry>) -> Vec<Part> {
        let (mut fold, mut parts) = (Fold::new(start()), Vec::new());
        entries.into_iter().for_each(|entry| fold.entry(entry, &mut parts));
        fold.finish(None, &mut parts);
        parts
    }

    fn timeline(parts: &[Part]) -> Vec<Moment> {
        let half = || parts.iter().cloned().map(Ok);
        Timeline::new(half(), half()).map(Result::unwrap).collect()
    }

    /// Each top-level thing by its number, with what is inside it in brackets.
    fn shape(said: &[(Side, u64, &str)]) -> String {
        let entry = |(seq, (from, channel, members)): (u64, &(Side, u64, &str))| {
            let message = Message::parse(format!(r#"{{"jsonrpc":"2.0",{members}}}"#));
            let what = What::Message { from: *from, channel: Channel(*channel), message, event_id: None };
            Entry::new(seq, Duration::from_millis(seq), what)
        };
        let parts = parts((0..).zip(said).map(entry).collect());
        let number = |inside: &Inside| match inside {
            Inside::Call(call) => call.request.seq.to_string(),
            Inside::Entry(entry) => entry.seq.to_string(),
        };
        let words = timeline(&parts).into_iter().filter_map(|moment| match moment {
            Moment::Start(_) | Moment::Finish { .. } => None,
            Moment::Entry(entry) => Some(entry.seq.to_string()),
            Moment::Call { call, inside } if inside.is_empty() => Some(call.request.seq.to_string()),
            Moment::Call { call, inside } => {
                let inside: Vec<_> = inside.iter().map(number).collect();
                Some(format!("{}[{}]", call.request.seq, inside.join(" ")))
            }
        });
        words.collect::<Vec<_>>().join(" ")
    }

    const CALL: &str = r#""id":1,"method":"tools/call","params":{"_meta":{"progressToken":7}}"#;
    const SECOND: &str = r#""id":2,"method":"tools/call""#;
    const ASK: &str = r#""id":1,"method":"sampling/createMessage""#;
    const RESULT: &str = r#""id":1,"result":{}"#;
    const SECOND_RESULT: &str = r#""id":2,"result":{}"#;
    const PROGRESS: &str = r#""method":"notifications/progress","params":{"progressToken":7}"#;
    const LOG: &str = r#""method":"notifications/message","params":{}"#;
    const CANCEL: &str = r#""method":"notifications/cancelled","params":{"requestId":1}"#;
    const CHANGED: &str = r#""method":"notifications/tools/list_changed""#;
    use Side::{Client, Server};

    #[test]
    fn what_belongs_to_a_call_is_inside_it() {
        let talk = [
            (Client, 0, CALL),
            (Server, 0, PROGRESS),
            (Server, 0, ASK),
            (Client, 0, RESULT),
            (Server, 0, LOG),
            (Server, 0, CHANGED),
            (Client, 0, CANCEL),
            (Server, 0, RESULT),
            (Server, 0, PROGRESS),
        ];
        assert_eq!(shape(&talk), "0[1 2 4 6] 5 8");
    }

    #[test]
    fn what_belongs_to_a_call_that_was_never_answered_is_inside_it() {
        let talk = [
            (Client, 0, CALL),
            (Server, 0, PROGRESS),
            (Client, 0, SECOND),
            (Server, 0, SECOND_RESULT),
            (Server, 0, PROGRESS),
            (Server, 0, LOG),
            (Client, 0, CANCEL),
        ];
        assert_eq!(shape(&talk), "0[1 4 6] 2 5");
    }

    #[test]
    fn what_may_belong_to_either_of_two_calls_is_inside_neither() {
        let talk = [
            (Client, 0, CALL),
            (Client, 0, SECOND),
            (Server, 0, ASK),
            (Client, 0, RESULT),
            (Server, 0, PROGRESS),
            (Server, 0, SECOND_RESULT),
            (Server, 0, LOG),
            (Server, 0, RESULT),
        ];
        assert_eq!(shape(&talk), "0[4 6] 1 2");
    }

    #[test]
    fn over_http_a_channel_tells_what_belongs_to_whom() {
        let talk = [
            (Client, 1, CALL),
            (Client, 2, SECOND),
            (Server, 2, ASK),
            (Server, 1, LOG),
            (Client, 3, RESULT),
            (Server, 2, SECOND_RESULT),
            (Server, 1, RESULT),
        ];
        assert_eq!(shape(&talk), "0[3] 1[2]");
    }

    #[test]
    fn the_head_of_a_post_is_inside_the_call_that_it_brought() {
        let head = |from, status: Option<u16>| What::Http {
            from,
            channel: Channel(1),
            head: crate::trace::HttpHead { method: None, target: None, status, headers: Default::default() },
        };
        let message = |from, members: &str| {
            let message = Message::parse(format!(r#"{{"jsonrpc":"2.0",{members}}}"#));
            What::Message { from, channel: Channel(1), message, event_id: None }
        };
        let whats = [head(Client, None), message(Client, CALL), head(Server, Some(200)), message(Server, RESULT)];
        let entries = (0..).zip(whats).map(|(seq, what)| Entry::new(seq, Duration::ZERO, what)).collect();
        let moments = timeline(&parts(entries));
        let [Moment::Start(_), Moment::Call { inside, .. }, Moment::Finish { .. }] = &moments[..] else {
            panic!("{moments:?}")
        };
        assert_eq!(inside.len(), 2);
    }

    #[test]
    fn calls_stand_where_they_were_asked_though_they_were_answered_later() {
        let talk = [
            (Client, 0, CALL),
            (Client, 0, SECOND),
            (Server, 0, CHANGED),
            (Server, 0, SECOND_RESULT),
            (Server, 0, RESULT),
        ];
        assert_eq!(shape(&talk), "0 1 2");
    }

    #[test]
    fn a_call_that_is_longer_than_the_window_stands_where_it_was_answered() {
        let message = |from, members: &str| {
            let message = Message::parse(format!(r#"{{"jsonrpc":"2.0",{members}}}"#));
            What::Message { from, channel: Channel::MAIN, message, event_id: None }
        };
        let mut whats = vec![message(Client, CALL)];
        whats.extend((0..WINDOW * 2).map(|_| message(Server, CHANGED)));
        whats.push(message(Server, RESULT));
        let entries = (0..).zip(whats).map(|(seq, what)| Entry::new(seq, Duration::ZERO, what)).collect();
        let moments = timeline(&parts(entries));
        assert_eq!(moments.len(), 1 + WINDOW * 2 + 1 + 1);
        let place = moments.iter().position(|moment| matches!(moment, Moment::Call { .. })).unwrap();
        assert!(place > WINDOW, "{place}");
    }

    #[test]
    fn a_bad_line_is_told_once() {
        let bad = || ReadError::Bad { line: 3, column: 1, expected: "x".into() };
        let half = || {
            vec![
                Ok(Part::Start(start())),
                Err(bad()),
                Ok(Part::Start(start())),
                Ok(Part::Finish { ended_at: None, end: None }),
            ]
        };
        let told: Vec<bool> =
            Timeline::new(half().into_iter(), half().into_iter()).map(|moment| moment.is_ok()).collect();
        assert_eq!(told, [true, false, true, true, true]);
    }

    proptest! {
        #[test]
        fn everything_is_in_the_timeline_once(entries in arbitrary::entries()) {
            let parts = parts(entries);
            let mut told: Vec<String> = Vec::new();
            for moment in timeline(&parts) {
                match moment {
                    Moment::Start(start) => told.push(format!("{:?}", Part::Start(start))),
                    Moment::Finish { ended_at, end } => told.push(format!("{:?}", Part::Finish { ended_at, end })),
                    Moment::Entry(entry) => told.push(format!("{:?}", Part::Entry(entry))),
                    Moment::Call { call, inside } => {
                        told.push(format!("{:?}", Part::Call(call)));
                        told.extend(inside.into_iter().map(|inside| match inside {
                            Inside::Call(call) => format!("{:?}", Part::Call(call)),
                            Inside::Entry(entry) => format!("{:?}", Part::Entry(entry)),
                        }));
                    }
                }
            }
            let mut expected: Vec<String> = parts.iter().map(|part| format!("{part:?}")).collect();
            expected.sort();
            told.sort();
            prop_assert_eq!(told, expected);
        }
    }
}
