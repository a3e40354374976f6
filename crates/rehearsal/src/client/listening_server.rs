//! A server that we start and that listens on a port.
//!
//! ```text
//! command ──► process ── "listening on http://127.0.0.1:43121/mcp" ──► URL ──► Connection over HTTP
//!                │                                                                  │
//!                └────────────── ends when the last connection to it ends ◄─────────┘
//! ```

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::process::ExitStatus;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use regex::Regex;
use rehearsal_core::exchange::Channel;
use rehearsal_core::redact::shown_url;
use rehearsal_wire::stdio::{self, ServerCommand, StopMethod};
use rehearsal_wire::{BoxFuture, Connection, ConnectionEnd, Event, Outgoing, Receiver, SendError, Sender, StopOutcome};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::error::{ClientError, Evidence};

/// The path for a server that prints only its port or its host.
const DEFAULT_PATH: &str = "/mcp";
/// How many lines of its stdout are kept.
const MAX_STDOUT_LINES: usize = 20;
/// The pause between two attempts to reach a server that has printed its address.
const RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// A server that listens; it is killed when this is dropped.
#[derive(Debug)]
pub(super) struct ListeningServer {
    process: Arc<dyn Sender>,
    /// Reads its stdout, so that the server never blocks on a full pipe.
    reading: JoinHandle<ConnectionEnd>,
    url: String,
}

impl ListeningServer {
    /// Starts the command. Waits until it has printed its address and accepts connections there.
    pub(super) async fn start(
        command: &ServerCommand,
        path: Option<&str>,
        limit: Duration,
    ) -> Result<ListeningServer, ClientError> {
        let (found, mut places) = mpsc::unbounded_channel();
        let lines = Arc::new(Mutex::new(VecDeque::new()));
        let Connection { sender, receiver } =
            stdio::spawn(&with_stderr_scan(command, found.clone())).await.map_err(ClientError::Start)?;
        let reading = tokio::spawn(read(receiver, found, lines.clone()));
        let mut listening = ListeningServer { process: sender, reading, url: String::new() };
        let waited = tokio::time::timeout(limit, listening.reach(&mut places, path)).await;
        let why = match waited {
            Ok(Ok(())) => return Ok(listening),
            Ok(Err(ending)) => format!("{ending} before it could be reached"),
            Err(_) if listening.url.is_empty() => {
                format!("printed no address within {} s", limit.as_secs_f64())
            }
            Err(_) => format!("printed {}, but does not accept connections there", shown_url(&listening.url)),
        };
        let noise = lines.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect();
        let (exit_status, last_stderr) = (listening.process.exit_status(), listening.process.last_stderr());
        let evidence = Evidence { exit_status, last_stderr, noise, ..Evidence::default() };
        listening.process.close().await;
        Err(ClientError::NotListening { why, evidence: Box::new(evidence) })
    }

    /// The URL of the server.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// A connection that keeps the process running.
    pub(super) fn behind(self: &Arc<ListeningServer>, connection: Connection) -> Connection {
        let Connection { sender, receiver } = connection;
        let sender = ListeningSender { http: sender, listening: Mutex::new(Some(self.clone())) };
        Connection { sender: Arc::new(sender), receiver }
    }

    async fn reach(
        &mut self,
        places: &mut mpsc::UnboundedReceiver<ListenAddress>,
        path: Option<&str>,
    ) -> Result<(), ConnectionEnd> {
        let gone = |ending: Result<ConnectionEnd, _>| ending.unwrap_or(ConnectionEnd::Closed);
        let place = tokio::select! {
            Some(place) = places.recv() => place,
            ending = &mut self.reading => return Err(gone(ending)),
        };
        self.url = place.url(path);
        loop {
            tokio::select! {
                connected = TcpStream::connect((place.host.trim_matches(['[', ']']), place.port)) => match connected {
                    Ok(_) => return Ok(()),
                    // Some servers print their address before they listen.
                    Err(_) => tokio::time::sleep(RETRY_INTERVAL).await,
                },
                ending = &mut self.reading => return Err(gone(ending)),
            }
        }
    }
}

impl Drop for ListeningServer {
    fn drop(&mut self) {
        self.process.abort();
        self.reading.abort();
    }
}

/// A copy of the command that also searches its stderr for the address.
fn with_stderr_scan(command: &ServerCommand, found: mpsc::UnboundedSender<ListenAddress>) -> ServerCommand {
    let mut command = command.clone();
    let also = command.stderr.take();
    command.stop_method = StopMethod::Terminate;
    command.stderr = Some(Arc::new(move |line: &str| {
        if let Some(place) = ListenAddress::in_line(line) {
            // The receiver is dropped after the first address.
            let _ = found.send(place);
        }
        if let Some(also) = &also {
            also(line);
        }
    }));
    command
}

async fn read(
    mut receiver: Box<dyn Receiver>,
    found: mpsc::UnboundedSender<ListenAddress>,
    lines: Arc<Mutex<VecDeque<String>>>,
) -> ConnectionEnd {
    loop {
        match receiver.receive().await {
            Event::Message { message, .. } => {
                let line = message.text();
                if let Some(place) = ListenAddress::in_line(&line) {
                    let _ = found.send(place);
                }
                let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
                lines.push_back(line.chars().take(500).collect());
                if lines.len() > MAX_STDOUT_LINES {
                    lines.pop_front();
                }
            }
            Event::ChannelEnded { .. } => {}
            Event::Ended(ending) => return ending,
        }
    }
}

/// The address that a server prints.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ListenAddress {
    scheme: String,
    host: String,
    port: u16,
    path: String,
}

impl ListenAddress {
    /// A URL of this machine, a `HOST:PORT` of it, or `port N`. URLs of other hosts are ignored.
    fn in_line(line: &str) -> Option<ListenAddress> {
        static URL: LazyLock<Regex> = LazyLock::new(|| {
            let host = r"(localhost|127(?:\.\d+){3}|0\.0\.0\.0|\[::1?\])";
            let url = format!(r#"(?:(https?)://)?\b?{host}(?::(\d+))?(/[^\s"'<>(),;\x1b]*)?"#);
            Regex::new(&url).expect("a constant that is tested below")
        });
        static PORT: LazyLock<Regex> =
            LazyLock::new(|| Regex::new(r"(?i)\bport[ :=]+(\d+)").expect("a constant that is tested below"));
        for found in URL.captures_iter(line) {
            let text = |group: usize| found.get(group).map(|text| text.as_str());
            let port = match (text(1), text(3)) {
                (_, Some(port)) => port.parse().ok(),
                (Some("https"), None) => Some(443),
                (Some(_), None) => Some(80),
                (None, None) => None,
            };
            let Some(port) = port else { continue };
            // A server that listens on every address is reached at the loopback address.
            let host = match &found[2] {
                "0.0.0.0" => "127.0.0.1",
                "[::]" => "[::1]",
                host => host,
            };
            let path = text(4).unwrap_or_default().trim_end_matches(['.', '!', ':']);
            let path = if path == "/" { "" } else { path };
            let scheme = text(1).unwrap_or("http");
            return Some(ListenAddress { scheme: scheme.into(), host: host.into(), port, path: path.into() });
        }
        let port = PORT.captures(line)?[1].parse().ok()?;
        let host = Ipv4Addr::LOCALHOST.to_string();
        Some(ListenAddress { scheme: "http".into(), host, port, path: String::new() })
    }

    fn url(&self, wanted: Option<&str>) -> String {
        let ListenAddress { scheme, host, port, path } = self;
        let printed = if path.is_empty() { DEFAULT_PATH } else { path };
        let path = wanted.unwrap_or(printed);
        let slash = if path.starts_with('/') { "" } else { "/" };
        format!("{scheme}://{host}:{port}{slash}{path}")
    }
}

/// A connection to a server that ends with it.
#[derive(Debug)]
struct ListeningSender {
    http: Arc<dyn Sender>,
    /// `None` once this connection has ended. Closing it ends the process; dropping it does, too, if it is the last one.
    listening: Mutex<Option<Arc<ListeningServer>>>,
}

impl ListeningSender {
    fn take_listening(&self) -> Option<Arc<ListeningServer>> {
        self.listening.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn process(&self) -> Option<Arc<dyn Sender>> {
        let listening = self.listening.lock().unwrap_or_else(PoisonError::into_inner);
        listening.as_ref().map(|listening| listening.process.clone())
    }
}

impl Sender for ListeningSender {
    fn open_channel(&self) -> Channel {
        self.http.open_channel()
    }

    fn send(&self, outgoing: Outgoing) -> BoxFuture<'_, Result<(), SendError>> {
        self.http.send(outgoing)
    }

    fn takes_headers(&self) -> bool {
        self.http.takes_headers()
    }

    fn send_bytes(&self, channel: Channel, bytes: Bytes) -> BoxFuture<'_, Result<(), SendError>> {
        self.http.send_bytes(channel, bytes)
    }

    fn close_channel(&self, channel: Channel) {
        self.http.close_channel(channel);
    }

    fn close(&self) -> BoxFuture<'_, StopOutcome> {
        Box::pin(async {
            let stopped = self.http.close().await;
            match self.take_listening() {
                Some(listening) => listening.process.close().await,
                // The process was closed before.
                None => stopped,
            }
        })
    }

    fn abort(&self) {
        self.http.abort();
        drop(self.take_listening());
    }

    fn is_waiting_for_login(&self) -> bool {
        self.http.is_waiting_for_login()
    }

    fn last_stderr(&self) -> Vec<String> {
        self.process().map(|process| process.last_stderr()).unwrap_or_default()
    }

    fn exit_status(&self) -> Option<ExitStatus> {
        self.process().and_then(|process| process.exit_status())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_ways_to_print_an_address_are_recognized() {
        let table = [
            ("listening on http://127.0.0.1:43121/mcp", Some("http://127.0.0.1:43121/mcp")),
            (
                "INFO:     Uvicorn running on http://0.0.0.0:8000 (Press CTRL+C to quit)",
                Some("http://127.0.0.1:8000/mcp"),
            ),
            (
                "Docs at https://example.com:80/x, server at http://localhost:3000/sse.",
                Some("http://localhost:3000/sse"),
            ),
            ("\x1b[1mhttps://[::]:8443/\x1b[0m", Some("https://[::1]:8443/mcp")),
            ("MCP Streamable HTTP Server listening on port 3001", Some("http://127.0.0.1:3001/mcp")),
            ("Listening on localhost:9000", Some("http://localhost:9000/mcp")),
            ("PORT=70000", None),
            ("see https://gofastmcp.com/servers for more", None),
            ("connecting to 127.0.0.1", None),
            ("report 12 done", None),
        ];
        for (line, expected) in table {
            assert_eq!(ListenAddress::in_line(line).map(|place| place.url(None)).as_deref(), expected, "{line}");
        }
        let place = ListenAddress::in_line("http://127.0.0.1:1/mcp").unwrap();
        assert_eq!(place.url(Some("sse")), "http://127.0.0.1:1/sse");
    }
}
