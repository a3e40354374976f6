//! The form of a response, JSON or a stream, and the behaviour of a stream.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use rehearsal_core::exchange::Channel;
use serde_json::json;

use super::fixture::*;
use crate::Outgoing;
use crate::http::server::{HttpServerOptions, ResponseMode};

#[tokio::test]
async fn the_first_message_decides_between_json_and_a_stream() {
    let mut fixture = Fixture::new(HttpServerOptions::default()).await;
    let (session, mut connection) = fixture.session("2025-06-18").await;
    let ping = request(1, "ping", json!({})).to_string();
    let mut client = fixture.client().await;
    client.send(HttpRequest::post(&ping).in_session(&session)).await;
    let (channel, _) = next_message(&mut connection).await;
    send(&connection, channel, result(1)).await;
    let answer = client.answer().await;
    assert_eq!((answer.headers["content-type"].as_str(), answer.json()), ("application/json", result(1)));

    client.send(HttpRequest::post(&ping).in_session(&session)).await;
    let (channel, _) = next_message(&mut connection).await;
    send(&connection, channel, note("wait")).await;
    send(&connection, channel, result(1)).await;
    let head = client.answer().await;
    assert!(head.is_stream());
    assert_eq!((&*head.headers["x-accel-buffering"], &*head.headers["cache-control"]), ("no", "no-cache"));
    assert_eq!(client.data().await, note("wait"));
    assert_eq!(client.data().await, result(1));
    assert_eq!(client.event().await, None);
}

#[tokio::test]
async fn a_client_gets_the_form_that_it_accepts() {
    let mut fixture = Fixture::new(HttpServerOptions::default()).await;
    let (session, mut connection) = fixture.session("2025-06-18").await;
    let ping = request(1, "ping", json!({})).to_string();
    let mut client = fixture.client().await;
    client.send(HttpRequest::post(&ping).in_session(&session).with("accept", "text/event-stream")).await;
    assert!(client.answer().await.is_stream(), "even before the first message");
    let (channel, _) = next_message(&mut connection).await;
    send(&connection, channel, result(1)).await;
    assert_eq!(client.data().await, result(1));
    assert_eq!(client.event().await, None);

    client.send(HttpRequest::post(&ping).in_session(&session).with("accept", "application/json")).await;
    let (channel, _) = next_message(&mut connection).await;
    let refused = try_send(&connection, channel, note("no room")).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "could not write: this POST is answered with JSON, which can only hold the response"
    );
    send(&connection, channel, result(1)).await;
    assert_eq!(client.answer().await.json(), result(1));

    let neither = fixture.fetch(HttpRequest::post(&ping).in_session(&session).with("accept", "text/html")).await;
    assert_eq!(neither.refusal(), (406, -32000));
    assert_eq!(
        fixture.fetch(HttpRequest::get().in_session(&session).with("accept", "application/json")).await.status,
        406
    );
    let handshake = request(1, "initialize", json!({})).to_string();
    assert_eq!(fixture.fetch(HttpRequest::post(&handshake).with("accept", "text/html")).await.status, 406);
}

#[tokio::test]
async fn the_options_can_fix_the_form_of_responses() {
    let ping = request(1, "ping", json!({})).to_string();
    for (answers, is_stream) in [(ResponseMode::Events, true), (ResponseMode::Json, false)] {
        let mut fixture = Fixture::new(HttpServerOptions { answers, ..HttpServerOptions::default() }).await;
        let (session, mut connection) = fixture.session("2025-06-18").await;
        let mut client = fixture.client().await;
        client.send(HttpRequest::post(&ping).in_session(&session)).await;
        let (channel, _) = next_message(&mut connection).await;
        send(&connection, channel, result(1)).await;
        assert_eq!(client.answer().await.is_stream(), is_stream);
    }
}

#[tokio::test]
async fn headers_and_bytes_of_the_application_reach_the_client() {
    let mut fixture = Fixture::new(HttpServerOptions::default()).await;
    let (session, mut connection) = fixture.session("2025-06-18").await;
    let ping = request(1, "ping", json!({})).to_string();
    let mut client = fixture.client().await;
    client.send(HttpRequest::post(&ping).in_session(&session)).await;
    let (channel, _) = next_message(&mut connection).await;
    let headers = HeaderMap::from_iter([("x-odd".parse().unwrap(), HeaderValue::from_static("yes"))]);
    let spaced = rehearsal_core::message::Message::parse(r#"{"result" : {}, "id":1,"jsonrpc":"2.0"}"#);
    connection.sender.send(Outgoing { channel, message: spaced.clone(), headers }).await.unwrap();
    let answer = client.answer().await;
    assert_eq!((answer.headers["x-odd"].as_str(), answer.body.as_bytes()), ("yes", &spaced.raw()[..]));

    client.send(HttpRequest::post(&ping).in_session(&session)).await;
    let (channel, _) = next_message(&mut connection).await;
    connection.sender.send_bytes(channel, Bytes::from_static(b"{\"half\":")).await.unwrap();
    assert_eq!(client.answer().await.body, "{\"half\":");
}

#[tokio::test]
async fn a_response_to_another_request_does_not_end_the_post() {
    let mut fixture = Fixture::new(HttpServerOptions::default()).await;
    let (session, mut connection) = fixture.session("2025-06-18").await;
    let ping = request(1, "ping", json!({})).to_string();
    let mut client = fixture.client().await;
    client.send(HttpRequest::post(&ping).in_session(&session)).await;
    let (channel, _) = next_message(&mut connection).await;
    send(&connection, channel, json!({"jsonrpc": "2.0", "id": "1", "result": {}})).await;
    assert!(client.answer().await.is_stream());
    assert_eq!(client.data().await["id"], "1");
    send(&connection, channel, result(1)).await;
    assert_eq!(client.data().await, result(1));
    assert_eq!(client.event().await, None);
}

#[tokio::test]
async fn a_silent_post_becomes_a_stream_with_keep_alive_comments() {
    let mut fixture =
        Fixture::new(HttpServerOptions { keep_alive: Duration::from_millis(5), ..HttpServerOptions::default() }).await;
    let (session, mut connection) = fixture.session("2025-11-25").await;
    let ping = request(1, "ping", json!({})).to_string();
    let mut client = fixture.client().await;
    client.send(HttpRequest::post(&ping).in_session(&session)).await;
    let (channel, _) = next_message(&mut connection).await;
    assert!(client.answer().await.is_stream());
    assert_eq!(client.event().await.unwrap(), format!("id: {}-0\ndata: ", channel.0));
    assert_eq!(client.event().await.unwrap(), ": keep-alive");
    assert_eq!(client.event().await.unwrap(), ": keep-alive");
    send(&connection, channel, result(1)).await;
    while let Some(event) = client.event().await {
        assert!(event == ": keep-alive" || event.ends_with(&result(1).to_string()), "{event}");
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_blocks_only_its_own_channel() {
    let mut options = HttpServerOptions::default();
    options.limits.queue = 4;
    let mut fixture = Fixture::new(options).await;
    let (session, mut connection) = fixture.session("2025-06-18").await;
    let ping = request(1, "ping", json!({})).to_string();
    let mut lazy = fixture.client().await;
    lazy.send(HttpRequest::post(&ping).in_session(&session)).await;
    let (stuck, _) = next_message(&mut connection).await;
    let flood = message(&note(&"x".repeat(1024 * 1024)));
    // The buffers of the two sockets hold some megabytes, but not this many.
    let sender = connection.sender.clone();
    let sent = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = sent.clone();
    let flooding = tokio::spawn(async move {
        for _ in 0..32 {
            sender.send(Outgoing::new(stuck, flood.clone())).await.unwrap();
            count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        }
    });

    let mut quick = fixture.client().await;
    for _ in 0..100 {
        quick.send(HttpRequest::post(&ping).in_session(&session)).await;
        let (channel, _) = next_message(&mut connection).await;
        send(&connection, channel, result(1)).await;
        assert_eq!(quick.answer().await.json(), result(1));
    }
    assert!(sent.load(std::sync::atomic::Ordering::SeqCst) < 32, "the sender of the flood waits");
    assert!(lazy.answer().await.is_stream());
    for _ in 0..32 {
        assert_eq!(lazy.data().await["method"], "notifications/message");
    }
    soon(flooding).await.unwrap();
    send(&connection, stuck, result(1)).await;
    assert_eq!(lazy.data().await, result(1));
}

#[tokio::test]
async fn responses_to_a_batch_wait_for_a_client_that_does_not_read() {
    const REQUESTS: i64 = 40;
    let mut fixture = Fixture::new(HttpServerOptions::default()).await;
    let (session, mut connection) = fixture.session("2025-03-26").await;
    let ping = request(1, "ping", json!({})).to_string();
    let batch = json!((0..REQUESTS).map(|id| request(id, "ping", json!({}))).collect::<Vec<_>>()).to_string();
    let mut lazy = fixture.client().await;
    lazy.send(HttpRequest::post(&batch).in_session(&session)).await;
    let (channel, _) = next_message(&mut connection).await;
    let answer = |id| message(&json!({"jsonrpc": "2.0", "id": id, "result": {"text": "x".repeat(1024 * 1024)}}));
    let sender = connection.sender.clone();
    let sent = std::sync::Arc::new(std::sync::atomic::AtomicI64::new(0));
    let count = sent.clone();
    let answering = tokio::spawn(async move {
        for id in 0..REQUESTS {
            sender.send(Outgoing::new(channel, answer(id))).await.unwrap();
            count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        }
    });

    let mut quick = fixture.client().await;
    for _ in 0..100 {
        quick.send(HttpRequest::post(&ping).in_session(&session)).await;
        let (channel, _) = next_message(&mut connection).await;
        send(&connection, channel, result(1)).await;
        assert_eq!(quick.answer().await.json(), result(1));
    }
    // The buffers of the two sockets hold some megabytes, but not this many.
    assert!(sent.load(std::sync::atomic::Ordering::SeqCst) < REQUESTS, "the application waits");
    assert!(lazy.answer().await.is_stream(), "this many responses are not collected for a JSON body");
    for id in 0..REQUESTS {
        assert_eq!(lazy.data().await["id"], id);
    }
    assert_eq!(lazy.event().await, None);
    soon(answering).await.unwrap();
}

#[tokio::test]
async fn shutdown_completes_active_requests_and_closes_streams() {
    let mut fixture = Fixture::new(HttpServerOptions::default()).await;
    let (session, mut connection) = fixture.session("2025-06-18").await;
    let mut listening = fixture.client().await;
    listening.send(HttpRequest::get().in_session(&session)).await;
    assert!(listening.answer().await.is_stream());
    let ping = request(1, "ping", json!({})).to_string();
    let mut client = fixture.client().await;
    client.send(HttpRequest::post(&ping).in_session(&session)).await;
    let (channel, _) = next_message(&mut connection).await;

    let handle = fixture.server.handle();
    let shutdown = tokio::spawn(async move { handle.shutdown().await });
    assert_eq!(listening.event().await, None);
    send(&connection, channel, result(1)).await;
    assert_eq!(client.answer().await.json(), result(1));
    soon(shutdown).await.unwrap();
    assert_eq!(ended(&mut connection).await, crate::ConnectionEnd::Closed);
    assert!(soon(fixture.server.accept()).await.is_none());
    assert!(tokio::net::TcpStream::connect(fixture.server.address()).await.is_err());
}

#[tokio::test]
async fn shutdown_has_a_time_limit() {
    let mut fixture =
        Fixture::new(HttpServerOptions { grace: Duration::from_millis(5), ..HttpServerOptions::default() }).await;
    let (session, mut connection) = fixture.session("2025-06-18").await;
    let ping = request(1, "ping", json!({})).to_string();
    let mut client = fixture.client().await;
    client.send(HttpRequest::post(&ping).in_session(&session)).await;
    next_message(&mut connection).await;
    soon(fixture.server.shutdown()).await;
    assert_eq!(client.answer().await.refusal(), (404, -32001));
    assert_eq!(ended(&mut connection).await, crate::ConnectionEnd::Closed);
}

#[tokio::test]
async fn the_application_can_close_a_connection() {
    let mut fixture = Fixture::new(HttpServerOptions::default()).await;
    let (session, mut connection) = fixture.session("2025-06-18").await;
    send(&connection, Channel::MAIN, note("before the close")).await;
    let mut client = fixture.client().await;
    client.send(HttpRequest::get().in_session(&session)).await;
    assert!(client.answer().await.is_stream());
    connection.sender.close().await;
    assert_eq!(client.data().await, note("before the close"));
    assert_eq!(client.event().await, None);
    assert_eq!(ended(&mut connection).await, crate::ConnectionEnd::Closed);
    assert_eq!(fixture.fetch(HttpRequest::get().in_session(&session)).await.status, 404);
}
