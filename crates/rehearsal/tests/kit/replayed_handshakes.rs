//! Messages before the first request, and recordings with refused handshakes.

use rehearsal::replay::ReplayOptions;

use crate::transcript::{HANDSHAKE, Peer, replay, session, unnamed};

const CALL: &str = r#"
> {"id":1,"method":"tools/call","params":{"name":"dig"}}
< {"id":1,"result":{"content":[]}}
"#;

const NOTIFICATIONS: &str = r#"
< {"method":"notifications/message","params":{"level":"info","data":"up"}}
< {"method":"notifications/tools/list_changed"}
"#;

const REFUSED: &str = r#"
> {"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
< {"id":0,"error":{"code":-32000,"message":"go away","data":{"x":1}}}
"#;

const DISCOVER: &str = r#"
> {"id":0,"method":"server/discover","params":{META}}
"#;

async fn assert_replayed(recorded: &[&str], transcript: &[&str]) {
    let replay = replay(&[session("a", &recorded.concat())], ReplayOptions::default());
    // Each client gets the recording from the start.
    for _ in 0..2 {
        Peer::new(&replay).play(&transcript.concat()).await;
    }
}

#[tokio::test]
async fn messages_recorded_before_the_handshake_are_replayed_after_it() {
    assert_replayed(&[NOTIFICATIONS, HANDSHAKE, CALL], &[HANDSHAKE, NOTIFICATIONS, CALL]).await;
}

#[tokio::test]
async fn messages_recorded_before_the_first_call_are_replayed_before_its_response() {
    let (call, answer) = CALL.split_at(CALL.find('<').unwrap());
    assert_replayed(&[NOTIFICATIONS, CALL], &[&unnamed(), call, NOTIFICATIONS, answer]).await;
}

#[tokio::test]
async fn a_replay_with_only_refused_handshakes_refuses_every_client() {
    assert_replayed(&[REFUSED, CALL], &[REFUSED]).await;
    let refusal = REFUSED.lines().last().unwrap();
    assert_replayed(&[REFUSED], &[DISCOVER, refusal]).await;
    let unknown = r#"< {"id":0,"error":{"code":-32601,"message":"what?"}}"#;
    assert_replayed(&[DISCOVER, unknown], &[DISCOVER, unknown]).await;
}

#[tokio::test]
async fn a_replay_with_one_refused_handshake_accepts_other_clients() {
    assert_replayed(&[REFUSED, HANDSHAKE, CALL], &[HANDSHAKE, CALL]).await;
    // Clients of 2026-07-28 send no handshake.
    let modern = r#"
    > {"id":1,"method":"tools/call","params":{"name":"dig",META}}
    < {"id":1,"result":{"resultType":"complete","content":[]}}
    "#;
    assert_replayed(&[REFUSED, modern], &[&unnamed(), CALL]).await;
    let unknown = r#"< {"id":0,"error":{"code":-32601,"message":"what?"}}"#;
    assert_replayed(&[DISCOVER, unknown, modern], &[DISCOVER, unknown, modern]).await;
    assert_replayed(&[DISCOVER, unknown, modern], &[&unnamed(), CALL]).await;
}

#[tokio::test]
async fn a_client_that_requests_the_recorded_version_gets_the_negotiated_one() {
    let requesting = |version: &str| HANDSHAKE.replacen("2025-11-25", version, 1);
    let older = requesting("2025-11-25").replacen(
        r#""result":{"protocolVersion":"2025-11-25""#,
        r#""result":{"protocolVersion":"2024-11-05""#,
        1,
    );
    assert_replayed(&[&older, CALL], &[&older, CALL]).await;
    // An unknown version gets its recorded answer, too.
    let unknown = older.replacen("2025-11-25", "2031-01-01", 1);
    assert_replayed(&[&unknown, CALL], &[&unknown, CALL]).await;
    // A client that requests another version gets that one.
    assert_replayed(&[&older, CALL], &[&HANDSHAKE.replace("2025-11-25", "2025-06-18"), CALL]).await;
}

#[tokio::test]
async fn messages_that_cannot_be_replayed_are_counted() {
    let replay = replay(&[session("a", NOTIFICATIONS)], ReplayOptions::default());
    Peer::new(&replay)
        .play(
            r#"> {"id":1,"method":"ping"}
< {"id":1,"result":{}}"#,
        )
        .await;
    let ledger = replay.ledger().unwrap();
    assert_eq!((ledger.undelivered, ledger.unused), (2, 0));
    assert_eq!(ledger.to_string(), "0 matched, 0 repeated, 0 unmatched, 0 unused, 2 undelivered");
}

#[tokio::test]
async fn a_recorded_subscription_declares_the_subscribe_capability() {
    let subscribed = r#"
    > {"id":1,"method":"resources/subscribe","params":{"uri":"mem://a"}}
    < {"id":1,"result":{}}
    > {"id":2,"method":"resources/read","params":{"uri":"mem://a"}}
    < {"id":2,"result":{"contents":[]}}
    "#;
    let opening = unnamed().replace(r#"{"tools":{}}"#, r#"{"resources":{"subscribe":true}}"#);
    assert_replayed(&[subscribed], &[&opening, subscribed]).await;
}

#[tokio::test]
async fn messages_recorded_during_the_handshake_are_replayed_before_its_response() {
    let (request, response) = HANDSHAKE.split_at(HANDSHAKE.find('<').unwrap());
    let notification = r#"< {"method":"notifications/message","params":{"level":"info","data":"up"}}
"#;
    assert_replayed(&[request, notification, response, CALL], &[request, notification, response, CALL]).await;
    // A client of another version gets its own version.
    let other = |text: &str| text.replace("2025-11-25", "2025-06-18");
    assert_replayed(&[request, notification, response, CALL], &[&other(request), notification, &other(response), CALL])
        .await;
}
