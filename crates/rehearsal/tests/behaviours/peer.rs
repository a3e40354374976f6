//! A client that says exactly what it is told, and writes down everything.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rehearsal::core::exchange::Side;
use rehearsal::core::message::Message;
use rehearsal::core::protocol::{Era, Revision, meta};
use rehearsal::core::report::Severity;
use rehearsal::core::shape::Conversation;
use rehearsal::core::trace::{Entry, Fold, Start, Timeline, What};
use rehearsal::mock::MockServer;
use rehearsal::wire::http::client::{Options, connect_sse};
use rehearsal::wire::stdio::{ServerCommand, spawn};
use rehearsal::wire::{Connection, Event, Outgoing, Sender};
use serde_json::{Map, Value, json};

/// Long enough for a busy machine, short enough to notice a hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a mock is talked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Stdio,
    /// The two endpoints of HTTP+SSE.
    Sse,
}

/// A file of `examples/`.
pub(crate) fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

/// Speaks one version.
pub(crate) struct Peer {
    pub(crate) revision: Revision,
    pub(crate) sender: Arc<dyn Sender>,
    receiver: Box<dyn rehearsal::wire::Receiver>,
    /// What came and was not asked for yet.
    inbox: VecDeque<Message>,
    entries: Vec<Entry>,
    next_id: i64,
    /// The server behind HTTP, which is gone when this is.
    _server: Option<MockServer>,
}

impl Peer {
    /// Starts a mock and talks to it; the handshake has not happened.
    pub(crate) async fn start(mock: &Path, transport: Transport, revision: Revision) -> Peer {
        let (connection, server) = match transport {
            Transport::Stdio => {
                let command = ServerCommand::new(env!("CARGO_BIN_EXE_rehearse"));
                let arguments = ["mock".as_ref(), mock.as_os_str()];
                (spawn(&command.arguments(arguments)).await.unwrap(), None)
            }
            Transport::Sse => {
                let server = MockServer::start(mock).unwrap();
                (connect_sse(Options::new(&server.sse_url()).unwrap()).await.unwrap(), Some(server))
            }
        };
        let Connection { sender, receiver } = connection;
        let (inbox, entries) = (VecDeque::new(), Vec::new());
        Peer { revision, sender, receiver, inbox, entries, next_id: 0, _server: server }
    }

    /// The same after the handshake, where the version has one.
    pub(crate) async fn ready(mock: &Path, transport: Transport, revision: Revision) -> Peer {
        let mut peer = Peer::start(mock, transport, revision).await;
        if revision.has_handshake() {
            let answer = peer.initialize().await;
            assert_eq!(answer["result"]["protocolVersion"], revision.as_str(), "{answer}");
            peer.notify("notifications/initialized", None).await;
        }
        peer
    }

    pub(crate) async fn initialize(&mut self) -> Value {
        let params = json!({
            "protocolVersion": self.revision.as_str(),
            "capabilities": capabilities(self.revision),
            "clientInfo": {"name": "peer", "version": "1"},
        });
        self.ask("initialize", Some(params)).await
    }

    /// Asks and waits for the answer.
    pub(crate) async fn ask(&mut self, method: &str, params: Option<Value>) -> Value {
        let id = self.request(method, params).await;
        self.answer_to(&id).await
    }

    /// Asks; in the stateless era with everything that a request must say. What `_meta` has already stays.
    pub(crate) async fn request(&mut self, method: &str, params: Option<Value>) -> Value {
        self.next_id += 1;
        let mut params = params;
        if self.revision.era() == Era::Modern {
            let params = params.get_or_insert_with(|| json!({}));
            let meta = &mut params["_meta"];
            if meta.is_null() {
                *meta = json!({});
            }
            let meta = meta.as_object_mut().unwrap();
            meta.entry(meta::PROTOCOL_VERSION).or_insert_with(|| self.revision.as_str().into());
            meta.entry(meta::CLIENT_CAPABILITIES).or_insert_with(|| capabilities(Revision::LATEST_MODERN));
        }
        let id = json!(self.next_id);
        let mut message = json!({"jsonrpc": "2.0", "id": id, "method": method});
        if let Some(params) = params {
            message["params"] = params;
        }
        self.say(&message.to_string()).await;
        id
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Option<Value>) {
        let mut message = json!({"jsonrpc": "2.0", "method": method});
        if let Some(params) = params {
            message["params"] = params;
        }
        self.say(&message.to_string()).await;
    }

    /// Says exactly this.
    pub(crate) async fn say(&mut self, text: &str) {
        let message = Message::parse(text.to_owned());
        self.keep(Side::Client, message.clone());
        let channel = self.sender.open_channel();
        self.sender.send(Outgoing::new(channel, message)).await.unwrap();
    }

    /// The answer to a request, as a whole message.
    pub(crate) async fn answer_to(&mut self, id: &Value) -> Value {
        self.awaited(&format!("an answer to {id}"), |message| message.get("method").is_none() && message["id"] == *id)
            .await
    }

    /// A notification or a question of the server's for which this is true.
    pub(crate) async fn awaited(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let wait = async {
            loop {
                let value = |message: &Message| -> Value { serde_json::from_slice(message.raw()).unwrap() };
                if let Some(at) = self.inbox.iter().position(|message| is_it(&value(message))) {
                    return value(&self.inbox.remove(at).unwrap());
                }
                match self.receiver.receive().await {
                    Event::Message { message, .. } => {
                        self.keep(Side::Server, message.clone());
                        self.inbox.push_back(message);
                    }
                    Event::ChannelEnded { .. } => {}
                    Event::Ended(ending) => panic!("no {what}: the server {ending}"),
                }
            }
        };
        match tokio::time::timeout(PATIENCE, wait).await {
            Ok(found) => found,
            Err(_) => panic!("no {what}; what came instead: {:?}", self.inbox),
        }
    }

    /// How much came that nobody asked for.
    pub(crate) fn waiting(&self) -> usize {
        self.inbox.len()
    }

    fn keep(&mut self, from: Side, message: Message) {
        let seq = self.entries.len() as u64;
        let channel = rehearsal::core::exchange::Channel::MAIN;
        let what = What::Message { from, channel, message, event_id: None };
        self.entries.push(Entry::new(seq, Duration::from_millis(seq), what));
    }

    /// Ends the conversation. Everything that the server said must be as its version has it, to the last note.
    pub(crate) async fn end(mut self) {
        self.sender.close().await;
        let findings = self.findings(Side::Server);
        assert_eq!(findings, [""; 0], "{}", self.revision);
    }

    /// What is wrong with what one side has said so far.
    pub(crate) fn findings(&mut self, side: Side) -> Vec<String> {
        let start = Start { session_id: "a".into(), server_info: Map::new(), started_at: None, metadata: Map::new() };
        let (mut fold, mut parts) = (Fold::new(start), Vec::new());
        self.entries.iter().cloned().for_each(|entry| fold.entry(entry, &mut parts));
        fold.finish(None, &mut parts);
        let half = || parts.iter().cloned().map(Ok);
        let mut conversation = Conversation::default();
        let moments = Timeline::new(half(), half()).map(Result::unwrap);
        let located: Vec<_> = moments.flat_map(|moment| conversation.moment(&moment)).collect();
        let theirs = located.iter().filter(|it| it.from == side && it.finding.severity >= Severity::Note);
        theirs.map(|it| it.finding.to_string()).collect()
    }

    /// Answers every question of the server's until nothing is left to wait for, as a client that can do everything.
    pub(crate) async fn answered(&mut self, id: &Value) -> Value {
        loop {
            let found = self.awaited(&format!("an answer to {id}"), |message| message.get("id").is_some()).await;
            match found["method"].as_str() {
                None if found["id"] == *id => return found,
                None => {}
                Some(method) => {
                    let answer =
                        json!({"jsonrpc": "2.0", "id": found["id"], "result": agreeable(method, &found["params"])});
                    self.say(&answer.to_string()).await;
                }
            }
        }
    }
}

/// Everything that a client of this version can be asked for.
pub(crate) fn capabilities(revision: Revision) -> Value {
    match revision {
        Revision::V2024_11_05 | Revision::V2025_03_26 => json!({"roots": {"listChanged": true}, "sampling": {}}),
        Revision::V2025_06_18 => json!({"roots": {"listChanged": true}, "sampling": {}, "elicitation": {}}),
        Revision::V2025_11_25 => {
            json!({"roots": {"listChanged": true}, "sampling": {}, "elicitation": {"form": {}, "url": {}}})
        }
        Revision::V2026_07_28 => json!({
            "roots": {}, "sampling": {}, "elicitation": {"form": {}, "url": {}},
            "extensions": {(meta::TASKS_EXTENSION): {}},
        }),
    }
}

/// What somebody answers who agrees to everything.
pub(crate) fn agreeable(method: &str, params: &Value) -> Value {
    match method {
        "sampling/createMessage" => {
            json!({"role": "assistant", "content": {"type": "text", "text": "to be"}, "model": "m"})
        }
        "roots/list" => json!({"roots": [{"uri": "file:///stage", "name": "stage"}]}),
        "elicitation/create" => {
            let form = rehearsal::core::schema::example(&params["requestedSchema"]);
            json!({"action": "accept", "content": form.unwrap_or_else(|| json!({}))})
        }
        _ => json!({}),
    }
}
