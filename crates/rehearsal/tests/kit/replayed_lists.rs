//! Lists that changed while they were recorded.

use rehearsal::replay::{Replay, ReplayOptions};
use serde_json::{Value, json};

use crate::transcript::{Peer, replay, session};

const HANDSHAKE: &str = r#"
> {"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
< {"id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"}}}
> {"method":"notifications/initialized"}
"#;

/// A recorded session from words: `list:a` and `page:b` are the pages of a list with one tool, `!` is a change notice, and every
/// other word is a call of that tool.
fn recorded(words: &str) -> String {
    let mut transcript = HANDSHAKE.to_owned();
    for (at, word) in (1..).zip(words.split_whitespace()) {
        transcript += &match word.split_once(':') {
            None if word == "!" => "< {\"method\":\"notifications/tools/list_changed\"}\n".to_owned(),
            None => format!(
                "> {}\n< {}\n",
                json!({"id": at, "method": "tools/call", "params": {"name": word}}),
                json!({"id": at, "result": {"content": []}})
            ),
            Some((kind, tool)) => {
                let tool = json!({"name": tool, "inputSchema": {"type": "object"}});
                let (params, next) =
                    if kind == "page" { (json!({"cursor": "2"}), None) } else { (json!({}), Some("2")) };
                let mut result = json!({"tools": [tool]});
                if let Some(next) = next.filter(|_| words.contains("page")) {
                    result["nextCursor"] = next.into();
                }
                format!(
                    "> {}\n< {}\n",
                    json!({"id": at, "method": "tools/list", "params": params}),
                    json!({"id": at, "result": result})
                )
            }
        };
    }
    session("a", &transcript)
}

/// Sends the requests of these words; returns the received tools, and `!` for each change notice.
async fn responses(replay: &Replay, words: &str) -> String {
    let mut peer = Peer::new(replay);
    peer.play(HANDSHAKE).await;
    let mut responses = Vec::new();
    for (at, word) in (1..).zip(words.split_whitespace()) {
        let (method, params) = match word {
            "list" => ("tools/list", json!({})),
            "page" => ("tools/list", json!({"cursor": "2"})),
            "!" => {
                let notification = peer.receive().await;
                assert_eq!(notification.method().unwrap().as_str(), "notifications/tools/list_changed");
                responses.push("!".to_owned());
                continue;
            }
            tool => ("tools/call", json!({"name": tool})),
        };
        peer.send(json!({"jsonrpc": "2.0", "id": at, "method": method, "params": params})).await;
        let answer: Value = serde_json::from_slice(peer.receive().await.raw()).unwrap();
        assert_eq!(answer["id"], at, "{answer}");
        responses.push(answer["result"]["tools"][0]["name"].as_str().unwrap_or(word).to_owned());
    }
    responses.join(" ")
}

async fn assert_replayed(words: &str, requests: &str, expected: &str) {
    let replay = replay(&[recorded(words)], ReplayOptions::default());
    // Each client gets the recording from the start.
    for _ in 0..2 {
        assert_eq!(responses(&replay, requests).await, expected, "recorded: {words}");
    }
}

#[tokio::test]
async fn repeated_list_requests_get_the_recorded_lists_in_order() {
    assert_replayed("list:a enable ! list:b", "list enable ! list list", "a enable ! b b").await;
    assert_replayed("list:a list:b one list:c", "list list list one list", "a b c one c").await;
}

#[tokio::test]
async fn the_pages_of_a_list_stay_together() {
    let words = "list:old page:old2 enable ! list:new page:new2";
    assert_replayed(words, "list page enable ! list page", "old old2 enable ! new new2").await;
    assert_replayed(words, "list list page page list page", "old new new2 new2 new new2").await;
}

#[tokio::test]
async fn a_repeated_list_is_replayed_without_its_notifications() {
    // Otherwise a client that requests the list after each change notice would never stop.
    assert_replayed("list:a !", "list ! list list one", "a ! a a one").await;
    assert_replayed("list:a page:b ! one", "list page ! list page one", "a b ! a b one").await;
}

#[tokio::test]
async fn a_list_missing_from_the_clients_session_comes_from_another() {
    let replay = replay(
        &[recorded("one"), recorded("list:old enable ! list:new").replace("\"a\"", "\"b\"")],
        ReplayOptions::default(),
    );
    assert_eq!(responses(&replay, "one list enable ! list").await, "one old enable ! new");
}
