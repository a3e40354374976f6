//! What was recorded that no rule of a mock answers.

use rehearsal_core::answer::UriTemplate;
use rehearsal_core::message::Method;
use rehearsal_core::script::mock::write::Draft;
use serde_json::Value;

use super::learned::{Answered, Learned, Request, Said};

/// What of the recorded answers a mock does not give, in words.
pub(super) fn beyond_rules(learned: &Learned, draft: &Draft) -> Vec<String> {
    let mut lost = Vec::new();
    for request in &learned.requests {
        let method = request.method.as_str();
        let words = match method {
            "tools/call" | "prompts/get" | "resources/read" => None,
            "completion/complete" => {
                let as_recorded = request.answers.iter().all(|answer| completes(request, answer, draft));
                (!as_recorded).then(|| format!("what {method} of {} was answered with", of_completion(request)))
            }
            "resources/subscribe" | "resources/unsubscribe" => {
                let uri = request.subject().unwrap_or_default();
                let known = request.method == Method::RESOURCES_UNSUBSCRIBE || has_resource(draft, uri);
                let says_more = request.answers.iter().any(|answer| !answer.before.is_empty());
                let answers = known && request.answers.iter().all(is_plain);
                lost.extend(says_more.then(|| format!("what was said before {method} of {uri} was answered")));
                (!answers).then(|| format!("what {method} of {uri} was answered with"))
            }
            _ => Some(method.to_owned()),
        };
        lost.extend(words);
    }
    lost
}

/// ```text
/// `city` of weather
/// ```
fn of_completion(request: &Request) -> String {
    let (reference, argument) = (&request.params["ref"], &request.params["argument"]["name"]);
    let of = reference["name"].as_str().or(reference["uri"].as_str()).unwrap_or("nothing");
    format!("`{}` of {of}", argument.as_str().unwrap_or_default())
}

/// Whether it is the answer that every server gives by itself.
fn is_plain(answer: &Answered) -> bool {
    matches!(&answer.said, Said::Result(result) if result.is_empty())
}

fn has_resource(draft: &Draft, uri: &str) -> bool {
    let text = |listed: &Value, key: &str| listed.get(key).and_then(Value::as_str).map(str::to_owned);
    let fits = |written: String| UriTemplate::read(&written).is_ok_and(|pattern| pattern.matches(uri).is_some());
    draft.resources.iter().any(|offer| text(&offer.listed, "uri").as_deref() == Some(uri))
        || draft.resource_templates.iter().any(|offer| text(&offer.listed, "uriTemplate").is_some_and(fits))
}

/// Whether a mock suggests what was suggested: of all values that were, those that begin with what was typed.
fn completes(request: &Request, answer: &Answered, draft: &Draft) -> bool {
    let Said::Result(result) = &answer.said else { return false };
    let suggested = result.get("completion").and_then(|it| it.get("values")).and_then(Value::as_array);
    let suggested: Vec<_> = suggested.into_iter().flatten().filter_map(Value::as_str).collect();
    let (reference, argument) = (&request.params["ref"], &request.params["argument"]);
    let (offers, of, key) = match reference["type"].as_str() {
        Some("ref/prompt") => (&draft.prompts, &reference["name"], "name"),
        Some("ref/resource") => (&draft.resource_templates, &reference["uri"], "uriTemplate"),
        Some(_) | None => return false,
    };
    let Some(offer) = offers.iter().find(|offer| offer.listed[key] == *of && !of.is_null()) else { return false };
    let all = offer.complete.iter().find(|(name, _)| argument["name"] == name.as_str());
    let typed = argument["value"].as_str().unwrap_or_default().to_lowercase();
    let given = all.into_iter().flat_map(|(_, values)| values);
    let given: Vec<_> = given.map(String::as_str).filter(|it| it.to_lowercase().starts_with(&typed)).collect();
    answer.before.is_empty() && given == suggested
}
