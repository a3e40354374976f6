//! The official Rust SDK as a client, with handlers that answer every server request.

#![expect(deprecated, reason = "sampling and roots are deprecated since 2026-07-28; that we use them is the point")]

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ClientRequest, CreateMessageRequestParams,
    CreateMessageResult, ElicitRequestParams, ElicitResult, ElicitationAction, GetPromptRequestParams, Implementation,
    ListRootsResult, ProgressNotificationParam, ProtocolVersion, ReadResourceRequestParams, Request, ResourceContents,
    ResourceUpdatedNotificationParam, Root, SamplingMessage, ServerNotification, SubscribeRequestParams,
    SubscriptionFilter,
};
use rmcp::service::{
    NotificationContext, PeerRequestOptions, RequestContext, RoleClient, RunningService, ServiceError, Subscription,
};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess, Transport};
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::clients::Era;
use crate::installation::TIMEOUT;

/// A notification that a client received.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ReceivedNotification {
    Progress,
    ToolsChanged,
    Updated(String),
}

/// Answers server requests, and sends the received notifications to a channel.
struct AnsweringClient {
    version: ProtocolVersion,
    received: mpsc::UnboundedSender<ReceivedNotification>,
}

impl ClientHandler for AnsweringClient {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder().enable_elicitation().enable_sampling().enable_roots().build();
        ClientConfig::new(capabilities, Implementation::new("rmcp-client", "1.0"))
            .with_protocol_version(self.version.clone())
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        Ok(CreateMessageResult::new(SamplingMessage::assistant_text("sampled"), "none".to_owned())
            .with_stop_reason(CreateMessageResult::STOP_REASON_END_TURN))
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(json!({"name": "Ada"})))
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(ListRootsResult::new(vec![Root::new("file:///project")]))
    }

    async fn on_progress(&self, _: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let _ = self.received.send(ReceivedNotification::Progress); // the receiver may be closed
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        let _ = self.received.send(ReceivedNotification::ToolsChanged);
    }

    async fn on_resource_updated(&self, params: ResourceUpdatedNotificationParam, _: NotificationContext<RoleClient>) {
        let _ = self.received.send(ReceivedNotification::Updated(params.uri));
    }
}

/// A connected client.
pub(crate) struct RustClient {
    service: Arc<RunningService<RoleClient, AnsweringClient>>,
    received: mpsc::UnboundedReceiver<ReceivedNotification>,
    subscription: Option<Subscription>,
}

/// Connects to a URL; `version` is the version that the handshake requests, by default that of the SDK.
pub(crate) async fn over_http(url: &str, era: Era, version: Option<&str>) -> RustClient {
    let (answering_client, received) = answering_client(version);
    let connecting =
        answering_client.serve_with_lifecycle(StreamableHttpClientTransport::from_uri(url), lifecycle(era));
    RustClient::new(timeout(TIMEOUT, connecting).await.expect("the handshake hangs").unwrap(), received)
}

/// Starts a server and connects to it.
pub(crate) async fn over_stdio(command: Command, era: Era, version: Option<&str>) -> RustClient {
    let (answering_client, received) = answering_client(version);
    let connecting = answering_client.serve_with_lifecycle(TokioChildProcess::new(command).unwrap(), lifecycle(era));
    RustClient::new(timeout(TIMEOUT, connecting).await.expect("the handshake hangs").unwrap(), received)
}

/// Connects over any transport.
pub(crate) async fn over<T: Transport<RoleClient> + 'static>(transport: T, era: Era) -> RustClient {
    let (answering_client, received) = answering_client(None);
    let connecting = answering_client.serve_with_lifecycle(transport, lifecycle(era));
    RustClient::new(timeout(TIMEOUT, connecting).await.expect("the handshake hangs").unwrap(), received)
}

fn answering_client(version: Option<&str>) -> (AnsweringClient, mpsc::UnboundedReceiver<ReceivedNotification>) {
    let version =
        version.map_or_else(ProtocolVersion::default, |version| serde_json::from_value(json!(version)).unwrap());
    let (sender, received) = mpsc::unbounded_channel();
    (AnsweringClient { version, received: sender }, received)
}

fn lifecycle(era: Era) -> ClientLifecycleMode {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    match era {
        Era::Auto => ClientLifecycleMode::Auto { preferred_versions, legacy_version: None },
        Era::Legacy => ClientLifecycleMode::Initialize,
        Era::Modern => ClientLifecycleMode::Discover { preferred_versions },
    }
}

fn request(tool: &str, arguments: Value) -> CallToolRequestParams {
    CallToolRequestParams::new(tool.to_owned()).with_arguments(serde_json::from_value(arguments).unwrap())
}

fn text(result: CallToolResult) -> String {
    assert_ne!(result.is_error, Some(true), "{result:?}");
    result.content.iter().filter_map(|block| block.as_text()).map(|block| block.text.as_str()).collect()
}

impl RustClient {
    fn new(
        service: RunningService<RoleClient, AnsweringClient>,
        received: mpsc::UnboundedReceiver<ReceivedNotification>,
    ) -> RustClient {
        RustClient { service: Arc::new(service), received, subscription: None }
    }

    /// The negotiated version.
    pub(crate) fn version(&self) -> String {
        self.service.peer_info().unwrap().protocol_version.to_string()
    }

    /// The names of the tools, on all pages.
    pub(crate) async fn tools(&self) -> Vec<String> {
        self.service.list_all_tools().await.unwrap().into_iter().map(|tool| tool.name.into_owned()).collect()
    }

    /// The text that a tool returns, or the error.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<String, String> {
        let calling = self.service.call_tool(request(tool, arguments));
        let result = timeout(TIMEOUT, calling).await.expect("the call hangs");
        result.map(text).map_err(|error| error.to_string())
    }

    /// The reply to any request: `{"result": …}` or `{"error": …}`.
    pub(crate) async fn answer(&self, method: &str, params: &Value) -> Value {
        let reply = timeout(TIMEOUT, self.request(method, params)).await.expect("the request hangs");
        match reply {
            Ok(result) => json!({"result": result}),
            Err(ServiceError::McpError(error)) => json!({"error": {"code": error.code.0, "message": error.message}}),
            Err(other) => panic!("{method}: {other}"),
        }
    }

    async fn request(&self, method: &str, params: &Value) -> Result<Value, ServiceError> {
        let named = |key: &str| params[key].as_str().unwrap_or_default().to_owned();
        let arguments = || params.get("arguments").cloned().unwrap_or_else(|| json!({}));
        Ok(match method {
            "tools/list" => json!(self.service.list_tools(None).await?),
            "resources/list" => json!(self.service.list_resources(None).await?),
            "prompts/list" => json!(self.service.list_prompts(None).await?),
            "tools/call" => json!(self.service.call_tool(request(&named("name"), arguments())).await?),
            "resources/read" => {
                json!(self.service.read_resource(ReadResourceRequestParams::new(named("uri"))).await?)
            }
            "prompts/get" => {
                let mut prompt = GetPromptRequestParams::new(named("name"));
                prompt.arguments = Some(serde_json::from_value(arguments()).unwrap());
                json!(self.service.get_prompt(prompt).await?)
            }
            other => panic!("no method {other}"),
        })
    }

    /// Calls `add` `count` times concurrently.
    pub(crate) async fn adds_many_numbers(&self, count: u64) {
        let mut calls = JoinSet::new();
        for number in 0..count {
            let service = Arc::clone(&self.service);
            calls.spawn(async move {
                let sum = service.call_tool(request("add", json!({"a": number, "b": 1}))).await.unwrap();
                assert_eq!(sum.structured_content, Some(json!({"sum": number + 1})));
            });
        }
        timeout(TIMEOUT, calls.join_all()).await.expect("the calls hang");
    }

    /// Starts a call, and cancels it after its first progress notification.
    pub(crate) async fn begin_and_cancel(&mut self, tool: &str, arguments: Value) {
        let request = ClientRequest::CallToolRequest(Request::new(request(tool, arguments)));
        let handle = self.service.send_cancellable_request(request, PeerRequestOptions::no_options()).await.unwrap();
        assert_eq!(
            timeout(TIMEOUT, self.received.recv()).await.expect("no notification arrives"),
            Some(ReceivedNotification::Progress)
        );
        handle.cancel(Some("changed my mind".to_owned())).await.unwrap();
    }

    /// Subscribes to a resource and to the list of tools.
    pub(crate) async fn subscribe(&mut self, uri: &str) {
        if self.version().as_str() < "2026-07-28" {
            self.service.subscribe(SubscribeRequestParams::new(uri)).await.unwrap();
            return;
        }
        let filter = SubscriptionFilter::builder().tools_list_changed().resource_subscription(uri).build();
        let subscription = self.service.listen(filter.clone()).await.unwrap();
        assert_eq!(*subscription.acknowledged(), filter);
        self.subscription = Some(subscription);
    }

    /// The next change notice.
    pub(crate) async fn change(&mut self) -> ReceivedNotification {
        let Some(subscription) = &mut self.subscription else {
            return timeout(TIMEOUT, self.received.recv()).await.expect("no notification arrives").unwrap();
        };
        let notification = timeout(TIMEOUT, subscription.next()).await.expect("no notification arrives").unwrap();
        match notification.expect("the subscription continues") {
            ServerNotification::ToolListChangedNotification(_) => ReceivedNotification::ToolsChanged,
            ServerNotification::ResourceUpdatedNotification(updated) => {
                ReceivedNotification::Updated(updated.params.uri)
            }
            other => panic!("{other:?}"),
        }
    }

    /// Closes the connection.
    pub(crate) async fn close(mut self) {
        if let Some(subscription) = &mut self.subscription {
            subscription.cancel().await.unwrap();
        }
        let service = Arc::into_inner(self.service).expect("all calls are over");
        timeout(TIMEOUT, service.cancel()).await.expect("closing hangs").unwrap();
    }
}

/// Does what `clients/python_client.py` does, and returns the JSON that it prints.
pub(crate) async fn tour(mut client: RustClient) -> Value {
    let mut seen = json!({"protocol_version": client.version(), "tools": client.tools().await});
    seen["echo"] = json!(client.call("echo", json!({"message": "hello"})).await.unwrap());
    seen["add"] = json!(client.call("add", json!({"a": 2, "b": 40})).await.unwrap());
    seen["unknown"] = match client.service.call_tool(request("no_such_tool", json!({}))).await {
        Err(ServiceError::McpError(error)) => {
            json!({"kind": "protocol_error", "code": error.code.0, "message": error.message})
        }
        other => json!({"kind": "is_error", "code": null, "message": format!("{other:?}")}),
    };
    client.call("slow", json!({"steps": 3, "delay_ms": 1})).await.unwrap();
    let mut progress = 0;
    // The SDK may deliver progress after the response.
    while progress < 3 && timeout(TIMEOUT, client.received.recv()).await.expect("no notification arrives").is_some() {
        progress += 1;
    }
    seen["progress"] = json!(progress);
    seen["ask"] = json!(client.call("ask", json!({"question": "name?"})).await.unwrap());
    seen["sample"] = json!(client.call("sample", json!({"prompt": "hi"})).await.unwrap());
    seen["roots"] = json!(client.call("roots", json!({})).await.unwrap());

    let resources = client.service.list_all_resources().await.unwrap();
    assert!(resources.iter().any(|resource| resource.uri == "tiny://greeting"), "{resources:?}");
    let greeting = client.service.read_resource(ReadResourceRequestParams::new("tiny://greeting")).await.unwrap();
    let ResourceContents::TextResourceContents { text, .. } = &greeting.contents[0] else { panic!("{greeting:?}") };
    seen["resource"] = json!(text);
    let prompts = client.service.list_all_prompts().await.unwrap();
    assert!(prompts.iter().any(|prompt| prompt.name == "greet"), "{prompts:?}");
    let mut greet = GetPromptRequestParams::new("greet");
    greet.arguments = Some(serde_json::from_value(json!({"who": "Ada"})).unwrap());
    let prompt = client.service.get_prompt(greet).await.unwrap();
    seen["prompt"] = json!(prompt.messages[0].content.as_text().unwrap().text);
    seen["completion"] = json!(client.service.complete_prompt_simple("greet", "who", "A").await.unwrap());
    seen["error"] = Value::Null;
    client.close().await;
    seen
}
