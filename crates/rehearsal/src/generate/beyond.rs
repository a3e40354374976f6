//! What was recorded that no rule of a mock answers.

use std::collections::HashSet;

use rehearsal_core::answer::UriTemplate;
use rehearsal_core::message::Method;
use rehearsal_core::script::mock::write::Draft;
use serde_json::Value;

use super::completion::unsuggested;
use super::learned::{Answered, Learned, Said};

/// What of the recorded answers a mock does not give, in words.
pub(super) fn beyond_rules(learned: &Learned, draft: &Draft) -> Vec<String> {
    let (mut lost, mut told) = (Vec::new(), HashSet::new());
    for request in &learned.requests {
        let method = request.method.as_str();
        if draft.refuses.contains_key(method) {
            continue;
        }
        let words = match method {
            "tools/call" | "prompts/get" | "resources/read" => None,
            "completion/complete" => unsuggested(request, draft),
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
        lost.extend(words.filter(|words| told.insert(words.clone())));
    }
    lost
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
