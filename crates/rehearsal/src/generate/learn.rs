//! Reads a recording for what it says about its server.
//!
//! ```text
//! Moment, Moment, … ──► handshake, lists ──► who it is and what it offers
//!                   ──► calls ──► rounds joined, volatile parts taken out ──► distinct requests, answers in order
//! ```

use std::collections::{BTreeMap, HashMap, HashSet};

use rehearsal_core::exchange::Side;
use rehearsal_core::json::RawJson;
use rehearsal_core::message::{Body, Method, Reply};
use rehearsal_core::protocol::meta;
use rehearsal_core::trace::{Call, Inside, Likeness, Moment, RequestKey, What};
use serde_json::{Map, Value};

use super::learned::{Answered, Before, Learned, Question, Request, Said};

/// How many bytes of answers are taken in. What is generated is for people to edit.
const LIMIT: usize = 64 << 20;

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
    /// Rounds of 2026-07-28 that the client has to come back for, by request and state.
    rounds: HashMap<(RequestKey, Option<String>), Vec<Vec<Before>>>,
    bytes: usize,
    left_out: BTreeMap<String, usize>,
}

impl Learner {
    /// Takes in what happened next.
    pub fn moment(&mut self, moment: Moment) -> Result<(), TooLarge> {
        match moment {
            Moment::Start(start) => {
                // What a handshake says later counts more.
                for key in ["name", "version"] {
                    let said = start.server_info.get(key).filter(|said| said.is_string());
                    if let Some(said) = said.filter(|_| !self.learned.server.contains_key(key)) {
                        self.learned.server.insert(key.to_owned(), said.clone());
                    }
                }
            }
            Moment::Call { call, inside } if call.asker == Side::Client => self.call(&call, &inside)?,
            Moment::Call { call, .. } => self.leave_out(&call, "which the server asked outside of any call"),
            Moment::Entry(_) | Moment::Finish { .. } => {}
        }
        Ok(())
    }

    fn leave_out(&mut self, call: &Call, why: &str) {
        let method = call.request.message.method().map_or("something", |method| method.as_str());
        *self.left_out.entry(format!("{method}, {why}")).or_default() += 1;
    }

    fn call(&mut self, call: &Call, inside: &[Inside]) -> Result<(), TooLarge> {
        let Some(method) = call.request.message.method().cloned() else { return Ok(()) };
        let Some(reply) = reply(call) else {
            self.leave_out(call, "without an answer that could be understood");
            return Ok(());
        };
        self.bytes += call.response.as_ref().map_or(0, |response| response.message.raw().len());
        if self.bytes > LIMIT {
            return Err(TooLarge);
        }
        let value = match &reply {
            Reply::Result(result) => result.value().unwrap_or_default(),
            Reply::Error(_) => Value::Null,
        };
        match method.as_str() {
            "initialize" => self.introduced(&value, value.get("serverInfo")),
            "server/discover" => {
                self.introduced(&value, value.get("_meta").and_then(|meta| meta.get(meta::SERVER_INFO)));
            }
            "tools/list" => self.learned.tools.take(&value, "tools", "name"),
            "prompts/list" => self.learned.prompts.take(&value, "prompts", "name"),
            "resources/list" => self.learned.resources.take(&value, "resources", "uri"),
            "resources/templates/list" => {
                self.learned.resource_templates.take(&value, "resourceTemplates", "uriTemplate");
            }
            "tools/call" | "prompts/get" | "resources/read" | "completion/complete" => {
                self.answered(call, method, reply, value, inside);
            }
            // What every server does by itself.
            "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" | "subscriptions/listen" => {}
            _ => self.leave_out(call, "which is no question about tools, prompts or resources"),
        }
        Ok(())
    }

    fn introduced(&mut self, result: &Value, info: Option<&Value>) {
        if let Some(info) = info.and_then(Value::as_object) {
            self.learned.server.clone_from(info);
        }
        if let Some(capabilities) = result.get("capabilities").and_then(Value::as_object) {
            self.learned.capabilities.clone_from(capabilities);
        }
        if let Some(instructions) = result.get("instructions").and_then(Value::as_str) {
            self.learned.instructions = Some(instructions.to_owned());
        }
    }

    fn answered(&mut self, call: &Call, method: Method, reply: Reply, value: Value, inside: &[Inside]) {
        let params = call.request.message.params().and_then(|params| params.value().ok()).unwrap_or_default();
        let state = params.get("requestState").map(Value::to_string);
        let returns = params.get("inputResponses").is_some() || state.is_some();
        let mut view = Likeness::default().view(&method, Some(&params));
        let key = RequestKey::of(&view);
        let mut before = match returns {
            true => self.rounds.get_mut(&(key, state)).and_then(Vec::pop).unwrap_or_default(),
            false => Vec::new(),
        };
        before.extend(inside.iter().filter_map(said_before));
        let said = match reply {
            Reply::Error(error) => Said::Error(error),
            Reply::Result(_) => match value {
                Value::Object(result) if result.get("resultType").is_some_and(|kind| kind == "input_required") => {
                    let questions = asked(&result);
                    before.push(if questions.is_empty() { Before::SentAway } else { Before::Asked(questions) });
                    let state = result.get("requestState").map(Value::to_string);
                    self.rounds.entry((key, state)).or_default().push(before);
                    return;
                }
                Value::Object(result) if is_task(&result) => {
                    self.leave_out(call, "which a task answers");
                    return;
                }
                Value::Object(result) => Said::Result(without_envelope(result)),
                _ => {
                    self.leave_out(call, "whose result is no object");
                    return;
                }
            },
        };
        name_questions(&mut before);
        let requests = &mut self.learned.requests;
        let at = *self.known.entry(key).or_insert_with(|| {
            requests.push(Request { method, params: view["params"].take(), answers: Vec::new() });
            requests.len() - 1
        });
        requests[at].answers.push(Answered { before, said });
    }

    /// What was learned.
    pub fn finish(mut self) -> Learned {
        let unfinished: usize = self.rounds.values().map(Vec::len).sum();
        if unfinished > 0 {
            *self.left_out.entry("a call whose rounds of questions never ended".to_owned()).or_default() += unfinished;
        }
        let words = |(what, count): (String, usize)| if count == 1 { what } else { format!("{count} × {what}") };
        self.learned.left_out = self.left_out.into_iter().map(words).collect();
        self.learned
    }
}

fn reply(call: &Call) -> Option<Reply> {
    match call.response.as_ref()?.message.body() {
        Body::Response(response) => Some(response.reply.clone()),
        Body::Request(_) | Body::Notification(_) | Body::Batch(_) | Body::Garbled(_) => None,
    }
}

/// Takes out what each version adds by itself.
fn without_envelope(mut result: Map<String, Value>) -> Map<String, Value> {
    for key in ["resultType", "ttlMs", "cacheScope"] {
        result.shift_remove(key);
    }
    if let Some(Value::Object(fields)) = result.get_mut("_meta") {
        fields.shift_remove(meta::SERVER_INFO);
        if fields.is_empty() {
            result.shift_remove("_meta");
        }
    }
    result
}

/// Whether the answer is that a task will give one.
fn is_task(result: &Map<String, Value>) -> bool {
    result.get("resultType").is_some_and(|kind| kind == "task")
        || (result.get("task").is_some_and(Value::is_object) && !result.contains_key("content"))
}

/// The questions of a round of 2026-07-28.
fn asked(result: &Map<String, Value>) -> Vec<Question> {
    let requests = result.get("inputRequests").and_then(Value::as_object);
    let question = |(name, asked): (&String, &Value)| {
        let method = asked.get("method")?.as_str()?.into();
        Some(Question { name: name.clone(), method, params: asked.get("params").cloned().unwrap_or_default() })
    };
    requests.into_iter().flatten().filter_map(question).collect()
}

/// What a server said while it worked.
fn said_before(inside: &Inside) -> Option<Before> {
    let params = |params: Option<&RawJson>| {
        let mut params = params.and_then(|params| params.value().ok()).unwrap_or_default();
        if let Some(object) = params.as_object_mut() {
            object.shift_remove(meta::PROGRESS_TOKEN);
            if let Some(Value::Object(about)) = object.get_mut("_meta") {
                // The stream or task that it belongs to is another one next time.
                about.retain(|key, _| !key.starts_with("io.modelcontextprotocol/"));
                if about.is_empty() {
                    object.shift_remove("_meta");
                }
            }
        }
        params
    };
    match inside {
        Inside::Call(call) if call.asker == Side::Server => {
            let method = call.request.message.method()?.clone();
            if method == Method::PING {
                return None;
            }
            let params = params(call.request.message.params());
            Some(Before::Asked(vec![Question { name: String::new(), method, params }]))
        }
        Inside::Entry(entry) => match &entry.what {
            What::Message { from: Side::Server, message, .. } => match message.body() {
                Body::Notification(told) => {
                    Some(Before::Told { method: told.method.clone(), params: params(told.params.as_ref()) })
                }
                Body::Request(_) | Body::Response(_) | Body::Batch(_) | Body::Garbled(_) => None,
            },
            What::Message { .. }
            | What::Http { .. }
            | What::Event { .. }
            | What::ChannelEnded { .. }
            | What::Stderr { .. }
            | What::Piece { .. }
            | What::Ended(_) => None,
        },
        Inside::Call(_) => None,
    }
}

/// Before 2026-07-28 questions have no names; they get some. A name that a later round uses again is another question: it
/// is asked under another name, because what was answered once is not asked again.
fn name_questions(before: &mut [Before]) {
    let questions = before.iter_mut().filter_map(|before| match before {
        Before::Asked(questions) => Some(questions),
        Before::Told { .. } | Before::SentAway => None,
    });
    let mut names: HashSet<String> = HashSet::new();
    let mut unnamed = 0;
    for question in questions.flatten() {
        if question.name.is_empty() {
            unnamed += 1;
            question.name = format!("question_{unnamed}");
        }
        let name = std::mem::take(&mut question.name);
        let others = (2..).map(|number| format!("{name}_{number}"));
        let free = std::iter::once(name.clone()).chain(others).find(|name| !names.contains(name));
        question.name = free.unwrap_or(name);
        names.insert(question.name.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_question_of_an_answer_has_a_name_of_its_own() {
        let asked = |names: &[&str]| {
            let question =
                |name: &&str| Question { name: (*name).to_owned(), method: Method::ELICITATION, params: Value::Null };
            Before::Asked(names.iter().map(question).collect())
        };
        let mut before = [asked(&["confirm", ""]), asked(&["confirm"]), asked(&["", "confirm"])];
        name_questions(&mut before);
        let names = before.iter().flat_map(|before| match before {
            Before::Asked(questions) => questions.iter().map(|question| question.name.as_str()).collect(),
            Before::Told { .. } | Before::SentAway => Vec::new(),
        });
        assert_eq!(names.collect::<Vec<_>>(), ["confirm", "question_1", "confirm_2", "question_2", "confirm_3"]);
    }
}
