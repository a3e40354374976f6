//! Reads a recording for what it says about its server.
//!
//! ```text
//! Moment, Moment, … ──► handshake, lists ──► who it is and what it offers
//!                   ──► calls ──► rounds joined, volatile parts taken out ──► distinct requests, answers in order
//! ```

use std::collections::{BTreeSet, HashMap};

use rehearsal_core::answer::Logs;
use rehearsal_core::exchange::Side;
use rehearsal_core::json::RawJson;
use rehearsal_core::message::{ErrorReply, Method, Reply};
use rehearsal_core::protocol::{Era, Revision, meta};
use rehearsal_core::script::mock::LogLevel;
use rehearsal_core::trace::{Call, Inside, Moment, RequestKey};
use serde_json::{Map, Value};

use super::before::{name_questions, note_unsubscribed, said_before, undeclared};
use super::fate::{Account, Fate, beside, ended, unanswered};
use super::learned::{Answered, Before, Learned, Request, Said};
use super::listed::Listed;
use super::looked_at::{is_own, looked_at};
use super::refusals::{self, Refusals};
use super::result::{asked, asks, is_task, reply, unlike, without_envelope};
use super::secret::{has_secret, with_one_secret};

/// How many bytes of answers are taken in. What is generated is for people to edit.
const LIMIT: usize = 64 << 20;

/// What to do where several servers were recorded.
const PARTED: &str = "are different servers, which are one here (`rehearse trace split` parts their sessions)";

/// The recording is too large for a file that people edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answers of the recording are larger than {} MB together", LIMIT >> 20)]
pub struct TooLarge;

/// Learns from recordings in the order in which they happened; the sessions are taken together.
#[derive(Debug, Default)]
pub struct Learner {
    learned: Learned,
    /// Where a request stands among those that were learned.
    known: HashMap<RequestKey, usize>,
    /// When each of its answers was asked for, beside those that were learned.
    begun: Vec<Vec<usize>>,
    /// How many requests there were.
    requests: usize,
    /// Rounds of 2026-07-28 that the client has to come back for, by request and state.
    rounds: HashMap<(RequestKey, Option<String>), Vec<Round>>,
    /// The version that this session agreed on.
    agreed: Option<Revision>,
    /// From which level on its client wants log messages, where it said so.
    log_from: Option<LogLevel>,
    /// What its client declared, where it said so.
    client: Option<Value>,
    /// The resources that it has subscribed to.
    subscribed: BTreeSet<String>,
    refusals: Refusals,
    /// What the server was called where a session began, and in handshakes.
    names: [BTreeSet<String>; 2],
    /// What results said or did not say of themselves, unlike those of anything that is generated, in words.
    unlike: BTreeSet<String>,
    bytes: usize,
    /// Of every recorded thing.
    account: Account,
    /// Of what else is to be told.
    more: Account,
}

/// What came before an answer so far.
#[derive(Debug, Default)]
struct Round {
    /// The place of its first request among all of them.
    begun: usize,
    before: Vec<Before>,
    /// Whether its client was sent away with state, each time.
    states: Vec<bool>,
    /// How many recorded things it is made of.
    things: usize,
}

impl Learner {
    /// Takes in what happened next.
    pub fn moment(&mut self, moment: Moment) -> Result<(), TooLarge> {
        match moment {
            Moment::Start(start) => {
                (self.agreed, self.client, self.log_from) = (None, None, None);
                self.subscribed.clear();
                self.learned.lists_mut().into_iter().for_each(Listed::begin_session);
                // What a handshake says later counts more.
                self.names[0].extend(name(&start.server_info));
                for key in ["name", "version"] {
                    let said = start.server_info.get(key).filter(|said| said.is_string());
                    if let Some(said) = said.filter(|_| !self.learned.server.contains_key(key)) {
                        self.learned.server.insert(key.to_owned(), said.clone());
                    }
                }
            }
            Moment::Call { call, inside } if call.asker == Side::Client => self.call(&call, &inside)?,
            Moment::Call { call, inside } => {
                self.beside(&inside, call.request.message.method());
                self.account.enter(beside(&Inside::Call(call), None), 1);
            }
            Moment::Entry(entry) => self.beside(&[Inside::Entry(entry)], None),
            Moment::Finish { end, .. } => {
                if let Some(end) = end {
                    self.more.enter(ended(&end), 1);
                }
            }
        }
        Ok(())
    }

    /// Things that come before no answer of a rule.
    fn beside(&mut self, inside: &[Inside], during: Option<&Method>) {
        if inside.iter().any(Inside::lets_in) {
            self.refusals.serve(&Method::SUBSCRIPTIONS_LISTEN);
        }
        inside.iter().for_each(|thing| self.account.enter(beside(thing, during), 1));
    }

    fn call(&mut self, call: &Call, inside: &[Inside]) -> Result<(), TooLarge> {
        self.bytes += call.response.as_ref().map_or(0, |response| response.message.raw().len());
        if self.bytes > LIMIT {
            return Err(TooLarge);
        }
        let Some(method) = call.request.message.method().cloned() else {
            self.beside(inside, None);
            self.account.enter(Fate::left_out("something that was asked"), 1);
            return Ok(());
        };
        match self.answer(call, &method, inside) {
            // What comes before it was entered with it.
            Ok(()) => {}
            Err(fate) => {
                self.beside(inside, Some(&method));
                self.account.enter(fate, 1);
            }
        }
        Ok(())
    }

    /// Learns from a call and what comes before its answer; `Err` where nothing comes before it that could be used.
    fn answer(&mut self, call: &Call, method: &Method, inside: &[Inside]) -> Result<(), Fate> {
        let left_out = |why: &str| Fate::left_out(format!("{method}, {why}"));
        let Some(mut reply) = reply(call) else {
            // A subscription is answered when it ends, if ever.
            let listens = *method == Method::SUBSCRIPTIONS_LISTEN && call.response.is_none();
            return Err(if listens { Fate::Used } else { left_out(unanswered(call, inside)) });
        };
        // Whoever was let in was not refused, whatever ended it.
        if inside.iter().any(Inside::lets_in) {
            return Err(Fate::Used);
        }
        let value = match &mut reply {
            Reply::Result(result) => result.exact().map_err(|_| left_out("whose result has too many levels"))?,
            Reply::Error(error) => {
                let data = error.data.as_ref().map(RawJson::exact).transpose();
                data.map_err(|_| left_out("whose error has too many levels"))?;
                let unsayable = error.others().map(|(key, _)| format!("`{key}` of an error of {method}"));
                self.unlike.extend(unsayable);
                error.more = None;
                Value::Null
            }
        };
        if matches!(reply, Reply::Result(_)) {
            self.refusals.serve(method);
            self.learned.names_itself |= *method != Method::DISCOVER && named(&value).is_some();
        }
        if let Some(result) = value.as_object() {
            self.unlike.extend(unlike(result, method, self.revision(call)));
        }
        match (method.as_str(), reply) {
            (
                "tools/call"
                | "prompts/get"
                | "resources/read"
                | "completion/complete"
                | "resources/subscribe"
                | "resources/unsubscribe",
                reply,
            ) => return self.answered(call, method, reply, value, inside),
            (
                "initialize"
                | "server/discover"
                | "tools/list"
                | "prompts/list"
                | "resources/list"
                | "resources/templates/list"
                | "ping"
                | "logging/setLevel"
                | "subscriptions/listen",
                Reply::Error(error),
            ) => return self.refused(call, method, error, inside),
            ("initialize", _) => {
                self.agreed = value.get("protocolVersion").and_then(Value::as_str).and_then(|it| it.parse().ok());
                self.client = declared(call, &["capabilities"]);
                self.settled(call);
                let revision = self.agreed.unwrap_or(Revision::V2025_11_25);
                self.introduced(revision, &value, value.get("serverInfo"));
            }
            ("server/discover", _) => {
                self.learned.supported_versions = value.get("supportedVersions").cloned();
                self.introduced(Revision::V2026_07_28, &value, named(&value));
            }
            ("tools/list", _) => self.listed(call, |learned| &mut learned.tools, &value),
            ("prompts/list", _) => self.listed(call, |learned| &mut learned.prompts, &value),
            ("resources/list", _) => self.listed(call, |learned| &mut learned.resources, &value),
            ("resources/templates/list", _) => self.listed(call, |learned| &mut learned.resource_templates, &value),
            ("logging/setLevel", _) => {
                self.learned.takes_levels = true;
                self.log_from = level(call, &["level"]);
            }
            // What every server does by itself.
            ("ping" | "subscriptions/listen", _) => {}
            (_, reply) if is_own(method) => {
                return self.answered(call, method, reply, value, inside);
            }
            _ => return Err(left_out("which is no question about tools, prompts or resources")),
        }
        Err(Fate::Used)
    }

    fn listed(&mut self, call: &Call, of: impl Fn(&mut Learned) -> &mut Listed, page: &Value) {
        let params = call.request.message.params().and_then(|params| params.exact().ok());
        let cursor = params.as_ref().and_then(|params| params.get("cursor")).filter(|cursor| !cursor.is_null());
        let revision = self.revision(call);
        for words in of(&mut self.learned).take(page, cursor, revision) {
            self.more.enter(Fate::LeftOut(words), 1);
        }
    }

    /// The version that a request is made in.
    fn revision(&self, call: &Call) -> Option<Revision> {
        let params = call.request.message.params();
        let claimed = params.and_then(|params| params.at(&["_meta", meta::PROTOCOL_VERSION])?.text());
        claimed.and_then(|version| version.parse().ok()).or(self.agreed)
    }

    /// Which log messages the client wants.
    fn logs(&self, call: &Call) -> Logs {
        match self.revision(call).map(Revision::era) {
            Some(Era::Modern) => level(call, &["_meta", meta::LOG_LEVEL]).map_or(Logs::None, Logs::From),
            Some(Era::Legacy) | None => self.log_from.map_or(Logs::Any, Logs::From),
        }
    }

    /// A request that was refused before anybody looked at what it asks for.
    fn refused(&mut self, call: &Call, method: &Method, error: ErrorReply, inside: &[Inside]) -> Result<(), Fate> {
        let params = call.request.message.params().and_then(|params| params.exact().ok());
        if let Some(fate) = refusals::once(method, params.as_ref(), &error, self.revision(call)) {
            return Err(fate);
        }
        self.beside(inside, Some(method));
        self.refusals.take(method, error);
        Ok(())
    }

    /// Takes note of the version that was agreed on: a server that is asked for one that it does not speak names its newest.
    fn settled(&mut self, call: &Call) {
        let wanted = call.request.message.params().and_then(|params| params.field("protocolVersion")?.text());
        let (Some(agreed), Some(wanted)) = (self.agreed, wanted) else { return };
        let known = self.learned.newest_legacy;
        if known.is_some() || *wanted != *agreed.as_str() {
            self.learned.newest_legacy = known.max(Some(agreed));
        }
    }

    fn introduced(&mut self, revision: Revision, result: &Value, info: Option<&Value>) {
        if let Some(info) = info.and_then(Value::as_object) {
            self.names[1].extend(name(info));
            self.learned.servers.insert(revision, info.clone());
            if let Some((_, newest)) = self.learned.servers.last_key_value() {
                self.learned.server.clone_from(newest);
            }
        }
        if let Some(capabilities) = result.get("capabilities").and_then(Value::as_object) {
            self.learned.capabilities.take(revision, capabilities);
        }
        if let Some(instructions) = result.get("instructions").and_then(Value::as_str) {
            self.learned.instructions = Some(instructions.to_owned());
        }
    }

    fn answered(
        &mut self,
        call: &Call,
        method: &Method,
        reply: Reply,
        value: Value,
        inside: &[Inside],
    ) -> Result<(), Fate> {
        let left_out = |why: &str| Fate::left_out(format!("{method}, {why}"));
        let params = call.request.message.params().map(RawJson::exact).transpose();
        let params = params.map_err(|_| left_out("whose params have too many levels"))?;
        let params = params.unwrap_or_default();
        let mut view = looked_at(method, &params).map_err(left_out)?;
        let said = match (reply, value) {
            (Reply::Error(error), _) => Some(Said::Error(error)),
            (Reply::Result(_), Value::Object(result)) if is_task(&result) && !is_own(method) => {
                return Err(left_out("which a task answers"));
            }
            (Reply::Result(_), Value::Object(result)) if asks(&result) => None,
            (Reply::Result(_), Value::Object(result)) => Some(Said::Result(without_envelope(result, method))),
            (Reply::Result(_), _) => return Err(left_out("whose result is no object")),
        };
        if *method == Method::RESOURCES_SUBSCRIBE {
            self.subscribed.extend(params["uri"].as_str().map(str::to_owned));
        }
        let revision = self.revision(call);
        let state = params.get("requestState").map(Value::to_string);
        let returns = params.get("inputResponses").is_some() || state.is_some();
        let key = RequestKey::of(&with_one_secret(&view));
        self.requests += 1;
        let first = Round { begun: self.requests, ..Round::default() };
        let mut round = match self.rounds.get_mut(&(key, state)).filter(|rounds| returns && !rounds.is_empty()) {
            Some(rounds) => rounds.remove(0),
            None => first,
        };
        round.things += 1;
        let logs = self.logs(call);
        for thing in inside {
            match said_before(thing, method, logs) {
                Ok(mut before) => {
                    self.tell_undeclared(call, &before);
                    note_unsubscribed(&mut before, revision, &self.subscribed);
                    round.before.push(before);
                    round.things += 1;
                }
                Err(fate) => self.account.enter(fate, 1),
            }
        }
        let Some(said) = said else {
            self.asked_again(call, key, round);
            return Ok(());
        };
        let Round { begun, mut before, things, states } = round;
        let request_state = states.iter().copied().max();
        if request_state == Some(true) && states.contains(&false) {
            self.unlike.insert(format!("that some rounds of {method} had no `requestState`"));
        }
        self.account.enter(Fate::Used, things);
        name_questions(&mut before);
        let requests = &mut self.learned.requests;
        let at = *self.known.entry(key).or_insert_with(|| {
            let params = view["params"].take();
            requests.push(Request { method: method.clone(), params, answers: Vec::new() });
            self.begun.push(Vec::new());
            requests.len() - 1
        });
        if view["params"] != Value::Null && has_secret(&view) && view["params"] != requests[at].params {
            let subject = requests[at].subject().unwrap_or_default();
            self.unlike.insert(format!("which secret brought which answer of {method} of {subject}"));
        }
        // Of two that were in hand together the first is the one that was asked for first.
        let place = self.begun[at].partition_point(|other| *other < begun);
        self.begun[at].insert(place, begun);
        requests[at].answers.insert(place, Answered { before, said, revision, request_state });
        Ok(())
    }

    fn tell_undeclared(&mut self, call: &Call, before: &Before) {
        let claimed = declared(call, &["_meta", meta::CLIENT_CAPABILITIES]);
        if let Some(declared) = claimed.as_ref().or(self.client.as_ref()) {
            self.unlike.extend(undeclared(before, declared));
        }
    }

    /// The client has to come back with answers for what this result asks.
    fn asked_again(&mut self, call: &Call, key: RequestKey, mut round: Round) {
        let result = match reply(call) {
            Some(Reply::Result(result)) => result.exact().unwrap_or_default(),
            Some(Reply::Error(_)) | None => Value::Null,
        };
        let questions = asked(&result);
        let before = if questions.is_empty() { Before::SentAway } else { Before::Asked(questions) };
        self.tell_undeclared(call, &before);
        let state = result.get("requestState").map(Value::to_string);
        // With neither questions nor state nobody could come back.
        round.states.push(state.is_some() || before == Before::SentAway);
        // What was not answered is asked again by every server.
        if round.before.last() != Some(&before) || answers_some(call, &before) {
            round.before.push(before);
        }
        self.rounds.entry((key, state)).or_default().push(round);
    }

    /// What was learned.
    pub fn finish(mut self) -> Learned {
        self.close();
        let lists: Vec<_> = self.learned.lists().iter().flat_map(|listed| listed.left_out()).collect();
        lists.into_iter().for_each(|words| self.more.enter(Fate::LeftOut(words), 1));
        std::mem::take(&mut self.unlike).into_iter().for_each(|words| self.more.enter(Fate::LeftOut(words), 1));
        if let Some(names) = self.names.iter().find(|names| names.len() > 1) {
            let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
            self.more.enter(Fate::left_out(format!("that {} {PARTED}", names.join(" and "))), 1);
        }
        self.learned.left_out = self.account.words();
        self.learned.left_out.extend(self.more.words());
        // What asks for something known comes before what takes whatever is in the place of a secret.
        self.learned.requests.sort_by_key(|request| has_secret(&request.params));
        self.learned
    }

    /// Enters what never ended, and what was refused every time or not.
    fn close(&mut self) {
        let spoken = self.learned.servers.keys().copied().filter(|revision| revision.has_handshake()).max();
        let newest = self.learned.newest_legacy.map(|newest| spoken.map_or(newest, |spoken| spoken.max(newest)));
        self.learned.newest_legacy = newest.filter(|newest| *newest < Revision::LATEST_LEGACY);
        self.learned.refuses = std::mem::take(&mut self.refusals).always(&mut self.account);
        self.learned.refuse_own();
        for round in std::mem::take(&mut self.rounds).into_values().flatten() {
            self.account.enter(Fate::left_out("a call whose rounds of questions never ended"), round.things);
        }
    }
}

/// What a server is called.
fn name(info: &Map<String, Value>) -> Option<String> {
    info.get("name").and_then(Value::as_str).map(str::to_owned)
}

/// Who the server says it is, in what it says since 2026-07-28.
fn named(result: &Value) -> Option<&Value> {
    result.get("_meta")?.get(meta::SERVER_INFO)
}

/// The level in this place of the params.
fn level(call: &Call, place: &[&str]) -> Option<LogLevel> {
    LogLevel::named(&call.request.message.params()?.at(place)?.text()?)
}

/// What a client declares, in this place of its params.
fn declared(call: &Call, place: &[&str]) -> Option<Value> {
    call.request.message.params()?.at(place)?.exact().ok()
}

/// Whether a request brings an answer to some question, or there was none.
fn answers_some(call: &Call, before: &Before) -> bool {
    let Before::Asked(questions) = before else { return true };
    let params = call.request.message.params().and_then(|params| params.exact().ok()).unwrap_or_default();
    questions.iter().any(|question| params["inputResponses"].get(&question.name).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{BadLines, Input, Recording};
    use rehearsal_core::trace::Part;
    use std::path::{Path, PathBuf};

    /// Every recording that is kept here.
    fn fixtures() -> Vec<PathBuf> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/traces");
        let files = [folder.clone(), folder.join("python")].into_iter().flat_map(|it| it.read_dir().unwrap());
        let files = files.map(|entry| entry.unwrap().path());
        files.filter(|path| path.is_file() && path.extension().is_some_and(|it| it != "md")).collect()
    }

    #[test]
    fn whatever_was_recorded_is_used_or_told_to_be_left_out() {
        let mut said = 0;
        for path in fixtures() {
            let recording = Recording::open(&Input::from(path.clone())).unwrap();
            let counts = recording.parts(BadLines::Skip).flatten().map(|part| match part {
                Part::Call(_) | Part::Entry(_) => 1,
                Part::Start(_) | Part::Finish { .. } => 0,
            });
            let recorded: usize = counts.sum();
            let mut learner = Learner::default();
            recording.timeline(BadLines::Skip).flatten().for_each(|moment| learner.moment(moment).unwrap());
            learner.close();
            let Account { used, left_out } = &learner.account;
            assert_eq!(used + left_out.values().sum::<usize>(), recorded, "{}: {left_out:?}", path.display());
            said += recorded;
        }
        assert!(said > 100, "{said}");
    }
}
