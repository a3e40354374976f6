//! Requests of 2026-07-28.

use std::sync::Arc;

use rehearsal_core::protocol::Revision;
use serde_json::{Value, json};

use super::fixture::*;
use crate::http::server::HttpServerOptions;
use crate::{ChannelEnd, Event, SendError};

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

fn modern(id: i64, method: &str, mut params: Value) -> String {
    params["_meta"] = json!({VERSION: "2026-07-28", CAPABILITIES: {}});
    request(id, method, params).to_string()
}

fn post<'a>(body: &'a str, method: &str) -> HttpRequest<'a> {
    HttpRequest::post(body).with("mcp-protocol-version", "2026-07-28").with("mcp-method", method)
}

#[tokio::test]
async fn all_clients_share_one_connection_and_each_post_is_a_channel() {
    let mut fixture = Fixture::new(HttpServerOptions::default()).await;
    let list = modern(1, "tools/list", json!({}));
    let (mut one, mut two) = (fixture.client().await, fixture.client().await);
    one.send(post(&list, "tools/list").with("mcp-session-id", "ignored")).await;
    let mut connection = fixture.accept().await;
    let (first, _) = next_message(&mut connection).await;
    two.send(post(&list, "tools/list")).await;
    let (second, _) = next_message(&mut connection).await;
    assert_ne!(first, second);
    send(&connection, second, json!({"jsonrpc": "2.0", "id": 1, "result": {"for": "two"}})).await;
    send(&connection, first, json!({"jsonrpc": "2.0", "id": 1, "result": {"for": "one"}})).await;
    assert_eq!(two.answer().await.json()["result"]["for"], "two");
    let answer = one.answer().await;
    assert_eq!(answer.json()["result"]["for"], "one");
    assert!(!answer.headers.contains_key("mcp-session-id"));
}

#[tokio::test]
async fn every_invalid_modern_request_gets_its_own_error_code() {
    let fixture = Fixture::new(HttpServerOptions::default()).await;
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
        ("capabilities are missing", post(&no_capabilities, "tools/list"), -32602),
        ("capabilities are not an object", post(&list_capabilities, "tools/list"), -32602),
        ("the version is not a string", post(&number_version, "tools/list"), -32602),
        ("the version is only in the header", post(&no_claim, "tools/list"), -32602),
        (
            "an unknown version is only in the header",
            post(&no_claim, "tools/list").with("mcp-protocol-version", "2099-01-01"),
            -32602,
        ),
        ("no version header", post(&list, "tools/list").without("mcp-protocol-version"), -32020),
        ("two version headers", post(&list, "tools/list").also("mcp-protocol-version", "2026-07-28"), -32020),
        ("another version in the header", post(&list, "tools/list").with("mcp-protocol-version", "2025-11-25"), -32020),
        ("no method header", post(&list, "tools/list").without("mcp-method"), -32020),
        ("another method in the header", post(&list, "tools/call"), -32020),
        ("no name header", post(&call, "tools/call"), -32020),
        ("another name in the header", post(&call, "tools/call").with("mcp-name", "walk"), -32020),
        ("an unknown version", post(&future, "tools/list").with("mcp-protocol-version", "2099-01-01"), -32022),
        ("a legacy version", post(&past, "tools/list").with("mcp-protocol-version", "2025-11-25"), -32022),
    ];
    for (what, http_request, code) in table {
        let answer = fixture.fetch(http_request).await;
        assert_eq!((answer.refusal(), &answer.json()["id"]), ((400, code), &json!(1)), "{what}");
    }
    let missing = fixture.fetch(post(&no_capabilities, "tools/list")).await.json();
    assert_eq!(missing["error"]["message"], format!("Invalid params: _meta lacks {CAPABILITIES}"));
    let future = fixture.fetch(post(&future, "tools/list").with("mcp-protocol-version", "2099-01-01")).await.json();
    assert_eq!(future["error"]["data"], json!({"supported": ["2026-07-28"], "requested": "2099-01-01"}));
}

#[tokio::test]
async fn argument_headers_are_checked_if_the_schema_is_known() {
    let schema = Arc::new(json!({"properties": {"city": {"type": "string", "x-mcp-header": "City"}}}));
    let schema_of = move |tool: &str| (tool == "weather").then(|| schema.clone());
    let mut fixture =
        Fixture::new(HttpServerOptions { tool_schema: Some(Arc::new(schema_of)), ..HttpServerOptions::default() })
            .await;
    let call = modern(1, "tools/call", json!({"name": "weather", "arguments": {"city": "Oslo"}}));
    let http_request = || post(&call, "tools/call").with("mcp-name", "weather");
    assert_eq!(fixture.fetch(http_request()).await.refusal(), (400, -32020));
    assert_eq!(fixture.fetch(http_request().with("mcp-param-city", "Bergen")).await.refusal(), (400, -32020));
    let mut client = fixture.client().await;
    client.send(http_request().with("mcp-param-city", "Oslo")).await;
    let mut connection = fixture.accept().await;
    let (channel, _) = next_message(&mut connection).await;
    send(&connection, channel, result(1)).await;
    assert_eq!(client.answer().await.status, 200);
}

#[tokio::test]
async fn some_modern_errors_have_their_own_http_status() {
    let mut fixture = Fixture::new(HttpServerOptions::default()).await;
    let body = modern(1, "odd/method", json!({}));
    let mut client = fixture.client().await;
    client.send(post(&body, "odd/method")).await;
    let mut connection = fixture.accept().await;
    let table = [(-32601, 404), (-32020, 400), (-32021, 400), (-32022, 400), (-32602, 200), (-32603, 200), (-1, 200)];
    for (code, status) in table {
        let (channel, _) = next_message(&mut connection).await;
        let error = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "no"}});
        send(&connection, channel, error).await;
        assert_eq!(client.answer().await.refusal(), (status, code));
        client.send(post(&body, "odd/method")).await;
    }
}

#[tokio::test]
async fn initialize_with_a_modern_version_creates_no_session() {
    let mut fixture = Fixture::new(HttpServerOptions::default()).await;
    let body = modern(1, "initialize", json!({}));
    let mut client = fixture.client().await;
    client.send(post(&body, "initialize")).await;
    let mut connection = fixture.accept().await;
    let (channel, _) = next_message(&mut connection).await;
    let error = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no"}});
    send(&connection, channel, error).await;
    let answer = client.answer().await;
    assert_eq!(answer.refusal(), (404, -32601));
    assert!(!answer.headers.contains_key("mcp-session-id"));
}

#[tokio::test]
async fn a_modern_client_that_disconnects_cancels_its_request() {
    let mut fixture = Fixture::new(HttpServerOptions::default()).await;
    let call = modern(1, "tools/call", json!({"name": "slow"}));
    let http_request = || post(&call, "tools/call").with("mcp-name", "slow");
    let mut silent = fixture.client().await;
    silent.send(http_request()).await;
    let mut connection = fixture.accept().await;
    let (first, _) = next_message(&mut connection).await;
    drop(silent);
    let notification = soon(connection.receiver.receive()).await;
    assert!(
        matches!(notification, Event::ChannelEnded { channel, end: ChannelEnd::Broken { .. } } if channel == first)
    );
    assert!(matches!(try_send(&connection, first, result(1)).await, Err(SendError::NoChannel)));

    let mut streaming = fixture.client().await;
    streaming.send(http_request()).await;
    let (second, _) = next_message(&mut connection).await;
    send(&connection, second, note("working")).await;
    assert!(streaming.answer().await.is_stream());
    drop(streaming);
    let notification = soon(connection.receiver.receive()).await;
    assert!(
        matches!(notification, Event::ChannelEnded { channel, end: ChannelEnd::Broken { .. } } if channel == second)
    );
}

#[tokio::test]
async fn a_channel_closed_by_the_application_ends_its_stream_without_a_response() {
    let mut fixture = Fixture::new(HttpServerOptions::default()).await;
    let body = modern(1, "subscriptions/listen", json!({}));
    let mut client = fixture.client().await;
    client.send(post(&body, "subscriptions/listen")).await;
    let mut connection = fixture.accept().await;
    let (channel, _) = next_message(&mut connection).await;
    send(&connection, channel, note("subscribed")).await;
    connection.sender.close_channel(channel);
    assert!(client.answer().await.is_stream());
    assert_eq!(client.data().await, note("subscribed"));
    assert_eq!(client.event().await, None);
    assert!(matches!(try_send(&connection, channel, note("late")).await, Err(SendError::NoChannel)));

    client.send(post(&body, "subscriptions/listen")).await;
    let (channel, _) = next_message(&mut connection).await;
    connection.sender.close_channel(channel);
    assert!(client.answer().await.is_stream());
    assert_eq!(client.event().await, None);
}

#[tokio::test]
async fn a_notification_is_accepted_by_its_header_alone() {
    let mut fixture = Fixture::new(HttpServerOptions::default()).await;
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    let text = notification.to_string();
    let answer = fixture.fetch(HttpRequest::post(&text).with("mcp-protocol-version", "2026-07-28")).await;
    assert_eq!(answer.status, 202);
    let mut connection = fixture.accept().await;
    assert_eq!(next_message(&mut connection).await.1, notification);
    let response = result(1).to_string();
    let refused = fixture.fetch(HttpRequest::post(&response).with("mcp-protocol-version", "2026-07-28")).await;
    assert_eq!(refused.refusal(), (400, -32600), "there is no server request");
}

#[tokio::test]
async fn a_modern_get_or_delete_is_refused() {
    let fixture = Fixture::new(HttpServerOptions::default()).await;
    for method in ["GET", "DELETE"] {
        let http_request = HttpRequest::new(method, "/mcp").with("mcp-protocol-version", "2026-07-28");
        let answer = fixture.fetch(http_request).await;
        assert_eq!(answer.refusal(), (405, -32000));
        assert_eq!(answer.headers["allow"], "POST");
    }
}

#[tokio::test]
async fn a_modern_server_reports_its_versions_to_legacy_clients() {
    let fixture =
        Fixture::new(HttpServerOptions { revisions: vec![Revision::V2026_07_28], ..HttpServerOptions::default() })
            .await;
    let handshake = request(1, "initialize", json!({"protocolVersion": "2025-11-25"})).to_string();
    let answer = fixture.fetch(HttpRequest::post(&handshake)).await;
    assert_eq!(answer.refusal(), (400, -32022));
    assert_eq!(answer.json()["error"]["data"], json!({"supported": ["2026-07-28"], "requested": "2025-11-25"}));
    let list = request(1, "tools/list", json!({})).to_string();
    assert_eq!(fixture.fetch(HttpRequest::post(&list)).await.refusal(), (400, -32602));
    assert_eq!(fixture.fetch(HttpRequest::post(&note("x").to_string())).await.refusal(), (400, -32600));
    assert_eq!(fixture.fetch(HttpRequest::get()).await.status, 405);
    assert_eq!(fixture.fetch(HttpRequest::get().to("/sse")).await.status, 404);
}

#[tokio::test]
async fn a_legacy_server_ignores_the_version_in_meta() {
    let revisions = vec![Revision::V2025_06_18, Revision::V2025_11_25];
    let mut fixture = Fixture::new(HttpServerOptions { revisions, ..HttpServerOptions::default() }).await;
    let list = modern(1, "tools/list", json!({}));
    assert_eq!(fixture.fetch(post(&list, "tools/list")).await.refusal(), (400, -32000), "no code of the stateless era");
    let (session, _connection) = fixture.session("2025-11-25").await;
    let refused = fixture.fetch(post(&list, "tools/list").in_session(&session)).await;
    assert_eq!(refused.refusal(), (400, -32000));
    assert_eq!(fixture.fetch(HttpRequest::get().to("/sse")).await.status, 404);
}
