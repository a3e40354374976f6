//! Subscriptions and change notices in replays.

use rehearsal::replay::ReplayOptions;

use crate::transcript::{Peer, replay, session};

const HANDSHAKE: &str = r#"
> {"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
< {"id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"s","version":"1"}}}
> {"method":"notifications/initialized"}
"#;

/// A client of 2026-07-28 with a subscription gets change notices before, between and after its calls.
const LISTENED: &str = r#"
> {"id":0,"method":"server/discover","params":{META}}
< {"id":0,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"resources":{}},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}}
> {"id":"l","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:1","a:2"]},META}}
< {"method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:1","a:2"]},"_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}
< {"method":"notifications/resources/updated","params":{"uri":"a:1","_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}
< {"method":"notifications/resources/updated","params":{"uri":"a:2","_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}
< {"method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}
> {"id":1,"method":"tools/call","params":{"name":"one",META}}
< {"id":1,"result":{"resultType":"complete","content":[]}}
< {"method":"notifications/resources/updated","params":{"uri":"a:2","_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}
> {"id":2,"method":"tools/call","params":{"name":"two",META}}
< {"id":2,"result":{"resultType":"complete","content":[]}}
"#;

/// A client of 2025-11-25 with subscriptions gets change notices before, between and after its calls.
const SUBSCRIBED: &str = r#"
HANDSHAKE
> {"id":1,"method":"resources/subscribe","params":{"uri":"a:1"}}
< {"id":1,"result":{}}
< {"method":"notifications/resources/updated","params":{"uri":"a:1"}}
> {"id":2,"method":"resources/subscribe","params":{"uri":"a:2"}}
< {"id":2,"result":{}}
< {"method":"notifications/resources/updated","params":{"uri":"a:2"}}
< {"method":"notifications/tools/list_changed"}
> {"id":3,"method":"tools/call","params":{"name":"one"}}
< {"id":3,"result":{"content":[]}}
< {"method":"notifications/resources/updated","params":{"uri":"a:2"}}
> {"id":4,"method":"tools/call","params":{"name":"two"}}
< {"id":4,"result":{"content":[]}}
"#;

/// Plays a transcript against a replay of a recording, for two clients.
async fn assert_replayed(recorded: &str, transcript: &str) {
    let whole = |text: &str| text.replace("HANDSHAKE", HANDSHAKE);
    let replay = replay(&[session("a", &whole(recorded))], ReplayOptions::default());
    // Each client gets the recording from the start.
    for _ in 0..2 {
        Peer::new(&replay).play(&whole(transcript)).await;
    }
}

#[tokio::test]
async fn a_client_that_subscribes_as_recorded_gets_what_was_sent() {
    assert_replayed(LISTENED, LISTENED).await;
    assert_replayed(SUBSCRIBED, SUBSCRIBED).await;
}

#[tokio::test]
async fn change_notices_after_a_call_reach_subscribers_of_the_other_era() {
    let subscribes = r#"
    HANDSHAKE
    > {"id":2,"method":"resources/subscribe","params":{"uri":"a:2"}}
    < {"id":2,"result":{}}
    > {"id":3,"method":"tools/call","params":{"name":"one"}}
    < {"id":3,"result":{"content":[]}}
    < {"method":"notifications/resources/updated","params":{"uri":"a:2"}}
    "#;
    assert_replayed(LISTENED, subscribes).await;
    let listens = r#"
    > {"id":7,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["a:2"]},META}}
    < {"method":"notifications/subscriptions/acknowledged","params":{"notifications":{"resourceSubscriptions":["a:2"]},"_meta":{"io.modelcontextprotocol/subscriptionId":7}}}
    > {"id":8,"method":"tools/call","params":{"name":"one",META}}
    < {"id":8,"result":{"content":[],"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}}
    < {"method":"notifications/resources/updated","params":{"uri":"a:2","_meta":{"io.modelcontextprotocol/subscriptionId":7}}}
    "#;
    assert_replayed(SUBSCRIBED, listens).await;
}

#[tokio::test]
async fn a_client_that_subscribes_to_nothing_gets_the_calls_alone() {
    let transcript = r#"
    HANDSHAKE
    > {"id":3,"method":"tools/call","params":{"name":"one"}}
    < {"id":3,"result":{"content":[]}}
    > {"id":4,"method":"tools/call","params":{"name":"two"}}
    < {"id":4,"result":{"content":[]}}
    "#;
    assert_replayed(LISTENED, transcript).await;
}

/// Only a subscription; the server acknowledges less than the client requested.
const ALONE: &str = r#"
> {"id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourceSubscriptions":["a:b"]},META}}
< {"method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:b"]},"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}
< {"method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}
< {"method":"notifications/resources/updated","params":{"uri":"a:b","_meta":{"io.modelcontextprotocol/subscriptionId":1}}}
"#;

#[tokio::test]
async fn a_recorded_acknowledgement_alone_declares_its_capabilities() {
    let replay = replay(&[session("a", ALONE)], ReplayOptions::default());
    let info = r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"recorded","version":"0"}}"#;
    let discovered = r#"
    > {"id":0,"method":"server/discover","params":{META}}
    < {"id":0,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true}},"resultType":"complete","ttlMs":0,"cacheScope":"private",INFO}}
    "#;
    let listed = r#"
    > {"id":2,"method":"tools/list","params":{META}}
    < {"id":2,"result":{"tools":[],"resultType":"complete","ttlMs":0,"cacheScope":"private",INFO}}
    "#;
    Peer::new(&replay).play(&[discovered, ALONE, listed].concat().replace("INFO", info)).await;
    let older = r#"
    > {"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
    < {"id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true}},"serverInfo":{"name":"recorded","version":"0"}}}
    > {"id":1,"method":"resources/subscribe","params":{"uri":"a:b"}}
    < {"id":1,"result":{}}
    "#;
    Peer::new(&replay).play(older).await;
}

#[tokio::test]
async fn a_subscription_without_acknowledgement_declares_the_requested_capabilities() {
    let (request, _) = ALONE.split_at(ALONE.find("< {").unwrap());
    let replay = replay(&[session("a", request)], ReplayOptions::default());
    let mut peer = Peer::new(&replay);
    peer.play(request).await;
    let acknowledged: serde_json::Value = serde_json::from_slice(peer.receive().await.raw()).unwrap();
    let expected =
        serde_json::json!({"toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": ["a:b"]});
    assert_eq!(acknowledged["params"]["notifications"], expected);
}

const DISCOVERED: &str = r#"
> {"id":0,"method":"server/discover","params":{META}}
< {"id":0,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"prompts":{},"resources":{}},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}}
"#;

#[tokio::test]
async fn a_subscription_is_acknowledged_with_the_recorded_filter() {
    let listened = r#"
    > {"id":"l","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourceSubscriptions":["a:1","a:2"]},META}}
    < {"method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:2"]},"_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}
    > {"id":"m","method":"subscriptions/listen","params":{"notifications":{"resourcesListChanged":true,"resourceSubscriptions":["a:3","a:4"]},META}}
    < {"method":"notifications/subscriptions/acknowledged","params":{"notifications":{"resourceSubscriptions":["a:3"]},"_meta":{"io.modelcontextprotocol/subscriptionId":"m"}}}
    "#;
    let whole = [DISCOVERED, listened].concat();
    let replay = replay(&[session("a", &whole)], ReplayOptions::default());
    Peer::new(&replay).play(&whole).await;
}

#[tokio::test]
async fn a_recorded_refusal_of_a_subscription_is_replayed() {
    let refused = r#"
    > {"id":"l","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},META}}
    < {"id":"l","error":{"code":-32601,"message":"Method not found"}}
    "#;
    let replay = replay(&[session("a", &[DISCOVERED, refused].concat())], ReplayOptions::default());
    let otherwise = refused.replace("toolsListChanged", "promptsListChanged");
    Peer::new(&replay).play(&[DISCOVERED, refused, &otherwise].concat()).await;
    let ledger = replay.ledger().unwrap();
    assert_eq!((ledger.unmatched, ledger.unused), (0, 0));
}

/// A subscription that is acknowledged and gets a change notice. With `CLOSED` it ends with an error, as after a disconnect.
const ACKNOWLEDGED: &str = r#"
> {"id":"l","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},META}}
< {"method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}
> {"id":1,"method":"tools/call","params":{"name":"one",META}}
< {"method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}
< {"id":1,"result":{"resultType":"complete","content":[]}}
"#;

const CLOSED: &str = r#"
< {"id":"l","error":{"code":-32000,"message":"Connection closed"}}
"#;

#[tokio::test]
async fn a_subscription_that_ended_with_an_error_is_still_acknowledged_in_replay() {
    let replay = replay(&[session("a", &[DISCOVERED, ACKNOWLEDGED, CLOSED].concat())], ReplayOptions::default());
    for _ in 0..2 {
        Peer::new(&replay).play(&[DISCOVERED, ACKNOWLEDGED].concat()).await;
    }
}
