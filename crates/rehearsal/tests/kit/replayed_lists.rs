//! Lists that changed while they were recorded.

use rehearsal::replay::{Replay, ReplayOptions};
use serde_json::{Value, json};

use crate::transcript::{Peer, replay, session};

const HANDSHAKE: &str = r#"
> {"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
< {"id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"}}}
> {"method":"notifications/initialized"}
"#;

/// What was recorded, word by word: `list:a` and `page:b` for the pages of a list, the names of tools that were called, and `!` where
/// the list was changed.
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

/// What another client hears that says these words: the tools that it is told of, and `!` for each change.
async fn heard(replay: &Replay, words: &str) -> String {
    let mut peer = Peer::of(replay);
    peer.play(HANDSHAKE).await;
    let mut heard = Vec::new();
    for (at, word) in (1..).zip(words.split_whitespace()) {
        let (method, params) = match word {
            "list" => ("tools/list", json!({})),
            "page" => ("tools/list", json!({"cursor": "2"})),
            "!" => {
                let told = peer.hear().await;
                assert_eq!(told.method().unwrap().as_str(), "notifications/tools/list_changed");
                heard.push("!".to_owned());
                continue;
            }
            tool => ("tools/call", json!({"name": tool})),
        };
        peer.say(json!({"jsonrpc": "2.0", "id": at, "method": method, "params": params})).await;
        let answer: Value = serde_json::from_slice(peer.hear().await.raw()).unwrap();
        assert_eq!(answer["id"], at, "{answer}");
        heard.push(answer["result"]["tools"][0]["name"].as_str().unwrap_or(word).to_owned());
    }
    heard.join(" ")
}

async fn hears(words: &str, says: &str, expected: &str) {
    let replay = replay(&[recorded(words)], ReplayOptions::default());
    // Each client hears it anew.
    for _ in 0..2 {
        assert_eq!(heard(&replay, says).await, expected, "recorded: {words}");
    }
}

#[tokio::test]
async fn the_nth_list_request_gets_the_nth_recorded_list_and_then_the_last() {
    hears("list:a enable ! list:b", "list enable ! list list", "a enable ! b b").await;
    hears("list:a list:b one list:c", "list list list one list", "a b c one c").await;
}

#[tokio::test]
async fn the_pages_of_a_list_stay_together() {
    let words = "list:old page:old2 enable ! list:new page:new2";
    hears(words, "list page enable ! list page", "old old2 enable ! new new2").await;
    hears(words, "list list page page list page", "old new new2 new2 new new2").await;
}

#[tokio::test]
async fn a_list_that_is_given_again_comes_without_its_notifications() {
    // Otherwise a client that lists whenever a list has changed would never stop.
    hears("list:a !", "list ! list list one", "a ! a a one").await;
    hears("list:a page:b ! one", "list page ! list page one", "a b ! a b one").await;
}

#[tokio::test]
async fn a_list_that_the_session_of_a_client_does_not_have_is_that_of_another() {
    let replay = replay(
        &[recorded("one"), recorded("list:old enable ! list:new").replace("\"a\"", "\"b\"")],
        ReplayOptions::default(),
    );
    assert_eq!(heard(&replay, "one list enable ! list").await, "one old enable ! new");
}
