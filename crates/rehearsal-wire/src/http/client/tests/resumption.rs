//! Streams that break before the response, and their resumption.

use std::time::{Duration, Instant};

use insta::assert_snapshot;

use super::fixture::Fixture;

const CALL: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"slow"}}"#;

#[tokio::test]
async fn a_stream_that_ends_early_is_resumed_after_its_last_event() {
    let mut fixture = Fixture::new().await;
    let _get_stream = fixture.begin_session("2025-11-25").await;
    fixture.send(CALL).await;
    let request = fixture.next_request().await;
    let before = Instant::now();
    request.events("id: prime\ndata: \n\nretry: 30\n\n").await;
    let mut next = fixture.next_request().await;
    assert!(before.elapsed() >= Duration::from_millis(30), "the client must wait for the `retry` of the server");
    next.write("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n").await;
    let progress = "id: e1\nretry: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n";
    next.write(&format!("{:x}\r\n{progress}\r\n", progress.len())).await;
    next.write("20\r\nid: e2\ndata: {\"jsonrpc\":\"2").await;
    next.end().await; // within a chunk and an event
    fixture.next_event().await;
    fixture.next_request().await.events("id: e2\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n\n").await;
    fixture.expect_events(2).await;
    assert_snapshot!(fixture.transcript(), @r#"
    > POST /mcp
      mcp-protocol-version: 2025-11-25
      mcp-session-id: s1
      {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"slow"}}
    > GET /mcp
      last-event-id: prime
      mcp-protocol-version: 2025-11-25
      mcp-session-id: s1
    2 < 200 {"jsonrpc":"2.0","method":"notifications/progress"}
    > GET /mcp
      last-event-id: e1
      mcp-protocol-version: 2025-11-25
      mcp-session-id: s1
    2 < 200 {"jsonrpc":"2.0","id":7,"result":{}}
    2 ended: done
    "#);
}

#[tokio::test]
async fn a_stream_without_event_ids_is_not_resumed() {
    let mut fixture = Fixture::new().await;
    let _get_stream = fixture.begin_session("2025-11-25").await;
    fixture.send(CALL).await;
    fixture
        .next_request()
        .await
        .events("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\ndata: {\"js")
        .await;
    fixture.expect_events(3).await;
    assert_snapshot!(fixture.transcript(), @r#"
    > POST /mcp
      mcp-protocol-version: 2025-11-25
      mcp-session-id: s1
      {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"slow"}}
    2 < 200 {"jsonrpc":"2.0","method":"notifications/progress"}
    2 < 200 garbled (half a line: the stream ended in the middle of a message): {"js
    2 ended: broken: the stream ended before the answer to 7
    "#);
}

#[tokio::test]
async fn a_version_without_resumption_does_not_resume() {
    let mut fixture = Fixture::new().await;
    let _get_stream = fixture.begin_session("2024-11-05").await;
    fixture.send(CALL).await;
    fixture.next_request().await.events("id: e1\ndata: \n\n").await;
    fixture.next_event().await;
    assert_snapshot!(fixture.transcript(), @r#"
    > POST /mcp
      mcp-session-id: s1
      {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"slow"}}
    2 ended: broken: the stream ended before the answer to 7
    "#);
}

#[tokio::test]
async fn an_unknown_last_event_id_ends_the_channel() {
    let mut fixture = Fixture::new().await;
    let _get_stream = fixture.begin_session("2025-11-25").await;
    fixture.send(CALL).await;
    fixture.next_request().await.events("id: e1\ndata: \n\n").await;
    fixture.next_request().await.answer("400 Bad Request", "", "unknown event").await;
    fixture.next_event().await;
    assert_snapshot!(fixture.transcript(), @r#"
    > POST /mcp
      mcp-protocol-version: 2025-11-25
      mcp-session-id: s1
      {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"slow"}}
    > GET /mcp
      last-event-id: e1
      mcp-protocol-version: 2025-11-25
      mcp-session-id: s1
    2 ended: broken: the stream ended before the answer to 7, and could not be resumed after event "e1": the server answered 400 Bad Request: unknown event
    "#);
}

#[tokio::test]
async fn only_failed_attempts_count_towards_the_limit() {
    let mut fixture = Fixture::with(|options| options.tries = 2).await;
    let _get_stream = fixture.begin_session("2025-11-25").await;
    fixture.send(CALL).await;
    fixture.next_request().await.events("id: e1\ndata: \n\n").await;
    fixture.next_request().await.events(": nothing new\n\n").await;
    fixture.next_request().await.answer("500 Internal Server Error", "", "").await;
    fixture.next_request().await.answer("500 Internal Server Error", "", "").await;
    fixture.next_event().await;
    assert_snapshot!(fixture.transcript(), @r#"
    > POST /mcp
      mcp-protocol-version: 2025-11-25
      mcp-session-id: s1
      {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"slow"}}
    > GET /mcp
      last-event-id: e1
      mcp-protocol-version: 2025-11-25
      mcp-session-id: s1
    > GET /mcp
      last-event-id: e1
      mcp-protocol-version: 2025-11-25
      mcp-session-id: s1
    > GET /mcp
      last-event-id: e1
      mcp-protocol-version: 2025-11-25
      mcp-session-id: s1
    2 ended: broken: the stream ended before the answer to 7, and could not be resumed after event "e1": the server answered 500 Internal Server Error (2 tries)
    "#);
}

#[tokio::test]
async fn a_stream_is_not_resumed_after_the_response() {
    let mut fixture = Fixture::new().await;
    let _get_stream = fixture.begin_session("2025-11-25").await;
    fixture.send(CALL).await;
    fixture.next_request().await.events("id: e1\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n\n").await;
    fixture.expect_events(2).await;
    assert_snapshot!(fixture.transcript(), @r#"
    > POST /mcp
      mcp-protocol-version: 2025-11-25
      mcp-session-id: s1
      {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"slow"}}
    2 < 200 {"jsonrpc":"2.0","id":7,"result":{}}
    2 ended: done
    "#);
}
