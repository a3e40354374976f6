//! A request comes in: what the protocol settles is answered at once, the rest is played from the script.

use std::sync::Arc;

use serde_json::{Value, json};

use super::harness::{self, Harness, Said};
use super::listing::{List, is_offered, list};
use super::play::{Act, Cast, Play, World};
use super::provenance::{Answer, Provenance};
use super::recording::RecordedPlay;
use super::request_context::{Facts, Memory, Terms, unknown_level};
use super::round::returned;
use super::rule::nothing_fits;
use super::shape::{self, ResultType};
use super::state::State;
use super::target::Target;
use super::wanted::Wanted;
use super::{Asked, Mock, finish, target, task};
use crate::json::RawJson;
use crate::message::{ErrorReply, Method, Reply};
use crate::protocol::{Era, Revision, code};
use crate::script::mock::{LogLevel, Otherwise, Validate};
use crate::suggest::closest;

/// What becomes of a request at first.
#[derive(Debug)]
pub enum Begun {
    /// It is answered.
    Answered(Answer),
    /// Something has to be done first, beginning with this.
    Plays(Performance, Act),
    /// It wants to be told about changes until it has heard enough.
    Listens(Wanted, Arc<Value>, Option<Box<RecordedPlay>>),
    /// It is about a task.
    AboutTask(AboutTask, Box<Terms>, Arc<Mock>),
    /// Nobody here knows; this is said unless somebody else does.
    Unknown(Answer, Box<Asked>),
}

/// A play, whoever wrote it.
#[derive(Debug)]
pub enum Performance {
    /// Somebody who wrote a mock.
    Script(Box<Play>),
    /// The real server, once.
    Recording(Box<RecordedPlay>),
}

impl Performance {
    /// What is to be done next.
    pub fn next(&mut self, state: &mut State, world: &World<'_>) -> Act {
        match self {
            Performance::Script(play) => play.next(state, world),
            Performance::Recording(play) => play.next(world),
        }
    }

    /// What the client said to a question, or why it said nothing.
    pub fn answered(&mut self, name: &str, answer: Result<Value, String>) {
        match self {
            Performance::Script(play) => play.answered(name, answer),
            Performance::Recording(play) => play.answered(name, answer),
        }
    }
}

/// A request about a task.
#[derive(Clone, Debug, PartialEq)]
pub enum AboutTask {
    /// How far it is.
    Get(String),
    /// What came of it, as soon as something has.
    Result(String),
    /// Which there are.
    List,
    /// Nobody wants it any more.
    Cancel(String),
    /// Answers to what it asked.
    Update(String, serde_json::Map<String, Value>),
}

impl Mock {
    /// Begins to answer a request.
    pub fn begin(self: &Arc<Mock>, asked: Asked, memory: &mut Memory, state: &mut State, world: &World<'_>) -> Begun {
        let fault = self.fault(asked.method.as_str(), &asked.params, state);
        if let Some(first) = fault.as_ref().filter(|fault| fault.comes_first()) {
            // Nobody will see the answer, so nothing is done for it.
            let reply = Reply::Result(RawJson::from_value(&json!({})));
            return Begun::Answered(Answer { fault: Some(first.clone()), ..Answer::protocol(reply) });
        }
        let begun = self.try_begin(asked, memory, state, world);
        let begun = begun.unwrap_or_else(|error| Begun::Answered(Answer::protocol(Reply::Error(error))));
        match (begun, fault) {
            (Begun::Answered(answer), Some(fault)) => Begun::Answered(Answer { fault: Some(fault), ..answer }),
            (Begun::Plays(Performance::Script(play), act), Some(fault)) => {
                Begun::Plays(Performance::Script(Box::new(play.spoilt(fault))), act)
            }
            // These have answers of their own, which no rule for faults speaks of.
            (begun @ (Begun::Plays(..) | Begun::Listens(..) | Begun::AboutTask(..) | Begun::Unknown(..)), Some(_)) => {
                begun
            }
            (begun, None) => begun,
        }
    }

    fn try_begin(
        self: &Arc<Mock>,
        asked: Asked,
        memory: &mut Memory,
        state: &mut State,
        world: &World<'_>,
    ) -> Result<Begun, ErrorReply> {
        if let Some(error) = self.refuses.get(asked.method.as_str()) {
            let reply = Reply::Error(error.clone());
            let provenance = Provenance::Script { target: asked.method.as_str().into(), rule: "refuses".into() };
            return Ok(Begun::Answered(Answer { provenance, ..Answer::protocol(reply) }));
        }
        let asked = match self.requests_by_method.get(asked.method.as_str()) {
            None => asked,
            Some(at) => match self.request(*at, asked, memory, state, world) {
                Ok(begun) => return Ok(begun),
                Err(asked) => *asked,
            },
        };
        let result = match (asked.terms.era(), asked.method.as_str()) {
            (_, "tools/call") => return self.call_tool(asked, state, world),
            (_, "prompts/get") => return self.get_prompt(asked, state, world),
            (_, "resources/read") => return self.read_resource(asked, state, world),
            (Era::Modern, "subscriptions/listen") => {
                let info = Arc::new(self.info.clone());
                return Wanted::read(self, &asked).map(|wanted| Begun::Listens(wanted, info, None));
            }
            (era, "tasks/get" | "tasks/result" | "tasks/list" | "tasks/cancel" | "tasks/update") => {
                let about = self.about_task(&asked, era)?;
                return Ok(Begun::AboutTask(about, Box::new(asked.terms), Arc::clone(self)));
            }
            (_, "tools/list") => return listed(list(self, &asked, List::Tools)),
            (_, "resources/list") => return listed(list(self, &asked, List::Resources)),
            (_, "resources/templates/list") => return listed(list(self, &asked, List::ResourceTemplates)),
            (_, "prompts/list") => return listed(list(self, &asked, List::Prompts)),
            (_, "completion/complete") => target::complete(self, &asked)?,
            (Era::Legacy, "initialize") => self.initialize(&asked, memory)?,
            (Era::Legacy, "ping") => json!({}),
            (Era::Legacy, "logging/setLevel") => {
                let level = text(&asked, "level")?;
                let level = LogLevel::named(level).ok_or_else(|| invalid(unknown_level(level)))?;
                memory.log_level = Some(level);
                json!({})
            }
            (Era::Legacy, "resources/subscribe") => {
                let uri = text(&asked, "uri")?;
                self.find_resource(uri).ok_or_else(|| self.no_resource(&asked, uri))?;
                memory.subscriptions.insert(uri.to_owned());
                json!({})
            }
            (Era::Legacy, "resources/unsubscribe") => {
                memory.subscriptions.remove(text(&asked, "uri")?);
                json!({})
            }
            (Era::Modern, "server/discover") => self.discover(&asked),
            (_, _) => return Err(asked.no_method()),
        };
        Ok(Begun::Answered(Answer::protocol(Reply::Result(self.enveloped(result, &asked)))))
    }

    fn enveloped(&self, mut result: Value, asked: &Asked) -> RawJson {
        let (method, revision) = (asked.method.as_str(), asked.terms.revision);
        shape::envelope(&mut result, ResultType::Complete, method, revision, &self.info);
        RawJson::from_value(&result)
    }

    fn call_tool(
        self: &Arc<Mock>,
        mut asked: Asked,
        state: &mut State,
        world: &World<'_>,
    ) -> Result<Begun, ErrorReply> {
        let name = text(&asked, "name")?;
        let found = self.tools_by_name.get(name).copied().filter(|at| is_offered(&self.tools[*at], &asked));
        let offered = self.tools.iter().filter(|tool| is_offered(tool, &asked)).map(|tool| tool.name.as_str());
        let at = found.ok_or_else(|| invalid(unknown("tool", name, offered)))?;
        let tool = &self.tools[at];
        let arguments = arguments(&mut asked)?;
        if let Some(harness) = self.harness.as_ref().filter(|_| tool.name == harness::TOOL) {
            return Ok(Begun::Answered(self.harnessed(harness, &asked, &arguments, world)));
        }
        task::task_support(&asked, tool.task_support, self.has_tasks)?;
        let mut remarks = Vec::new();
        if tool.validate != Validate::Off {
            let wrong = tool.input.as_ref().map(|schema| schema.objections(&arguments)).unwrap_or_default();
            if !wrong.is_empty() {
                let said = format!("invalid arguments for {}:\n{}", tool.name, wrong.join("\n"));
                if tool.validate == Validate::Strict {
                    let result = json!({"content": [{"type": "text", "text": said}], "isError": true});
                    let reply = Reply::Result(self.enveloped(result, &asked));
                    return Ok(Begun::Answered(Answer::protocol(reply)));
                }
                remarks.push(said);
            }
        }
        self.play(asked, Target::Tool(at), arguments, remarks, state, world)
    }

    /// The next response of a test case, or what is wrong with the question: a failure of the tool.
    fn harnessed(&self, harness: &Harness, asked: &Asked, arguments: &Value, world: &World<'_>) -> Answer {
        let taken = match harness.call(arguments, world.now_ms) {
            Ok(taken) => taken,
            Err(error) => {
                let result = json!({"content": [{"type": "text", "text": error.to_string()}], "isError": true});
                let reply = Reply::Result(self.enveloped(result, asked));
                let remarks = vec![error.to_string()];
                return Answer { provenance: Provenance::Nobody, remarks, ..Answer::protocol(reply) };
            }
        };
        let reply = match &taken.response.said {
            Said::Result(result) => {
                let mut result = Value::Object(result.clone());
                shape::called(&mut result, asked.terms.revision);
                Reply::Result(self.enveloped(result, asked))
            }
            Said::Error(error) => Reply::Error(error.clone()),
        };
        let rule = format!("test case {:?}, response {}", &*taken.test_case, taken.number).into();
        let provenance = Provenance::Script { target: format!("tool {}", harness::TOOL).into(), rule };
        let delay = taken.response.delay(taken.number as u64);
        Answer { provenance, delay, fault: taken.response.fault.clone(), ..Answer::protocol(reply) }
    }

    fn get_prompt(
        self: &Arc<Mock>,
        mut asked: Asked,
        state: &mut State,
        world: &World<'_>,
    ) -> Result<Begun, ErrorReply> {
        let name = text(&asked, "name")?;
        let at = self.prompts_by_name.get(name).copied();
        let at =
            at.ok_or_else(|| invalid(unknown("prompt", name, self.prompts.iter().map(|prompt| prompt.name.as_str()))))?;
        let arguments = arguments(&mut asked)?;
        let required = self.prompts[at].arguments.iter().filter(|argument| argument.required);
        let missing: Vec<_> = required.map(|it| it.name.as_str()).filter(|it| arguments.get(it).is_none()).collect();
        let mut remarks = Vec::new();
        if !missing.is_empty() {
            let said = format!("the prompt {} needs {}", self.prompts[at].name, missing.join(" and "));
            match self.prompts[at].validate {
                Validate::Strict => return Err(invalid(said)),
                Validate::Warn => remarks.push(said),
                Validate::Off => {}
            }
        }
        self.play(asked, Target::Prompt(at), arguments, remarks, state, world)
    }

    fn read_resource(
        self: &Arc<Mock>,
        asked: Asked,
        state: &mut State,
        world: &World<'_>,
    ) -> Result<Begun, ErrorReply> {
        let uri = text(&asked, "uri")?;
        let (target, arguments) = self.find_resource(uri).ok_or_else(|| self.no_resource(&asked, uri))?;
        self.play(asked, target, arguments, Vec::new(), state, world)
    }

    /// A resource, or a pattern and its variables.
    pub(super) fn find_resource(&self, uri: &str) -> Option<(Target, Value)> {
        if let Some(at) = self.resources_by_uri.get(uri) {
            return Some((Target::Resource(*at), json!({})));
        }
        self.resource_templates.iter().enumerate().find_map(|(at, template)| {
            let variables = template.pattern.matches(uri)?;
            Some((Target::ResourceTemplate(at), Value::Object(variables)))
        })
    }

    fn no_resource(&self, asked: &Asked, uri: &str) -> ErrorReply {
        let meant = closest(uri, self.resources.iter().map(|resource| resource.uri.as_str()));
        let meant = meant.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
        let message = format!("there is no resource {uri}{meant}");
        ErrorReply::new(asked.terms.revision.resource_not_found(), message).with_data(&json!({"uri": uri}))
    }

    /// Finds the rule that fits, or the play that the client comes back to.
    fn play(
        self: &Arc<Mock>,
        asked: Asked,
        target: Target,
        arguments: Value,
        remarks: Vec<String>,
        state: &mut State,
        world: &World<'_>,
    ) -> Result<Begun, ErrorReply> {
        let given = match asked.params.get("requestState") {
            Some(given) if asked.terms.era() == Era::Modern => {
                Some(given.as_str().ok_or_else(|| invalid("requestState must be a string".to_owned()))?.to_owned())
            }
            Some(_) | None => None,
        };
        let cast = Cast { mock: Arc::clone(self), asked: Arc::new(asked), target, arguments, remarks };
        let kept = if given.is_none() { returned(&cast, state) } else { None };
        let play = match (given, kept) {
            (Some(given), _) => Play::resume(cast, &given, world)?,
            (None, Some(round)) => Play::taken_up(cast, &round),
            (None, None) => {
                let call = state.call(target.number(self));
                let values = state.snapshot();
                let facts = Facts { asked: &cast.asked, call, state: &values };
                let rules = target.rules(self);
                let Some(position) = rules.find(&cast.arguments, &facts, state) else {
                    return Ok(Begun::Answered(self.unanswered(&cast, &facts, state)));
                };
                if let Some(turn) = rules.get(position) {
                    state.give(turn.rule);
                }
                drop(values);
                Play::new(cast, position, call)
            }
        };
        Ok(entered(play, state, world))
    }

    /// No rule fits.
    fn unanswered(&self, cast: &Cast, facts: &Facts<'_>, state: &State) -> Answer {
        let (target, name) = (cast.target, cast.target.name(self));
        if self.otherwise == Otherwise::FillFromSchema
            && let Some(result) = finish::filled(self, target, &cast.asked)
        {
            let reply = Reply::Result(result);
            return Answer { provenance: Provenance::Schema { target: name }, ..Answer::protocol(reply) };
        }
        let closest = target.rules(self).closest(&cast.arguments, facts, state);
        let closest = closest.map(|(rule, why)| (Arc::clone(&rule.name), why));
        let mut error = nothing_fits(&name, closest);
        if self.otherwise == Otherwise::FillFromSchema {
            error.message.push_str("; nothing could be made up that fits its output_schema");
        }
        let remarks = vec![error.message.clone()];
        Answer { provenance: Provenance::Nobody, remarks, ..Answer::protocol(Reply::Error(error)) }
    }

    fn about_task(&self, asked: &Asked, era: Era) -> Result<AboutTask, ErrorReply> {
        let (method, revision) = (asked.method.as_str(), asked.terms.revision);
        let known = match era {
            Era::Legacy => revision == Revision::V2025_11_25 && method != "tasks/update",
            Era::Modern => matches!(method, "tasks/get" | "tasks/cancel" | "tasks/update"),
        };
        if !self.has_tasks || !known {
            return Err(asked.no_method());
        }
        if era == Era::Modern && !asked.terms.has_tasks_extension() {
            return Err(task::undeclared());
        }
        if method == "tasks/list" {
            return Ok(AboutTask::List);
        }
        let id = text(asked, "taskId")?.to_owned();
        Ok(match method {
            "tasks/get" => AboutTask::Get(id),
            "tasks/result" => AboutTask::Result(id),
            "tasks/update" => {
                let responses = asked.params.get("inputResponses").and_then(Value::as_object);
                let responses =
                    responses.ok_or_else(|| invalid("tasks/update needs an object `inputResponses`".to_owned()))?;
                AboutTask::Update(id, responses.clone())
            }
            _ => AboutTask::Cancel(id),
        })
    }
}

/// A play that begins, and is over where it is nothing but an answer.
pub(super) fn entered(mut play: Play, state: &mut State, world: &World<'_>) -> Begun {
    match play.next(state, world) {
        Act::Reply(answer) => Begun::Answered(answer),
        act @ (Act::Wait(_)
        | Act::Notify { .. }
        | Act::Tell(_)
        | Act::Ask(_)
        | Act::Pose(_)
        | Act::Hear(_)
        | Act::Withdraw(..)
        | Act::CloseStream { .. }
        | Act::Detach(_)) => Begun::Plays(Performance::Script(Box::new(play)), act),
    }
}

fn listed(result: Result<RawJson, ErrorReply>) -> Result<Begun, ErrorReply> {
    result.map(|result| Begun::Answered(Answer::protocol(Reply::Result(result))))
}

/// A param that must be a string.
pub(super) fn text<'a>(asked: &'a Asked, name: &str) -> Result<&'a str, ErrorReply> {
    let text = asked.params.get(name).and_then(Value::as_str);
    text.ok_or_else(|| invalid(format!("{} needs a string `{name}`", asked.method)))
}

/// The arguments, which nobody looks for in the params any more.
fn arguments(asked: &mut Asked) -> Result<Value, ErrorReply> {
    match asked.params.get_mut("arguments").map(Value::take) {
        None | Some(Value::Null) => Ok(json!({})),
        Some(arguments @ Value::Object(_)) => Ok(arguments),
        Some(_) => Err(invalid("`arguments` must be an object".to_owned())),
    }
}

pub(super) fn invalid(message: String) -> ErrorReply {
    ErrorReply::new(code::INVALID_PARAMS, message)
}

/// `unknown tool "get_wether"; did you mean "get_weather"?`
fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let meant = closest(name, known).map(|meant| format!("; did you mean {meant:?}?")).unwrap_or_default();
    format!("unknown {what} {name:?}{meant}")
}

impl Mock {
    /// Begins to answer a request whose method has rules, by its position; gives it back where none of them fits.
    pub(super) fn request(
        self: &Arc<Mock>,
        at: usize,
        asked: Asked,
        memory: &mut Memory,
        state: &mut State,
        world: &World<'_>,
    ) -> Result<Begun, Box<Asked>> {
        let request = &self.requests[at];
        let mut arguments = asked.params.clone();
        arguments.as_object_mut().and_then(|params| params.shift_remove("_meta"));
        let call = state.call(request.number);
        let values = state.snapshot();
        let found = request.rules.find(&arguments, &Facts { asked: &asked, call, state: &values }, state);
        drop(values);
        let Some(position) = found else { return Err(Box::new(asked)) };
        if let Some(turn) = request.rules.get(position) {
            state.give(turn.rule);
        }
        let uri = asked.params.get("uri").and_then(Value::as_str).unwrap_or_default();
        match &asked.method {
            method if *method == Method::RESOURCES_SUBSCRIBE => drop(memory.subscriptions.insert(uri.to_owned())),
            method if *method == Method::RESOURCES_UNSUBSCRIBE => drop(memory.subscriptions.remove(uri)),
            _ => {}
        }
        let target = Target::Request(at);
        let cast = Cast { mock: Arc::clone(self), asked: Arc::new(asked), target, arguments, remarks: Vec::new() };
        Ok(entered(Play::new(cast, position, call), state, world))
    }
}
