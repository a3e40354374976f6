//! Servers that make HTTP difficult.

use std::sync::Arc;
use std::time::Duration;

use rehearsal::Client;
use rehearsal::client::ClientError;
use rehearsal::core::protocol::Revision;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, mpsc, watch};

/// One request of HTTP, and the connection to answer it on; there is one connection for each.
struct Asked {
    line: String,
    message: Value,
    stream: TcpStream,
}

impl Asked {
    async fn read(mut stream: TcpStream) -> Option<Asked> {
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
                return Some(Asked { line, message: serde_json::from_str(body).unwrap_or_default(), stream });
            }
        }
    }

    async fn write(&mut self, text: &str) {
        // Whoever asked may be gone.
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

/// Begins to serve; the URL without a path.
async fn serve<A: Future<Output = ()> + Send>(answer: impl Fn(Asked) -> A + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let answer = answer.clone();
            tokio::spawn(async move {
                if let Some(asked) = Asked::read(stream).await {
                    answer(asked).await;
                }
            });
        }
    });
    url
}

#[tokio::test]
async fn a_slow_server_that_speaks_only_http_sse_is_found_out() {
    let (posts, _) = watch::channel(0);
    let (say, said) = mpsc::unbounded_channel::<String>();
    let said = Arc::new(Mutex::new(said));
    let url = serve(move |mut asked| {
        let (posts, say, said) = (posts.clone(), say.clone(), said.clone());
        async move {
            match asked.line.as_str() {
                // So slow that the client has asked for the handshake before it hears that there is no such thing.
                "POST /sse" => {
                    posts.send_modify(|posts| *posts += 1);
                    posts.subscribe().wait_for(|posts| *posts >= 2).await.unwrap();
                    asked.answer("405 Method Not Allowed", "text/plain", "only GET").await;
                }
                "GET /sse" => {
                    asked.write("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n").await;
                    asked.write("event: endpoint\ndata: /messages\n\n").await;
                    while let Some(message) = said.lock().await.recv().await {
                        asked.write(&format!("event: message\ndata: {message}\n\n")).await;
                    }
                }
                _ => {
                    if asked.message.get("id").is_some() {
                        say.send(asked.result()).unwrap();
                    }
                    asked.answer("202 Accepted", "text/plain", "").await;
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
async fn a_time_out_while_a_broken_stream_is_resumed_says_so() {
    let url = serve(|asked| async move {
        match asked.message["method"].as_str() {
            Some("initialize") => {
                let result = asked.result();
                asked.answer("200 OK", "application/json", &result).await;
            }
            Some("tools/call") => {
                // The stream ends at once, and the client shall come back for the rest in an hour.
                let events = "id: first\nretry: 3600000\ndata: \n\n";
                asked.answer("200 OK", "text/event-stream", events).await;
            }
            Some(_) => asked.answer("202 Accepted", "text/plain", "").await,
            None => asked.answer("405 Method Not Allowed", "text/plain", "no standing stream").await,
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
