//! HTTP+SSE: one stream for the server's messages, one endpoint for the client's.

use std::time::Duration;

use insta::assert_snapshot;
use rehearsal_core::exchange::Channel;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::fixture::{Fixture, HttpRequest, server};
use crate::Connection;
use crate::http::client::{ConnectError, HttpClientOptions, connect_sse};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

type Connecting = JoinHandle<Result<Connection, ConnectError>>;

/// Starts a client, and returns it with its first request and the queue of later ones.
async fn connecting() -> (Connecting, HttpRequest, mpsc::UnboundedReceiver<HttpRequest>) {
    let (url, mut requests) = server().await;
    let mut options = HttpClientOptions::new(&url).unwrap();
    options.endpoint_timeout = Duration::from_secs(5);
    let connecting = tokio::spawn(connect_sse(options));
    let first = requests.recv().await.unwrap();
    (connecting, first, requests)
}

async fn error(answer: impl AsyncFnOnce(HttpRequest)) -> String {
    let (connecting, first, _requests) = connecting().await;
    answer(first).await;
    connecting.await.unwrap().unwrap_err().to_string()
}

#[tokio::test]
async fn messages_are_posted_to_the_endpoint_and_arrive_on_the_stream() {
    let (connecting, mut stream, requests) = connecting().await;
    assert_eq!((stream.line.as_str(), stream.header("accept")), ("GET /mcp", Some("text/event-stream")));
    stream.begin_events().await;
    stream.write("event: endpoint\r\ndata: /messages/?session_id=1\r\n\r\n").await;
    let mut fixture = Fixture::from_connection(connecting.await.unwrap().unwrap(), requests);
    assert_eq!(fixture.sender.open_channel(), Channel::MAIN);

    let sending = fixture.spawn_send(Channel::MAIN, PING);
    fixture.next_request().await.answer("202 Accepted", "", "Accepted").await;
    sending.await.unwrap().unwrap();
    stream.write("event: message\r\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\r\n\r\n").await;
    fixture.next_event().await;

    let sending = fixture.spawn_send(Channel::MAIN, PING);
    fixture.next_request().await.answer("404 Not Found", "", "Could not find session").await;
    let refused = sending.await.unwrap().unwrap_err();
    fixture.add_line(refused);

    let sending = fixture.spawn_send(Channel::MAIN, PING);
    let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"no"}}"#;
    fixture.next_request().await.answer("400 Bad Request", "", error).await;
    sending.await.unwrap().unwrap();
    fixture.next_event().await;

    stream.write("event: message\ndata: {\"json").await;
    stream.end().await;
    fixture.expect_events(3).await;
    assert_snapshot!(fixture.transcript(), @r#"
    > POST /messages/?session_id=1
      {"jsonrpc":"2.0","id":1,"method":"ping"}
    0 < 200 {"jsonrpc":"2.0","id":1,"result":{}}
    > POST /messages/?session_id=1
      {"jsonrpc":"2.0","id":1,"method":"ping"}
    could not write: the server answered 404 Not Found: Could not find session
    > POST /messages/?session_id=1
      {"jsonrpc":"2.0","id":1,"method":"ping"}
    0 < 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"no"}}
    0 < 200 garbled (half a line: the stream ended in the middle of a message): {"json
    the server closed the connection
    the server closed the connection
    "#);
}

#[tokio::test]
async fn close_ends_the_stream() {
    let (connecting, mut stream, requests) = connecting().await;
    stream.begin_events().await;
    stream.write("event: endpoint\ndata: messages\n\n").await;
    let mut fixture = Fixture::from_connection(connecting.await.unwrap().unwrap(), requests);
    fixture.sender.close().await;
    stream.disconnected().await;
    fixture.next_event().await;
    assert!(fixture.spawn_send(Channel::MAIN, PING).await.unwrap().is_err());
    assert_snapshot!(fixture.transcript(), @"the server was closed by us");
}

#[tokio::test]
async fn a_server_that_is_not_http_sse_gets_a_specific_error() {
    let refused = error(async |request| request.answer("405 Method Not Allowed", "", "POST only").await).await;
    assert_eq!(refused, "the server answered 405 Method Not Allowed: POST only");
    let ended = error(async |request| request.events("data: hello\n\n").await).await;
    assert_eq!(ended, "the stream ended before its `endpoint` event");
    let foreign = error(async |request| request.events("event: endpoint\ndata: http://evil.example/\n\n").await).await;
    assert!(foreign.starts_with(r#"the endpoint "http://evil.example/" is not on http://127.0.0.1:"#), "{foreign}");
}

#[tokio::test]
async fn waiting_for_the_endpoint_event_times_out() {
    let (url, mut requests) = server().await;
    let mut options = HttpClientOptions::new(&url).unwrap();
    options.endpoint_timeout = Duration::from_millis(300);
    let connecting = tokio::spawn(connect_sse(options));
    let stream = requests.recv().await.unwrap();
    let error = connecting.await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "no `endpoint` event arrived within 300ms; is this an HTTP+SSE server?");
    stream.disconnected().await;
}
