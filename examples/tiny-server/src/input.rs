//! Requests to the client, in both eras: elicitation, sampling and roots.

#![expect(
    deprecated,
    reason = "sampling and roots are deprecated since 2026-07-28; clients still have to be tested with them"
)]

use rmcp::ErrorData;
use rmcp::model::{
    CallToolResponse, CreateMessageRequest, CreateMessageRequestParams, ElicitRequest, ElicitRequestParams,
    InputRequest, InputRequests, InputRequiredResult, InputResponses, ListRootsRequest, ProtocolVersion,
    SamplingMessage,
};
use rmcp::service::ServiceError;
use serde_json::{Value, json};

use crate::server::{Context, internal, model, text};

/// A tool that needs the client, with its argument.
pub(crate) enum Tool {
    Ask(String),
    Sample(String),
    Roots,
}

/// Sends the client a request before 2026-07-28; since then returns `input_required` until the response is here.
pub(crate) async fn call(
    tool: Tool,
    context: &Context,
    responses: Option<InputResponses>,
) -> Result<CallToolResponse, ErrorData> {
    let capability = match &tool {
        Tool::Ask(_) => "elicitation",
        Tool::Sample(_) => "sampling",
        Tool::Roots => "roots",
    };
    if json!(context.client_capabilities()).get(capability).is_none() {
        return Err(ErrorData::missing_required_client_capability(model(json!({capability: {}}))?));
    }
    let request = request(&tool)?;
    let version = context.protocol_version();
    if version.is_none_or(|version| version.as_str() < ProtocolVersion::V_2026_07_28.as_str()) {
        let response = send(context, request).await.map_err(internal)?;
        return Ok(text(shown(&tool, &response)));
    }
    Ok(match responses.and_then(|mut responses| responses.remove(capability)) {
        Some(response) => text(shown(&tool, &response)),
        None => {
            let requests = InputRequests::from([(capability.to_owned(), request)]);
            InputRequiredResult::new(Some(requests), Some(format!("waiting for {capability}"))).into()
        }
    })
}

fn request(tool: &Tool) -> Result<InputRequest, ErrorData> {
    Ok(match tool {
        Tool::Ask(question) => {
            InputRequest::Elicitation(ElicitRequest::new(ElicitRequestParams::FormElicitationParams {
                meta: None,
                message: question.clone(),
                requested_schema: model(json!({
                    "type": "object",
                    "properties": {"name": {"type": "string", "title": "Name", "description": "What to call you"}},
                    "required": ["name"],
                }))?,
            }))
        }
        Tool::Sample(prompt) => {
            let messages = vec![SamplingMessage::user_text(prompt.as_str())];
            InputRequest::CreateMessage(CreateMessageRequest::new(CreateMessageRequestParams::new(messages, 100)))
        }
        Tool::Roots => InputRequest::ListRoots(ListRootsRequest::default()),
    })
}

async fn send(context: &Context, request: InputRequest) -> Result<Value, ServiceError> {
    Ok(match request {
        InputRequest::CreateMessage(request) => json!(context.peer.create_message(request.params).await?),
        InputRequest::Elicitation(request) => json!(context.peer.create_elicitation(request.params).await?),
        InputRequest::ListRoots(_) => json!(context.peer.list_roots().await?),
        _ => return Err(ServiceError::UnexpectedResponse),
    })
}

/// The text that the tool returns for the client's response.
fn shown(tool: &Tool, response: &Value) -> String {
    // Sampling returns one block, or since 2025-11-25 several.
    let list = |value: &Value| value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
    let texts = |value: &Value, key: &str| {
        list(value).iter().filter_map(|item| Some(item[key].as_str()?.to_owned())).collect::<Vec<_>>().join("\n")
    };
    match (tool, response["action"].as_str()) {
        (Tool::Ask(_), Some("accept")) => format!("Hello, {}!", response["content"]["name"].as_str().unwrap_or("you")),
        (Tool::Ask(_), Some("decline")) => "declined".to_owned(),
        (Tool::Ask(_), _) => "cancelled".to_owned(),
        (Tool::Sample(_), _) => format!("model answered: {}", texts(&response["content"], "text")),
        (Tool::Roots, _) => texts(&response["roots"], "uri"),
    }
}
