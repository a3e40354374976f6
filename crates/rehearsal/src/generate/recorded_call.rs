//! The parts of a recorded call that generated files contain: of the request, of the result, and of the preceding events.

use rehearsal_core::exchange::Side;
use rehearsal_core::json::RawJson;
use rehearsal_core::message::{Body, Method, Reply};
use rehearsal_core::protocol::meta;
use rehearsal_core::trace::{EntryBody, RecordedCall, RelatedEvent, RequestIdentity};
use serde_json::{Map, Value, json};

use super::server_model::{PrecedingEvent, RecordedInputRequest};

/// The `method` and the `params` by which requests are distinguished: requests with equal views are one distinct request.
/// `None` if the request does not name its subject, or its arguments are not an object.
pub(super) fn request_view(method: &Method, params: &Value) -> Option<Value> {
    if is_extension(method) {
        return extension_view(method, params);
    }
    let (subject, more): (_, &[&str]) = match method.as_str() {
        "tools/call" | "prompts/get" => ("name", &["arguments"]),
        "completion/complete" => ("ref", &["argument", "context"]),
        _ => ("uri", &[]),
    };
    let mut view = RequestIdentity::default().view(method, Some(params));
    let params = view.get_mut("params").and_then(Value::as_object_mut)?;
    params.retain(|key, _| key == subject || more.contains(&key.as_str()));
    let is_named = params.get(subject).is_some_and(|it| if subject == "ref" { it.is_object() } else { it.is_string() });
    let has_arguments = params.get("arguments").is_none_or(Value::is_object);
    (is_named && has_arguments).then_some(view)
}

/// Whether a method is not of the protocol.
pub(super) fn is_extension(method: &Method) -> bool {
    !Method::KNOWN.contains(&method.as_str())
}

/// The view of a method that is not of the protocol: it has all params.
fn extension_view(method: &Method, params: &Value) -> Option<Value> {
    let mut params = match params {
        Value::Null => Map::new(),
        Value::Object(params) => params.clone(),
        _ => return None,
    };
    params.shift_remove("_meta");
    Some(json!({"method": method.as_str(), "params": params}))
}

/// The reply to a call; `None` if it is missing or garbled.
pub(super) fn reply(call: &RecordedCall) -> Option<Reply> {
    match call.response.as_ref()?.message.body() {
        Body::Response(response) => Some(response.reply.clone()),
        Body::Request(_) | Body::Notification(_) | Body::Batch(_) | Body::Garbled(_) => None,
    }
}

/// A result without the members that a server of 2026-07-28 adds to every result.
pub(super) fn without_envelope(mut result: Map<String, Value>) -> Map<String, Value> {
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

/// Whether a result creates a task, which has the answer later.
pub(super) fn is_task(result: &Map<String, Value>) -> bool {
    result.get("resultType").is_some_and(|kind| kind == "task")
        || (result.get("task").is_some_and(Value::is_object) && !result.contains_key("content"))
}

/// Whether a result is a round of `input_required`.
pub(super) fn is_input_required(result: &Map<String, Value>) -> bool {
    result.get("resultType").is_some_and(|kind| kind == "input_required")
}

/// The requests of a round of `input_required`.
pub(super) fn input_requests(result: &Map<String, Value>) -> PrecedingEvent {
    let requests = result.get("inputRequests").and_then(Value::as_object);
    let request = |(name, written): (&String, &Value)| {
        let method = written.get("method")?.as_str()?.into();
        let params = written.get("params").cloned().unwrap_or_default();
        Some(RecordedInputRequest { name: name.clone(), method, params, optional: false })
    };
    let requests: Vec<_> = requests.into_iter().flatten().filter_map(request).collect();
    if requests.is_empty() { PrecedingEvent::EmptyRound } else { PrecedingEvent::InputRequests(requests) }
}

/// An event before an answer; `None` if a generated server cannot send it.
pub(super) fn preceding_event(event: &RelatedEvent) -> Option<PrecedingEvent> {
    match event {
        RelatedEvent::Call(call) if call.asker == Side::Server => {
            let method = call.request.message.method().filter(|method| **method != Method::PING)?.clone();
            let params = stable(call.request.message.params())?;
            let optional = !matches!(reply(call), Some(Reply::Result(_)));
            let request = RecordedInputRequest { name: String::new(), method, params, optional };
            Some(PrecedingEvent::InputRequests(vec![request]))
        }
        RelatedEvent::Call(_) => None,
        RelatedEvent::Entry(entry) => {
            let EntryBody::Message { from: Side::Server, message, .. } = &entry.what else { return None };
            let Body::Notification(notification) = message.body() else { return None };
            let params = stable(notification.params.as_ref())?;
            Some(PrecedingEvent::Notification { method: notification.method.clone(), params })
        }
    }
}

/// Params without the members that differ between connections: the token, and the stream or task.
fn stable(params: Option<&RawJson>) -> Option<Value> {
    let mut params = params.map(RawJson::value).transpose().ok()?.unwrap_or_default();
    if let Some(object) = params.as_object_mut() {
        object.shift_remove(meta::PROGRESS_TOKEN);
        if let Some(Value::Object(about)) = object.get_mut("_meta") {
            about.retain(|key, _| !key.starts_with("io.modelcontextprotocol/"));
            if about.is_empty() {
                object.shift_remove("_meta");
            }
        }
    }
    Some(params)
}

/// Names the requests of servers before 2026-07-28, which have no names: `input_1` and so on.
pub(super) fn name_requests(before: &mut [PrecedingEvent]) {
    let requests = before.iter_mut().filter_map(|event| match event {
        PrecedingEvent::InputRequests(requests) => Some(requests),
        PrecedingEvent::Notification { .. } | PrecedingEvent::EmptyRound => None,
    });
    let unnamed = requests.flatten().filter(|request| request.name.is_empty());
    (1..).zip(unnamed).for_each(|(number, request)| request.name = format!("input_{number}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn params_that_no_rule_uses_are_not_in_the_view() {
        let view = |method: &str, params: Value| request_view(&method.into(), &params);
        let plain = view("tools/call", json!({"name": "a", "arguments": {}}));
        assert_eq!(plain, Some(json!({"method": "tools/call", "params": {"name": "a"}})));
        assert_eq!(view("tools/call", json!({"name": "a", "task": {"ttl": 1}, "own": 1, "_meta": {}})), plain);
        let argument = json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}});
        assert_eq!(view("completion/complete", argument.clone()).unwrap()["params"], argument);
        let unclear = [json!({"name": "a", "arguments": []}), json!({}), json!({"name": 5}), json!([1]), Value::Null];
        for params in unclear {
            assert_eq!(view("tools/call", params), None);
        }
    }

    #[test]
    fn every_input_request_has_a_name() {
        let round = |names: &[&str]| {
            let request = |name: &&str| RecordedInputRequest {
                name: (*name).to_owned(),
                method: Method::ELICITATION,
                params: Value::Null,
                optional: false,
            };
            PrecedingEvent::InputRequests(names.iter().map(request).collect())
        };
        let mut before = [round(&["confirm", ""]), round(&["confirm"]), round(&["", "confirm"])];
        name_requests(&mut before);
        assert_eq!(before, [round(&["confirm", "input_1"]), round(&["confirm"]), round(&["input_2", "confirm"])]);
    }
}
