//! The server of `servers/fastmcp_server.py`, written with the official Rust SDK.
//!
//! ```text
//! rmcp-server [http|stdio] [both|legacy|modern]
//! ```
//!
//! Over HTTP it says on stderr where it listens: `listening on http://127.0.0.1:43121/mcp`.
//! Both eras are served, or only one of them. The tools `ask`, `sample` and `roots` need something from the client.
//! Before 2026-07-28 they send it a request; since then they return `input_required` and are called again with the
//! answer.

#![expect(deprecated, reason = "sampling and roots are deprecated since 2026-07-28; that we use them is the point")]

use std::borrow::Cow;
use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rmcp::handler::server::tool::{InputResponses, schema_for_type};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{
    CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult, CompletionInfo, ContentBlock,
    CreateMessageRequest, CreateMessageRequestParams, ElicitRequest, ElicitRequestParams, Implementation, InputRequest,
    InputRequests, InputRequiredResult, ListResourceTemplatesResult, ListResourcesResult, ListRootsRequest,
    PaginatedRequestParams, ProgressNotificationParam, PromptMessage, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
    ResourceUpdatedNotificationParam, Role, SamplingMessage, ServerCapabilities, ServerConfig, SubscribeRequestParams,
    SubscriptionFilter, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, ServiceError, SubscriptionContext};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt, prompt, prompt_handler, prompt_router, tool, tool_handler,
    tool_router,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::net::TcpListener;

const NAMES: [&str; 3] = ["Ada", "Alan", "Barbara"];

/// How long a client whose stream broke is told to wait.
///
/// The SDK's own 3 s would be longer than the calls take, and what is answered in the meantime is lost.
const RETRY: Duration = Duration::from_millis(100);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let transport = arguments.next().unwrap_or_else(|| "http".to_owned());
    let server = Interop { versions: versions(arguments.next().as_deref())? };
    match transport.as_str() {
        "stdio" => {
            server.serve(rmcp::transport::stdio()).await?.waiting().await?;
            Ok(())
        }
        "http" => serve_http(server).await,
        other => Err(format!("no transport {other}").into()),
    }
}

/// The versions of the eras that are to be served.
fn versions(eras: Option<&str>) -> Result<&'static [ProtocolVersion], String> {
    let all = ProtocolVersion::KNOWN_VERSIONS;
    let modern = all.iter().position(|version| *version == ProtocolVersion::V_2026_07_28).unwrap_or(all.len());
    match eras {
        None | Some("both") => Ok(all),
        Some("legacy") => Ok(&all[..modern]),
        Some("modern") => Ok(&all[modern..]),
        Some(other) => Err(format!("no era {other}")),
    }
}

async fn serve_http(server: Interop) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    eprintln!("listening on http://{}/mcp", listener.local_addr()?);
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.sse_retry = Some(RETRY);
    let config = StreamableHttpServerConfig::default().with_sse_retry(Some(RETRY));
    let service = StreamableHttpService::new(move || Ok(server.clone()), Arc::new(sessions), config);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let service = service.clone();
        let answer = service_fn(move |request| {
            let service = service.clone();
            async move { Ok::<_, Infallible>(service.handle(request).await) }
        });
        tokio::spawn(async move {
            // A client that hangs up is no failure of ours.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

/// The server, which remembers nothing.
#[derive(Clone, Debug)]
struct Interop {
    versions: &'static [ProtocolVersion],
}

#[derive(Deserialize, JsonSchema)]
struct Echo {
    message: String,
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    result: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Slow {
    steps: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Ask {
    question: String,
}

#[derive(Deserialize, JsonSchema)]
struct Sample {
    prompt: String,
}

#[derive(Deserialize, JsonSchema)]
struct Greet {
    who: String,
}

#[tool_router]
impl Interop {
    #[tool(description = "Return the message.", annotations(read_only_hint = true))]
    fn echo(&self, Parameters(Echo { message }): Parameters<Echo>) -> String {
        message
    }

    #[tool(description = "Add two numbers; the result is structured, too.", output_schema = schema_for_type::<Sum>())]
    fn add(&self, Parameters(Add { a, b }): Parameters<Add>) -> CallToolResult {
        let sum = Sum { result: a + b };
        let mut result = CallToolResult::structured(json!(sum));
        result.content = vec![ContentBlock::text(sum.result.to_string())];
        result
    }

    #[tool(description = "Report progress once per step.")]
    async fn slow(&self, Parameters(Slow { steps }): Parameters<Slow>, context: RequestContext<RoleServer>) -> String {
        for step in 1..=steps {
            if let Some(token) = context.meta.get_progress_token() {
                let progress = ProgressNotificationParam::new(token, step.into()).with_total(steps.into());
                // Who does not listen any more need not be told.
                let _ = context.peer.notify_progress(progress.with_message(format!("step {step}"))).await;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        format!("{steps} steps")
    }

    #[tool(description = "Fail on purpose.")]
    fn fail(&self) -> Result<String, String> {
        Err("failed on purpose".to_owned())
    }

    #[tool(description = "Ask the user (elicitation).")]
    async fn ask(
        &self,
        Parameters(Ask { question }): Parameters<Ask>,
        InputResponses(answers): InputResponses,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
        let form = ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: question,
            requested_schema: serde_json::from_value(schema).map_err(internal)?,
        };
        let question = InputRequest::Elicitation(ElicitRequest::new(form));
        Ok(match answer_to(&context, answers, "name", question, Some("asked once")).await? {
            Answer::Later(questions) => questions.into(),
            Answer::Now(answer) => said(format!("{}: {}", text(&answer["action"]), text(&answer["content"]["name"]))),
        })
    }

    #[tool(description = "Ask the client's model (sampling).")]
    async fn sample(
        &self,
        Parameters(Sample { prompt }): Parameters<Sample>,
        InputResponses(answers): InputResponses,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let params = CreateMessageRequestParams::new(vec![SamplingMessage::user_text(prompt)], 100);
        let question = InputRequest::CreateMessage(CreateMessageRequest::new(params));
        Ok(match answer_to(&context, answers, "answer", question, None).await? {
            Answer::Later(questions) => questions.into(),
            Answer::Now(answer) => said(text(&answer["content"]["text"])),
        })
    }

    #[tool(description = "Ask which folders the client opened (roots).")]
    async fn roots(
        &self,
        InputResponses(answers): InputResponses,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let question = InputRequest::ListRoots(ListRootsRequest::default());
        Ok(match answer_to(&context, answers, "roots", question, None).await? {
            Answer::Later(questions) => questions.into(),
            Answer::Now(answer) => {
                let roots = answer["roots"].as_array().into_iter().flatten();
                said(roots.map(|root| text(&root["uri"])).collect::<Vec<_>>().join(" "))
            }
        })
    }
}

/// What a tool that needs the client has got.
enum Answer {
    /// The client's result.
    Now(Value),
    /// What to return, so that the client calls again with the result.
    Later(InputRequiredResult),
}

/// Asks the client in the way of its era.
async fn answer_to(
    context: &RequestContext<RoleServer>,
    answers: Option<rmcp::model::InputResponses>,
    key: &str,
    question: InputRequest,
    state: Option<&str>,
) -> Result<Answer, ErrorData> {
    if context.protocol_version().is_none_or(|version| version.as_str() < ProtocolVersion::V_2026_07_28.as_str()) {
        return ask_now(context, question).await.map(Answer::Now).map_err(internal);
    }
    Ok(match answers.and_then(|mut answers| answers.remove(key)) {
        Some(answer) => Answer::Now(answer),
        None => {
            let questions = InputRequests::from([(key.to_owned(), question)]);
            Answer::Later(InputRequiredResult::new(Some(questions), state.map(str::to_owned)))
        }
    })
}

async fn ask_now(context: &RequestContext<RoleServer>, question: InputRequest) -> Result<Value, ServiceError> {
    Ok(match question {
        InputRequest::CreateMessage(request) => json!(context.peer.create_message(request.params).await?),
        InputRequest::Elicitation(request) => json!(context.peer.create_elicitation(request.params).await?),
        InputRequest::ListRoots(_) => json!(context.peer.list_roots().await?),
        _ => return Err(ServiceError::UnexpectedResponse),
    })
}

fn said(words: String) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(words)]).into()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn internal(error: impl Error) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

#[prompt_router]
impl Interop {
    #[prompt(description = "Greet somebody.")]
    async fn greet(&self, Parameters(Greet { who }): Parameters<Greet>) -> Vec<PromptMessage> {
        vec![PromptMessage::new_text(Role::User, format!("Please greet {who}"))]
    }
}

#[tool_handler]
#[prompt_handler]
impl ServerHandler for Interop {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_prompts()
            .enable_completions()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("rmcp-interop", "1.0"))
            .with_instructions("One of everything.")
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(self.versions)
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let greeting = Resource::new("tiny://greeting", "greeting").with_mime_type("text/plain");
        Ok(ListResourcesResult::with_all_items(vec![greeting]))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = ResourceTemplate::new("tiny://greeting/{who}", "greeting_for").with_mime_type("text/plain");
        Ok(ListResourceTemplatesResult::with_all_items(vec![template]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let greeting = match request.uri.strip_prefix("tiny://greeting") {
            Some("") => "Hello".to_owned(),
            Some(rest) if rest.starts_with('/') => format!("Hello {}", &rest[1..]),
            _ => return Err(ErrorData::resource_not_found(format!("no resource {}", request.uri), None)),
        };
        Ok(ReadResourceResult::new(vec![ResourceContents::text(greeting, request.uri)]).into())
    }

    /// Before 2026-07-28. Whoever subscribes is told of a change at once.
    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let updated = ResourceUpdatedNotificationParam::new(request.uri);
        context.peer.notify_resource_updated(updated).await.map_err(internal)
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    /// Since 2026-07-28. Whoever listens is told of a change at once.
    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        for uri in subscription.accepted().resource_subscriptions.iter().flatten() {
            subscription.sink().notify_resource_updated(uri.clone()).await.map_err(internal)?;
        }
        subscription.cancelled().await;
        Ok(())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let begun = NAMES.iter().filter(|name| name.starts_with(&request.argument.value));
        let names = begun.map(|&name| name.to_owned()).collect();
        let completion = CompletionInfo::with_all_values(names).map_err(|why| ErrorData::internal_error(why, None))?;
        Ok(CompleteResult::new(completion))
    }
}
