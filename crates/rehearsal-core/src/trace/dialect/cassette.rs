//! Cassettes of `mcp-cassette`: one JSON document with a list of messages.

use std::time::Duration;

use super::super::{Entry, Fold, Part, Start, What};
use super::patch;
use super::python_time;
use super::reader::{Dialect, Parts};
use super::records::Record;
use super::session::{Said, Session, keep, message_patch, message_tree, server_info, with_patch};
use super::tree::Tree;
use crate::exchange::{Channel, Side};
use crate::message::{Body, Message, RequestId};

const NAME: &str = "mcp-cassette";

/// Reads a cassette.
#[derive(Debug, Default)]
pub(super) struct Cassette {
    fold: Option<Fold>,
    seq: u64,
}

impl Dialect for Cassette {
    fn record(&mut self, record: Record, out: &mut Parts) -> Result<(), String> {
        match record {
            Record::Head(mut head) => {
                self.finish(out);
                head.remove("messages");
                (self.fold, self.seq) = (Some(Fold::new(start(&head))), 0);
            }
            Record::Item(original) => {
                let fold = self.fold.as_mut().ok_or("a cassette")?;
                let from = match original.get("sender").and_then(Tree::text).as_deref() {
                    Some("client") => Side::Client,
                    Some("server") => Side::Server,
                    Some(_) | None => return Err("a `sender` that is `client` or `server`".to_owned()),
                };
                let payload = original.get("payload").ok_or("a message with a `payload`")?;
                let said = match payload.text() {
                    Some(line) => Message::parse(line),
                    None => Message::parse(payload.to_string()),
                };
                let number = |key: &str| original.get(key).and_then(Tree::number);
                let seq = number("seq").map_or(self.seq, |seq| seq as u64);
                self.seq = seq + 1;
                let at = number("t_offset_ms").map(python_time::milliseconds).unwrap_or_default();
                let standing = original.get("channel").and_then(Tree::text).is_some_and(|channel| channel == "get");
                let exchange = number("exchange").filter(|_| !standing);
                let channel = exchange.map_or(Channel::MAIN, |exchange| Channel(exchange as u64 + 1));
                let ours = message_of(&Said { seq, item: None, at, from, channel, message: &said, question: None });
                let message = match patch::difference(&ours, &original) {
                    Some(patch) => with_patch(&said, NAME, &patch),
                    None => said,
                };
                let what = What::Message { from, channel, message, event_id: None };
                let mut parts = Vec::new();
                fold.entry(Entry::new(seq, at, what), &mut parts);
                out.extend(parts);
            }
            Record::End => self.finish(out),
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Parts) {
        if let Some(fold) = self.fold.take() {
            let mut parts: Vec<Part> = Vec::new();
            fold.finish(None, &mut parts);
            out.extend(parts);
        }
    }
}

fn start(head: &Tree) -> Start {
    let text = |key: &str| head.some(key).and_then(Tree::text);
    let session_id =
        text("session_id").unwrap_or_else(|| format!("{NAME}-{}", text("recorded_at").unwrap_or_default()));
    let started_at = head.get("recorded_at").and_then(python_time::read);
    let server_info = server_info(head, "server_url", "transport");
    let mut start = Start { session_id, server_info, started_at, metadata: serde_json::Map::new() };
    let ours = head_of(&Session::new(start.clone()));
    keep(&mut start, NAME, &ours, head);
    start
}

fn head_of(session: &Session) -> Tree {
    let greeting = session.greeting.clone().unwrap_or_else(Tree::null);
    let url = session.info("url").map_or_else(Tree::null, Tree::string);
    let http = !url.is_null();
    let info = greeting.get("serverInfo").filter(|info| info.get("name").is_some() && info.get("version").is_some());
    let identity = info.map_or_else(Tree::null, |info| {
        let member = |key: &str| info.get(key).cloned().unwrap_or_else(Tree::null);
        Tree::object([("name", member("name")), ("version", member("version"))])
    });
    Tree::object([
        ("format_version", Tree::from(3)),
        ("recorded_at", session.time(Duration::ZERO)),
        ("transport", Tree::string(if http { "http" } else { "stdio" })),
        ("server_url", url),
        ("session_id", Tree::null()),
        ("protocol_version", greeting.get("protocolVersion").cloned().unwrap_or_else(Tree::null)),
        ("server_info", identity),
        ("redaction", Tree::null()),
    ])
}

fn message_of(said: &Said<'_>) -> Tree {
    let message = said.message;
    let id = |id: &RequestId| Tree::known(&id.to_string());
    let (kind, msg_id) = match message.body() {
        Body::Request(request) => ("request", id(&request.id)),
        Body::Notification(_) => ("notification", Tree::null()),
        Body::Response(response) => ("response", response.id.as_ref().map_or_else(Tree::null, id)),
        Body::Batch(_) | Body::Garbled(_) => ("raw", Tree::null()),
    };
    let method = message.method().map_or_else(Tree::null, |method| Tree::string(method.as_str()));
    let payload = if kind == "raw" { Tree::string(&message.text()) } else { message_tree(message) };
    let exchange = said.channel.0.checked_sub(1);
    let channel = match (said.from, exchange) {
        (Side::Server, Some(_)) => Tree::string("post"),
        (Side::Server, None) | (Side::Client, _) => Tree::null(),
    };
    Tree::object([
        ("seq", Tree::from(said.seq)),
        ("t_offset_ms", Tree::from(u64::try_from(said.at.as_millis()).unwrap_or(u64::MAX))),
        ("sender", Tree::string(&said.from.to_string())),
        ("kind", Tree::string(kind)),
        ("method", method),
        ("msg_id", msg_id),
        ("payload", payload),
        ("redacted", false.into()),
        ("exchange", exchange.map_or_else(Tree::null, Tree::from)),
        ("channel", channel),
    ])
}

/// The cassette of a session without its messages.
pub(super) fn head(session: &Session) -> Tree {
    let mut head = match session.imported(NAME) {
        // As it was when it came, and so without what the greeting tells.
        Some(patch) => {
            let mut head = head_of(&Session { greeting: None, ..session.clone() });
            patch::apply(&mut head, &patch);
            head
        }
        None => head_of(session),
    };
    if head.get("recorded_at").is_some_and(Tree::is_null) {
        // Its reader insists on a time.
        head.set("recorded_at", Tree::string("1970-01-01T00:00:00Z"));
    }
    head
}

/// What was said, with what else its file said.
pub(super) fn message(said: &Said<'_>) -> Tree {
    let mut message = message_of(said);
    if let Some(patch) = message_patch(said.message, NAME) {
        patch::apply(&mut message, &patch);
    }
    message
}

/// Sequence numbers without gaps, as its reader wants them, for what did not come from there.
pub(super) fn number(message: &mut Tree, at: u64, session: &Session) {
    if session.imported(NAME).is_none() {
        message.set("seq", Tree::from(at));
    }
}
