//! The form of a response, JSON or a stream, and the behaviour of a stream.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use rehearsal_core::exchange::Channel;
use serde_json::json;

use super::stage::*;
use crate::Outgoing;
use crate::http::server::{HttpServerOptions, ResponseMode};

#[tokio::test]
async fn the_first_thing_said_decides_between_json_and_a_stream() {
    let mut stage = Stage::new(HttpServerOptions::default()).await;
    let (session, mut connection) = stage.session("2025-06-18").await;
    let ping = request(1, "ping", json!({})).to_string();
    let mut client = stage.client().await;
    client.send(Ask::post(&ping).in_session(&session)).await;
    let (channel, _) = heard(&mut connection).await;
    say(&connection, channel, result(1)).await;
    let answer = client.answer().await;
    assert_eq!((answer.headers["content-type"].as_str(), answer.json()), ("application/json", result(1)));

    client.send(Ask::post(&ping).in_session(&session)).await;
    let (channel, _) = heard(&mut connection).await;
    say(&connection, channel, note("wait")).await;
    say(&connection, channel, result(1)).await;
    let head = client.answer().await;
    assert!(head.is_stream());
    assert_eq!((&*head.headers["x-accel-buffering"], &*head.headers["cache-control"]), ("no", "no-cache"));
    assert_eq!(client.data().await, note("wait"));
    assert_eq!(client.data().await, result(1));
    assert_eq!(client.event().await, None);
}

#[tokio::test]
async fn a_client_gets_the_form_that_it_takes() {
    let mut stage = Stage::new(HttpServerOptions::default()).await;
    let (session, mut connection) = stage.session("2025-06-18").await;
    let ping = request(1, "ping", json!({})).to_string();
    let mut client = stage.client().await;
    client.send(Ask::post(&ping).in_session(&session).with("accept", "text/event-stream")).await;
    assert!(client.answer().await.is_stream(), "even before anything is said");
    let (channel, _) = heard(&mut connection).await;
    say(&connection, channel, result(1)).await;
    assert_eq!(client.data().await, result(1));
    assert_eq!(client.event().await, None);

    client.send(Ask::post(&ping).in_session(&session).with("accept", "application/json")).await;
    let (channel, _) = heard(&mut connection).await;
    let refused = try_say(&connection, channel, note("no room")).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "could not write: this POST is answered with JSON, which has room for the answer alone"
    );
    say(&connection, channel, result(1)).await;
    assert_eq!(client.answer().await.json(), result(1));

    let neither = stage.ask(Ask::post(&ping).in_session(&session).with("accept", "text/html")).await;
    assert_eq!(neither.refusal(), (406, -32000));
    assert_eq!(stage.ask(Ask::get().in_session(&session).with("accept", "application/json")).await.status, 406);
    let handshake = request(1, "initialize", json!({})).to_string();
    assert_eq!(stage.ask(Ask::post(&handshake).with("accept", "text/html")).await.status, 406);
}

#[tokio::test]
async fn the_form_can_be_forced() {
    let ping = request(1, "ping", json!({})).to_string();
    for (answers, is_stream) in [(ResponseMode::Events, true), (ResponseMode::Json, false)] {
        let mut stage = Stage::new(HttpServerOptions { answers, ..HttpServerOptions::default() }).await;
        let (session, mut connection) = stage.session("2025-06-18").await;
        let mut client = stage.client().await;
        client.send(Ask::post(&ping).in_session(&session)).await;
        let (channel, _) = heard(&mut connection).await;
        say(&connection, channel, result(1)).await;
        assert_eq!(client.answer().await.is_stream(), is_stream);
    }
}

#[tokio::test]
async fn headers_and_bytes_of_the_application_reach_the_client() {
    let mut stage = Stage::new(HttpServerOptions::default()).await;
    let (session, mut connection) = stage.session("2025-06-18").await;
    let ping = request(1, "ping", json!({})).to_string();
    let mut client = stage.client().await;
    client.send(Ask::post(&ping).in_session(&session)).await;
    let (channel, _) = heard(&mut connection).await;
    let headers = HeaderMap::from_iter([("x-odd".parse().unwrap(), HeaderValue::from_static("yes"))]);
    let spaced = rehearsal_core::message::Message::parse(r#"{"result" : {}, "id":1,"jsonrpc":"2.0"}"#);
    connection.sender.send(Outgoing { channel, message: spaced.clone(), headers }).await.unwrap();
    let answer = client.answer().await;
    assert_eq!((answer.headers["x-odd"].as_str(), answer.body.as_bytes()), ("yes", &spaced.raw()[..]));

    client.send(Ask::post(&ping).in_session(&session)).await;
    let (channel, _) = heard(&mut connection).await;
    connection.sender.send_bytes(channel, Bytes::from_static(b"{\"half\":")).await.unwrap();
    assert_eq!(client.answer().await.body, "{\"half\":");
}

#[tokio::test]
async fn an_answer_to_another_request_does_not_end_the_post() {
    let mut stage = Stage::new(HttpServerOptions::default()).await;
    let (session, mut connection) = stage.session("2025-06-18").await;
    let ping = request(1, "ping", json!({})).to_string();
    let mut client = stage.client().await;
    client.send(Ask::post(&ping).in_session(&session)).await;
    let (channel, _) = heard(&mut connection).await;
    say(&connection, channel, json!({"jsonrpc": "2.0", "id": "1", "result": {}})).await;
    assert!(client.answer().await.is_stream());
    assert_eq!(client.data().await["id"], "1");
    say(&connection, channel, result(1)).await;
    assert_eq!(client.data().await, result(1));
    assert_eq!(client.event().await, None);
}

#[tokio::test]
async fn a_long_silence_becomes_a_stream_that_shows_it_lives() {
    let mut stage =
        Stage::new(HttpServerOptions { keep_alive: Duration::from_millis(5), ..HttpServerOptions::default() }).await;
    let (session, mut connection) = stage.session("2025-11-25").await;
    let ping = request(1, "ping", json!({})).to_string();
    let mut client = stage.client().await;
    client.send(Ask::post(&ping).in_session(&session)).await;
    let (channel, _) = heard(&mut connection).await;
    assert!(client.answer().await.is_stream());
    assert_eq!(client.event().await.unwrap(), format!("id: {}-0\ndata: ", channel.0));
    assert_eq!(client.event().await.unwrap(), ": keep-alive");
    assert_eq!(client.event().await.unwrap(), ": keep-alive");
    say(&connection, channel, result(1)).await;
    while let Some(event) = client.event().await {
        assert!(event == ": keep-alive" || event.ends_with(&result(1).to_string()), "{event}");
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_makes_only_its_own_channel_wait() {
    let mut options = HttpServerOptions::default();
    options.limits.queue = 4;
    let mut stage = Stage::new(options).await;
    let (session, mut connection) = stage.session("2025-06-18").await;
    let ping = request(1, "ping", json!({})).to_string();
    let mut lazy = stage.client().await;
    lazy.send(Ask::post(&ping).in_session(&session)).await;
    let (stuck, _) = heard(&mut connection).await;
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

    let mut quick = stage.client().await;
    for _ in 0..100 {
        quick.send(Ask::post(&ping).in_session(&session)).await;
        let (channel, _) = heard(&mut connection).await;
        say(&connection, channel, result(1)).await;
        assert_eq!(quick.answer().await.json(), result(1));
    }
    assert!(sent.load(std::sync::atomic::Ordering::SeqCst) < 32, "the flood waits");
    assert!(lazy.answer().await.is_stream());
    for _ in 0..32 {
        assert_eq!(lazy.data().await["method"], "notifications/message");
    }
    soon(flooding).await.unwrap();
    say(&connection, stuck, result(1)).await;
    assert_eq!(lazy.data().await, result(1));
}

#[tokio::test]
async fn answers_to_a_batch_wait_for_a_client_that_does_not_read() {
    const REQUESTS: i64 = 40;
    let mut stage = Stage::new(HttpServerOptions::default()).await;
    let (session, mut connection) = stage.session("2025-03-26").await;
    let ping = request(1, "ping", json!({})).to_string();
    let batch = json!((0..REQUESTS).map(|id| request(id, "ping", json!({}))).collect::<Vec<_>>()).to_string();
    let mut lazy = stage.client().await;
    lazy.send(Ask::post(&batch).in_session(&session)).await;
    let (channel, _) = heard(&mut connection).await;
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

    let mut quick = stage.client().await;
    for _ in 0..100 {
        quick.send(Ask::post(&ping).in_session(&session)).await;
        let (channel, _) = heard(&mut connection).await;
        say(&connection, channel, result(1)).await;
        assert_eq!(quick.answer().await.json(), result(1));
    }
    // The buffers of the two sockets hold some megabytes, but not this many.
    assert!(sent.load(std::sync::atomic::Ordering::SeqCst) < REQUESTS, "the application waits");
    assert!(lazy.answer().await.is_stream(), "so many answers are not gathered for a body of JSON");
    for id in 0..REQUESTS {
        assert_eq!(lazy.data().await["id"], id);
    }
    assert_eq!(lazy.event().await, None);
    soon(answering).await.unwrap();
}

#[tokio::test]
async fn a_shutdown_lets_what_runs_finish_and_closes_what_never_ends() {
    let mut stage = Stage::new(HttpServerOptions::default()).await;
    let (session, mut connection) = stage.session("2025-06-18").await;
    let mut listening = stage.client().await;
    listening.send(Ask::get().in_session(&session)).await;
    assert!(listening.answer().await.is_stream());
    let ping = request(1, "ping", json!({})).to_string();
    let mut client = stage.client().await;
    client.send(Ask::post(&ping).in_session(&session)).await;
    let (channel, _) = heard(&mut connection).await;

    let handle = stage.server.handle();
    let shutdown = tokio::spawn(async move { handle.shutdown().await });
    assert_eq!(listening.event().await, None);
    say(&connection, channel, result(1)).await;
    assert_eq!(client.answer().await.json(), result(1));
    soon(shutdown).await.unwrap();
    assert_eq!(ended(&mut connection).await, crate::ConnectionEnd::Closed);
    assert!(soon(stage.server.accept()).await.is_none());
    assert!(tokio::net::TcpStream::connect(stage.server.address()).await.is_err());
}

#[tokio::test]
async fn a_shutdown_does_not_wait_for_ever() {
    let mut stage =
        Stage::new(HttpServerOptions { grace: Duration::from_millis(5), ..HttpServerOptions::default() }).await;
    let (session, mut connection) = stage.session("2025-06-18").await;
    let ping = request(1, "ping", json!({})).to_string();
    let mut client = stage.client().await;
    client.send(Ask::post(&ping).in_session(&session)).await;
    heard(&mut connection).await;
    soon(stage.server.shutdown()).await;
    assert_eq!(client.answer().await.refusal(), (404, -32001));
    assert_eq!(ended(&mut connection).await, crate::ConnectionEnd::Closed);
}

#[tokio::test]
async fn the_application_can_end_a_conversation() {
    let mut stage = Stage::new(HttpServerOptions::default()).await;
    let (session, mut connection) = stage.session("2025-06-18").await;
    say(&connection, Channel::MAIN, note("last words")).await;
    let mut client = stage.client().await;
    client.send(Ask::get().in_session(&session)).await;
    assert!(client.answer().await.is_stream());
    connection.sender.close().await;
    assert_eq!(client.data().await, note("last words"));
    assert_eq!(client.event().await, None);
    assert_eq!(ended(&mut connection).await, crate::ConnectionEnd::Closed);
    assert_eq!(stage.ask(Ask::get().in_session(&session)).await.status, 404);
}
