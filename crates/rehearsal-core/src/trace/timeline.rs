//! A trace in the order in which it happened, each thing under what it belongs to.
//!
//! ```text
//! calls, as they were settled ─┐
//!                              ├─► window ──► by the time of the question, with what belongs to each call inside it
//! the rest, as it happened ────┘
//! ```

use std::iter::Peekable;

use jiff::Timestamp;

use super::{Call, End, Entry, Part, ReadError, Start, Tie, Weave, What, Woven};
use crate::exchange::Side;

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
    /// Something that belongs to no call.
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

impl Inside {
    /// Whether the client takes back what it asked.
    pub fn cancels(&self) -> bool {
        let Inside::Entry(Entry { what: What::Message { from: Side::Client, message, .. }, .. }) = self else {
            return false;
        };
        message.method().is_some_and(|method| method.as_str() == "notifications/cancelled")
    }

    /// Whether the server tells a client that it listens from now on.
    pub fn lets_in(&self) -> bool {
        let Inside::Entry(Entry { what: What::Message { from: Side::Server, message, .. }, .. }) = self else {
            return false;
        };
        message.method().is_some_and(|method| method.as_str() == "notifications/subscriptions/acknowledged")
    }
}

/// Puts a trace in order with bounded memory, as [`Weave`] does.
pub struct Timeline<C: Iterator, E: Iterator> {
    calls: Half<C>,
    entries: Half<E>,
    weave: Weave<Inside>,
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
            weave: Weave::default(),
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

    /// Takes the next thing into the weave; `false` where the session has no more.
    fn take(&mut self) -> Result<bool, ReadError> {
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
                self.weave(Tie::of_call(&call), Inside::Call(call));
            }
            Some(Ok(Part::Entry(entry))) => self.weave(Tie::of_entry(&entry), Inside::Entry(entry)),
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

    fn weave(&mut self, tie: Tie, thing: Inside) {
        let bytes = size(&thing);
        self.weave.take(thing, tie, bytes);
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
        while !self.weave.is_full() {
            match self.take() {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => return Some(Err(error)),
            }
        }
        match self.weave.give() {
            Some(Woven { thing: Inside::Call(call), inside }) => return Some(Ok(Moment::Call { call, inside })),
            Some(Woven { thing: Inside::Entry(entry), .. }) => return Some(Ok(Moment::Entry(entry))),
            None => {}
        }
        self.open = false;
        self.weave = Weave::default();
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
    use crate::exchange::{Channel, Side};
    use crate::message::Message;
    use crate::trace::attribution::WINDOW;
    use crate::trace::{Fold, arbitrary};
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
        assert_eq!(shape(&talk), "0[1 2 4 5 6] 8");
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
    fn what_may_belong_to_two_calls_belongs_to_the_latest_that_is_open() {
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
        assert_eq!(shape(&talk), "0[4 6] 1[2]");
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
    fn of_two_calls_with_one_token_progress_belongs_to_that_of_its_channel() {
        let talk = [
            (Client, 1, CALL),
            (Client, 2, CALL),
            (Server, 2, PROGRESS),
            (Server, 1, PROGRESS),
            (Server, 2, PROGRESS),
            (Server, 1, RESULT),
            (Server, 2, PROGRESS),
            (Server, 2, RESULT),
        ];
        assert_eq!(shape(&talk), "0[3] 1[2 4 6]");
        // Neither was answered.
        assert_eq!(shape(&talk[..5]), "0[3] 1[2 4]");
    }

    #[test]
    fn progress_on_another_channel_is_known_by_its_token() {
        let talk = [
            (Client, 1, CALL),
            (Client, 2, SECOND),
            (Server, 3, PROGRESS),
            (Server, 2, PROGRESS),
            (Server, 2, SECOND_RESULT),
            (Server, 1, RESULT),
        ];
        assert_eq!(shape(&talk), "0[2 3] 1");
    }

    #[test]
    fn a_server_request_belongs_to_the_latest_open_call() {
        let ask = [(Server, 0, ASK), (Client, 0, RESULT)];
        let both = [(Client, 0, CALL), (Client, 0, SECOND)];
        let table = [
            ([&both[..], &ask, &[(Server, 0, SECOND_RESULT), (Server, 0, RESULT)]].concat(), "0 1[2]"),
            ([&both[..], &[(Server, 0, SECOND_RESULT)], &ask, &[(Server, 0, RESULT)]].concat(), "0[3] 1"),
            ([&both[..1], &[(Server, 0, RESULT)], &ask, &both[1..], &[(Server, 0, SECOND_RESULT)]].concat(), "0 2 4"),
            // It has no answer, so it may have ended before.
            ([&both[..], &ask, &[(Server, 0, RESULT)]].concat(), "0[2] 1"),
        ];
        for (talk, expected) in table {
            assert_eq!(shape(&talk), expected, "{talk:?}");
        }
    }

    #[test]
    fn a_server_request_that_names_its_task_belongs_to_the_call_about_it() {
        let task = r#""id":1,"method":"tasks/result","params":{"taskId":"t"}"#;
        let ask = r#""id":9,"method":"roots/list","params":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}"#;
        let answer = r#""id":9,"result":{"roots":[]}"#;
        let rest = [(Server, 0, ask), (Client, 0, answer), (Server, 0, SECOND_RESULT), (Server, 0, RESULT)];
        assert_eq!(shape(&[&[(Client, 0, task), (Client, 0, SECOND)][..], &rest].concat()), "0[2] 1");
        assert_eq!(shape(&[&[(Client, 0, CALL), (Client, 0, SECOND)][..], &rest].concat()), "0 1 2");
    }

    #[test]
    fn a_server_request_on_the_standing_stream_belongs_to_the_latest_open_call() {
        let roots = r#""id":2,"method":"tools/call","params":{"name":"roots"}"#;
        let ask = r#""id":9,"method":"roots/list""#;
        let answer = r#""id":9,"result":{"roots":[{"uri":"file:///a"}]}"#;
        let talk = [
            (Client, 4, CALL),
            (Client, 5, roots),
            (Server, 4, ASK),
            (Server, 3, ask),
            (Client, 6, answer),
            (Client, 7, RESULT),
            (Server, 4, RESULT),
            (Server, 5, SECOND_RESULT),
        ];
        assert_eq!(shape(&talk), "0[2] 1[3]");
        assert_eq!(shape(&[&talk[..2], &talk[6..], &talk[3..5]].concat()), "0 1 4");
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
        assert_eq!(shape(&talk), "0 1[2]");
    }

    #[test]
    fn a_call_that_is_longer_than_the_window_stands_where_it_was_answered() {
        let message = |from, members: &str| {
            let message = Message::parse(format!(r#"{{"jsonrpc":"2.0",{members}}}"#));
            What::Message { from, channel: Channel::MAIN, message, event_id: None }
        };
        let mut whats = vec![message(Client, CALL)];
        whats.extend((0..WINDOW * 2).map(|_| message(Client, CHANGED)));
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
