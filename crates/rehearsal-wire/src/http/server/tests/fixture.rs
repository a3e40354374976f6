//! The test setup: a server on a free port, a client that writes bytes, an application that reads events.

use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use rehearsal_core::exchange::Channel;
use rehearsal_core::message::Message;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::http::server::{HttpServer, HttpServerOptions};
use crate::{Connection, ConnectionEnd, Event, Outgoing, SendError};

/// Waits with a time limit, so that a test fails instead of hanging.
pub(super) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), what).await.expect("the wait timed out")
}

pub(super) struct Fixture {
    pub(super) server: HttpServer,
}

impl Fixture {
    pub(super) async fn new(options: HttpServerOptions) -> Fixture {
        Fixture { server: HttpServer::bind(options).await.unwrap() }
    }

    pub(super) async fn client(&self) -> Client {
        Client { stream: BufReader::new(TcpStream::connect(self.server.address()).await.unwrap()) }
    }

    pub(super) async fn accept(&mut self) -> Connection {
        soon(self.server.accept()).await.unwrap()
    }

    /// Sends a request from a new client, and returns the response.
    pub(super) async fn fetch(&self, request: HttpRequest<'_>) -> HttpResponse {
        let mut client = self.client().await;
        client.send(request).await;
        client.answer().await
    }

    /// Runs a handshake, and returns the session id and the application's connection.
    pub(super) async fn session(&mut self, version: &str) -> (String, Connection) {
        let mut client = self.client().await;
        let params =
            json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
        client.send(HttpRequest::post(&request(0, "initialize", params).to_string())).await;
        let mut connection = self.accept().await;
        let (channel, _) = next_message(&mut connection).await;
        send(&connection, channel, json!({"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": version}})).await;
        let answer = client.answer().await;
        (answer.headers["mcp-session-id"].clone(), connection)
    }
}

/// An HTTP request.
#[derive(Clone)]
pub(super) struct HttpRequest<'a> {
    method: &'a str,
    path: &'a str,
    headers: Vec<(String, String)>,
    body: Option<&'a str>,
}

impl<'a> HttpRequest<'a> {
    pub(super) fn new(method: &'a str, path: &'a str) -> HttpRequest<'a> {
        let headers = vec![("host".to_owned(), "localhost".to_owned())];
        HttpRequest { method, path, headers, body: None }
    }

    pub(super) fn post(body: &'a str) -> HttpRequest<'a> {
        let accept = "application/json, text/event-stream";
        let http_request = HttpRequest { body: Some(body), ..HttpRequest::new("POST", "/mcp") };
        http_request.with("content-type", "application/json").with("accept", accept)
    }

    pub(super) fn with_body(self, body: &'a str) -> HttpRequest<'a> {
        HttpRequest { body: Some(body), ..self }
    }

    pub(super) fn get() -> HttpRequest<'a> {
        HttpRequest::new("GET", "/mcp").with("accept", "text/event-stream")
    }

    pub(super) fn to(self, path: &'a str) -> HttpRequest<'a> {
        HttpRequest { path, ..self }
    }

    /// Sets a header, and replaces one of the same name.
    pub(super) fn with(mut self, name: &str, value: &str) -> HttpRequest<'a> {
        self.headers.retain(|(other, _)| other != name);
        self.also(name, value)
    }

    /// Adds a header to those of the same name.
    pub(super) fn also(mut self, name: &str, value: &str) -> HttpRequest<'a> {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(super) fn without(mut self, name: &str) -> HttpRequest<'a> {
        self.headers.retain(|(other, _)| other != name);
        self
    }

    pub(super) fn in_session(self, id: &str) -> HttpRequest<'a> {
        self.with("mcp-session-id", id)
    }

    /// Builds the request as text.
    pub(super) fn text(&self) -> String {
        let mut text = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            text += &format!("{name}: {value}\r\n");
        }
        if let Some(body) = self.body.filter(|_| !self.headers.iter().any(|(name, _)| name == "content-length")) {
            text += &format!("content-length: {}\r\n", body.len());
        }
        text + "\r\n" + self.body.unwrap_or_default()
    }
}

/// A client that writes HTTP by hand.
pub(super) struct Client {
    pub(super) stream: BufReader<TcpStream>,
}

/// A response with its whole body, or the head of a stream.
#[derive(Debug)]
pub(super) struct HttpResponse {
    pub(super) status: u16,
    pub(super) headers: HashMap<String, String>,
    pub(super) body: String,
}

impl HttpResponse {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {:?}", self.body))
    }

    /// Returns the status and the error code in the body.
    pub(super) fn refusal(&self) -> (u16, i64) {
        (self.status, self.json()["error"]["code"].as_i64().unwrap())
    }

    pub(super) fn is_stream(&self) -> bool {
        self.headers.get("content-type").is_some_and(|kind| kind == "text/event-stream")
    }
}

impl Client {
    pub(super) async fn send(&mut self, http_request: HttpRequest<'_>) {
        self.write(&http_request.text()).await;
    }

    pub(super) async fn write(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        soon(self.stream.read_line(&mut line)).await.unwrap();
        line.trim_end_matches(['\r', '\n']).to_owned()
    }

    /// Reads the next response; of a stream only its head.
    pub(super) async fn answer(&mut self) -> HttpResponse {
        let first = self.line().await;
        let status = first.split(' ').nth(1).unwrap_or_else(|| panic!("no status in {first:?}")).parse().unwrap();
        let mut headers = HashMap::new();
        loop {
            let line = self.line().await;
            let Some((name, value)) = line.split_once(": ") else { break };
            headers.insert(name.to_owned(), value.to_owned());
        }
        let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        soon(self.stream.read_exact(&mut body)).await.unwrap();
        HttpResponse { status, headers, body: String::from_utf8(body).unwrap() }
    }

    /// Reads the exact text of the next event of a stream, without its last line end; `None` at the end of the stream.
    pub(super) async fn event(&mut self) -> Option<String> {
        let length = usize::from_str_radix(&self.line().await, 16).expect("the length of a chunk");
        let mut chunk = vec![0; length + 2];
        soon(self.stream.read_exact(&mut chunk)).await.unwrap();
        chunk.truncate(length);
        let chunk = String::from_utf8(chunk).unwrap();
        (length > 0).then(|| chunk.strip_suffix("\n\n").expect("the end of an event").to_owned())
    }

    /// Reads the data of the next event.
    pub(super) async fn data(&mut self) -> Value {
        let event = self.event().await.expect("one more event");
        let data = event.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or_default();
        serde_json::from_str(data).unwrap_or_else(|error| panic!("{error}: {event:?}"))
    }
}

pub(super) fn request(id: i64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

pub(super) fn result(id: i64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {}})
}

pub(super) fn note(text: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": text}})
}

pub(super) fn message(value: &Value) -> Message {
    Message::parse(Bytes::from(value.to_string()))
}

/// Returns the next message that the application receives.
pub(super) async fn next_message(connection: &mut Connection) -> (Channel, Value) {
    match soon(connection.receiver.receive()).await {
        Event::Message { channel, message, head } => {
            assert!(head.is_some_and(|head| head.headers.contains_key("host")), "the head comes with the message");
            (channel, serde_json::from_slice(message.raw()).unwrap())
        }
        other => panic!("no message but {other:?}"),
    }
}

/// Returns how a connection ended.
pub(super) async fn ended(connection: &mut Connection) -> ConnectionEnd {
    match soon(connection.receiver.receive()).await {
        Event::Ended(ending) => ending,
        other => panic!("no end but {other:?}"),
    }
}

pub(super) async fn send(connection: &Connection, channel: Channel, value: Value) {
    try_send(connection, channel, value).await.unwrap();
}

pub(super) async fn try_send(connection: &Connection, channel: Channel, value: Value) -> Result<(), SendError> {
    soon(connection.sender.send(Outgoing::new(channel, message(&value)))).await
}
