//! Requests that were not recorded are forwarded to the upstream, for clients of both eras.

use std::path::{Path, PathBuf};

use rehearsal::Client;
use rehearsal::client::ClientBuilder;
use rehearsal::core::protocol::Revision;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::clients::run_script;
use crate::installation::{TIMEOUT, folder, listening, node, npm_server, python};
use crate::mocked::rehearse;
use crate::replayed::{TraceFile, answers, call_with_progress};

/// The command line that starts a server on FastMCP, which supports both eras.
fn fastmcp() -> Vec<PathBuf> {
    vec![python("python"), folder().join("servers/fastmcp_server.py"), "stdio".into()]
}

/// The command line that starts the reference server, which has a handshake.
fn reference() -> Vec<PathBuf> {
    vec![node(), npm_server("server-everything"), "stdio".into()]
}

/// A recording with only the handshake and the lists.
async fn record_lists(server: &[PathBuf]) -> TraceFile {
    let trace_file = TraceFile::new();
    let words = trace_file.recording(server.iter().map(|word| word.to_str().unwrap()));
    let client = Client::command(&words[0]).args(&words[1..]).timeout(TIMEOUT);
    let client = client.handlers(answers()).connect().await.unwrap();
    client.list_tools().await.unwrap();
    client.list_resources().await.unwrap();
    client.list_prompts().await.unwrap();
    client.close().await;
    trace_file.wait_until_written().await;
    trace_file
}

fn forwarding(trace_file: &TraceFile, server: &[PathBuf]) -> Vec<PathBuf> {
    let mut words = vec![rehearse().into(), "replay".into(), trace_file.path(), "-q".into()];
    words.extend(["--unmatched".into(), "forward".into(), "--".into()]);
    words.extend(server.iter().cloned());
    words
}

#[tokio::test]
async fn sdk_clients_answer_requests_of_the_upstream_behind_a_replay() {
    let trace_file = record_lists(&fastmcp()).await;
    let mut words = forwarding(&trace_file, &fastmcp());
    // To another file, so that the next client finds nothing recorded either.
    words.splice(3..3, ["-o".into(), trace_file.path().with_file_name("live.jsonl")]);
    // The clients take `--` for themselves.
    let start = trace_file.path().with_file_name("start.sh");
    let quoted: Vec<String> = words.iter().map(|word| format!("'{}'", word.display())).collect();
    std::fs::write(&start, format!("exec {}\n", quoted.join(" "))).unwrap();
    let at = words.iter().position(|word| word == Path::new("--")).unwrap();
    let mut command = Command::new(&words[0]);
    command.args(&words[1..at]).args(["--listen", "0"]).args(&words[at..]);
    let served = listening(&mut command).await;
    let stdio = ["--stdio", "sh", start.to_str().unwrap()];
    let http = ["--url", served.url.as_str()];
    let direct: Vec<String> = fastmcp().iter().map(|word| word.display().to_string()).collect();
    let quiet = trace_file.path().with_file_name("direct.sh");
    std::fs::write(&quiet, format!("exec {} 2>/dev/null\n", direct.join(" "))).unwrap();
    for era in ["legacy", "modern"] {
        let direct = ["--stdio", "sh", quiet.to_str().unwrap()];
        let expected = run_script(&python("python"), "python_client.py", era, &direct).await;
        for (program, script) in [(python("python"), "python_client.py"), (node(), "typescript_client.mjs")] {
            let transport: &[&str] = if (era == "legacy") == script.starts_with("python") { &stdio } else { &http };
            let seen = run_script(&program, script, era, transport).await;
            assert_eq!(seen, expected, "{script} {transport:?}, era {era}");
        }
    }
}

/// Calls of the reference server: with sampling, with elicitation, with progress, and without any of them.
const CALLS: [&str; 4] =
    ["trigger-sampling-request", "trigger-elicitation-request", "trigger-long-running-operation", "get-sum"];

fn arguments(tool: &str) -> Value {
    match tool {
        "trigger-sampling-request" => json!({"prompt": "hi", "maxTokens": 10}),
        "trigger-long-running-operation" => json!({"duration": 0.2, "steps": 2}),
        "get-sum" => json!({"a": 1, "b": 2}),
        _ => json!({}),
    }
}

#[tokio::test]
async fn forwarded_calls_of_the_reference_server_are_recorded_with_their_server_requests() {
    let server = reference();
    let direct = Client::command(&server[0]).args(&server[1..]).timeout(TIMEOUT).handlers(answers());
    let direct = direct.connect().await.unwrap();
    // It offers the tools that need the client after it has read the client's capabilities.
    direct.notification("notifications/tools/list_changed").await.unwrap();
    let mut expected = Vec::new();
    for tool in CALLS {
        expected.push(call_with_progress(&direct, tool, arguments(tool)).await);
    }
    direct.close().await;
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28] {
        let with = |builder: ClientBuilder| {
            let builder = builder.timeout(TIMEOUT).handlers(answers());
            if revision.has_handshake() { builder.legacy(revision) } else { builder.modern() }
        };
        let trace_file = record_lists(&server).await;
        let words = forwarding(&trace_file, &server);
        let client = with(Client::command(&words[0]).args(&words[1..])).connect().await.unwrap();
        for (tool, expected) in CALLS.iter().zip(&expected) {
            assert_eq!(&call_with_progress(&client, tool, arguments(tool)).await, expected, "{revision}, {tool}");
        }
        client.close().await;
        trace_file.wait_until_written().await;
        // And without the server.
        let replay = with(Client::command(rehearse()).args(["replay", "-q"]).args([trace_file.path()]));
        let client = replay.connect().await.unwrap();
        for (tool, expected) in CALLS.iter().zip(&expected) {
            assert_eq!(
                &call_with_progress(&client, tool, arguments(tool)).await,
                expected,
                "{revision}, {tool}, replayed"
            );
        }
        client.close().await;
    }
}

#[tokio::test]
async fn capabilities_that_the_client_lacks_are_not_declared_to_the_upstream() {
    let server = reference();
    let trace_file = record_lists(&server).await;
    let words = forwarding(&trace_file, &server);
    let client = Client::command(&words[0]).args(&words[1..]).timeout(TIMEOUT).connect().await.unwrap();
    let response = client.call_tool("trigger-sampling-request", json!({"prompt": "hi"})).await.unwrap();
    // The server has no such tool for it.
    assert!(response.result()["isError"] == true, "{response:?}");
    client.close().await;
}
