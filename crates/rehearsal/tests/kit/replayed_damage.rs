//! Replays whose index is damaged: the right answer, or none and why.

use std::path::Path;

use rehearsal::replay::{Replay, ReplayError, ReplayOptions};
use rehearsal::store::Input;
use serde_json::{Value, json};

use crate::transcript::Peer;

/// Two sessions in which the same is asked and answered differently, with progress, rounds and a task.
fn trace() -> String {
    let session = |id: &str, word: &str| {
        let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}, "progressToken": 1});
        let mut calls = Vec::new();
        let mut call = |method: &str, mut params: Value, result: Value| {
            params["_meta"] = meta.clone();
            let seq = 3 * calls.len();
            let request = json!({"seq": seq, "at_ms": seq, "id": seq, "method": method, "params": params});
            let response = json!({"seq": seq + 2, "at_ms": seq + 2, "success": true, "result": result});
            calls.push(json!({"request": request, "response": response}));
        };
        for name in ["one", "two", "three"] {
            let said =
                json!({"resultType": "complete", "content": [{"type": "text", "text": format!("{name} {word}")}]});
            call("tools/call", json!({"name": name}), said.clone());
            call("tools/call", json!({"name": name, "arguments": {"again": word}}), said);
        }
        let asks = json!({"method": "elicitation/create", "params": {"message": "Where?", "requestedSchema": {"type": "object", "properties": {}}}});
        call(
            "tools/call",
            json!({"name": "ask"}),
            json!({"resultType": "input_required", "inputRequests": {"q": asks}, "requestState": "x"}),
        );
        call(
            "tools/call",
            json!({"name": "ask", "requestState": "x", "inputResponses": {"q": {"action": "decline"}}}),
            json!({"resultType": "complete", "content": [{"type": "text", "text": word}]}),
        );
        let messages = json!([{"seq": 1, "at_ms": 1, "type": "notification", "from": "server",
            "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1, "message": word}}]);
        json!({"format": 1, "session_id": id, "server_info": {}, "started_at": null, "metadata": {"word": word},
            "calls": calls, "messages": messages, "ended_at": null, "end": null})
        .to_string()
            + "\n"
    };
    session("a", "gold") + &session("b", "iron")
}

/// Everything that a client hears that asks for everything, in order.
async fn heard(replay: &Replay) -> Vec<Value> {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}, "progressToken": 1});
    let mut peer = Peer::of(replay);
    let mut heard = Vec::new();
    let mut asks: Vec<Value> = Vec::new();
    for name in ["one", "two", "three", "ask"] {
        asks.extend([
            json!({"name": name}),
            json!({"name": name, "arguments": {"again": "iron"}}),
            json!({"name": name}),
        ]);
    }
    asks.push(json!({"name": "unknown"}));
    for (id, mut params) in asks.into_iter().enumerate() {
        params["_meta"] = meta.clone();
        peer.say(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})).await;
        loop {
            let mut message: Value = serde_json::from_slice(peer.hear().await.raw()).unwrap();
            let is_answer = message.get("id").is_some();
            // It is sealed with another key every time.
            if let Some(state) = message.pointer_mut("/result/requestState") {
                *state = "sealed".into();
            }
            heard.push(message);
            if is_answer {
                break;
            }
        }
    }
    heard
}

fn open(trace: &Path) -> Result<Replay, ReplayError> {
    Replay::open(&Input::File(trace.to_owned()), ReplayOptions::default())
}

#[tokio::test(start_paused = true)]
async fn a_damaged_index_gives_the_right_answer_or_none_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.jsonl");
    std::fs::write(&path, trace()).unwrap();
    let expected = heard(&open(&path).unwrap()).await;
    assert!(expected.iter().any(|it| it["method"] == "notifications/progress"), "{expected:?}");
    let index = folder.path().join("trace.jsonl.index");
    let whole = std::fs::read(&index).unwrap();
    let (mut told, mut rebuilt) = (0, 0);
    // Each part of each kind of record comes up, and every bit of a byte.
    for (nth, at) in (0..whole.len()).step_by(7).enumerate() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (nth % 8);
        std::fs::write(&index, &damaged).unwrap();
        let replay = open(&path).unwrap_or_else(|error| panic!("byte {at}: {error}"));
        rebuilt += usize::from(std::fs::read(&index).unwrap() != damaged);
        let heard = heard(&replay).await;
        let is_told = |message: &Value| {
            let why = message["error"]["message"].as_str().unwrap_or_default();
            why.contains("the index of the trace is damaged; delete the file that ends in .index and start again")
        };
        if heard.iter().any(is_told) {
            told += 1;
            // What comes after it is refused as well: it would depend on what was not given.
            let first = heard.iter().position(is_told).unwrap();
            assert!(heard[first..].iter().all(is_told), "byte {at}: {heard:?}");
            let answers = |all: &[Value]| all.iter().filter(|it| it.get("id").is_some()).cloned().collect::<Vec<_>>();
            for (heard, expected) in answers(&heard).iter().zip(answers(&expected)) {
                assert!(is_told(heard) || *heard == expected, "byte {at}: {heard} instead of {expected}");
            }
        } else {
            assert_eq!(heard, expected, "byte {at}");
        }
    }
    assert!(told > 20 && rebuilt > 10, "{told} were told, {rebuilt} built again");
}
