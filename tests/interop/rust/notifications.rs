//! Notifications and server requests between calls are replayed at their recorded position.

use std::sync::{Arc, Mutex};

use rehearsal::Client;
use rehearsal::client::ClientBuilder;
use rehearsal::core::exchange::Side;
use rehearsal::core::message::{Body, Message, Reply};
use rehearsal::core::protocol::Revision;
use serde_json::{Value, json};

use crate::installation::{TIMEOUT, node, npm_server};
use crate::mocked::rehearse;
use crate::replayed::{TraceFile, answers};

const RESOURCE: &str = "demo://resource/dynamic/text/1";

/// The messages of a server, in order, without ids and other data of one session.
type ReceivedMessages = Arc<Mutex<Vec<Value>>>;

fn listening(builder: ClientBuilder) -> (ClientBuilder, ReceivedMessages) {
    let received = ReceivedMessages::default();
    let sink = Arc::clone(&received);
    let builder = builder.timeout(TIMEOUT).handlers(answers()).on_message(move |from, message| {
        if from == Side::Server {
            sink.lock().unwrap().push(summary(message));
        }
    });
    (builder, received)
}

fn summary(message: &Message) -> Value {
    let params = || message.params().and_then(|params| params.value().ok()).unwrap_or_default();
    match message.body() {
        Body::Request(request) => json!(["request", request.method.as_str(), params()]),
        Body::Notification(notification) => json!(["notification", notification.method.as_str(), params()]),
        Body::Response(response) => match &response.reply {
            // The result of the handshake differs by version.
            Reply::Result(result) if result.field("protocolVersion").is_some() => json!(["handshake"]),
            Reply::Result(result) => json!(["result", result.value().unwrap()]),
            Reply::Error(error) => json!(["error", error.code]),
        },
        Body::Batch(_) | Body::Garbled(_) => panic!("{message:?}"),
    }
}

/// A session with messages of the server between calls: after the handshake it requests roots, later it sends change
/// notices and log messages.
async fn converse(client: &Client) {
    // "Roots updated: …", after the response to its `roots/list`.
    client.notification("notifications/message").await.unwrap();
    client.set_log_level("debug").await.unwrap();
    client.request("resources/subscribe", json!({"uri": RESOURCE})).await.unwrap();
    client.call_tool("toggle-subscriber-updates", json!({})).await.unwrap();
    client.notification("notifications/resources/updated").await.unwrap();
    client.take_notifications();
    client.call_tool("toggle-simulated-logging", json!({})).await.unwrap();
    client.notification("notifications/message").await.unwrap();
    client.call_tool("toggle-simulated-logging", json!({})).await.unwrap();
    client.call_tool("toggle-subscriber-updates", json!({})).await.unwrap();
    client.call_tool("echo", json!({"message": "done"})).await.unwrap();
}

#[tokio::test]
async fn messages_between_calls_are_replayed_in_their_order() {
    let trace_file = TraceFile::new();
    let (node, script) = (node(), npm_server("server-everything"));
    let words = trace_file.recording([node.to_str().unwrap(), script.to_str().unwrap(), "stdio"]);
    let recorder = Client::command(&words[0]).args(&words[1..]).legacy(Revision::V2025_11_25);
    let (builder, recorded) = listening(recorder);
    let client = builder.connect().await.unwrap();
    converse(&client).await;
    client.close().await;
    trace_file.wait_until_written().await;
    let recorded = recorded.lock().unwrap().clone();
    let position =
        |what: &str| recorded.iter().position(|message| message[1] == what).unwrap_or_else(|| panic!("{what}"));
    assert!(position("roots/list") < position("notifications/resources/updated"));
    let stdio = || Client::command(rehearse()).args(["replay", "-q"]).args([trace_file.path()]);
    for revision in [Revision::V2025_11_25, Revision::V2025_06_18] {
        let (builder, received) = listening(stdio().legacy(revision));
        let client = builder.connect().await.unwrap();
        converse(&client).await;
        client.close().await;
        assert_eq!(*received.lock().unwrap(), recorded, "{revision}");
        let server = trace_file.over_http().await;
        // Over HTTP, messages that belong to no request are on the GET stream; messages on two streams have no order.
        let (builder, received) = listening(Client::url(server.url.as_str()).legacy(revision));
        let client = builder.connect().await.unwrap();
        converse(&client).await;
        client.close().await;
        let sorted = |messages: &[Value]| {
            let mut messages: Vec<String> = messages.iter().map(Value::to_string).collect();
            messages.sort();
            messages
        };
        assert_eq!(sorted(&received.lock().unwrap()), sorted(&recorded), "over HTTP, {revision}");
    }
    let server = trace_file.over_http().await;
    for builder in [stdio(), Client::url(server.url.as_str())] {
        let client = builder.timeout(TIMEOUT).modern().connect().await.unwrap();
        client.subscribe(RESOURCE).await.unwrap();
        client.call_tool("toggle-subscriber-updates", json!({})).await.unwrap();
        let notification = client.notification("notifications/resources/updated").await.unwrap();
        assert_eq!(notification.params().unwrap().value().unwrap()["uri"], RESOURCE);
        client.close().await;
    }
}
