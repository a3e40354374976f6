//! Servers of other projects, in both eras.

use std::path::Path;

use rehearsal::Client;
use rehearsal::client::{ClientBuilder, ClientHandlers};
use rehearsal::core::message::Method;
use rehearsal::core::protocol::{Era, Revision};
use serde_json::json;
use tokio::process::Command;

use crate::installation::{TIMEOUT, folder, listening, node, npm_server, python, script, sdk_server};

fn answers() -> ClientHandlers {
    ClientHandlers::new()
        .roots([("file:///interop", "interop")])
        .sampling_text("sampled")
        .elicitation_accept(json!({"name": "Ada"}))
}

/// Builders for both eras: first the one that the server prefers.
pub(crate) fn in_both_eras(builder: impl Fn() -> ClientBuilder) -> [(ClientBuilder, Era); 2] {
    [(builder(), Era::Modern), (builder().legacy(Revision::LATEST_LEGACY), Era::Legacy)]
}

#[tokio::test]
async fn filesystem_reads_its_folder_and_refuses_other_paths() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("note.txt"), "a note").unwrap();
    let command = Client::command(node()).args([npm_server("server-filesystem").as_path(), folder.path()]);
    let client = command.timeout(TIMEOUT).connect().await.unwrap();
    assert_eq!(client.list_tools().await.unwrap().len(), 14);
    let path = folder.path().join("note.txt");
    let read = client.call_tool("read_text_file", json!({"path": path})).await.unwrap();
    assert_eq!(read.content(), "a note");
    assert_eq!(read.structured_content(), Some(&json!({"content": "a note"})));
    let refused = client.call_tool("read_text_file", json!({"path": "/etc/passwd"})).await.unwrap();
    assert!(refused.is_tool_error() && refused.error_message().unwrap().starts_with("Access denied"));
}

#[tokio::test]
async fn memory_remembers() {
    let folder = tempfile::tempdir().unwrap();
    let command = Client::command(node()).args([npm_server("server-memory")]);
    let command = command.env("MEMORY_FILE_PATH", folder.path().join("memory.jsonl")).timeout(TIMEOUT);
    let client = command.connect().await.unwrap();
    let ada = json!({"name": "Ada", "entityType": "person", "observations": ["writes programs"]});
    assert!(client.call_tool("create_entities", json!({"entities": [ada]})).await.unwrap().success());
    let graph = client.call_tool("read_graph", json!({})).await.unwrap();
    assert_eq!(graph.structured_content().unwrap()["entities"], json!([ada]));
    let resources = client.list_resources().await.unwrap();
    assert!(client.read_resource(&resources[0].uri).await.unwrap().content().contains("Ada"));
}

#[tokio::test]
async fn time_converts_in_both_eras() {
    for (builder, era) in in_both_eras(|| Client::command(python("mcp-server-time")).timeout(TIMEOUT)) {
        let client = builder.connect().await.unwrap();
        assert_eq!(client.revision().era(), era);
        let arguments = json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"});
        let converted = client.call_tool("convert_time", arguments).await.unwrap();
        assert!(converted.content().contains("21:00"), "{}", converted.content());
        let nowhere = client.call_tool("get_current_time", json!({"timezone": "No/Where"})).await.unwrap();
        assert!(nowhere.is_tool_error(), "{}", nowhere.raw());
        assert_eq!(client.call_tool("no_such_tool", json!({})).await.unwrap().error_code(), Some(-32602));
    }
}

pub(crate) fn git(folder: &Path, arguments: &[&str]) {
    let identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"];
    let status =
        std::process::Command::new("git").args(identity).arg("-C").arg(folder).args(arguments).status().unwrap();
    assert!(status.success());
}

#[tokio::test]
async fn git_returns_its_log_in_both_eras() {
    let folder = tempfile::tempdir().unwrap();
    git(folder.path(), &["init", "--quiet"]);
    std::fs::write(folder.path().join("a.txt"), "a").unwrap();
    git(folder.path(), &["add", "."]);
    git(folder.path(), &["commit", "--quiet", "-m", "the first commit"]);
    let command = || {
        let arguments = ["--repository".into(), folder.path().as_os_str().to_owned()];
        Client::command(python("mcp-server-git")).args(arguments).timeout(TIMEOUT)
    };
    for (builder, era) in in_both_eras(command) {
        let client = builder.connect().await.unwrap();
        assert_eq!(client.revision().era(), era);
        let log = client.call_tool("git_log", json!({"repo_path": folder.path()})).await.unwrap();
        assert!(log.content().contains("the first commit"), "{}", log.content());
    }
}

#[tokio::test]
async fn fastmcp_over_every_transport_and_era() {
    let http = sdk_server(&python("python"), "fastmcp_server.py", "http").await;
    for (builder, era) in in_both_eras(|| Client::url(&http.url)) {
        sdk_tour(builder, era, "isError").await;
    }
    let sse = sdk_server(&python("python"), "fastmcp_server.py", "sse").await;
    sdk_tour(Client::url(&sse.url).legacy(Revision::V2024_11_05), Era::Legacy, "isError").await;
    for (builder, era) in in_both_eras(|| script("fastmcp_server.py").args(["stdio"])) {
        sdk_tour(builder, era, "isError").await;
    }
}

#[tokio::test]
async fn typescript_over_every_transport_and_era() {
    let http = sdk_server(&node(), "typescript_server.mjs", "http").await;
    for (builder, era) in in_both_eras(|| Client::url(&http.url)) {
        sdk_tour(builder, era, "-32602").await;
    }
    let path = folder().join("servers/typescript_server.mjs").into_os_string();
    let stdio = || Client::command(node()).args([path.clone(), "stdio".into()]);
    for (builder, era) in in_both_eras(stdio) {
        sdk_tour(builder, era, "-32602").await;
    }
}

#[tokio::test]
async fn rmcp_over_every_transport_and_era() {
    let program = env!("CARGO_BIN_EXE_tiny");
    let http = listening(Command::new(program).arg("--http")).await;
    for (builder, era) in in_both_eras(|| Client::url(&http.url)) {
        sdk_tour(builder, era, "-32602").await;
    }
    for (builder, era) in in_both_eras(|| Client::command(program)) {
        sdk_tour(builder, era, "-32602").await;
    }
}

#[tokio::test]
async fn a_server_of_one_era_is_used_in_that_era() {
    let program = env!("CARGO_BIN_EXE_tiny");
    for (eras, era) in [("legacy", Era::Legacy), ("modern", Era::Modern)] {
        let http = listening(Command::new(program).args(["--http", "--only", eras])).await;
        for builder in [Client::url(&http.url), Client::command(program).args(["--only", eras])] {
            sdk_tour(builder, era, "-32602").await;
        }
    }
}

#[tokio::test]
async fn the_error_code_of_a_server_of_the_other_era_is_reported() {
    let program = env!("CARGO_BIN_EXE_tiny");
    for (eras, method) in [("legacy", "server/discover"), ("modern", "initialize")] {
        let http = listening(Command::new(program).args(["--http", "--only", eras])).await;
        for builder in [Client::url(&http.url), Client::command(program).args(["--only", eras])] {
            let builder = if eras == "legacy" { builder.modern() } else { builder.legacy(Revision::LATEST_LEGACY) };
            let error = builder.timeout(TIMEOUT).connect().await.unwrap_err().to_string();
            assert!(error.starts_with(&format!("{method} was refused")) && error.contains("-32022"), "{error}");
        }
    }
}

#[tokio::test]
async fn every_version_of_the_handshake_with_the_rust_sdk() {
    let program = env!("CARGO_BIN_EXE_tiny");
    let http = listening(Command::new(program).arg("--http")).await;
    for revision in Revision::ALL.into_iter().filter(|revision| revision.has_handshake()) {
        for builder in [Client::url(&http.url), Client::command(program)] {
            let client = builder.legacy(revision).timeout(TIMEOUT).handlers(answers()).connect().await.unwrap();
            assert_eq!(client.revision(), revision);
            let sampled = client.call_tool("sample", json!({"prompt": "hi"})).await.unwrap();
            assert!(sampled.content().ends_with("sampled"), "{}", sampled.raw());
            client.close().await;
        }
    }
}

#[tokio::test]
async fn the_rust_sdk_sends_change_notices_in_both_eras() {
    let program = env!("CARGO_BIN_EXE_tiny");
    let http = listening(Command::new(program).arg("--http")).await;
    let over_http = in_both_eras(|| Client::url(&http.url));
    let over_stdio = in_both_eras(|| Client::command(program));
    for (builder, era) in over_http.into_iter().chain(over_stdio) {
        let client = builder.timeout(TIMEOUT).connect().await.unwrap();
        client.subscribe("tiny://greeting").await.unwrap();
        let updated = client.notification(Method::RESOURCE_UPDATED).await.unwrap();
        assert_eq!(
            updated.params().unwrap().field("uri").unwrap().text().as_deref(),
            Some("tiny://greeting"),
            "{era:?}"
        );
        client.unsubscribe("tiny://greeting").await.unwrap();
        assert_eq!(client.call_tool("echo", json!({"message": "next"})).await.unwrap().content(), "next");
        client.close().await;
    }
}

#[tokio::test]
async fn concurrent_calls_to_the_rust_sdk_get_their_own_answers() {
    let program = env!("CARGO_BIN_EXE_tiny");
    let http = listening(Command::new(program).arg("--http")).await;
    let servers = [|url: &str| Client::url(url), |_: &str| Client::command(env!("CARGO_BIN_EXE_tiny"))];
    for server in servers {
        for (builder, _) in in_both_eras(|| server(&http.url)) {
            let client = builder.timeout(TIMEOUT).connect().await.unwrap();
            let calls = (0..200).map(|number| {
                let client = client.clone();
                tokio::spawn(async move {
                    let sum = client.call_tool("add", json!({"a": number, "b": 1})).await.unwrap();
                    assert_eq!(sum.structured_content(), Some(&json!({"sum": number + 1})));
                })
            });
            for call in calls.collect::<Vec<_>>() {
                call.await.unwrap();
            }
            client.close().await;
        }
    }
}

#[tokio::test]
async fn a_session_that_the_server_dropped_is_reported_with_its_status() {
    let script = folder().join("servers/typescript_server.mjs");
    let first = listening(Command::new(node()).arg(&script).args(["http"])).await;
    let port = first.url.trim_end_matches("/mcp").rsplit(':').next().unwrap().to_owned();
    let client = Client::url(&first.url).legacy(Revision::LATEST_LEGACY).timeout(TIMEOUT).connect().await.unwrap();
    assert_eq!(client.call_tool("echo", json!({"message": "before"})).await.unwrap().content(), "before");
    first.stop().await;
    let _second = listening(Command::new(node()).arg(&script).args(["http", &port])).await;
    let response = client.call_tool("echo", json!({"message": "after"})).await.unwrap();
    assert_eq!((response.http_status(), response.error_code()), (Some(404), Some(-32001)), "{}", response.raw());
    client.close().await;
}

/// Everything that our three small servers on other SDKs can do.
pub(crate) async fn sdk_tour(builder: ClientBuilder, era: Era, unknown_tool: &str) {
    let client = builder.timeout(TIMEOUT).handlers(answers()).connect().await.unwrap();
    assert_eq!(client.revision().era(), era);
    let mut tools: Vec<String> = client.list_tools().await.unwrap().into_iter().map(|tool| tool.name).collect();
    // Only `tiny-server` has these two.
    tools.sort();
    tools.retain(|tool| !["log", "picture"].contains(&tool.as_str()));
    assert_eq!(tools, ["add", "ask", "echo", "fail", "roots", "sample", "slow"]);
    assert_eq!(client.call_tool("echo", json!({"message": "hello"})).await.unwrap().content(), "hello");
    let sum = client.call_tool("add", json!({"a": 2, "b": 40})).await.unwrap();
    assert_eq!(sum.content(), "42");
    let structured = sum.structured_content().unwrap().as_object().unwrap();
    assert_eq!(structured.values().collect::<Vec<_>>(), [42]);
    let slow = client.call("slow").arguments(json!({"steps": 3})).with_progress().await.unwrap();
    assert_eq!(slow.progress().len(), 3, "{slow:?}");
    let failed = client.call_tool("fail", json!({"message": "failed on purpose"})).await.unwrap();
    assert!(failed.is_tool_error() && failed.content().contains("failed on purpose"));
    let accepted = client.call_tool("ask", json!({"question": "name?"})).await.unwrap();
    assert!(["accept: Ada", "Hello, Ada!"].contains(&accepted.content().as_str()), "{}", accepted.raw());
    let sampled = client.call_tool("sample", json!({"prompt": "hi"})).await.unwrap();
    assert!(sampled.content().ends_with("sampled"), "{}", sampled.raw());
    let roots = client.call_tool("roots", json!({})).await.unwrap();
    assert_eq!(roots.content().trim_end_matches('/'), "file:///interop", "{}", roots.raw());
    let unknown = client.call_tool("no_such_tool", json!({})).await.unwrap();
    let kind = unknown.error_code().map_or_else(|| "isError".to_owned(), |code| code.to_string());
    assert_eq!(kind, unknown_tool, "{}", unknown.raw());
    assert_eq!(client.list_resources().await.unwrap()[0].uri, "tiny://greeting");
    assert_eq!(client.list_resource_templates().await.unwrap().len(), 1);
    assert!(client.read_resource("tiny://greeting").await.unwrap().content().starts_with("Hello"));
    assert_eq!(client.list_prompts().await.unwrap()[0].name, "greet");
    assert!(client.get_prompt("greet", json!({"who": "Ada"})).await.unwrap().content().contains("Ada"));
    let reference = json!({"type": "ref/prompt", "name": "greet"});
    assert_eq!(client.complete(reference, "who", "A").await.unwrap(), ["Ada", "Alan"]);
    client.close().await;
}
