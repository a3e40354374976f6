//! What was recorded, as the data of a program.

use std::collections::HashSet;

use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use rehearsal_core::answer::Rise;
use rehearsal_core::message::Method;
use rehearsal_core::protocol::Era;
use rehearsal_core::protocol::meta::TASKS_EXTENSION;
use serde_json::{Map, Value, json};

use super::declared::not_always;
use super::fate::{Account, Fate};
use super::generated::{TemplateError, on_one_line};
use super::learned::{Answered, Before, Learned, Question, Request, Said};
use super::listed::Listed;
use super::looked_at::is_own;
use super::secret::has_secret;
use super::told::{unheard, unwanted};

/// The data of a program that answers like a recording.
pub(super) struct Recorded {
    /// By method: a list of `params` and their `responses`, each a `result` or an `error` and what comes `before` it.
    pub(super) responses: Map<String, Value>,
    /// The errors of requests that are refused whatever they ask for, by method.
    pub(super) refuses: Map<String, Value>,
    /// What the server declares in any session; `None` where it never said.
    pub(super) capabilities: Option<Map<String, Value>>,
    /// Whether secrets were taken out of what was asked.
    pub(super) secrets: bool,
    /// Whether something comes before some answer.
    pub(super) speaks: bool,
    /// Whether something is said otherwise where several rounds are one call.
    pub(super) rises: bool,
    /// Whether prompts were asked for with arguments that are no texts.
    pub(super) odd_prompts: bool,
    /// Whether some clients are sent away without state.
    pub(super) without_state: bool,
    /// What is not in it, in words.
    pub(super) left_out: Vec<String>,
}

impl Recorded {
    pub(super) fn of(learned: &Learned) -> Recorded {
        let (mut responses, mut speaks, mut rises, mut without_state) = (Map::new(), false, false, false);
        let mut left_out = learned.left_out.clone();
        let (own, requests): (Vec<_>, Vec<_>) = learned.requests.iter().partition(|request| is_own(&request.method));
        let mut unknown = Account::default();
        for request in own {
            let words = format!("{}, which is no question about tools, prompts or resources", request.method);
            unknown.enter(Fate::LeftOut(words), request.answers.len());
        }
        left_out.extend(unknown.words());
        for request in requests {
            for method in request.answers.iter().flat_map(|answer| &answer.before).flat_map(unaskable) {
                let words = format!("{method}, which the program cannot ask");
                if !left_out.contains(&words) {
                    left_out.push(words);
                }
            }
            let mut params = request.params.clone();
            let takes = request.method == Method::TOOLS_CALL || request.method == Method::PROMPTS_GET;
            if let Some(object) = params.as_object_mut().filter(|object| takes && !object.contains_key("arguments")) {
                object.insert("arguments".to_owned(), json!({}));
            }
            let mut answers: Vec<Value> = request.answers.iter().map(response).collect();
            rises |= answers.iter().any(rises_in_one_call);
            without_state |= request.answers.iter().any(|answer| answer.request_state == Some(false));
            speaks |= request.answers.iter().any(|answer| !answer.before.is_empty());
            // The last is given again, so what repeats it at the end need not be there.
            while answers.len() > 1 && answers[answers.len() - 1] == answers[answers.len() - 2] {
                answers.pop();
            }
            let list = responses.entry(request.method.as_str()).or_insert_with(|| json!([]));
            if let Some(list) = list.as_array_mut() {
                list.push(json!({"params": params, "responses": answers}));
            }
        }
        left_out.extend(learned.capabilities.changing().map(|key| not_always(key)));
        let lists = learned.lists();
        left_out.extend(lists.into_iter().flat_map(Listed::otherwise));
        left_out.extend(lists.into_iter().filter_map(Listed::paged));
        left_out.extend(promised(learned));
        left_out.extend(learned.own_of_server(&[Era::Legacy, Era::Modern]));
        left_out.extend(unwanted(learned));
        let newest =
            learned.newest_legacy.map(|newest| format!("that {newest} is the newest version with a handshake"));
        left_out.extend(newest);
        let refuses = learned.refuses.iter().map(|(method, error)| (method.clone(), error.object().into())).collect();
        let secrets = responses.values().any(|requests| {
            let requests = requests.as_array().into_iter().flatten();
            requests.into_iter().any(|request| has_secret(&request["params"]))
        });
        let capabilities = learned.capabilities.all();
        let odd_prompts = learned.requests_of(&Method::PROMPTS_GET).any(has_no_texts);
        let mut recorded =
            Recorded { responses, refuses, capabilities, secrets, speaks, rises, odd_prompts, without_state, left_out };
        recorded.left_out.extend(unheard(learned, recorded.tells_changes()));
        recorded
    }

    /// Whether the server declares something, or was asked for it and answered.
    pub(super) fn has(&self, capability: &str, methods: &[&str]) -> bool {
        let declares = self.capabilities.as_ref().is_some_and(|all| all.contains_key(capability));
        declares || methods.iter().any(|method| self.responses.contains_key(*method))
    }

    /// Whether it declares that it tells of changes.
    pub(super) fn tells_changes(&self) -> bool {
        let all = self.capabilities.iter().flat_map(Map::values).filter_map(Value::as_object);
        all.flatten().any(|(key, value)| ["listChanged", "subscribe"].contains(&key.as_str()) && *value == true)
    }
}

/// Whether some argument is no text, as those of prompts should be.
fn has_no_texts(request: &Request) -> bool {
    request.arguments().is_some_and(|arguments| arguments.values().any(|value| !value.is_string()))
}

/// What a program lists.
pub(super) struct Lists {
    pub(super) tools: Vec<Value>,
    pub(super) resources: Vec<Value>,
    pub(super) prompts: Vec<Value>,
}

impl Lists {
    pub(super) fn of(learned: &Learned) -> Lists {
        let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
        let resources = match learned.resource_templates.items.is_empty() {
            true => {
                with_unlisted(&learned.resources, learned, "resources/read", |uri| json!({"uri": uri, "name": uri}))
            }
            // They may be what a template stands for.
            false => learned.resources.items.clone(),
        };
        Lists {
            tools: with_unlisted(&learned.tools, learned, "tools/call", tool),
            resources,
            prompts: with_unlisted(&learned.prompts, learned, "prompts/get", |name| json!({"name": name})),
        }
    }
}

/// What was listed; where nobody ever asked for the list, what was asked for.
fn with_unlisted(listed: &Listed, learned: &Learned, method: &str, item: impl Fn(&str) -> Value) -> Vec<Value> {
    let method = method.into();
    let asked = learned.requests_of(&method).filter_map(Request::subject).filter(|_| !listed.was_asked);
    let mut seen = HashSet::new();
    let unlisted = asked.filter(|name| listed.find(name).is_none() && seen.insert(*name));
    listed.items.iter().cloned().chain(unlisted.map(item)).collect()
}

/// What the declared capabilities promise that no program made of a recording does, in words.
fn promised(learned: &Learned) -> Option<String> {
    let declared = learned.capabilities.all()?;
    let extension = declared.get("extensions").and_then(|all| all.get(TASKS_EXTENSION));
    declared.get("tasks").or(extension).map(|_| "tasks, though the server declares them as recorded".to_owned())
}

/// What is asked that only clients of this server understand.
fn unaskable(before: &Before) -> impl Iterator<Item = &Method> {
    let questions = match before {
        Before::Asked(questions) => questions.as_slice(),
        Before::Told { .. } | Before::SentAway => &[],
    };
    questions.iter().map(|question| &question.method).filter(|method| !is_askable(method))
}

fn is_askable(method: &Method) -> bool {
    [Method::ELICITATION, Method::SAMPLING, Method::ROOTS_LIST].contains(method)
}

fn response(answer: &Answered) -> Value {
    let mut response = Map::new();
    let before = steps(answer);
    if !before.is_empty() {
        response.insert("before".to_owned(), before.into());
    }
    if answer.request_state == Some(false) {
        response.insert("withoutState".to_owned(), true.into());
    }
    match &answer.said {
        Said::Result(result) => drop(response.insert("result".to_owned(), result.clone().into())),
        Said::Error(error) => drop(response.insert("error".to_owned(), error.object().into())),
    }
    response.into()
}

/// What a step says where several rounds are one call.
const IN_ONE_CALL: &str = "inOneCall";

/// What comes before an answer. Progress that begins anew with a round, which is a call since 2026-07-28, also has what is said
/// where all rounds are one call: null for nothing.
fn steps(answer: &Answered) -> Vec<Value> {
    let (mut rise, mut round) = (Rise::default(), 0);
    let is_modern = answer.revision.is_none_or(|revision| revision.era() == Era::Modern);
    let mut steps = Vec::new();
    for before in &answer.before {
        let Some(mut step) = step(before) else { continue };
        match before {
            Before::Told { method, params, .. } if *method == Method::PROGRESS => {
                let lifted = rise.lift(round, params.clone());
                if lifted.as_ref() != Some(params) {
                    step["notify"][IN_ONE_CALL] = lifted.unwrap_or_default();
                }
            }
            Before::Asked(_) | Before::SentAway if is_modern => round += 1,
            Before::Told { .. } | Before::Asked(_) | Before::SentAway => {}
        }
        steps.push(step);
    }
    steps
}

fn rises_in_one_call(response: &Value) -> bool {
    let steps = response["before"].as_array();
    steps.into_iter().flatten().any(|step| step["notify"].get(IN_ONE_CALL).is_some())
}

/// `{"notify": …}`, `{"ask": {name: …}}` or `"sendAway"`.
fn step(before: &Before) -> Option<Value> {
    let params = |params: &Value| if params.is_object() { params.clone() } else { json!({}) };
    match before {
        Before::Told { method, params: told, .. } => {
            Some(json!({"notify": {"method": method.as_str(), "params": params(told)}}))
        }
        Before::Asked(questions) => {
            let question =
                |it: &Question| (it.name.clone(), json!({"method": it.method.as_str(), "params": params(&it.params)}));
            let asked: Map<_, _> = questions.iter().filter(|it| is_askable(&it.method)).map(question).collect();
            (!asked.is_empty()).then(|| json!({"ask": asked}))
        }
        Before::SentAway => Some("sendAway".into()),
    }
}

/// Fills in a template of ours. What goes in is never read as a template.
pub(super) fn rendered(template: &str, context: &minijinja::Value) -> Result<String, TemplateError> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    // The last line end of a template is not part of what it gives.
    Ok(environment.render_str(template, context)? + "\n")
}

/// How much is noted of what is left out; all of it is told when it happens.
const NOTES: usize = 20;

/// What of the recording is not in a program, as a comment of that.
///
/// ```text
/// # Recorded, but left out:
/// # - a line on stderr
/// ```
pub(super) fn notes(comment: &str, left_out: &[String]) -> String {
    let (shown, more) = left_out.split_at(left_out.len().min(NOTES));
    let mut lines: Vec<_> = shown.iter().map(|words| format!("{comment} - {}", on_one_line(words))).collect();
    if !lines.is_empty() {
        lines.insert(0, format!("{comment} Recorded, but left out:"));
    }
    if !more.is_empty() {
        lines.push(format!("{comment} - and {} more", more.len()));
    }
    lines.join("\n")
}

/// Words for a comment, whatever a file is called.
pub(super) fn plain_words(text: &str) -> String {
    let kept = |c: char| if c.is_alphanumeric() || " ._-".contains(c) { c } else { '?' };
    text.chars().take(80).map(kept).collect()
}
