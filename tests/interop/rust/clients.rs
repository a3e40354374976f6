//! Clients that nobody here wrote, on every transport and in both eras; the server is ours.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::timeout;

use crate::installed::{HttpServer, TIMEOUT, folder, listening, node, python};
use crate::rmcp_client::{self, Heard};

/// The program of `examples/tiny-server`.
const TINY: &str = env!("CARGO_BIN_EXE_tiny");

/// How a client chooses the era.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Era {
    /// It finds out.
    Auto,
    /// With a handshake.
    Legacy,
    /// Without one.
    Modern,
}

impl Era {
    pub(crate) const ALL: [Era; 3] = [Era::Auto, Era::Legacy, Era::Modern];

    /// The version that is spoken in the end.
    pub(crate) fn version(self) -> &'static str {
        match self {
            Era::Auto | Era::Modern => "2026-07-28",
            Era::Legacy => "2025-11-25",
        }
    }
}

/// How the scripts in `clients/` are told the era, and which version is spoken in the end.
pub(crate) const ERAS: [(&str, &str); 3] = [("auto", "2026-07-28"), ("legacy", "2025-11-25"), ("modern", "2026-07-28")];

pub(crate) async fn tiny_over_http() -> HttpServer {
    listening(Command::new(TINY).arg("--http")).await
}

/// What a client sees that can do everything.
pub(crate) fn everything(version: &str) -> Value {
    json!({
        "protocol_version": version,
        "tools": ["echo", "add", "slow", "log", "fail", "ask", "sample", "roots", "picture", "touch"],
        "echo": "hello",
        "add": "42",
        "unknown": {"kind": "protocol_error", "code": -32602, "message": "unknown tool \"no_such_tool\""},
        "progress": 3,
        "ask": "Hello, Ada!",
        "sample": "model said: sampled",
        "roots": "file:///project",
        "resource": "Hello from tiny-server",
        "prompt": "Hello Ada",
        "completion": ["Ada", "Alan"],
        "error": null,
    })
}

#[tokio::test]
async fn the_python_sdk_does_everything_with_our_server() {
    tours_of(&python("python"), "python_client.py", &ERAS).await;
}

#[tokio::test]
async fn the_typescript_sdk_does_everything_with_our_server() {
    tours_of(&node(), "typescript_client.mjs", &ERAS).await;
}

#[tokio::test]
async fn the_first_typescript_sdk_does_everything_with_our_server() {
    tours_of(&node(), "typescript_client.mjs", &[("v1", "2025-11-25")]).await;
}

async fn tours_of(program: &Path, script: &str, eras: &[(&str, &str)]) {
    let server = tiny_over_http().await;
    let sse = server.url.replace("/mcp", "/sse");
    let transports: [&[&str]; 3] =
        [&["--stdio", TINY], &["--url", &server.url], &["--transport", "sse", "--url", &sse]];
    for transport in transports {
        for (era, version) in eras {
            let seen = run_script(program, script, era, transport).await;
            assert_eq!(seen, everything(version), "{script} {transport:?}, era {era}");
        }
    }
}

/// What a client sees, said by itself.
pub(crate) async fn run_script(program: &Path, script: &str, era: &str, transport: &[&str]) -> Value {
    let mut command = Command::new(program);
    command.arg(folder().join("clients").join(script)).args(["--era", era]).args(transport);
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let output = timeout(TIMEOUT, output).await.expect("the client hangs").unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said, "", "{script} {transport:?}, era {era} complains");
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test]
async fn the_rust_sdk_does_everything_with_our_server() {
    let server = tiny_over_http().await;
    for era in Era::ALL {
        let over_http = rmcp_client::over_http(&server.url, era, None).await;
        assert_eq!(rmcp_client::tour(over_http).await, everything(era.version()), "over HTTP, era {era:?}");
        let over_stdio = rmcp_client::over_stdio(Command::new(TINY), era, None).await;
        assert_eq!(rmcp_client::tour(over_stdio).await, everything(era.version()), "over stdio, era {era:?}");
    }
}

#[tokio::test]
async fn the_rust_sdk_agrees_with_our_server_on_every_version_of_the_handshake() {
    let server = tiny_over_http().await;
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        for client in [
            rmcp_client::over_http(&server.url, Era::Legacy, Some(version)).await,
            rmcp_client::over_stdio(Command::new(TINY), Era::Legacy, Some(version)).await,
        ] {
            assert_eq!(client.version(), version);
            assert_eq!(client.call("echo", json!({"message": "hello"})).await, Ok("hello".to_owned()));
            assert_eq!(client.call("sample", json!({"prompt": "hi"})).await, Ok("model said: sampled".to_owned()));
            client.close().await;
        }
    }
}

#[tokio::test]
async fn the_rust_sdk_hears_from_our_server_what_changed() {
    let server = tiny_over_http().await;
    for era in [Era::Legacy, Era::Modern] {
        for mut client in [
            rmcp_client::over_http(&server.url, era, None).await,
            rmcp_client::over_stdio(Command::new(TINY), era, None).await,
        ] {
            client.subscribe("tiny://greeting").await;
            assert_eq!(client.call("touch", json!({})).await, Ok("touched".to_owned()));
            let mut heard = [client.change().await, client.change().await];
            heard.sort();
            assert_eq!(heard, [Heard::ToolsChanged, Heard::Updated("tiny://greeting".to_owned())], "era {era:?}");
            client.close().await;
        }
    }
}

#[tokio::test]
async fn the_rust_sdk_gives_up_on_our_server_and_goes_on() {
    let server = tiny_over_http().await;
    for era in [Era::Legacy, Era::Modern] {
        for mut client in [
            rmcp_client::over_http(&server.url, era, None).await,
            rmcp_client::over_stdio(Command::new(TINY), era, None).await,
        ] {
            client.begin_and_cancel("slow", json!({"steps": 100, "delay_ms": 10_000})).await;
            let next = client.call("echo", json!({"message": "next"}));
            assert_eq!(timeout(Duration::from_secs(5), next).await, Ok(Ok("next".to_owned())), "era {era:?}");
            client.close().await;
        }
    }
}

#[tokio::test]
async fn the_rust_sdk_turns_the_pages_of_our_server() {
    for era in [Era::Legacy, Era::Modern] {
        let mut command = Command::new(TINY);
        command.args(["--page-size", "3"]);
        let client = rmcp_client::over_stdio(command, era, None).await;
        assert_eq!(client.tools().await.len(), 10);
        client.close().await;
    }
}

#[tokio::test]
async fn many_calls_of_the_rust_sdk_at_once_each_get_their_own_answer() {
    let server = tiny_over_http().await;
    for era in [Era::Legacy, Era::Modern] {
        for client in [
            rmcp_client::over_http(&server.url, era, None).await,
            rmcp_client::over_stdio(Command::new(TINY), era, None).await,
        ] {
            client.adds_many_numbers(100).await;
            client.close().await;
        }
    }
}

#[tokio::test]
async fn the_rust_sdk_begins_a_new_session_with_a_server_that_was_started_again() {
    let first = tiny_over_http().await;
    let address = first.url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    let client = rmcp_client::over_http(&first.url, Era::Legacy, None).await;
    assert_eq!(client.call("echo", json!({"message": "before"})).await, Ok("before".to_owned()));
    first.stop().await;
    let _second = listening(Command::new(TINY).args(["--http", &address])).await;
    assert_eq!(client.call("echo", json!({"message": "after"})).await, Ok("after".to_owned()));
    client.close().await;
}
