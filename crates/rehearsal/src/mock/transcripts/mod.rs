//! Plays: `>` goes in, `<` comes out, `(silence)` is an hour in which nothing does.
//!
//! Time is paused, so waiting costs nothing. `<` lines are compared as JSON. Short names stand for what every message of
//! the stateless era repeats, and for what is learnt when it comes out and said again when it goes in:
//!
//! ```text
//! $ME      the `_meta` of a client that can do everything, wants logs from `info` on and gives the token "t"
//! $POOR    the `_meta` of a client that can do nothing
//! $IT      the `_meta` of the server
//! $STATE   a `requestState`
//! $TASK    a `taskId`
//! $TIME    the time of a task, whatever it is
//! ```

mod legacy;
mod modern;

use std::time::Duration;

use bytes::Bytes;
use rehearsal_core::exchange::Channel;
use rehearsal_wire::{Connection, Ending, Event, memory};
use serde_json::Value;

use super::load::chain_of;
use crate::serve::Server;

const ME: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"sampling":{},"roots":{},"extensions":{"io.modelcontextprotocol/tasks":{}}},"io.modelcontextprotocol/logLevel":"info","progressToken":"t"}"#;
const POOR: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
const IT: &str = r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"play","version":"1"}}"#;

/// The beginning of a conversation of the handshake era, with a client that can do everything.
const HANDSHAKE: &str = r#"
    > {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"$VERSION","capabilities":{"elicitation":{},"sampling":{},"roots":{}},"clientInfo":{"name":"play","version":"1"}}}
    <initialized
    > {"jsonrpc":"2.0","method":"notifications/initialized"}
"#;

/// A server of this file.
fn server(file: &str) -> Server {
    let text = format!("server: {{ name: play, version: '1' }}\n{file}");
    Server::new(chain_of("play.yaml", &text).unwrap_or_else(|error| panic!("{error}")))
}

/// Plays a script of the stateless era.
async fn play(file: &str, script: &str) {
    play_with(server(file), script).await;
}

/// Plays a script after the handshake of a version.
async fn play_after_handshake(version: &str, file: &str, script: &str) {
    play_with(server(file), &format!("{}{script}", HANDSHAKE.replace("$VERSION", version))).await;
}

/// Plays a script; fails at the first line that goes otherwise, and where the server says more than the script.
async fn play_with(server: Server, script: &str) {
    let (mut client, served) = memory::pair();
    let serving = tokio::spawn({
        let server = server.clone();
        async move { server.serve(served).await }
    });
    let mut learnt: Vec<(&str, String)> = Vec::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let mut written = line.replace("$ME", ME).replace("$POOR", POOR).replace("$IT", IT);
        for (name, value) in &learnt {
            written = written.replace(name, value);
        }
        if let Some(said) = written.strip_prefix("> ") {
            client.sender.send_bytes(Channel::MAIN, Bytes::from(said.to_owned())).await.expect("the server listens");
        } else if let Some(expected) = written.strip_prefix('<') {
            let heard = hear(&mut client).await.unwrap_or_else(|| panic!("nothing came instead of\n{line}"));
            learn(&heard, &mut learnt);
            let Some(expected) = expected.strip_prefix(' ') else { continue };
            let expected = learnt.iter().fold(expected.to_owned(), |text, (name, value)| text.replace(name, value));
            let expected: Value = serde_json::from_str(&expected).unwrap_or_else(|error| panic!("{error}: {expected}"));
            let heard = without_times(heard);
            assert_eq!(heard, expected, "\nexpected {line}\n   heard < {heard}\n");
        } else if line == "(silence)" {
            assert_eq!(hear(&mut client).await, None, "a word in the silence");
        } else if line == "(stop)" {
            server.stop();
        } else {
            panic!("a line of a play begins with `>` or `<`: {line}");
        }
    }
    client.sender.close().await;
    assert_eq!(hear(&mut client).await, None, "more than the play says");
    let ending = serving.await.expect("nothing panics");
    assert!(matches!(ending, Ending::PeerClosed | Ending::Closed), "{ending:?}");
}

/// The next message; `None` after an hour without, or at the end.
async fn hear(client: &mut Connection) -> Option<Value> {
    match tokio::time::timeout(Duration::from_secs(3600), client.receiver.receive()).await {
        Ok(Event::Message { message, .. }) => Some(serde_json::from_slice(message.raw()).expect("it is JSON")),
        Ok(Event::ChannelEnded { .. } | Event::Ended(_)) | Err(_) => None,
    }
}

fn learn(heard: &Value, learnt: &mut Vec<(&str, String)>) {
    let result = &heard["result"];
    let task = result["taskId"].as_str().or_else(|| result["task"]["taskId"].as_str());
    for (name, found) in [("$STATE", result["requestState"].as_str()), ("$TASK", task)] {
        if let Some(found) = found {
            learnt.retain(|(known, _)| *known != name);
            learnt.push((name, found.to_owned()));
        }
    }
}

/// The same, with `$TIME` where a time was that looks like one.
fn without_times(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            for (key, field) in fields.iter_mut() {
                let is_time = matches!(key.as_str(), "createdAt" | "lastUpdatedAt");
                if is_time && field.as_str().is_some_and(|text| text.starts_with("20") && text.ends_with('Z')) {
                    *field = "$TIME".into();
                } else {
                    *field = without_times(field.take());
                }
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(|element| *element = without_times(element.take())),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    value
}
