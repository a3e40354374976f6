//! The handshake era: session, version, GET stream, responses to server requests.

use insta::assert_snapshot;
use rehearsal_core::exchange::Channel;

use super::stage::Stage;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

#[tokio::test]
async fn a_session_is_begun_used_and_ended() {
    let mut stage = Stage::new().await;
    stage.ask(INITIALIZE).await;
    let request = stage.arrives().await;
    assert_eq!(request.header("accept"), Some("application/json, text/event-stream"));
    assert_eq!(request.header("content-type"), Some("application/json"));
    let answer = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18"}}"#;
    request.answer("200 OK", "Content-Type: application/json; charset=utf-8\r\nMcp-Session-Id: s1\r\n", answer).await;
    stage.happen(2).await;

    let told = stage.tell(Channel::MAIN, INITIALIZED);
    stage.arrives().await.accept().await;
    let mut standing = stage.arrives().await;
    assert_eq!(standing.header("accept"), Some("text/event-stream"));
    standing.begin_events().await;
    told.await.unwrap().unwrap();
    standing.write("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n").await;
    stage.happens().await;

    stage.ask(LIST).await;
    stage.arrives().await.json(r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#).await;
    stage.happen(2).await;

    let sender = std::sync::Arc::clone(&stage.sender);
    let closing = tokio::spawn(async move { sender.close().await });
    stage.arrives().await.answer("405 Method Not Allowed", "", "").await;
    closing.await.unwrap();
    standing.hung_up().await;
    stage.happens().await;
    stage.happens().await;
    assert!(stage.tell(Channel::MAIN, INITIALIZED).await.unwrap().is_err());
    assert_snapshot!(stage.transcript(), @r#"
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
async fn a_server_without_a_standing_stream_is_no_error() {
    let mut stage = Stage::new().await;
    stage.ask(INITIALIZE).await;
    stage.arrives().await.json(r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-03-26"}}"#).await;
    stage.happen(2).await;
    let told = stage.tell(Channel::MAIN, INITIALIZED);
    stage.arrives().await.accept().await;
    stage.arrives().await.answer("501 Not Implemented", "", "no").await;
    told.await.unwrap().unwrap();
    stage.ask(LIST).await;
    stage.arrives().await.json(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).await;
    stage.happen(2).await;
    stage.sender.close().await;
    stage.happens().await;
    assert_snapshot!(stage.transcript(), @r#"
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
async fn a_standing_stream_that_ends_is_opened_again_after_its_last_event() {
    let mut stage = Stage::new().await;
    let mut standing = stage.begin_session("2025-11-25").await;
    standing.write("id: a\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"first\"}\n\nid: b\ndata: {\"json").await;
    standing.end().await;
    stage.happens().await;
    let again = stage.arrives().await;
    again.events("id: b\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"second\"}\n\n").await;
    stage.happens().await;
    stage.arrives().await.answer("503 Service Unavailable", "", "").await;
    stage.arrives().await.answer("404 Not Found", "", "session is over").await;
    stage.happens().await;
    assert_snapshot!(stage.transcript(), @r#"
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
async fn a_standing_stream_that_only_breaks_is_given_up() {
    let mut stage = Stage::with(|options| options.tries = 2).await;
    stage.begin_session("2025-11-25").await.end().await;
    stage.arrives().await.end().await;
    stage.arrives().await.events("").await;
    stage.happens().await;
    assert_snapshot!(stage.transcript(), @r#"
    > GET /mcp
      mcp-protocol-version: 2025-11-25
      mcp-session-id: s1
    > GET /mcp
      mcp-protocol-version: 2025-11-25
      mcp-session-id: s1
    0 ended: broken: the standing stream: it ended without an event (2 tries)
    "#);
}

#[tokio::test]
async fn a_question_on_a_request_s_stream_is_answered_by_a_post_of_its_own() {
    let mut stage = Stage::new().await;
    let _standing = stage.begin_session("2025-11-25").await;
    let channel = stage.ask(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask"}}"#).await;
    let mut call = stage.arrives().await;
    call.begin_events().await;
    call.write("event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"roots/list\"}\n\n").await;
    stage.happens().await;
    let told = stage.tell(channel, r#"{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}"#);
    stage.arrives().await.accept().await;
    told.await.unwrap().unwrap();
    // The refusal fails only this response: the stream that carried the server request continues.
    let told = stage.tell(channel, r#"{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}"#);
    stage.arrives().await.answer("400 Bad Request", "", "answered already").await;
    let refused = told.await.unwrap().unwrap_err();
    stage.note(refused);
    call.write("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n").await;
    call.end().await;
    stage.happen(2).await;
    assert_snapshot!(stage.transcript(), @r#"
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
    let mut stage = Stage::new().await;
    let _standing = stage.begin_session("2025-11-25").await;
    let sender = std::sync::Arc::clone(&stage.sender);
    let talk = tokio::spawn(async move {
        for text in [r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#, LIST] {
            let message = rehearsal_core::message::Message::parse(text);
            sender.send(crate::Outgoing::new(sender.open_channel(), message)).await.unwrap();
        }
    });
    let first = stage.arrives().await;
    stage.nothing_arrives().await;
    first.accept().await;
    stage.arrives().await.json(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).await;
    talk.await.unwrap();
    stage.happen(2).await;
    assert_snapshot!(stage.transcript(), @r#"
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
async fn dropping_the_client_hangs_up_everywhere() {
    let mut stage = Stage::new().await;
    let standing = stage.begin_session("2025-11-25").await;
    stage.ask(LIST).await;
    let mut call = stage.arrives().await;
    call.begin_events().await;
    stage.drop_client();
    standing.hung_up().await;
    call.hung_up().await;
}

#[tokio::test]
async fn a_batch_is_answered_when_every_request_in_it_is() {
    let mut stage = Stage::new().await;
    let _standing = stage.begin_session("2025-03-26").await;
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]"#;
    stage.ask(batch).await;
    stage.arrives().await.json(r#"[{"jsonrpc":"2.0","id":2,"result":{}},{"jsonrpc":"2.0","id":1,"result":{}}]"#).await;
    stage.happen(2).await;
    stage.ask(batch).await;
    stage.arrives().await.events("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n").await;
    stage.happen(2).await;
    assert_snapshot!(stage.transcript(), @r#"
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
