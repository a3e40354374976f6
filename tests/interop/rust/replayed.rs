//! Real servers, recorded with one client and replayed to others, in other versions and on other transports.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rehearsal::Client;
use rehearsal::client::{ClientBuilder, ClientHandlers, Protocol};
use rehearsal::core::message::Method;
use rehearsal::core::protocol::Revision;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::clients::{Era, everything, run_script};
use crate::installation::{HttpServer, TIMEOUT, folder, listening, node, npm_server, python};
use crate::mocked::{self, rehearse};
use crate::rmcp_client::{self, ReceivedNotification};

/// A trace file that a test records and replays.
pub(crate) struct TraceFile(tempfile::TempDir);

impl TraceFile {
    pub(crate) fn new() -> TraceFile {
        TraceFile(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().join("trace.jsonl")
    }

    /// The command line that records a server.
    pub(crate) fn recording(&self, server: impl IntoIterator<Item = impl Into<String>>) -> Vec<String> {
        let trace = self.path().display().to_string();
        let words = [rehearse().to_str().unwrap(), "record", "-q", "-o", &trace, "--"];
        words.into_iter().map(str::to_owned).chain(server.into_iter().map(Into::into)).collect()
    }

    fn replay(&self) -> Command {
        let mut command = Command::new(rehearse());
        command.arg("replay").arg(self.path()).arg("-q");
        command
    }

    pub(crate) async fn over_http(&self) -> HttpServer {
        listening(self.replay().args(["--listen", "0"])).await
    }

    /// Waits until a recorder that is stopping has written everything.
    pub(crate) async fn wait_until_written(&self) {
        let done = async {
            loop {
                let journals = std::fs::read_dir(self.0.path()).unwrap();
                let open = journals
                    .filter(|it| it.as_ref().is_ok_and(|it| it.path().extension().is_some_and(|it| it == "journal")));
                if self.path().exists() && open.count() == 0 {
                    return;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(TIMEOUT, done).await.expect("the recorder never ends");
    }
}

/// Runs a client on a replay of another client's recording: it gets the same results, except for the version.
async fn tours(trace_file: &TraceFile, program: &Path, script: &str, eras: &[(&str, &str)]) {
    let server = trace_file.over_http().await;
    let sse = server.url.replace("/mcp", "/sse");
    let (rehearse, trace) = (rehearse().to_str().unwrap(), trace_file.path().display().to_string());
    let transports: [&[&str]; 3] = [
        &["--stdio", rehearse, "replay", "-q", &trace],
        &["--url", &server.url],
        &["--transport", "sse", "--url", &sse],
    ];
    for transport in transports {
        for (era, version) in eras {
            let progress = run_script(program, script, era, transport).await;
            assert_eq!(progress, everything(version), "{script} {transport:?}, era {era}");
        }
    }
}

#[tokio::test]
async fn a_modern_python_recording_replays_to_other_sdks_in_both_eras() {
    let trace_file = TraceFile::new();
    // The script would parse `--` as its own option.
    let start = trace_file.0.path().join("start.sh");
    std::fs::write(&start, format!("exec {}\n", trace_file.recording(mocked::words()).join(" "))).unwrap();
    let transport = ["--stdio", "sh", start.to_str().unwrap()];
    let progress = run_script(&python("python"), "python_client.py", "modern", &transport).await;
    assert_eq!(progress, everything("2026-07-28"));
    trace_file.wait_until_written().await;
    tours(&trace_file, &node(), "typescript_client.mjs", &[("v1", "2025-11-25"), ("modern", "2026-07-28")]).await;
    tours(&trace_file, &python("python"), "python_client.py", &[("legacy", "2025-11-25")]).await;
}

/// Calls a tool, and returns its progress and its result without the members that depend on the version.
pub(crate) async fn call_with_progress(
    client: &Client,
    tool: &str,
    arguments: Value,
) -> (Vec<(f64, Option<f64>)>, Value) {
    let progress = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&progress);
    let call = client.call(tool).arguments(arguments);
    let call = call.on_progress(move |it| sink.lock().unwrap().push((it.progress, it.total)));
    let response = call.await.unwrap();
    let mut result = match response.error() {
        Some(error) => json!({"code": error.code, "message": error.message}),
        None => response.result().clone(),
    };
    for key in ["resultType", "_meta"] {
        result.as_object_mut().unwrap().shift_remove(key);
    }
    let progress = progress.lock().unwrap().clone();
    (progress, result)
}

/// Calls of server-everything, sequential and concurrent.
async fn tour(client: &Client) -> Value {
    let mut tools: Vec<String> = Vec::new();
    // The server offers more tools after it has read the client's capabilities.
    while !tools.iter().any(|tool| tool == "trigger-sampling-request") {
        tools = client.list_tools().await.unwrap().iter().map(|tool| tool.name.clone()).collect();
    }
    let mut all = vec![json!(tools)];
    for (tool, arguments) in [
        ("get-tiny-image", json!({})),
        ("trigger-long-running-operation", json!({"duration": 0.2, "steps": 2})),
        ("trigger-sampling-request", json!({"prompt": "hi", "maxTokens": 10})),
        ("trigger-elicitation-request", json!({})),
        ("get-structured-content", json!({"location": "Chicago"})),
        ("no-such-tool", json!({})),
        ("get-sum", json!({"a": 1, "b": 2})),
        ("get-sum", json!({"a": 1, "b": 2})),
    ] {
        all.push(json!(call_with_progress(client, tool, arguments).await));
    }
    let contents = client.read_resource("demo://resource/dynamic/text/1").await.unwrap();
    all.push(json!(contents.result()["contents"][0]["uri"]));
    // The slow call is sent first and answered last.
    let order = Arc::new(Mutex::new(Vec::new()));
    let one = |tool: &'static str, arguments: Value| {
        let (client, order) = (client.clone(), Arc::clone(&order));
        async move {
            let result = call_with_progress(&client, tool, arguments).await;
            order.lock().unwrap().push(tool);
            result
        }
    };
    let slow = one("trigger-long-running-operation", json!({"duration": 0.5, "steps": 1}));
    let quick = one("get-sum", json!({"a": 3, "b": 4}));
    let (slow, quick) = tokio::join!(slow, quick);
    all.push(json!([slow, quick]));
    all.push(json!(*order.lock().unwrap()));
    Value::Array(all)
}

pub(crate) fn answers() -> ClientHandlers {
    ClientHandlers::new()
        .roots([("file:///tmp/interop", "interop")])
        .sampling_text("sampled")
        .elicitation_accept(json!({"name": "Ada", "check": true}))
}

#[tokio::test]
async fn a_legacy_recording_of_the_rust_sdk_replays_in_both_eras() {
    let trace_file = TraceFile::new();
    let words = trace_file.recording(mocked::words());
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    let client = rmcp_client::over_stdio(command, Era::Legacy, None).await;
    assert_eq!(rmcp_client::tour(client).await, everything("2025-11-25"));
    trace_file.wait_until_written().await;
    for era in Era::ALL {
        let replayed = rmcp_client::over_stdio(trace_file.replay(), era, None).await;
        assert_eq!(rmcp_client::tour(replayed).await, everything(era.version()), "era {era:?}");
    }
}

#[tokio::test]
async fn change_notices_of_the_rust_sdk_are_replayed_in_their_era() {
    const RESOURCE: &str = "tiny://greeting";
    for (protocol, era) in [(Protocol::Legacy(Revision::V2025_11_25), Era::Legacy), (Protocol::Modern, Era::Modern)] {
        let trace_file = TraceFile::new();
        let words = trace_file.recording([env!("CARGO_BIN_EXE_tiny")]);
        let client = Client::command(&words[0]).args(&words[1..]).protocol(protocol).timeout(TIMEOUT);
        let client = client.connect().await.unwrap();
        client.subscribe(RESOURCE).await.unwrap();
        client.notification(Method::RESOURCE_UPDATED).await.unwrap();
        assert_eq!(client.call_tool("echo", json!({"message": "next"})).await.unwrap().content(), "next");
        client.close().await;
        trace_file.wait_until_written().await;
        let server = trace_file.over_http().await;
        assert_update_arrives(rmcp_client::over_stdio(trace_file.replay(), era, None).await, RESOURCE).await;
        assert_update_arrives(rmcp_client::over_http(&server.url, era, None).await, RESOURCE).await;
    }
}

/// Subscribes to a resource, expects a change notice, and calls a tool.
async fn assert_update_arrives(mut client: rmcp_client::RustClient, resource: &str) {
    client.subscribe(resource).await;
    assert_eq!(client.change().await, ReceivedNotification::Updated(resource.to_owned()), "{}", client.version());
    assert_eq!(client.call("echo", json!({"message": "next"})).await, Ok("next".to_owned()));
    client.close().await;
}

#[tokio::test]
async fn server_everything_replays_in_every_version_on_every_transport() {
    let trace_file = TraceFile::new();
    let (node, script) = (node(), npm_server("server-everything"));
    let words = trace_file.recording([node.to_str().unwrap(), script.to_str().unwrap(), "stdio"]);
    let recorded = Client::command(&words[0]).args(&words[1..]).timeout(TIMEOUT);
    let client = recorded.handlers(answers()).connect().await.unwrap();
    let expected = tour(&client).await;
    client.close().await;
    trace_file.wait_until_written().await;
    assert_eq!(expected.as_array().unwrap().last().unwrap(), &json!(["get-sum", "trigger-long-running-operation"]));
    let server = trace_file.over_http().await;
    let stdio = || Client::command(rehearse()).args(["replay", "-q"]).args([trace_file.path()]);
    let http = || Client::url(server.url.as_str());
    let with = |builder: ClientBuilder| builder.handlers(answers()).timeout(TIMEOUT);
    for revision in [Revision::V2025_11_25, Revision::V2025_06_18] {
        for builder in [stdio(), http()] {
            let client = with(builder).legacy(revision).connect().await.unwrap();
            assert_eq!(client.revision(), revision);
            assert_eq!(tour(&client).await, expected, "{revision}");
            client.close().await;
        }
    }
    for builder in [stdio(), http()] {
        let client = with(builder).modern().connect().await.unwrap();
        assert_eq!(tour(&client).await, expected);
        client.close().await;
    }
}

#[tokio::test]
async fn python_servers_replay_in_the_other_era() {
    let fastmcp = folder().join("servers/fastmcp_server.py");
    let (interpreter, time) = (python("python"), python("mcp-server-time"));
    let arguments = json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"});
    for modern in [true, false] {
        let trace_file = TraceFile::new();
        let words = trace_file.recording([time.to_str().unwrap()]);
        let builder = Client::command(&words[0]).args(&words[1..]).timeout(TIMEOUT);
        let builder = if modern { builder.modern() } else { builder.legacy(Revision::LATEST_LEGACY) };
        let client = builder.connect().await.unwrap();
        let expected = call_with_progress(&client, "convert_time", arguments.clone()).await;
        let tools = client.list_tools().await.unwrap().len();
        client.close().await;
        trace_file.wait_until_written().await;
        for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
            let builder = Client::command(rehearse()).args(["replay", "-q"]).args([trace_file.path()]);
            let builder = if revision.has_handshake() { builder.legacy(revision) } else { builder.modern() };
            let client = builder.timeout(TIMEOUT).connect().await.unwrap();
            assert_eq!(client.server_info()["name"], "mcp-time");
            assert_eq!(client.list_tools().await.unwrap().len(), tools);
            assert_eq!(call_with_progress(&client, "convert_time", arguments.clone()).await, expected, "{revision}");
            client.close().await;
        }
    }
    let trace_file = TraceFile::new();
    let words = trace_file.recording([interpreter.to_str().unwrap(), fastmcp.to_str().unwrap(), "stdio"]);
    let client = Client::command(&words[0]).args(&words[1..]).timeout(TIMEOUT).connect().await.unwrap();
    let tools: Vec<String> = client.list_tools().await.unwrap().iter().map(|tool| tool.name.clone()).collect();
    client.close().await;
    trace_file.wait_until_written().await;
    let server = trace_file.over_http().await;
    let client = Client::url(server.url.as_str()).timeout(TIMEOUT).connect().await.unwrap();
    let again: Vec<String> = client.list_tools().await.unwrap().iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(again, tools);
    client.close().await;
}
