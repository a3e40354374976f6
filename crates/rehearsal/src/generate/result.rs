//! What kind of result was recorded.

use rehearsal_core::message::{Body, Method, Reply};
use rehearsal_core::protocol::{Revision, meta};
use rehearsal_core::trace::Call;
use serde_json::{Map, Value};

use super::learned::Question;

/// What a call was answered with.
pub(super) fn reply(call: &Call) -> Option<Reply> {
    match call.response.as_ref()?.message.body() {
        Body::Response(response) => Some(response.reply.clone()),
        Body::Request(_) | Body::Notification(_) | Body::Batch(_) | Body::Garbled(_) => None,
    }
}

/// Takes out what each version adds by itself.
pub(super) fn without_envelope(mut result: Map<String, Value>, method: &Method) -> Map<String, Value> {
    result.shift_remove("resultType");
    if *method != Method::RESOURCES_READ || !is_kept(&result) {
        result.shift_remove("ttlMs");
        result.shift_remove("cacheScope");
    }
    if let Some(Value::Object(fields)) = result.get_mut("_meta") {
        fields.shift_remove(meta::SERVER_INFO);
        if fields.is_empty() {
            result.shift_remove("_meta");
        }
    }
    result
}

/// What a result says of itself or does not, unlike those of anything that is generated, in words.
pub(super) fn unlike(result: &Map<String, Value>, method: &Method, revision: Option<Revision>) -> Vec<String> {
    let is_read = *method == Method::RESOURCES_READ;
    let is_cached = (is_read || method.as_str().ends_with("/list")) && !asks(result) && !is_task(result);
    let own = if is_cached { &["resultType", "ttlMs", "cacheScope"][..] } else { &["resultType"] };
    let own = own.iter().filter(|key| revision == Some(Revision::V2026_07_28) && !result.contains_key(**key));
    let mut words: Vec<_> = own.map(|key| format!("that {method} does not say `{key}`")).collect();
    if !is_read && is_kept(result) {
        words.push(format!("`ttlMs` and `cacheScope` of {method}"));
    }
    words.extend(unsaid(result, method).map(|key| format!("`{key}` of {method}")));
    words
}

/// The members of a list or a handshake that nothing generated says.
fn unsaid<'a>(result: &'a Map<String, Value>, method: &Method) -> impl Iterator<Item = &'a String> {
    let said: Option<&[&str]> = match method.as_str() {
        "initialize" => Some(&["protocolVersion", "capabilities", "serverInfo", "instructions"]),
        "server/discover" => Some(&["supportedVersions", "capabilities", "instructions"]),
        "tools/list" => Some(&["tools", "nextCursor"]),
        "prompts/list" => Some(&["prompts", "nextCursor"]),
        "resources/list" => Some(&["resources", "nextCursor"]),
        "resources/templates/list" => Some(&["resourceTemplates", "nextCursor"]),
        _ => None,
    };
    let is_said = move |key: &str, value: &Value| match key {
        "resultType" | "ttlMs" | "cacheScope" => true,
        "_meta" => value.as_object().is_some_and(|about| about.keys().all(|key| key == meta::SERVER_INFO)),
        _ => said.is_some_and(|said| said.contains(&key)),
    };
    result.iter().filter(move |(key, value)| said.is_some() && !is_said(key, value)).map(|(key, _)| key)
}

/// Whether a result may be kept for a while, or for others: since 2026-07-28 every list and everything that is read says so.
fn is_kept(result: &Map<String, Value>) -> bool {
    result.get("ttlMs").is_some_and(|ttl| *ttl != 0) || result.get("cacheScope").is_some_and(|scope| scope != "private")
}

/// Whether the answer is that a task will give one.
pub(super) fn is_task(result: &Map<String, Value>) -> bool {
    result.get("resultType").is_some_and(|kind| kind == "task")
        || (result.get("task").is_some_and(Value::is_object) && !result.contains_key("content"))
}

/// Whether the answer is that the client has to come back.
pub(super) fn asks(result: &Map<String, Value>) -> bool {
    result.get("resultType").is_some_and(|kind| kind == "input_required")
}

/// The questions of a round of 2026-07-28.
pub(super) fn asked(result: &Value) -> Vec<Question> {
    let requests = result.get("inputRequests").and_then(Value::as_object);
    let question = |(name, asked): (&String, &Value)| {
        let method = asked.get("method")?.as_str()?.into();
        let params = asked.get("params").cloned().unwrap_or_default();
        Some(Question { name: name.clone(), method, params, refused: false })
    };
    requests.into_iter().flatten().filter_map(question).collect()
}
