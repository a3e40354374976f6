//! The handshake era: session, version, GET stream, responses to server requests.

use insta::assert_snapshot;
use rehearsal_core::exchange::Channel;

use super::fixture::Fixture;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

#[tokio::test]
async fn a_session_is_started_used_and_deleted() {
    let mut fixture = Fixture::new().await;
    fixture.send(INITIALIZE).await;
    let request = fixture.next_request().await;
    assert_eq!(request.header("accept"), Some("application/json, text/event-stream"));
    assert_eq!(request.header("content-type"), Some("application/json"));
    let answer = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18"}}"#;
    request.answer("200 OK", "Content-Type: application/json; charset=utf-8\r\nMcp-Session-Id: s1\r\n", answer).await;
    fixture.expect_events(2).await;

    let sending = fixture.spawn_send(Channel::MAIN, INITIALIZED);
    fixture.next_request().await.accept().await;
    let mut get_stream = fixture.next_request().await;
    assert_eq!(get_stream.header("accept"), Some("text/event-stream"));
    get_stream.begin_events().await;
    sending.await.unwrap().unwrap();
    get_stream.write("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n").await;
    fixture.next_event().await;

    fixture.send(LIST).await;
    fixture.next_request().await.json(r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#).await;
    fixture.expect_events(2).await;

    let sender = std::sync::Arc::clone(&fixture.sender);
    let closing = tokio::spawn(async move { sender.close().await });
    fixture.next_request().await.answer("405 Method Not Allowed", "", "").await;
    closing.await.unwrap();
    get_stream.disconnected().await;
    fixture.next_event().await;
    fixture.next_event().await;
    assert!(fixture.spawn_send(Channel::MAIN, INITIALIZED).await.unwrap().is_err());
    assert_snapshot!(fixture.transcript(), @r#"
    > POST /mcp
      {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}
    1 < 200 {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18"}}
    1 ended: done
    > POST /mcp
      mcp-protocol-version: 2025-06-18
      mcp-session-id: s1
      {"jsonrpc":"2.0","method":"notifications/initialized"}
    > GET /mcp
      mcp-protocol-version: 2025-06-18
      mcp-session-id: s1
    0 < 200 {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
    > POST /mcp
      mcp-protocol-version: 2025-06-18
      mcp-session-id: s1
      {"jsonrpc":"2.0","id":1,"method":"tools/list"}
    2 < 200 {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}
    2 ended: done
    > DELETE /mcp
      mcp-protocol-version: 2025-06-18
      mcp-session-id: s1
    the server was closed by us
    the server was closed by us
    "#);
}

#[tokio::test]
async fn a_server_without_a_get_stream_is_no_error() {
    let mut fixture = Fixture::new().await;
    fixture.send(INITIALIZE).await;
    fixture.next_request().await.json(r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-03-26"}}"#).await;
    fixture.expect_events(2).await;
    let sending = fixture.spawn_send(Channel::MAIN, INITIALIZED);
    fixture.next_request().await.accept().await;
    fixture.next_request().await.answer("501 Not Implemented", "", "no").await;
    sending.await.unwrap().unwrap();
    fixture.send(LIST).await;
    fixture.next_request().await.json(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).await;
    fixture.expect_events(2).await;
    fixture.sender.close().await;
    fixture.next_event().await;
    assert_snapshot!(fixture.transcript(), @r#"
    > POST /mcp
      {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}
    1 < 200 {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-03-26"}}
    1 ended: done
    > POST /mcp
      {"jsonrpc":"2.0","method":"notifications/initialized"}
    > GET /mcp
    > POST /mcp
      {"jsonrpc":"2.0","id":1,"method":"tools/list"}
    2 < 200 {"jsonrpc":"2.0","id":1,"result":{}}
    2 ended: done
    the server was closed by us
    "#);
}

#[tokio::test]
async fn the_get_stream_is_resumed_after_its_last_event() {
    let mut fixture = Fixture::new().await;
    let mut get_stream = fixture.begin_session("2025-11-25").await;
    get_stream.write("id: a\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"first\"}\n\nid: b\ndata: {\"json").await;
    get_stream.end().await;
    fixture.next_event().await;
    let next = fixture.next_request().await;
    next.events("id: b\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"second\"}\n\n").await;
    fixture.next_event().await;
    fixture.next_request().await.answer("503 Service Unavailable", "", "").await;
    fixture.next_request().await.answer("404 Not Found", "", "session is over").await;
    fixture.next_event().await;
    assert_snapshot!(fixture.transcript(), @r#"
    0 < 200 {"jsonrpc":"2.0","method":"first"}
    > GET /mcp
      last-event-id: a
      mcp-protocol-version: 2025-11-25
      mcp-session-id: s1
    0 < 200 {"jsonrpc":"2.0","method":"second"}
    > GET /mcp
      last-event-id: b
      mcp-protocol-version: 2025-11-25
      mcp-session-id: s1
    > GET /mcp
      last-event-id: b
      mcp-protocol-version: 2025-11-25
      mcp-session-id: s1
    0 ended: refused: the server answered 404 Not Found: session is over
    "#);
}

#[tokio::test]
async fn the_client_stops_resuming_a_get_stream_that_only_breaks() {
    let mut fixture = Fixture::with(|options| options.tries = 2).await;
    fixture.begin_session("2025-11-25").await.end().await;
    fixture.next_request().await.end().await;
    fixture.next_request().await.events("").await;
    fixture.next_event().await;
    assert_snapshot!(fixture.transcript(), @r#"
    > GET /mcp
      mcp-protocol-version: 2025-11-25
      mcp-session-id: s1
    > GET /mcp
      mcp-protocol-version: 2025-11-25
      mcp-session-id: s1
    0 ended: broken: the GET stream: it ended without an event (2 tries)
    "#);
}

#[tokio::test]
async fn the_response_to_a_server_request_is_its_own_post() {
    let mut fixture = Fixture::new().await;
    let _get_stream = fixture.begin_session("2025-11-25").await;
    let channel = fixture.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask"}}"#).await;
    let mut request = fixture.next_request().await;
    request.begin_events().await;
    request.write("event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"roots/list\"}\n\n").await;
    fixture.next_event().await;
    let sending = fixture.spawn_send(channel, r#"{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}"#);
    fixture.next_request().await.accept().await;
    sending.await.unwrap().unwrap();
    // The refusal fails only this response: the stream that carried the server request continues.
    let sending = fixture.spawn_send(channel, r#"{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}"#);
    fixture.next_request().await.answer("400 Bad Request", "", "answered already").await;
    let refused = sending.await.unwrap().unwrap_err();
    fixture.add_line(refused);
    request.write("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n").await;
    request.end().await;
    fixture.expect_events(2).await;
    assert_snapshot!(fixture.transcript(), @r#"
    > POST /mcp
      mcp-protocol-version: 2025-11-25
      mcp-session-id: s1
      {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask"}}
    2 < 200 {"jsonrpc":"2.0","id":1,"method":"roots/list"}
    > POST /mcp
      mcp-protocol-version: 2025-11-25
      mcp-session-id: s1
      {"jsonrpc":"2.0","id":1,"result":{"roots":[]}}
    > POST /mcp
      mcp-protocol-version: 2025-11-25
      mcp-session-id: s1
      {"jsonrpc":"2.0","id":1,"result":{"roots":[]}}
    could not write: the server answered 400 Bad Request: answered already
    2 < 200 {"jsonrpc":"2.0","id":1,"result":{}}
    2 ended: done
    "#);
}

#[tokio::test]
async fn a_notification_is_accepted_before_the_next_request_is_sent() {
    let mut fixture = Fixture::new().await;
    let _get_stream = fixture.begin_session("2025-11-25").await;
    let sender = std::sync::Arc::clone(&fixture.sender);
    let talk = tokio::spawn(async move {
        for text in [r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#, LIST] {
            let message = rehearsal_core::message::Message::parse(text);
            sender.send(crate::Outgoing::new(sender.open_channel(), message)).await.unwrap();
        }
    });
    let first = fixture.next_request().await;
    fixture.expect_no_request().await;
    first.accept().await;
    fixture.next_request().await.json(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).await;
    talk.await.unwrap();
    fixture.expect_events(2).await;
    assert_snapshot!(fixture.transcript(), @r#"
    > POST /mcp
      mcp-protocol-version: 2025-11-25
      mcp-session-id: s1
      {"jsonrpc":"2.0","method":"notifications/roots/list_changed"}
    (nothing more arrives)
    > POST /mcp
      mcp-protocol-version: 2025-11-25
      mcp-session-id: s1
      {"jsonrpc":"2.0","id":1,"method":"tools/list"}
    3 < 200 {"jsonrpc":"2.0","id":1,"result":{}}
    3 ended: done
    "#);
}

#[tokio::test]
async fn dropping_the_client_closes_all_its_streams() {
    let mut fixture = Fixture::new().await;
    let get_stream = fixture.begin_session("2025-11-25").await;
    fixture.send(LIST).await;
    let mut request = fixture.next_request().await;
    request.begin_events().await;
    fixture.drop_client();
    get_stream.disconnected().await;
    request.disconnected().await;
}

#[tokio::test]
async fn a_batch_is_done_when_every_request_in_it_has_a_response() {
    let mut fixture = Fixture::new().await;
    let _get_stream = fixture.begin_session("2025-03-26").await;
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]"#;
    fixture.send(batch).await;
    fixture
        .next_request()
        .await
        .json(r#"[{"jsonrpc":"2.0","id":2,"result":{}},{"jsonrpc":"2.0","id":1,"result":{}}]"#)
        .await;
    fixture.expect_events(2).await;
    fixture.send(batch).await;
    fixture.next_request().await.events("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n").await;
    fixture.expect_events(2).await;
    assert_snapshot!(fixture.transcript(), @r#"
    > POST /mcp
      mcp-session-id: s1
      [{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]
    2 < 200 [{"jsonrpc":"2.0","id":2,"result":{}},{"jsonrpc":"2.0","id":1,"result":{}}]
    2 ended: done
    > POST /mcp
      mcp-session-id: s1
      [{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]
    3 < 200 {"jsonrpc":"2.0","id":1,"result":{}}
    3 ended: broken: the stream ended before the answer to 2
    "#);
}
