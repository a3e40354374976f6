//! Suggestions of a mock, and the requests that need rules of their own because the mock would answer them otherwise.

use rehearsal_core::answer::UriTemplate;
use rehearsal_core::message::Method;
use rehearsal_core::script::mock::write::MockDraft;
use serde_json::{Map, Value, json};

use super::server_model::{DistinctRequest, ModelAnswer, RecordedReply, ServerModel};

/// The requests that a mock would not answer as recorded, grouped by method in recorded order.
pub(super) fn requests_needing_rules<'a>(
    model: &'a ServerModel,
    draft: &MockDraft,
) -> Vec<(&'a Method, Vec<&'a DistinctRequest>)> {
    let mut all: Vec<(&Method, Vec<&DistinctRequest>)> = Vec::new();
    for request in model.requests.iter().filter(|request| !is_built_in(request, draft)) {
        match all.iter_mut().find(|(method, _)| **method == request.method) {
            Some((_, requests)) => requests.push(request),
            None => all.push((&request.method, vec![request])),
        }
    }
    all
}

/// Whether the items of a draft answer a request as recorded.
fn is_built_in(request: &DistinctRequest, draft: &MockDraft) -> bool {
    match request.method.as_str() {
        "tools/call" | "prompts/get" | "resources/read" => true,
        "completion/complete" => is_suggested(request, draft),
        "resources/subscribe" => {
            has_resource(draft, request.subject().unwrap_or_default()) && request.answers.iter().all(is_plain)
        }
        "resources/unsubscribe" => request.answers.iter().all(is_plain),
        _ => false,
    }
}

/// Whether this is an empty result without preceding events.
fn is_plain(answer: &ModelAnswer) -> bool {
    answer.before.is_empty() && matches!(&answer.reply, RecordedReply::Result(result) if result.is_empty())
}

fn has_resource(draft: &MockDraft, uri: &str) -> bool {
    let text = |listed: &Value, key: &str| listed.get(key).and_then(Value::as_str).map(str::to_owned);
    let fits = |written: String| UriTemplate::read(&written).is_ok_and(|pattern| pattern.matches(uri).is_some());
    draft.resources.iter().any(|offer| text(&offer.listed, "uri").as_deref() == Some(uri))
        || draft.resource_templates.iter().any(|offer| text(&offer.listed, "uriTemplate").is_some_and(fits))
}

/// The params that distinguish a request from others of its method, for the name of its rule.
///
/// ```text
/// {"of": "greet", "argument": "who", "typed": "A", "context": {"z": "1"}}
/// ```
pub(super) fn distinguishing_params(request: &DistinctRequest) -> Map<String, Value> {
    if request.method != Method::COMPLETE {
        return request.params.as_object().cloned().unwrap_or_default();
    }
    let (reference, argument) = (&request.params["ref"], &request.params["argument"]);
    let params = [
        ("of", reference.get("name").or(reference.get("uri"))),
        ("argument", argument.get("name")),
        ("typed", argument.get("value")),
        ("context", request.params.pointer("/context/arguments")),
    ];
    params.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?.clone()))).collect()
}

/// All values that were suggested for an argument of a prompt, or a variable of a template, those for the shortest input
/// first; a mock suggests those that begin with the input.
pub(super) fn suggestions(model: &ServerModel, kind: &str, key: &str, of: &str, argument: &str) -> Vec<String> {
    let is_about = |request: &&DistinctRequest| {
        let (reference, written) = (&request.params["ref"], &request.params["argument"]);
        let is_same = reference["type"] == kind && reference[key] == of && written["name"] == argument;
        is_same && request.params.get("context").is_none()
    };
    let mut requests: Vec<_> = model.requests_of(&Method::COMPLETE).filter(is_about).collect();
    requests.sort_by_key(|request| input(request).chars().count());
    let mut all: Vec<String> = Vec::new();
    for value in requests.into_iter().flat_map(|request| &request.answers).flat_map(suggested) {
        if !all.contains(&value) {
            all.push(value);
        }
    }
    all
}

fn suggested(answer: &ModelAnswer) -> Vec<String> {
    let RecordedReply::Result(result) = &answer.reply else { return Vec::new() };
    let values = result.get("completion").and_then(|completion| completion.get("values")).and_then(Value::as_array);
    values.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Whether a mock returns the recorded completion.
fn is_suggested(request: &DistinctRequest, draft: &MockDraft) -> bool {
    let Some(values) = suggested_values(request, draft) else { return false };
    let counted = json!({"completion": {"values": values, "total": values.len(), "hasMore": false}});
    request.answers.iter().all(|answer| match &answer.reply {
        RecordedReply::Result(result) => answer.before.is_empty() && counted.as_object() == Some(result),
        RecordedReply::Error(_) => false,
    })
}

/// The values that a mock suggests; `None` if it refuses the request.
fn suggested_values(request: &DistinctRequest, draft: &MockDraft) -> Option<Vec<String>> {
    let (reference, argument) = (&request.params["ref"], &request.params["argument"]);
    let (offers, of, key) = match reference["type"].as_str() {
        Some("ref/prompt") => (&draft.prompts, &reference["name"], "name"),
        Some("ref/resource") => (&draft.resource_templates, &reference["uri"], "uriTemplate"),
        Some(_) | None => return None,
    };
    let offer = offers.iter().find(|offer| offer.listed[key] == *of && !of.is_null())?;
    let all = offer.complete.iter().find(|(name, _)| argument["name"] == name.as_str());
    let values = all.map_or(&[][..], |(_, values)| values);
    let input = input(request);
    Some(values.iter().filter(|value| value.to_lowercase().starts_with(&input)).cloned().collect())
}

fn input(request: &DistinctRequest) -> String {
    request.params["argument"]["value"].as_str().unwrap_or_default().to_lowercase()
}
