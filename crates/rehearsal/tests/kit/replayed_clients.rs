//! Several clients of one replay.

use rehearsal::Client;
use rehearsal::client::Protocol;
use rehearsal::core::protocol::Revision;
use rehearsal::replay::{Replay, ReplayOptions, SessionFilter};
use rehearsal::serve::{http_options, serve_http};
use rehearsal::wire::http::server::HttpServer;
use serde_json::json;

use crate::replays::client;
use crate::transcript::{replay, session};

/// A session with two equal calls, and a change notice during a ping.
const TWICE: &str = r#"
> {"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
< {"id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}
> {"id":1,"method":"ping"}
< {"method":"notifications/tools/list_changed"}
< {"id":1,"result":{}}
> {"id":2,"method":"tools/call","params":{"name":"count"}}
< {"id":2,"result":{"content":[{"type":"text","text":"one"}]}}
> {"id":3,"method":"tools/call","params":{"name":"count"}}
< {"id":3,"result":{"content":[{"type":"text","text":"two"}]}}
"#;

/// Serves a replay over HTTP; returns its URL.
async fn listening(replay: &Replay) -> String {
    let server = replay.server();
    let listener = HttpServer::bind(http_options(&server)).await.unwrap();
    let url = listener.url();
    tokio::spawn(async move { serve_http(&server, listener, std::future::pending::<()>()).await });
    url
}

async fn count(client: &Client) -> String {
    let counted = client.call_tool("count", json!({})).await.unwrap().into_result().unwrap();
    counted["content"][0]["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn each_http_session_gets_the_recorded_answers_from_the_first_on() {
    let replay = replay(&[session("a", TWICE)], ReplayOptions::default());
    let url = listening(&replay).await;
    let connect = |protocol| Client::url(url.clone()).protocol(protocol).connect();
    let (first, second) = (
        connect(Protocol::Legacy(Revision::V2025_11_25)).await.unwrap(),
        connect(Protocol::Legacy(Revision::V2025_06_18)).await.unwrap(),
    );
    assert_eq!([count(&first).await, count(&second).await], ["one", "one"]);
    assert_eq!([count(&first).await, count(&second).await, count(&first).await], ["two", "two", "two"]);
    // A request without a session cannot be attributed to a client.
    let (first, second) = (connect(Protocol::Modern).await.unwrap(), connect(Protocol::Modern).await.unwrap());
    assert_eq!([count(&first).await, count(&second).await], ["one", "two"]);
    assert_eq!(replay.ledger().unwrap().unused, 0);
}

#[tokio::test]
async fn concurrent_clients_get_a_recorded_session_each() {
    let other = TWICE.replace("one", "three").replace("two", "four");
    let replay = replay(&[session("a", TWICE), session("b", &other)], ReplayOptions::default());
    let url = listening(&replay).await;
    let connect = || Client::url(url.clone()).protocol(Protocol::Legacy(Revision::V2025_11_25)).connect();
    let clients = [connect().await.unwrap(), connect().await.unwrap(), connect().await.unwrap()];
    let mut counts = Vec::new();
    for client in clients.iter().chain(&clients) {
        counts.push(count(client).await);
    }
    assert_eq!(counts, ["one", "three", "one", "two", "four", "two"]);
    assert_eq!(replay.ledger().unwrap().unused, 0);
}

/// A request with an expired HTTP session.
const EXPIRED: &str = r#"{"type":"start","format":2,"session_id":"b"}
{"type":"request","session_id":"b","seq":0,"at_ms":0,"from":"client","channel":1,"id":1,"method":"tools/call","params":{"name":"count"}}
{"type":"http","session_id":"b","seq":1,"at_ms":1,"from":"server","channel":1,"http":{"status":404,"headers":[["content-type","application/json"]]}}
{"type":"response","session_id":"b","seq":2,"at_ms":2,"from":"server","channel":1,"id":1,"error":{"code":-32001,"message":"Session not found"}}
"#;

#[tokio::test]
async fn a_recorded_http_session_refusal_answers_no_client() {
    let replay =
        replay(&[EXPIRED.to_owned(), session("a", TWICE), EXPIRED.replace("\"b\"", "\"c\"")], ReplayOptions::default());
    for _ in 0..3 {
        let client = client(&replay).legacy(Revision::V2025_11_25).connect().await.unwrap();
        assert_eq!([count(&client).await, count(&client).await], ["one", "two"]);
    }
    assert_eq!(replay.ledger().unwrap().unused, 0);
}

/// A session of a client with a server: a handshake, and one request with this method.
fn client_session(client: &str, server: &str, method: &str) -> String {
    let params =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": client, "version": "1"}});
    let result =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": server, "version": "1"}});
    let transcript = format!(
        r#"
        > {{"id":0,"method":"initialize","params":{params}}}
        < {{"id":0,"result":{result}}}
        > {{"id":1,"method":"{method}","params":{{"name":"same"}}}}
        < {{"id":1,"result":{{"content":[],"messages":[]}}}}
        "#
    );
    session(client, &transcript)
}

#[tokio::test]
async fn an_answer_names_the_server_that_sent_it() {
    let sessions = [client_session("desktop", "one", "tools/call"), client_session("phone", "two", "tools/call")];
    let replay = replay(&sessions, ReplayOptions::default());
    let client = client(&replay).modern().connect().await.unwrap();
    for server in ["one", "two", "two"] {
        let result = client.call_tool("same", json!({})).await.unwrap().into_result().unwrap();
        assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], server);
    }
}

#[tokio::test]
async fn a_replay_declares_the_capabilities_of_the_selected_sessions() {
    let without_handshake = |session: String| {
        let lines = session.lines().filter(|line| !line.contains("\"id\":0,"));
        lines.map(|line| format!("{line}\n")).collect::<String>()
    };
    let sessions =
        [client_session("a", "one", "tools/call"), client_session("b", "two", "prompts/get")].map(without_handshake);
    let chosen = SessionFilter { id: Some("b".to_owned()), ..SessionFilter::default() };
    let all = [(ReplayOptions::default(), json!({"tools": {}, "prompts": {}}))];
    let one = (ReplayOptions { sessions: chosen, ..ReplayOptions::default() }, json!({"prompts": {}}));
    for (options, expected) in all.into_iter().chain([one]) {
        let client = client(&replay(&sessions, options)).connect().await.unwrap();
        assert_eq!(*client.server_capabilities(), expected);
    }
}

#[tokio::test]
async fn a_recorded_discovery_is_replayed_verbatim() {
    let result = r#"{"resultType":"complete","supportedVersions":["2026-07-28","2025-11-25"],"capabilities":{"tools":{}},"ttlMs":5000,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}"#;
    let transcript = format!(
        "> {{\"id\":1,\"method\":\"server/discover\",\"params\":{{META}}}}\n< {{\"id\":1,\"result\":{result}}}"
    );
    let replay = replay(&[session("a", &transcript)], ReplayOptions::default());
    let modern = client(&replay).modern().connect().await.unwrap();
    let discovered = modern.request("server/discover", json!({})).await.unwrap().into_result().unwrap();
    assert_eq!(discovered, serde_json::from_str::<serde_json::Value>(result).unwrap());
    let legacy = client(&replay).legacy(Revision::V2025_11_25).connect().await.unwrap();
    assert_eq!(legacy.server_info()["name"], "s");
}

#[tokio::test]
async fn a_list_ends_before_its_first_unrecorded_page() {
    let transcript = r#"
        > {"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
        < {"id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}
        > {"id":1,"method":"tools/list"}
        < {"id":1,"result":{"tools":[{"name":"a","inputSchema":{"type":"object"}}],"nextCursor":"c1"}}
    "#;
    let replay = replay(&[session("a", transcript)], ReplayOptions::default());
    for protocol in [Protocol::Legacy(Revision::V2025_11_25), Protocol::Modern] {
        let client = client(&replay).protocol(protocol).connect().await.unwrap();
        let names: Vec<_> = client.list_tools().await.unwrap().into_iter().map(|tool| tool.name).collect();
        assert_eq!(names, ["a"]);
        let other = client.request("tools/list", json!({"cursor": "c2"})).await.unwrap();
        assert!(other.error().is_some(), "the cursor is unknown: {other:?}");
    }
}

#[tokio::test]
async fn a_replay_of_several_sessions_declares_the_capabilities_of_all() {
    let of = |id: &str, capabilities: &str| {
        let transcript = r#"
            > {"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
            < {"id":0,"result":{"protocolVersion":"2025-11-25","capabilities":HERE,"serverInfo":{"name":"s","version":"1"}}}
        "#;
        session(id, &transcript.replace("HERE", capabilities))
    };
    let sessions =
        [of("a", r#"{"tools":{"listChanged":false}}"#), of("b", r#"{"tools":{"listChanged":true},"prompts":{}}"#)];
    let client =
        client(&replay(&sessions, ReplayOptions::default())).legacy(Revision::V2025_11_25).connect().await.unwrap();
    assert_eq!(*client.server_capabilities(), json!({"tools": {"listChanged": true}, "prompts": {}}));
}

#[tokio::test]
async fn a_refusal_contains_no_secret() {
    let transcript = r#"
        > {"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
        < {"id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}
        > {"id":1,"method":"tools/call","params":{"name":"login","arguments":{"user":"ada","password":"[redacted:76214d0c]"}}}
        < {"id":1,"result":{"content":[]}}
    "#;
    let client = client(&replay(&[session("a", transcript)], ReplayOptions::default())).connect().await.unwrap();
    let refused = client.call_tool("login", json!({"user": "bob", "password": "hunter2secret"})).await.unwrap();
    let text = String::from_utf8_lossy(refused.bytes()).into_owned();
    assert!(text.contains("bob") && !text.contains("hunter2secret"), "{text}");
}
