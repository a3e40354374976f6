//! What the server answers to each request.

#![expect(deprecated, reason = "logging is deprecated since 2026-07-28; clients still have to be tested with it")]

use std::borrow::Cow;
use std::fmt::Display;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult, CompletionInfo,
    ContentBlock, GetPromptRequestParams, GetPromptResponse, GetPromptResult, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LoggingLevel, LoggingMessageNotificationParam,
    PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, ResourceUpdatedNotificationParam, ServerCapabilities, ServerConfig,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::{Number, Value, json};

use crate::input::{self, Tool};

/// The parts of a request beside its parameters.
pub(crate) type Context = RequestContext<RoleServer>;

type Page = Option<PaginatedRequestParams>;

/// What `tools/list` and the other lists return.
static LISTS: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("lists.json")).expect("the file beside this one is JSON"));

/// A PNG of one green pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mPQ6w4HAAH7ARFK28dFAAAAAElFTkSuQmCC";

const NAMES: [&str; 4] = ["Ada", "Alan", "Grace", "Linus"];

const INSTRUCTIONS: &str = "Try the tool `echo` first; `ask`, `sample` and `roots` ask you something in return.";

/// The server of one session.
#[derive(Clone)]
pub(crate) struct TinyServer {
    versions: &'static [ProtocolVersion],
    /// From `logging/setLevel`, before 2026-07-28.
    level: Arc<Mutex<Option<LoggingLevel>>>,
}

impl TinyServer {
    pub(crate) fn new(versions: &'static [ProtocolVersion]) -> TinyServer {
        TinyServer { versions, level: Arc::default() }
    }

    /// The lowest level of log messages that the client requested: with this call, or for the session.
    fn log_level(&self, context: &Context) -> Option<LoggingLevel> {
        context.meta.log_level().or(*self.level.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn log(&self, arguments: &Value, context: &Context) -> Result<CallToolResponse, String> {
        let level = argument(arguments, "level")?;
        let message = argument(arguments, "message")?;
        let level: LoggingLevel =
            serde_json::from_value(json!(level)).map_err(|_| format!("there is no log level {level:?}"))?;
        if self.log_level(context).is_some_and(|least| level as u8 >= least as u8) {
            let message = LoggingMessageNotificationParam::new(level, json!(message)).with_logger("tiny-server");
            // A client that is gone needs no log messages.
            let _ = context.peer.notify_logging_message(message).await;
        }
        Ok(text("logged"))
    }
}

fn add(arguments: &Value) -> Result<CallToolResponse, String> {
    let number = |name: &str| arguments[name].as_number().ok_or_else(|| format!("`{name}` must be a number"));
    let (a, b) = (number("a")?, number("b")?);
    // Integers stay integers as long as they fit.
    let whole = a.as_i64().zip(b.as_i64()).and_then(|(a, b)| a.checked_add(b)).map(Number::from);
    let sum = whole.or_else(|| Number::from_f64(a.as_f64()? + b.as_f64()?));
    let sum = sum.ok_or_else(|| format!("{a} + {b} is too large"))?;
    let mut result = CallToolResult::structured(json!({"sum": sum}));
    result.content = vec![ContentBlock::text(sum.to_string())];
    Ok(result.into())
}

async fn slow(arguments: &Value, context: &Context) -> Result<CallToolResponse, String> {
    let steps = arguments["steps"].as_u64().and_then(|steps| u32::try_from(steps).ok());
    let steps = steps.ok_or("`steps` must be an integer")?;
    let delay = Duration::from_millis(arguments["delay_ms"].as_u64().unwrap_or(100));
    for step in 1..=steps {
        // The notification first, then the work: some clients lose a notification that arrives with the answer.
        if let Some(token) = context.meta.get_progress_token() {
            let progress = ProgressNotificationParam::new(token, step.into()).with_total(steps.into());
            // A client that is gone needs no progress.
            let _ = context.peer.notify_progress(progress.with_message(format!("step {step} of {steps}"))).await;
        }
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = context.ct.cancelled() => return Err("cancelled".to_owned()),
        }
    }
    Ok(text(format!("done in {steps} steps")))
}

fn picture() -> Result<CallToolResponse, ErrorData> {
    let result: CallToolResult = model(json!({"content": [
        {"type": "image", "data": PNG, "mimeType": "image/png"},
        {"type": "resource_link", "uri": "tiny://pixel", "name": "pixel", "mimeType": "image/png"},
        {"type": "resource", "resource": contents("tiny://greeting")},
    ]}))?;
    Ok(result.into())
}

/// The contents of a resource; `None` if there is none at `uri`.
fn contents(uri: &str) -> Option<Value> {
    let text = match uri {
        "tiny://greeting" => "Hello from tiny-server".to_owned(),
        "tiny://pixel" => return Some(json!({"uri": uri, "mimeType": "image/png", "blob": PNG})),
        _ => format!("Hello {}, from tiny-server", uri.strip_prefix("tiny://greeting/")?),
    };
    Some(json!({"uri": uri, "mimeType": "text/plain", "text": text}))
}

/// The successful result of a tool that has only this text.
pub(crate) fn text(text: impl Into<String>) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

fn input_tool(name: &str, arguments: &Value) -> Result<Tool, String> {
    Ok(match name {
        "ask" => Tool::Ask(argument(arguments, "question")?),
        "sample" => Tool::Sample(argument(arguments, "prompt")?),
        _ => Tool::Roots,
    })
}

/// A string argument of a tool.
fn argument(arguments: &Value, name: &str) -> Result<String, String> {
    let text = arguments[name].as_str().ok_or_else(|| format!("`{name}` must be a string"))?;
    Ok(text.to_owned())
}

/// The SDK's form of a result that is written as JSON.
pub(crate) fn model<T: DeserializeOwned>(result: Value) -> Result<T, ErrorData> {
    serde_json::from_value(result).map_err(internal)
}

pub(crate) fn internal(error: impl Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

impl ServerHandler for TinyServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_prompts()
            .enable_logging()
            .enable_completions();
        ServerConfig::new(capabilities.build())
            .with_server_info(Implementation::new("tiny-server", env!("CARGO_PKG_VERSION")).with_title("Tiny server"))
            .with_instructions(INSTRUCTIONS)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(self.versions)
    }

    async fn list_tools(&self, _: Page, _: Context) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(model(LISTS["tools"].clone())?))
    }

    async fn call_tool(&self, request: CallToolRequestParams, context: Context) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let answered = match request.name.as_ref() {
            "echo" => argument(&arguments, "message").map(text),
            "add" => add(&arguments),
            "slow" => slow(&arguments, &context).await,
            "log" => self.log(&arguments, &context).await,
            "fail" => argument(&arguments, "message").and_then(Err),
            "ask" | "sample" | "roots" => match input_tool(&request.name, &arguments) {
                Ok(tool) => return input::call(tool, &context, request.input_responses).await,
                Err(wrong) => Err(wrong),
            },
            "picture" => return picture(),
            unknown => return Err(ErrorData::invalid_params(format!("unknown tool {unknown:?}"), None)),
        };
        // A model can act on the text of a failed tool, but most clients hide a protocol error from it.
        Ok(answered.unwrap_or_else(|wrong| CallToolResult::error(vec![ContentBlock::text(wrong)]).into()))
    }

    async fn list_resources(&self, _: Page, _: Context) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(model(LISTS["resources"].clone())?))
    }

    async fn list_resource_templates(&self, _: Page, _: Context) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(model(LISTS["resourceTemplates"].clone())?))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let Some(contents) = contents(&request.uri) else {
            let data = json!({"uri": request.uri});
            return Err(ErrorData::resource_not_found(format!("there is no resource {}", request.uri), Some(data)));
        };
        Ok(ReadResourceResult::new(vec![model(contents)?]).into())
    }

    async fn list_prompts(&self, _: Page, _: Context) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(model(LISTS["prompts"].clone())?))
    }

    async fn get_prompt(&self, request: GetPromptRequestParams, _: Context) -> Result<GetPromptResponse, ErrorData> {
        let invalid = |message: String| ErrorData::invalid_params(message, None);
        if request.name != "greet" {
            return Err(invalid(format!("unknown prompt {:?}; there is greet", request.name)));
        }
        let who = request.arguments.and_then(|arguments| Some(arguments.get("who")?.as_str()?.to_owned()));
        let who = who.ok_or_else(|| invalid("the prompt greet needs a string argument `who`".to_owned()))?;
        let messages = json!([{"role": "user", "content": {"type": "text", "text": format!("Hello {who}")}}]);
        let result = GetPromptResult::new(model(messages)?).with_description("Says hello");
        Ok(result.into())
    }

    async fn complete(&self, request: CompleteRequestParams, _: Context) -> Result<CompleteResult, ErrorData> {
        let begun = NAMES.iter().filter(|name| name.starts_with(&request.argument.value));
        let names = begun.map(|&name| name.to_owned()).collect();
        Ok(CompleteResult::new(CompletionInfo::with_all_values(names).map_err(internal)?))
    }

    async fn set_level(&self, request: SetLevelRequestParams, _: Context) -> Result<(), ErrorData> {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = Some(request.level);
        Ok(())
    }

    /// Before 2026-07-28. Nothing here ever changes, so that each subscriber gets one notification at once.
    async fn subscribe(&self, request: SubscribeRequestParams, context: Context) -> Result<(), ErrorData> {
        let updated = ResourceUpdatedNotificationParam::new(request.uri);
        context.peer.notify_resource_updated(updated).await.map_err(internal)
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    /// Since 2026-07-28. Each subscriber gets one notification at once, as above.
    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        for uri in subscription.accepted().resource_subscriptions.iter().flatten() {
            subscription.sink().notify_resource_updated(uri.clone()).await.map_err(internal)?;
        }
        subscription.cancelled().await;
        Ok(())
    }
}
