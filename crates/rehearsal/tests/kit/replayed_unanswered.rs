//! Recorded calls without a response.

use rehearsal::replay::ReplayOptions;
use serde_json::{Value, json};

use crate::transcript::{HANDSHAKE, Peer, replay, session};

/// A cancelled call, an equal call with a response, and a call that ends with an unanswered server request.
const RECORDED: &str = r#"
> {"id":1,"method":"tools/call","params":{"name":"slow","_meta":{"progressToken":1}}}
< {"method":"notifications/progress","params":{"progressToken":1,"progress":1}}
> {"method":"notifications/cancelled","params":{"requestId":1}}
> {"id":2,"method":"tools/call","params":{"name":"slow"}}
< {"id":2,"result":{"content":[]}}
> {"id":3,"method":"tools/call","params":{"name":"lost"}}
< {"id":"q","method":"elicitation/create","params":{"message":"When?","requestedSchema":{"type":"object","properties":{}}}}
"#;

#[tokio::test]
async fn a_call_without_a_recorded_answer_is_refused_at_once() {
    let replay = replay(&[session("a", &[HANDSHAKE, RECORDED].concat())], ReplayOptions::default());
    let mut peer = Peer::new(&replay);
    peer.play(
        &r#"
    HANDSHAKE
    > {"id":7,"method":"tools/call","params":{"name":"slow"}}
    < {"id":7,"error":{"code":-32603,"message":"the recording of tools/call slow has no answer: session a, call 2","data":{"recording":"session a, call 2"}}}
    > {"id":8,"method":"tools/call","params":{"name":"slow"}}
    < {"id":8,"result":{"content":[]}}
    > {"id":9,"method":"tools/call","params":{"name":"lost"}}
    < {"id":9,"error":{"code":-32603,"message":"the recording of tools/call lost has no answer: session a, call 4","data":{"recording":"session a, call 4"}}}
    "#
        .replace("HANDSHAKE", HANDSHAKE),
    )
    .await;
    let ledger = replay.ledger().unwrap();
    assert_eq!((ledger.matched, ledger.unmatched, ledger.unused), (1, 2, 0));
}

#[tokio::test]
async fn a_call_that_was_cancelled_and_answered_is_answered_again() {
    let answered = [HANDSHAKE, RECORDED, r#"< {"id":1,"result":{"content":[{"type":"text","text":"late"}]}}"#].concat();
    let replay = replay(&[session("a", &answered)], ReplayOptions::default());
    let transcript = r#"
    > {"id":1,"method":"tools/call","params":{"name":"slow"}}
    < {"id":1,"result":{"content":[{"type":"text","text":"late"}]}}
    "#;
    Peer::new(&replay).play(&[HANDSHAKE, transcript].concat()).await;
}

#[tokio::test]
async fn a_cancelled_server_request_has_its_recorded_reason() {
    let recorded = r#"
> {"id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"sampling":{}},"clientInfo":{"name":"c","version":"1"}}}
< {"id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}
> {"method":"notifications/initialized"}
> {"id":1,"method":"tools/call","params":{"name":"ask"}}
< {"id":"q","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}
< {"method":"notifications/cancelled","params":{"requestId":"q","reason":"timeout","_meta":{"why":1}}}
< {"id":1,"result":{"content":[]}}
"#;
    let replay = replay(&[session("a", recorded)], ReplayOptions::default());
    let mut peer = Peer::new(&replay);
    peer.play(recorded.split("< {\"id\":\"q\"").next().unwrap()).await;
    let request: Value = serde_json::from_slice(peer.receive().await.raw()).unwrap();
    let cancelled: Value = serde_json::from_slice(peer.receive().await.raw()).unwrap();
    assert_eq!(cancelled["params"], json!({"requestId": request["id"], "reason": "timeout", "_meta": {"why": 1}}));
}
