//! Streams that break in the middle of a call: before 2026-07-28 a client resumes the stream with `Last-Event-ID`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rehearsal::Client;
use rehearsal::core::protocol::Revision;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;

use crate::clients::{Era, everything, run_script};
use crate::installation::{TIMEOUT, listening, node, python};
use crate::{mocked, rmcp_client, server_everything};

/// The text in the stream after which it is cut.
const MARK: &[u8] = b"notifications/progress";

/// Forwards all bytes, but cuts the first connection on which the server sends progress, right after that event.
pub(crate) struct Scissors {
    pub(crate) url: String,
    cut: Arc<AtomicBool>,
}

impl Scissors {
    pub(crate) async fn before(url: &str) -> Scissors {
        let (address, path) = url.trim_start_matches("http://").split_once('/').unwrap();
        let target: SocketAddr = address.parse().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/{path}", listener.local_addr().unwrap());
        let cut = Arc::new(AtomicBool::new(false));
        let done = Arc::clone(&cut);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(hand_on(client, target, Arc::clone(&done)));
            }
        });
        Scissors { url, cut }
    }

    pub(crate) fn assert_used(&self) {
        assert!(self.cut.load(Ordering::Relaxed), "no stream was cut");
    }
}

async fn hand_on(client: TcpStream, target: SocketAddr, cut: Arc<AtomicBool>) -> std::io::Result<()> {
    let server = TcpStream::connect(target).await?;
    for stream in [&client, &server] {
        stream.set_nodelay(true)?;
    }
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let up = tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
    let mut seen = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let count = from_server.read(&mut chunk).await?;
        if count == 0 {
            break;
        }
        to_client.write_all(&chunk[..count]).await?;
        seen.extend_from_slice(&chunk[..count]);
        // The whole event must be sent: a part of it has no id to resume after.
        let at = seen.windows(MARK.len()).position(|window| window == MARK);
        let is_whole = at.is_some_and(|at| seen[at..].windows(2).any(|window| window == b"\n\n"));
        if is_whole && !cut.swap(true, Ordering::Relaxed) {
            break;
        }
    }
    up.abort();
    Ok(())
}

#[tokio::test]
async fn other_clients_resume_streams_of_our_server() {
    let server = mocked::over_http().await;
    let programs = [
        (python("python"), "python_client.py", "legacy"),
        (node(), "typescript_client.mjs", "legacy"),
        (node(), "typescript_client.mjs", "v1"),
    ];
    for (program, script, era) in programs {
        let scissors = Scissors::before(&server.url).await;
        let seen = run_script(&program, script, era, &["--url", &scissors.url]).await;
        assert_eq!(seen, everything("2025-11-25"), "{script}, era {era}");
        scissors.assert_used();
    }
    let scissors = Scissors::before(&server.url).await;
    let client = rmcp_client::over_http(&scissors.url, Era::Legacy, None).await;
    assert_eq!(rmcp_client::tour(client).await, everything("2025-11-25"), "the Rust SDK");
    scissors.assert_used();
}

#[tokio::test]
async fn our_client_resumes_streams_of_the_rust_sdk() {
    let server = listening(Command::new(env!("CARGO_BIN_EXE_tiny")).arg("--http")).await;
    let scissors = Scissors::before(&server.url).await;
    let client = Client::url(&scissors.url).legacy(Revision::LATEST_LEGACY).timeout(TIMEOUT).connect().await.unwrap();
    // The SDK keeps the last 16 events, and none of a call that is over: the call must outlast the pause.
    let slow = client.call("slow").arguments(json!({"steps": 100, "delay_ms": 10})).with_progress().await.unwrap();
    assert_eq!(slow.content(), "done in 100 steps");
    assert!(slow.progress().len() > 1, "{slow:?}");
    client.close().await;
    scissors.assert_used();
}

#[tokio::test]
async fn our_client_resumes_streams_of_server_everything() {
    let server = server_everything::http("streamableHttp").await;
    let scissors = Scissors::before(&server.url).await;
    let client = Client::url(&scissors.url).timeout(TIMEOUT).connect().await.unwrap();
    let call = client.call("trigger-long-running-operation").arguments(json!({"duration": 0.3, "steps": 3}));
    let slow = call.with_progress().await.unwrap();
    assert!(slow.success() && slow.progress().len() == 3, "{slow:?}");
    client.close().await;
    scissors.assert_used();
}

#[tokio::test]
async fn since_2026_07_28_our_client_reports_a_cut_stream_as_lost() {
    let server = listening(Command::new(env!("CARGO_BIN_EXE_tiny")).arg("--http")).await;
    let scissors = Scissors::before(&server.url).await;
    let client = Client::url(&scissors.url).timeout(TIMEOUT).connect().await.unwrap();
    let lost = client.call("slow").arguments(json!({"steps": 3, "delay_ms": 10})).with_progress().await.unwrap_err();
    let lost = lost.to_string();
    assert!(lost.contains("tools/call") && lost.contains("the stream ended before the answer"), "{lost}");
    assert_eq!(client.call_tool("echo", json!({"message": "next"})).await.unwrap().content(), "next");
    scissors.assert_used();
}
