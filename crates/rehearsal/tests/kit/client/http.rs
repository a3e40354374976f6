//! HTTP servers that are slow or break their streams.

use std::sync::Arc;
use std::time::Duration;

use rehearsal::Client;
use rehearsal::client::ClientError;
use rehearsal::core::protocol::Revision;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, mpsc, watch};

/// An HTTP request and the connection for its response; each request has its own connection.
struct HttpRequest {
    line: String,
    message: Value,
    stream: TcpStream,
}

impl HttpRequest {
    async fn read(mut stream: TcpStream) -> Option<HttpRequest> {
        let mut bytes = Vec::new();
        loop {
            if stream.read_buf(&mut bytes).await.ok()? == 0 {
                return None;
            }
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let length =
                head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                let line = head.lines().next()?.trim_end_matches(" HTTP/1.1").to_owned();
                return Some(HttpRequest { line, message: serde_json::from_str(body).unwrap_or_default(), stream });
            }
        }
    }

    async fn write(&mut self, text: &str) {
        // The client may have closed its connection.
        let _ = self.stream.write_all(text.as_bytes()).await;
    }

    async fn answer(mut self, status: &str, kind: &str, body: &str) {
        let length = body.len();
        let head =
            format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-type: {kind}\r\ncontent-length: {length}");
        self.write(&format!("{head}\r\n\r\n{body}")).await;
    }

    fn result(&self) -> String {
        let result = match self.message["method"].as_str() {
            Some("initialize") => {
                json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "difficult"}})
            }
            _ => json!({"tools": []}),
        };
        json!({"jsonrpc": "2.0", "id": self.message["id"], "result": result}).to_string()
    }
}

/// Starts a server; returns its URL without a path.
async fn serve<A: Future<Output = ()> + Send>(answer: impl Fn(HttpRequest) -> A + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let answer = answer.clone();
            tokio::spawn(async move {
                if let Some(request) = HttpRequest::read(stream).await {
                    answer(request).await;
                }
            });
        }
    });
    url
}

#[tokio::test]
async fn a_slow_http_sse_server_is_detected() {
    let (posts, _) = watch::channel(0);
    let (sender, responses) = mpsc::unbounded_channel::<String>();
    let responses = Arc::new(Mutex::new(responses));
    let url = serve(move |mut request| {
        let (posts, sender, responses) = (posts.clone(), sender.clone(), responses.clone());
        async move {
            match request.line.as_str() {
                // Answers only after the second POST, so that the client has sent `initialize` before it receives the 405.
                "POST /sse" => {
                    posts.send_modify(|posts| *posts += 1);
                    posts.subscribe().wait_for(|posts| *posts >= 2).await.unwrap();
                    request.answer("405 Method Not Allowed", "text/plain", "only GET").await;
                }
                "GET /sse" => {
                    request.write("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n").await;
                    request.write("event: endpoint\ndata: /messages\n\n").await;
                    while let Some(message) = responses.lock().await.recv().await {
                        request.write(&format!("event: message\ndata: {message}\n\n")).await;
                    }
                }
                _ => {
                    if request.message.get("id").is_some() {
                        sender.send(request.result()).unwrap();
                    }
                    request.answer("202 Accepted", "text/plain", "").await;
                }
            }
        }
    })
    .await;
    let client = Client::url(format!("{url}/sse")).connect().await.unwrap();
    assert_eq!(client.revision(), Revision::V2025_11_25);
    assert!(client.list_tools().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_timeout_during_stream_resumption_names_the_resumption() {
    let url = serve(|request| async move {
        match request.message["method"].as_str() {
            Some("initialize") => {
                let result = request.result();
                request.answer("200 OK", "application/json", &result).await;
            }
            Some("tools/call") => {
                // The stream ends at once, with a retry delay of one hour.
                let events = "id: first\nretry: 3600000\ndata: \n\n";
                request.answer("200 OK", "text/event-stream", events).await;
            }
            Some(_) => request.answer("202 Accepted", "text/plain", "").await,
            None => request.answer("405 Method Not Allowed", "text/plain", "no GET stream").await,
        }
    })
    .await;
    let client = Client::url(format!("{url}/mcp")).legacy(Revision::V2025_11_25).connect().await.unwrap();
    let error = client.call("slow").timeout(Duration::from_millis(300)).await.unwrap_err();
    assert!(matches!(error, ClientError::TimedOut { .. }), "{error}");
    assert_eq!(
        error.to_string(),
        "no answer to tools/call within 0.3 s\n  at that moment: the stream of the response broke; it was being resumed after \
         event \"first\", attempt 1"
    );
}
