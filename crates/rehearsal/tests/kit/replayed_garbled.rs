//! Recorded responses that are no valid JSON-RPC.

use rehearsal::replay::{Replay, ReplayOptions};
use rehearsal::store::Input;
use serde_json::{Value, json};

use crate::transcript::Peer;

const ANSWERS: [(&str, &str); 4] = [
    ("null", r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[]},"error":null}"#),
    ("short", r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-5}}"#),
    ("bare", r#"{ "result":{"content":[]}, "id":ID }"#),
    ("text", r#"{"jsonrpc":"2.0","id":ID,"error":"oops"}"#),
];

fn recorded() -> Replay {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace.jsonl");
    let info = json!({"name": "c", "version": "1"});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info});
    let result = json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info});
    let mut calls = vec![json!({"request": {"seq": 0, "at_ms": 0, "id": 0, "method": "initialize", "params": params},
        "response": {"seq": 1, "at_ms": 1, "success": true, "result": result}})];
    for (at, (name, text)) in ANSWERS.iter().enumerate() {
        let (seq, id) = (2 * at + 2, at + 1);
        let text = text.replace("ID", &id.to_string());
        calls.push(
            json!({"request": {"seq": seq, "at_ms": seq, "id": id, "method": "tools/call", "params": {"name": name}},
            "response": {"seq": seq + 1, "at_ms": seq + 1, "success": false, "reason": "why", "text": text}}),
        );
    }
    std::fs::write(&trace, json!({"format": 1, "session_id": "a", "calls": calls}).to_string() + "\n").unwrap();
    Replay::open(&Input::File(trace), ReplayOptions::default()).unwrap()
}

async fn request(peer: &mut Peer, id: &str, method: &str, params: Value) -> String {
    peer.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
    String::from_utf8_lossy(peer.receive().await.raw()).into_owned()
}

#[tokio::test]
async fn an_invalid_recorded_response_is_replayed_verbatim() {
    let replay = recorded();
    let mut peer = Peer::new(&replay);
    request(&mut peer, "a", "initialize", json!({"protocolVersion": "2025-06-18", "capabilities": {}})).await;
    for (name, text) in ANSWERS {
        let response = request(&mut peer, name, "tools/call", json!({"name": name})).await;
        assert_eq!(response, text.replace("ID", &format!("{name:?}")));
    }
    let ledger = replay.ledger().unwrap();
    assert!(ledger.is_complete(), "{ledger}");
}

#[tokio::test]
async fn an_invalid_recorded_response_is_normalized_in_another_version() {
    let replay = recorded();
    let mut peer = Peer::new(&replay);
    request(&mut peer, "a", "initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}})).await;
    let mut normalized = Vec::new();
    for (name, _) in ANSWERS {
        normalized.push(request(&mut peer, "b", "tools/call", json!({"name": name})).await);
    }
    let result = r#"{"jsonrpc":"2.0","id":"b","result":{"content":[]}}"#;
    let short = r#"{"jsonrpc":"2.0","id":"b","error":{"code":-5,"message":""}}"#;
    let text = r#"{"jsonrpc":"2.0","id":"b","error":{"code":-32603,"message":"oops"}}"#;
    assert_eq!(normalized, [result, short, result, text]);
}
