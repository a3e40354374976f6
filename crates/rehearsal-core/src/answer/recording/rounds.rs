//! Rounds: a client is sent away until it knows, since 2026-07-28, and comes back.

use serde_json::{Value, json};

use super::play::RecordedPlay;
use super::score::Step;
use crate::answer::{Act, Answer, Asked, Question, World};
use crate::message::{ErrorReply, Method, Reply};
use crate::protocol::{Era, Revision, code};
use crate::trace::RequestKey;

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
