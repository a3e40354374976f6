//! npm `server-everything` on each of its transports: the old era at its fullest.

use std::sync::{Arc, Mutex};

use rehearsal::Client;
use rehearsal::client::{ClientBuilder, ClientHandlers, HttpTransport};
use rehearsal::core::message::Method;
use rehearsal::core::protocol::{Content, Revision};
use serde_json::json;
use tokio::process::Command;

use crate::installation::{HttpServer, TIMEOUT, free_port, http_server, node, npm_server};

pub(crate) fn answers() -> ClientHandlers {
    ClientHandlers::new()
        .roots([("file:///tmp/interop", "interop")])
        .sampling_text("sampled")
        .elicitation_accept(json!({"name": "Ada", "check": true}))
}

fn stdio() -> ClientBuilder {
    let arguments = [npm_server("server-everything").into_os_string(), "stdio".into()];
    Client::command(node()).args(arguments).timeout(TIMEOUT).handlers(answers())
}

pub(crate) async fn http(transport: &str) -> HttpServer {
    let port = free_port();
    let mut command = Command::new(node());
    command.arg(npm_server("server-everything")).arg(transport).env("PORT", port.to_string());
    let (ready, path) = if transport == "sse" { ("running on port", "sse") } else { ("listening on port", "mcp") };
    http_server(&mut command, ready, |_| format!("http://127.0.0.1:{port}/{path}")).await
}

#[tokio::test]
async fn everything_over_stdio() {
    let client = stdio().connect().await.unwrap();
    assert_eq!(client.revision(), Revision::V2025_11_25, "the probe fell back to a handshake");
    whole_tour(&client).await;
}

#[tokio::test]
async fn everything_over_streamable_http() {
    let server = http("streamableHttp").await;
    let client = Client::url(&server.url).timeout(TIMEOUT).handlers(answers()).connect().await.unwrap();
    assert_eq!(client.revision(), Revision::V2025_11_25);
    whole_tour(&client).await;
}

#[tokio::test]
async fn everything_over_http_sse_found_by_itself() {
    let server = http("sse").await;
    let client = Client::url(&server.url).timeout(TIMEOUT).handlers(answers()).connect().await.unwrap();
    whole_tour(&client).await;
}

#[tokio::test]
async fn everything_over_http_sse_by_name() {
    let server = http("sse").await;
    let builder = Client::url(&server.url).transport(HttpTransport::Sse).legacy(Revision::V2024_11_05);
    let client = builder.timeout(TIMEOUT).handlers(answers()).connect().await.unwrap();
    assert_eq!(client.revision(), Revision::V2024_11_05);
    whole_tour(&client).await;
}

#[tokio::test]
async fn every_version_of_the_handshake() {
    for revision in Revision::ALL.into_iter().filter(|revision| revision.has_handshake()) {
        let client = stdio().legacy(revision).connect().await.unwrap();
        assert_eq!(client.revision(), revision);
        let response = client.call_tool("echo", json!({"message": "hello"})).await.unwrap();
        assert_eq!(response.content(), "Echo: hello");
        client.close().await;
    }
}

#[tokio::test]
async fn concurrent_calls_get_their_own_answers() {
    let client = stdio().connect().await.unwrap();
    let calls = (0..200).map(|number| {
        let client = client.clone();
        tokio::spawn(async move {
            let response = client.call_tool("get-sum", json!({"a": number, "b": 1})).await.unwrap();
            assert_eq!(response.content(), format!("The sum of {number} and 1 is {}.", number + 1));
        })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap();
    }
}

pub(crate) async fn whole_tour(client: &Client) {
    assert_eq!(client.server_info()["name"], "mcp-servers/everything");
    client.ping().await.unwrap();

    // The server adds the tools that need a client capability some time after `initialized`. Over Streamable HTTP it sends
    // the notification before there is a GET stream.
    let mut tools = client.list_tools().await.unwrap();
    while !tools.iter().any(|tool| tool.name == "trigger-sampling-request") {
        tools = client.list_tools().await.unwrap();
    }
    assert!(tools.iter().any(|tool| tool.name == "echo" && tool.input_schema["type"] == "object"));

    let response = client.call_tool("get-structured-content", json!({"location": "New York"})).await.unwrap();
    let weather = json!({"temperature": 33, "conditions": "Cloudy", "humidity": 82});
    assert_eq!(response.structured_content(), Some(&weather));

    let image = client.call_tool("get-tiny-image", json!({})).await.unwrap();
    let images = image.blocks().iter().filter_map(Content::decoded).count();
    assert_eq!(images, 1);
    let links = client.call_tool("get-resource-links", json!({"count": 2})).await.unwrap();
    assert_eq!(links.blocks().iter().filter(|block| matches!(block, Content::ResourceLink { .. })).count(), 2);

    progress(client).await;
    call_tools_with_server_requests(client).await;

    let unknown = client.call_tool("no-such-tool", json!({})).await.unwrap();
    assert!(!unknown.success() && unknown.is_tool_error(), "{}", unknown.raw());
    let missing = client.read_resource("demo://no/such/resource").await.unwrap();
    assert_eq!(missing.error_code(), Some(-32602));

    let resources = client.list_resources().await.unwrap();
    let document = client.read_resource(&resources[0].uri).await.unwrap();
    assert!(document.success() && !document.content().is_empty());
    assert_eq!(client.list_resource_templates().await.unwrap().len(), 2);

    assert!(client.list_prompts().await.unwrap().iter().any(|prompt| prompt.name == "args-prompt"));
    let prompt = client.get_prompt("args-prompt", json!({"city": "Oslo"})).await.unwrap();
    assert_eq!(prompt.content(), "What's weather in Oslo?");
    let reference = json!({"type": "ref/prompt", "name": "completable-prompt"});
    assert_eq!(client.complete(reference, "department", "E").await.unwrap(), ["Engineering"]);

    client.set_log_level("debug").await.unwrap();
    let uri = "demo://resource/dynamic/text/1";
    client.subscribe(uri).await.unwrap();
    client.call_tool("toggle-subscriber-updates", json!({})).await.unwrap();
    let updated = client.notification(Method::RESOURCE_UPDATED).await.unwrap();
    assert_eq!(updated.params().unwrap().field("uri").unwrap().text().as_deref(), Some(uri));
    client.call_tool("toggle-subscriber-updates", json!({})).await.unwrap();
    client.unsubscribe(uri).await.unwrap();
    client.close().await;
}

async fn progress(client: &Client) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let see = seen.clone();
    let call = client.call("trigger-long-running-operation").arguments(json!({"duration": 0.3, "steps": 3}));
    let response = call.on_progress(move |progress| see.lock().unwrap().push(progress.progress)).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), [1.0, 2.0, 3.0]);
    assert_eq!(response.progress().len(), 3);
}

async fn call_tools_with_server_requests(client: &Client) {
    let sampled = client.call_tool("trigger-sampling-request", json!({"prompt": "hi", "maxTokens": 10})).await.unwrap();
    assert!(sampled.content().contains("sampled"), "{}", sampled.content());
    let roots = client.call_tool("get-roots-list", json!({})).await.unwrap();
    assert!(roots.content().contains("file:///tmp/interop"), "{}", roots.content());
    if client.revision().has_elicitation() {
        let elicited = client.call_tool("trigger-elicitation-request", json!({})).await.unwrap();
        assert!(elicited.content().contains("Ada"), "{}", elicited.content());
    }
}
