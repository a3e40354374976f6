//! A recorded exchange, played again for another client.

use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::adapt::{adapted, adapted_notification};
use super::recorded::Recorded;
use super::score::{Step, score};
use super::unmatched::Unmatched;
use crate::answer::{Act, Answer, Asked, Change, Provenance, Question, World};
use crate::message::{ErrorReply, Method, Reply};
use crate::protocol::{Era, Revision, code, meta};
use crate::script::mock::{Delay, LogLevel};
use crate::trace::RequestKey;

/// How fast a recording is played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// As fast as can be.
    None,
    /// So many times as long as it once took: 1 is as it was.
    Times(f64),
}

impl FromStr for Pace {
    type Err = String;

    fn from_str(word: &str) -> Result<Pace, String> {
        match (word, word.parse::<f64>()) {
            ("none", _) => Ok(Pace::None),
            ("recorded", _) => Ok(Pace::Times(1.0)),
            (_, Ok(0.0)) => Ok(Pace::None),
            (_, Ok(factor)) if factor > 0.0 && factor <= 1e6 => Ok(Pace::Times(factor)),
            (_, _) => Err("write `recorded`, `none`, or a factor such as 0.5".to_owned()),
        }
    }
}

/// How long is paused between a notification and an answer, however fast things are to be: some clients hear the answer
/// first where both come at once, and the notification never. Clients on busy machines read late.
const BREATH: Duration = Duration::from_millis(50);

/// One request on its way to an answer that was recorded.
#[derive(Debug)]
pub struct RecordedPlay {
    pub(super) rounds: Vec<Arc<Recorded>>,
    pub(super) asked: Asked,
    pub(super) key: RequestKey,
    pub(super) info: Arc<Value>,
    pub(super) pace: Pace,
    pub(super) steps: Vec<Step>,
    /// What comes after the answer of each round.
    after: Vec<std::vec::IntoIter<Step>>,
    /// The rounds that are over when this play is: where each is a request of its own, only one.
    pub(super) over: Range<usize>,
    pub(super) next: usize,
    /// Answers that came with the request or since.
    pub(super) offered: Map<String, Value>,
    /// Whether the last thing that was said is a notification.
    pub(super) told: bool,
    pub(super) remarks: Vec<String>,
    /// What is answered in place of what was recorded.
    instead: Option<Answer>,
}

impl RecordedPlay {
    /// The play of an exchange, with its later rounds, for a client that asks the same.
    pub fn new(
        rounds: Vec<Arc<Recorded>>,
        asked: Asked,
        key: RequestKey,
        info: Arc<Value>,
        pace: Pace,
    ) -> RecordedPlay {
        let (steps, after) = score(&rounds, asked.terms.era());
        let offered = asked.params.get("inputResponses").and_then(Value::as_object).cloned().unwrap_or_default();
        let over = 0..after.len();
        let after = after.into_iter().map(Vec::into_iter).collect();
        RecordedPlay {
            rounds,
            asked,
            key,
            info,
            pace,
            steps,
            after,
            over,
            next: 0,
            offered,
            told: false,
            remarks: Vec::new(),
            instead: None,
        }
    }

    /// The same play, from a step on.
    #[must_use]
    pub fn from_step(mut self, step: usize) -> RecordedPlay {
        self.next = step;
        self
    }

    /// The same play with another answer.
    #[must_use]
    pub fn answering(mut self, answer: Answer) -> RecordedPlay {
        self.instead = Some(answer);
        self
    }

    /// The whole play at once, where it is nothing but an answer.
    pub fn at_once(recorded: &Recorded, asked: &Asked, info: &Value, pace: Pace) -> Option<Answer> {
        let is_round = recorded.is_round() || asked.terms.era() == Era::Modern && recorded.sends_elsewhere();
        let reply = recorded.reply().filter(|_| recorded.is_plain() && pace == Pace::None && !is_round)?;
        let reply = adapted(reply, &asked.method, recorded.revision, asked.terms.revision, info);
        let provenance = Provenance::Recording { place: Arc::clone(&recorded.place) };
        Some(Answer { provenance, ..Answer::protocol(reply) })
    }

    /// Whether it ends without an answer in the recording, or with one that cannot be understood.
    pub fn has_no_answer(&self) -> bool {
        self.rounds.last().is_some_and(|round| round.reply().is_none() && round.meant().is_none())
    }

    /// What is played for.
    pub fn asked(&self) -> &Asked {
        &self.asked
    }

    /// What the client said to a question, or why it said nothing. The recording goes on either way.
    pub fn answered(&mut self, name: &str, answer: Result<Value, String>) {
        match answer {
            Ok(answer) => drop(self.offered.insert(name.to_owned(), answer)),
            Err(why) => self.remarks.push(format!("{}: {why}; it goes on as recorded", self.place())),
        }
    }

    /// What is to be done next.
    pub fn next(&mut self, world: &World<'_>) -> Act {
        loop {
            let at = self.next;
            let Some(step) = self.steps.get(at).cloned() else {
                return Act::Reply(self.error("the recording ends here"));
            };
            if self.told && self.pace == Pace::None && step.ends() {
                self.told = false;
                return Act::Wait(Delay { from: BREATH, to: BREATH });
            }
            self.next += 1;
            let act = match step {
                Step::Wait(time) => self.paced(time),
                Step::Notify { method, params } => self.notified(method, params),
                // No other version has streams that are come back to.
                Step::CloseStream if self.asked.terms.revision == Revision::V2025_11_25 => {
                    Some(Act::CloseStream { retry: None })
                }
                Step::CloseStream => None,
                Step::Ask(questions) => self.ask(at, None, questions, world),
                Step::SendAway(round, questions) => self.ask(at, Some(round), questions, world),
                Step::Hear(name) if self.asked.terms.era() == Era::Legacy => Some(Act::Hear(name)),
                Step::Withdraw(name, said) if self.asked.terms.era() == Era::Legacy => Some(Act::Withdraw(name, said)),
                Step::Hear(_) | Step::Withdraw(..) => None,
                Step::Reply(round) => {
                    if self.asked.terms.era() == Era::Modern {
                        self.over = round..round + 1;
                    }
                    let instead = self.instead.take();
                    Some(Act::Reply(instead.unwrap_or_else(|| self.reply(round))))
                }
                Step::Visit(round, questions) => Some(Act::Reply(self.visit(at, round, questions, world))),
                Step::Ends => Some(Act::Reply(self.ended())),
            };
            if let Some(act) = act {
                return act;
            }
        }
    }

    /// What is to be done after the answer; `None` at the end. Questions need no answer to go on.
    pub fn afterwards(&mut self) -> Option<Act> {
        loop {
            let over = self.over.clone();
            let act = match self.after.get_mut(over)?.iter_mut().find_map(Iterator::next)? {
                Step::Wait(time) => self.paced(time),
                Step::Notify { method, params } => match Change::told(&method, &params) {
                    // Since 2026-07-28 nothing else is said outside of a request.
                    None if self.asked.terms.era() == Era::Modern => None,
                    Some(_) | None => self.notified(method, params),
                },
                Step::Ask(questions) if self.asked.terms.era() == Era::Legacy => self.possible(questions),
                Step::CloseStream
                | Step::Ask(_)
                | Step::SendAway(..)
                | Step::Hear(_)
                | Step::Withdraw(..)
                | Step::Reply(_)
                | Step::Visit(..)
                | Step::Ends => None,
            };
            if act.is_some() {
                return act;
            }
        }
    }

    pub(super) fn place(&self) -> Arc<str> {
        self.rounds.first().map_or_else(|| "an empty recording".into(), |round| Arc::clone(&round.place))
    }

    fn paced(&self, time: Duration) -> Option<Act> {
        let time = match self.pace {
            Pace::Times(factor) => Duration::try_from_secs_f64(time.as_secs_f64() * factor).ok()?,
            Pace::None => return None,
        };
        Some(Act::Wait(Delay { from: time, to: time }))
    }

    /// The version that it was recorded in, where that is known.
    pub(super) fn from(&self) -> Option<Revision> {
        self.rounds.first().and_then(|round| round.revision)
    }

    /// A change, for whoever wants to know.
    fn tell(&mut self, change: Change) -> Option<Act> {
        self.told = true;
        change.is_in(self.asked.terms.revision).then_some(Act::Tell(change))
    }

    /// A notification for this client, if it wants it.
    fn notified(&mut self, method: Method, params: Value) -> Option<Act> {
        let (terms, from) = (&self.asked.terms, self.from());
        // Since 2026-07-28 changes are told to those who listen.
        let is_modern = |revision: Revision| revision.era() == Era::Modern;
        if let Some(change) = Change::told(&method, &params)
            && (is_modern(terms.revision) || from.is_some_and(is_modern))
        {
            return self.tell(change);
        }
        let mut params = adapted_notification(&method, params, from, terms.revision)?;
        if method == Method::PROGRESS {
            params[meta::PROGRESS_TOKEN] = self.token(params.get(meta::PROGRESS_TOKEN))?;
        } else if method == Method::LOG_MESSAGE && !terms.logs.include(LogLevel::of(&params)) {
            return None;
        }
        self.told = true;
        Some(Act::Notify { method, params })
    }

    /// The token under which this client gets progress that was recorded under another; `None` for progress of another call.
    fn token(&self, recorded: Option<&Value>) -> Option<Value> {
        let own: Vec<Value> = self.rounds.iter().filter_map(|round| round.token()).collect();
        let is_own = own.is_empty() || recorded.is_none_or(|recorded| own.contains(recorded));
        self.asked.meta().get(meta::PROGRESS_TOKEN).filter(|_| is_own).cloned()
    }

    /// Of several questions those that this client can be asked.
    fn possible(&mut self, questions: Vec<Question>) -> Option<Act> {
        let questions = self.askable(questions);
        (!questions.is_empty()).then_some(Act::Pose(questions))
    }

    pub(super) fn reply(&self, round: usize) -> Answer {
        let Some(recorded) = self.rounds.get(round) else { return self.error("the recording ends here") };
        match recorded.reply() {
            Some(reply) => {
                let to = self.asked.terms.revision;
                self.answer(adapted(reply, &self.asked.method, recorded.revision, to, &self.info))
            }
            None => self.meant(recorded),
        }
    }

    /// An answer that breaks the rules, as it was in its own version, and in others what it means.
    fn meant(&self, recorded: &Recorded) -> Answer {
        let to = self.asked.terms.revision;
        let Some((message, reply)) = recorded.meant() else { return self.not_understood(&recorded.place) };
        let verbatim = (recorded.revision == Some(to)).then(|| Box::new(message.clone()));
        let reply = adapted(&reply, &self.asked.method, recorded.revision, to, &self.info);
        Answer { verbatim, ..self.answer(reply) }
    }

    fn not_understood(&self, place: &str) -> Answer {
        let why = format!("{place}: the recorded answer cannot be understood");
        let reply = Reply::Error(ErrorReply::new(code::INTERNAL_ERROR, why.clone()));
        let remarks = self.remarks.iter().cloned().chain([why]).collect();
        Answer { remarks, provenance: Provenance::Nobody, ..Answer::protocol(reply) }
    }

    /// The refusal of a request that continues the recording beyond its end: the recorded client sent no input responses, or the
    /// recorded server no answer to them.
    pub(super) fn ended(&self) -> Answer {
        let Some(round) = self.rounds.last() else { return self.error("the recording ends here") };
        let place = round.place.to_string();
        let why = if round.is_answered() { Unmatched::Ended { place } } else { Unmatched::Unanswered { place } };
        let refusal = why.refusal(&self.asked.method, &self.asked.params);
        Answer { remarks: self.remarks.iter().cloned().chain(refusal.remarks).collect(), ..refusal }
    }

    fn error(&self, why: &str) -> Answer {
        self.answer(Reply::Error(ErrorReply::new(code::INTERNAL_ERROR, format!("{}: {why}", self.place()))))
    }

    pub(super) fn answer(&self, reply: Reply) -> Answer {
        let provenance = Provenance::Recording { place: self.place() };
        Answer { remarks: self.remarks.clone(), provenance, ..Answer::protocol(reply) }
    }
}

impl RecordedPlay {
    /// The exchange and the step that a client comes back to, where it comes back.
    pub fn resumed(asked: &Asked, key: RequestKey, world: &World<'_>) -> Result<Option<(u32, usize)>, ErrorReply> {
        let Some(state) = state(asked, key, world)? else { return Ok(None) };
        // It is signed, so it is what we wrote.
        let number = |key: &str| state[key].as_u64().unwrap_or_default();
        let exchange = u32::try_from(number("exchange")).unwrap_or(u32::MAX);
        Ok(Some((exchange, usize::try_from(number("step")).unwrap_or(usize::MAX))))
    }

    pub(super) fn askable(&mut self, questions: Vec<Question>) -> Vec<Question> {
        let mut askable = Vec::new();
        let (is_modern, from) = (self.asked.terms.era() == Era::Modern, self.from());
        let asks = [Method::TOOLS_CALL, Method::PROMPTS_GET, Method::RESOURCES_READ].contains(&self.asked.method);
        for question in questions.into_iter().filter(|question| !(is_modern && question.method == Method::PING)) {
            let can_be_asked = match is_modern && !asks {
                true => Err(format!("{} asks nothing since {}", self.asked.method, Revision::V2026_07_28)),
                false => question.adapted(&self.asked.terms, from),
            };
            match can_be_asked {
                Ok(question) => askable.push(question),
                Err(why) => {
                    let place = self.place();
                    self.remarks.push(format!("{place}: {why}; it goes on as recorded"));
                }
            }
        }
        askable
    }

    /// Asks what was asked; since 2026-07-28 by sending the client away until it knows.
    pub(super) fn ask(
        &mut self,
        at: usize,
        round: Option<usize>,
        questions: Vec<Question>,
        world: &World<'_>,
    ) -> Option<Act> {
        let had_any = !questions.is_empty();
        let questions = self.askable(questions);
        if self.asked.terms.era() == Era::Legacy {
            return (!questions.is_empty()).then_some(Act::Pose(questions));
        }
        // Who is sent away has to answer, so nobody is for what nobody waited for.
        let is_heard =
            |name: &str| self.steps.iter().skip(at).any(|it| matches!(it, Step::Hear(heard) if heard == name));
        let questions: Vec<_> = questions.into_iter().filter(|it| is_heard(&it.name)).collect();
        if had_any && questions.is_empty() {
            return None;
        }
        // State alone asks for nothing: whoever comes back has done all that was wanted.
        let back = self.state_at(at, world);
        let is_back = back.is_some();
        let heard = back.and_then(|mut state| state["heard"].as_array_mut().map(std::mem::take)).unwrap_or_default();
        let is_given = |name: &str| self.offered.contains_key(name) || heard.iter().any(|heard| heard == name);
        let (given, missing): (Vec<_>, Vec<_>) = questions.into_iter().partition(|it| is_given(&it.name));
        if missing.is_empty() && (had_any || is_back) {
            // A later round may use the same names for other questions.
            given.iter().for_each(|it| drop(self.offered.shift_remove(&it.name)));
            return None;
        }
        Some(Act::Reply(self.round(at, round, (&given, &missing), world)))
    }

    /// Sends the client elsewhere: since 2026-07-28 by a question, after which it comes back to the next recording.
    pub(super) fn visit(&mut self, at: usize, round: usize, questions: Vec<Question>, world: &World<'_>) -> Answer {
        let questions = match self.asked.terms.era() {
            Era::Modern => self.askable(questions),
            Era::Legacy => Vec::new(),
        };
        if questions.is_empty() {
            return self.reply(round);
        }
        let missing: Vec<_> = questions.into_iter().filter(|it| !self.offered.contains_key(&it.name)).collect();
        if missing.is_empty() { self.ended() } else { self.round(at, None, (&[], &missing), world) }
    }

    /// The state that a client comes back to this step with.
    fn state_at(&self, step: usize, world: &World<'_>) -> Option<Value> {
        state(&self.asked, self.key, world).ok().flatten().filter(|state| state["step"] == step)
    }

    /// Sends the client away for what is missing beside what is given; as it was once sent away, where that was in its version.
    fn round(
        &mut self,
        step: usize,
        round: Option<usize>,
        (given, questions): (&[Question], &[Question]),
        world: &World<'_>,
    ) -> Answer {
        // Nothing is over but the round that sends the client away, if it is one.
        self.over = round.map_or(0..0, |round| round..round + 1);
        let exchange = self.rounds.first().map_or(u32::MAX, |round| round.number);
        let heard: Vec<&str> = given.iter().map(|question| &*question.name).collect();
        let state = json!({"exchange": exchange, "step": step, "heard": heard});
        let state = world.seal.close(&state, &self.key.to_string(), world.now_ms);
        let (recorded, revision) = (round.and_then(|round| self.rounds.get(round)), self.asked.terms.revision);
        let result = recorded.and_then(|recorded| recorded.input_required(revision, questions, &state));
        let result =
            result.unwrap_or_else(|| Question::input_required(questions, Some(state), &self.asked, &self.info));
        self.answer(Reply::Result(result))
    }
}

/// What we gave a client to come back with, where it comes back.
fn state(asked: &Asked, key: RequestKey, world: &World<'_>) -> Result<Option<Value>, ErrorReply> {
    let given = match asked.params.get("requestState") {
        Some(given) if asked.terms.era() == Era::Modern => given,
        Some(_) | None => return Ok(None),
    };
    let invalid = |why: String| ErrorReply::new(code::INVALID_PARAMS, why);
    let given = given.as_str().ok_or_else(|| invalid("requestState must be a string".to_owned()))?;
    let state = world.seal.open(given, &key.to_string(), world.now_ms);
    state.map(Some).map_err(|broken| invalid(broken.to_string()))
}
