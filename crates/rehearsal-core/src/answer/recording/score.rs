//! A recorded exchange as a list of steps.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::recorded::{Place, Recorded, Thing};
use crate::answer::{Question, Rise};
use crate::exchange::Side;
use crate::message::{Message, Method};
use crate::protocol::Era;
use crate::trace::{Call, Entry, Inside, What};

/// One step of a recorded exchange.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// So long it took.
    Wait(Duration),
    /// The server told something.
    Notify { method: Method, params: Value },
    /// The server closed the stream, and the client came back.
    CloseStream,
    /// The server asked.
    Ask(Vec<Question>),
    /// The server asked by sending the client away; which round.
    SendAway(usize, Vec<Question>),
    /// The server had the answer to a question before it went on; its name.
    Hear(String),
    /// The server wanted no answer to a question any more; its name, and what else it said, such as why.
    Withdraw(String, Map<String, Value>),
    /// The server answered; which round.
    Reply(usize),
    /// The server refused until the client has been elsewhere, as 2025-11-25 does; which round, and where.
    Visit(usize, Vec<Question>),
    /// The client never sent its input responses, or the server never answered them.
    Ends,
}

impl Step {
    /// Whether the client may hear an answer now, or be sent away with a question.
    pub(super) fn ends(&self) -> bool {
        match self {
            Step::Ask(_) | Step::SendAway(..) | Step::Reply(_) | Step::Visit(..) | Step::Ends => true,
            Step::Wait(_) | Step::Notify { .. } | Step::CloseStream | Step::Hear(_) | Step::Withdraw(..) => false,
        }
    }
}

/// The steps of an exchange and of its later rounds, for a client of an era, and those after the answer of each.
pub(super) fn score(rounds: &[Arc<Recorded>], era: Era) -> (Vec<Step>, Vec<Vec<Step>>) {
    // Since 2026-07-28 each round is a request of its own.
    let rise = (era == Era::Legacy && rounds.len() > 1).then(Rise::default);
    let (steps, open, named) = Default::default();
    let (last, in_rounds) = (Duration::ZERO, era == Era::Modern);
    let mut writing = Writing { steps, asked: 0, open, named, last, round: 0, rise, in_rounds };
    let mut after = Vec::new();
    for (number, round) in rounds.iter().enumerate() {
        let request = &round.call.request;
        writing.round = number;
        writing.last = request.at;
        writing.things(&round.things, Place::Before);
        writing.answer(round, number, number + 1 < rounds.len());
        // What the server did not wait for before it answered needs no answer.
        writing.open.clear();
        let steps = std::mem::take(&mut writing.steps);
        writing.things(&round.things, Place::After);
        after.push(std::mem::replace(&mut writing.steps, steps));
    }
    (writing.steps, after)
}

struct Writing {
    steps: Vec<Step>,
    /// How many questions were asked that have no name of their own.
    asked: usize,
    /// Questions whose answers are still to come, each with the place and the time of the answer.
    open: Vec<(u64, Duration, String)>,
    /// The names of all questions by their ids.
    named: Vec<(String, String)>,
    /// When the last thing happened.
    last: Duration,
    /// Which round is written.
    round: usize,
    /// How far all the rounds are, where they are one call.
    rise: Option<Rise>,
    /// Whether the client is sent away with what it is asked.
    in_rounds: bool,
}

impl Writing {
    fn things(&mut self, things: &[Thing], place: Place) {
        let mut things = things.iter().filter(|thing| thing.place == place).peekable();
        while let Some(thing) = things.next() {
            match &thing.what {
                Inside::Entry(entry) => self.entry(entry),
                Inside::Call(call) if call.asker == Side::Server => {
                    self.hear_before(call.request.seq);
                    self.wait(call.request.at);
                    let mut questions = vec![self.question(call)];
                    // Since 2026-07-28 what was asked before the first answer came is asked together.
                    while let Some(Thing { what: Inside::Call(next), .. }) = things.peek().filter(|_| self.in_rounds) {
                        let answered = self.open.iter().any(|(seq, ..)| *seq < next.request.seq);
                        if answered || next.asker != Side::Server {
                            break;
                        }
                        questions.push(self.question(next));
                        things.next();
                    }
                    self.steps.push(Step::Ask(questions));
                }
                Inside::Call(_) => {}
            }
        }
    }

    /// Waits for the answers that came before this place; the client takes its own time.
    fn hear_before(&mut self, seq: u64) {
        self.open.sort_by_key(|(seq, ..)| *seq);
        let heard = self.open.iter().take_while(|(answered, ..)| *answered < seq).count();
        for (_, at, name) in self.open.drain(..heard) {
            self.last = self.last.max(at);
            self.steps.push(Step::Hear(name));
        }
    }

    fn entry(&mut self, entry: &Entry) {
        self.hear_before(entry.seq);
        if let What::ChannelEnded { .. } = &entry.what {
            self.wait(entry.at);
            return self.steps.push(Step::CloseStream);
        }
        let What::Message { from, message, .. } = &entry.what else { return };
        let Some(notification) = message.as_notification() else { return };
        if *from == Side::Client {
            return;
        }
        if notification.method == Method::CANCELLED {
            let id = notification.param(&["requestId"]).map(|id| id.to_string());
            let named = self.named.iter().find(|(other, _)| Some(other) == id.as_ref());
            // Another call may have asked it.
            let Some(name) = named.map(|(_, name)| name.clone()) else { return };
            self.wait(entry.at);
            let said = notification.params.as_ref().and_then(|params| params.value().ok());
            let mut said = said.and_then(|said| said.as_object().cloned()).unwrap_or_default();
            said.shift_remove("requestId");
            return self.steps.push(Step::Withdraw(name, said));
        }
        self.wait(entry.at);
        let params = notification.params.as_ref().and_then(|params| params.value().ok());
        let params = params.unwrap_or_default();
        let rise = self.rise.as_mut().filter(|_| notification.method == Method::PROGRESS);
        let params = match rise {
            Some(rise) => rise.lift(self.round, params),
            None => Some(params),
        };
        if let Some(params) = params {
            self.steps.push(Step::Notify { method: notification.method.clone(), params });
        }
    }

    fn answer(&mut self, round: &Recorded, number: usize, goes_on: bool) {
        let Some(response) = &round.call.response else { return self.steps.push(Step::Ends) };
        self.hear_before(response.seq);
        self.wait(response.at);
        match asked_for(&response.message).filter(|_| round.is_round()) {
            None => self.steps.push(match round.visits() {
                Some(visits) => Step::Visit(number, visits),
                None => Step::Reply(number),
            }),
            Some(questions) => {
                let heard: Vec<_> = questions.iter().map(|question| Step::Hear(question.name.clone())).collect();
                self.steps.push(Step::SendAway(number, questions));
                self.steps.extend(heard);
                if !goes_on {
                    self.steps.push(Step::Ends);
                }
            }
        }
    }

    fn wait(&mut self, at: Duration) {
        let time = at.saturating_sub(self.last);
        if !time.is_zero() {
            self.steps.push(Step::Wait(time));
        }
        self.last = self.last.max(at);
    }

    fn question(&mut self, call: &Call) -> Question {
        self.asked += 1;
        let method = call.request.message.method().cloned().unwrap_or(Method::PING);
        let params = call.request.message.params().and_then(|params| params.value().ok());
        let params = params.filter(Value::is_object).unwrap_or_default();
        let name = format!("question-{}", self.asked);
        if let Some(request) = call.request.message.as_request() {
            self.named.push((request.id.to_string(), name.clone()));
        }
        self.open.extend(call.response.iter().map(|answer| (answer.seq, answer.at, name.clone())));
        Question { name, method, params }
    }
}

/// The questions of a round of `input_required`; none where it has only state.
fn asked_for(message: &Message) -> Option<Vec<Question>> {
    let crate::message::Reply::Result(result) = &message.as_response()?.reply else { return None };
    let requests = result.field("inputRequests").and_then(|requests| requests.value().ok());
    Some(Question::requested(requests.as_ref()))
}
