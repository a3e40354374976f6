//! Replays of tasks, and of chosen sessions.

use std::time::Duration;

use rehearsal::Client;
use rehearsal::client::ClientBuilder;
use rehearsal::core::protocol::Revision;
use rehearsal::replay::{Options, Repeat, Replay, Sessions, Unknown};
use rehearsal::store::Input;
use rehearsal::wire::memory;
use serde_json::{Value, json};

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

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

fn replay(sessions: &[String], options: Options) -> Replay {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace.jsonl");
    std::fs::write(&trace, sessions.concat()).unwrap();
    Replay::open(&Input::File(trace), options).unwrap()
}

pub(crate) fn client(replay: &Replay) -> ClientBuilder {
    let (ours, theirs) = memory::pair();
    let server = replay.server(|_, _| {});
    tokio::spawn(async move { server.serve(theirs).await });
    Client::connection(ours).timeout(Duration::from_secs(60))
}

fn handshake() -> (&'static str, Value, Value) {
    let said = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}},
        "serverInfo": {"name": "digs", "version": "1"}});
    ("initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}}), said)
}

fn status(status: &str) -> Value {
    json!({"taskId": "1", "status": status, "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": null})
}

/// A session of 2025-11-25 in which something was dug by the task `1`.
fn dug_in_2025(id: &str, what: &str) -> String {
    let about = json!({"taskId": "1"});
    let related = json!({"io.modelcontextprotocol/related-task": about});
    let call = json!({"name": "dig", "arguments": {"what": what}, "task": {}});
    session(
        id,
        &[
            handshake(),
            ("tools/call", call, json!({"task": status("working")})),
            ("tasks/get", about.clone(), status("completed")),
            ("tasks/result", about, json!({"content": [{"type": "text", "text": what}], "_meta": related})),
        ],
    )
}

/// A session of 2026-07-28 in which gold was dug by the task `1`, which was asked for so often.
fn dug_in_2026(polls: usize) -> String {
    let with_meta = |mut params: Value| {
        params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"extensions": {EXTENSION: {}}}});
        params
    };
    let about = with_meta(json!({"taskId": "1"}));
    let mut begun = status("working");
    begun["resultType"] = "task".into();
    let mut ended = status("completed");
    ended["result"] = json!({"content": [{"type": "text", "text": "gold"}]});
    let call = with_meta(json!({"name": "dig", "arguments": {"what": "gold"}}));
    let mut calls = vec![("tools/call", call, begun)];
    calls.extend((0..polls).map(|_| ("tasks/get", about.clone(), status("working"))));
    calls.push(("tasks/get", about, ended));
    session("a", &calls)
}

async fn dig(client: &Client, what: &str) -> Value {
    client.call_tool("dig", json!({"what": what})).await.unwrap().into_result().unwrap()
}

#[tokio::test]
async fn what_came_of_a_task_is_that_of_its_own_session() {
    let replay = replay(&[dug_in_2025("a", "gold"), dug_in_2025("b", "iron")], Options::default());
    for (what, revision) in [("iron", Revision::V2025_06_18), ("gold", Revision::V2025_11_25)] {
        let client = client(&replay).legacy(revision).connect().await.unwrap();
        // Without the name of a task that the client knows nothing about.
        assert_eq!(dig(&client, what).await, json!({"content": [{"type": "text", "text": what}]}));
    }
    assert_eq!(replay.ledger().unwrap().unused, 0);
}

#[tokio::test]
async fn what_came_of_a_task_is_found_after_any_number_of_looks() {
    let replay = replay(&[dug_in_2026(1500)], Options::default());
    let client = client(&replay).legacy(Revision::V2025_06_18).connect().await.unwrap();
    assert_eq!(dig(&client, "gold").await["content"][0]["text"], "gold");
}

#[tokio::test]
async fn what_came_of_a_task_counts_as_used_in_the_other_era() {
    let about = json!({"taskId": "1"});
    let legacy = replay(&[dug_in_2025("a", "gold")], Options::default());
    let modern = client(&legacy).capabilities(json!({"extensions": {EXTENSION: {}}})).modern();
    let modern = modern.connect().await.unwrap();
    assert_eq!(dig(&modern, "gold").await["taskId"], "1");
    let shown = modern.request("tasks/get", about.clone()).await.unwrap().into_result().unwrap();
    assert_eq!(shown["result"]["content"][0]["text"], "gold", "{shown}");
    assert_eq!(legacy.ledger().unwrap().unused, 0);

    let modern = replay(&[dug_in_2026(3)], Options::default());
    let legacy = client(&modern).legacy(Revision::V2025_11_25).connect().await.unwrap();
    let call = json!({"name": "dig", "arguments": {"what": "gold"}, "task": {}});
    let begun = legacy.request("tools/call", call).await.unwrap().into_result().unwrap();
    assert_eq!(begun["task"]["taskId"], "1", "{begun}");
    // At once, without a look at how far it is.
    let result = legacy.request("tasks/result", about).await.unwrap().into_result().unwrap();
    assert_eq!(result["content"][0]["text"], "gold");
    assert_eq!(modern.ledger().unwrap().unused, 0);
}

#[tokio::test]
async fn what_was_recorded_about_a_task_can_be_used_up() {
    let options = Options { repeat: Repeat::Error, ..Options::default() };
    let replay = replay(&[dug_in_2025("a", "gold")], options);
    let client = client(&replay).legacy(Revision::V2025_11_25).connect().await.unwrap();
    for method in ["tasks/get", "tasks/result"] {
        let first = client.request(method, json!({"taskId": "1"})).await.unwrap();
        assert!(first.success(), "{first:?}");
        let second = client.request(method, json!({"taskId": "1"})).await.unwrap();
        assert!(second.error().is_some(), "{second:?}");
    }
}

#[tokio::test]
async fn a_list_that_was_not_recorded_has_what_was_used_in_the_chosen_sessions() {
    let used = |id: &str, tools: &[&str]| {
        let calls = tools.iter().map(|tool| ("tools/call", json!({"name": tool}), json!({"content": []})));
        session(id, &[handshake()].into_iter().chain(calls).collect::<Vec<_>>())
    };
    let listed = session("c", &[handshake(), ("tools/list", json!({}), json!({"tools": []}))]);
    let sessions = [used("a", &["dig", "rain"]), used("b", &["sing", "dig", "dig"]), listed];
    let chosen = Sessions { id: Some("b".to_owned()), ..Sessions::default() };
    let replay = replay(&sessions, Options { sessions: chosen, ..Options::default() });
    let client = client(&replay).connect().await.unwrap();
    let names: Vec<String> = client.list_tools().await.unwrap().into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["sing", "dig"]);
}

#[tokio::test]
async fn what_2026_has_no_method_for_is_refused_to_its_clients_though_it_was_recorded() {
    let subscribe = ("resources/subscribe", json!({"uri": "a:b"}), json!({}));
    let level = ("logging/setLevel", json!({"level": "info"}), json!({}));
    let own = ("acme/own", json!({}), json!({"ours": true}));
    let replay = replay(&[session("a", &[handshake(), subscribe, level, own])], Options::default());
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
async fn what_is_given_in_place_of_what_was_not_recorded_is_not_unused() {
    let echo = |text: &str| {
        let (params, result) = (json!({"name": "echo", "arguments": {"text": text}}), json!({"content": []}));
        ("tools/call", params, result)
    };
    let options = Options { unknown: Unknown::First, ..Options::default() };
    let replay = replay(&[session("a", &[handshake(), echo("a"), echo("b")])], options);
    let client = client(&replay).connect().await.unwrap();
    assert!(client.call_tool("echo", json!({"text": "c"})).await.unwrap().success());
    let ledger = replay.ledger().unwrap();
    assert_eq!((ledger.matched, ledger.unmatched, ledger.unused), (0, 1, 1));
    assert_eq!(ledger.unused_recordings[0].recording.as_deref(), Some("session a, call 3"));
}
