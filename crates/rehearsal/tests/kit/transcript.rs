//! Transcripts: `>` is what a client sends, `<` what its server sends. Lines without a mark continue the one before.
//!
//! All tests write messages like this; a transcript becomes a recording here, or is played against a server. These words stand for
//! common or variable parts:
//!
//! ```text
//! META          `_meta` of a client of 2026-07-28 that can do everything, with logs from `info` on and the progress token 1
//! BARE_META     `_meta` of a client of 2026-07-28 without capabilities
//! SERVER_META   `_meta` of a result of a mock in 2026-07-28
//! $STATE $TASK  the `requestState` and `taskId` of the newest message of the server that has one
//! $TIME         any time
//! < text        any message of the server that contains this text
//! ```

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use rehearsal::core::answer::Chain;
use rehearsal::core::exchange::{Channel, Side};
use rehearsal::core::message::Message;
use rehearsal::mock::chain_of;
use rehearsal::replay::{Replay, ReplayOptions};
use rehearsal::serve::Server;
use rehearsal::store::Input;
use rehearsal::wire::{Connection, ConnectionEnd, Event, Outgoing, memory};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

pub(crate) const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"sampling":{},"roots":{},"extensions":{"io.modelcontextprotocol/tasks":{}}},"io.modelcontextprotocol/logLevel":"info","progressToken":1}"#;
const BARE_META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
const SERVER_META: &str = r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"mock","version":"1"}}"#;

/// The handshake of most recordings of the handshake era.
pub(crate) const HANDSHAKE: &str = r#"
> {"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
< {"id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}
> {"method":"notifications/initialized"}
"#;

/// The handshake with a replay whose recording has no `serverInfo`.
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
    let transcript =
        transcript.replace("BARE_META", BARE_META).replace("SERVER_META", SERVER_META).replace("META", META);
    for line in transcript.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match (line.strip_prefix("> "), line.strip_prefix('<')) {
            (Some(text), _) => messages.push((Side::Client, text.to_owned())),
            (_, Some(text)) => messages.push((Side::Server, text.trim_start().to_owned())),
            (None, None) => messages.last_mut().expect("a transcript begins with `> ` or `< `").1.push_str(line),
        }
    }
    messages
}

/// A replay of these sessions.
pub(crate) fn replay(sessions: &[String], options: ReplayOptions) -> Replay {
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

/// A mock of this file.
pub(crate) fn mock(file: &str) -> Server {
    Server::new(mock_chain(file))
}

/// The answers of a mock of this file.
pub(crate) fn mock_chain(file: &str) -> Chain {
    let text = format!("server: {{ name: mock, version: '1' }}\n{file}");
    chain_of("mock.yaml", &text).unwrap_or_else(|error| panic!("{error}"))
}

/// Plays a whole session: the server sends no message that is not in the transcript.
pub(crate) async fn play(server: &Server, transcript: &str) {
    let mut peer = Peer::with(server);
    peer.play(transcript).await;
    peer.finish().await;
}

/// The client of a server in memory.
pub(crate) struct Peer {
    connection: Connection,
    serving: JoinHandle<ConnectionEnd>,
    /// The values of `$STATE` and `$TASK`.
    variables: HashMap<&'static str, String>,
}

impl Peer {
    pub(crate) fn new(replay: &Replay) -> Peer {
        Peer::with(&replay.server())
    }

    pub(crate) fn with(server: &Server) -> Peer {
        let (connection, theirs) = memory::pair();
        let server = server.clone();
        let serving = tokio::spawn(async move { server.serve(theirs).await });
        Peer { connection, serving, variables: HashMap::new() }
    }

    /// Sends the messages after `>`, and expects the messages after `<`.
    pub(crate) async fn play(&mut self, transcript: &str) {
        for (from, text) in messages(transcript) {
            if from == Side::Client {
                self.send(with_version(&self.with_variables(&text))).await;
                continue;
            }
            let received = tokio::time::timeout(Duration::from_secs(60), self.receive()).await;
            let received = received.unwrap_or_else(|_| panic!("the server sent nothing instead of {text}"));
            let raw = received.text().into_owned();
            let mut received: Value = serde_json::from_str(&raw).unwrap();
            self.set_variables(&received["result"]);
            let text = self.with_variables(&text);
            if text.starts_with(['{', '[']) {
                hide_times(&mut received);
                assert_eq!(received, with_version(&text));
            } else {
                assert!(raw.contains(&text), "{text} is not in {raw}");
            }
        }
    }

    pub(crate) async fn send(&self, message: Value) {
        self.send_text(message.to_string()).await;
    }

    /// Sends a text, which may be no message.
    pub(crate) async fn send_text(&self, text: String) {
        let message = Message::parse(text);
        self.connection.sender.send(Outgoing::new(Channel::MAIN, message)).await.unwrap();
    }

    pub(crate) async fn receive(&mut self) -> Message {
        match self.connection.receiver.receive().await {
            Event::Message { message, .. } => message,
            other => panic!("{other:?}"),
        }
    }

    /// Waits for an hour in which the server sends nothing. For tests whose time is paused.
    pub(crate) async fn silence(&mut self) {
        let received = tokio::time::timeout(Duration::from_secs(3600), self.receive()).await;
        assert!(received.is_err(), "{received:?}");
    }

    /// Closes the connection, on which the server sends nothing more.
    pub(crate) async fn finish(mut self) {
        self.connection.sender.close().await;
        let event = self.connection.receiver.receive().await;
        assert!(matches!(event, Event::Ended(_)), "{event:?}");
        let ending = self.serving.await.unwrap();
        assert!(matches!(ending, ConnectionEnd::PeerClosed | ConnectionEnd::Closed), "{ending:?}");
    }

    fn with_variables(&self, text: &str) -> String {
        self.variables.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    }

    fn set_variables(&mut self, result: &Value) {
        let task = result["taskId"].as_str().or_else(|| result["task"]["taskId"].as_str());
        for (name, value) in [("$STATE", result["requestState"].as_str()), ("$TASK", task)] {
            if let Some(value) = value {
                self.variables.insert(name, value.to_owned());
            }
        }
    }
}

/// A message of a transcript, which leaves out `jsonrpc`.
fn with_version(text: &str) -> Value {
    let mut message: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    match &mut message {
        Value::Array(messages) => messages.iter_mut().for_each(|message| message["jsonrpc"] = "2.0".into()),
        message => message["jsonrpc"] = "2.0".into(),
    }
    message
}

/// Writes `$TIME` where a task has a time.
fn hide_times(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let is_time = matches!(name.as_str(), "createdAt" | "lastUpdatedAt");
                match member.as_str() {
                    Some(text) if is_time && text.starts_with("20") && text.ends_with('Z') => *member = "$TIME".into(),
                    Some(_) | None => hide_times(member),
                }
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(hide_times),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
