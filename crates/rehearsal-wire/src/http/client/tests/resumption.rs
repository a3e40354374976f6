//! Streams that break before the response, and their resumption.

use std::time::{Duration, Instant};

use insta::assert_snapshot;

use super::stage::Stage;

const CALL: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"slow"}}"#;

#[tokio::test]
async fn a_stream_that_ends_early_goes_on_where_it_was() {
    let mut stage = Stage::new().await;
    let _standing = stage.begin_session("2025-11-25").await;
    stage.ask(CALL).await;
    let call = stage.arrives().await;
    let before = Instant::now();
    call.events("id: prime\ndata: \n\nretry: 30\n\n").await;
    let mut again = stage.arrives().await;
    assert!(before.elapsed() >= Duration::from_millis(30), "the client must wait as long as the server says");
    again.write("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n").await;
    let progress = "id: e1\nretry: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n";
    again.write(&format!("{:x}\r\n{progress}\r\n", progress.len())).await;
    again.write("20\r\nid: e2\ndata: {\"jsonrpc\":\"2").await;
    again.end().await; // within a chunk and an event
    stage.happens().await;
    stage.arrives().await.events("id: e2\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n\n").await;
    stage.happen(2).await;
    assert_snapshot!(stage.transcript(), @r#"
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
async fn without_an_event_id_a_lost_stream_stays_lost() {
    let mut stage = Stage::new().await;
    let _standing = stage.begin_session("2025-11-25").await;
    stage.ask(CALL).await;
    stage
        .arrives()
        .await
        .events("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\ndata: {\"js")
        .await;
    stage.happen(3).await;
    assert_snapshot!(stage.transcript(), @r#"
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
    let mut stage = Stage::new().await;
    let _standing = stage.begin_session("2024-11-05").await;
    stage.ask(CALL).await;
    stage.arrives().await.events("id: e1\ndata: \n\n").await;
    stage.happens().await;
    assert_snapshot!(stage.transcript(), @r#"
    > POST /mcp
      mcp-session-id: s1
      {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"slow"}}
    2 ended: broken: the stream ended before the answer to 7
    "#);
}

#[tokio::test]
async fn a_server_that_does_not_know_the_event_ends_the_call() {
    let mut stage = Stage::new().await;
    let _standing = stage.begin_session("2025-11-25").await;
    stage.ask(CALL).await;
    stage.arrives().await.events("id: e1\ndata: \n\n").await;
    stage.arrives().await.answer("400 Bad Request", "", "unknown event").await;
    stage.happens().await;
    assert_snapshot!(stage.transcript(), @r#"
    > POST /mcp
      mcp-protocol-version: 2025-11-25
      mcp-session-id: s1
      {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"slow"}}
    > GET /mcp
      last-event-id: e1
      mcp-protocol-version: 2025-11-25
      mcp-session-id: s1
    2 ended: broken: the stream ended before the answer to 7, and could not go on after event "e1": the server answered 400 Bad Request: unknown event
    "#);
}

#[tokio::test]
async fn failed_tries_are_counted_and_a_stream_without_news_is_not_one() {
    let mut stage = Stage::with(|options| options.tries = 2).await;
    let _standing = stage.begin_session("2025-11-25").await;
    stage.ask(CALL).await;
    stage.arrives().await.events("id: e1\ndata: \n\n").await;
    stage.arrives().await.events(": nothing new\n\n").await;
    stage.arrives().await.answer("500 Internal Server Error", "", "").await;
    stage.arrives().await.answer("500 Internal Server Error", "", "").await;
    stage.happens().await;
    assert_snapshot!(stage.transcript(), @r#"
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
    2 ended: broken: the stream ended before the answer to 7, and could not go on after event "e1": the server answered 500 Internal Server Error (2 tries)
    "#);
}

#[tokio::test]
async fn after_the_answer_nothing_is_resumed() {
    let mut stage = Stage::new().await;
    let _standing = stage.begin_session("2025-11-25").await;
    stage.ask(CALL).await;
    stage.arrives().await.events("id: e1\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n\n").await;
    stage.happen(2).await;
    assert_snapshot!(stage.transcript(), @r#"
    > POST /mcp
      mcp-protocol-version: 2025-11-25
      mcp-session-id: s1
      {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"slow"}}
    2 < 200 {"jsonrpc":"2.0","id":7,"result":{}}
    2 ended: done
    "#);
}
