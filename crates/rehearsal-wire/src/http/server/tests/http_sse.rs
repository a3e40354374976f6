//! HTTP+SSE of 2024-11-05.

use rehearsal_core::exchange::Channel;
use serde_json::json;

use super::fixture::*;
use crate::ConnectionEnd;
use crate::http::server::HttpServerOptions;

async fn listen(fixture: &mut Fixture) -> (Client, String, crate::Connection) {
    let mut client = fixture.client().await;
    client.send(HttpRequest::get().to("/sse")).await;
    assert!(client.answer().await.is_stream());
    let event = client.event().await.unwrap();
    let endpoint = event.strip_prefix("event: endpoint\ndata: ").unwrap().to_owned();
    let connection = fixture.accept().await;
    (client, endpoint, connection)
}

#[tokio::test]
async fn http_sse_sends_every_message_on_its_one_stream() {
    let mut fixture = Fixture::new(HttpServerOptions::default()).await;
    let (mut client, endpoint, mut connection) = listen(&mut fixture).await;
    assert!(endpoint.starts_with("/message?sessionId="), "{endpoint}");
    let ping = request(1, "ping", json!({}));
    let posted = fixture.fetch(HttpRequest::post(&ping.to_string()).to(&endpoint)).await;
    assert_eq!((posted.status, posted.body.as_str()), (202, ""));
    assert_eq!(next_message(&mut connection).await, (Channel::MAIN, ping));
    send(&connection, Channel::MAIN, note("first")).await;
    send(&connection, Channel::MAIN, result(1)).await;
    assert_eq!(client.event().await.unwrap(), format!("event: message\ndata: {}", note("first")));
    assert_eq!(client.data().await, result(1));
}

#[tokio::test]
async fn a_lost_http_sse_stream_ends_the_connection() {
    let mut fixture = Fixture::new(HttpServerOptions::default()).await;
    let (client, endpoint, mut connection) = listen(&mut fixture).await;
    drop(client);
    assert_eq!(ended(&mut connection).await, ConnectionEnd::PeerClosed);
    let ping = request(1, "ping", json!({})).to_string();
    assert_eq!(fixture.fetch(HttpRequest::post(&ping).to(&endpoint)).await.refusal(), (404, -32001));
}

#[tokio::test]
async fn an_http_sse_post_needs_an_open_stream() {
    let mut fixture = Fixture::new(HttpServerOptions::default()).await;
    let (_client, endpoint, _connection) = listen(&mut fixture).await;
    let ping = request(1, "ping", json!({})).to_string();
    assert_eq!(fixture.fetch(HttpRequest::post(&ping).to("/message")).await.refusal(), (400, -32000));
    assert_eq!(fixture.fetch(HttpRequest::post(&ping).to("/message?sessionId=x")).await.refusal(), (404, -32001));
    let id = endpoint.split_once('=').unwrap().1;
    assert_eq!(
        fixture.fetch(HttpRequest::post(&ping).in_session(id)).await.status,
        404,
        "it is no session of Streamable HTTP"
    );
    let (session, _other) = fixture.session("2025-11-25").await;
    let path = format!("/message?sessionId={session}");
    assert_eq!(fixture.fetch(HttpRequest::post(&ping).to(&path)).await.status, 404, "it is no HTTP+SSE session");
    assert_eq!(fixture.fetch(HttpRequest::post("not json").to(&endpoint)).await.refusal(), (400, -32700));
    assert_eq!(fixture.fetch(HttpRequest::post("[]").to(&endpoint)).await.refusal(), (400, -32600));
    assert_eq!(fixture.fetch(HttpRequest::new("PUT", "/sse")).await.status, 405);
    assert_eq!(fixture.fetch(HttpRequest::new("GET", "/message")).await.status, 405);
}

#[tokio::test]
async fn shutdown_waits_for_the_response_and_closes_the_stream() {
    let mut fixture = Fixture::new(HttpServerOptions::default()).await;
    let (mut idle, _, mut idle_connection) = listen(&mut fixture).await;
    let (mut client, endpoint, mut connection) = listen(&mut fixture).await;
    let ping = request(1, "ping", json!({})).to_string();
    assert_eq!(fixture.fetch(HttpRequest::post(&ping).to(&endpoint)).await.status, 202);
    next_message(&mut connection).await;
    let handle = fixture.server.handle();
    let shutdown = tokio::spawn(async move { handle.shutdown().await });
    assert_eq!(idle.event().await, None);
    assert_eq!(ended(&mut idle_connection).await, ConnectionEnd::Closed);
    send(&connection, Channel::MAIN, result(1)).await;
    assert_eq!(client.data().await, result(1));
    assert_eq!(client.event().await, None);
    soon(shutdown).await.unwrap();
}
