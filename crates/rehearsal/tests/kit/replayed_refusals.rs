//! Requests that are refused although they were recorded count as unmatched.

use std::sync::{Arc, Mutex};

use rehearsal::core::answer::{Answer, LoggedRequest};
use rehearsal::replay::{Ledger, LedgerLine, Replay, ReplayOptions};
use rehearsal::store::Input;
use serde_json::json;

use crate::transcript::{HANDSHAKE, Peer, replay, session, unnamed};

const CALL: &str = r#"
> {"id":1,"method":"tools/call","params":{"name":"dig"}}
< {"id":1,"result":{"content":[]}}
"#;

fn unmatched(ledger: &Ledger) -> Vec<String> {
    ledger.unmatched_requests.iter().map(LedgerLine::to_string).collect()
}

#[tokio::test]
async fn a_request_that_the_protocol_refuses_is_unmatched() {
    let replay = replay(&[session("a", &[HANDSHAKE, CALL].concat())], ReplayOptions::default());
    let mut peer = Peer::new(&replay);
    let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
    for (params, code) in [
        (json!({"name": "early"}), -32600),
        (json!(["a list"]), -32602),
        (json!({"name": "deep", "arguments": {"down": "DEEP"}}), -32602),
        (json!("no params"), -32600),
    ] {
        let text = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
        peer.send_text(text.replace("\"DEEP\"", &deep)).await;
        let response: serde_json::Value = serde_json::from_slice(peer.receive().await.raw()).unwrap();
        assert_eq!(response["error"]["code"], code, "{response}");
    }
    peer.play(&[HANDSHAKE, CALL].concat()).await;
    let ledger = replay.ledger().unwrap();
    assert_eq!((ledger.matched, ledger.unmatched, ledger.unused), (1, 4, 0));
    assert_eq!(unmatched(&ledger), ["tools/call early", "2 × tools/call", "tools/call deep"]);
}

#[tokio::test]
async fn the_closest_recording_is_found_among_many() {
    let call = |number: u32| {
        format!(
            "> {}\n< {}\n",
            json!({"id": number, "method": "tools/call", "params": {"name": "dig", "arguments": {"x": number, "y": number}}}),
            json!({"id": number, "result": {"content": []}})
        )
    };
    let calls: String = (1..=200).map(call).collect();
    let replay = replay(&[session("a", &[HANDSHAKE, CALL, &calls].concat())], ReplayOptions::default());
    let mut peer = Peer::new(&replay);
    peer.play(HANDSHAKE).await;
    for (name, differs) in
        [("dig", vec!["$.params.arguments.y"]), ("Dig", vec!["$.params.name", "$.params.arguments.y"])]
    {
        let params = json!({"name": name, "arguments": {"x": 150, "y": 0}});
        peer.send(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})).await;
        let response: serde_json::Value = serde_json::from_slice(peer.receive().await.raw()).unwrap();
        let closest = &response["error"]["data"]["closest"];
        let paths = closest["mismatches"].as_array().unwrap().iter().map(|it| it["path"].as_str().unwrap());
        assert_eq!(paths.collect::<Vec<_>>(), differs, "{response}");
        assert_eq!(closest["recording"], "session a, call 152");
    }
}

#[tokio::test]
async fn a_refusal_names_the_first_of_very_many_differences() {
    let call = CALL.replace(r#""dig""#, r#""dig","arguments":{"key":1}"#);
    let replay = replay(&[session("a", &[HANDSHAKE, &call].concat())], ReplayOptions::default());
    let remarks = Arc::new(Mutex::new(Vec::new()));
    let reported = Arc::clone(&remarks);
    let observer = move |_: &LoggedRequest, answer: &Answer| {
        reported.lock().unwrap().extend(answer.remarks.iter().cloned());
    };
    let mut peer = Peer::with(&replay.observed_server(vec![Arc::new(observer)]));
    peer.play(HANDSHAKE).await;
    let many: serde_json::Map<_, _> = (0..5_000).map(|key| (format!("key-{key}"), json!(key))).collect();
    let params = json!({"name": "dig", "arguments": many});
    peer.send(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})).await;
    let refusal = peer.receive().await;
    assert!(refusal.raw().len() < 30_000, "{}", refusal.raw().len());
    let refusal: serde_json::Value = serde_json::from_slice(refusal.raw()).unwrap();
    let closest = &refusal["error"]["data"]["closest"];
    let shown = closest["mismatches"].as_array().unwrap().len();
    assert_eq!((shown, &closest["more"]), (100, &json!(4_901)));
    let remarks = remarks.lock().unwrap();
    assert!(remarks.len() == 1 && remarks[0].len() < 15_000, "{remarks:?}");
}

#[tokio::test]
async fn an_unreadable_recording_is_unmatched_and_reported() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace.jsonl");
    let call = |at: usize, name: &str| {
        let request = json!({"seq": 2 * at, "at_ms": at, "id": at, "method": "tools/call", "params": {"name": name}});
        json!({"request": request, "response": {"seq": 2 * at + 1, "at_ms": at, "success": true, "result": {"content": []}}})
    };
    let calls = [call(0, "dig"), call(1, "fill")];
    std::fs::write(&trace, json!({"format": 1, "session_id": "a", "calls": calls}).to_string() + "\n").unwrap();
    let replay = Replay::open(&Input::File(trace.clone()), ReplayOptions::default()).unwrap();
    let (sender, remarks) = std::sync::mpsc::channel();
    let observer = move |_: &LoggedRequest, answer: &Answer| {
        answer.remarks.iter().for_each(|it| sender.send(it.clone()).unwrap());
    };
    let server = replay.observed_server(vec![Arc::new(observer)]);
    let mut peer = Peer::with(&server);
    peer.play(&[&unnamed(), CALL].concat()).await;
    std::fs::write(&trace, "").unwrap();
    let why = "the recording cannot be read: the trace was changed after it was opened; start again";
    for _ in 0..2 {
        peer.play(&format!(
            r#"
            > {{"id":2,"method":"tools/call","params":{{"name":"fill"}}}}
            < {{"id":2,"error":{{"code":-32603,"message":"{why}"}}}}
            "#
        ))
        .await;
        assert_eq!(remarks.try_recv().unwrap(), format!("tools/call: {why}"));
    }
    let ledger = replay.ledger().unwrap();
    assert_eq!((ledger.matched, ledger.unmatched, ledger.unused), (1, 2, 0));
    assert_eq!(unmatched(&ledger), ["2 × tools/call fill"]);
}

#[tokio::test]
async fn a_garbled_recorded_response_does_not_answer() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace.jsonl");
    let request = json!({"seq": 0, "at_ms": 0, "id": 0, "method": "tools/call", "params": {"name": "dig"}});
    let response =
        json!({"seq": 1, "at_ms": 1, "success": false, "reason": "both", "text": "{\"jsonrpc\":\"2.0\",\"id\":0}"});
    let calls = [json!({"request": request, "response": response})];
    std::fs::write(&trace, json!({"format": 1, "session_id": "a", "calls": calls}).to_string() + "\n").unwrap();
    let replay = Replay::open(&Input::File(trace), ReplayOptions::default()).unwrap();
    let opening = unnamed();
    let call = CALL.lines().nth(1).unwrap();
    let refusal =
        r#"< {"id":1,"error":{"code":-32603,"message":"session a, call 1: the recorded answer cannot be understood"}}"#;
    Peer::new(&replay).play(&format!("{opening}\n{call}\n{refusal}")).await;
    let ledger = replay.ledger().unwrap();
    assert_eq!((ledger.matched, ledger.unmatched, ledger.unused), (0, 1, 0));
}

#[tokio::test]
async fn a_version_refused_in_a_legacy_call_is_refused_in_replay() {
    let refused = r#"
    > {"id":1,"method":"tools/call","params":{"name":"dig"}}
    < {"id":1,"error":{"code":-32022,"message":"unsupported","data":{"supported":["2026-07-28"],"requested":"x"}}}
    "#;
    let transcript = [HANDSHAKE, refused].concat();
    let replay = replay(&[session("a", &transcript)], ReplayOptions::default());
    Peer::new(&replay).play(&transcript).await;
    let ledger = replay.ledger().unwrap();
    assert!(ledger.is_complete() && ledger.matched == 1, "{ledger}");
    // A client of another version would read it as a refusal of its own version.
    let modern = refused.replace(r#""name":"dig""#, r#""name":"dig",META"#).replace("-32022", "-32603");
    Peer::new(&replay).play(&modern).await;
}

/// A server without 2026-07-28 refuses a client that uses it.
const TOO_NEW: &str = r#"
> {"id":1,"method":"tools/call","params":{"name":"dig",META}}
< {"id":1,"error":{"code":-32022,"message":"not here","data":{"supported":["2025-11-25"],"requested":"2026-07-28"}}}
"#;

#[tokio::test]
async fn a_version_refused_in_a_modern_call_is_refused_in_replay() {
    let alone = replay(&[session("a", TOO_NEW)], ReplayOptions::default());
    Peer::new(&alone).play(TOO_NEW).await;
    let ledger = alone.ledger().unwrap();
    assert!(ledger.is_complete() && ledger.matched == 1, "{ledger}");
    // Older versions do not have this error code.
    let older = TOO_NEW.replace(",META", "").replace("-32022", "-32603");
    Peer::new(&alone).play(&[unnamed(), older].concat()).await;
}

#[tokio::test]
async fn a_subscription_with_a_refused_version_is_refused_in_replay() {
    let refused = r#"
    > {"id":0,"method":"server/discover","params":{META}}
    < {"id":0,"error":{"code":-32022,"message":"not here","data":{"supported":[],"requested":"2026-07-28"}}}
    "#;
    let alone = replay(&[session("a", refused)], ReplayOptions::default());
    Peer::new(&alone).play(refused).await;
    // With an accepted handshake in the recording, every client is accepted.
    let replay = replay(&[session("a", &[refused, HANDSHAKE, CALL].concat())], ReplayOptions::default());
    let mut peer = Peer::new(&replay);
    peer.play(refused.lines().nth(1).unwrap()).await;
    let response: serde_json::Value = serde_json::from_slice(peer.receive().await.raw()).unwrap();
    assert_eq!(response["result"]["capabilities"], json!({"tools": {}}), "{response}");
}
