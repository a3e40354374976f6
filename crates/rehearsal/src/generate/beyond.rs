//! What a mock answers by rules of their own: the requests that it would answer otherwise by itself.

use rehearsal_core::answer::UriTemplate;
use rehearsal_core::message::Method;
use rehearsal_core::script::mock::write::Draft;
use serde_json::{Map, Value, json};

use super::completion::is_suggested;
use super::learned::{Answered, Learned, Request, Said};

/// The requests that a mock would answer otherwise than recorded, by their methods in the order in which these first came.
pub(super) fn beyond_rules<'a>(learned: &'a Learned, draft: &Draft) -> Vec<(&'a Method, Vec<&'a Request>)> {
    let mut beyond: Vec<(&Method, Vec<&Request>)> = Vec::new();
    for request in &learned.requests {
        let method = &request.method;
        let is_refused = draft.refuses.contains_key(method.as_str());
        if is_refused || answers_by_itself(request, draft) {
            continue;
        }
        match beyond.iter_mut().find(|(other, _)| *other == method) {
            Some((_, requests)) => requests.push(request),
            None => beyond.push((method, vec![request])),
        }
    }
    beyond
}

/// Whether what a draft offers answers a request as it was recorded.
fn answers_by_itself(request: &Request, draft: &Draft) -> bool {
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

/// What tells a request from others of its method, for its name.
///
/// ```text
/// {"of": "greet", "argument": "who", "typed": "A", "context": {"z": "1"}}
/// ```
pub(super) fn telling(request: &Request) -> Map<String, Value> {
    let params = request.params.as_object().cloned().unwrap_or_default();
    if request.method != Method::COMPLETE {
        return params;
    }
    let (reference, argument) = (&request.params["ref"], &request.params["argument"]);
    let of = reference.get("name").or(reference.get("uri"));
    let told = json!({
        "of": of,
        "argument": argument.get("name"),
        "typed": argument.get("value"),
        "context": request.params.pointer("/context/arguments"),
    });
    let told = told.as_object().cloned().unwrap_or_default();
    told.into_iter().filter(|(_, value)| !value.is_null()).collect()
}

/// Whether it is the answer that every server gives by itself.
fn is_plain(answer: &Answered) -> bool {
    answer.before.is_empty() && matches!(&answer.said, Said::Result(result) if result.is_empty())
}

fn has_resource(draft: &Draft, uri: &str) -> bool {
    let text = |listed: &Value, key: &str| listed.get(key).and_then(Value::as_str).map(str::to_owned);
    let fits = |written: String| UriTemplate::read(&written).is_ok_and(|pattern| pattern.matches(uri).is_some());
    draft.resources.iter().any(|offer| text(&offer.listed, "uri").as_deref() == Some(uri))
        || draft.resource_templates.iter().any(|offer| text(&offer.listed, "uriTemplate").is_some_and(fits))
}
