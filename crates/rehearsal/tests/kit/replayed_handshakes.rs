//! What was said before anything was asked, and servers that let nobody in.

use rehearsal::replay::ReplayOptions;

use crate::transcript::{HANDSHAKE, Peer, replay, session, unnamed};

const CALL: &str = r#"
> {"id":1,"method":"tools/call","params":{"name":"dig"}}
< {"id":1,"result":{"content":[]}}
"#;

const SAID: &str = r#"
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

async fn hears(recorded: &[&str], transcript: &[&str]) {
    let replay = replay(&[session("a", &recorded.concat())], ReplayOptions::default());
    // Each client hears it anew.
    for _ in 0..2 {
        Peer::of(&replay).play(&transcript.concat()).await;
    }
}

#[tokio::test]
async fn what_was_said_before_the_handshake_is_said_after_it() {
    hears(&[SAID, HANDSHAKE, CALL], &[HANDSHAKE, SAID, CALL]).await;
}

#[tokio::test]
async fn what_was_said_before_the_first_call_is_said_before_its_answer() {
    let (call, answer) = CALL.split_at(CALL.find('<').unwrap());
    hears(&[SAID, CALL], &[&unnamed(), call, SAID, answer]).await;
}

#[tokio::test]
async fn a_server_that_refused_every_client_refuses_again() {
    hears(&[REFUSED, CALL], &[REFUSED]).await;
    let refusal = REFUSED.lines().last().unwrap();
    hears(&[REFUSED], &[DISCOVER, refusal]).await;
    let unknown = r#"< {"id":0,"error":{"code":-32601,"message":"what?"}}"#;
    hears(&[DISCOVER, unknown], &[DISCOVER, unknown]).await;
}

#[tokio::test]
async fn a_server_that_refused_a_client_once_lets_others_in() {
    hears(&[REFUSED, HANDSHAKE, CALL], &[HANDSHAKE, CALL]).await;
    // Since 2026-07-28 nobody needs to be let in.
    let modern = r#"
    > {"id":1,"method":"tools/call","params":{"name":"dig",META}}
    < {"id":1,"result":{"resultType":"complete","content":[]}}
    "#;
    hears(&[REFUSED, modern], &[&unnamed(), CALL]).await;
    let unknown = r#"< {"id":0,"error":{"code":-32601,"message":"what?"}}"#;
    hears(&[DISCOVER, unknown, modern], &[DISCOVER, unknown, modern]).await;
    hears(&[DISCOVER, unknown, modern], &[&unnamed(), CALL]).await;
}

#[tokio::test]
async fn whoever_asks_for_the_recorded_version_is_given_the_one_that_was_chosen() {
    let wants = |version: &str| HANDSHAKE.replacen("2025-11-25", version, 1);
    let older = wants("2025-11-25").replacen(
        r#""result":{"protocolVersion":"2025-11-25""#,
        r#""result":{"protocolVersion":"2024-11-05""#,
        1,
    );
    hears(&[&older, CALL], &[&older, CALL]).await;
    // A version that nobody knows is answered as it was, too.
    let unknown = older.replacen("2025-11-25", "2031-01-01", 1);
    hears(&[&unknown, CALL], &[&unknown, CALL]).await;
    // Whoever asks for another one gets it.
    hears(&[&older, CALL], &[&HANDSHAKE.replace("2025-11-25", "2025-06-18"), CALL]).await;
}

#[tokio::test]
async fn what_nobody_can_hear_again_is_counted() {
    let replay = replay(&[session("a", SAID)], ReplayOptions::default());
    Peer::of(&replay)
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
async fn whoever_was_subscribed_to_says_that_it_can_be() {
    let subscribed = r#"
    > {"id":1,"method":"resources/subscribe","params":{"uri":"mem://a"}}
    < {"id":1,"result":{}}
    > {"id":2,"method":"resources/read","params":{"uri":"mem://a"}}
    < {"id":2,"result":{"contents":[]}}
    "#;
    let opening = unnamed().replace(r#"{"tools":{}}"#, r#"{"resources":{"subscribe":true}}"#);
    hears(&[subscribed], &[&opening, subscribed]).await;
}

#[tokio::test]
async fn what_was_said_while_hands_were_shaken_is_said_before_the_answer() {
    let (asked, answered) = HANDSHAKE.split_at(HANDSHAKE.find('<').unwrap());
    let note = r#"< {"method":"notifications/message","params":{"level":"info","data":"up"}}
"#;
    hears(&[asked, note, answered, CALL], &[asked, note, answered, CALL]).await;
    // In another version it is the answer of that.
    let other = |text: &str| text.replace("2025-11-25", "2025-06-18");
    hears(&[asked, note, answered, CALL], &[&other(asked), note, &other(answered), CALL]).await;
}
