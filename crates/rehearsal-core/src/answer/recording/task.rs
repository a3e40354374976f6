//! A recorded task, for a client of the other era or for one that knows no tasks.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::adapt::adapted;
use super::{Place, Recorded, Thing};
use crate::answer::shape::{ResultType, envelope};
use crate::answer::task::is_failure;
use crate::answer::{Asked, Question, related_task};
use crate::exchange::Side;
use crate::json::RawJson;
use crate::message::{ErrorReply, Message, Method, Reply, Request, RequestId, Response};
use crate::protocol::{Era, Revision};
use crate::trace::{Call, Inside, Placed};

/// What a server once said about a task.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedTask {
    /// Its name.
    pub id: String,
    /// In which shape: that of 2025-11-25, or that of the extension of 2026-07-28.
    pub shape: Era,
    /// `status`, times and so on, in that shape.
    fields: Map<String, Value>,
    /// What came of it, where that was said with it, as 2026-07-28 does.
    outcome: Option<Reply>,
    /// What it wanted to know, where that was said with it, as 2026-07-28 does.
    questions: Vec<Question>,
}

impl RecordedTask {
    /// The task that will give the answer, where a result says so.
    pub fn begun(reply: &Reply) -> Option<RecordedTask> {
        let Reply::Result(result) = reply else { return None };
        if let Some(task) = result.field("task") {
            return RecordedTask::read(task.exact().ok()?, Era::Legacy);
        }
        let is_task = result.field("resultType").and_then(|kind| kind.text()).is_some_and(|kind| kind == "task");
        if is_task { RecordedTask::read(result.exact().ok()?, Era::Modern) } else { None }
    }

    /// How far a task was, from the answer to `tasks/get`.
    pub fn shown(reply: &Reply, shape: Era) -> Option<RecordedTask> {
        let Reply::Result(result) = reply else { return None };
        RecordedTask::read(result.exact().ok()?, shape)
    }

    fn read(task: Value, shape: Era) -> Option<RecordedTask> {
        let Value::Object(mut fields) = task else { return None };
        let id = fields.get("taskId")?.as_str()?.to_owned();
        let failed = fields.shift_remove("error").and_then(|error| {
            let code = error.get("code")?.as_i64()?;
            let failed = ErrorReply::new(code, error.get("message")?.as_str()?);
            Some(Reply::Error(match error.get("data") {
                Some(data) => failed.with_data(data),
                None => failed,
            }))
        });
        let result = fields.shift_remove("result").map(|result| Reply::Result(RawJson::from_value(&result)));
        let questions = Question::requested(fields.get("inputRequests"));
        for key in ["resultType", "inputRequests", "_meta"] {
            fields.shift_remove(key);
        }
        Some(RecordedTask { id, shape, fields, outcome: result.or(failed), questions })
    }

    /// Whether it had ended.
    pub fn is_ended(&self) -> bool {
        matches!(self.fields.get("status").and_then(Value::as_str), Some("completed" | "failed" | "cancelled"))
    }

    /// How it had ended, where it had.
    pub fn ended(&self) -> Option<&str> {
        self.fields.get("status").and_then(Value::as_str).filter(|_| self.is_ended())
    }

    /// The same, ended like this.
    #[must_use]
    pub fn ending(mut self, status: &str) -> RecordedTask {
        self.fields.insert("status".to_owned(), status.into());
        self
    }

    /// What came of it, where that was said with it.
    pub fn outcome(&self) -> Option<&Reply> {
        self.outcome.as_ref()
    }

    /// What it wanted to know, where that was said with it.
    pub fn questions(&self) -> &[Question] {
        &self.questions
    }

    /// Whether it waited for answers.
    pub fn is_asking(&self) -> bool {
        self.fields.get("status").is_some_and(|status| status == "input_required")
    }

    /// The fields in the shape of an era. What 2025-11-25 asks elsewhere, 2026-07-28 asks here; where there is nothing to
    /// ask, it just works on.
    fn fields(&self, era: Era, status: Option<&str>) -> Map<String, Value> {
        let names = [("ttl", "ttlMs"), ("pollInterval", "pollIntervalMs")];
        let named = |key: &str| {
            let pair = names.iter().find(|(legacy, modern)| key == *legacy || key == *modern);
            let name = pair.map(|(legacy, modern)| if era == Era::Legacy { *legacy } else { *modern });
            name.unwrap_or(key).to_owned()
        };
        let mut fields: Map<String, Value> =
            self.fields.iter().map(|(key, value)| (named(key), value.clone())).collect();
        let status = status.or(match fields.get("status").and_then(Value::as_str) {
            Some("input_required") if era == Era::Modern && self.shape == Era::Legacy => Some("working"),
            Some(_) | None => None,
        });
        if let Some(status) = status {
            fields.insert("status".to_owned(), status.into());
        }
        fields
    }

    /// The answer to the request that began it, for a client that knows tasks.
    pub fn begins(&self, asked: &Asked, info: &Value) -> Reply {
        let era = asked.terms.era();
        let mut result = match era {
            Era::Legacy => json!({"task": self.fields(era, Some("working"))}),
            Era::Modern => Value::Object(self.fields(era, Some("working"))),
        };
        envelope(&mut result, ResultType::Task, asked.method.as_str(), asked.terms.revision, info);
        Reply::Result(RawJson::from_value(&result))
    }

    /// The answer to `tasks/get` of 2026-07-28 where the task waits for answers.
    pub fn asks(&self, questions: &[Question], asked: &Asked, info: &Value) -> Reply {
        let mut shown = self.fields(asked.terms.era(), Some("input_required"));
        let requests = questions.iter().map(|question| (question.name.clone(), question.input_request()));
        shown.insert("inputRequests".to_owned(), Value::Object(requests.collect()));
        let mut shown = Value::Object(shown);
        envelope(&mut shown, ResultType::Complete, asked.method.as_str(), asked.terms.revision, info);
        Reply::Result(RawJson::from_value(&shown))
    }

    /// The answer to `tasks/get`; `outcome` is what came of it, for where it has ended.
    pub fn shows(&self, outcome: Option<&Reply>, asked: &Asked, info: &Value) -> Reply {
        let era = asked.terms.era();
        let is_cancelled = self.fields.get("status").is_some_and(|status| status == "cancelled");
        let status = outcome.filter(|_| !is_cancelled).map(|outcome| ended_as(outcome, era));
        let mut shown = self.fields(era, status);
        match outcome {
            Some(Reply::Result(result)) if era == Era::Modern => {
                shown.insert("result".to_owned(), result.exact().unwrap_or_default());
            }
            Some(Reply::Error(error)) if era == Era::Modern => {
                let mut failed = json!({"code": error.code, "message": error.message});
                if let Some(data) = error.data.as_ref().and_then(|data| data.exact().ok()) {
                    failed["data"] = data;
                }
                shown.insert("error".to_owned(), failed);
            }
            Some(_) | None => {}
        }
        let mut shown = Value::Object(shown);
        envelope(&mut shown, ResultType::Complete, asked.method.as_str(), asked.terms.revision, info);
        Reply::Result(RawJson::from_value(&shown))
    }

    /// The answer to `tasks/update`, which 2026-07-28 alone has.
    pub fn acknowledges(&self, asked: &Asked, info: &Value) -> Reply {
        let mut result = json!({});
        envelope(&mut result, ResultType::Complete, asked.method.as_str(), asked.terms.revision, info);
        Reply::Result(RawJson::from_value(&result))
    }

    /// The answer to `tasks/result`, which 2025-11-25 alone has.
    pub fn results(&self, outcome: &Reply) -> Reply {
        match outcome {
            Reply::Error(_) => outcome.clone(),
            Reply::Result(result) => {
                let named = result.edit(|result| {
                    let (Some(result), Value::Object(related)) = (result.as_object_mut(), related_task(&self.id))
                    else {
                        return;
                    };
                    let about = result.entry("_meta").or_insert_with(|| json!({}));
                    if let Some(about) = about.as_object_mut() {
                        about.extend(related);
                    }
                });
                Reply::Result(named.unwrap_or_else(|_| result.clone()))
            }
        }
    }
}

/// The status of a task of which this came. Since 2026-07-28 a tool that failed is a task that was completed.
pub fn ended_as(outcome: &Reply, era: Era) -> &'static str {
    match outcome {
        Reply::Result(result) if era == Era::Legacy && is_failure(result) => "failed",
        Reply::Result(_) => "completed",
        Reply::Error(_) => "failed",
    }
}

/// What came of a task, as the answer to the tool call that began it.
pub fn task_outcome(outcome: &Reply, from: Option<Revision>, asked: &Asked, info: &Value) -> Reply {
    let outcome = match outcome {
        Reply::Result(result) => Reply::Result(nameless(result)),
        Reply::Error(_) => outcome.clone(),
    };
    let mut said = adapted(&outcome, &Method::TOOLS_CALL, from, asked.terms.revision, info);
    // Inside of a task it need not say what it is and who says it.
    let (call, revision) = (Method::TOOLS_CALL, asked.terms.revision);
    if let Reply::Result(result) = &mut said
        && let Ok(whole) = result.edit(|it| envelope(it, ResultType::Complete, call.as_str(), revision, info))
    {
        *result = whole;
    }
    said
}

/// The answer to `tasks/result`, or what is asked meanwhile, without the name of its task, which means nothing to whoever does
/// not know it.
fn nameless(result: &RawJson) -> RawJson {
    let edited = result.edit(|value| {
        if let Some(object) = value.as_object_mut()
            && let Some(Value::Object(about)) = object.get_mut("_meta")
        {
            about.retain(|key, _| related_task("").get(key).is_none());
            if about.is_empty() {
                object.shift_remove("_meta");
            }
        }
    });
    edited.unwrap_or_else(|_| result.clone())
}

impl Recorded {
    /// What came of a task, to be played to a client that knows no tasks; anything else as it is.
    pub fn for_call(self: Arc<Self>) -> Arc<Self> {
        let is_outcome = self.call.request.message.method().is_some_and(|method| method.as_str() == "tasks/result");
        let Some(response) = self.call.response.as_ref().filter(|_| is_outcome) else { return self };
        let Some(Response { id: Some(id), reply: Reply::Result(result) }) = response.message.as_response() else {
            return self;
        };
        let message = Message::reply(id.clone(), &Reply::Result(nameless(result)));
        let mut recorded = Recorded::clone(&self);
        recorded.call.response = Some(Placed { message, ..response.clone() });
        for thing in &mut recorded.things {
            let Inside::Call(call) = &mut thing.what else { continue };
            let asked = call.request.message.as_request().filter(|_| call.asker == Side::Server);
            let params = asked.and_then(|asked| asked.params.as_ref());
            let Some((asked, params)) = asked.zip(params) else { continue };
            let nameless = nameless(params).exact().unwrap_or_default();
            if let Ok(message) = Message::request(asked.id.clone(), asked.method.clone(), Some(&nameless)) {
                call.request.message = message;
            }
        }
        Arc::new(recorded)
    }

    /// What the server asked meanwhile by requests of its own.
    pub fn questions(&self) -> Vec<Question> {
        let asked = self.things.iter().filter_map(|thing| match &thing.what {
            Inside::Call(call) if call.asker == Side::Server => call.request.message.as_request(),
            Inside::Call(_) | Inside::Entry(_) => None,
        });
        let asked = asked.filter(|request| request.method != Method::PING).enumerate();
        let question = |(at, request): (usize, &Request)| {
            let params = request.params.as_ref().and_then(|params| params.exact().ok()).unwrap_or_default();
            Question { name: format!("question-{}", at + 1), method: request.method.clone(), params }
        };
        asked.map(question).collect()
    }

    /// One exchange of this and of earlier ones that wanted the same: everything that was said in them, and the last answer.
    /// What nobody answered and was asked again is asked once.
    pub fn following(self: &Arc<Self>, earlier: &[Arc<Recorded>]) -> Arc<Recorded> {
        let Some(first) = earlier.first().filter(|_| earlier.iter().any(|it| !it.things.is_empty())) else {
            return Arc::clone(self);
        };
        let mut things: Vec<Thing> = Vec::new();
        for round in earlier.iter().chain([self]) {
            things.retain(|thing| thing.is_settled() || !round.things.iter().any(|again| again.asks_like(thing)));
            let is_last = round.number == self.number;
            let of_this =
                |thing: &Thing| Thing { place: if is_last { thing.place } else { Place::Before }, ..thing.clone() };
            things.extend(round.things.iter().map(of_this));
        }
        let message = self.call.request.message.clone();
        let call = Call { request: Placed { message, ..first.call.request.clone() }, ..self.call.clone() };
        Arc::new(Recorded { call, things, ..Recorded::clone(self) })
    }

    /// An exchange in which all of this was asked and then answered like this, in the version of a client.
    pub fn asking(&self, questions: &[Question], reply: &Reply, revision: Revision) -> Arc<Recorded> {
        let Placed { seq, at, .. } = self.call.request;
        let placed = |after: u64, message: Message| Placed::new(seq.saturating_add(after), at, message);
        let empty = Reply::Result(RawJson::from_value(&json!({})));
        let thing = |question: &Question| {
            let request = placed(0, question.request(RequestId::Number(0), None));
            let response = Some(placed(1, Message::reply(RequestId::Number(0), &empty)));
            let call = Call { asker: Side::Server, request, response };
            Thing { what: Inside::Call(Box::new(call)), place: Place::Before }
        };
        let response = Some(placed(2, Message::reply(RequestId::Number(0), reply)));
        let call = Call { response, ..self.call.clone() };
        let things = questions.iter().map(thing).collect();
        let revision = Some(revision);
        Arc::new(Recorded { call, things, revision, ..self.clone() })
    }
}

/// In which shape a client wants a task for this call, if it knows tasks at all.
pub fn wanted_task(asked: &Asked) -> Option<Era> {
    let wants = asked.params.get("task").is_some_and(Value::is_object);
    match asked.terms.era() {
        Era::Modern => asked.terms.has_tasks_extension().then_some(Era::Modern),
        Era::Legacy => (wants && asked.terms.revision == Revision::V2025_11_25).then_some(Era::Legacy),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::{Logs, Terms};

    fn result(value: Value) -> Reply {
        Reply::Result(RawJson::from_value(&value))
    }

    #[test]
    fn a_task_is_told_from_an_answer_in_both_shapes() {
        let legacy = result(json!({"task": {"taskId": "a", "status": "working", "ttl": 5}}));
        let modern = result(json!({"resultType": "task", "taskId": "a", "status": "working", "ttlMs": 5}));
        let (legacy, modern) = (RecordedTask::begun(&legacy).unwrap(), RecordedTask::begun(&modern).unwrap());
        assert_eq!((legacy.shape, modern.shape), (Era::Legacy, Era::Modern));
        assert_eq!(legacy.fields(Era::Modern, None), modern.fields(Era::Modern, None));
        assert_eq!(legacy.fields(Era::Legacy, None), modern.fields(Era::Legacy, None));
        assert_eq!(RecordedTask::begun(&result(json!({"content": []}))), None);
    }

    #[test]
    fn a_task_waits_for_answers_only_where_its_questions_are_known() {
        let asking = result(
            json!({"taskId": "a", "status": "input_required", "inputRequests": {"q": {"method": "roots/list"}}}),
        );
        let modern = RecordedTask::shown(&asking, Era::Modern).unwrap();
        assert_eq!(modern.questions()[0].method, "roots/list");
        assert_eq!(modern.fields(Era::Legacy, None)["status"], "input_required");
        let legacy = RecordedTask::shown(&asking, Era::Legacy).unwrap();
        assert_eq!(legacy.fields(Era::Modern, None)["status"], "working");
    }

    #[test]
    fn a_tool_that_failed_is_a_task_that_failed_in_2025_alone() {
        let failure = json!({"content": [], "isError": true});
        let ended = json!({"taskId": "a", "status": "completed", "result": failure});
        let ended = RecordedTask::shown(&result(ended), Era::Modern).unwrap();
        for (revision, expected) in [(Revision::V2025_11_25, "failed"), (Revision::V2026_07_28, "completed")] {
            let (client, capabilities) = (Arc::default(), Arc::default());
            let terms = Terms { revision, client, capabilities, logs: Logs::None };
            let asked = Asked::new("tasks/get".into(), json!({"taskId": "a"}), terms);
            let Reply::Result(shown) = ended.shows(ended.outcome(), &asked, &json!({})) else { panic!("no result") };
            assert_eq!(shown.value().unwrap()["status"], expected);
        }
    }

    #[test]
    fn what_came_of_a_task_is_named_in_the_results_of_2025() {
        let ended = json!({"taskId": "a", "status": "completed", "result": {"content": []}});
        let ended = RecordedTask::shown(&result(ended), Era::Modern).unwrap();
        let Reply::Result(said) = ended.results(ended.outcome().unwrap()) else { panic!("no result") };
        assert_eq!(said.value().unwrap()["_meta"], related_task("a"));
        let failed = json!({"taskId": "a", "status": "failed", "error": {"code": -5, "message": "no"}});
        let failed = RecordedTask::shown(&result(failed), Era::Modern).unwrap();
        assert_eq!(failed.outcome(), Some(&Reply::Error(ErrorReply::new(-5, "no"))));
    }
}
