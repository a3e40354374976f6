//! Refusals of requests that are malformed, too large, or from a foreign origin.

use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncReadExt;

use super::fixture::*;
use crate::ConnectionEnd;
use crate::http::server::{AllowedHosts, BindError, HttpServer, HttpServerOptions};

#[tokio::test]
async fn an_invalid_message_is_refused() {
    let fixture = Fixture::new(HttpServerOptions::default()).await;
    let deep =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{}{}}}"#, "[".repeat(50_000), "]".repeat(50_000));
    let deep_meta = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"_meta":{}{}}}}}"#,
        "[".repeat(50_000),
        "]".repeat(50_000)
    );
    let table = [
        ("", -32700, json!(null)),
        ("{not json", -32700, json!(null)),
        ("\u{7}", -32700, json!(null)),
        ("3", -32600, json!(null)),
        ("[]", -32600, json!(null)),
        (r#"{"jsonrpc":"1.0","id":4,"method":"m"}"#, -32600, json!(4)),
        (r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#, -32600, json!(null)),
        (r#"{"jsonrpc":"2.0","id":"a","method":"m","params":1}"#, -32600, json!("a")),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32600, json!(1)),
        (&deep, -32000, json!(1)),
        (&deep_meta, -32000, json!(1)),
    ];
    for (body, code, id) in table {
        let answer = fixture.fetch(HttpRequest::post(body)).await;
        assert_eq!((answer.refusal(), &answer.json()["id"]), ((400, code), &id), "{:.60}", body);
    }
}

#[tokio::test]
async fn only_json_is_accepted() {
    let fixture = Fixture::new(HttpServerOptions::default()).await;
    let ping = request(1, "ping", json!({})).to_string();
    for kind in ["text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""] {
        assert_eq!(
            fixture.fetch(HttpRequest::post(&ping).with("content-type", kind)).await.refusal(),
            (415, -32000),
            "{kind}"
        );
    }
    assert_eq!(fixture.fetch(HttpRequest::post(&ping).without("content-type")).await.status, 415);
    let with_charset = HttpRequest::post(&ping).with("content-type", "Application/JSON; charset=utf-8");
    assert_eq!(fixture.fetch(with_charset).await.status, 400, "it lacks a session, but it was read");
}

#[tokio::test]
async fn a_body_that_is_too_long_is_not_read_to_its_end() {
    let mut options = HttpServerOptions::default();
    options.limits.body = 100;
    let fixture = Fixture::new(options).await;
    let mut announced = fixture.client().await;
    announced.send(HttpRequest::post("{").with("content-length", "1000000000")).await;
    assert_eq!(announced.answer().await.refusal(), (413, -32000));

    let mut chunked = fixture.client().await;
    let head = HttpRequest::post("").with("transfer-encoding", "chunked").text().replace("content-length: 0\r\n", "");
    chunked.write(&format!("{head}65\r\n{}\r\n", "x".repeat(0x65))).await;
    assert_eq!(chunked.answer().await.refusal(), (413, -32000));
}

/// Builds the head of a POST, and the first 100 kB of its 150 kB body.
fn two_thirds() -> (String, String) {
    let whole = request(1, "ping", json!({"text": "x".repeat(150_000)})).to_string();
    let http_request = HttpRequest::post(&whole[..100_000]).with("content-length", &whole.len().to_string()).text();
    (http_request, whole[100_000..].to_owned())
}

#[tokio::test]
async fn bodies_being_received_share_one_limit() {
    let mut options = HttpServerOptions::default();
    (options.limits.body, options.limits.bodies) = (200_000, 200_000);
    let fixture = Fixture::new(options).await;
    let (begin, rest) = two_thirds();
    let (mut first, mut second) = (fixture.client().await, fixture.client().await);
    first.write(&begin).await;
    // The first request must have its reservation before the second one needs its own.
    while fixture.server.registry.bodies.available_permits() == 200_000 {
        tokio::task::yield_now().await;
    }
    second.write(&begin).await;
    second.write(&rest).await;
    let small = fixture.fetch(HttpRequest::post(&request(1, "ping", json!({})).to_string())).await;
    assert_eq!(small.status, 400, "a small body does not wait; this one only lacks a session");
    first.write(&rest).await;
    assert_eq!(first.answer().await.status, 400);
    assert_eq!(second.answer().await.status, 400);
}

#[tokio::test]
async fn a_body_without_a_reservation_in_time_is_refused() {
    let mut options = HttpServerOptions::default();
    (options.limits.body, options.limits.bodies) = (200_000, 200_000);
    options.limits.bodies_wait = Duration::from_millis(20);
    let fixture = Fixture::new(options).await;
    let (begin, _) = two_thirds();
    let (mut first, mut second) = (fixture.client().await, fixture.client().await);
    first.write(&begin).await;
    while fixture.server.registry.bodies.available_permits() == 200_000 {
        tokio::task::yield_now().await;
    }
    second.write(&begin).await;
    let refused = second.answer().await;
    assert_eq!(refused.refusal(), (503, -32603));
    assert!(refused.body.contains("too many large request bodies at once"), "{}", refused.body);
}

#[tokio::test]
async fn a_head_or_body_that_takes_too_long_times_out() {
    let mut options = HttpServerOptions::default();
    options.limits.head_timeout = Duration::from_millis(300);
    options.limits.body_timeout = Duration::from_millis(20);
    let fixture = Fixture::new(options).await;
    let mut body = fixture.client().await;
    body.send(HttpRequest::post("{").with("content-length", "10")).await;
    assert_eq!(body.answer().await.refusal(), (408, -32000));
    let mut head = fixture.client().await;
    head.write("POST /mcp HTTP/1.1\r\nhost: local").await;
    let mut rest = Vec::new();
    soon(head.stream.read_to_end(&mut rest)).await.unwrap();
}

#[tokio::test]
async fn a_head_that_is_too_long_is_refused() {
    let mut options = HttpServerOptions::default();
    options.limits.head = 8192;
    let fixture = Fixture::new(options).await;
    let answer = fixture.fetch(HttpRequest::get().with("x-long", &"x".repeat(10_000))).await;
    assert_eq!(answer.status, 431);
}

#[tokio::test]
async fn foreign_hosts_and_origins_are_refused() {
    let options = HttpServerOptions {
        hosts: AllowedHosts::Named(vec!["mcp.example".to_owned()]),
        origins: AllowedHosts::Named(vec!["https://app.example".to_owned()]),
        ..HttpServerOptions::default()
    };
    let fixture = Fixture::new(options).await;
    let ping = request(1, "ping", json!({})).to_string();
    let http_request = || HttpRequest::post(&ping);
    for host in ["evil.example", "localhost.evil.example:80", "127.0.0.1.evil.example", ""] {
        assert_eq!(fixture.fetch(http_request().with("host", host)).await.refusal(), (403, -32000), "{host}");
    }
    assert_eq!(fixture.fetch(http_request().without("host")).await.status, 403);
    assert_eq!(fixture.fetch(http_request().also("host", "evil.example")).await.status, 403);
    assert_eq!(fixture.fetch(http_request().to("http://evil.example/mcp")).await.status, 403);
    for origin in ["http://evil.example", "null", "http://app.example"] {
        assert_eq!(fixture.fetch(http_request().with("origin", origin)).await.refusal(), (403, -32000), "{origin}");
    }
    for (name, value) in [
        ("host", "localhost:1234"),
        ("host", "[::1]:1234"),
        ("host", "mcp.example"),
        ("origin", "http://localhost:5173"),
        ("origin", "https://app.example"),
    ] {
        assert_eq!(
            fixture.fetch(http_request().with(name, value)).await.status,
            400,
            "{value}: it only lacks a session"
        );
    }
}

#[tokio::test]
async fn the_number_of_sessions_is_limited() {
    let mut options = HttpServerOptions::default();
    options.limits.sessions = 1;
    let mut fixture = Fixture::new(options).await;
    let (session, _connection) = fixture.session("2025-11-25").await;
    let handshake = request(1, "initialize", json!({})).to_string();
    let refused = fixture.fetch(HttpRequest::post(&handshake)).await;
    assert_eq!((refused.refusal(), refused.headers["retry-after"].as_str()), ((503, -32603), "5"));
    assert_eq!(fixture.fetch(HttpRequest::get().to("/sse")).await.status, 503);
    assert_eq!(fixture.fetch(HttpRequest::new("DELETE", "/mcp").in_session(&session)).await.status, 200);
    fixture.session("2025-11-25").await;
}

#[tokio::test]
async fn the_number_of_streams_is_limited() {
    let mut options = HttpServerOptions::default();
    options.limits.streams = 1;
    let mut fixture = Fixture::new(options).await;
    let (session, connection) = fixture.session("2025-11-25").await;
    let mut client = fixture.client().await;
    client.send(HttpRequest::get().in_session(&session)).await;
    assert_eq!(client.answer().await.status, 200);
    let ping = request(1, "ping", json!({})).to_string();
    assert_eq!(fixture.fetch(HttpRequest::post(&ping).in_session(&session)).await.refusal(), (503, -32603));
    assert_eq!(fixture.fetch(HttpRequest::post(&note("x").to_string()).in_session(&session)).await.status, 202);
    drop(connection);
}

#[tokio::test]
async fn an_idle_session_ends_unless_it_has_an_open_stream() {
    let mut fixture =
        Fixture::new(HttpServerOptions { session_idle: Duration::from_millis(300), ..HttpServerOptions::default() })
            .await;
    let (session, mut listening) = fixture.session("2025-11-25").await;
    let mut client = fixture.client().await;
    client.send(HttpRequest::get().in_session(&session)).await;
    assert!(client.answer().await.is_stream());
    let (_, mut idle) = fixture.session("2025-11-25").await;
    let ending = ended(&mut idle).await;
    assert_eq!(ending, ConnectionEnd::Failed { why: "no activity for 300ms".to_owned() });
    assert_eq!(client.event().await.unwrap(), "id: 0-0\ndata: ");
    drop(client);
    assert_eq!(ended(&mut listening).await, ending);
}

#[tokio::test]
async fn the_server_survives_invalid_bytes() {
    let fixture = Fixture::new(HttpServerOptions::default()).await;
    let junk = [
        "",
        "\r\n\r\n",
        "\u{16}\u{3}\u{1}\u{2}\u{0}hello",
        "GET\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n",
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        "GET /message?sessionId HTTP/1.1\r\nhost: localhost\r\nlast-event-id: \u{ff}\r\n\r\n",
    ];
    for text in junk {
        let mut client = fixture.client().await;
        client.write(text).await;
        drop(client);
    }
    assert_eq!(fixture.fetch(HttpRequest::new("GET", "/health")).await.status, 200);
}

#[tokio::test]
async fn the_health_path_returns_ok() {
    let fixture = Fixture::new(HttpServerOptions::default()).await;
    let answer = fixture.fetch(HttpRequest::new("GET", "/health").with("host", "10.0.0.7")).await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "ok"));
    assert_eq!(fixture.fetch(HttpRequest::new("GET", "/nothing")).await.refusal(), (404, -32000));
    assert_eq!(fixture.fetch(HttpRequest::new("PUT", "/mcp")).await.refusal(), (405, -32000));
}

#[tokio::test]
async fn the_paths_are_configurable() {
    let mut fixture =
        Fixture::new(HttpServerOptions { path: "/tools".to_owned(), ..HttpServerOptions::default() }).await;
    assert_eq!(fixture.server.url(), format!("http://127.0.0.1:{}/tools", fixture.server.address().port()));
    assert_eq!(fixture.server.sse_url(), format!("http://127.0.0.1:{}/sse", fixture.server.address().port()));
    assert_eq!(fixture.fetch(HttpRequest::get()).await.status, 404);
    assert_eq!(fixture.fetch(HttpRequest::get().to("/tools")).await.status, 400);
    let odd = HttpServer::bind(HttpServerOptions { path: "mcp".to_owned(), ..HttpServerOptions::default() }).await;
    assert!(matches!(odd, Err(BindError::Path { path }) if path == "mcp"));
    let taken =
        HttpServer::bind(HttpServerOptions { address: fixture.server.address(), ..HttpServerOptions::default() }).await;
    assert!(matches!(taken, Err(BindError::Address { .. })));
    fixture.server.shutdown().await;
    assert!(fixture.server.accept().await.is_none());
}

#[derive(Debug)]
struct Echo;

impl crate::http::server::CustomRoutes for Echo {
    fn has(&self, path: &str) -> bool {
        path.starts_with("/control/")
    }

    fn answer(&self, request: http::Request<bytes::Bytes>) -> crate::BoxFuture<'_, http::Response<bytes::Bytes>> {
        let text = format!("{} {} {:?}", request.method(), request.uri(), request.body());
        Box::pin(async { http::Response::builder().status(418).body(text.into()).unwrap() })
    }
}

#[tokio::test]
async fn custom_routes_check_host_origin_and_body_length() {
    let mut options = HttpServerOptions { routes: Some(std::sync::Arc::new(Echo)), ..HttpServerOptions::default() };
    options.limits.body = 100;
    let fixture = Fixture::new(options).await;
    let put = HttpRequest::new("PUT", "/control/x?y=1").with_body("hello");
    let answer = fixture.fetch(put.clone()).await;
    assert_eq!((answer.status, answer.body.as_str()), (418, "PUT /control/x?y=1 b\"hello\""));
    assert_eq!(fixture.fetch(put.clone().with("host", "evil.example")).await.status, 403);
    assert_eq!(fixture.fetch(put.clone().with("origin", "http://evil.example")).await.status, 403);
    let long = "x".repeat(101);
    assert_eq!(fixture.fetch(put.with_body(&long)).await.status, 413);
    assert_eq!(fixture.fetch(HttpRequest::new("GET", "/elsewhere")).await.status, 404);
}
