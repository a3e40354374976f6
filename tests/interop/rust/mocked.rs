//! Clients of other projects, on every transport and in both eras; the server is `tiny.mock.yaml`.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::timeout;

use crate::clients::{ERAS, Era, everything, run_script};
use crate::installation::{HttpServer, folder, listening, node, python};
use crate::rmcp_client::{self, ReceivedNotification};

/// `rehearse`, built afresh on first use.
pub(crate) fn rehearse() -> &'static Path {
    static REHEARSE: OnceLock<PathBuf> = OnceLock::new();
    REHEARSE.get_or_init(|| {
        let programs = Path::new(env!("CARGO_BIN_EXE_tiny")).parent().unwrap();
        let mut build = std::process::Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--package", "rehearsal", "--bin", "rehearse"]).current_dir(folder());
        if programs.ends_with("release") {
            build.arg("--release");
        }
        assert!(build.status().unwrap().success(), "rehearse could not be built");
        programs.join("rehearse")
    })
}

/// The command that serves the mock over stdio.
pub(crate) fn words() -> [String; 3] {
    [rehearse().display().to_string(), "mock".to_owned(), file().display().to_string()]
}

pub(crate) fn mock() -> Command {
    let [program, verb, file] = words();
    let mut command = Command::new(program);
    command.args([verb, file]);
    command
}

pub(crate) fn file() -> PathBuf {
    folder().join("tiny.mock.yaml")
}

pub(crate) async fn over_http() -> HttpServer {
    listening(mock().args(["--listen", "0"])).await
}

/// Runs a client on each transport, in each era that it supports.
async fn tours_of(program: &Path, script: &str, eras: &[(&str, &str)], expected: impl Fn(&str) -> Value) {
    let server = over_http().await;
    let (sse, [rehearse, verb, file]) = (server.url.replace("/mcp", "/sse"), words());
    let transports: [&[&str]; 3] =
        [&["--stdio", &rehearse, &verb, &file], &["--url", &server.url], &["--transport", "sse", "--url", &sse]];
    for transport in transports {
        for (era, version) in eras {
            let seen = run_script(program, script, era, transport).await;
            assert_eq!(seen, expected(version), "{script} {transport:?}, era {era}");
        }
    }
}

#[tokio::test]
async fn the_python_sdk_does_everything_with_a_mock() {
    tours_of(&python("python"), "python_client.py", &ERAS, everything).await;
}

#[tokio::test]
async fn the_typescript_sdks_do_everything_with_a_mock() {
    tours_of(&node(), "typescript_client.mjs", &ERAS, everything).await;
    tours_of(&node(), "typescript_client.mjs", &[("v1", "2025-11-25")], everything).await;
}

#[tokio::test]
async fn the_client_of_fastmcp_does_everything_with_a_mock() {
    let expected = |version: &str| {
        let mut expected = everything(version);
        let object = expected.as_object_mut().unwrap();
        for key in ["protocol_version", "unknown", "completion"] {
            object.remove(key);
        }
        object.insert("add".to_owned(), json!({"sum": 42}));
        object.insert("fail".to_owned(), json!("no luck"));
        expected
    };
    tours_of(&python("python"), "fastmcp_client.py", &[("auto", "")], expected).await;
}

#[tokio::test]
async fn the_rust_sdk_does_everything_with_a_mock() {
    let server = over_http().await;
    for era in Era::ALL {
        let over_http = rmcp_client::over_http(&server.url, era, None).await;
        assert_eq!(rmcp_client::tour(over_http).await, everything(era.version()), "over HTTP, era {era:?}");
        let over_stdio = rmcp_client::over_stdio(mock(), era, None).await;
        assert_eq!(rmcp_client::tour(over_stdio).await, everything(era.version()), "over stdio, era {era:?}");
    }
}

#[tokio::test]
async fn the_rust_sdk_negotiates_every_handshake_version_with_a_mock() {
    let server = over_http().await;
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        for client in [
            rmcp_client::over_http(&server.url, Era::Legacy, Some(version)).await,
            rmcp_client::over_stdio(mock(), Era::Legacy, Some(version)).await,
        ] {
            assert_eq!(client.version(), version);
            assert_eq!(client.call("echo", json!({"message": "hello"})).await, Ok("hello".to_owned()));
            assert_eq!(client.call("sample", json!({"prompt": "hi"})).await, Ok("model answered: sampled".to_owned()));
            client.close().await;
        }
    }
}

#[tokio::test]
async fn the_rust_sdk_gets_change_notices_of_a_mock_and_can_cancel() {
    let server = over_http().await;
    for era in [Era::Legacy, Era::Modern] {
        for mut client in
            [rmcp_client::over_http(&server.url, era, None).await, rmcp_client::over_stdio(mock(), era, None).await]
        {
            client.subscribe("tiny://greeting").await;
            assert_eq!(client.call("touch", json!({})).await, Ok("touched".to_owned()));
            let mut received = [client.change().await, client.change().await];
            received.sort();
            assert_eq!(
                received,
                [ReceivedNotification::ToolsChanged, ReceivedNotification::Updated("tiny://greeting".to_owned())],
                "era {era:?}"
            );
            client.begin_and_cancel("slow", json!({"steps": 100})).await;
            let next = client.call("echo", json!({"message": "next"}));
            assert_eq!(timeout(Duration::from_secs(5), next).await, Ok(Ok("next".to_owned())), "era {era:?}");
            client.close().await;
        }
    }
}

#[tokio::test]
async fn a_mock_answers_concurrent_calls_of_the_rust_sdk() {
    let server = over_http().await;
    for era in [Era::Legacy, Era::Modern] {
        for client in
            [rmcp_client::over_http(&server.url, era, None).await, rmcp_client::over_stdio(mock(), era, None).await]
        {
            client.adds_many_numbers(100).await;
            client.close().await;
        }
    }
}

#[tokio::test]
async fn the_rust_sdk_starts_a_new_session_with_a_restarted_mock() {
    let first = over_http().await;
    let address = first.url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    let client = rmcp_client::over_http(&first.url, Era::Legacy, None).await;
    assert_eq!(client.call("echo", json!({"message": "before"})).await, Ok("before".to_owned()));
    first.stop().await;
    let _second = listening(mock().args(["--listen", &address])).await;
    assert_eq!(client.call("echo", json!({"message": "after"})).await, Ok("after".to_owned()));
    client.close().await;
}
