//! Plays: `>` goes in, `<` comes out, `(silence)` is an hour in which nothing does.
//!
//! Time is paused, so waiting costs nothing. `<` lines are compared as JSON. Short names stand for what every message of
//! the stateless era repeats:
//!
//! ```text
//! $ME      the `_meta` of a client that can do everything, wants logs from `info` on and gives the token "t"
//! $POOR    the `_meta` of a client that can do nothing
//! $IT      the `_meta` of the server
//! $STATE   a `requestState`: learnt when it comes out, said again when it goes in
//! ```

use std::time::Duration;

use bytes::Bytes;
use rehearsal_core::exchange::Channel;
use rehearsal_wire::{Connection, Ending, Event, memory};
use serde_json::Value;
use tiny_server::{Options, Server};

const ME: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"sampling":{},"roots":{}},"io.modelcontextprotocol/logLevel":"info","progressToken":"t"}"#;
const POOR: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
const IT: &str =
    r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"tiny-server","version":"0.1.0","title":"Tiny server"}}"#;

/// Plays a script against a server with the usual options.
pub(crate) async fn play(script: &str) {
    play_with(Options::default(), script).await;
}

/// Plays a script; fails at the first line that goes otherwise, and where the server says more than the script.
pub(crate) async fn play_with(options: Options, script: &str) {
    let (mut client, served) = memory::pair();
    let server = Server::new(options);
    let serving = tokio::spawn(async move { server.serve(served).await });
    let mut state = None;
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let written = line.replace("$ME", ME).replace("$POOR", POOR).replace("$IT", IT);
        if let Some(said) = written.strip_prefix("> ") {
            let said = said.replace("$STATE", state.as_deref().unwrap_or("$STATE"));
            client.sender.send_bytes(Channel::MAIN, Bytes::from(said)).await.unwrap();
        } else if let Some(expected) = written.strip_prefix("< ") {
            let heard = hear(&mut client).await.unwrap_or_else(|| panic!("nothing came instead of\n{line}"));
            if let Some(found) = heard["result"]["requestState"].as_str() {
                state = Some(found.to_owned());
            }
            let expected = expected.replace("$STATE", state.as_deref().unwrap_or("$STATE"));
            let expected: Value = serde_json::from_str(&expected).unwrap_or_else(|error| panic!("{error}: {expected}"));
            assert_eq!(heard, expected, "\nexpected {line}\n   heard < {heard}\n");
        } else if line == "(silence)" {
            assert_eq!(hear(&mut client).await, None, "a word in the silence");
        } else {
            panic!("a line of a play begins with `>` or `<`: {line}");
        }
    }
    client.sender.close().await;
    assert_eq!(hear(&mut client).await, None, "more than the play says");
    assert_eq!(serving.await.unwrap(), Ending::PeerClosed);
}

/// The next message; `None` after an hour without, or at the end.
pub(crate) async fn hear(client: &mut Connection) -> Option<Value> {
    match tokio::time::timeout(Duration::from_secs(3600), client.receiver.receive()).await {
        Ok(Event::Message { message, .. }) => Some(serde_json::from_slice(message.raw()).unwrap()),
        Ok(Event::ChannelEnded { .. } | Event::Ended(_)) | Err(_) => None,
    }
}
