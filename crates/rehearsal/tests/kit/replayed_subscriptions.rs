//! What subscribers were told in one era, told to those of the other.

use rehearsal::replay::Options;

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
    let replay = replay(&[session("a", &whole(recorded))], Options::default());
    // Each client hears it anew.
    for _ in 0..2 {
        Peer::of(&replay).play(&whole(transcript)).await;
    }
}

#[tokio::test]
async fn who_subscribes_hears_what_a_listener_heard() {
    let transcript = r#"
    HANDSHAKE
    > {"id":1,"method":"resources/subscribe","params":{"uri":"a:1"}}
    < {"id":1,"result":{}}
    < {"method":"notifications/resources/updated","params":{"uri":"a:1"}}
    < {"method":"notifications/tools/list_changed","params":{}}
    > {"id":2,"method":"resources/subscribe","params":{"uri":"a:2"}}
    < {"id":2,"result":{}}
    < {"method":"notifications/resources/updated","params":{"uri":"a:2"}}
    > {"id":3,"method":"tools/call","params":{"name":"one"}}
    < {"id":3,"result":{"content":[]}}
    < {"method":"notifications/resources/updated","params":{"uri":"a:2"}}
    > {"id":4,"method":"tools/call","params":{"name":"two"}}
    < {"id":4,"result":{"content":[]}}
    "#;
    hears(LISTENED, transcript).await;
}

#[tokio::test]
async fn who_subscribes_to_nothing_hears_of_lists_alone() {
    let transcript = r#"
    HANDSHAKE
    > {"id":3,"method":"tools/call","params":{"name":"one"}}
    < {"method":"notifications/tools/list_changed","params":{}}
    < {"id":3,"result":{"content":[]}}
    > {"id":4,"method":"tools/call","params":{"name":"two"}}
    < {"id":4,"result":{"content":[]}}
    "#;
    hears(LISTENED, transcript).await;
    // As it was recorded, where the version is the same.
    hears(SUBSCRIBED, &transcript.replace(r#","params":{}}"#, "}")).await;
}

#[tokio::test]
async fn who_listens_hears_what_a_subscriber_heard() {
    let transcript = r#"
    > {"id":7,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:1","a:2"]},META}}
    < {"method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:1","a:2"]},"_meta":{"io.modelcontextprotocol/subscriptionId":7}}}
    < {"method":"notifications/resources/updated","params":{"uri":"a:1","_meta":{"io.modelcontextprotocol/subscriptionId":7}}}
    < {"method":"notifications/resources/updated","params":{"uri":"a:2","_meta":{"io.modelcontextprotocol/subscriptionId":7}}}
    < {"method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":7}}}
    > {"id":8,"method":"tools/call","params":{"name":"one",META}}
    < {"id":8,"result":{"content":[],"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}}
    < {"method":"notifications/resources/updated","params":{"uri":"a:2","_meta":{"io.modelcontextprotocol/subscriptionId":7}}}
    > {"id":9,"method":"tools/call","params":{"name":"two",META}}
    < {"id":9,"result":{"content":[],"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}}
    "#;
    hears(SUBSCRIBED, transcript).await;
    // As it was recorded, where the version is the same.
    let named = r#","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}}"#;
    hears(LISTENED, &transcript.replace(named, "}}")).await;
}

#[tokio::test]
async fn who_listens_to_one_resource_hears_of_no_other() {
    let transcript = r#"
    > {"id":7,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["a:2"]},META}}
    < {"method":"notifications/subscriptions/acknowledged","params":{"notifications":{"resourceSubscriptions":["a:2"]},"_meta":{"io.modelcontextprotocol/subscriptionId":7}}}
    < {"method":"notifications/resources/updated","params":{"uri":"a:2","_meta":{"io.modelcontextprotocol/subscriptionId":7}}}
    > {"id":9,"method":"tools/call","params":{"name":"two",META}}
    < {"id":9,"result":{"content":[],"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}}
    "#;
    hears(SUBSCRIBED, transcript).await;
}
