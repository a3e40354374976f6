//! What subscribers were sent.

use rehearsal::replay::ReplayOptions;

use crate::transcript::{Peer, replay, session};

const HANDSHAKE: &str = r#"
> {"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
< {"id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"s","version":"1"}}}
> {"method":"notifications/initialized"}
"#;

/// A client of 2026-07-28 listens, and hears something before, between and after its calls.
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

/// The same of 2025-11-25.
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

/// What a client hears of a recording.
async fn hears(recorded: &str, transcript: &str) {
    let whole = |text: &str| text.replace("HANDSHAKE", HANDSHAKE);
    let replay = replay(&[session("a", &whole(recorded))], ReplayOptions::default());
    // Each client hears it anew.
    for _ in 0..2 {
        Peer::of(&replay).play(&whole(transcript)).await;
    }
}

#[tokio::test]
async fn a_client_that_subscribes_as_recorded_gets_what_was_sent() {
    hears(LISTENED, LISTENED).await;
    hears(SUBSCRIBED, SUBSCRIBED).await;
}

#[tokio::test]
async fn what_followed_a_call_reaches_subscribers_of_the_other_era() {
    let subscribes = r#"
    HANDSHAKE
    > {"id":2,"method":"resources/subscribe","params":{"uri":"a:2"}}
    < {"id":2,"result":{}}
    > {"id":3,"method":"tools/call","params":{"name":"one"}}
    < {"id":3,"result":{"content":[]}}
    < {"method":"notifications/resources/updated","params":{"uri":"a:2"}}
    "#;
    hears(LISTENED, subscribes).await;
    let listens = r#"
    > {"id":7,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["a:2"]},META}}
    < {"method":"notifications/subscriptions/acknowledged","params":{"notifications":{"resourceSubscriptions":["a:2"]},"_meta":{"io.modelcontextprotocol/subscriptionId":7}}}
    > {"id":8,"method":"tools/call","params":{"name":"one",META}}
    < {"id":8,"result":{"content":[],"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}}
    < {"method":"notifications/resources/updated","params":{"uri":"a:2","_meta":{"io.modelcontextprotocol/subscriptionId":7}}}
    "#;
    hears(SUBSCRIBED, listens).await;
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
    hears(LISTENED, transcript).await;
}

/// Somebody listens, and nothing else was recorded. The server tells of less than it was asked to.
const ALONE: &str = r#"
> {"id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourceSubscriptions":["a:b"]},META}}
< {"method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:b"]},"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}
< {"method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}
< {"method":"notifications/resources/updated","params":{"uri":"a:b","_meta":{"io.modelcontextprotocol/subscriptionId":1}}}
"#;

#[tokio::test]
async fn a_server_of_which_only_a_subscription_is_known_can_do_what_it_promised() {
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
    Peer::of(&replay).play(&[discovered, ALONE, listed].concat().replace("INFO", info)).await;
    let older = r#"
    > {"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
    < {"id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true}},"serverInfo":{"name":"recorded","version":"0"}}}
    > {"id":1,"method":"resources/subscribe","params":{"uri":"a:b"}}
    < {"id":1,"result":{}}
    "#;
    Peer::of(&replay).play(older).await;
}

#[tokio::test]
async fn a_server_that_promised_nothing_can_do_what_it_was_asked_to() {
    let (asked, _) = ALONE.split_at(ALONE.find("< {").unwrap());
    let replay = replay(&[session("a", asked)], ReplayOptions::default());
    let mut peer = Peer::of(&replay);
    peer.play(asked).await;
    let heard: serde_json::Value = serde_json::from_slice(peer.hear().await.raw()).unwrap();
    let promised =
        serde_json::json!({"toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": ["a:b"]});
    assert_eq!(heard["params"]["notifications"], promised);
}

const DISCOVERED: &str = r#"
> {"id":0,"method":"server/discover","params":{META}}
< {"id":0,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"prompts":{},"resources":{}},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}}
"#;

#[tokio::test]
async fn who_listens_is_promised_what_was_promised() {
    let listened = r#"
    > {"id":"l","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourceSubscriptions":["a:1","a:2"]},META}}
    < {"method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:2"]},"_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}
    > {"id":"m","method":"subscriptions/listen","params":{"notifications":{"resourcesListChanged":true,"resourceSubscriptions":["a:3","a:4"]},META}}
    < {"method":"notifications/subscriptions/acknowledged","params":{"notifications":{"resourceSubscriptions":["a:3"]},"_meta":{"io.modelcontextprotocol/subscriptionId":"m"}}}
    "#;
    let whole = [DISCOVERED, listened].concat();
    let replay = replay(&[session("a", &whole)], ReplayOptions::default());
    Peer::of(&replay).play(&whole).await;
}

#[tokio::test]
async fn who_was_not_allowed_to_listen_is_not() {
    let refused = r#"
    > {"id":"l","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},META}}
    < {"id":"l","error":{"code":-32601,"message":"Method not found"}}
    "#;
    let replay = replay(&[session("a", &[DISCOVERED, refused].concat())], ReplayOptions::default());
    let otherwise = refused.replace("toolsListChanged", "promptsListChanged");
    Peer::of(&replay).play(&[DISCOVERED, refused, &otherwise].concat()).await;
    let ledger = replay.ledger().unwrap();
    assert_eq!((ledger.unmatched, ledger.unused), (0, 0));
}

/// One that was let in, heard of a change, and was sent away with an error; servers say that when their client leaves, too.
const SENT_AWAY: &str = r#"
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
async fn who_was_let_in_and_heard_an_error_when_it_left_is_let_in() {
    let replay = replay(&[session("a", &[DISCOVERED, SENT_AWAY, CLOSED].concat())], ReplayOptions::default());
    for _ in 0..2 {
        Peer::of(&replay).play(&[DISCOVERED, SENT_AWAY].concat()).await;
    }
}
