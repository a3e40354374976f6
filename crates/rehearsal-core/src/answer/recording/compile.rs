//! Compiles a recorded exchange to an answer for a client that sends the same request.
//!
//! ```text
//! recorded rounds ──compile──► steps (notifications, server requests, input rounds) ──► the recorded reply ──► steps after it
//! ```

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::recorded_exchange::{EventPhase, RecordedExchange, ReplayEvent};
use super::unmatched::Unmatched;
use crate::answer::adapt::{adapt_notification, adapt_reply};
use crate::answer::answer::{Answer, Provenance, WrittenFor};
use crate::answer::protocol::invalid;
use crate::answer::request_context::IncomingRequest;
use crate::answer::respond::{
    AnswerBody, Basis, CombinedProgress, CompiledAnswer, CompiledChange, CompiledStep, InputRequest, RecordedRound,
    RecordingBasis, StepResponder,
};
use crate::answer::responder::Responder;
use crate::answer::script::TemplateValue;
use crate::answer::source::{AnswerContext, Offer};
use crate::answer::subscription::ChangeNotice;
use crate::exchange::Side;
use crate::message::{ErrorReply, Method, Reply};
use crate::protocol::{Era, LogLevel, Revision, code, meta};
use crate::script::mock::Delay;
use crate::trace::{Entry, EntryBody, RecordedCall, RelatedEvent, RequestKey};

/// How fast a recording is replayed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReplayPace {
    /// Without waiting.
    None,
    /// The recorded times multiplied by this factor.
    Times(f64),
}

impl FromStr for ReplayPace {
    type Err = String;

    fn from_str(word: &str) -> Result<ReplayPace, String> {
        match (word, word.parse::<f64>()) {
            ("none", _) => Ok(ReplayPace::None),
            ("recorded", _) => Ok(ReplayPace::Times(1.0)),
            (_, Ok(0.0)) => Ok(ReplayPace::None),
            (_, Ok(factor)) if factor > 0.0 && factor <= 1e6 => Ok(ReplayPace::Times(factor)),
            (_, _) => Err("write `recorded`, `none`, or a factor such as 0.5".to_owned()),
        }
    }
}

/// Minimum gap between the last notification and the message that the client waits for. Some clients drop a
/// notification that arrives together with the response; clients on busy machines read late.
const NOTIFICATION_GAP: Duration = Duration::from_millis(50);

/// The recorded exchange that answers a request, and how it is replayed.
#[derive(Clone, Debug)]
pub struct RecordedAnswer {
    /// The exchange and its later input rounds.
    pub rounds: Vec<Arc<RecordedExchange>>,
    /// The key of the request, to which request state is bound.
    pub key: RequestKey,
    /// The server of the recorded session.
    pub server: Arc<Value>,
    /// How fast it is replayed.
    pub pace: ReplayPace,
    /// Whether it was returned before.
    pub again: bool,
    /// The reply in place of the recorded one.
    pub instead: Option<Answer>,
}

/// The input round that a client continues.
#[derive(Clone, Debug)]
pub struct ContinuedRound {
    /// The number of its exchange.
    pub exchange: u32,
    state: Value,
}

impl ContinuedRound {
    /// The input round that a request continues; an error if its request state is invalid.
    pub fn from_request(
        request: &IncomingRequest,
        key: RequestKey,
        context: &AnswerContext<'_>,
    ) -> Result<Option<ContinuedRound>, ErrorReply> {
        let state = match request.params.get("requestState") {
            Some(state) if request.context.era() == Era::Modern => state,
            Some(_) | None => return Ok(None),
        };
        let state = state.as_str().ok_or_else(|| invalid("requestState must be a string".to_owned()))?;
        let environment = context.environment;
        let state = environment.signer.verify(state, &key.to_string(), environment.now_ms);
        let state = state.map_err(|error| invalid(error.to_string()))?;
        let exchange = state["of"]["exchange"].as_u64().and_then(|number| u32::try_from(number).ok());
        Ok(Some(ContinuedRound { exchange: exchange.unwrap_or(u32::MAX), state }))
    }
}

impl RecordedAnswer {
    /// The answer for a client, from the start or from an input round.
    pub fn offer(
        self,
        request: &Arc<IncomingRequest>,
        continued: Option<&ContinuedRound>,
        context: &mut AnswerContext<'_>,
    ) -> Offer {
        if let (None, Some(answer)) = (continued, self.immediate(request)) {
            return Offer::Answer(answer);
        }
        let responder = self.responder(request);
        let responder = match continued {
            Some(round) => responder.resumed(&round.state),
            None => responder,
        };
        Offer::start(Box::new(responder), context)
    }

    /// The recorded events after the reply, as a responder; for a subscription, whose reply comes last.
    pub fn events_after(self, request: &Arc<IncomingRequest>) -> Box<dyn Responder> {
        Box::new(self.responder(request).after_reply())
    }

    /// The answer, if the exchange is nothing but a request and its response.
    fn immediate(&self, request: &IncomingRequest) -> Option<Answer> {
        let [recorded] = self.rounds.as_slice() else { return None };
        let needs_input = recorded.is_round() || request.context.era() == Era::Modern && recorded.requires_url();
        let is_plain = recorded.is_plain() && self.pace == ReplayPace::None && !needs_input && self.instead.is_none();
        is_plain.then(|| self.answer_in(request, recorded))
    }

    fn responder(self, request: &Arc<IncomingRequest>) -> StepResponder {
        let (answer, remarks) = self.compile(request);
        let basis = Basis::Recording(RecordingBasis {
            place: self.place(),
            again: self.again,
            exchange: self.rounds.first().map_or(u32::MAX, |round| round.number),
            key: self.key.to_string(),
            server: self.server,
        });
        StepResponder::new(Arc::clone(request), Arc::new(answer), basis, remarks)
    }

    fn place(&self) -> Arc<str> {
        self.rounds.first().map_or_else(|| "an empty recording".into(), |round| Arc::clone(&round.place))
    }

    /// The steps of all rounds, and remarks about the events that this client cannot get.
    fn compile(&self, request: &IncomingRequest) -> (CompiledAnswer, Vec<String>) {
        // Since 2026-07-28 each round is a request of its own.
        let is_one_call = request.context.era() == Era::Legacy && self.rounds.len() > 1;
        let mut compiler = Compiler {
            request,
            recorded: self,
            from: self.rounds.first().and_then(|round| round.revision),
            tokens: self.rounds.iter().filter_map(|round| round.token()).collect(),
            progress: is_one_call.then(CombinedProgress::default),
            steps: Vec::new(),
            after: Vec::new(),
            body: None,
            request_count: 0,
            open: Vec::new(),
            named: Vec::new(),
            last: Duration::ZERO,
            round: 0,
            until: u64::MAX,
            has_notified: false,
            remarks: Vec::new(),
        };
        for (number, round) in self.rounds.iter().enumerate() {
            compiler.round(number, round, number + 1 == self.rounds.len());
        }
        let Compiler { steps, after, body, remarks, .. } = compiler;
        let body = self.instead.clone().or(body).unwrap_or_else(|| self.ended(request));
        let body = Some(AnswerBody::Ready(Box::new(body)));
        (CompiledAnswer { steps, body, after, request_state: true, ..CompiledAnswer::default() }, remarks)
    }

    /// The answer for a client of a version. The reply is converted once and kept for later requests.
    fn answer_in(&self, request: &IncomingRequest, recorded: &RecordedExchange) -> Answer {
        let (from, to) = (recorded.revision, request.context.revision);
        match recorded.reply().filter(|_| from != Some(to)) {
            Some(reply) => {
                let adapt = || adapt_reply(reply, &request.method, from, to, &self.server);
                let answer = self.answer(recorded.adapted.get_or_init(to, adapt).clone(), recorded);
                Answer { written_for: WrittenFor::Client, ..answer }
            }
            None => self.reply(recorded),
        }
    }

    fn answer(&self, reply: Reply, recorded: &RecordedExchange) -> Answer {
        let provenance = Provenance::Recording { place: self.place(), again: self.again };
        let (written_for, server) = (WrittenFor::Recorded(recorded.revision), Some(Arc::clone(&self.server)));
        Answer { written_for, server, ..Answer::new(reply, provenance) }
    }

    /// The recorded reply. In its own version a garbled response is sent unchanged; other versions get the reply that a
    /// lenient client reads from it.
    fn reply(&self, recorded: &RecordedExchange) -> Answer {
        if let Some(reply) = recorded.reply() {
            return self.answer(reply.clone(), recorded);
        }
        match recorded.lenient_reply() {
            Some((message, reply)) => {
                let verbatim = Box::new(message.clone());
                Answer { verbatim: Some(verbatim), ..self.answer(reply, recorded) }
            }
            None => {
                let why = format!("{}: the recorded answer cannot be understood", recorded.place);
                Answer::refusal(ErrorReply::new(code::INTERNAL_ERROR, why))
            }
        }
    }

    /// The refusal of a request that continues the recording beyond its end: the recorded client sent no input
    /// responses, or the recorded server no response to them.
    fn ended(&self, request: &IncomingRequest) -> Answer {
        let place = self.rounds.last().map_or_else(|| self.place(), |last| Arc::clone(&last.place)).to_string();
        let is_answered = self.rounds.last().is_some_and(|round| round.is_answered());
        let why = if is_answered { Unmatched::RecordingEnded { place } } else { Unmatched::Unanswered { place } };
        Answer::refusal(why.error(&request.method, &request.params))
    }
}

/// Compiles the steps of a recorded exchange for one request.
///
/// Each recorded event is exactly one step, even if the client does not get it, because request state refers to a step
/// by its number.
struct Compiler<'a> {
    request: &'a IncomingRequest,
    recorded: &'a RecordedAnswer,
    /// The version of the recording.
    from: Option<Revision>,
    /// The progress tokens of the recorded requests.
    tokens: Vec<Value>,
    /// The progress of all rounds, if they are one call.
    progress: Option<CombinedProgress>,
    steps: Vec<CompiledStep>,
    after: Vec<CompiledStep>,
    body: Option<Answer>,
    /// How many server requests were compiled.
    request_count: usize,
    /// Server requests whose responses follow, each with the place and the time of the response.
    open: Vec<(u64, Duration, String)>,
    /// The names of all server requests by their ids.
    named: Vec<(String, String)>,
    /// The time of the last event.
    last: Duration,
    /// The number of the round.
    round: usize,
    /// The place of the round's response: later events are not awaited.
    until: u64,
    /// Whether the last event that the client got is a notification.
    has_notified: bool,
    remarks: Vec<String>,
}

impl Compiler<'_> {
    fn is_modern(&self) -> bool {
        self.request.context.era() == Era::Modern
    }

    fn round(&mut self, number: usize, round: &RecordedExchange, is_last: bool) {
        self.round = number;
        self.last = round.call.request.at;
        self.until = round.call.response.as_ref().map_or(u64::MAX, |response| response.seq);
        self.events(&round.events, EventPhase::Before);
        self.response(round, is_last);
        // The recorded server did not wait for the other responses.
        self.open.clear();
        let steps = std::mem::take(&mut self.steps);
        self.events(&round.events, EventPhase::After);
        let after = std::mem::replace(&mut self.steps, steps);
        match is_last {
            true => self.after.extend(after),
            false => self.steps.extend(after),
        }
    }

    fn events(&mut self, events: &[ReplayEvent], phase: EventPhase) {
        let mut events = events.iter().filter(|event| event.phase == phase).peekable();
        while let Some(event) = events.next() {
            match &event.event {
                RelatedEvent::Entry(entry) => self.entry(entry, phase),
                RelatedEvent::Call(call) if call.asker == Side::Server => {
                    self.await_before(call.request.seq);
                    self.wait(call.request.at);
                    let mut calls = vec![&**call];
                    // Since 2026-07-28 the requests before the first response are one input round.
                    while let Some(ReplayEvent { event: RelatedEvent::Call(next), .. }) =
                        events.peek().filter(|_| self.is_modern())
                    {
                        let first = calls.iter().filter_map(|call| call.response.as_ref()).map(|it| it.seq).min();
                        if next.asker != Side::Server || first.is_some_and(|first| first < next.request.seq) {
                            break;
                        }
                        calls.push(next);
                        events.next();
                    }
                    self.server_requests(&calls, phase);
                }
                RelatedEvent::Call(_) => {}
            }
        }
    }

    fn server_requests(&mut self, calls: &[&RecordedCall], phase: EventPhase) {
        let mut requests = Vec::new();
        for call in calls {
            let is_awaited = call.response.as_ref().is_some_and(|response| response.seq < self.until);
            let request = self.server_request(call);
            // A client of 2026-07-28 must answer every input request, so it gets only those that the recorded server
            // waited for.
            if !self.is_modern() || is_awaited && phase == EventPhase::Before {
                requests.extend(self.supported(request));
            }
        }
        self.gap();
        self.steps.push(match self.is_modern() {
            _ if requests.is_empty() => CompiledStep::Skipped,
            true => CompiledStep::Round(RecordedRound { requests, result: None }),
            false => CompiledStep::Send(requests),
        });
    }

    fn server_request(&mut self, call: &RecordedCall) -> InputRequest {
        self.request_count += 1;
        let method = call.request.message.method().cloned().unwrap_or(Method::PING);
        let params = call.request.message.params().and_then(|params| params.value().ok());
        let params = params.filter(Value::is_object).unwrap_or_default();
        let name = format!("input-{}", self.request_count);
        if let Some(request) = call.request.message.as_request() {
            self.named.push((request.id.to_string(), name.clone()));
        }
        self.open.extend(call.response.iter().map(|answer| (answer.seq, answer.at, name.clone())));
        InputRequest { name, method, params }
    }

    /// A server request in the client's version, if the client supports it.
    fn supported(&mut self, request: InputRequest) -> Option<InputRequest> {
        let own = &self.request.method;
        let has_rounds = [Method::TOOLS_CALL, Method::PROMPTS_GET, Method::RESOURCES_READ].contains(own);
        if self.is_modern() && request.method == Method::PING {
            return None;
        }
        let adapted = match self.is_modern() && !has_rounds {
            true => Err(format!("{own} has no input rounds since {}", Revision::V2026_07_28)),
            false => request.adapted(&self.request.context, self.from),
        };
        adapted
            .inspect_err(|why| {
                let place = self.recorded.place();
                self.remarks.push(format!("{place}: {why}; the replay continues as recorded"));
            })
            .ok()
    }

    /// Waits for the responses that came before this place. The client's own response time applies.
    fn await_before(&mut self, seq: u64) {
        self.open.sort_by_key(|(seq, ..)| *seq);
        let count = self.open.iter().take_while(|(answered, ..)| *answered < seq).count();
        for (_, time, name) in self.open.drain(..count) {
            self.last = self.last.max(time);
            let is_modern = self.request.context.era() == Era::Modern;
            self.steps.push(if is_modern { CompiledStep::Skipped } else { CompiledStep::Await(vec![name]) });
        }
    }

    fn entry(&mut self, entry: &Entry, phase: EventPhase) {
        self.await_before(entry.seq);
        if let EntryBody::ChannelEnded { .. } = &entry.what {
            self.wait(entry.at);
            return self.steps.push(CompiledStep::CloseStream { retry: None });
        }
        let EntryBody::Message { from: Side::Server, message, .. } = &entry.what else { return };
        let Some(notification) = message.as_notification() else { return };
        self.wait(entry.at);
        let params = notification.params.as_ref().and_then(|params| params.value().ok()).unwrap_or_default();
        let step = match notification.method == Method::CANCELLED {
            true => self.cancellation(params),
            false => self.notification(&notification.method, params, phase),
        };
        self.steps.push(step.unwrap_or(CompiledStep::Skipped));
    }

    fn cancellation(&self, params: Value) -> Option<CompiledStep> {
        let Value::Object(mut params) = params else { return None };
        let id = params.shift_remove("requestId")?.to_string();
        // The request may belong to another call.
        let (_, name) = self.named.iter().find(|(other, _)| *other == id)?;
        (!self.is_modern()).then(|| CompiledStep::CancelInput(name.clone(), Map::clone(&params)))
    }

    /// A notification in the client's version, if that version has it and the client requested it.
    fn notification(&mut self, method: &Method, mut params: Value, phase: EventPhase) -> Option<CompiledStep> {
        if let Some(progress) = self.progress.as_mut().filter(|_| *method == Method::PROGRESS) {
            params = progress.combine(self.round, params)?;
        }
        let (context, from) = (&self.request.context, self.from);
        let change = ChangeNotice::from_notification(method, &params);
        let is_modern = |revision: Revision| revision.era() == Era::Modern;
        // Since 2026-07-28 change notices go to subscribers.
        if let Some(change) = change
            && (is_modern(context.revision) || from.is_some_and(is_modern))
        {
            self.has_notified = true;
            return change.is_in(context.revision).then_some(CompiledStep::Change(CompiledChange::Fixed(change)));
        }
        // Since 2026-07-28 no other notification is sent outside of a request.
        if phase == EventPhase::After && self.is_modern() {
            return None;
        }
        let mut params = adapt_notification(method, params, from, context.revision)?;
        if *method == Method::PROGRESS {
            params[meta::PROGRESS_TOKEN] = self.token(params.get(meta::PROGRESS_TOKEN))?;
        } else if *method == Method::LOG_MESSAGE && !context.logs.include(LogLevel::from_params(&params)) {
            return None;
        }
        self.has_notified = true;
        Some(CompiledStep::Notify { method: method.clone(), params: Some(TemplateValue::Fixed(params)) })
    }

    /// The token under which this client gets progress of a recorded token; `None` for progress of another call.
    fn token(&self, recorded: Option<&Value>) -> Option<Value> {
        let is_own = self.tokens.is_empty() || recorded.is_none_or(|recorded| self.tokens.contains(recorded));
        self.request.meta().get(meta::PROGRESS_TOKEN).filter(|_| is_own).cloned()
    }

    fn response(&mut self, round: &RecordedExchange, is_last: bool) {
        let Some(response) = &round.call.response else { return };
        self.await_before(response.seq);
        self.wait(response.at);
        self.gap();
        if let Some(requests) = round.input_requests() {
            let had_any = !requests.is_empty();
            let requests: Vec<_> = requests.into_iter().filter_map(|request| self.supported(request)).collect();
            let result = round.result_in(self.request.context.revision).filter(|_| self.is_modern());
            let is_skipped = had_any && requests.is_empty();
            self.steps.push(if is_skipped {
                CompiledStep::Skipped
            } else {
                CompiledStep::Round(RecordedRound { requests, result })
            });
            // Without a later round the recording ends here.
            return;
        }
        if !is_last {
            return;
        }
        let visits = round.url_elicitations().filter(|_| self.is_modern()).unwrap_or_default();
        let visits: Vec<_> = visits.into_iter().filter_map(|request| self.supported(request)).collect();
        match visits.is_empty() {
            true => self.body = Some(self.recorded.reply(round)),
            // The client repeats the request afterwards, and gets the next recorded round.
            false => self.steps.push(CompiledStep::Round(RecordedRound { requests: visits, result: None })),
        }
    }

    fn wait(&mut self, time: Duration) {
        let waited = time.saturating_sub(self.last);
        self.last = self.last.max(time);
        if let ReplayPace::Times(factor) = self.recorded.pace
            && !waited.is_zero()
        {
            let scaled = Duration::try_from_secs_f64(waited.as_secs_f64() * factor).unwrap_or_default();
            self.steps.push(CompiledStep::Wait(Delay { from: scaled, to: scaled }));
        }
    }

    fn gap(&mut self) {
        let has_notified = std::mem::take(&mut self.has_notified);
        let waits = has_notified && self.recorded.pace == ReplayPace::None;
        let wait = Delay { from: NOTIFICATION_GAP, to: NOTIFICATION_GAP };
        self.steps.push(if waits { CompiledStep::Wait(wait) } else { CompiledStep::Skipped });
    }
}
