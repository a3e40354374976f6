//! Calls that were answered by a task, replayed to clients of the same era; other clients are refused.

use rehearsal::Client;
use rehearsal::client::ClientBuilder;
use rehearsal::core::protocol::{Era, Revision};
use serde_json::{Value, json};

use crate::installation::{TIMEOUT, node, npm_server};
use crate::mocked::rehearse;
use crate::replayed::TraceFile;

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// A server that answers by a task, in both eras.
const MOCK: &str = "
server: { name: slow, version: '1' }
tools:
  - name: dig
    task_support: optional
    answers: [{ task: { after: 20ms, poll_interval_ms: 1 }, text: 'found {{ arguments.what }}' }]
";

fn with_extension(builder: ClientBuilder) -> ClientBuilder {
    builder.capabilities(json!({"extensions": {EXTENSION: {}}})).modern()
}

/// The text of a result.
fn text(result: &Value) -> String {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}")).to_owned()
}

/// What a client of 2025-11-25 gets that wants a task.
async fn in_2025(builder: ClientBuilder, params: &Value) -> String {
    let client = builder.timeout(TIMEOUT).legacy(Revision::V2025_11_25).connect().await.unwrap();
    assert!(client.server_capabilities()["tasks"]["requests"]["tools"]["call"].is_object());
    let mut params = params.clone();
    params["task"] = json!({"ttl": 60_000});
    let begun = client.request("tools/call", params).await.unwrap().into_result().unwrap();
    let id = begun["task"]["taskId"].as_str().unwrap_or_else(|| panic!("{begun}"));
    assert_eq!(begun["task"]["status"], "working");
    let about = json!({"taskId": id});
    loop {
        let shown = client.request("tasks/get", about.clone()).await.unwrap().into_result().unwrap();
        assert_eq!(shown["taskId"], id);
        if shown["status"] == "completed" {
            break;
        }
        let interval = shown["pollInterval"].as_u64().unwrap_or(1);
        tokio::time::sleep(std::time::Duration::from_millis(interval)).await;
    }
    let result = client.request("tasks/result", about).await.unwrap().into_result().unwrap();
    assert_eq!(result["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], id, "{result}");
    client.close().await;
    text(&result)
}

/// What a client of 2026-07-28 gets that knows tasks.
async fn in_2026(builder: ClientBuilder, params: &Value) -> String {
    let client = with_extension(builder.timeout(TIMEOUT)).connect().await.unwrap();
    assert!(client.server_capabilities()["extensions"][EXTENSION].is_object());
    let begun = client.request("tools/call", params.clone()).await.unwrap().into_result().unwrap();
    assert_eq!((&begun["resultType"], &begun["status"]), (&json!("task"), &json!("working")), "{begun}");
    let about = json!({"taskId": begun["taskId"]});
    loop {
        let shown = client.request("tasks/get", about.clone()).await.unwrap().into_result().unwrap();
        assert_eq!(shown["resultType"], "complete");
        if shown["status"] == "completed" {
            client.close().await;
            return text(&shown["result"]);
        }
        let interval = shown["pollIntervalMs"].as_u64().unwrap_or(1);
        tokio::time::sleep(std::time::Duration::from_millis(interval)).await;
    }
}

/// That a client of the recorded era gets what was recorded and uses all of it, and that a client without tasks is refused.
async fn replayed(trace_file: &TraceFile, era: Era, params: &Value, expected: &str) {
    let ledger = trace_file.path().with_file_name("ledger.json");
    let replay = || {
        let builder = Client::command(rehearse()).args(["replay", "-q"]).args([trace_file.path()]);
        builder.args(["--ledger"]).args([&ledger])
    };
    let text = match era {
        Era::Legacy => in_2025(replay(), params).await,
        Era::Modern => in_2026(replay(), params).await,
    };
    assert_eq!(text, expected);
    let settled: Value = serde_json::from_slice(&std::fs::read(&ledger).unwrap()).unwrap();
    assert_eq!((&settled["unmatched"], &settled["unused"]), (&json!(0), &json!(0)), "{settled}");
    for builder in [replay().modern(), replay().legacy(Revision::V2025_11_25), replay().legacy(Revision::V2025_06_18)] {
        let client = builder.timeout(TIMEOUT).connect().await.unwrap();
        let refused = client.request("tools/call", params.clone()).await.unwrap();
        assert!(refused.error().unwrap().message.contains("was recorded as a task"), "{refused:?}");
        client.close().await;
    }
}

#[tokio::test]
async fn a_task_of_the_reference_server_is_a_task_again() {
    let trace_file = TraceFile::new();
    let (node, script) = (node(), npm_server("server-everything"));
    let words = trace_file.recording([node.to_str().unwrap(), script.to_str().unwrap(), "stdio"]);
    let params = json!({"name": "simulate-research-query", "arguments": {"topic": "rain"}});
    let expected = in_2025(Client::command(&words[0]).args(&words[1..]), &params).await;
    trace_file.wait_until_written().await;
    replayed(&trace_file, Era::Legacy, &params, &expected).await;
}

#[tokio::test]
async fn a_task_of_2026_is_a_task_again() {
    let trace_file = TraceFile::new();
    let file = trace_file.path().with_file_name("slow.mock.yaml");
    std::fs::write(&file, MOCK).unwrap();
    let words = trace_file.recording([rehearse().to_str().unwrap(), "mock", file.to_str().unwrap()]);
    let params = json!({"name": "dig", "arguments": {"what": "gold"}});
    let expected = in_2026(Client::command(&words[0]).args(&words[1..]), &params).await;
    assert_eq!(expected, "found gold");
    trace_file.wait_until_written().await;
    replayed(&trace_file, Era::Modern, &params, &expected).await;
}
