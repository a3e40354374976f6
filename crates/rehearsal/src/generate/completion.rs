//! Suggestions of a mock that suggests what was suggested.

use std::collections::HashSet;

use rehearsal_core::message::Method;
use rehearsal_core::script::mock::write::Draft;
use serde_json::{Map, Value, json};

use super::learned::{Answered, Learned, Request, Said};

/// What a mock should know of an argument, or of a variable of a pattern, so that those that begin with what was typed are
/// what was suggested. What only some context brought about, or another way of searching, spoils nothing for the others.
pub(super) fn suggestions(learned: &Learned, kind: &str, key: &str, of: &str, argument: &str) -> Vec<String> {
    let is_about = |request: &&Request| {
        let (reference, asked) = (&request.params["ref"], &request.params["argument"]);
        reference["type"] == kind && reference[key] == of && asked["name"] == argument
    };
    let about = learned.requests_of(&Method::COMPLETE).filter(is_about);
    let suggested = |request: &Request| {
        let has_context = request.params.get("context").is_some();
        Some((has_context, typed(request), values(&completion(request.answers.last()?)?)))
    };
    let mut wanted: Vec<_> = about.filter_map(suggested).collect();
    // Who typed less was told more, and in the order of them all.
    wanted.sort_by_key(|(has_context, typed, _)| (*has_context, typed.chars().count()));
    let (mut known, mut answered): (Vec<String>, HashSet<String>) = (Vec::new(), HashSet::new());
    for (_, typed, values) in wanted {
        let before = given(&known, &typed);
        let Some(new) = values.strip_prefix(&before[..]) else { continue };
        let spoils = |value: &str| {
            let value = value.to_lowercase();
            let mut beginnings = value.char_indices().map(|(at, _)| &value[..at]).chain([value.as_str()]);
            !value.starts_with(&typed) || beginnings.any(|beginning| answered.contains(beginning))
        };
        let differ = new.iter().collect::<HashSet<_>>().len() == new.len();
        if differ && !new.iter().any(|value| spoils(value)) {
            known.extend(new.iter().cloned());
            answered.insert(typed);
        }
    }
    known
}

/// Whether a mock suggests what was suggested, and counts it alike.
pub(super) fn is_suggested(request: &Request, draft: &Draft) -> bool {
    let Some(given) = offered(request, draft) else { return false };
    let counted = json!({"completion": {"values": given, "total": given.len(), "hasMore": false}});
    request.answers.iter().all(|answer| match &answer.said {
        Said::Result(result) => answer.before.is_empty() && counted.as_object() == Some(result),
        Said::Error(_) => false,
    })
}

/// What a mock suggests; `None` where it refuses.
fn offered(request: &Request, draft: &Draft) -> Option<Vec<String>> {
    let (reference, argument) = (&request.params["ref"], &request.params["argument"]);
    let (offers, of, key) = match reference["type"].as_str() {
        Some("ref/prompt") => (&draft.prompts, &reference["name"], "name"),
        Some("ref/resource") => (&draft.resource_templates, &reference["uri"], "uriTemplate"),
        Some(_) | None => return None,
    };
    let offer = offers.iter().find(|offer| offer.listed[key] == *of && !of.is_null())?;
    let all = offer.complete.iter().find(|(name, _)| argument["name"] == name.as_str());
    Some(given(all.map_or(&[][..], |(_, values)| values), &typed(request)))
}

/// What begins with what was typed, in small letters.
fn given(all: &[String], typed: &str) -> Vec<String> {
    all.iter().filter(|value| value.to_lowercase().starts_with(typed)).cloned().collect()
}

fn typed(request: &Request) -> String {
    request.params["argument"]["value"].as_str().unwrap_or_default().to_lowercase()
}

fn completion(answer: &Answered) -> Option<Map<String, Value>> {
    match &answer.said {
        Said::Result(result) => result.get("completion")?.as_object().cloned(),
        Said::Error(_) => None,
    }
}

fn values(completion: &Map<String, Value>) -> Vec<String> {
    let values = completion.get("values").and_then(Value::as_array);
    values.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
