//! The test setup: one client, one server, and the transcript.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use rehearsal_core::exchange::Channel;
use rehearsal_core::message::Message;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::http::client::{self, HttpClientOptions};
use crate::{ChannelEnd, Connection, Event, Outgoing, SendError, Sender};

/// The time limit of every wait; only a failing test reaches it.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// The headers that a transcript shows.
const SHOWN_HEADERS: &[&str] =
    &["authorization", "last-event-id", "mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id", "x-test"];

pub(super) struct Fixture {
    pub(super) sender: Arc<dyn Sender>,
    connection: Option<Connection>,
    requests: mpsc::UnboundedReceiver<HttpRequest>,
    transcript: String,
}

/// A request that arrived at the server, and the stream for its response.
pub(super) struct HttpRequest {
    pub(super) line: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
    stream: BufReader<TcpStream>,
    next: mpsc::UnboundedSender<HttpRequest>,
}

/// Starts a server on its own port, and returns its URL and its requests.
pub(super) async fn server() -> (String, mpsc::UnboundedReceiver<HttpRequest>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (arrived, requests) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(BufReader::new(stream), arrived.clone()));
        }
    });
    (format!("http://{address}/mcp"), requests)
}

/// Reads one request. The code that sends the response decides whether the connection stays open.
async fn serve(mut stream: BufReader<TcpStream>, arrived: mpsc::UnboundedSender<HttpRequest>) {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
            return;
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let headers: Vec<(String, String)> =
        lines[1..].iter().filter_map(|line| line.split_once(": ")).map(|(a, b)| (a.to_owned(), b.to_owned())).collect();
    let length =
        headers.iter().find(|(name, _)| name == "content-length").map_or(0, |(_, value)| value.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    let line = lines[0].trim_end_matches(" HTTP/1.1").to_owned();
    let body = String::from_utf8(body).unwrap();
    let next = arrived.clone();
    let _ = arrived.send(HttpRequest { line, headers, body, stream, next });
}

impl HttpRequest {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// Writes these bytes unchanged.
    pub(super) async fn write(&mut self, bytes: &str) {
        self.stream.write_all(bytes.as_bytes()).await.unwrap();
    }

    /// Sends a whole response, after which the connection can be reused.
    pub(super) async fn answer(mut self, status: &str, headers: &str, body: &str) {
        let length = body.len();
        self.write(&format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\r\n{body}")).await;
        tokio::spawn(serve(self.stream, self.next));
    }

    pub(super) async fn json(self, body: &str) {
        self.answer("200 OK", "content-type: application/json\r\n", body).await;
    }

    pub(super) async fn accept(self) {
        self.answer("202 Accepted", "", "").await;
    }

    /// Sends the head of a stream of events that ends with the connection.
    pub(super) async fn begin_events(&mut self) {
        self.write("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n").await;
    }

    /// Sends a whole stream of events.
    pub(super) async fn events(mut self, events: &str) {
        self.begin_events().await;
        self.write(events).await;
        self.end().await;
    }

    /// Closes the connection.
    pub(super) async fn end(mut self) {
        self.stream.shutdown().await.unwrap();
    }

    /// Returns when the client has disconnected.
    pub(super) async fn disconnected(mut self) {
        let read = timeout(TEST_TIMEOUT, self.stream.read_u8()).await.expect("the client should have disconnected");
        assert!(read.is_err(), "the client should have disconnected, but it sent more");
    }
}

impl Fixture {
    /// Builds a client with short timeouts, and its server.
    pub(super) async fn new() -> Fixture {
        Fixture::with(|_| {}).await
    }

    pub(super) async fn with(change: impl FnOnce(&mut HttpClientOptions)) -> Fixture {
        let (url, requests) = server().await;
        let mut options = HttpClientOptions::new(&url).unwrap();
        options.retry = Duration::from_millis(1);
        change(&mut options);
        let connection = client::connect(options).unwrap();
        Fixture {
            sender: Arc::clone(&connection.sender),
            connection: Some(connection),
            requests,
            transcript: String::new(),
        }
    }

    /// Builds a fixture from an existing connection.
    pub(super) fn from_connection(connection: Connection, requests: mpsc::UnboundedReceiver<HttpRequest>) -> Fixture {
        Fixture {
            sender: Arc::clone(&connection.sender),
            connection: Some(connection),
            requests,
            transcript: String::new(),
        }
    }

    /// Sends a request on its own channel, and returns the channel.
    pub(super) async fn send(&mut self, message: &str) -> Channel {
        let channel = self.sender.open_channel();
        self.sender.send(Outgoing::new(channel, Message::parse(message.to_owned()))).await.unwrap();
        channel
    }

    /// Sends a message in a task, and waits there until the server accepts it.
    pub(super) fn spawn_send(&self, channel: Channel, message: &str) -> JoinHandle<Result<(), SendError>> {
        let sender = Arc::clone(&self.sender);
        let message = Message::parse(message.to_owned());
        tokio::spawn(async move { sender.send(Outgoing::new(channel, message)).await })
    }

    /// Sends a request with headers of the caller.
    pub(super) async fn send_with(&mut self, headers: HeaderMap, message: &str) -> Channel {
        let channel = self.sender.open_channel();
        let message = Message::parse(message.to_owned());
        self.sender.send(Outgoing { channel, message, headers }).await.unwrap();
        channel
    }

    pub(super) async fn send_bytes(&mut self, bytes: &'static str) -> Channel {
        let channel = self.sender.open_channel();
        self.sender.send_bytes(channel, Bytes::from_static(bytes.as_bytes())).await.unwrap();
        channel
    }

    /// Returns the next request that arrives at the server.
    pub(super) async fn next_request(&mut self) -> HttpRequest {
        let request = timeout(TEST_TIMEOUT, self.requests.recv()).await.expect("no request arrived").unwrap();
        writeln!(self.transcript, "> {}", request.line).unwrap();
        for name in SHOWN_HEADERS {
            if let Some(value) = request.header(name) {
                writeln!(self.transcript, "  {name}: {value}").unwrap();
            }
        }
        if !request.body.is_empty() {
            writeln!(self.transcript, "  {}", request.body).unwrap();
        }
        request
    }

    /// Checks that no request is being sent to the server.
    pub(super) async fn expect_no_request(&mut self) {
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        assert!(self.requests.try_recv().is_err(), "a request arrived too early");
        self.add_line("(nothing more arrives)");
    }

    /// Returns the next event at the client.
    pub(super) async fn next_event(&mut self) -> Event {
        let receiver = &mut self.connection.as_mut().unwrap().receiver;
        let event = timeout(TEST_TIMEOUT, receiver.receive()).await.expect("nothing happened");
        let line = match &event {
            Event::Message { channel, message, head } => {
                let status = head.as_ref().and_then(|head| head.status).map_or(0, |status| status.as_u16());
                format!("{} < {status} {}", channel.0, excerpt(&format!("{message:?}")))
            }
            Event::ChannelEnded { channel, end } => {
                let end = match end {
                    ChannelEnd::Done => "done".to_owned(),
                    ChannelEnd::Refused { head, body } => format!("refused: {}", client::refusal(head, body)),
                    ChannelEnd::Broken { why } => format!("broken: {why}"),
                    ChannelEnd::Unauthorized { why } => format!("unauthorized: {why}"),
                };
                format!("{} ended: {end}", channel.0)
            }
            Event::Ended(ending) => format!("the server {ending}"),
        };
        writeln!(self.transcript, "{line}").unwrap();
        event
    }

    /// Receives the next `count` events.
    pub(super) async fn expect_events(&mut self, count: usize) {
        for _ in 0..count {
            self.next_event().await;
        }
    }

    /// Starts a session with this version, and returns the request of its GET stream.
    pub(super) async fn begin_session(&mut self, version: &str) -> HttpRequest {
        self.send(r#"{"jsonrpc":"2.0","id":0,"method":"initialize"}"#).await;
        let answer = format!(r#"{{"jsonrpc":"2.0","id":0,"result":{{"protocolVersion":"{version}"}}}}"#);
        let headers = "content-type: application/json\r\nmcp-session-id: s1\r\n";
        self.next_request().await.answer("200 OK", headers, &answer).await;
        self.expect_events(2).await;
        let sending = self.spawn_send(Channel::MAIN, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        self.next_request().await.accept().await;
        let mut get_stream = self.next_request().await;
        get_stream.begin_events().await;
        sending.await.unwrap().unwrap();
        self.transcript.clear();
        get_stream
    }

    /// Adds a line to the transcript.
    pub(super) fn add_line(&mut self, what: impl std::fmt::Display) {
        writeln!(self.transcript, "{what}").unwrap();
    }

    /// Drops the client without closing it.
    pub(super) fn drop_client(&mut self) {
        self.connection = None;
        self.sender = Arc::clone(&crate::memory::pair().0.sender);
    }

    pub(super) fn transcript(&self) -> String {
        self.transcript.clone()
    }
}

fn excerpt(text: &str) -> String {
    match text.char_indices().nth(100) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
    }
}
