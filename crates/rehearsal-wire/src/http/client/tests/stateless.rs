//! 2026-07-28: every request is self-contained, and disconnecting cancels it.

use http::HeaderMap;
use insta::assert_snapshot;

use super::stage::Stage;

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"é","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;

#[tokio::test]
async fn headers_repeat_the_body_and_no_session_is_made() {
    let mut stage = Stage::new().await;
    stage.ask(CALL).await;
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}"#;
    let headers = "content-type: application/json\r\nmcp-session-id: ignored\r\n";
    stage.arrives().await.answer("200 OK", headers, answer).await;
    stage.happen(2).await;
    stage.ask(CALL).await;
    stage.arrives().await.events("id: e1\ndata: \n\n").await;
    stage.happens().await; // there is no resumption
    stage.sender.close().await;
    stage.happens().await; // and nothing to delete
    assert_snapshot!(stage.transcript(), @r#"
    > POST /mcp
      mcp-method: tools/call
      mcp-name: =?base64?w6k=?=
      mcp-protocol-version: 2026-07-28
      {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"é","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}
    1 < 200 {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}
    1 ended: done
    > POST /mcp
      mcp-method: tools/call
      mcp-name: =?base64?w6k=?=
      mcp-protocol-version: 2026-07-28
      {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"é","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}
    2 ended: broken: the stream ended before the answer to 1
    the server was closed by us
    "#);
}

#[tokio::test]
async fn the_caller_s_headers_win() {
    let mut stage = Stage::with(|options| {
        options.headers.insert("authorization", "Bearer t".parse().unwrap());
        options.headers.insert("x-test", "general".parse().unwrap());
    })
    .await;
    let mut headers = HeaderMap::new();
    headers.insert("mcp-name", "wrong on purpose".parse().unwrap());
    headers.insert("mcp-protocol-version", "1999-01-01".parse().unwrap());
    headers.insert("x-test", "particular".parse().unwrap());
    headers.insert("content-type", "text/plain".parse().unwrap());
    stage.ask_with(headers, CALL).await;
    let request = stage.arrives().await;
    assert_eq!(request.header("content-type"), Some("text/plain"));
    assert_snapshot!(stage.transcript(), @r#"
    > POST /mcp
      authorization: Bearer t
      mcp-method: tools/call
      mcp-name: wrong on purpose
      mcp-protocol-version: 1999-01-01
      x-test: particular
      {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"é","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}
    "#);
}

#[tokio::test]
async fn closing_a_channel_hangs_up_and_leaves_the_others_alone() {
    let mut stage = Stage::new().await;
    let listening = stage.ask(CALL).await;
    let mut stream = stage.arrives().await;
    stream.begin_events().await;
    stream.write("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\"}\n\n").await;
    stage.happens().await;
    stage.ask(CALL).await;
    let other = stage.arrives().await;
    stage.sender.close_channel(listening);
    stream.hung_up().await;
    other.json(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).await;
    stage.happen(2).await;
    assert_snapshot!(stage.transcript(), @r#"
    > POST /mcp
      mcp-method: tools/call
      mcp-name: =?base64?w6k=?=
      mcp-protocol-version: 2026-07-28
      {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"é","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}
    1 < 200 {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged"}
    > POST /mcp
      mcp-method: tools/call
      mcp-name: =?base64?w6k=?=
      mcp-protocol-version: 2026-07-28
      {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"é","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}
    2 < 200 {"jsonrpc":"2.0","id":1,"result":{}}
    2 ended: done
    "#);
}
