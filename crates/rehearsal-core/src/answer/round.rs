//! Asking the client: at once before 2026-07-28, in rounds since.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

use super::Asked;
use super::play::{Act, Cast, Cue, Play, World};
use super::question::{Objection, Question, QuestionDraft, asks_at_once};
use super::scene::Unanswered;
use super::state::State;
use crate::message::{ErrorReply, Reply};
use crate::protocol::{Era, code};
use crate::script::mock::Validate;

impl Play {
    /// The play that a client comes back to.
    pub(super) fn resume(cast: Cast, given: &str, world: &World<'_>) -> Result<Play, ErrorReply> {
        let invalid = |why: String| ErrorReply::new(code::INVALID_PARAMS, why);
        let belongs_to = belongs_to(&cast.asked, &cast.arguments);
        let state = world.seal.open(given, &belongs_to, world.now_ms).map_err(|broken| invalid(broken.to_string()))?;
        if !is_of(&cast, &state) {
            return Err(invalid("requestState was given before the mock file changed".to_owned()));
        }
        // It is signed, so it is what we wrote.
        Ok(Play::taken_up(cast, &state))
    }

    /// The play of a round.
    pub(super) fn taken_up(cast: Cast, round: &Value) -> Play {
        let number = |value: &Value| value.as_u64().and_then(|number| usize::try_from(number).ok()).unwrap_or_default();
        let mut play = Play::new(cast, number(&round["rule"]), round["call"].as_u64().unwrap_or(1));
        play.path = round["path"].as_array().into_iter().flatten().map(number).collect();
        play.cue = match (number(&round["step"]), &round["asked"]) {
            (at, Value::Bool(true)) => Cue::Asked(at),
            (at, _) => Cue::Step(at),
        };
        play.answers = round["answers"].as_object().cloned().unwrap_or_default();
        play
    }

    /// Asks what was not answered yet, and goes on where everything was.
    pub(super) fn ask(
        &mut self,
        at: usize,
        drafts: &[QuestionDraft],
        unanswered: Unanswered,
        state: &mut State,
        world: &World<'_>,
    ) -> Result<Option<Act>, String> {
        let at_once = asks_at_once(&self.asked.terms);
        let takes_anything = self.target.validate(&self.mock) == Validate::Off;
        for draft in drafts.iter().filter(|draft| !self.answers.contains_key(&draft.name)).collect::<Vec<_>>() {
            match self.offered.shift_remove(&draft.name) {
                Some(answer) if takes_anything || draft.takes(&answer) => {
                    self.answers.insert(draft.name.clone(), answer);
                }
                Some(_) if at_once && unanswered == Unanswered::IsNull => {
                    self.answers.insert(draft.name.clone(), Value::Null);
                }
                Some(answer) if at_once => {
                    let why = format!("the client's answer to {} makes no sense: {answer}", draft.name);
                    return Ok(Some(self.failed(&why)));
                }
                // Asked again, as 2026-07-28 says.
                Some(_) | None => {}
            }
        }
        if unanswered == Unanswered::IsNull {
            let unable = drafts.iter().filter(|draft| draft.objection(&self.asked.terms).is_some());
            for draft in unable {
                self.answers.entry(&draft.name).or_insert(Value::Null);
            }
        }
        let missing: Vec<_> = drafts.iter().filter(|draft| !self.answers.contains_key(&draft.name)).collect();
        if missing.is_empty() {
            return Ok(None);
        }
        let terms = &self.asked.terms;
        let objections: Vec<Objection> = missing.iter().filter_map(|draft| draft.objection(terms)).collect();
        if let Some(first) = objections.first() {
            return Ok(Some(match at_once {
                true => self.failed(&first.why),
                false => self.error(Objection::error(&objections)),
            }));
        }
        let mut questions = Vec::with_capacity(missing.len());
        for draft in missing {
            questions.push(self.with_scope(state, |scope| draft.render(terms.revision, &self.mock.templates, scope))?);
        }
        self.cue = Cue::Asked(at);
        if at_once || self.in_task {
            return Ok(Some(Act::Ask(questions)));
        }
        Ok(Some(self.input_required(&questions, state, world)))
    }

    /// Sends the client away with questions and with everything that is needed to go on.
    pub(super) fn input_required(&self, questions: &[Question], state: &mut State, world: &World<'_>) -> Act {
        let (step, is_asked) = match self.cue {
            Cue::Enter | Cue::Task | Cue::Work => (0, false),
            Cue::Step(at) => (at, false),
            Cue::Asked(at) => (at, true),
        };
        let round = json!({
            "mock": self.mock.fingerprint,
            "rule": self.rule,
            "path": self.path,
            "step": step,
            "asked": is_asked,
            "call": self.call,
            "answers": self.answers,
        });
        let belongs_to = belongs_to(&self.asked, &self.arguments);
        let has_state = questions.is_empty() || self.scene().is_none_or(|scene| scene.request_state);
        let given = has_state.then(|| world.seal.close(&round, &belongs_to, world.now_ms));
        if given.is_none() {
            state.keep_round(belongs_to, round);
        }
        let result = Question::input_required(questions, given, &self.asked, &self.mock.info);
        self.reply(Reply::Result(result))
    }
}

/// The round that a client comes back to without state: it makes the same request again, and brings answers.
pub(super) fn returned(cast: &Cast, state: &mut State) -> Option<Value> {
    let params = &cast.asked.params;
    let returns = cast.asked.terms.era() == Era::Modern && params.get("inputResponses").is_some();
    let round = returns.then(|| state.take_round(&belongs_to(&cast.asked, &cast.arguments))).flatten();
    round.filter(|round| is_of(cast, round))
}

/// Whether a round is one of this mock.
fn is_of(cast: &Cast, round: &Value) -> bool {
    round["mock"] == json!(cast.mock.fingerprint)
}

/// What state is bound to: the same request, however its keys are ordered.
fn belongs_to(asked: &Asked, arguments: &Value) -> String {
    let name = asked.params.get("name").or_else(|| asked.params.get("uri"));
    format!("{} {} {}", asked.method, name.unwrap_or(&Value::Null), sorted(arguments))
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut keys: Vec<_> = fields.iter().collect();
            keys.sort_by_key(|(key, _)| *key);
            Value::Object(keys.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect())
        }
        Value::Array(elements) => elements.iter().map(sorted).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// How long a client may take to come back.
const LIFE_MS: u64 = 30 * 60 * 1000;

/// Signs state with a key of its own: HMAC-SHA256 over the state, the request that it belongs to and its end of life.
#[derive(Clone)]
pub struct Seal {
    key: [u8; 32],
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal")
    }
}

/// Why state that came back is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Broken {
    #[error("requestState is not what was given, or belongs to another request")]
    Forged,
    #[error("requestState has expired")]
    Expired,
}

impl Seal {
    /// A seal with this key, which must be random and belongs to one process.
    pub fn new(key: [u8; 32]) -> Seal {
        Seal { key }
    }

    /// State as it is given to the client.
    pub(super) fn close(&self, state: &Value, belongs_to: &str, now_ms: u64) -> String {
        let body = format!("{}.{state}", now_ms.saturating_add(LIFE_MS));
        let mark = self.mark(body.as_bytes(), belongs_to).finalize().into_bytes();
        format!("{}.{}", BASE64.encode(&body), BASE64.encode(mark))
    }

    /// State that came back.
    pub(super) fn open(&self, given: &str, belongs_to: &str, now_ms: u64) -> Result<Value, Broken> {
        let (body, mark) = given.split_once('.').ok_or(Broken::Forged)?;
        let (body, mark) = (BASE64.decode(body), BASE64.decode(mark));
        let (Ok(body), Ok(mark)) = (body, mark) else { return Err(Broken::Forged) };
        self.mark(&body, belongs_to).verify_slice(&mark).map_err(|_| Broken::Forged)?;
        let body = String::from_utf8(body).map_err(|_| Broken::Forged)?;
        let (end, state) = body.split_once('.').ok_or(Broken::Forged)?;
        if end.parse::<u64>().map_err(|_| Broken::Forged)? < now_ms {
            return Err(Broken::Expired);
        }
        serde_json::from_str(state).map_err(|_| Broken::Forged)
    }

    fn mark(&self, body: &[u8], belongs_to: &str) -> Hmac<Sha256> {
        let mut mark = Hmac::<Sha256>::new_from_slice(&self.key).expect("HMAC takes a key of any length");
        mark.update(&(body.len() as u64).to_be_bytes());
        mark.update(body);
        mark.update(belongs_to.as_bytes());
        mark
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn state_comes_back_only_unchanged_in_time_and_for_the_same_request() {
        let seal = Seal::new([7; 32]);
        let state = json!({"step": 2, "answers": {"name": "Ada"}});
        let given = seal.close(&state, "tools/call a", 1000);
        assert_eq!(seal.open(&given, "tools/call a", 2000), Ok(state));
        assert_eq!(seal.open(&given, "tools/call b", 2000), Err(Broken::Forged));
        assert_eq!(seal.open(&given, "tools/call a", 1001 + LIFE_MS), Err(Broken::Expired));
        assert_eq!(Seal::new([8; 32]).open(&given, "tools/call a", 2000), Err(Broken::Forged));
        for at in 0..given.len() {
            let mut forged = given.clone().into_bytes();
            forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
            let forged = String::from_utf8(forged).unwrap();
            assert!(seal.open(&forged, "tools/call a", 2000).is_err(), "{forged}");
        }
        assert!(seal.open("", "tools/call a", 0).is_err());
    }
}
