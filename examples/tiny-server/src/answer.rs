//! Which method is answered by what, and what every answer carries.

use rehearsal_core::message::{ErrorReply, Message};
use rehearsal_core::protocol::{Era, code, meta};
use serde_json::{Value, json};

use crate::call::Call;
use crate::instead::Instead;
use crate::{handshake, list, logging, prompts, resources, tools};

/// How long a client may keep what does not change by itself.
const TIME_TO_LIVE_MS: u64 = 60_000;

/// Answers what needs no waiting.
pub(crate) fn answer(call: &Call) -> Result<Value, Instead> {
    match (call.terms.era(), call.method.as_str()) {
        (Era::Legacy, "initialize") => handshake::initialize(call),
        (Era::Legacy, "ping") => Ok(json!({})),
        (Era::Legacy, "logging/setLevel") => logging::set_level(call),
        (Era::Legacy, "resources/subscribe") => resources::subscribe(call),
        (Era::Legacy, "resources/unsubscribe") => resources::unsubscribe(call),
        (Era::Modern, "server/discover") => Ok(handshake::discover(call)),
        (_, "tools/list") => list::list(call, "tools", tools::all()),
        (_, "resources/list") => list::list(call, "resources", resources::all()),
        (_, "resources/templates/list") => list::list(call, "resourceTemplates", resources::templates()),
        (_, "resources/read") => resources::read(call),
        (_, "prompts/list") => list::list(call, "prompts", prompts::all()),
        (_, "prompts/get") => prompts::get(call),
        (_, "completion/complete") => prompts::complete(call),
        (_, method) => {
            let message = format!("there is no method {method} in {}", call.terms.revision);
            Err(Instead::Error(ErrorReply::new(code::METHOD_NOT_FOUND, message)))
        }
    }
}

/// The message that answers a request, if it is to be answered.
pub(crate) fn message(call: &Call, outcome: Result<Value, Instead>) -> Option<Message> {
    let (result_type, result) = match outcome {
        Ok(result) => ("complete", result),
        Err(Instead::ToolFailed(why)) => ("complete", json!({"content": [text(&why)], "isError": true})),
        Err(Instead::InputRequired(requests)) => ("input_required", requests),
        Err(Instead::Error(error)) => return Some(Message::error(Some(call.id.clone()), &error)),
        Err(Instead::Silence) => return None,
    };
    let result = envelope(call, result_type, result);
    Some(Message::result(call.id.clone(), &result).expect("a JSON value can always be written"))
}

/// A block of text.
pub(crate) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// Since 2026-07-28 a result says what kind it is, how long it may be kept, and who gave it.
fn envelope(call: &Call, result_type: &str, mut result: Value) -> Value {
    if call.terms.era() == Era::Legacy {
        return result;
    }
    result["resultType"] = result_type.into();
    if cacheable(call.method.as_str()) && result_type == "complete" {
        result["ttlMs"] = TIME_TO_LIVE_MS.into();
        result["cacheScope"] = "public".into();
    }
    result["_meta"][meta::SERVER_INFO] = handshake::server_info(call.terms.revision);
    result
}

fn cacheable(method: &str) -> bool {
    matches!(
        method,
        "server/discover"
            | "tools/list"
            | "prompts/list"
            | "resources/list"
            | "resources/templates/list"
            | "resources/read"
    )
}
