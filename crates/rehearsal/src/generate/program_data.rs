//! The data of a generated program.

use std::collections::HashSet;

use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use rehearsal_core::message::Method;
use serde_json::{Map, Value, json};

use super::recorded_call::is_extension;
use super::secret::has_secret;
use super::server_model::{
    DistinctRequest, LeftOut, ListedItems, ModelAnswer, PrecedingEvent, RecordedInputRequest, RecordedReply,
    ServerModel,
};

/// A built-in template could not be rendered.
#[derive(thiserror::Error)]
#[error("a template could not be filled in: {0}")]
pub struct TemplateError(#[from] minijinja::Error);

debug_as_display!(TemplateError);

/// The data of a program that answers like a recording.
pub(super) struct ProgramData {
    /// By method: a list of `params` and their `responses`, each a `result` or an `error` with the events `before` it.
    pub(super) responses: Map<String, Value>,
    /// The errors of methods that are always refused.
    pub(super) refuses: Map<String, Value>,
    /// What the server declares; `None` if no handshake was recorded.
    pub(super) capabilities: Option<Map<String, Value>>,
    /// Whether secrets were redacted from a recorded request.
    pub(super) secrets: bool,
    /// Whether an event precedes any answer.
    pub(super) has_preceding: bool,
    pub(super) tools: Vec<Value>,
    pub(super) resources: Vec<Value>,
    pub(super) prompts: Vec<Value>,
    /// How much of the recording is not in the program.
    pub(super) left_out: LeftOut,
}

impl ProgramData {
    pub(super) fn new(model: &ServerModel) -> ProgramData {
        let (mut responses, mut has_preceding, mut secrets) = (Map::new(), false, false);
        let mut left_out = model.left_out;
        for request in &model.requests {
            if is_extension(&request.method) {
                left_out.others += request.answers.len();
                continue;
            }
            let before = request.answers.iter().flat_map(|answer| &answer.before);
            left_out.server_requests += before.map(unsupported).sum::<usize>();
            let mut params = request.params.clone();
            let takes = request.method == Method::TOOLS_CALL || request.method == Method::PROMPTS_GET;
            if let Some(object) = params.as_object_mut().filter(|object| takes && !object.contains_key("arguments")) {
                object.insert("arguments".to_owned(), json!({}));
            }
            let mut answers: Vec<Value> = request.answers.iter().map(response).collect();
            // A program repeats the last answer, so equal answers at the end are dropped.
            while answers.len() > 1 && answers[answers.len() - 1] == answers[answers.len() - 2] {
                answers.pop();
            }
            has_preceding |= request.answers.iter().any(|answer| !answer.before.is_empty());
            secrets |= has_secret(&params);
            let list = responses.entry(request.method.as_str()).or_insert_with(|| json!([]));
            if let Some(list) = list.as_array_mut() {
                list.push(json!({"params": params, "responses": answers}));
            }
        }
        let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
        let resources = match model.resource_templates.items.is_empty() {
            true => {
                with_unlisted(&model.resources, model, &Method::RESOURCES_READ, |uri| json!({"uri": uri, "name": uri}))
            }
            // Unlisted resources may be instances of a template.
            false => model.resources.items.clone(),
        };
        ProgramData {
            responses,
            refuses: model.refuses.iter().map(|(method, error)| (method.clone(), error.object().into())).collect(),
            capabilities: model.capabilities.clone(),
            secrets,
            has_preceding,
            tools: with_unlisted(&model.tools, model, &Method::TOOLS_CALL, tool),
            resources,
            prompts: with_unlisted(&model.prompts, model, &Method::PROMPTS_GET, |name| model.unlisted_prompt(name)),
            left_out,
        }
    }

    /// Whether the server declares a capability, or answered one of its methods.
    pub(super) fn has(&self, capability: &str, methods: &[&str]) -> bool {
        let declares = self.capabilities.as_ref().is_some_and(|all| all.contains_key(capability));
        declares || methods.iter().any(|method| self.responses.contains_key(*method))
    }

    /// Whether clients can subscribe to its resources.
    pub(super) fn subscribes(&self) -> bool {
        let resources = self.capabilities.as_ref().and_then(|all| all.get("resources"));
        self.responses.contains_key("resources/subscribe")
            || resources.is_some_and(|resources| resources.get("subscribe") == Some(&Value::Bool(true)))
    }

    /// Whether the server declares change notices.
    pub(super) fn notifies_changes(&self) -> bool {
        let all = self.capabilities.iter().flat_map(Map::values).filter_map(Value::as_object);
        all.flatten().any(|(key, value)| ["listChanged", "subscribe"].contains(&key.as_str()) && *value == true)
    }
}

/// The listed items; if the list was never requested, also the items that were requested.
fn with_unlisted(list: &ListedItems, model: &ServerModel, method: &Method, item: impl Fn(&str) -> Value) -> Vec<Value> {
    let names = model.requests_of(method).filter_map(DistinctRequest::subject).filter(|_| !list.was_requested);
    let mut seen = HashSet::new();
    let unlisted = names.filter(|name| !list.contains(name) && seen.insert(*name));
    list.items.iter().cloned().chain(unlisted.map(item)).collect()
}

/// Counts the server requests with a method that is not of the protocol: a program cannot send them.
fn unsupported(before: &PrecedingEvent) -> usize {
    match before {
        PrecedingEvent::InputRequests(requests) => requests.iter().filter(|it| !is_supported(it)).count(),
        PrecedingEvent::Notification { .. } | PrecedingEvent::EmptyRound => 0,
    }
}

fn is_supported(request: &RecordedInputRequest) -> bool {
    [Method::ELICITATION, Method::SAMPLING, Method::ROOTS_LIST].contains(&request.method)
}

fn response(answer: &ModelAnswer) -> Value {
    let mut response = Map::new();
    let before: Vec<_> = answer.before.iter().filter_map(step).collect();
    if !before.is_empty() {
        response.insert("before".to_owned(), before.into());
    }
    match &answer.reply {
        RecordedReply::Result(result) => response.insert("result".to_owned(), result.clone().into()),
        RecordedReply::Error(error) => response.insert("error".to_owned(), error.object().into()),
    };
    response.into()
}

/// `{"notify": …}`, `{"requestInput": {name: …}}` or `"emptyRound"`.
fn step(before: &PrecedingEvent) -> Option<Value> {
    let params = |params: &Value| if params.is_object() { params.clone() } else { json!({}) };
    match before {
        PrecedingEvent::Notification { method, params: sent } => {
            Some(json!({"notify": {"method": method.as_str(), "params": params(sent)}}))
        }
        PrecedingEvent::InputRequests(requests) => {
            let request = |it: &RecordedInputRequest| {
                (it.name.clone(), json!({"method": it.method.as_str(), "params": params(&it.params)}))
            };
            let requests: Map<_, _> = requests.iter().filter(|it| is_supported(it)).map(request).collect();
            (!requests.is_empty()).then(|| json!({"requestInput": requests}))
        }
        PrecedingEvent::EmptyRound => Some("emptyRound".into()),
    }
}

/// Renders a built-in template. The values are never parsed as a template.
pub(super) fn rendered(template: &str, context: &minijinja::Value) -> Result<String, TemplateError> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    // The template engine removes the last line end of a template.
    Ok(environment.render_str(template, context)? + "\n")
}

/// How much of the recording is not in a program, as a comment of it.
///
/// ```text
/// # Recorded, but left out: 1 garbled message, 2 other items
/// ```
pub(super) fn notes(comment: &str, left_out: &LeftOut) -> String {
    if left_out.is_empty() { String::new() } else { format!("{comment} Recorded, but left out: {left_out}") }
}

/// The name of a file with only those characters that are safe in a comment.
pub(super) fn comment_text(text: &str) -> String {
    let kept = |c: char| if c.is_alphanumeric() || " ._-".contains(c) { c } else { '?' };
    text.chars().take(80).map(kept).collect()
}
