//! Which of several calls in flight asked a question of the server's.
//!
//! ```text
//! 1  it came on the call's own stream                                     sure
//! 2  the call waited for the answer: it was answered after it     ┐
//! 3  the call is of a kind that asks: a tool, prompt or resource  │ evidence: one that is ahead has it
//! 4  words of the question or its answer are in the call or its   │
//!    result; short ones count where longer ones do not decide     ┘
//! 5  nothing else that the call asked was open                    ┐
//! 6  a call of the same tool is known to ask                      │
//! 7  the call has said something since it last asked              │ a guess, for those who must choose
//! 8  the call asks nothing else                                   │
//! 9  the call was answered first                                  ┘
//! ```
//!
//! The first line in which calls differ decides. What the first four leave open is told to be nobody's, with the
//! [likely](super::Woven::likely) one beside it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use super::evidence::Shared;
use super::tie::{Mark, Tie};

/// The place of something: its number, and that in its batch.
type Place = (u64, u32);

/// How many calls are looked at for each question: those that were answered first after it was.
pub(super) const COMPARED: usize = 256;
/// How many tools are remembered that ask.
const TOOLS: usize = 1024;

/// What speaks for a call to have asked something: lines 2 to 4, the better the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Claim {
    pub(super) waited: bool,
    pub(super) asks: bool,
    pub(super) shared: Shared,
}

/// Those of several calls for which most speaks to have asked something.
pub(super) fn best<'a, P>(question: &Tie, calls: impl Iterator<Item = (P, &'a Tie)>) -> Vec<P> {
    let (mut best, mut most) = (Vec::new(), None);
    for (place, call) in calls {
        let claim = Some(question.claim(call));
        if claim > most {
            best.clear();
            most = claim;
        }
        if claim == most {
            best.push(place);
        }
    }
    best
}

/// What is known of the calls that may have asked what is not decided: lines 5 to 9.
#[derive(Debug, Default)]
pub(super) struct Askers {
    calls: BTreeMap<Place, Asker>,
    /// Those of which a call surely asked.
    tools: HashSet<Mark>,
}

#[derive(Debug)]
struct Asker {
    end: Place,
    tool: Option<Mark>,
    /// What it asked, and when that was answered.
    asked: BTreeMap<Place, Place>,
    /// When it said something else.
    said: Vec<Place>,
}

impl Askers {
    /// Learns from a call what belongs to it; it is kept where it may have asked something else.
    pub(super) fn learn<'a>(&mut self, call: &Tie, inside: impl Iterator<Item = &'a Tie>, is_candidate: bool) {
        let mut asker = Asker { end: call.end_or_never(), tool: call.tool(), asked: BTreeMap::new(), said: Vec::new() };
        for thing in inside {
            if thing.is_question() {
                asker.asked.insert(thing.place, thing.end_or_never());
            } else if thing.is_said() && is_candidate {
                asker.said.push(thing.place);
            }
        }
        if !asker.asked.is_empty() && self.tools.len() < TOOLS {
            self.tools.extend(asker.tool);
        }
        if is_candidate {
            self.calls.insert(call.place, asker);
        }
    }

    /// The one of these that likeliest asked it.
    pub(super) fn guess(&mut self, question: &Tie, candidates: &[Place]) -> Option<Place> {
        let at = question.place;
        let rank = |place: &&Place| {
            let asker = self.calls.get(place)?;
            let last = asker.asked.range(..at).next_back();
            let waits = last.is_some_and(|(_, answered)| *answered > at);
            let is_known = asker.tool.is_some_and(|tool| self.tools.contains(&tool));
            let before = asker.said.partition_point(|said| *said < at);
            let last_said = before.checked_sub(1).and_then(|last| asker.said.get(last));
            let goes_on = last_said.is_some_and(|said| last.is_none_or(|(asked, _)| said > asked));
            Some((!waits, is_known, goes_on, asker.asked.is_empty(), Reverse(asker.end)))
        };
        let likely = candidates.iter().max_by_key(rank).copied();
        self.calls.retain(|_, asker| asker.end > at);
        if let Some(asker) = likely.and_then(|place| self.calls.get_mut(&place)) {
            asker.asked.insert(at, question.end_or_never());
        }
        likely
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::Map;

    use super::*;
    use crate::exchange::{Channel, Side};
    use crate::message::Message;
    use crate::trace::{Entry, Fold, Part, Start, Ties, Weave, What, Woven};

    /// Which call each question is given to whose words tell nothing: `>1 a` calls the tool `a`, `<1` answers it, `?7` asks,
    /// `!7` answers that, and `.1` is progress.
    fn likely(talk: &str) -> Vec<(u64, u64)> {
        let entry = |(seq, words): (u64, &str)| {
            let (mark, rest) = words.split_at(1);
            let (id, tool) = rest.split_once(' ').unwrap_or((rest, ""));
            let (from, members) = match mark {
                ">" => {
                    let params = format!(r#"{{"name":"{tool}","_meta":{{"progressToken":{id}}}}}"#);
                    (Side::Client, format!(r#""id":{id},"method":"tools/call","params":{params}"#))
                }
                "<" => (Side::Server, format!(r#""id":{id},"result":{{}}"#)),
                "?" => (Side::Server, format!(r#""id":{id},"method":"elicitation/create","params":{{"message":"…"}}"#)),
                "!" => (Side::Client, format!(r#""id":{id},"result":{{"action":"accept"}}"#)),
                "." => {
                    let params = format!(r#"{{"progressToken":{id},"progress":1}}"#);
                    (Side::Server, format!(r#""method":"notifications/progress","params":{params}"#))
                }
                other => panic!("{other}"),
            };
            let message = Message::parse(format!(r#"{{"jsonrpc":"2.0",{members}}}"#));
            Entry::new(seq, Duration::ZERO, What::Message { from, channel: Channel::MAIN, message, event_id: None })
        };
        let start = Start { session_id: "a".into(), server_info: Map::new(), started_at: None, metadata: Map::new() };
        let (mut fold, mut parts) = (Fold::new(start), Vec::new());
        (0..).zip(talk.split(", ")).map(entry).for_each(|entry| fold.entry(entry, &mut parts));
        fold.finish(None, &mut parts);
        let mut ties = Ties::default();
        let tie = |part: Part| match part {
            Part::Call(call) => Some(ties.of_call(&call)),
            Part::Entry(entry) => Some(Tie::of_entry(&entry)),
            Part::Start(_) | Part::Finish { .. } => None,
        };
        let mut all: Vec<Tie> = parts.into_iter().filter_map(tie).collect();
        all.sort_by_key(Tie::settled);
        let mut weave = Weave::default();
        all.into_iter().for_each(|tie| weave.take(tie.clone(), tie, 0));
        let mut likely = Vec::new();
        while let Some(Woven { thing, inside, likely: guess }) = weave.give() {
            likely.extend(guess.map(|(call, _)| (thing.seq(), call)));
            likely.extend(inside.iter().filter(|it| it.is_question()).map(|it| (it.seq(), thing.seq())));
        }
        likely.sort_unstable();
        likely
    }

    #[test]
    fn calls_of_one_tool_ask_in_turn() {
        assert_eq!(likely(">1 a, >2 a, ?7, !7, ?8, !8, <1, <2"), [(2, 0), (4, 1)]);
        assert_eq!(likely(">1 a, >2 a, ?7, ?8, !7, !8, <2, <1"), [(2, 1), (3, 0)]);
    }

    #[test]
    fn a_call_that_goes_on_after_its_question_asks_again() {
        assert_eq!(likely(">1 a, >2 a, ?7, !7, .1, ?8, !8, <1, <2"), [(2, 0), (5, 0)]);
        let both = ">1 a, >2 a, .1, ?7, !7, .1, .2, ?8, !8, <1, <2";
        assert_eq!(likely(both), [(3, 0), (7, 1)], "the other one does, too");
    }

    #[test]
    fn a_call_that_waits_for_an_answer_asks_nothing_else() {
        assert_eq!(likely(">1 a, >2 b, ?7, .1, ?8, !7, !8, <1, <2"), [(2, 0), (4, 1)]);
    }

    #[test]
    fn a_tool_that_asked_before_asks_again() {
        assert_eq!(likely(">1 b, ?6, !6, <1, >2 a, >3 b, ?7, !7, ?8, !8, <2, <3"), [(1, 0), (6, 5), (8, 5)]);
    }

    #[test]
    fn who_was_answered_before_the_question_was_did_not_ask_it() {
        assert_eq!(likely(">1 a, >2 b, >3 c, ?7, <1, !7, <3, <2"), [(3, 2)]);
    }
}
