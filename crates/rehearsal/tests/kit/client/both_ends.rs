//! The client and a mock that offers one of everything, over every transport and in every version.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rehearsal::Client;
use rehearsal::client::{ClientBuilder, ClientHandlers, HttpTransport, ListenFilter};
use rehearsal::core::message::Method;
use rehearsal::core::protocol::{Content, Era, Revision};
use rehearsal::mock::MockServer;
use serde_json::json;

fn mock() -> MockServer {
    MockServer::start(crate::MOCK).unwrap()
}

fn prepared(builder: ClientBuilder, revision: Revision) -> ClientBuilder {
    let answers = ClientHandlers::new()
        .roots([("file:///unconnected", "unconnected")])
        .sampling_text("to be or not to be")
        .elicitation_accept(json!({"name": "Ada"}));
    let builder = builder.handlers(answers).timeout(Duration::from_secs(20));
    match revision.era() {
        Era::Legacy => builder.legacy(revision),
        Era::Modern => builder.modern(),
    }
}

#[tokio::test]
async fn every_version_in_memory() {
    let server = mock();
    for revision in Revision::ALL {
        tour(prepared(Client::connection(server.connection()), revision).connect().await.unwrap(), revision).await;
    }
}

#[tokio::test]
async fn every_version_over_streamable_http() {
    let server = mock();
    for revision in Revision::ALL.into_iter().filter(|revision| revision.has_streamable_http()) {
        tour(prepared(Client::url(server.url()), revision).connect().await.unwrap(), revision).await;
    }
}

#[tokio::test]
async fn the_first_version_over_http_sse() {
    let server = mock();
    let revision = Revision::V2024_11_05;
    let by_name = Client::url(server.sse_url()).transport(HttpTransport::Sse);
    tour(prepared(by_name, revision).connect().await.unwrap(), revision).await;
    tour(prepared(Client::url(server.sse_url()), revision).connect().await.unwrap(), revision).await;
}

#[tokio::test]
async fn many_clients_of_both_eras_at_one_endpoint() {
    let server = mock();
    let clients = (0..20).map(|number| {
        let revision = if number % 2 == 0 { Revision::V2025_06_18 } else { Revision::V2026_07_28 };
        let builder = prepared(Client::url(server.url()), revision);
        tokio::spawn(async move {
            let client = builder.connect().await.unwrap();
            for round in 0..10 {
                let text = format!("client {number} round {round}");
                let response = client.call_tool("echo", json!({"message": text})).await.unwrap();
                assert_eq!(response.content(), text);
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
}

#[tokio::test]
async fn dropped_requests_free_their_slots_in_the_client() {
    let server = mock();
    let client = prepared(Client::url(server.url()), Revision::V2025_11_25).connect().await.unwrap();
    let endless = json!({"steps": 100, "delay_ms": 10_000});
    let calls = (0..300).map(|_| {
        let call = client.call("slow").arguments(endless.clone()).timeout(Duration::from_millis(100));
        tokio::spawn(async move { assert!(call.await.is_err()) })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap();
    }
    assert_eq!(client.call_tool("echo", json!({"message": "still"})).await.unwrap().content(), "still");
}

async fn tour(client: Client, revision: Revision) {
    assert_eq!(client.revision(), revision);
    assert_eq!(client.server_info()["name"], "tiny-mock");
    client.ping().await.unwrap();
    let tools: Vec<String> = client.list_tools().await.unwrap().into_iter().map(|tool| tool.name).collect();
    assert!(["echo", "add", "slow", "ask", "sample", "roots"].iter().all(|name| tools.contains(&(*name).to_owned())));

    let odd = "odd \u{1F600} \" \\ \n \u{2028} text";
    assert_eq!(client.call_tool("echo", json!({"message": odd})).await.unwrap().content(), odd);
    let sum = client.call_tool("add", json!({"a": 2, "b": 40})).await.unwrap();
    assert_eq!(sum.content(), "42");
    assert_eq!(sum.structured_content().is_some(), revision.has_structured_content());
    let failed = client.call_tool("fail", json!({"message": "no"})).await.unwrap();
    assert!(failed.is_tool_error() && failed.error_message().as_deref() == Some("no"));
    assert_eq!(client.call_tool("no_such_tool", json!({})).await.unwrap().error_code(), Some(-32602));

    let seen = Arc::new(Mutex::new(0));
    let see = seen.clone();
    let slow = client.call("slow").arguments(json!({"steps": 3, "delay_ms": 1}));
    let slow = slow.on_progress(move |_| *see.lock().unwrap() += 1).await.unwrap();
    assert_eq!((slow.content().as_str(), *seen.lock().unwrap()), ("done in 3 steps", 3));

    let sampled = client.call_tool("sample", json!({"prompt": "?"})).await.unwrap();
    assert_eq!(sampled.content(), "model answered: to be or not to be", "{}", sampled.raw());
    assert_eq!(client.call_tool("roots", json!({})).await.unwrap().content(), "file:///unconnected");
    if revision.has_elicitation() {
        assert_eq!(client.call_tool("ask", json!({"question": "?"})).await.unwrap().content(), "Hello, Ada!");
    }

    client.set_log_level("info").await.unwrap();
    let logged = client.call_tool("log", json!({"level": "warning", "message": "careful"})).await.unwrap();
    assert_eq!(logged.logs().len(), 1, "{:?}", logged.notifications());

    let picture = client.call_tool("picture", json!({})).await.unwrap();
    assert!(picture.blocks().iter().any(|block| matches!(block, Content::Image { .. })));
    assert_eq!(client.read_resource("tiny://greeting").await.unwrap().content(), "Hello from tiny-server");
    let missing = client.read_resource("tiny://missing").await.unwrap();
    assert_eq!(missing.error_code(), Some(revision.resource_not_found()));
    assert_eq!(client.get_prompt("greet", json!({"who": "Ada"})).await.unwrap().content(), "Hello Ada");
    let reference = json!({"type": "ref/prompt", "name": "greet"});
    assert_eq!(client.complete(reference, "who", "A").await.unwrap(), ["Ada", "Alan"]);

    subscription(&client).await;
    cancellation(&client).await;
    client.close().await;
}

async fn subscription(client: &Client) {
    let listening = match client.revision().era() {
        Era::Legacy => None,
        Era::Modern => Some(client.listen(ListenFilter { tools: true, ..ListenFilter::default() }).await.unwrap()),
    };
    client.subscribe("tiny://greeting").await.unwrap();
    client.call_tool("touch", json!({})).await.unwrap();
    let updated = client.notification(Method::RESOURCE_UPDATED).await.unwrap();
    assert_eq!(updated.params().unwrap().field("uri").unwrap().as_str(), "\"tiny://greeting\"");
    client.notification(Method::TOOLS_CHANGED).await.unwrap();
    client.unsubscribe("tiny://greeting").await.unwrap();
    drop(listening);
}

async fn cancellation(client: &Client) {
    let endless = json!({"steps": 100, "delay_ms": 10_000});
    let call = client.call("slow").arguments(endless.clone()).start().await.unwrap();
    call.cancel("enough").await;
    let late = client.call("slow").arguments(endless).timeout(Duration::from_millis(50)).await.unwrap_err();
    assert!(late.to_string().starts_with("no answer to tools/call within 0.05 s"), "{late}");
    assert_eq!(client.call_tool("echo", json!({"message": "on"})).await.unwrap().content(), "on");
}
