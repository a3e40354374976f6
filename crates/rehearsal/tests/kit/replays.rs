//! Replays of selected sessions.

use std::time::Duration;

use rehearsal::Client;
use rehearsal::client::ClientBuilder;
use rehearsal::core::protocol::Revision;
use rehearsal::replay::{OnUnmatched, Replay, ReplayOptions, SessionFilter};
use rehearsal::store::Input;
use rehearsal::wire::memory;
use serde_json::{Value, json};

/// A session: requests and their results, in order.
fn session(id: &str, calls: &[(&str, Value, Value)]) -> String {
    let calls = calls.iter().enumerate().map(|(at, (method, params, result))| {
        let request = json!({"seq": 2 * at, "at_ms": 2 * at, "id": at, "method": method, "params": params});
        let response = json!({"seq": 2 * at + 1, "at_ms": 2 * at + 1, "success": true, "result": result});
        json!({"request": request, "response": response})
    });
    let calls: Vec<Value> = calls.collect();
    json!({"format": 1, "session_id": id, "calls": calls}).to_string() + "\n"
}

fn replay(sessions: &[String], options: ReplayOptions) -> Replay {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace.jsonl");
    std::fs::write(&trace, sessions.concat()).unwrap();
    Replay::open(&Input::File(trace), options).unwrap()
}

pub(crate) fn client(replay: &Replay) -> ClientBuilder {
    let (ours, theirs) = memory::pair();
    let server = replay.server();
    tokio::spawn(async move { server.serve(theirs).await });
    Client::connection(ours).timeout(Duration::from_secs(60))
}

fn handshake() -> (&'static str, Value, Value) {
    let result = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
        "serverInfo": {"name": "digs", "version": "1"}});
    ("initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}}), result)
}

#[tokio::test]
async fn an_unrecorded_list_contains_the_tools_used_in_the_selected_sessions() {
    let used = |id: &str, tools: &[&str]| {
        let calls = tools.iter().map(|tool| ("tools/call", json!({"name": tool}), json!({"content": []})));
        session(id, &[handshake()].into_iter().chain(calls).collect::<Vec<_>>())
    };
    let listed = session("c", &[handshake(), ("tools/list", json!({}), json!({"tools": []}))]);
    let sessions = [used("a", &["dig", "rain"]), used("b", &["sing", "dig", "dig"]), listed];
    let chosen = SessionFilter { id: Some("b".to_owned()), ..SessionFilter::default() };
    let replay = replay(&sessions, ReplayOptions { sessions: chosen, ..ReplayOptions::default() });
    let client = client(&replay).connect().await.unwrap();
    let names: Vec<String> = client.list_tools().await.unwrap().into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["sing", "dig"]);
}

#[tokio::test]
async fn a_method_that_2026_07_28_removed_is_refused_to_modern_clients() {
    let subscribe = ("resources/subscribe", json!({"uri": "a:b"}), json!({}));
    let level = ("logging/setLevel", json!({"level": "info"}), json!({}));
    let own = ("acme/own", json!({}), json!({"ours": true}));
    let replay = replay(&[session("a", &[handshake(), subscribe, level, own])], ReplayOptions::default());
    let modern = client(&replay).modern().connect().await.unwrap();
    for method in ["resources/subscribe", "logging/setLevel", "tasks/list", "ping"] {
        let response = modern.request(method, json!({"uri": "a:b", "level": "info"})).await.unwrap();
        assert_eq!(response.error_code(), Some(-32601), "{method}: {response:?}");
    }
    assert!(modern.request("acme/own", json!({})).await.unwrap().success());
    let legacy = client(&replay).legacy(Revision::V2025_11_25).connect().await.unwrap();
    assert!(legacy.request("resources/subscribe", json!({"uri": "a:b"})).await.unwrap().success());
}

#[tokio::test]
async fn a_recorded_answer_for_an_unrecorded_request_counts_as_used() {
    let echo = |text: &str| {
        let (params, result) = (json!({"name": "echo", "arguments": {"text": text}}), json!({"content": []}));
        ("tools/call", params, result)
    };
    let options = ReplayOptions { unknown: OnUnmatched::First, ..ReplayOptions::default() };
    let replay = replay(&[session("a", &[handshake(), echo("a"), echo("b")])], options);
    let client = client(&replay).connect().await.unwrap();
    assert!(client.call_tool("echo", json!({"text": "c"})).await.unwrap().success());
    let ledger = replay.ledger().unwrap();
    assert_eq!((ledger.matched, ledger.unmatched, ledger.unused), (0, 1, 1));
    assert_eq!(ledger.unused_recordings[0].recording.as_deref(), Some("session a, call 3"));
}
