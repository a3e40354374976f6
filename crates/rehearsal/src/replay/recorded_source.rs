//! The source that answers from a recording.

use std::io;
use std::sync::{Arc, MutexGuard, PoisonError};

use rehearsal_core::answer::{
    Answer, AnswerContext, AnswerSource, ContinuedRound, HttpNeeds, IncomingRequest, Introduction, MatchDepth, Miss,
    Offer, RecordedAnswer, RecordedExchange, Surface, Unmatched,
};
use rehearsal_core::message::{ErrorReply, Message, Method, Reply, RequestId};
use rehearsal_core::protocol::{Era, Revision, code};
use rehearsal_core::shape::client_may_request;
use rehearsal_core::trace::RequestKey;
use serde_json::{Value, json};

use super::index::{ExchangeGroup, refused_key};
use super::ledger::Ledger;
use super::options::{OnUnmatched, Repeat};
use super::replay::{ReplayState, is_selected};
use super::replay_position::{Candidates, ConnectionPosition, NextRecording, UsedRecordings};

/// How many recordings are looked at for a list.
pub(super) const MAX_SCANNED: u32 = 10_000;

/// The recordings of one request that may answer a client.
struct CandidateRecordings<'a> {
    replay: &'a ReplayState,
    group: ExchangeGroup,
    /// The number of the recording, if there is only one.
    only: Option<u32>,
}

impl Candidates for CandidateRecordings<'_> {
    fn group(&self) -> ExchangeGroup {
        self.group
    }

    fn member(&self, at: u32) -> io::Result<u32> {
        self.only.map_or_else(|| self.replay.trace.index.member(self.group, at), Ok)
    }

    fn session(&self, number: u32) -> io::Result<u32> {
        Ok(self.replay.trace.index.exchange(number)?.session)
    }

    fn may_answer(&self, number: u32) -> io::Result<bool> {
        self.replay.may_answer(number)
    }

    fn place(&self, session: u32) -> io::Result<u32> {
        self.replay.trace.place_in(self.group, session)
    }
}

/// Why a request was passed, until its refusal is written.
#[derive(Debug)]
pub(super) enum PassedBecause {
    /// Its request state is invalid.
    State(ErrorReply),
    /// The reason is known.
    Known(Unmatched),
    /// Nothing was recorded for it. If redaction changes the request, this is what is compared of it then.
    NotRecorded(Option<Value>),
}

impl AnswerSource for ReplayState {
    fn begin(&self, request: &Arc<IncomingRequest>, context: &mut AnswerContext<'_>) -> Offer {
        if let Some(why) = self.unreadable.get() {
            return Offer::Answer(unreadable(&request.method, why));
        }
        let begun = self.try_begin(request, context);
        begun.unwrap_or_else(|error| Offer::Answer(unreadable(&request.method, &self.read_error(&error))))
    }

    fn closest(&self, request: &IncomingRequest, context: &mut AnswerContext<'_>) -> Option<Miss> {
        let unmatched = match context.memory::<ConnectionPosition>().passed.take()? {
            PassedBecause::State(error) => return Some(Miss { error, is_remark: false }),
            PassedBecause::Known(unmatched) => Ok(unmatched),
            PassedBecause::NotRecorded(redacted) => {
                let view =
                    redacted.unwrap_or_else(|| self.options.likeness.view(&request.method, Some(&request.params)));
                self.closest_recording(request, &view)
            }
        };
        Some(match unmatched {
            Ok(unmatched) => Miss { error: unmatched.error(&request.method, &request.params), is_remark: true },
            Err(error) => {
                let error = ErrorReply::new(code::INTERNAL_ERROR, self.read_error(&error));
                Miss { error, is_remark: true }
            }
        })
    }

    fn surface(&self) -> Surface {
        let http = HttpNeeds {
            only_streams: self.http.only_streams,
            retry: self.http.retry,
            header_schemas: self.http.header_schemas.clone(),
            ..HttpNeeds::default()
        };
        Surface { introduction: Some(Arc::clone(&self.introduction)), http, ..Surface::default() }
    }
}

impl ReplayState {
    pub(super) fn used(&self) -> MutexGuard<'_, UsedRecordings> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is reported about a failed read. After damage, every request is refused.
    fn read_error(&self, error: &io::Error) -> String {
        let why = format!("the recording cannot be read: {error}");
        if error.kind() == io::ErrorKind::InvalidData {
            // Which recording is next depends on those before, so the answers after this one might be wrong.
            self.unreadable.get_or_init(|| why.clone());
        }
        why
    }

    pub(super) fn is_selected(&self, session: u32) -> bool {
        is_selected(self.selected.as_deref(), session)
    }

    fn try_begin(&self, request: &Arc<IncomingRequest>, context: &mut AnswerContext<'_>) -> io::Result<Offer> {
        let no_method = || Ok(Offer::Answer(Answer::protocol(Reply::Error(request.method_not_found()))));
        match (request.context.era(), request.method.as_str()) {
            (Era::Legacy, "ping") => Ok(Offer::Pass(MatchDepth::Nothing)),
            (Era::Legacy, "initialize") | (Era::Modern, "server/discover") => self.handshake(request, context),
            (Era::Legacy, "server/discover") => no_method(),
            (Era::Modern, method) if !client_may_request(method, request.context.revision) => no_method(),
            (Era::Modern, "subscriptions/listen") => self.subscribe(request, context),
            (_, _) => self.find(request, context),
        }
    }

    /// The recorded handshake, in the version of this client. If only the other era was recorded, it is adapted.
    fn handshake(&self, request: &Arc<IncomingRequest>, context: &mut AnswerContext<'_>) -> io::Result<Offer> {
        let key = self.options.likeness.key(&request.method, None);
        let number = match self.take(key, context, Repeat::Last)? {
            Some(NextRecording::Fresh(number) | NextRecording::Again(number)) => Some(number),
            Some(NextRecording::Exhausted(_) | NextRecording::None) | None => None,
        };
        if let Some(refused) = self.refused.by(request.context.era()) {
            let answer = self.recorded_answer(self.trace.rounds(number.unwrap_or(refused))?, request, key)?;
            return Ok(answer.offer(request, None, context));
        }
        let recorded = number.map(|number| self.trace.recorded(number)).transpose()?;
        let found = recorded.as_ref().and_then(|recorded| Introduction::recorded(&recorded.call));
        let introduction = match found {
            Some(found) => Arc::new(found.with_capabilities_of(&self.introduction)),
            None => Arc::clone(&self.introduction),
        };
        let reply = match request.context.era() {
            Era::Legacy => {
                introduction.initialize(request, context.legacy, &Revision::ALL).unwrap_or_else(Reply::Error)
            }
            Era::Modern => introduction.discover(request, &Revision::ALL),
        };
        let answer = Answer::protocol(reply);
        let Some(recorded) = recorded.filter(|it| !it.events.is_empty() && request.context.era() == Era::Legacy) else {
            return Ok(Offer::Answer(answer));
        };
        // What follows the handshake is in the version that was negotiated.
        let negotiated = context.legacy.context().unwrap_or_else(|| request.context.clone());
        let request = Arc::new(IncomingRequest { context: negotiated, ..IncomingRequest::clone(request) });
        let answer = RecordedAnswer {
            rounds: vec![recorded],
            key,
            server: introduction.info(),
            pace: self.options.pace,
            again: false,
            instead: Some(answer),
        };
        Ok(answer.offer(&request, None, context))
    }

    /// The recorded answer to a request.
    fn find(&self, request: &Arc<IncomingRequest>, context: &mut AnswerContext<'_>) -> io::Result<Offer> {
        let key = self.options.likeness.key(&request.method, Some(&request.params));
        match ContinuedRound::from_request(request, key, context) {
            Ok(None) => {}
            Ok(Some(round)) => {
                // After a URL elicitation the client repeats the request, and gets what was recorded next.
                if self.trace.recorded(round.exchange)?.requires_url()
                    && let Some(NextRecording::Fresh(next)) = self.take(key, context, Repeat::Error)?
                {
                    let answer = self.recorded_answer(self.trace.rounds(next)?, request, key)?;
                    self.ledger().matched += 1;
                    return Ok(answer.offer(request, None, context));
                }
                let answer = self.recorded_answer(self.trace.rounds(round.exchange)?, request, key)?;
                return Ok(answer.offer(request, Some(&round), context));
            }
            // The state may be that of an upstream.
            Err(error) => return Ok(pass(context, PassedBecause::State(error))),
        }
        let is_list = request.method.as_str().ends_with("/list");
        let repeat = if is_list { Repeat::Last } else { self.options.repeat };
        if let Some(unfit) = self.constraint_mismatch(request, key)? {
            return self.unmatched(request, context, PassedBecause::Known(unfit));
        }
        let mut next =
            if is_list { self.next_page_of(key, request, context)? } else { self.take(key, context, repeat)? };
        let mut redacted = None;
        if next.is_none() {
            redacted = self.redacted(request);
            if let Some(redacted) = &redacted {
                next = self.take(RequestKey::from_view(redacted), context, repeat)?;
            }
        }
        if next.is_none()
            && let Some(key) = self.task_key(request)
        {
            next = self.take(key, context, repeat)?;
        }
        if next.is_none() {
            next = self.take(refused_key(key), context, repeat)?;
        }
        match next {
            Some(NextRecording::Fresh(number) | NextRecording::Again(number)) => {
                if let Some(why) = self.unusable(number, request)? {
                    return self.unmatched(request, context, PassedBecause::Known(why));
                }
                let is_again = matches!(next, Some(NextRecording::Again(_)));
                let mut rounds = self.trace.rounds(number)?;
                if is_list && is_again {
                    // A client that lists whenever a list has changed would never stop.
                    rounds.iter_mut().for_each(|round| Arc::make_mut(round).events.clear());
                }
                self.count_match(&rounds, is_again);
                let answer = RecordedAnswer { again: is_again, ..self.recorded_answer(rounds, request, key)? };
                Ok(answer.offer(request, None, context))
            }
            Some(NextRecording::Exhausted(answers)) => {
                let answers = usize::try_from(answers).unwrap_or(usize::MAX);
                self.unmatched(request, context, PassedBecause::Known(Unmatched::Exhausted { answers }))
            }
            Some(NextRecording::None) | None => {
                if let Some(answer) = self.inferred_list(request)? {
                    return Ok(Offer::Answer(answer));
                }
                // What redaction removed is no difference.
                self.unmatched(request, context, PassedBecause::NotRecorded(redacted))
            }
        }
    }

    /// Counts a match, unless the recording has no answer that clients can be sent.
    fn count_match(&self, rounds: &[Arc<RecordedExchange>], is_again: bool) {
        if rounds.last().is_some_and(|last| last.has_reply()) {
            let mut ledger = self.ledger();
            ledger.matched += 1;
            ledger.repeated += u64::from(is_again);
        }
    }

    /// Passes a request, or answers with the first recording of its kind.
    fn unmatched(
        &self,
        request: &Arc<IncomingRequest>,
        context: &mut AnswerContext<'_>,
        why: PassedBecause,
    ) -> io::Result<Offer> {
        // The protocol answers these if nothing was recorded for them.
        let is_protocol = ["logging/setLevel", "resources/subscribe", "resources/unsubscribe"];
        if self.options.unknown == OnUnmatched::First
            && !self.is_forwarding
            && !is_protocol.contains(&request.method.as_str())
            && let Some(first) = self.first_similar(request)?
        {
            self.ledger().unmatched(request.method.as_str(), request.subject().map(str::to_owned));
            let key = self.options.likeness.key(&request.method, Some(&request.params));
            self.used().note(first);
            let answer = self.recorded_answer(self.trace.rounds(first)?, request, key)?;
            return Ok(answer.offer(request, None, context));
        }
        Ok(pass(context, why))
    }

    /// The next recording under a key; `None` if there is none at all.
    pub(super) fn take(
        &self,
        key: RequestKey,
        context: &mut AnswerContext<'_>,
        repeat: Repeat,
    ) -> io::Result<Option<NextRecording>> {
        let Some((group, only)) = self.trace.find(key)? else { return Ok(None) };
        let candidates = CandidateRecordings { replay: self, group, only };
        let position = context.memory::<ConnectionPosition>();
        position.take(&candidates, &mut self.used(), repeat).map(Some)
    }

    /// The key of the equal `tools/call` that was recorded with `task` in its params, or without it.
    fn task_key(&self, request: &IncomingRequest) -> Option<RequestKey> {
        if request.method != Method::TOOLS_CALL {
            return None;
        }
        let mut params = request.params.clone();
        let fields = params.as_object_mut()?;
        if fields.shift_remove("task").is_none() {
            fields.insert("task".to_owned(), json!({}));
        }
        Some(self.options.likeness.key(&request.method, Some(&params)))
    }

    /// Why a recording cannot answer this client: it has no answer, or it is of a task that the client cannot have.
    fn unusable(&self, number: u32, request: &IncomingRequest) -> io::Result<Option<Unmatched>> {
        let recorded = self.trace.recorded(number)?;
        let place = || recorded.place.to_string();
        if !recorded.is_answered() {
            return Ok(Some(Unmatched::Unanswered { place: place() }));
        }
        let task = recorded.begins_task().filter(|_| request.method == Method::TOOLS_CALL);
        let is_unknown = task.is_some_and(|era| request.task_era() != Some(era));
        Ok(is_unknown.then(|| Unmatched::Task { place: place() }))
    }

    /// Whether a recording may answer here.
    pub(super) fn may_answer(&self, number: u32) -> io::Result<bool> {
        if self.selected.is_none() && !self.is_forwarding {
            return Ok(true);
        }
        let exchange = self.trace.index.exchange(number)?;
        // A request without a recorded answer is sent to the live server again, if there is one.
        Ok(self.is_selected(exchange.session) && (!self.is_forwarding || exchange.flags.is_answered()))
    }

    /// A request without its secrets, where it has some.
    fn redacted(&self, request: &IncomingRequest) -> Option<Value> {
        let message = Message::request(RequestId::Number(0), request.method.clone(), Some(&request.params)).ok()?;
        let redacted = self.options.redaction.message(&message)?;
        let params = redacted.params()?.value().ok()?;
        Some(self.options.likeness.view(&request.method, Some(&params)))
    }

    /// An exchange with its later rounds, as an answer.
    pub(super) fn recorded_answer(
        &self,
        rounds: Vec<Arc<RecordedExchange>>,
        request: &IncomingRequest,
        key: RequestKey,
    ) -> io::Result<RecordedAnswer> {
        let session = rounds.first().map_or(0, |round| round.session);
        let server = self.info_of(session, request.context.era())?;
        Ok(RecordedAnswer { rounds, key, server, pace: self.options.pace, again: false, instead: None })
    }
}

fn pass(context: &mut AnswerContext<'_>, why: PassedBecause) -> Offer {
    let depth = match &why {
        PassedBecause::Known(Unmatched::Exhausted { .. }) => MatchDepth::Exhausted,
        PassedBecause::Known(_) | PassedBecause::State(_) | PassedBecause::NotRecorded(_) => MatchDepth::Name,
    };
    context.memory::<ConnectionPosition>().passed = Some(why);
    Offer::Pass(depth)
}

/// The answer to a request whose recording cannot be read.
fn unreadable(method: &Method, why: &str) -> Answer {
    let error = ErrorReply::new(code::INTERNAL_ERROR, why.to_owned());
    Answer { remarks: vec![format!("{method}: {why}")], ..Answer::refusal(error) }
}
