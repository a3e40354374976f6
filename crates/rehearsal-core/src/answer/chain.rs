//! The answer chain: sources in order, the first that answers wins.
//!
//! ```text
//! request ──► fault? ──► source ──► source ──► … ──► unanswered ──► refusal, or forwarded by the server
//!                          └── answer ──► finish: legacy state, the client's version
//! ```

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::adapt::adapt_answer;
use super::answer::{Answer, Provenance};
use super::request_context::{IncomingRequest, LegacyState, RequestContext};
use super::responder::{Action, Responder};
use super::source::{AnswerContext, AnswerSource, Environment, MatchDepth, Miss, Offer};
use super::subscription::SubscriptionFilter;
use super::surface::Surface;
use super::task::TaskRequest;
use crate::json::RawJson;
use crate::message::{ErrorReply, Method, Reply};
use crate::protocol::{LogLevel, Revision};
use crate::script::mock::FaultKind;

/// Sources of answers in their order, and their combined surface.
///
/// No source can reach a server, so a chain cannot either. The owner of a chain forwards the requests that the chain
/// leaves unanswered.
#[derive(Debug)]
pub struct Chain {
    sources: Vec<Arc<dyn AnswerSource>>,
    surface: Arc<Surface>,
    has_faults: bool,
    number: u64,
}

/// How a chain handles a request.
#[derive(Debug)]
pub enum Decision {
    /// The answer.
    Answer(Answer),
    /// Several actions, beginning with this one.
    Respond(ActiveResponder, Action),
    /// `subscriptions/listen`.
    Listen(SubscriptionFilter, Option<ActiveResponder>),
    /// A request about a task of this server.
    Task(TaskRequest),
    /// No source has an answer.
    Unanswered(Passed),
}

/// A responder, its source, and the fault of its answer.
#[derive(Debug)]
pub struct ActiveResponder {
    /// The responder.
    pub responder: Box<dyn Responder>,
    source: usize,
    fault: Option<FaultKind>,
}

/// How far a request fitted each source; all sources passed on it.
#[derive(Debug, Default)]
pub struct Passed {
    depths: Vec<MatchDepth>,
    fault: Option<FaultKind>,
}

impl Passed {
    /// The fault of the answer, whichever it is.
    pub fn fault(&self) -> Option<&FaultKind> {
        self.fault.as_ref()
    }
}

/// The state that a server keeps for one connection.
#[derive(Debug, Default)]
pub struct ConnectionState {
    /// The state of the handshake and of later requests.
    pub legacy: LegacyState,
    /// The combined surface of the chain and of the live server behind it, if there is one.
    pub surface: Option<Arc<Surface>>,
    /// The chain that the sources' state belongs to.
    chain: u64,
    memories: Vec<Option<Box<dyn Any + Send>>>,
}

impl ConnectionState {
    /// Adds the surface of a live server behind the chain.
    pub fn merge(&mut self, chain: &Chain, offered: Surface) {
        self.belong_to(chain);
        self.surface = Some(Arc::new(Surface::clone(&chain.surface).merged(offered)));
    }

    /// Drops the state that belongs to another chain.
    fn belong_to(&mut self, chain: &Chain) {
        if self.chain != chain.number {
            self.chain = chain.number;
            self.memories.clear();
            self.surface = None;
        }
    }

    fn context<'a>(&'a mut self, chain: &'a Chain, source: usize, environment: Environment<'a>) -> AnswerContext<'a> {
        self.belong_to(chain);
        if self.memories.len() <= source {
            self.memories.resize_with(source + 1, || None);
        }
        AnswerContext {
            environment,
            surface: self.surface.as_ref().unwrap_or(&chain.surface),
            own_surface: &chain.surface,
            legacy: &mut self.legacy,
            memory: &mut self.memories[source],
        }
    }
}

/// The number of the next chain. The sources' state in a connection belongs to one chain.
static NEXT_CHAIN: AtomicU64 = AtomicU64::new(1);

impl Chain {
    /// Builds a chain of these sources.
    pub fn new(sources: Vec<Arc<dyn AnswerSource>>) -> Chain {
        let surface = sources.iter().map(|source| source.surface()).fold(Surface::default(), Surface::merged);
        let has_faults = sources.iter().any(|source| source.has_faults());
        Chain { sources, surface: Arc::new(surface), has_faults, number: NEXT_CHAIN.fetch_add(1, Ordering::Relaxed) }
    }

    /// Adds the surface of the requests that the chain's owner answers itself.
    #[must_use]
    pub fn offering(self, surface: Surface) -> Chain {
        let merged = Surface::clone(&self.surface).merged(surface);
        Chain { surface: Arc::new(merged), ..self }
    }

    /// The combined surface of the sources.
    pub fn surface(&self) -> &Arc<Surface> {
        &self.surface
    }

    /// Returns every source to its initial state.
    pub fn reset(&self) {
        self.sources.iter().for_each(|source| source.reset());
    }

    /// The version and the client of a request, or why it cannot be answered in any version.
    pub fn request_context(
        &self,
        method: &Method,
        params: &Value,
        legacy: &LegacyState,
    ) -> Result<RequestContext, ErrorReply> {
        RequestContext::new(method, params, legacy, self.surface.revisions())
    }

    /// Begins to answer a request.
    pub fn begin(
        &self,
        request: &Arc<IncomingRequest>,
        state: &mut ConnectionState,
        environment: Environment<'_>,
    ) -> Decision {
        let fault = if self.has_faults { self.fault(request) } else { None };
        if let Some(first) = fault.as_ref().filter(|fault| fault.comes_first()) {
            // The client never gets the answer, so no source needs to supply one.
            let reply = Reply::Result(RawJson::from_value(&json!({})));
            let (target, rule) = (request.method.as_str().into(), format!("fault {}", first.name()).into());
            let answer = Answer::new(reply, Provenance::Script { target, rule });
            return Decision::Answer(Answer { fault: Some(first.clone()), ..answer });
        }
        let mut depths = Vec::new();
        for (index, source) in self.sources.iter().enumerate() {
            match source.begin(request, &mut state.context(self, index, environment)) {
                Offer::Pass(depth) => depths.push(depth),
                Offer::Answer(answer) => {
                    let fault = fault.or(answer.fault.clone());
                    return Decision::Answer(self.finish(request, Answer { fault, ..answer }, state));
                }
                Offer::Respond(responder, action) => {
                    let mut active = ActiveResponder { responder, source: index, fault };
                    let action = self.finish_action(&mut active, request, action, state);
                    return Decision::Respond(active, action);
                }
                Offer::Listen(filter, first) => {
                    let first = first.map(|responder| ActiveResponder { responder, source: index, fault: None });
                    return Decision::Listen(filter, first);
                }
                Offer::Task(task) => return Decision::Task(task),
            }
        }
        Decision::Unanswered(Passed { depths, fault })
    }

    /// The next action of a responder.
    pub fn next(
        &self,
        active: &mut ActiveResponder,
        request: &IncomingRequest,
        state: &mut ConnectionState,
        environment: Environment<'_>,
    ) -> Action {
        let action = active.responder.next(&mut state.context(self, active.source, environment));
        self.finish_action(active, request, action, state)
    }

    fn finish_action(
        &self,
        active: &mut ActiveResponder,
        request: &IncomingRequest,
        action: Action,
        state: &mut ConnectionState,
    ) -> Action {
        match action {
            Action::Reply(answer) => {
                let fault = active.fault.take().or(answer.fault.clone());
                Action::Reply(self.finish(request, Answer { fault, ..answer }, state))
            }
            action => action,
        }
    }

    /// The refusal of a request that all sources passed on: the error of the source that it fitted best. The closest
    /// answers of other sources are in `data.others`.
    pub fn refusal(
        &self,
        request: &IncomingRequest,
        passed: &Passed,
        state: &mut ConnectionState,
        environment: Environment<'_>,
    ) -> Answer {
        let mut misses: Vec<(MatchDepth, Miss)> = Vec::new();
        for (index, (source, depth)) in self.sources.iter().zip(&passed.depths).enumerate() {
            let miss = source.closest(request, &mut state.context(self, index, environment));
            misses.extend(miss.map(|miss| (*depth, miss)));
        }
        // Of several sources that it fitted equally well, the first.
        let best = misses.iter().enumerate().rev().max_by_key(|(_, (depth, _))| *depth).map(|(index, _)| index);
        let fault = passed.fault.clone();
        let Some(best) = best else {
            return Answer { fault, ..Answer::protocol(Reply::Error(request.method_not_found())) };
        };
        let (_, Miss { mut error, is_remark }) = misses.remove(best);
        let closest = |miss: &Miss| miss.error.data.as_ref()?.field("closest")?.value().ok();
        let others: Vec<Value> = misses.iter().filter_map(|(_, miss)| closest(miss)).collect();
        if !others.is_empty() {
            let mut data = error.data.as_ref().and_then(|data| data.value().ok()).unwrap_or_else(|| json!({}));
            data["others"] = others.into();
            error = error.with_data(&data);
        }
        let refusal = if is_remark { Answer::refusal(error) } else { Answer::protocol(Reply::Error(error)) };
        Answer { fault, ..refusal }
    }

    /// Stores the effects of a successful request on its connection, and converts the answer to the client's version.
    pub fn finish(&self, request: &IncomingRequest, answer: Answer, state: &mut ConnectionState) -> Answer {
        if request.context.revision != Revision::V2026_07_28 && matches!(answer.reply, Reply::Result(_)) {
            note(request, &mut state.legacy);
        }
        let surface = state.surface.as_ref().unwrap_or(&self.surface);
        adapt_answer(answer, &request.method, request.context.revision, &surface.server_info())
    }

    fn fault(&self, request: &IncomingRequest) -> Option<FaultKind> {
        self.sources.iter().find_map(|source| source.fault(request))
    }
}

/// Stores the log level and the subscriptions of a legacy client.
fn note(request: &IncomingRequest, legacy: &mut LegacyState) {
    let text = |key: &str| request.params.get(key).and_then(Value::as_str);
    match request.method.as_str() {
        "logging/setLevel" => legacy.log_level = text("level").and_then(LogLevel::named).or(legacy.log_level),
        "resources/subscribe" => {
            legacy.subscriptions.extend(text("uri").map(str::to_owned));
        }
        "resources/unsubscribe" => {
            legacy.subscriptions.remove(text("uri").unwrap_or_default());
        }
        _ => {}
    }
}
