//! The answer source of a mock file.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use super::answer_target::{self, AnswerTarget, Details, TargetKind};
use super::conditions::RuleInput;
use super::mock::Mock;
use super::rule::no_rule_fits;
use super::state::MockState;
use crate::answer::answer::{Answer, Provenance, WrittenFor};
use crate::answer::protocol::{invalid, no_resource, text_param};
use crate::answer::request_context::IncomingRequest;
use crate::answer::respond::{Basis, ScriptBasis, StatelessRounds, StepResponder, round_key};
use crate::answer::source::{AnswerContext, AnswerSource, MatchDepth, Miss, Offer};
use crate::answer::surface::Surface;
use crate::answer::task;
use crate::json::RawJson;
use crate::message::{ErrorReply, Method, Reply};
use crate::protocol::Era;
use crate::script::mock::{FaultKind, Validate};
use crate::suggest::closest;

/// Answers from a compiled mock file.
#[derive(Debug)]
pub struct ScriptSource {
    mock: Arc<Mock>,
    state: Arc<Mutex<MockState>>,
}

/// A request for a tool, prompt or resource of the mock, or for a method with rules of its own.
struct MatchedTarget {
    target: Arc<AnswerTarget>,
    arguments: Value,
    /// Why the arguments are invalid, if the mock answers nevertheless.
    remarks: Vec<String>,
}

/// Why a request has no target: it is refused, or passed to the next source.
enum NotFound {
    Refused(Box<Answer>),
    Passed(MatchDepth),
}

impl From<ErrorReply> for NotFound {
    fn from(error: ErrorReply) -> NotFound {
        NotFound::Refused(Box::new(Answer::protocol(Reply::Error(error))))
    }
}

impl ScriptSource {
    /// A source that answers from this mock.
    pub fn new(mock: Arc<Mock>) -> ScriptSource {
        let state = Arc::new(Mutex::new(MockState::new(&mock)));
        ScriptSource { mock, state }
    }

    /// The mock.
    pub fn mock(&self) -> &Arc<Mock> {
        &self.mock
    }

    fn state(&self) -> MutexGuard<'_, MockState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a request whose method the mock refuses or has rules for.
    fn by_method(&self, request: &Arc<IncomingRequest>, context: &mut AnswerContext<'_>) -> Option<Offer> {
        let mock = &self.mock;
        if let Some(error) = mock.refuses.get(request.method.as_str()) {
            let provenance = Provenance::Script { target: request.method.as_str().into(), rule: "refuses".into() };
            return Some(Offer::Answer(Answer::new(Reply::Error(error.clone()), provenance)));
        }
        let target = Arc::clone(mock.find(TargetKind::Method, request.method.as_str())?);
        let mut arguments = request.params.clone();
        arguments.as_object_mut().and_then(|params| params.shift_remove("_meta"));
        let matched = MatchedTarget { target, arguments, remarks: Vec::new() };
        match self.by_rule(request, matched, context) {
            Offer::Pass(_) => None,
            offer => Some(offer),
        }
    }

    /// Answers with the first rule that matches.
    fn by_rule(
        &self,
        request: &Arc<IncomingRequest>,
        matched: MatchedTarget,
        context: &mut AnswerContext<'_>,
    ) -> Offer {
        let MatchedTarget { target, arguments, remarks } = matched;
        let (rule, call) = {
            let mut state = self.state();
            let call = state.call(target.number);
            let values = state.snapshot();
            let input = RuleInput { request, call, state: &values };
            let Some(rule) = target.rules.find(&arguments, &input, &state) else {
                return Offer::Pass(MatchDepth::Name);
            };
            drop(values);
            if let Some(answer) = target.rules.get(rule) {
                state.count_use(answer.rule);
            }
            (rule, call)
        };
        let Some(mut responder) = self.responder(request, target, arguments, rule, call, remarks) else {
            return Offer::Pass(MatchDepth::Name);
        };
        match responder.immediate() {
            Some(answer) => Offer::Answer(answer),
            None => Offer::start(Box::new(responder), context),
        }
    }

    fn responder(
        &self,
        request: &Arc<IncomingRequest>,
        target: Arc<AnswerTarget>,
        arguments: Value,
        rule: usize,
        call: u64,
        remarks: Vec<String>,
    ) -> Option<StepResponder> {
        let root = Arc::clone(&target.rules.get(rule)?.answer);
        let (mock, state) = (Arc::clone(&self.mock), Arc::clone(&self.state));
        let basis = Basis::Script(ScriptBasis { mock, state, target, rule, arguments, call });
        Some(StepResponder::new(Arc::clone(request), root, basis, remarks))
    }

    /// Answers for a target: continues an input round, or starts with the first rule that matches.
    fn answer(&self, request: &Arc<IncomingRequest>, matched: MatchedTarget, context: &mut AnswerContext<'_>) -> Offer {
        let round = match round_of(request, &matched.arguments, context) {
            Ok(round) => round,
            // Another source may have signed it. If none did, `closest` explains why it is invalid.
            Err(_) => return Offer::Pass(MatchDepth::Name),
        };
        let Some(round) = round else { return self.by_rule(request, matched, context) };
        if round["of"]["mock"] != json!(self.mock.fingerprint) {
            return match round["of"].get("mock") {
                Some(_) => {
                    let error = invalid("requestState was issued before the mock file changed".to_owned());
                    Offer::Answer(Answer::protocol(Reply::Error(error)))
                }
                None => Offer::Pass(MatchDepth::Name),
            };
        }
        let number = |value: &Value| value.as_u64().unwrap_or_default();
        let rule = usize::try_from(number(&round["of"]["rule"])).unwrap_or(usize::MAX);
        let MatchedTarget { target, arguments, remarks } = matched;
        match self.responder(request, target, arguments, rule, number(&round["call"]).max(1), remarks) {
            Some(responder) => Offer::start(Box::new(responder.resumed(&round)), context),
            None => Offer::Pass(MatchDepth::Name),
        }
    }

    fn find(&self, request: &IncomingRequest, surface: &Surface) -> Result<MatchedTarget, NotFound> {
        let kind = TargetKind::from_method(request.method.as_str());
        let (kind, param) = kind.ok_or(NotFound::Passed(MatchDepth::Nothing))?;
        let matched = self.mock.target(kind, text_param(request, param)?, request);
        let (target, variables) = matched.ok_or(NotFound::Passed(MatchDepth::Method))?;
        let (arguments, why) = match &target.details {
            Details::Tool(tool) => {
                let arguments = arguments(request)?;
                task::check_task_support(request, tool.task_support, surface.has_tasks)?;
                let check = tool.input.as_ref().filter(|_| target.validate != Validate::Off);
                let mismatches = check.map(|schema| schema.objections(&arguments)).unwrap_or_default();
                let why = || format!("invalid arguments for {}:\n{}", target.id, mismatches.join("\n"));
                if target.validate == Validate::Strict && !mismatches.is_empty() {
                    let result = json!({"content": [{"type": "text", "text": why()}], "isError": true});
                    let answer = Answer::protocol(Reply::Result(RawJson::from_value(&result)));
                    return Err(NotFound::Refused(Box::new(Answer { written_for: WrittenFor::Newest, ..answer })));
                }
                (arguments, (!mismatches.is_empty()).then(why))
            }
            Details::Prompt(known) => {
                let arguments = arguments(request)?;
                let required = known.iter().filter(|argument| argument.required).map(|it| it.name.as_str());
                let missing: Vec<_> = required.filter(|name| arguments.get(name).is_none()).collect();
                let why = || format!("the prompt {} needs {}", target.id, missing.join(" and "));
                if target.validate == Validate::Strict && !missing.is_empty() {
                    return Err(invalid(why()).into());
                }
                (arguments, (!missing.is_empty() && target.validate == Validate::Warn).then(why))
            }
            Details::Resource | Details::ResourceTemplate(_) | Details::Method => (Value::Object(variables), None),
        };
        Ok(MatchedTarget { target: Arc::clone(target), arguments, remarks: Vec::from_iter(why) })
    }
}

impl AnswerSource for ScriptSource {
    fn begin(&self, request: &Arc<IncomingRequest>, context: &mut AnswerContext<'_>) -> Offer {
        if let Some(offer) = self.by_method(request, context) {
            return offer;
        }
        if request.method == Method::COMPLETE {
            return match answer_target::complete(&self.mock, request) {
                Ok(result) => {
                    let answer = Answer::protocol(Reply::Result(RawJson::from_value(&result)));
                    Offer::Answer(Answer { written_for: WrittenFor::Newest, ..answer })
                }
                Err(_) => Offer::Pass(MatchDepth::Method),
            };
        }
        match self.find(request, context.surface) {
            Ok(matched) => self.answer(request, matched, context),
            Err(NotFound::Refused(answer)) => Offer::Answer(*answer),
            Err(NotFound::Passed(depth)) => Offer::Pass(depth),
        }
    }

    fn closest(&self, request: &IncomingRequest, context: &mut AnswerContext<'_>) -> Option<Miss> {
        let miss = |error| Some(Miss { error, is_remark: false });
        let lists = context.surface.lists.clone();
        let (name, surface) = (request.subject().unwrap_or_default(), context.surface);
        if request.method == Method::COMPLETE {
            return answer_target::complete(&self.mock, request).err().and_then(miss);
        }
        match self.find(request, surface) {
            Ok(matched) => {
                if let Err(error) = round_of(request, &matched.arguments, context) {
                    return miss(error);
                }
                let (state, target) = (self.state(), matched.target);
                let (call, values) = (state.calls(target.number), state.snapshot());
                let input = RuleInput { request, call, state: &values };
                let closest = target.rules.closest(&matched.arguments, &input, &state);
                let closest = closest.map(|(rule, why)| (Arc::clone(&rule.name), why));
                Some(Miss { error: no_rule_fits(&target.label, closest), is_remark: true })
            }
            Err(NotFound::Refused(_)) => None,
            Err(NotFound::Passed(_)) => match &request.method {
                method if *method == Method::TOOLS_CALL => {
                    let offered = lists.iter().flat_map(|lists| lists.tools_for(request));
                    miss(invalid(unknown("tool", name, offered)))
                }
                method if *method == Method::PROMPTS_GET => {
                    let offered = lists.iter().flat_map(|lists| lists.prompts());
                    miss(invalid(unknown("prompt", name, offered)))
                }
                method if *method == Method::RESOURCES_READ => miss(no_resource(request, name, surface)),
                _ => None,
            },
        }
    }

    fn surface(&self) -> Surface {
        self.mock.surface()
    }

    fn fault(&self, request: &IncomingRequest) -> Option<FaultKind> {
        self.mock.fault(request.method.as_str(), &request.params, &mut self.state())
    }

    fn has_faults(&self) -> bool {
        self.mock.fault_rules > 0
    }

    fn reset(&self) {
        *self.state() = MockState::new(&self.mock);
    }
}

/// The input round that a request continues, if it continues one.
fn round_of(
    request: &IncomingRequest,
    arguments: &Value,
    context: &mut AnswerContext<'_>,
) -> Result<Option<Value>, ErrorReply> {
    if request.context.era() == Era::Legacy {
        return Ok(None);
    }
    match request.params.get("requestState") {
        Some(state) => {
            let state = state.as_str().ok_or_else(|| invalid("requestState must be a string".to_owned()))?;
            let environment = context.environment;
            let verified = environment.signer.verify(state, &round_key(request, arguments), environment.now_ms);
            verified.map(Some).map_err(|error| invalid(error.to_string()))
        }
        None if request.params.get("inputResponses").is_some() => {
            Ok(context.memory::<StatelessRounds>().take(&round_key(request, arguments)))
        }
        None => Ok(None),
    }
}

/// The arguments of a request.
fn arguments(request: &IncomingRequest) -> Result<Value, ErrorReply> {
    match request.params.get("arguments") {
        None | Some(Value::Null) => Ok(json!({})),
        Some(arguments @ Value::Object(_)) => Ok(arguments.clone()),
        Some(_) => Err(invalid("`arguments` must be an object".to_owned())),
    }
}

/// `unknown tool "get_wether"; did you mean "get_weather"?`
fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let hint = closest(name, known).map(|close| format!("; did you mean {close:?}?")).unwrap_or_default();
    format!("unknown {what} {name:?}{hint}")
}
