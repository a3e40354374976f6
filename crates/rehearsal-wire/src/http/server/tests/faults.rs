//! Injected faults, byte by byte. `rehearsal`'s tests of the client see every fault on every transport.

use std::time::Duration;

use bytes::Bytes;
use rehearsal_core::exchange::Channel;
use rehearsal_core::transport_fault::{AfterFault, DisconnectAt, HttpRefusal, TransportFault};
use serde_json::json;
use tokio::io::AsyncReadExt;

use super::fixture::*;
use crate::http::server::HttpServerOptions;
use crate::{Connection, ConnectionEnd};

const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"text":"0123456789"}}"#;

fn answer() -> Bytes {
    Bytes::from_static(ANSWER.as_bytes())
}

fn event() -> String {
    format!("event: message\ndata: {ANSWER}\n\n")
}

fn refused(status: u16, headers: &[(&str, &str)]) -> TransportFault {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    TransportFault::HttpStatus(HttpRefusal {
        status,
        headers,
        body: None,
        fallback_error: Bytes::from_static(b"{\"instead\":1}"),
    })
}

async fn inject(connection: &Connection, channel: Channel, fault: TransportFault) {
    let after = soon(connection.sender.inject_fault(channel, fault)).await.unwrap();
    assert_eq!(after, AfterFault::Continue, "a closed socket does not close the connection");
}

/// Reads a socket to its end.
async fn rest(client: &mut Client) -> String {
    let mut rest = Vec::new();
    soon(client.stream.read_to_end(&mut rest)).await.unwrap();
    String::from_utf8_lossy(&rest).into_owned()
}

/// Removes the chunk framing, even if the last chunk is missing.
fn unchunked(text: &str) -> String {
    let mut whole = String::new();
    let mut rest = text;
    while let Some((length, after)) = rest.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        whole += &after[..length.min(after.len())];
        rest = after.get(length + 2..).unwrap_or_default();
    }
    whole
}

/// Sends a stateless POST that waits for its response.
async fn stateless(fixture: &mut Fixture, connection: &mut Option<Connection>, accept: &str) -> (Client, Channel) {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    let call = request(1, "tools/call", json!({"name": "t", "arguments": {}, "_meta": meta})).to_string();
    let mut client = fixture.client().await;
    let http_request =
        HttpRequest::post(&call).with("mcp-protocol-version", "2026-07-28").with("mcp-method", "tools/call");
    client.send(http_request.with("mcp-name", "t").with("accept", accept)).await;
    if connection.is_none() {
        *connection = Some(fixture.accept().await);
    }
    let (channel, _) = next_message(connection.as_mut().unwrap()).await;
    (client, channel)
}

const BOTH: &str = "application/json, text/event-stream";
const JSON: &str = "application/json";

/// Returns a fault as the response to a POST: the head, and every byte until the socket is closed.
async fn response_to(fault: TransportFault, accept: &str) -> String {
    let mut fixture = Fixture::new(HttpServerOptions::default()).await;
    let mut connection = None;
    let (mut client, channel) = stateless(&mut fixture, &mut connection, accept).await;
    inject(connection.as_ref().unwrap(), channel, fault).await;
    let handle = fixture.server.handle();
    // The shutdown closes sockets that would otherwise stay open.
    let closing = tokio::spawn(async move { handle.shutdown().await });
    let response_to = rest(&mut client).await;
    closing.abort();
    let date = response_to.find("date: ").map(|at| at..at + 37);
    let mut response_to = response_to;
    if let Some(date) = date {
        response_to.replace_range(date, "");
    }
    response_to
}

#[tokio::test]
async fn a_faulty_response_to_a_post_has_exactly_the_given_bytes() {
    let half = &ANSWER[..ANSWER.len() / 2];
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n", ANSWER.len());
    let table = [
        (TransportFault::RawAnswers(vec![answer()]), format!("{head}\r\n{ANSWER}")),
        (TransportFault::Disconnect { answer: answer(), at: DisconnectAt::Before }, String::new()),
        (TransportFault::Disconnect { answer: answer(), at: DisconnectAt::During }, format!("{head}\r\n{half}")),
        (TransportFault::Disconnect { answer: answer(), at: DisconnectAt::After }, format!("{head}\r\n{ANSWER}")),
    ];
    for (fault, expected) in table {
        for accept in [BOTH, JSON] {
            let response_to = response_to(fault.clone(), accept).await;
            if matches!(fault, TransportFault::Disconnect { at: DisconnectAt::After, .. }) {
                assert!(response_to.contains("connection: close\r\n"), "{response_to}");
            }
            // The header depends on whether the server shuts down before the head is written.
            assert_eq!(response_to.replace("connection: close\r\n", ""), expected, "{fault:?}");
        }
    }
}

async fn chunk(client: &mut Client) -> String {
    let mut read = String::new();
    while !read.ends_with("0\r\n\r\n") {
        read.push(soon(client.stream.read_u8()).await.unwrap() as char);
    }
    unchunked(&read)
}

#[tokio::test]
async fn an_injected_404_ends_the_session() {
    let mut fixture = Fixture::new(HttpServerOptions::default()).await;
    let (session, mut connection) = fixture.session("2025-11-25").await;
    let ping = request(1, "ping", json!({})).to_string();
    let mut client = fixture.client().await;
    client.send(HttpRequest::post(&ping).in_session(&session)).await;
    let (channel, _) = next_message(&mut connection).await;
    inject(&connection, channel, refused(404, &[])).await;
    assert_eq!(client.answer().await.status, 404);
    assert!(chunk(&mut client).await.contains("-32001"));
    assert_eq!(ended(&mut connection).await, ConnectionEnd::Closed);
    assert_eq!(fixture.fetch(HttpRequest::post(&ping).in_session(&session)).await.status, 404);
}

#[tokio::test]
async fn faults_can_be_injected_into_an_open_stream() {
    let table = [
        (TransportFault::RawAnswers(vec![Bytes::from_static(b"oops")]), "event: message\ndata: oops\n\n".to_owned()),
        (TransportFault::Disconnect { answer: answer(), at: DisconnectAt::Before }, String::new()),
        (
            TransportFault::Disconnect { answer: answer(), at: DisconnectAt::During },
            event()[..event().len() / 2].to_owned(),
        ),
        (TransportFault::Disconnect { answer: answer(), at: DisconnectAt::After }, event()),
        (TransportFault::CutStream(answer()), event()[..event().len() / 2].to_owned()),
        (TransportFault::SlowWrite { answer: answer(), piece: 9, pause: Duration::ZERO }, event()),
        (refused(500, &[]), "event: message\ndata: {\"instead\":1}\n\n".to_owned()),
        (
            TransportFault::ContentType { answer: answer(), content_type: "text/html".to_owned() },
            event().replace("event: message", "event: text/html"),
        ),
    ];
    for (fault, expected) in table {
        let mut fixture = Fixture::new(HttpServerOptions::default()).await;
        let mut connection = None;
        let (mut client, channel) = stateless(&mut fixture, &mut connection, BOTH).await;
        let connection = connection.unwrap();
        send(&connection, channel, note("first")).await;
        assert!(client.answer().await.is_stream());
        assert_eq!(client.data().await, note("first"));
        inject(&connection, channel, fault.clone()).await;
        let handle = fixture.server.handle();
        let closing = tokio::spawn(async move { handle.shutdown().await });
        assert_eq!(unchunked(&rest(&mut client).await), expected, "{fault:?}");
        closing.abort();
        assert!(try_send(&connection, channel, note("too late")).await.is_err());
    }
}

#[tokio::test]
async fn an_unacknowledged_http_sse_post_can_be_refused() {
    let options = HttpServerOptions { hold_posts: Some(Duration::from_secs(60)), ..HttpServerOptions::default() };
    let mut fixture = Fixture::new(options).await;
    let mut listening = fixture.client().await;
    listening.send(HttpRequest::get().to("/sse")).await;
    listening.answer().await;
    let endpoint = listening.event().await.unwrap();
    let endpoint = endpoint.strip_prefix("event: endpoint\ndata: ").unwrap().to_owned();
    let mut connection = fixture.accept().await;
    let ping = |id| request(id, "ping", json!({})).to_string();
    let (one, two) = (ping(1), ping(2));
    let mut client = fixture.client().await;
    client.send(HttpRequest::post(&one).to(&endpoint)).await;
    let (channel, _) = next_message(&mut connection).await;
    let instead = Bytes::from(result(1).to_string());
    let headers = vec![("retry-after".to_owned(), "7".to_owned())];
    let refused = HttpRefusal { status: 429, headers, body: None, fallback_error: instead.clone() };
    inject(&connection, channel, TransportFault::HttpStatus(refused.clone())).await;
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.body.as_str()), (429, "Too Many Requests"));
    assert_eq!(answer.headers["retry-after"], "7");

    client.send(HttpRequest::post(&two).to(&endpoint)).await;
    next_message(&mut connection).await;
    send(&connection, channel, note("a word")).await;
    assert_eq!(client.answer().await.status, 202, "the first message acknowledges the POST");
    assert_eq!(listening.data().await, note("a word"));
    inject(&connection, channel, TransportFault::HttpStatus(refused)).await;
    assert_eq!(listening.data().await, result(1), "the POST was already acknowledged, so the fault is a message");
}
