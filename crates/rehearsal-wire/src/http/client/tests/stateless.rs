//! 2026-07-28: every request is self-contained, and disconnecting cancels it.

use http::HeaderMap;
use insta::assert_snapshot;

use super::fixture::Fixture;

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"é","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;

#[tokio::test]
async fn a_modern_request_has_headers_from_its_body_and_no_session() {
    let mut fixture = Fixture::new().await;
    fixture.send(CALL).await;
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}"#;
    let headers = "content-type: application/json\r\nmcp-session-id: ignored\r\n";
    fixture.next_request().await.answer("200 OK", headers, answer).await;
    fixture.expect_events(2).await;
    fixture.send(CALL).await;
    fixture.next_request().await.events("id: e1\ndata: \n\n").await;
    fixture.next_event().await; // there is no resumption
    fixture.sender.close().await;
    fixture.next_event().await; // and nothing to delete
    assert_snapshot!(fixture.transcript(), @r#"
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
async fn headers_of_the_caller_take_precedence() {
    let mut fixture = Fixture::with(|options| {
        options.headers.insert("authorization", "Bearer t".parse().unwrap());
        options.headers.insert("x-test", "general".parse().unwrap());
    })
    .await;
    let mut headers = HeaderMap::new();
    headers.insert("mcp-name", "wrong on purpose".parse().unwrap());
    headers.insert("mcp-protocol-version", "1999-01-01".parse().unwrap());
    headers.insert("x-test", "particular".parse().unwrap());
    headers.insert("content-type", "text/plain".parse().unwrap());
    fixture.send_with(headers, CALL).await;
    let request = fixture.next_request().await;
    assert_eq!(request.header("content-type"), Some("text/plain"));
    assert_snapshot!(fixture.transcript(), @r#"
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
async fn closing_a_channel_closes_its_stream_and_no_other() {
    let mut fixture = Fixture::new().await;
    let listening = fixture.send(CALL).await;
    let mut stream = fixture.next_request().await;
    stream.begin_events().await;
    stream.write("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\"}\n\n").await;
    fixture.next_event().await;
    fixture.send(CALL).await;
    let other = fixture.next_request().await;
    fixture.sender.close_channel(listening);
    stream.disconnected().await;
    other.json(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).await;
    fixture.expect_events(2).await;
    assert_snapshot!(fixture.transcript(), @r#"
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
