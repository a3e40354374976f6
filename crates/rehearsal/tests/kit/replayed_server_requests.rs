//! Server requests during a call are replayed.

use rehearsal::replay::ReplayOptions;
use serde_json::{Value, json};

use crate::replays::client;
use crate::transcript::{Peer, replay, session};

/// Two concurrent server requests: the second is answered first, and each response is followed by a log message. Then a ping.
const TRANSCRIPT: &str = r#"
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

async fn start_call() -> Peer {
    start_call_of(TRANSCRIPT).await
}

async fn start_call_of(transcript: &str) -> Peer {
    let mut peer = Peer::new(&replay(&[session("a", transcript)], ReplayOptions::default()));
    let capabilities = json!({"sampling": {}, "roots": {}});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": {"name": "c", "version": "1"}});
    peer.send(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})).await;
    peer.receive().await;
    peer.send(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "dig"}})).await;
    peer
}

async fn receive(peer: &mut Peer) -> Value {
    serde_json::from_slice(peer.receive().await.raw()).unwrap()
}

#[tokio::test]
async fn messages_after_a_client_response_do_not_wait_for_other_responses() {
    let mut peer = start_call().await;
    let sampling = receive(&mut peer).await;
    let roots = receive(&mut peer).await;
    assert_eq!([&sampling["method"], &roots["method"]], ["sampling/createMessage", "roots/list"]);
    assert_eq!(receive(&mut peer).await["params"]["data"], "asked");
    peer.send(json!({"jsonrpc": "2.0", "id": roots["id"], "result": {"roots": []}})).await;
    assert_eq!(receive(&mut peer).await["params"]["data"], "has roots");
    peer.send(json!({"jsonrpc": "2.0", "id": sampling["id"], "result": {}})).await;
    assert_eq!(receive(&mut peer).await["params"]["data"], "has text");
    assert_eq!(receive(&mut peer).await["method"], "ping");
    assert_eq!(receive(&mut peer).await["result"], json!({"content": []}));
}

#[tokio::test]
async fn a_client_that_cancels_a_call_gets_its_server_requests_cancelled() {
    let mut peer = start_call().await;
    let ids = [receive(&mut peer).await["id"].clone(), receive(&mut peer).await["id"].clone()];
    receive(&mut peer).await;
    peer.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}})).await;
    for id in ids {
        let cancelled = receive(&mut peer).await;
        assert_eq!((&cancelled["method"], &cancelled["params"]["requestId"]), (&json!("notifications/cancelled"), &id));
    }
}

/// A server request that the server cancels, because its client did not answer in time.
const TOO_LONG: &str = r#"
> {"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}
< {"id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}
> {"id":1,"method":"tools/call","params":{"name":"dig"}}
< {"id":7,"method":"roots/list"}
< {"method":"notifications/cancelled","params":{"requestId":7,"reason":"took too long"}}
< {"id":1,"result":{"content":[{"type":"text","text":"without"}]}}
"#;

#[tokio::test]
async fn an_unanswered_server_request_does_not_block_the_call() {
    let mut peer = start_call_of(TOO_LONG).await;
    let roots = receive(&mut peer).await;
    assert_eq!(roots["method"], "roots/list");
    let withdrawn = receive(&mut peer).await;
    assert_eq!(
        (&withdrawn["method"], &withdrawn["params"]["requestId"]),
        (&json!("notifications/cancelled"), &roots["id"])
    );
    assert_eq!(receive(&mut peer).await["result"]["content"][0]["text"], "without");
    // A modern client gets no input round for it.
    let modern = client(&replay(&[session("a", TOO_LONG)], ReplayOptions::default())).modern();
    let modern = modern.map_handlers(|answers| answers.roots([("file:///", "all")])).connect().await.unwrap();
    let response = modern.call("dig").max_input_rounds(0).await.unwrap();
    assert_eq!(response.content(), "without");
}
