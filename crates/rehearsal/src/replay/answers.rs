//! A request comes in: what was recorded for it.

use std::io;
use std::sync::{Arc, MutexGuard, PoisonError};

use rehearsal_core::answer::{
    Act, Answer, Asked, Begun, Memory, Opening, Performance, Place, Provenance, Recorded, RecordedPlay, Terms,
    Unmatched, World,
};
use rehearsal_core::json::RawJson;
use rehearsal_core::message::{ErrorReply, Message, Method, Reply, RequestId};
use rehearsal_core::protocol::{Era, Revision};
use rehearsal_core::script::mock::LogLevel;
use rehearsal_core::shape::may_be_asked;
use rehearsal_core::trace::RequestKey;
use serde_json::{Value, json};

use super::index::{Group, refused_key};
use super::ledger::Ledger;
use super::options::Repeat;
use super::progress::{Alike, Progress, Taken};
use super::replay::{Shared, is_selected};
use super::unmatched::name;
use crate::mock::{Answers, Forwards};

/// How many recordings are looked at for a list.
pub(super) const LOOKED_AT: u32 = 10_000;

/// The recordings of one request that may answer a client.
struct Recordings<'a> {
    shared: &'a Shared,
    group: Group,
}

impl Alike for Recordings<'_> {
    fn group(&self) -> Group {
        self.group
    }

    fn member(&self, at: u32) -> io::Result<u32> {
        self.shared.tape.index.member(self.group, at)
    }

    fn session(&self, number: u32) -> io::Result<u32> {
        Ok(self.shared.tape.index.exchange(number)?.session)
    }

    fn suits(&self, number: u32) -> io::Result<bool> {
        self.shared.suits(number)
    }

    fn place(&self, session: u32) -> io::Result<u32> {
        self.shared.tape.place_in(self.group, session)
    }
}

impl Answers for Shared {
    fn terms(&self, method: &Method, params: &Value, memory: &Memory) -> Result<Terms, ErrorReply> {
        Terms::of(method, params, memory, &Revision::ALL)
    }

    fn begin(&self, asked: Asked, memory: &mut Memory, world: &World<'_>) -> Begun {
        if let Some(why) = self.unreadable.get() {
            return Begun::Answered(self.unread(&asked.method, name(&asked), why));
        }
        let (method, subject) = (asked.method.clone(), name(&asked).map(str::to_owned));
        self.try_begin(asked, memory, world).unwrap_or_else(|error| {
            let why = format!("the recording cannot be read: {error}");
            let answer = self.unread(&method, subject.as_deref(), &why);
            if error.kind() == io::ErrorKind::InvalidData {
                // Which recording is next depends on what was given before, so nothing after this would surely be right.
                self.unreadable.get_or_init(|| why);
            }
            Begun::Answered(answer)
        })
    }

    fn refused(&self, method: &Method, params: Option<&RawJson>, error: &ErrorReply) {
        self.count_refused(method, params, error);
    }

    fn answered(&self, play: &RecordedPlay, answer: &Answer) {
        let asked = play.asked();
        if answer.provenance == Provenance::Nobody {
            let mut ledger = self.ledger();
            if play.has_no_answer() {
                ledger.take_back();
            }
            ledger.unmatched(asked.method.as_str(), name(asked).map(str::to_owned));
        }
    }

    fn ended(&self, conversation: u64) {
        self.progress().ended(conversation);
    }

    fn forwards(&self) -> Option<Arc<dyn Forwards>> {
        self.upstream.clone().map(|upstream| upstream as Arc<dyn Forwards>)
    }
}

impl Shared {
    pub(super) fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_selected(&self, session: u32) -> bool {
        is_selected(self.selected.as_deref(), session)
    }

    fn try_begin(&self, asked: Asked, memory: &mut Memory, world: &World<'_>) -> io::Result<Begun> {
        let protocol = |reply: Reply| Ok(Begun::Answered(Answer::protocol(reply)));
        let empty = || Reply::Result(RawJson::from_value(&json!({})));
        match (asked.terms.era(), asked.method.as_str()) {
            (Era::Legacy, "ping") => protocol(empty()),
            (Era::Legacy, "initialize") | (Era::Modern, "server/discover") => self.open(asked, memory, world),
            (Era::Legacy, "server/discover") => protocol(Reply::Error(asked.no_method())),
            (Era::Modern, method) if !may_be_asked(method, asked.terms.revision) => {
                Ok(self.refuse(&asked, asked.no_method()))
            }
            (Era::Modern, "subscriptions/listen") => self.listen(asked),
            (Era::Legacy, "logging/setLevel") => {
                let level = asked.params.get("level").and_then(Value::as_str);
                memory.log_level = level.and_then(LogLevel::named).or(memory.log_level);
                self.find(asked, world, Some(empty))
            }
            (Era::Legacy, "resources/subscribe" | "resources/unsubscribe") => {
                let uri = asked.params.get("uri").and_then(Value::as_str).unwrap_or_default();
                match asked.method == Method::RESOURCES_SUBSCRIBE {
                    true => drop(memory.subscriptions.insert(uri.to_owned())),
                    false => drop(memory.subscriptions.remove(uri)),
                }
                self.find(asked, world, Some(empty))
            }
            (_, _) => self.find(asked, world, None::<fn() -> Reply>),
        }
    }

    /// The handshake: as it was recorded, in the version of this client; of the other era, where only that was.
    fn open(&self, asked: Asked, memory: &mut Memory, world: &World<'_>) -> io::Result<Begun> {
        let key = self.options.likeness.key(&asked.method, None);
        let number = match self.take(key, &asked, Repeat::Last)? {
            Some(Taken::Fresh(number) | Taken::Again(number)) => Some(number),
            Some(Taken::UsedUp(_) | Taken::None) | None => None,
        };
        if let Some(refused) = self.refused.by(asked.terms.era()) {
            return self.play(number.unwrap_or(refused), asked, key, world, 0);
        }
        let recorded = number.map(|number| self.tape.recorded(number)).transpose()?;
        let found = recorded.as_ref().and_then(|recorded| Opening::recorded(&recorded.call));
        let pooled = Arc::clone(&self.opening);
        let opening = match found {
            Some(mut opening) => {
                opening.can_also(&pooled);
                Arc::new(opening)
            }
            None => pooled,
        };
        let reply = match asked.terms.era() {
            Era::Legacy => opening.initialize(&asked, memory).unwrap_or_else(Reply::Error),
            Era::Modern => opening.discover(&asked),
        };
        let answer = Answer::protocol(reply);
        match recorded.filter(|recorded| !recorded.things.is_empty() && asked.terms.era() == Era::Legacy) {
            None => Ok(Begun::Answered(answer)),
            Some(recorded) => {
                // What is said after the handshake is said in the version that it settled.
                let terms = memory.terms().unwrap_or(asked.terms.clone());
                let info = Arc::clone(&opening.info);
                let asked = Asked { terms, ..asked };
                let says_first = recorded.things.iter().any(|it| it.place == Place::Before && it.told().is_some());
                let play = RecordedPlay::new(vec![recorded], asked, key, info, self.options.pace);
                let mut play = Box::new(play.answering(answer.clone()));
                let act = if says_first { play.next(world) } else { Act::Reply(answer) };
                Ok(Begun::Plays(Performance::Recording(play), act))
            }
        }
    }

    /// What was recorded for a request, or `otherwise`.
    fn find(&self, asked: Asked, world: &World<'_>, otherwise: Option<impl Fn() -> Reply>) -> io::Result<Begun> {
        if self.upstream.as_ref().is_some_and(|upstream| upstream.waits_for(&asked)) {
            let answer = Unmatched::Nothing.refusal(&asked.method, &asked.params);
            return Ok(Begun::Unknown(answer, Box::new(asked)));
        }
        let view = self.options.likeness.view(&asked.method, Some(&asked.params));
        let key = RequestKey::of(&view);
        match RecordedPlay::resumed(&asked, key, world) {
            Ok(None) => {}
            Ok(Some((number, step))) => {
                // Whoever was elsewhere asks again, and hears what was recorded next.
                if self.tape.recorded(number)?.sends_elsewhere()
                    && let Some(Taken::Fresh(next)) = self.take(key, &asked, Repeat::Error)?
                {
                    let begun = self.play(next, asked, key, world, 0)?;
                    self.ledger().matched += 1;
                    return Ok(begun);
                }
                return self.play(number, asked, key, world, step);
            }
            Err(error) => return Ok(self.refuse(&asked, error)),
        }
        let is_list = asked.method.as_str().ends_with("/list");
        let repeat = if is_list { Repeat::Last } else { self.options.repeat };
        if let Some(unfit) = self.unfit(&asked, &view, key)? {
            return self.unknown(asked, &unfit, world);
        }
        let mut taken = if is_list { self.take_list(key, &asked)? } else { self.take(key, &asked, repeat)? };
        let mut clean = None;
        if taken.is_none() {
            clean = self.redacted(&asked);
            if let Some(clean) = &clean {
                taken = self.take(RequestKey::of(clean), &asked, repeat)?;
            }
        }
        if taken.is_none()
            && let Some(key) = self.task_key(&asked)
        {
            taken = self.take(key, &asked, repeat)?;
        }
        if taken.is_none() {
            taken = self.take(refused_key(key), &asked, repeat)?;
        }
        match taken {
            Some(Taken::Fresh(number) | Taken::Again(number)) => {
                if let Some(why) = self.unusable(number, &asked)? {
                    return self.unknown(asked, &why, world);
                }
                let is_again = matches!(taken, Some(Taken::Again(_)));
                let mut rounds = self.tape.rounds(number)?;
                if is_list && is_again {
                    // A client that lists whenever a list has changed would never stop.
                    rounds.iter_mut().for_each(|round| Arc::make_mut(round).things.clear());
                }
                let begun = self.play_rounds(rounds, asked, key, world, 0)?;
                let mut ledger = self.ledger();
                ledger.matched += 1;
                ledger.repeated += u64::from(is_again);
                Ok(begun)
            }
            Some(Taken::UsedUp(answers)) => {
                let answers = usize::try_from(answers).unwrap_or(usize::MAX);
                self.unknown(asked, &Unmatched::UsedUp { answers }, world)
            }
            Some(Taken::None) | None => match otherwise {
                Some(otherwise) => Ok(Begun::Answered(Answer::protocol(otherwise()))),
                None => {
                    if let Some(answer) = self.listed(&asked)? {
                        return Ok(Begun::Answered(answer));
                    }
                    let closest = match self.upstream {
                        // The real server is asked, whatever came closest.
                        Some(_) => Unmatched::Nothing,
                        // What was taken out of the recording is not told from the request either.
                        None => self.closest(&asked, clean.as_ref().unwrap_or(&view))?,
                    };
                    self.unknown(asked, &closest, world)
                }
            },
        }
    }

    /// The next recording under a key; `None` where there is none at all.
    pub(super) fn take(&self, key: RequestKey, asked: &Asked, repeat: Repeat) -> io::Result<Option<Taken>> {
        let Some(group) = self.tape.index.group(key)? else { return Ok(None) };
        let recordings = Recordings { shared: self, group };
        self.progress().take(&recordings, asked.conversation, repeat).map(Some)
    }

    /// The key of the same `tools/call` recorded with `task` in its params, or without it.
    fn task_key(&self, asked: &Asked) -> Option<RequestKey> {
        if asked.method != Method::TOOLS_CALL {
            return None;
        }
        let mut params = asked.params.clone();
        let fields = params.as_object_mut()?;
        if fields.shift_remove("task").is_none() {
            fields.insert("task".to_owned(), json!({}));
        }
        Some(self.options.likeness.key(&asked.method, Some(&params)))
    }

    /// Why a recording cannot answer this client: it has no answer, or it is of a task that the client cannot have.
    fn unusable(&self, number: u32, asked: &Asked) -> io::Result<Option<Unmatched>> {
        let recorded = self.tape.recorded(number)?;
        let place = || recorded.place.to_string();
        if !recorded.is_answered() {
            return Ok(Some(Unmatched::Unanswered { place: place() }));
        }
        let task = recorded.begins_task().filter(|_| asked.method == Method::TOOLS_CALL);
        let is_unknown = task.is_some_and(|era| asked.task_era() != Some(era));
        Ok(is_unknown.then(|| Unmatched::Task { place: place() }))
    }

    /// Whether a recording may answer here.
    pub(super) fn suits(&self, number: u32) -> io::Result<bool> {
        if self.selected.is_none() && self.upstream.is_none() {
            return Ok(true);
        }
        let exchange = self.tape.index.exchange(number)?;
        // A request without a recorded answer is sent to the live server again, if there is one.
        Ok(self.is_selected(exchange.session) && (self.upstream.is_none() || exchange.flags.is_answered()))
    }

    /// A request without its secrets, where it has some.
    fn redacted(&self, asked: &Asked) -> Option<Value> {
        let message = Message::request(RequestId::Number(0), asked.method.clone(), Some(&asked.params)).ok()?;
        let redacted = self.options.redaction.message(&message)?;
        let params = redacted.params()?.value().ok()?;
        Some(self.options.likeness.view(&asked.method, Some(&params)))
    }

    /// Plays an exchange with its later rounds, from a step on.
    pub(super) fn play(
        &self,
        number: u32,
        asked: Asked,
        key: RequestKey,
        world: &World<'_>,
        step: usize,
    ) -> io::Result<Begun> {
        self.play_rounds(self.tape.rounds(number)?, asked, key, world, step)
    }

    fn play_rounds(
        &self,
        rounds: Vec<Arc<Recorded>>,
        asked: Asked,
        key: RequestKey,
        world: &World<'_>,
        step: usize,
    ) -> io::Result<Begun> {
        let session = rounds.first().map_or(0, |round| round.session);
        let info = &self.info_of(session, asked.terms.era())?;
        if let [recorded] = rounds.as_slice()
            && step == 0
            && let Some(answer) = RecordedPlay::at_once(recorded, &asked, info, self.options.pace)
        {
            return Ok(Begun::Answered(answer));
        }
        let play = RecordedPlay::new(rounds, asked, key, Arc::clone(info), self.options.pace);
        let mut play = Box::new(play.from_step(step));
        let act = play.next(world);
        Ok(Begun::Plays(Performance::Recording(play), act))
    }
}
