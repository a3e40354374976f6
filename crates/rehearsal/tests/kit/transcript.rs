//! Transcripts: `>` is what a client sends, `<` what its server sends. Lines without a mark continue the one before.
//!
//! All tests write messages like this; a transcript becomes a recording here, or is played against a server.

use std::path::PathBuf;
use std::time::Duration;

use rehearsal::core::exchange::{Channel, Side};
use rehearsal::core::message::Message;
use rehearsal::replay::{Options, Replay};
use rehearsal::serve::Server;
use rehearsal::store::Input;
use rehearsal::wire::{Connection, Event, Outgoing, memory};
use serde_json::{Value, json};

/// What every request of 2026-07-28 has; `META` in a transcript.
pub(crate) const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"sampling":{},"roots":{}},"progressToken":1}"#;

/// How most of the recordings of the handshake era begin.
pub(crate) const HANDSHAKE: &str = r#"
> {"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
< {"id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}
> {"method":"notifications/initialized"}
"#;

/// What it becomes where the server of a recording has said nothing about itself.
pub(crate) fn unnamed() -> String {
    HANDSHAKE.replace(r#""name":"s","version":"1"}}}"#, r#""name":"recorded","version":"0"}}}"#)
}

/// The journal of a session with these messages.
pub(crate) fn session(id: &str, transcript: &str) -> String {
    let mut journal = json!({"type": "start", "format": 2, "session_id": id}).to_string() + "\n";
    for (seq, (from, text)) in messages(transcript).into_iter().enumerate() {
        let message: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let (kind, message) = match (message.get("id"), message.get("method")) {
            _ if message.is_array() => ("batch", json!({"batch": message})),
            (Some(_), Some(_)) => ("request", message),
            (None, Some(_)) => ("notification", message),
            (_, None) => ("response", message),
        };
        let mut line = json!({"type": kind, "session_id": id, "seq": seq, "at_ms": seq, "from": from.to_string()});
        line.as_object_mut().unwrap().extend(message.as_object().unwrap().clone());
        journal += &(line.to_string() + "\n");
    }
    journal
}

/// The messages of a transcript, with their senders.
pub(crate) fn messages(transcript: &str) -> Vec<(Side, String)> {
    let mut messages: Vec<(Side, String)> = Vec::new();
    let transcript = transcript.replace("META", META);
    for line in transcript.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match (line.strip_prefix("> "), line.strip_prefix("< ")) {
            (Some(text), _) => messages.push((Side::Client, text.to_owned())),
            (_, Some(text)) => messages.push((Side::Server, text.to_owned())),
            (None, None) => messages.last_mut().expect("a transcript begins with `> ` or `< `").1.push_str(line),
        }
    }
    messages
}

/// A replay of these sessions.
pub(crate) fn replay(sessions: &[String], options: Options) -> Replay {
    let (_directory, journal) = journal(sessions);
    Replay::open(&Input::File(journal), options).unwrap()
}

/// A journal of these sessions, in a folder of its own.
pub(crate) fn journal(sessions: &[String]) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("trace.journal");
    std::fs::write(&journal, sessions.concat()).unwrap();
    (directory, journal)
}

/// A client that says what it is told to, and hears everything.
pub(crate) struct Peer {
    connection: Connection,
}

impl Peer {
    pub(crate) fn of(replay: &Replay) -> Peer {
        Peer::with(&replay.server())
    }

    pub(crate) fn with(server: &Server) -> Peer {
        let (connection, theirs) = memory::pair();
        let server = server.clone();
        tokio::spawn(async move { server.serve(theirs).await });
        Peer { connection }
    }

    /// Says what is after `>`, and hears what is after `<`.
    pub(crate) async fn play(&mut self, transcript: &str) {
        for (from, text) in messages(transcript) {
            let mut message: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
            message["jsonrpc"] = "2.0".into();
            if from == Side::Client {
                self.say(message).await;
                continue;
            }
            let heard = tokio::time::timeout(Duration::from_secs(60), self.hear()).await;
            let heard = heard.unwrap_or_else(|_| panic!("nothing is said instead of {text}"));
            let heard: Value = serde_json::from_slice(heard.raw()).unwrap();
            assert_eq!(heard, message);
        }
    }

    pub(crate) async fn say(&self, message: Value) {
        self.say_text(message.to_string()).await;
    }

    /// Says what need not be a message.
    pub(crate) async fn say_text(&self, text: String) {
        let message = Message::parse(text);
        self.connection.sender.send(Outgoing::new(Channel::MAIN, message)).await.unwrap();
    }

    pub(crate) async fn hear(&mut self) -> Message {
        match self.connection.receiver.receive().await {
            Event::Message { message, .. } => message,
            other => panic!("{other:?}"),
        }
    }
}
