//! Servers that answered before the handshake, or without one.

use rehearsal::replay::Options;
use rehearsal::wire::http::server::Sessions;

use crate::transcript::{HANDSHAKE, Peer, replay, session};

const EARLY: &str = r#"
> {"id":1,"method":"tools/call","params":{"name":"dig","arguments":{"when":"early"}}}
< {"id":1,"result":{"content":[{"type":"text","text":"served all the same"}]}}
"#;

const LATER: &str = r#"
> {"id":3,"method":"tools/call","params":{"name":"dig"}}
< {"id":3,"result":{"content":[]}}
"#;

const REFUSED: &str = r#"
> {"id":3,"method":"tools/call","params":{"name":"dig"}}
< {"id":3,"error":{"code":-32000,"message":"say hello first"}}
"#;

#[tokio::test]
async fn what_was_answered_without_a_handshake_is_again() {
    let replay = replay(&[session("a", EARLY)], Options::default());
    Peer::of(&replay).play(EARLY).await;
    let ledger = replay.ledger().unwrap();
    assert!(ledger.is_even(), "{ledger}");
    assert_eq!(replay.http_options().unwrap().sessions, Sessions::Optional);
}

#[tokio::test]
async fn what_was_answered_before_the_handshake_is_again() {
    let transcript = [EARLY, HANDSHAKE, LATER].concat();
    let replay = replay(&[session("a", &transcript)], Options::default());
    for _ in 0..2 {
        Peer::of(&replay).play(&transcript).await;
    }
}

#[tokio::test]
async fn what_was_refused_before_the_handshake_is_again_and_nothing_else() {
    let transcript = [REFUSED, HANDSHAKE, LATER].concat();
    let replay = replay(&[session("a", &transcript)], Options::default());
    Peer::of(&replay).play(&transcript).await;
    let other = EARLY.lines().nth(1).unwrap();
    let refusal = r#"< {"id":1,"error":{"code":-32600,"message":"tools/call came before initialize; send initialize first, or name a version in _meta[\"io.modelcontextprotocol/protocolVersion\"]"}}"#;
    Peer::of(&replay).play(&format!("{other}\n{refusal}")).await;
}

#[tokio::test]
async fn whoever_waited_for_the_handshake_waits_again() {
    let replay = replay(&[session("a", &[HANDSHAKE, LATER].concat())], Options::default());
    let call = LATER.lines().nth(1).unwrap();
    let refusal = r#"< {"id":3,"error":{"code":-32600,"message":"tools/call came before initialize; send initialize first, or name a version in _meta[\"io.modelcontextprotocol/protocolVersion\"]"}}"#;
    Peer::of(&replay).play(&format!("{call}\n{refusal}")).await;
    assert_eq!(replay.http_options().unwrap().sessions, Sessions::On);
}
