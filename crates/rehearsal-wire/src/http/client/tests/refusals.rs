//! Errors of one POST.

use std::time::Duration;

use insta::assert_snapshot;
use rehearsal_core::exchange::Channel;
use rehearsal_core::message::{GarbledReason, Message};

use super::fixture::Fixture;
use crate::http::client::{self, HttpClientOptions};
use crate::{Event, Outgoing, SendError};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

#[tokio::test]
async fn a_refusal_is_delivered_as_its_message_or_kept_as_a_body() {
    let mut fixture = Fixture::new().await;
    let error = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"no session"}}"#;
    let table = [
        ("404 Not Found", "content-type: application/json\r\n", error, 2),
        ("400 Bad Request", "content-type: text/plain\r\n", error, 2),
        ("401 Unauthorized", "www-authenticate: Bearer\r\n", r#"{"detail":"who are you?"}"#, 1),
        ("500 Internal Server Error", "", "<h1>oops</h1>", 1),
        ("307 Temporary Redirect", "location: /mcp/\r\n", "", 1),
        ("200 OK", "content-type: text/html\r\n", "<!doctype html>", 1),
        ("200 OK", "", "", 1),
        ("200 OK", "content-type: application/json\r\n", "", 1),
        ("202 Accepted", "", "", 1),
        ("200 OK", "content-type: application/json\r\n", "{\"hello\":", 2),
    ];
    for (status, headers, body, events) in table {
        fixture.send(PING).await;
        fixture.next_request().await.answer(status, headers, body).await;
        fixture.expect_events(events).await;
    }
    let transcript = fixture.transcript().replace(&format!("> POST /mcp\n  {PING}\n"), "");
    assert_snapshot!(transcript, @r#"
    1 < 404 {"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"no session"}}
    1 ended: done
    2 < 400 {"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"no session"}}
    2 ended: done
    3 ended: refused: the server answered 401 Unauthorized: {"detail":"who are you?"}
    4 ended: refused: the server answered 500 Internal Server Error: <h1>oops</h1>
    5 ended: refused: the server answered 307 Temporary Redirect (to /mcp/), which is not followed
    6 ended: refused: the server answered 200 OK with text/html, which is no message: <!doctype html>
    7 ended: refused: the server answered 200 OK with no content type, which is no message
    8 ended: refused: the server answered 200 OK with application/json, which is no message
    9 ended: refused: the server answered 202 Accepted with no content type, which is no message
    10 < 200 garbled (not JSON: EOF while parsing a value at line 1 column 9): {"hello":
    10 ended: done
    "#);
}

#[tokio::test]
async fn redirects_are_followed_for_the_first_request_only() {
    let mut fixture = Fixture::new().await;
    fixture.send(PING).await;
    for place in ["/here", "there/"] {
        let location = format!("location: {place}\r\n");
        fixture.next_request().await.answer("307 Temporary Redirect", &location, "on and on").await;
    }
    let pong = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    fixture.next_request().await.answer("200 OK", "content-type: application/json\r\n", pong).await;
    fixture.expect_events(2).await;
    fixture.send(PING).await;
    fixture.next_request().await.answer("308 Permanent Redirect", "location: /elsewhere\r\n", "").await;
    fixture.expect_events(1).await;
    assert_snapshot!(fixture.transcript(), @r#"
    > POST /mcp
      {"jsonrpc":"2.0","id":1,"method":"ping"}
    > POST /here
      {"jsonrpc":"2.0","id":1,"method":"ping"}
    > POST /there/
      {"jsonrpc":"2.0","id":1,"method":"ping"}
    1 < 200 {"jsonrpc":"2.0","id":1,"result":{}}
    1 ended: done
    > POST /there/
      {"jsonrpc":"2.0","id":1,"method":"ping"}
    2 ended: refused: the server answered 308 Permanent Redirect (to /elsewhere), which is not followed
    "#);
}

#[tokio::test]
async fn redirects_stay_on_the_origin_and_are_limited() {
    let mut fixture = Fixture::new().await;
    fixture.send(PING).await;
    fixture.next_request().await.answer("308 Permanent Redirect", "location: http://evil.example/mcp\r\n", "").await;
    fixture.expect_events(1).await;
    let mut circle = Fixture::new().await;
    circle.send(PING).await;
    for _ in 0..6 {
        circle.next_request().await.answer("307 Temporary Redirect", "location: /mcp\r\n", "").await;
    }
    circle.expect_events(1).await;
    assert_snapshot!(fixture.transcript() + &circle.transcript(), @r#"
    > POST /mcp
      {"jsonrpc":"2.0","id":1,"method":"ping"}
    1 ended: refused: the server answered 308 Permanent Redirect (to http://evil.example/mcp), which is not followed
    > POST /mcp
      {"jsonrpc":"2.0","id":1,"method":"ping"}
    > POST /mcp
      {"jsonrpc":"2.0","id":1,"method":"ping"}
    > POST /mcp
      {"jsonrpc":"2.0","id":1,"method":"ping"}
    > POST /mcp
      {"jsonrpc":"2.0","id":1,"method":"ping"}
    > POST /mcp
      {"jsonrpc":"2.0","id":1,"method":"ping"}
    > POST /mcp
      {"jsonrpc":"2.0","id":1,"method":"ping"}
    1 ended: refused: the server answered 307 Temporary Redirect (to /mcp), which is not followed
    "#);
}

#[tokio::test]
async fn a_failed_connection_reports_its_cause() {
    // A port that was just closed, so nothing listens on it.
    let (url, requests) = super::fixture::server().await;
    drop(requests);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    let why = |url: String| async move {
        let mut connection = client::connect(HttpClientOptions::new(&url).unwrap()).unwrap();
        let channel = connection.sender.open_channel();
        connection.sender.send(Outgoing::new(channel, Message::parse(PING))).await.unwrap();
        match connection.receiver.receive().await {
            Event::ChannelEnded { end: crate::ChannelEnd::Broken { why }, .. } => why,
            other => panic!("{other:?}"),
        }
    };
    let port = closed.rsplit(':').next().unwrap().trim_end_matches("/mcp").to_owned();
    let refused = why(closed).await.replace(&port, "[port]");
    assert_snapshot!(refused, @"cannot connect to 127.0.0.1:[port]: tcp connect error: Connection refused (os error 111)");
    // Longer than a host name may be, so no name server is queried.
    let host = "x".repeat(64);
    let unknown = why(format!("http://{host}.invalid/mcp")).await;
    assert!(unknown.starts_with(&format!("cannot connect to {host}.invalid: dns error: ")), "{unknown}");
    let cut = why(url).await;
    assert_snapshot!(cut, @"the connection broke: connection closed before message completed");
}

#[tokio::test]
async fn an_incomplete_body_is_delivered_as_a_partial_message() {
    let mut fixture = Fixture::new().await;
    fixture.send(PING).await;
    let mut request = fixture.next_request().await;
    request.write("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{\"jsonrpc\"").await;
    request.end().await;
    fixture.expect_events(2).await;
    assert_snapshot!(fixture.transcript(), @r#"
    > POST /mcp
      {"jsonrpc":"2.0","id":1,"method":"ping"}
    1 < 200 garbled (half a line: the stream ended in the middle of a message): {"jsonrpc"
    1 ended: broken: error reading a body from connection: end of file before message length reached
    "#);
}

#[tokio::test]
async fn a_message_beyond_the_limit_is_cut_and_reported() {
    let mut fixture = Fixture::with(|options| options.message_limit = 64).await;
    let long = "x".repeat(65);
    fixture.send(PING).await;
    fixture.next_request().await.json(&long).await;
    let Event::Message { message, .. } = fixture.next_event().await else { panic!("no message") };
    assert_eq!(message.as_garbled().unwrap().reason, GarbledReason::TooLong { limit: 64 });
    assert_eq!(message.raw().len(), 64);
    fixture.next_event().await;
    fixture.send(PING).await;
    fixture.next_request().await.events(&format!("data: {{}}\n\ndata: {long}")).await;
    fixture.expect_events(3).await;
    assert_snapshot!(fixture.transcript(), @r#"
    > POST /mcp
      {"jsonrpc":"2.0","id":1,"method":"ping"}
    1 < 200 garbled (longer than the limit of 64 bytes): xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx… (109 bytes)
    1 ended: broken: the response is longer than the limit of 64 bytes
    > POST /mcp
      {"jsonrpc":"2.0","id":1,"method":"ping"}
    2 < 200 garbled (no `"jsonrpc": "2.0"`): {}
    2 < 200 garbled (longer than the limit of 64 bytes): xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx… (103 bytes)
    2 ended: broken: an event of the stream is longer than the limit of 64 bytes
    "#);
    let sent = fixture.spawn_send(Channel::MAIN, &long).await.unwrap();
    assert!(matches!(sent, Err(SendError::TooLong { length: 65, limit: 64 })));
}

#[tokio::test]
async fn a_slow_reader_blocks_the_server_and_loses_nothing() {
    const MESSAGES: usize = 2000;
    let mut fixture = Fixture::new().await;
    fixture.send(PING).await;
    let mut request = fixture.next_request().await;
    request.begin_events().await;
    let flood = tokio::spawn(async move {
        let padding = "-".repeat(8 * 1024);
        for number in 0..MESSAGES {
            request.write(&format!("data: {{\"n\":{number},\"p\":\"{padding}\"}}\n\n")).await;
        }
        request.write("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n").await;
        request.end().await;
    });
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    assert!(!flood.is_finished(), "16 MB must not fit into the buffers");
    for number in 0..MESSAGES {
        let Event::Message { message, .. } = fixture.next_event().await else { panic!("no message") };
        assert!(message.text().starts_with(&format!("{{\"n\":{number},")));
    }
    let Event::Message { .. } = fixture.next_event().await else { panic!("no answer") };
    flood.await.unwrap();
}

#[tokio::test]
async fn a_notification_that_is_refused_ends_its_channel() {
    let mut fixture = Fixture::new().await;
    let channel = fixture.sender.open_channel();
    for (status, body) in [("400 Bad Request", "no"), ("400 Bad Request", r#"{"jsonrpc":"2.0","method":"why"}"#)] {
        let sending = fixture.spawn_send(channel, r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#);
        fixture.next_request().await.answer(status, "", body).await;
        sending.await.unwrap().unwrap();
        fixture.next_event().await;
    }
    fixture.next_event().await;
    assert_snapshot!(fixture.transcript(), @r#"
    > POST /mcp
      {"jsonrpc":"2.0","method":"notifications/cancelled"}
    1 ended: refused: the server answered 400 Bad Request: no
    > POST /mcp
      {"jsonrpc":"2.0","method":"notifications/cancelled"}
    1 < 400 {"jsonrpc":"2.0","method":"why"}
    1 ended: done
    "#);
}

#[tokio::test]
async fn a_notification_that_is_never_accepted_fails() {
    let mut fixture = Fixture::with(|options| options.accept_timeout = Duration::from_millis(300)).await;
    let sending = fixture.spawn_send(Channel::MAIN, r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#);
    let request = fixture.next_request().await;
    let error = sending.await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "could not write: the server did not accept the message within 300ms");
    request.disconnected().await;
}

#[tokio::test]
async fn bytes_are_posted_unchanged() {
    let mut fixture = Fixture::new().await;
    fixture.send_bytes("{\"jsonrpc\": nonsense").await;
    let error = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}"#;
    fixture.next_request().await.answer("400 Bad Request", "", error).await;
    fixture.expect_events(2).await;
    fixture.send_bytes("").await;
    fixture.next_request().await.accept().await;
    fixture.next_event().await;
    assert_snapshot!(fixture.transcript(), @r#"
    > POST /mcp
      {"jsonrpc": nonsense
    1 < 400 {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}
    1 ended: done
    > POST /mcp
    2 ended: done
    "#);
}

#[tokio::test]
async fn a_request_beyond_the_limit_waits_for_a_response() {
    let mut fixture = Fixture::with(|options| options.concurrent_requests = 1).await;
    fixture.send(PING).await;
    let first = fixture.next_request().await;
    let second = fixture.spawn_send(fixture.sender.open_channel(), r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#);
    tokio::task::yield_now().await;
    assert!(!second.is_finished());
    // A response needs no slot: the server may need it before it can send its own response.
    let sending = fixture.spawn_send(Channel::MAIN, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    fixture.next_request().await.accept().await;
    sending.await.unwrap().unwrap();
    first.json(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).await;
    second.await.unwrap().unwrap();
    fixture.next_request().await.json(r#"{"jsonrpc":"2.0","id":2,"result":{}}"#).await;
    fixture.expect_events(4).await;
    assert_snapshot!(fixture.transcript(), @r#"
    > POST /mcp
      {"jsonrpc":"2.0","id":1,"method":"ping"}
    > POST /mcp
      {"jsonrpc":"2.0","id":1,"result":{}}
    > POST /mcp
      {"jsonrpc":"2.0","id":2,"method":"ping"}
    1 < 200 {"jsonrpc":"2.0","id":1,"result":{}}
    1 ended: done
    2 < 200 {"jsonrpc":"2.0","id":2,"result":{}}
    2 ended: done
    "#);
}
