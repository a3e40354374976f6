//! Answers the calls of one run in virtual time.
//!
//! ```text
//! plan ──call──► checks ──► chain ──► answer ──► queue, ordered by the time at which it ends
//! plan ◄──deliver── the earliest of the queue; the clock advances to it
//! ```

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use rehearsal_core::answer::{
    Action, Answer, ConnectionState, Decision, Environment, IncomingRequest, LogFilter, Provenance, RequestContext,
    ResultKind, StateSigner,
};
use rehearsal_core::message::{Method, Reply};
use rehearsal_core::protocol::Revision;
use rehearsal_core::script::mock::FaultKind;
use rehearsal_sandbox::ErrorKind;
use serde_json::{Value, json};

use super::alternates::{Alternate, alternate};
use super::call::{AnsweredCall, Answerer, CallCounter, CallEnd, CallProblem, PlannedCall, RunEvent};
use super::catalogue::{DryRunServer, KnownServer, Servers};
use super::effects::ToolEffect;
use super::report::{AnswerOrigin, PlanPlace};
use super::run::{CallKey, Variation, VariedAnswers};
use super::safe_tools::LiveAnswer;
use super::value::{error_message, result_value};
use super::violations::{KnownArguments, check_known_parts};
use crate::cache::{ArgumentsKey, Cache, LatencyScope};

/// The clock of every base run begins here, so that two dry runs of a plan are the same: 2026-01-01T00:00:00Z.
const EPOCH_MS: u64 = 1_767_225_600_000;
/// The clock of runs that find out what depends on it: 2027-05-12T07:41:13Z, where every part of the time is another one.
const OTHER_EPOCH_MS: u64 = EPOCH_MS + (496 * 86_400 + 7 * 3600 + 41 * 60 + 13) * 1000;
/// How many invented answers calls from one place get before they are empty, if the plan does not end otherwise.
pub(super) const INVENTED_ANSWERS: usize = 10;
/// How long a real client waits for an answer that never comes, in milliseconds.
const CALL_TIMEOUT_MS: f64 = 30_000.0;

/// Which latency of a tool a run uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LatencyChoice {
    /// The median.
    #[default]
    Median,
    /// The 95th percentile.
    P95,
}

/// The latency of calls in real runs, in milliseconds.
#[derive(Clone, Copy, Debug)]
struct Latency {
    median: f64,
    p95: f64,
}

/// One run of a plan: its calls, its queue and its clock.
#[derive(Debug)]
pub(super) struct Simulation<'a> {
    servers: &'a Servers,
    variation: &'a Variation,
    /// Strings and numbers that the plan compares with.
    compared: &'a [Value],
    /// Whether later invented answers of repeated calls are empty, so that loops end.
    ends_loops: bool,
    counter: CallCounter,
    /// The state of each server's chains: the one for valid calls, and the other.
    states: HashMap<(String, bool), ConnectionState>,
    signer: StateSigner,
    now_ms: f64,
    calls: Vec<AnsweredCall>,
    /// The indexes of calls whose answers are not delivered.
    queue: Vec<usize>,
    /// The calls of the last delivery.
    delivered: Vec<usize>,
    /// The latencies of a tool with some arguments, of a tool, and of a server, as far as they were looked up.
    known_latencies: HashMap<(String, Option<String>, Option<ArgumentsKey>), Option<Latency>>,
}

impl<'a> Simulation<'a> {
    pub(super) fn new(servers: &'a Servers, variation: &'a Variation, compared: &'a [Value]) -> Self {
        Simulation {
            servers,
            variation,
            compared,
            ends_loops: false,
            counter: CallCounter::default(),
            states: HashMap::new(),
            // Its signatures are not seen outside this run.
            signer: StateSigner::new([0; 32]),
            now_ms: 0.0,
            calls: Vec::new(),
            queue: Vec::new(),
            delivered: Vec::new(),
            known_latencies: HashMap::new(),
        }
    }

    /// Ends loops over invented answers: from one place, only some calls get an answer that is not empty.
    pub(super) fn ending_loops(self, ends_loops: bool) -> Self {
        Simulation { ends_loops, ..self }
    }

    /// The time of the plan's clock at the start of the run.
    pub(super) fn epoch_ms(&self) -> u64 {
        if self.variation.other_clock { OTHER_EPOCH_MS } else { EPOCH_MS }
    }

    pub(super) fn into_calls(self) -> Vec<AnsweredCall> {
        self.calls
    }

    /// Replaces the answer of a call as the variation of this run requires.
    fn vary(&self, simulated: &mut AnsweredCall) {
        if let Some((site, kind)) = self.variation.failure.as_ref().filter(|(site, _)| *site == simulated.call.key.site)
        {
            let message = match kind {
                ErrorKind::Tool => format!("{}:{} reports an error", simulated.call.server, site.tool()),
                ErrorKind::Protocol => "the server answers with a protocol error".to_owned(),
                ErrorKind::Timeout => format!("no answer within {} s", CALL_TIMEOUT_MS / 1000.0),
            };
            simulated.end = CallEnd::Error { kind: *kind, message, content: Value::Null };
        }
        if !simulated.is_invented() {
            return;
        }
        let site = &simulated.call.key.site;
        let is_varied = |answers: &&VariedAnswers| answers.only.as_ref().is_none_or(|only| only == site);
        if let Some(answers) = self.variation.answers.as_ref().filter(is_varied) {
            self.replace(simulated, answers.alternate);
        }
        if self.ends_loops && simulated.call.key.occurrence > INVENTED_ANSWERS {
            self.replace(simulated, Alternate::Less);
            let remark =
                format!("the plan did not end after {INVENTED_ANSWERS} invented answers, so this one is empty");
            simulated.remarks.push(remark);
        }
    }

    /// Puts another value in the place of an invented one.
    fn replace(&self, simulated: &mut AnsweredCall, kind: Alternate) {
        if let CallEnd::Value(value) = &mut simulated.end {
            let tool = self.servers.check(&simulated.call.server, &simulated.call.tool).0;
            let schema = tool.filter(|_| simulated.origin == AnswerOrigin::SchemaMock).and_then(|tool| tool.output());
            *value = alternate(value, schema, kind, self.compared, salt(&simulated.call.key));
        }
    }

    fn simulate(&mut self, call: PlannedCall) -> AnsweredCall {
        let servers = self.servers;
        let (tool, mut problem) = servers.check(&call.server, &call.tool);
        let mut unchecked = None;
        match tool.map(|tool| &tool.input) {
            Some(Ok(schema)) => {
                let known = KnownArguments { value: &call.arguments, unknown: &call.guessed, open: &[] };
                let violations = check_known_parts(schema, &known);
                problem = (!violations.is_empty()).then_some(CallProblem::Arguments(violations));
            }
            Some(Err(reason)) => unchecked = Some(reason.clone()),
            None => {}
        }
        let effect = tool.map_or_else(ToolEffect::unknown, |tool| tool.effect.clone());
        let mut simulated = AnsweredCall {
            // The plan continues, so that one dry run lists all findings.
            end: call.placeholder.clone(),
            origin: AnswerOrigin::None,
            cached_ms: None,
            remarks: Vec::new(),
            stale: None,
            problem,
            unchecked,
            effect,
            latency_ms: None,
            latency_varies: false,
            started_ms: 0.0,
            ended_ms: 0.0,
            waits_for: Vec::new(),
            call,
        };
        if self.answer_live(&mut simulated) {
            return simulated;
        }
        if let Some(DryRunServer::Known(server)) = servers.get(&simulated.call.server).filter(|_| tool.is_some()) {
            self.answer(server, &mut simulated);
        }
        simulated
    }

    /// Answers a valid call of a safe tool with the answer of its server, and returns whether it did. A call with arguments
    /// of which nothing is known is not made.
    fn answer_live(&self, simulated: &mut AnsweredCall) -> bool {
        let call = &simulated.call;
        let tools = self.servers.safe_tools(&call.server, &call.tool);
        let tools = tools.filter(|_| simulated.problem.is_none() && call.guessed.is_empty());
        let request = (call.server.as_str(), call.tool.as_str(), &call.arguments);
        let answer = tools.and_then(|tools| tools.answer(&call.key.site, request, self.variation.is_base()));
        let Some(LiveAnswer { end, latency_ms }) = answer else { return false };
        simulated.origin = AnswerOrigin::Live;
        simulated.end = end;
        simulated.latency_ms = Some(latency_ms);
        true
    }

    fn answer(&mut self, server: &KnownServer, simulated: &mut AnsweredCall) {
        let call = &simulated.call;
        let params = json!({"name": call.tool, "arguments": call.arguments});
        let context = RequestContext {
            revision: Revision::LATEST_MODERN,
            client: Arc::new(json!({"name": "rehearse", "version": env!("CARGO_PKG_VERSION")})),
            capabilities: Arc::new(json!({})),
            logs: LogFilter::None,
        };
        let request = Arc::new(IncomingRequest::new(Method::TOOLS_CALL, params, context));
        let is_valid = simulated.problem.is_none();
        let chain = if is_valid { &server.chain } else { &server.without_override };
        let environment =
            Environment { now_ms: self.epoch_ms().saturating_add(self.now_ms as u64), signer: &self.signer };
        let state = self.states.entry((call.server.clone(), is_valid)).or_default();
        let (mut delay_ms, mut answer) = (0.0, None);
        match chain.begin(&request, state, environment) {
            Decision::Answer(given) => answer = Some(given),
            Decision::Respond(mut responder, mut action) => loop {
                match action {
                    Action::Wait(delay) => delay_ms += delay.from.as_secs_f64() * 1000.0,
                    Action::AwaitInput(names) => {
                        for name in names {
                            responder.responder.set_input(&name, Err("a dry run has no client to ask".to_owned()));
                        }
                    }
                    Action::Reply(reply) => {
                        answer = Some(reply);
                        break;
                    }
                    Action::End => break,
                    Action::Notify { .. }
                    | Action::NotifySubscribers(_)
                    | Action::RequestInput(_)
                    | Action::CancelInput(..)
                    | Action::CloseStream { .. }
                    | Action::StartTask(_) => {}
                }
                action = chain.next(&mut responder, &request, state, environment);
            },
            Decision::Listen(..) | Decision::Task(_) | Decision::Unanswered(_) => {}
        }
        let Some(answer) = answer else {
            simulated.origin = AnswerOrigin::Placeholder;
            simulated.stale = server.stale(&simulated.call.tool, &simulated.call.arguments);
            (simulated.latency_ms, simulated.latency_varies) = self.latency(&simulated.call);
            return;
        };
        delay_ms += answer.delay.map_or(0.0, |delay| delay.as_secs_f64() * 1000.0);
        let (origin, cached_ms) = match &answer.provenance {
            Provenance::Script { .. } | Provenance::Harness { .. } => (AnswerOrigin::Override, None),
            Provenance::Cache { at_ms, .. } => (AnswerOrigin::CapabilityCache, Some(*at_ms)),
            Provenance::Schema { .. } => (AnswerOrigin::SchemaMock, None),
            Provenance::Placeholder { .. }
            | Provenance::Protocol
            | Provenance::Recording { .. }
            | Provenance::Live
            | Provenance::Refusal => (AnswerOrigin::Placeholder, None),
        };
        simulated.origin = origin;
        simulated.cached_ms = cached_ms;
        if matches!(origin, AnswerOrigin::SchemaMock | AnswerOrigin::Placeholder) {
            simulated.stale = server.stale(&simulated.call.tool, &simulated.call.arguments);
        }
        simulated.remarks.extend(answer.remarks.iter().cloned());
        let (end, timeout) = end_of(&answer);
        simulated.end = end;
        (simulated.latency_ms, simulated.latency_varies) = match origin {
            _ if timeout => (Some(CALL_TIMEOUT_MS), false),
            AnswerOrigin::Override if delay_ms > 0.0 => (Some(delay_ms), false),
            _ => {
                let (latency, varies) = self.latency(&simulated.call);
                (latency.map(|latency| latency + delay_ms), varies)
            }
        };
    }

    /// The latency of a call, as far as real runs show it: of these arguments, else of the tool, else of the server. Then
    /// whether real runs differ.
    fn latency(&mut self, call: &PlannedCall) -> (Option<f64>, bool) {
        let key = ArgumentsKey::new(&call.arguments);
        let (server, tool) = (call.server.as_str(), call.tool.as_str());
        let latency = self
            .latency_of((server, Some(tool), Some(key)), LatencyScope::Arguments { server, tool, key })
            .or_else(|| self.latency_of((server, Some(tool), None), LatencyScope::Tool { server, tool }))
            .or_else(|| self.latency_of((server, None, None), LatencyScope::Server { server }));
        let Some(Latency { median, p95 }) = latency else { return (None, false) };
        let chosen = match self.variation.latencies {
            LatencyChoice::Median => median,
            LatencyChoice::P95 => p95,
        };
        (Some(chosen), p95 > median)
    }

    fn latency_of(
        &mut self,
        (server, tool, key): (&str, Option<&str>, Option<ArgumentsKey>),
        calls: LatencyScope<'_>,
    ) -> Option<Latency> {
        // A cache that cannot be read was reported when the call was answered.
        let look_up = |cache: &Arc<Cache>| {
            let sorted = cache.latencies(calls).unwrap_or_default();
            Some(Latency { median: percentile(&sorted, 0.5)?, p95: percentile(&sorted, 0.95)? })
        };
        let cache = self.servers.cache();
        let known = self.known_latencies.entry((server.to_owned(), tool.map(str::to_owned), key));
        *known.or_insert_with(|| cache.and_then(look_up))
    }
}

impl Answerer for Simulation<'_> {
    /// No server is needed.
    fn prepare(&mut self, _: &BTreeSet<&str>) {}

    fn next_key(&mut self, server: &str, tool: &str, place: Option<&PlanPlace>) -> CallKey {
        self.counter.next_key(server, tool, place)
    }

    /// Checks and answers a call, and returns its index. Its answer is delivered after its latency.
    fn call(&mut self, call: PlannedCall, at_ms: f64) -> usize {
        self.now_ms = self.now_ms.max(at_ms);
        let mut simulated = self.simulate(call);
        self.vary(&mut simulated);
        simulated.started_ms = self.now_ms;
        simulated.ended_ms = self.now_ms + simulated.latency_ms.unwrap_or(0.0).max(0.0);
        simulated.waits_for = simulated.call.after.clone().unwrap_or_else(|| self.delivered.clone());
        self.calls.push(simulated);
        let index = self.calls.len() - 1;
        self.queue.push(index);
        index
    }

    /// Advances to the next event: the calls that end first, or the timer if it is earlier.
    fn advance(&mut self, timer_ms: Option<f64>) -> RunEvent {
        let earliest = self.queue.iter().map(|index| self.calls[*index].ended_ms).min_by(f64::total_cmp);
        match (earliest, timer_ms) {
            (None, None) => RunEvent::Nothing,
            (None, Some(timer)) => {
                self.now_ms = self.now_ms.max(timer);
                RunEvent::Timer
            }
            (Some(earliest), Some(timer)) if timer < earliest => {
                self.now_ms = self.now_ms.max(timer);
                RunEvent::Timer
            }
            (Some(earliest), _) => {
                self.now_ms = self.now_ms.max(earliest);
                let (calls, queue): (Vec<usize>, Vec<usize>) =
                    self.queue.iter().partition(|index| self.calls[**index].ended_ms <= earliest);
                self.queue = queue;
                self.delivered.clone_from(&calls);
                RunEvent::Delivered { now_ms: self.now_ms, calls }
            }
        }
    }

    fn now_ms(&self) -> f64 {
        self.now_ms
    }

    fn get(&self, index: usize) -> &AnsweredCall {
        &self.calls[index]
    }
}

/// A number for the values of a call, equal in every run.
fn salt(key: &CallKey) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

/// The value at a share of sorted values, by the nearest rank.
fn percentile(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

/// What the plan gets for an answer, and whether a real client would wait in vain.
fn end_of(answer: &Answer) -> (CallEnd, bool) {
    let failed = |kind, message: String| CallEnd::Error { kind, message, content: Value::Null };
    match &answer.fault {
        Some(FaultKind::Hang) => {
            let message = format!("no answer within {} s", CALL_TIMEOUT_MS / 1000.0);
            return (failed(ErrorKind::Timeout, message), true);
        }
        Some(FaultKind::DisconnectBefore | FaultKind::DisconnectDuring | FaultKind::Exit(_)) => {
            return (failed(ErrorKind::Protocol, "the server closed the connection".to_owned()), false);
        }
        Some(FaultKind::HalfLine | FaultKind::MalformedJson | FaultKind::InvalidUtf8 | FaultKind::WrongId) => {
            return (failed(ErrorKind::Protocol, "the server sent an invalid answer".to_owned()), false);
        }
        Some(FaultKind::Http(fault)) => {
            return (failed(ErrorKind::Protocol, format!("HTTP status {}", fault.status)), false);
        }
        Some(
            FaultKind::Delay(_)
            | FaultKind::DisconnectAfter
            | FaultKind::InvalidBase64
            | FaultKind::DuplicateAnswer
            | FaultKind::AnswerAfterCancel
            | FaultKind::NoiseOnStdout(_)
            | FaultKind::FloodOfStderr(_)
            | FaultKind::Oversize(_)
            | FaultKind::SlowDrip { .. }
            | FaultKind::SseCut
            | FaultKind::ContentType(_)
            | FaultKind::WrongStructuredContent,
        )
        | None => {}
    }
    let end = match &answer.reply {
        Reply::Error(error) => CallEnd::Error {
            kind: ErrorKind::Protocol,
            message: format!("{} ({})", error.message, error.code),
            content: error.data.as_ref().and_then(|data| data.value().ok()).unwrap_or_default(),
        },
        Reply::Result(_) if answer.kind == ResultKind::InputRequired => {
            failed(ErrorKind::Protocol, "the tool requests input; a dry run has no client to ask".to_owned())
        }
        Reply::Result(result) => match result.value() {
            Err(error) => failed(ErrorKind::Protocol, format!("the result cannot be read: {error}")),
            Ok(result) if result.get("isError") == Some(&Value::Bool(true)) => CallEnd::Error {
                kind: ErrorKind::Tool,
                message: error_message(&result),
                content: result.get("content").cloned().unwrap_or_default(),
            },
            Ok(result) => CallEnd::Value(result_value(&result)),
        },
    };
    (end, false)
}
