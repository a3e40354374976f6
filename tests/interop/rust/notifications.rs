//! What a real server says and asks between calls comes again where it came.

use std::sync::{Arc, Mutex};

use rehearsal::Client;
use rehearsal::client::ClientBuilder;
use rehearsal::core::exchange::Side;
use rehearsal::core::message::{Body, Message, Reply};
use rehearsal::core::protocol::Revision;
use serde_json::{Value, json};

use crate::installation::{TIMEOUT, node, npm_server};
use crate::mocked::rehearse;
use crate::replayed::{Tape, answers};

const RESOURCE: &str = "demo://resource/dynamic/text/1";

/// Everything that a server said, in order, without what belongs to one conversation.
type Heard = Arc<Mutex<Vec<Value>>>;

fn listening(builder: ClientBuilder) -> (ClientBuilder, Heard) {
    let heard = Heard::default();
    let hears = Arc::clone(&heard);
    let builder = builder.timeout(TIMEOUT).handlers(answers()).on_message(move |from, message| {
        if from == Side::Server {
            hears.lock().unwrap().push(said(message));
        }
    });
    (builder, heard)
}

fn said(message: &Message) -> Value {
    let params = || message.params().and_then(|params| params.value().ok()).unwrap_or_default();
    match message.body() {
        Body::Request(request) => json!(["asks", request.method.as_str(), params()]),
        Body::Notification(told) => json!(["tells", told.method.as_str(), params()]),
        Body::Response(response) => match &response.reply {
            // What the handshake settles differs.
            Reply::Result(result) if result.field("protocolVersion").is_some() => json!(["greets"]),
            Reply::Result(result) => json!(["answers", result.value().unwrap()]),
            Reply::Error(error) => json!(["refuses", error.code]),
        },
        Body::Batch(_) | Body::Garbled(_) => panic!("{message:?}"),
    }
}

/// A conversation in which the server has something to say between calls: after the handshake it asks for roots, then it
/// tells what has changed and what happens.
async fn converse(client: &Client) {
    // "Roots updated: …", after it has asked.
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
async fn what_is_said_and_asked_between_calls_comes_again_in_its_order() {
    let tape = Tape::new();
    let (node, script) = (node(), npm_server("server-everything"));
    let words = tape.recording([node.to_str().unwrap(), script.to_str().unwrap(), "stdio"]);
    let recorder = Client::command(&words[0]).args(&words[1..]).legacy(Revision::V2025_11_25);
    let (builder, recorded) = listening(recorder);
    let client = builder.connect().await.unwrap();
    converse(&client).await;
    client.close().await;
    tape.written().await;
    let recorded = recorded.lock().unwrap().clone();
    let position = |what: &str| recorded.iter().position(|said| said[1] == what).unwrap_or_else(|| panic!("{what}"));
    assert!(position("roots/list") < position("notifications/resources/updated"));
    let stdio = || Client::command(rehearse()).args(["replay", "-q"]).args([tape.path()]);
    for revision in [Revision::V2025_11_25, Revision::V2025_06_18] {
        let (builder, heard) = listening(stdio().legacy(revision));
        let client = builder.connect().await.unwrap();
        converse(&client).await;
        client.close().await;
        assert_eq!(*heard.lock().unwrap(), recorded, "{revision}");
        let server = tape.over_http().await;
        // Over HTTP there is a stream for what belongs to no request; what comes on two streams has no order.
        let (builder, heard) = listening(Client::url(server.url.as_str()).legacy(revision));
        let client = builder.connect().await.unwrap();
        converse(&client).await;
        client.close().await;
        let sorted = |said: &[Value]| {
            let mut said: Vec<String> = said.iter().map(Value::to_string).collect();
            said.sort();
            said
        };
        assert_eq!(sorted(&heard.lock().unwrap()), sorted(&recorded), "over HTTP, {revision}");
    }
    let server = tape.over_http().await;
    for builder in [stdio(), Client::url(server.url.as_str())] {
        let client = builder.timeout(TIMEOUT).modern().connect().await.unwrap();
        client.subscribe(RESOURCE).await.unwrap();
        client.call_tool("toggle-subscriber-updates", json!({})).await.unwrap();
        let told = client.notification("notifications/resources/updated").await.unwrap();
        assert_eq!(told.params().unwrap().value().unwrap()["uri"], RESOURCE);
        client.close().await;
    }
}
