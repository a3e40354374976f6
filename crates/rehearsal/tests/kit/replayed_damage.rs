//! Replays whose index is damaged: a response is the recorded one, or an error with the reason.

use std::path::Path;

use rehearsal::replay::{Replay, ReplayError, ReplayOptions};
use rehearsal::store::Input;
use serde_json::{Value, json};

use crate::transcript::Peer;

/// Two sessions with equal requests and different responses, with progress and input rounds.
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
            let result =
                json!({"resultType": "complete", "content": [{"type": "text", "text": format!("{name} {word}")}]});
            call("tools/call", json!({"name": name}), result.clone());
            call("tools/call", json!({"name": name, "arguments": {"again": word}}), result);
        }
        let input_request = json!({"method": "elicitation/create", "params": {"message": "Where?", "requestedSchema": {"type": "object", "properties": {}}}});
        call(
            "tools/call",
            json!({"name": "ask"}),
            json!({"resultType": "input_required", "inputRequests": {"q": input_request}, "requestState": "x"}),
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

/// All messages that a client receives for all calls, in order.
async fn messages(replay: &Replay) -> Vec<Value> {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}, "progressToken": 1});
    let mut peer = Peer::new(replay);
    let mut received = Vec::new();
    let mut requests: Vec<Value> = Vec::new();
    for name in ["one", "two", "three", "ask"] {
        requests.extend([
            json!({"name": name}),
            json!({"name": name, "arguments": {"again": "iron"}}),
            json!({"name": name}),
        ]);
    }
    requests.push(json!({"name": "unknown"}));
    for (id, mut params) in requests.into_iter().enumerate() {
        params["_meta"] = meta.clone();
        peer.send(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})).await;
        loop {
            let mut message: Value = serde_json::from_slice(peer.receive().await.raw()).unwrap();
            let is_answer = message.get("id").is_some();
            // Each replay signs the state with another key.
            if let Some(state) = message.pointer_mut("/result/requestState") {
                *state = "[STATE]".into();
            }
            received.push(message);
            if is_answer {
                break;
            }
        }
    }
    received
}

fn open(trace: &Path) -> Result<Replay, ReplayError> {
    Replay::open(&Input::File(trace.to_owned()), ReplayOptions::default())
}

#[tokio::test(start_paused = true)]
async fn a_damaged_index_gives_the_recorded_answer_or_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.jsonl");
    std::fs::write(&path, trace()).unwrap();
    let expected = messages(&open(&path).unwrap()).await;
    assert!(expected.iter().any(|it| it["method"] == "notifications/progress"), "{expected:?}");
    let index = folder.path().join("trace.jsonl.index");
    let intact = std::fs::read(&index).unwrap();
    let (mut refused, mut rebuilt) = (0, 0);
    // Covers each part of each kind of record, and every bit of a byte.
    for (nth, at) in (0..intact.len()).step_by(7).enumerate() {
        let mut damaged = intact.clone();
        damaged[at] ^= 1 << (nth % 8);
        std::fs::write(&index, &damaged).unwrap();
        let replay = open(&path).unwrap_or_else(|error| panic!("byte {at}: {error}"));
        rebuilt += usize::from(std::fs::read(&index).unwrap() != damaged);
        let received = messages(&replay).await;
        let is_refusal = |message: &Value| {
            let why = message["error"]["message"].as_str().unwrap_or_default();
            why.contains("the index of the trace is damaged; delete the file that ends in .index and start again")
        };
        if received.iter().any(is_refusal) {
            refused += 1;
            // Later requests are refused as well: their answers would depend on the refused one.
            let first = received.iter().position(is_refusal).unwrap();
            assert!(received[first..].iter().all(is_refusal), "byte {at}: {received:?}");
            let answers = |all: &[Value]| all.iter().filter(|it| it.get("id").is_some()).cloned().collect::<Vec<_>>();
            for (received, expected) in answers(&received).iter().zip(answers(&expected)) {
                assert!(is_refusal(received) || *received == expected, "byte {at}: {received} instead of {expected}");
            }
        } else {
            assert_eq!(received, expected, "byte {at}");
        }
    }
    assert!(refused > 20 && rebuilt > 10, "{refused} refused, {rebuilt} rebuilt");
}
