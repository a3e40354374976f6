//! Requests of 2026-07-28.

use std::sync::Arc;

use rehearsal_core::protocol::Revision;
use serde_json::{Value, json};

use super::stage::*;
use crate::http::server::HttpServerOptions;
use crate::{ChannelEnd, Event, SendError};

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

fn modern(id: i64, method: &str, mut params: Value) -> String {
    params["_meta"] = json!({VERSION: "2026-07-28", CAPABILITIES: {}});
    request(id, method, params).to_string()
}

fn post<'a>(body: &'a str, method: &str) -> Ask<'a> {
    Ask::post(body).with("mcp-protocol-version", "2026-07-28").with("mcp-method", method)
}

#[tokio::test]
async fn all_clients_share_one_connection_and_each_post_is_a_channel() {
    let mut stage = Stage::new(HttpServerOptions::default()).await;
    let list = modern(1, "tools/list", json!({}));
    let (mut one, mut two) = (stage.client().await, stage.client().await);
    one.send(post(&list, "tools/list").with("mcp-session-id", "ignored")).await;
    let mut connection = stage.accept().await;
    let (first, _) = heard(&mut connection).await;
    two.send(post(&list, "tools/list")).await;
    let (second, _) = heard(&mut connection).await;
    assert_ne!(first, second);
    say(&connection, second, json!({"jsonrpc": "2.0", "id": 1, "result": {"for": "two"}})).await;
    say(&connection, first, json!({"jsonrpc": "2.0", "id": 1, "result": {"for": "one"}})).await;
    assert_eq!(two.answer().await.json()["result"]["for"], "two");
    let answer = one.answer().await;
    assert_eq!(answer.json()["result"]["for"], "one");
    assert!(!answer.headers.contains_key("mcp-session-id"));
}

#[tokio::test]
async fn every_rung_of_the_ladder_refuses_in_its_own_way() {
    let stage = Stage::new(HttpServerOptions::default()).await;
    let list = modern(1, "tools/list", json!({}));
    let call = modern(1, "tools/call", json!({"name": "run"}));
    let without = |key: &str| {
        let mut value: Value = serde_json::from_str(&list).unwrap();
        value["params"]["_meta"].as_object_mut().unwrap().remove(key);
        value.to_string()
    };
    let with = |key: &str, other: Value| {
        let mut value: Value = serde_json::from_str(&list).unwrap();
        value["params"]["_meta"][key] = other;
        value.to_string()
    };
    let (no_capabilities, no_claim) = (without(CAPABILITIES), without(VERSION));
    let (list_capabilities, number_version) = (with(CAPABILITIES, json!([])), with(VERSION, json!(1)));
    let (future, past) = (with(VERSION, json!("2099-01-01")), with(VERSION, json!("2025-11-25")));
    let table = [
        ("capabilities are required", post(&no_capabilities, "tools/list"), -32602),
        ("capabilities are an object", post(&list_capabilities, "tools/list"), -32602),
        ("the version is a string", post(&number_version, "tools/list"), -32602),
        ("the header alone is no claim", post(&no_claim, "tools/list"), -32602),
        (
            "nor is a header of the future",
            post(&no_claim, "tools/list").with("mcp-protocol-version", "2099-01-01"),
            -32602,
        ),
        ("a version header", post(&list, "tools/list").without("mcp-protocol-version"), -32020),
        ("only one", post(&list, "tools/list").also("mcp-protocol-version", "2026-07-28"), -32020),
        ("the same version", post(&list, "tools/list").with("mcp-protocol-version", "2025-11-25"), -32020),
        ("a method header", post(&list, "tools/list").without("mcp-method"), -32020),
        ("the same method", post(&list, "tools/call"), -32020),
        ("a name header", post(&call, "tools/call"), -32020),
        ("the same name", post(&call, "tools/call").with("mcp-name", "walk"), -32020),
        ("a version to come", post(&future, "tools/list").with("mcp-protocol-version", "2099-01-01"), -32022),
        ("a version of sessions", post(&past, "tools/list").with("mcp-protocol-version", "2025-11-25"), -32022),
    ];
    for (what, ask, code) in table {
        let answer = stage.ask(ask).await;
        assert_eq!((answer.refusal(), &answer.json()["id"]), ((400, code), &json!(1)), "{what}");
    }
    let missing = stage.ask(post(&no_capabilities, "tools/list")).await.json();
    assert_eq!(missing["error"]["message"], format!("Invalid params: _meta lacks {CAPABILITIES}"));
    let future = stage.ask(post(&future, "tools/list").with("mcp-protocol-version", "2099-01-01")).await.json();
    assert_eq!(future["error"]["data"], json!({"supported": ["2026-07-28"], "requested": "2099-01-01"}));
}

#[tokio::test]
async fn headers_of_arguments_are_checked_where_the_schema_is_known() {
    let schema = Arc::new(json!({"properties": {"city": {"type": "string", "x-mcp-header": "City"}}}));
    let schema_of = move |tool: &str| (tool == "weather").then(|| schema.clone());
    let mut stage =
        Stage::new(HttpServerOptions { tool_schema: Some(Arc::new(schema_of)), ..HttpServerOptions::default() }).await;
    let call = modern(1, "tools/call", json!({"name": "weather", "arguments": {"city": "Oslo"}}));
    let ask = || post(&call, "tools/call").with("mcp-name", "weather");
    assert_eq!(stage.ask(ask()).await.refusal(), (400, -32020));
    assert_eq!(stage.ask(ask().with("mcp-param-city", "Bergen")).await.refusal(), (400, -32020));
    let mut client = stage.client().await;
    client.send(ask().with("mcp-param-city", "Oslo")).await;
    let mut connection = stage.accept().await;
    let (channel, _) = heard(&mut connection).await;
    say(&connection, channel, result(1)).await;
    assert_eq!(client.answer().await.status, 200);
}

#[tokio::test]
async fn some_errors_of_the_application_have_a_status() {
    let mut stage = Stage::new(HttpServerOptions::default()).await;
    let body = modern(1, "odd/method", json!({}));
    let mut client = stage.client().await;
    client.send(post(&body, "odd/method")).await;
    let mut connection = stage.accept().await;
    let table = [(-32601, 404), (-32020, 400), (-32021, 400), (-32022, 400), (-32602, 200), (-32603, 200), (-1, 200)];
    for (code, status) in table {
        let (channel, _) = heard(&mut connection).await;
        let error = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "no"}});
        say(&connection, channel, error).await;
        assert_eq!(client.answer().await.refusal(), (status, code));
        client.send(post(&body, "odd/method")).await;
    }
}

#[tokio::test]
async fn initialize_with_a_claim_is_a_request_like_any_other() {
    let mut stage = Stage::new(HttpServerOptions::default()).await;
    let body = modern(1, "initialize", json!({}));
    let mut client = stage.client().await;
    client.send(post(&body, "initialize")).await;
    let mut connection = stage.accept().await;
    let (channel, _) = heard(&mut connection).await;
    let error = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no"}});
    say(&connection, channel, error).await;
    let answer = client.answer().await;
    assert_eq!(answer.refusal(), (404, -32601));
    assert!(!answer.headers.contains_key("mcp-session-id"));
}

#[tokio::test]
async fn a_client_that_goes_away_cancels() {
    let mut stage = Stage::new(HttpServerOptions::default()).await;
    let call = modern(1, "tools/call", json!({"name": "slow"}));
    let ask = || post(&call, "tools/call").with("mcp-name", "slow");
    let mut silent = stage.client().await;
    silent.send(ask()).await;
    let mut connection = stage.accept().await;
    let (first, _) = heard(&mut connection).await;
    drop(silent);
    let told = soon(connection.receiver.receive()).await;
    assert!(matches!(told, Event::ChannelEnded { channel, end: ChannelEnd::Broken { .. } } if channel == first));
    assert!(matches!(try_say(&connection, first, result(1)).await, Err(SendError::NoChannel)));

    let mut streaming = stage.client().await;
    streaming.send(ask()).await;
    let (second, _) = heard(&mut connection).await;
    say(&connection, second, note("working")).await;
    assert!(streaming.answer().await.is_stream());
    drop(streaming);
    let told = soon(connection.receiver.receive()).await;
    assert!(matches!(told, Event::ChannelEnded { channel, end: ChannelEnd::Broken { .. } } if channel == second));
}

#[tokio::test]
async fn a_channel_that_the_application_closes_is_a_stream_without_an_answer() {
    let mut stage = Stage::new(HttpServerOptions::default()).await;
    let body = modern(1, "subscriptions/listen", json!({}));
    let mut client = stage.client().await;
    client.send(post(&body, "subscriptions/listen")).await;
    let mut connection = stage.accept().await;
    let (channel, _) = heard(&mut connection).await;
    say(&connection, channel, note("subscribed")).await;
    connection.sender.close_channel(channel);
    assert!(client.answer().await.is_stream());
    assert_eq!(client.data().await, note("subscribed"));
    assert_eq!(client.event().await, None);
    assert!(matches!(try_say(&connection, channel, note("late")).await, Err(SendError::NoChannel)));

    client.send(post(&body, "subscriptions/listen")).await;
    let (channel, _) = heard(&mut connection).await;
    connection.sender.close_channel(channel);
    assert!(client.answer().await.is_stream());
    assert_eq!(client.event().await, None);
}

#[tokio::test]
async fn a_notification_is_accepted_by_its_header_alone() {
    let mut stage = Stage::new(HttpServerOptions::default()).await;
    let told = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    let text = told.to_string();
    let answer = stage.ask(Ask::post(&text).with("mcp-protocol-version", "2026-07-28")).await;
    assert_eq!(answer.status, 202);
    let mut connection = stage.accept().await;
    assert_eq!(heard(&mut connection).await.1, told);
    let response = result(1).to_string();
    let refused = stage.ask(Ask::post(&response).with("mcp-protocol-version", "2026-07-28")).await;
    assert_eq!(refused.refusal(), (400, -32600), "nobody asked");
}

#[tokio::test]
async fn get_and_delete_mean_nothing_to_it() {
    let stage = Stage::new(HttpServerOptions::default()).await;
    for method in ["GET", "DELETE"] {
        let ask = Ask::new(method, "/mcp").with("mcp-protocol-version", "2026-07-28");
        let answer = stage.ask(ask).await;
        assert_eq!(answer.refusal(), (405, -32000));
        assert_eq!(answer.headers["allow"], "POST");
    }
}

#[tokio::test]
async fn a_server_of_the_stateless_era_alone_names_its_versions() {
    let stage =
        Stage::new(HttpServerOptions { revisions: vec![Revision::V2026_07_28], ..HttpServerOptions::default() }).await;
    let handshake = request(1, "initialize", json!({"protocolVersion": "2025-11-25"})).to_string();
    let answer = stage.ask(Ask::post(&handshake)).await;
    assert_eq!(answer.refusal(), (400, -32022));
    assert_eq!(answer.json()["error"]["data"], json!({"supported": ["2026-07-28"], "requested": "2025-11-25"}));
    let list = request(1, "tools/list", json!({})).to_string();
    assert_eq!(stage.ask(Ask::post(&list)).await.refusal(), (400, -32602));
    assert_eq!(stage.ask(Ask::post(&note("x").to_string())).await.refusal(), (400, -32600));
    assert_eq!(stage.ask(Ask::get()).await.status, 405);
    assert_eq!(stage.ask(Ask::get().to("/sse")).await.status, 404);
}

#[tokio::test]
async fn a_server_of_the_handshake_era_alone_knows_nothing_of_claims() {
    let revisions = vec![Revision::V2025_06_18, Revision::V2025_11_25];
    let mut stage = Stage::new(HttpServerOptions { revisions, ..HttpServerOptions::default() }).await;
    let list = modern(1, "tools/list", json!({}));
    assert_eq!(stage.ask(post(&list, "tools/list")).await.refusal(), (400, -32000), "no code of the stateless era");
    let (session, _connection) = stage.session("2025-11-25").await;
    let refused = stage.ask(post(&list, "tools/list").in_session(&session)).await;
    assert_eq!(refused.refusal(), (400, -32000));
    assert_eq!(stage.ask(Ask::get().to("/sse")).await.status, 404);
}
