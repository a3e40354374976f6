//! Asking the client for something in the middle of a tool call.
//!
//! ```text
//! legacy   client ─ tools/call ─► server ─ elicitation/create ─► client ─ answer ─► server ─ result ─► client
//! modern   client ─ tools/call ─► server ─ input_required ─► client
//!          client ─ tools/call + inputResponses ─► server ─ result ─► client
//! ```
//!
//! A tool reads the same in both eras: it asks, and goes on with the answer or not at all.

use rehearsal_core::message::{ErrorReply, Message, Method, Reply};
use rehearsal_core::protocol::{Era, Revision, code};
use serde_json::{Value, json};

use crate::call::Call;
use crate::instead::Instead;

/// Something that only the client knows.
#[derive(Debug)]
pub(crate) struct Question {
    /// What the answer is called in `inputResponses`.
    pub(crate) key: &'static str,
    /// What the client must be able to do.
    pub(crate) capability: &'static str,
    /// The first version that has it.
    pub(crate) since: Revision,
    /// How it is asked.
    pub(crate) method: Method,
    /// With what.
    pub(crate) params: Value,
    /// What a stateless client must bring back unchanged.
    pub(crate) state: Option<String>,
}

impl Question {
    /// A form with one field, `name`.
    pub(crate) fn name(message: &str, state: String) -> Question {
        Question {
            key: "name",
            capability: "elicitation",
            since: Revision::V2025_06_18,
            method: Method::ELICITATION,
            params: json!({
                "message": message,
                "requestedSchema": {
                    "type": "object",
                    "properties": {"name": {"type": "string", "title": "Name", "description": "What to call you"}},
                    "required": ["name"],
                },
            }),
            state: Some(state),
        }
    }

    /// What a model says to `prompt`.
    pub(crate) fn model(prompt: &str) -> Question {
        Question {
            key: "model",
            capability: "sampling",
            since: Revision::V2024_11_05,
            method: Method::SAMPLING,
            params: json!({
                "messages": [{"role": "user", "content": {"type": "text", "text": prompt}}],
                "maxTokens": 100,
            }),
            state: None,
        }
    }

    /// The folders that the client lets us see.
    pub(crate) fn roots() -> Question {
        Question {
            key: "roots",
            capability: "roots",
            since: Revision::V2024_11_05,
            method: Method::ROOTS_LIST,
            params: json!({}),
            state: None,
        }
    }

    fn is_declared_in(&self, capabilities: &Value) -> bool {
        match (self.capability, capabilities.get(self.capability)) {
            (_, None) => false,
            // Since 2025-11-25 a client may take URLs but no forms; one that names neither takes forms.
            ("elicitation", Some(Value::Object(modes))) => modes.contains_key("form") || !modes.contains_key("url"),
            (_, Some(declared)) => declared.is_object(),
        }
    }
}

/// The client's answer: the result of `question.method`.
pub(crate) async fn ask(call: &Call, question: Question) -> Result<Value, Instead> {
    match call.terms.era() {
        Era::Legacy => ask_now(call, question).await,
        Era::Modern => ask_back(call, question),
    }
}

/// Before 2026-07-28: a request of our own, on the channel of the request that needs it.
async fn ask_now(call: &Call, question: Question) -> Result<Value, Instead> {
    let capability = question.capability;
    if call.terms.revision < question.since {
        let why =
            format!("{capability} exists since {}, and this client speaks {}", question.since, call.terms.revision);
        return Err(Instead::ToolFailed(why));
    }
    if !question.is_declared_in(&call.terms.capabilities) {
        return Err(Instead::ToolFailed(format!("this client did not declare the capability {capability}")));
    }
    let asked = call.session.question();
    let request = Message::request(asked.id.clone(), question.method, Some(&question.params));
    call.session.send(call.channel, request.expect("a JSON value can always be written")).await;
    let reply = tokio::select! {
        biased;
        _ = call.stopped() => None,
        reply = asked.reply => reply.ok(),
    };
    match reply {
        Some(Reply::Result(result)) => {
            result.value().map_err(|error| Instead::ToolFailed(format!("the client's answer cannot be read: {error}")))
        }
        Some(Reply::Error(error)) => Err(Instead::ToolFailed(format!("the client answered with an error: {error}"))),
        None => {
            call.session.forget(&asked.id);
            call.notify(Method::CANCELLED, json!({"requestId": asked.id})).await;
            Err(Instead::Silence)
        }
    }
}

/// Since 2026-07-28: the answer is either here already, or the client is sent to find it.
fn ask_back(call: &Call, question: Question) -> Result<Value, Instead> {
    if !question.is_declared_in(&call.terms.capabilities) {
        let message = format!("this needs the capability {}", question.capability);
        let data = json!({"requiredCapabilities": {question.capability: {}}});
        return Err(Instead::Error(ErrorReply::new(code::MISSING_CAPABILITY, message).with_data(&data)));
    }
    let (answers, state) = (call.params.get("inputResponses"), call.params.get("requestState"));
    let comes_back = answers.is_some() || state.is_some();
    if comes_back && state != question.state.clone().map(Value::from).as_ref() {
        return Err(Instead::invalid_params("requestState is not what was given"));
    }
    match answers.and_then(|answers| answers.get(question.key)) {
        Some(answer) => Ok(answer.clone()),
        None => {
            let request = json!({"method": question.method.as_str(), "params": question.params});
            let mut required = json!({"inputRequests": {question.key: request}});
            if let Some(state) = question.state {
                required["requestState"] = state.into();
            }
            Err(Instead::InputRequired(required))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_takes_only_urls_is_asked_for_no_form() {
        let question = Question::name("Who?", String::new());
        for (capabilities, declared) in [
            (json!({}), false),
            (json!({"elicitation": {}}), true),
            (json!({"elicitation": {"form": {}, "url": {}}}), true),
            (json!({"elicitation": {"url": {}}}), false),
            (json!({"elicitation": null}), false),
        ] {
            assert_eq!(question.is_declared_in(&capabilities), declared, "{capabilities}");
        }
    }
}
