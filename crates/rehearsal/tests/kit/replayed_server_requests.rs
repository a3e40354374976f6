//! What a server asks while it works, asked again.

use rehearsal::replay::ReplayOptions;
use serde_json::{Value, json};

use crate::replays::client;
use crate::transcript::{Peer, replay, session};

/// Two questions at once; the second is answered first, and each answer has its consequence. A third needs no answer.
const TALK: &str = r#"
> {"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"sampling":{},"roots":{}},"clientInfo":{"name":"c","version":"1"}}}
< {"id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"s","version":"1"}}}
> {"id":1,"method":"tools/call","params":{"name":"dig"}}
< {"id":7,"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}
< {"id":8,"method":"roots/list"}
< {"method":"notifications/message","params":{"level":"info","data":"asked"}}
> {"id":8,"result":{"roots":[]}}
< {"method":"notifications/message","params":{"level":"info","data":"has roots"}}
> {"id":7,"result":{"role":"assistant","content":{"type":"text","text":"x"},"model":"m"}}
< {"method":"notifications/message","params":{"level":"info","data":"has text"}}
< {"id":9,"method":"ping"}
< {"id":1,"result":{"content":[]}}
"#;

async fn begin() -> Peer {
    begin_with(TALK).await
}

async fn begin_with(talk: &str) -> Peer {
    let mut peer = Peer::of(&replay(&[session("a", talk)], ReplayOptions::default()));
    let capabilities = json!({"sampling": {}, "roots": {}});
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": {"name": "c", "version": "1"}});
    peer.say(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})).await;
    peer.hear().await;
    peer.say(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "dig"}})).await;
    peer
}

async fn heard(peer: &mut Peer) -> Value {
    serde_json::from_slice(peer.hear().await.raw()).unwrap()
}

#[tokio::test]
async fn what_follows_an_answer_waits_for_no_other() {
    let mut peer = begin().await;
    let sampling = heard(&mut peer).await;
    let roots = heard(&mut peer).await;
    assert_eq!([&sampling["method"], &roots["method"]], ["sampling/createMessage", "roots/list"]);
    assert_eq!(heard(&mut peer).await["params"]["data"], "asked");
    peer.say(json!({"jsonrpc": "2.0", "id": roots["id"], "result": {"roots": []}})).await;
    assert_eq!(heard(&mut peer).await["params"]["data"], "has roots");
    peer.say(json!({"jsonrpc": "2.0", "id": sampling["id"], "result": {}})).await;
    assert_eq!(heard(&mut peer).await["params"]["data"], "has text");
    assert_eq!(heard(&mut peer).await["method"], "ping");
    assert_eq!(heard(&mut peer).await["result"], json!({"content": []}));
}

#[tokio::test]
async fn a_client_that_gives_up_is_told_that_nobody_waits_for_its_answers() {
    let mut peer = begin().await;
    let ids = [heard(&mut peer).await["id"].clone(), heard(&mut peer).await["id"].clone()];
    heard(&mut peer).await;
    peer.say(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}})).await;
    for id in ids {
        let told = heard(&mut peer).await;
        assert_eq!((&told["method"], &told["params"]["requestId"]), (&json!("notifications/cancelled"), &id));
    }
}

/// A question that took its client too long.
const TOO_LONG: &str = r#"
> {"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}
< {"id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}
> {"id":1,"method":"tools/call","params":{"name":"dig"}}
< {"id":7,"method":"roots/list"}
< {"method":"notifications/cancelled","params":{"requestId":7,"reason":"took too long"}}
< {"id":1,"result":{"content":[{"type":"text","text":"without"}]}}
"#;

#[tokio::test]
async fn a_question_that_nobody_answered_holds_nobody_up() {
    let mut peer = begin_with(TOO_LONG).await;
    let roots = heard(&mut peer).await;
    assert_eq!(roots["method"], "roots/list");
    let withdrawn = heard(&mut peer).await;
    assert_eq!(
        (&withdrawn["method"], &withdrawn["params"]["requestId"]),
        (&json!("notifications/cancelled"), &roots["id"])
    );
    assert_eq!(heard(&mut peer).await["result"]["content"][0]["text"], "without");
    // Who could only be sent away is not.
    let modern = client(&replay(&[session("a", TOO_LONG)], ReplayOptions::default())).modern();
    let modern = modern.map_handlers(|answers| answers.roots([("file:///", "all")])).connect().await.unwrap();
    let response = modern.call("dig").max_input_rounds(0).await.unwrap();
    assert_eq!(response.content(), "without");
}
