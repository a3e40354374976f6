//! How a conversation begins.

use rehearsal::core::protocol::Revision;
use serde_json::{Value, json};

use crate::peer::{Peer, Transport, example};

const BOTH: [Transport; 2] = [Transport::Stdio, Transport::Sse];

async fn peer(transport: Transport, revision: Revision) -> Peer {
    Peer::start(&example("conformance.mock.yaml"), transport, revision).await
}

#[tokio::test]
async fn a_version_is_agreed_on_and_the_server_says_who_it_is_and_what_it_can_do() {
    for transport in BOTH {
        for revision in Revision::ALL.into_iter().filter(|revision| revision.has_handshake()) {
            let mut peer = peer(transport, revision).await;
            let answer = peer.initialize().await;
            let result = &answer["result"];
            assert_eq!(result["protocolVersion"], revision.as_str());
            assert_eq!(result["serverInfo"]["name"], "conformance");
            assert_eq!(result["instructions"], "Everything here is for testing.");
            for capability in ["tools", "resources", "prompts", "logging"] {
                assert!(result["capabilities"][capability].is_object(), "{capability}: {result}");
            }
            assert_eq!(result["capabilities"]["completions"].is_object(), revision >= Revision::V2025_03_26);
            peer.end().await;
        }
    }
}

#[tokio::test]
async fn whoever_wants_a_version_without_a_handshake_or_none_that_exists_gets_the_newest_that_has_one() {
    for transport in BOTH {
        for wanted in ["2026-07-28", "1999-01-01"] {
            let mut peer = peer(transport, Revision::LATEST_LEGACY).await;
            let params =
                json!({"protocolVersion": wanted, "capabilities": {}, "clientInfo": {"name": "p", "version": "1"}});
            let answer = peer.ask("initialize", Some(params)).await;
            assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{wanted}");
            peer.end().await;
        }
    }
}

#[tokio::test]
async fn before_the_handshake_only_a_ping_is_answered_with_a_result() {
    for transport in BOTH {
        let mut peer = peer(transport, Revision::LATEST_LEGACY).await;
        assert_eq!(peer.ask("ping", None).await["result"], json!({}));
        peer.initialize().await;
        peer.notify("notifications/initialized", None).await;
        assert_eq!(peer.ask("ping", None).await["result"], json!({}));
        peer.end().await;
    }
}

#[tokio::test]
async fn a_batch_is_answered_in_the_only_version_that_has_them() {
    let mut peer = Peer::ready(&example("conformance.mock.yaml"), Transport::Stdio, Revision::V2025_03_26).await;
    peer.say(r#"[{"jsonrpc":"2.0","id":"a","method":"ping"},{"jsonrpc":"2.0","id":"b","method":"ping"}]"#).await;
    let said = peer.awaited("the answers to a batch", Value::is_array).await;
    let pong = |id: &str| json!({"jsonrpc": "2.0", "id": id, "result": {}});
    assert_eq!(said, json!([pong("a"), pong("b")]));
    peer.end().await;
}

#[tokio::test]
async fn what_is_no_message_is_refused_and_the_conversation_goes_on() {
    for transport in BOTH {
        let mut peer = Peer::ready(&example("conformance.mock.yaml"), transport, Revision::V2025_06_18).await;
        peer.say(r#"{"jsonrpc":"1.0","id":77,"method":"ping"}"#).await;
        let refused = peer.awaited("a refusal", |message| message.get("error").is_some()).await;
        assert_eq!(refused["error"]["code"], -32600, "{refused}");
        assert_eq!(peer.ask("ping", None).await["result"], json!({}));
        peer.end().await;
    }
}
