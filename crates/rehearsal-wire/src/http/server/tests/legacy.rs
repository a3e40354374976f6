//! Sessions of the handshake era.

use rehearsal_core::exchange::Channel;
use serde_json::json;

use super::fixture::*;
use crate::http::server::{HttpServerOptions, SessionMode};
use crate::{ConnectionEnd, SendError};

#[tokio::test]
async fn session_ids_are_unique_and_visible_ascii() {
    let mut fixture = Fixture::new(HttpServerOptions::default()).await;
    let (first, _one) = fixture.session("2025-11-25").await;
    let (second, _two) = fixture.session("2025-11-25").await;
    assert_ne!(first, second);
    assert!(first.len() >= 32 && first.bytes().all(|byte| (0x21..=0x7e).contains(&byte)), "{first}");
}

#[tokio::test]
async fn a_refused_handshake_leaves_no_session() {
    let mut fixture = Fixture::new(HttpServerOptions::default()).await;
    let mut client = fixture.client().await;
    client.send(HttpRequest::post(&request(1, "initialize", json!({})).to_string())).await;
    let mut connection = fixture.accept().await;
    let (channel, _) = next_message(&mut connection).await;
    send(&connection, channel, json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "no"}})).await;
    let answer = client.answer().await;
    assert_eq!(answer.refusal(), (200, -32602));
    assert!(!answer.headers.contains_key("mcp-session-id"));
    assert_eq!(ended(&mut connection).await, ConnectionEnd::Closed);
}

#[tokio::test]
async fn a_request_needs_a_session_that_exists() {
    let fixture = Fixture::new(HttpServerOptions::default()).await;
    let list = request(7, "tools/list", json!({})).to_string();
    let missing = fixture.fetch(HttpRequest::post(&list)).await;
    assert_eq!((missing.refusal(), &missing.json()["id"]), ((400, -32000), &json!(7)));
    let unknown = fixture.fetch(HttpRequest::post(&list).in_session("unknown")).await;
    assert_eq!((unknown.refusal(), &unknown.json()["id"]), ((404, -32001), &json!(7)));
    assert_eq!(fixture.fetch(HttpRequest::get()).await.refusal(), (400, -32000));
    assert_eq!(fixture.fetch(HttpRequest::new("DELETE", "/mcp").in_session("unknown")).await.refusal(), (404, -32001));
}

#[tokio::test]
async fn a_version_header_may_be_absent_but_not_unknown() {
    let mut fixture = Fixture::new(HttpServerOptions::default()).await;
    let (session, mut connection) = fixture.session("2025-06-18").await;
    let list = request(1, "tools/list", json!({})).to_string();
    for version in ["1900-01-01", "latest", ""] {
        let refused =
            fixture.fetch(HttpRequest::post(&list).in_session(&session).with("mcp-protocol-version", version)).await;
        assert_eq!(refused.refusal(), (400, -32000), "{version:?}");
    }
    for http_request in [HttpRequest::post(&list), HttpRequest::post(&list).with("mcp-protocol-version", "2025-06-18")]
    {
        let mut client = fixture.client().await;
        client.send(http_request.in_session(&session)).await;
        let (channel, _) = next_message(&mut connection).await;
        send(&connection, channel, result(1)).await;
        assert_eq!(client.answer().await.status, 200);
    }
}

#[tokio::test]
async fn a_notification_gets_202_and_no_body() {
    let mut fixture = Fixture::new(HttpServerOptions::default()).await;
    let (session, mut connection) = fixture.session("2025-11-25").await;
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let answer = fixture.fetch(HttpRequest::post(&notification.to_string()).in_session(&session)).await;
    assert_eq!((answer.status, answer.body.as_str()), (202, ""));
    assert_eq!(next_message(&mut connection).await, (Channel::MAIN, notification));
}

#[tokio::test]
async fn a_response_arrives_on_the_channel_of_its_server_request() {
    let mut fixture = Fixture::new(HttpServerOptions::default()).await;
    let (session, mut connection) = fixture.session("2025-11-25").await;
    let call = request(1, "tools/call", json!({"name": "ask"})).to_string();
    let mut client = fixture.client().await;
    client.send(HttpRequest::post(&call).in_session(&session)).await;
    let (channel, _) = next_message(&mut connection).await;
    let server_request = request(90, "roots/list", json!({}));
    send(&connection, channel, server_request.clone()).await;
    assert!(client.answer().await.is_stream());
    assert_eq!(client.event().await.unwrap(), format!("id: {}-0\ndata: ", channel.0), "the priming event");
    assert_eq!(client.data().await, server_request);

    let response = json!({"jsonrpc": "2.0", "id": 90, "result": {"roots": []}});
    let posted = response.to_string();
    assert_eq!(fixture.fetch(HttpRequest::post(&posted).in_session(&session)).await.status, 202);
    assert_eq!(next_message(&mut connection).await, (channel, response.clone()));
    // The server request has its response already, so this second one is delivered on the main channel.
    assert_eq!(fixture.fetch(HttpRequest::post(&posted).in_session(&session)).await.status, 202);
    assert_eq!(next_message(&mut connection).await, (Channel::MAIN, response));

    send(&connection, channel, result(1)).await;
    assert_eq!(client.data().await, result(1));
    assert_eq!(client.event().await, None);
    assert!(matches!(try_send(&connection, channel, note("late")).await, Err(SendError::NoChannel)));
}

#[tokio::test]
async fn the_get_stream_starts_with_the_messages_queued_before_it_opened() {
    let mut fixture = Fixture::new(HttpServerOptions::default()).await;
    let (session, connection) = fixture.session("2025-06-18").await;
    send(&connection, Channel::MAIN, note("early")).await;
    let mut client = fixture.client().await;
    client.send(HttpRequest::get().in_session(&session)).await;
    let head = client.answer().await;
    assert!(head.is_stream());
    assert_eq!((&*head.headers["x-accel-buffering"], &*head.headers["cache-control"]), ("no", "no-cache"));
    assert_eq!(client.event().await.unwrap(), format!("event: message\nid: 0-1\ndata: {}", note("early")));
    send(&connection, Channel::MAIN, note("later")).await;
    assert_eq!(client.data().await, note("later"));
}

#[tokio::test]
async fn messages_without_a_get_stream_are_queued_up_to_the_limit() {
    let mut options = HttpServerOptions::default();
    options.limits.queue = 2;
    let mut fixture = Fixture::new(options).await;
    let (_, connection) = fixture.session("2025-11-25").await;
    send(&connection, Channel::MAIN, note("1")).await;
    send(&connection, Channel::MAIN, note("2")).await;
    let full = try_send(&connection, Channel::MAIN, note("3")).await.unwrap_err();
    assert_eq!(full.to_string(), "could not write: no client reads from the channel, and 2 messages are queued");
}

#[tokio::test]
async fn a_second_get_stream_is_a_conflict() {
    let mut fixture = Fixture::new(HttpServerOptions::default()).await;
    let (session, connection) = fixture.session("2025-11-25").await;
    let mut first = fixture.client().await;
    first.send(HttpRequest::get().in_session(&session)).await;
    assert_eq!(first.answer().await.status, 200);
    assert_eq!(fixture.fetch(HttpRequest::get().in_session(&session)).await.refusal(), (409, -32000));
    assert_eq!(first.event().await.unwrap(), "id: 0-0\ndata: ");
    send(&connection, Channel::MAIN, note("still here")).await;
    assert_eq!(first.data().await, note("still here"));
}

#[tokio::test]
async fn delete_ends_the_session_and_its_pending_requests() {
    let mut fixture = Fixture::new(HttpServerOptions::default()).await;
    let (session, mut connection) = fixture.session("2025-11-25").await;
    let mut listening = fixture.client().await;
    listening.send(HttpRequest::get().in_session(&session)).await;
    assert!(listening.answer().await.is_stream());
    listening.event().await;
    let list = request(1, "tools/list", json!({})).to_string();
    let mut waiting = fixture.client().await;
    waiting.send(HttpRequest::post(&list).in_session(&session)).await;
    let (channel, _) = next_message(&mut connection).await;

    assert_eq!(fixture.fetch(HttpRequest::new("DELETE", "/mcp").in_session(&session)).await.status, 200);
    assert_eq!(ended(&mut connection).await, ConnectionEnd::PeerClosed);
    assert_eq!(ended(&mut connection).await, ConnectionEnd::PeerClosed, "every later call returns it too");
    assert_eq!(listening.event().await, None);
    assert_eq!(waiting.answer().await.refusal(), (404, -32001));
    assert_eq!(fixture.fetch(HttpRequest::post(&list).in_session(&session)).await.refusal(), (404, -32001));
    assert!(matches!(try_send(&connection, channel, result(1)).await, Err(SendError::Closed)));
}

#[tokio::test]
async fn a_session_that_the_application_drops_has_ended() {
    let mut fixture = Fixture::new(HttpServerOptions::default()).await;
    let (session, connection) = fixture.session("2025-11-25").await;
    drop(connection);
    assert_eq!(fixture.fetch(HttpRequest::get().in_session(&session)).await.refusal(), (404, -32001));
}

#[tokio::test]
async fn a_batch_is_one_message_and_its_responses_are_one_array() {
    let mut fixture = Fixture::new(HttpServerOptions::default()).await;
    let (session, mut connection) = fixture.session("2025-03-26").await;
    let batch = json!([request(1, "ping", json!({})), note("between"), request(2, "ping", json!({}))]);
    let text = batch.to_string();
    let mut client = fixture.client().await;
    client.send(HttpRequest::post(&text).in_session(&session)).await;
    let (channel, whole) = next_message(&mut connection).await;
    assert_eq!(whole, batch);
    send(&connection, channel, result(2)).await;
    send(&connection, channel, result(1)).await;
    let answer = client.answer().await;
    assert_eq!(answer.headers["content-type"], "application/json");
    assert_eq!(answer.json(), json!([result(2), result(1)]));

    client.send(HttpRequest::post(&text).in_session(&session)).await;
    let (channel, _) = next_message(&mut connection).await;
    send(&connection, channel, json!([result(1), result(2)])).await;
    assert_eq!(client.answer().await.json(), json!([result(1), result(2)]), "the array that the application sent");

    client.send(HttpRequest::post(&text).in_session(&session)).await;
    let (channel, _) = next_message(&mut connection).await;
    send(&connection, channel, result(1)).await;
    send(&connection, channel, note("progress")).await;
    assert!(client.answer().await.is_stream());
    assert_eq!(client.data().await, result(1));
    assert_eq!(client.data().await, note("progress"));
    send(&connection, channel, result(2)).await;
    assert_eq!(client.data().await, result(2));
    assert_eq!(client.event().await, None);

    let notification = json!([note("a"), note("b")]).to_string();
    assert_eq!(fixture.fetch(HttpRequest::post(&notification).in_session(&session)).await.status, 202);
}

#[tokio::test]
async fn only_2025_03_26_has_batches_and_they_never_contain_initialize() {
    let mut fixture = Fixture::new(HttpServerOptions::default()).await;
    let batch = json!([request(1, "ping", json!({}))]).to_string();
    for version in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let (session, _connection) = fixture.session(version).await;
        assert_eq!(
            fixture.fetch(HttpRequest::post(&batch).in_session(&session)).await.refusal(),
            (400, -32600),
            "{version}"
        );
    }
    let (session, _connection) = fixture.session("2025-03-26").await;
    let handshake = json!([request(1, "initialize", json!({}))]).to_string();
    assert_eq!(fixture.fetch(HttpRequest::post(&handshake).in_session(&session)).await.refusal(), (400, -32600));
    let garbled = r#"[{"jsonrpc":"2.0","id":5,"method":3}]"#;
    let refused = fixture.fetch(HttpRequest::post(garbled).in_session(&session)).await;
    assert_eq!((refused.refusal(), &refused.json()["id"]), ((400, -32600), &json!(5)));
}

#[tokio::test]
async fn a_version_header_does_not_enable_batches_in_a_session_without_them() {
    let mut fixture = Fixture::new(HttpServerOptions::default()).await;
    let (session, _connection) = fixture.session("2025-06-18").await;
    let batch = json!([request(1, "ping", json!({})), request(2, "ping", json!({}))]).to_string();
    let http_request = HttpRequest::post(&batch).in_session(&session).with("mcp-protocol-version", "2025-03-26");
    let refused = fixture.fetch(http_request).await;
    assert_eq!(refused.refusal(), (400, -32600));
    assert!(refused.body.contains("2025-06-18 has no batches"), "{}", refused.body);
}

#[tokio::test]
async fn without_sessions_all_requests_share_one_connection() {
    let mut fixture =
        Fixture::new(HttpServerOptions { sessions: SessionMode::Off, ..HttpServerOptions::default() }).await;
    let mut client = fixture.client().await;
    let handshake = request(1, "initialize", json!({"protocolVersion": "2025-11-25"})).to_string();
    client.send(HttpRequest::post(&handshake)).await;
    let mut connection = fixture.accept().await;
    let (first, _) = next_message(&mut connection).await;
    send(&connection, first, result(1)).await;
    assert!(!client.answer().await.headers.contains_key("mcp-session-id"));

    let call = request(1, "tools/call", json!({"name": "x"})).to_string();
    client.send(HttpRequest::post(&call).with("mcp-protocol-version", "2025-11-25")).await;
    let (second, _) = next_message(&mut connection).await;
    assert_ne!(first, second);
    send(&connection, second, note("hello")).await;
    send(&connection, second, result(1)).await;
    assert!(client.answer().await.is_stream());
    let event = client.event().await.unwrap();
    assert_eq!(event, format!("event: message\ndata: {}", note("hello")), "without an id the stream cannot be resumed");

    assert_eq!(fixture.fetch(HttpRequest::get()).await.refusal(), (405, -32000));
    assert_eq!(fixture.fetch(HttpRequest::new("DELETE", "/mcp")).await.status, 405);
}
