//! HTTP+SSE of 2024-11-05.

use rehearsal_core::exchange::Channel;
use serde_json::json;

use super::stage::*;
use crate::ConnectionEnd;
use crate::http::server::HttpServerOptions;

async fn listen(stage: &mut Stage) -> (Client, String, crate::Connection) {
    let mut client = stage.client().await;
    client.send(Ask::get().to("/sse")).await;
    assert!(client.answer().await.is_stream());
    let event = client.event().await.unwrap();
    let endpoint = event.strip_prefix("event: endpoint\ndata: ").unwrap().to_owned();
    let connection = stage.accept().await;
    (client, endpoint, connection)
}

#[tokio::test]
async fn everything_is_on_one_stream_and_posts_are_only_accepted() {
    let mut stage = Stage::new(HttpServerOptions::default()).await;
    let (mut client, endpoint, mut connection) = listen(&mut stage).await;
    assert!(endpoint.starts_with("/message?sessionId="), "{endpoint}");
    let ping = request(1, "ping", json!({}));
    let posted = stage.ask(Ask::post(&ping.to_string()).to(&endpoint)).await;
    assert_eq!((posted.status, posted.body.as_str()), (202, ""));
    assert_eq!(heard(&mut connection).await, (Channel::MAIN, ping));
    say(&connection, Channel::MAIN, note("first")).await;
    say(&connection, Channel::MAIN, result(1)).await;
    assert_eq!(client.event().await.unwrap(), format!("event: message\ndata: {}", note("first")));
    assert_eq!(client.data().await, result(1));
}

#[tokio::test]
async fn a_lost_stream_is_the_end() {
    let mut stage = Stage::new(HttpServerOptions::default()).await;
    let (client, endpoint, mut connection) = listen(&mut stage).await;
    drop(client);
    assert_eq!(ended(&mut connection).await, ConnectionEnd::PeerClosed);
    let ping = request(1, "ping", json!({})).to_string();
    assert_eq!(stage.ask(Ask::post(&ping).to(&endpoint)).await.refusal(), (404, -32001));
}

#[tokio::test]
async fn a_post_needs_a_stream_that_is_open() {
    let mut stage = Stage::new(HttpServerOptions::default()).await;
    let (_client, endpoint, _connection) = listen(&mut stage).await;
    let ping = request(1, "ping", json!({})).to_string();
    assert_eq!(stage.ask(Ask::post(&ping).to("/message")).await.refusal(), (400, -32000));
    assert_eq!(stage.ask(Ask::post(&ping).to("/message?sessionId=x")).await.refusal(), (404, -32001));
    let id = endpoint.split_once('=').unwrap().1;
    assert_eq!(stage.ask(Ask::post(&ping).in_session(id)).await.status, 404, "it is no session of Streamable HTTP");
    let (session, _other) = stage.session("2025-11-25").await;
    let path = format!("/message?sessionId={session}");
    assert_eq!(stage.ask(Ask::post(&ping).to(&path)).await.status, 404, "nor the other way round");
    assert_eq!(stage.ask(Ask::post("not json").to(&endpoint)).await.refusal(), (400, -32700));
    assert_eq!(stage.ask(Ask::post("[]").to(&endpoint)).await.refusal(), (400, -32600));
    assert_eq!(stage.ask(Ask::new("PUT", "/sse")).await.status, 405);
    assert_eq!(stage.ask(Ask::new("GET", "/message")).await.status, 405);
}

#[tokio::test]
async fn a_shutdown_waits_for_the_answer_and_then_closes_the_stream() {
    let mut stage = Stage::new(HttpServerOptions::default()).await;
    let (mut idle, _, mut idle_connection) = listen(&mut stage).await;
    let (mut client, endpoint, mut connection) = listen(&mut stage).await;
    let ping = request(1, "ping", json!({})).to_string();
    assert_eq!(stage.ask(Ask::post(&ping).to(&endpoint)).await.status, 202);
    heard(&mut connection).await;
    let handle = stage.server.handle();
    let shutdown = tokio::spawn(async move { handle.shutdown().await });
    assert_eq!(idle.event().await, None);
    assert_eq!(ended(&mut idle_connection).await, ConnectionEnd::Closed);
    say(&connection, Channel::MAIN, result(1)).await;
    assert_eq!(client.data().await, result(1));
    assert_eq!(client.event().await, None);
    soon(shutdown).await.unwrap();
}
