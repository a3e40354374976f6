//! Writes the steps of an answer.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::result::{escape_template, escape_value};
use crate::json::JsonType;
use crate::protocol::LogLevel;

/// A step in its wire form.
#[derive(Clone, Debug, PartialEq)]
pub enum DraftStep {
    /// Waits.
    Wait(Duration),
    /// Sends a notification; progress, log messages and changes are written with their own keys.
    Notify {
        /// The method.
        method: String,
        /// The params; the progress token is ignored.
        params: Value,
    },
    /// An empty input round (2026-07-28).
    EmptyRound,
    /// Sends input requests.
    Ask(Vec<DraftInputRequest>),
    /// Sends input requests, which the client may decline.
    TryAsk(Vec<DraftInputRequest>),
}

/// An input request in its wire form.
#[derive(Clone, Debug, PartialEq)]
pub struct DraftInputRequest {
    /// The name.
    pub name: String,
    /// The method.
    pub method: String,
    /// The params.
    pub params: Value,
}

impl DraftStep {
    pub(super) fn to_value(&self) -> Value {
        match self {
            DraftStep::Wait(time) => json!({"wait": milliseconds(*time)}),
            DraftStep::Notify { method, params } => notification(method, params),
            DraftStep::EmptyRound => json!({"empty_round": {}}),
            DraftStep::Ask(requests) => json!({"ask": all(requests)}),
            DraftStep::TryAsk(requests) => json!({"try_ask": all(requests)}),
        }
    }
}

/// Input requests by their names.
fn all(requests: &[DraftInputRequest]) -> Map<String, Value> {
    let request = |it: &DraftInputRequest| {
        (
            it.name.clone(),
            input_request_keys(&it.method, &it.params).unwrap_or_else(|| raw_request(&it.method, &it.params)),
        )
    };
    requests.iter().map(request).collect()
}

/// `20ms`
pub(super) fn milliseconds(time: Duration) -> String {
    format!("{}ms", time.as_millis())
}

fn notification(method: &str, params: &Value) -> Value {
    let text = |key: &str| params.get(key).and_then(Value::as_str);
    let known = |level: &&str| LogLevel::named(level).is_some();
    let own = match method {
        "notifications/progress" if params.get("progress").is_some_and(|it| JsonType::Number.includes(it)) => {
            let mut entry = Map::new();
            entry.insert("progress".to_owned(), params["progress"].clone());
            if let Some(total) = params.get("total").filter(|total| JsonType::Number.includes(total)) {
                entry.insert("total".to_owned(), total.clone());
            }
            if let Some(message) = text("message") {
                entry.insert("message".to_owned(), escape_template(message).into());
            }
            Some(json!({"progress": entry}))
        }
        "notifications/message" => text("level").filter(known).zip(params.get("data")).map(|(level, data)| {
            let mut entry = Map::new();
            entry.insert("level".to_owned(), level.into());
            if let Some(logger) = text("logger") {
                entry.insert("logger".to_owned(), logger.into());
            }
            entry.insert("data".to_owned(), escape_value(data));
            json!({"log": entry})
        }),
        "notifications/tools/list_changed" => Some(json!({"changed": "tools"})),
        "notifications/prompts/list_changed" => Some(json!({"changed": "prompts"})),
        "notifications/resources/list_changed" => Some(json!({"changed": "resources"})),
        "notifications/resources/updated" => {
            text("uri").map(|uri| json!({"changed": {"resource": escape_template(uri)}}))
        }
        _ => None,
    };
    own.unwrap_or_else(|| raw_notification(method, params))
}

/// A notification in its wire form.
fn raw_notification(method: &str, params: &Value) -> Value {
    match params {
        Value::Object(fields) if !fields.is_empty() => {
            json!({"notify": {"method": method, "params": escape_value(params)}})
        }
        _ => json!({"notify": {"method": method}}),
    }
}

/// An input request in its wire form.
fn raw_request(method: &str, params: &Value) -> Value {
    match params {
        Value::Object(_) => json!({"request": {"method": method, "params": escape_value(params)}}),
        _ => json!({"request": {"method": method}}),
    }
}

/// An input request in mock-file syntax; `None` if it cannot be written so.
fn input_request_keys(method: &str, params: &Value) -> Option<Value> {
    let text = |key: &str| params.get(key).and_then(Value::as_str);
    let form = ["message", "mode", "requestedSchema", "url", "elicitationId"];
    let has_only =
        |known: &[&str]| params.as_object().is_none_or(|all| all.keys().all(|key| known.contains(&key.as_str())));
    Some(match method {
        "roots/list" if has_only(&[]) => "roots".into(),
        "elicitation/create" if has_only(&form) => {
            let mut form = Map::new();
            form.insert("message".to_owned(), escape_template(text("message").unwrap_or_default()).into());
            match text("url") {
                Some(url) => {
                    form.insert("url".to_owned(), escape_template(url).into());
                    if let Some(id) = text("elicitationId") {
                        form.insert("elicitation_id".to_owned(), id.into());
                    }
                }
                None => {
                    if text("mode") == Some("form") {
                        form.insert("mode".to_owned(), "form".into());
                    }
                    let schema = params.get("requestedSchema").cloned();
                    form.insert("requested_schema".to_owned(), schema.unwrap_or_else(|| json!({"type": "object"})));
                }
            }
            json!({"elicitation": form})
        }
        "sampling/createMessage" => {
            let mut request = Map::new();
            let messages = params.get("messages").cloned().unwrap_or_else(|| json!([]));
            request.insert("messages".to_owned(), escape_value(&messages));
            if let Some(system) = text("systemPrompt") {
                request.insert("system_prompt".to_owned(), escape_template(system).into());
            }
            if let Some(tokens) = params.get("maxTokens").filter(|tokens| tokens.is_u64()) {
                request.insert("max_tokens".to_owned(), tokens.clone());
            }
            let known = ["messages", "systemPrompt", "maxTokens", "_meta", "task"];
            let more = params.as_object().into_iter().flatten().filter(|(key, _)| !known.contains(&key.as_str()));
            let more: Map<_, _> = more.map(|(key, value)| (key.clone(), escape_value(value))).collect();
            if !more.is_empty() {
                request.insert("more".to_owned(), more.into());
            }
            json!({"sampling": request})
        }
        _ => return None,
    })
}
