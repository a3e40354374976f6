//! Cassettes of `mcp-recorder`: one JSON document with a list of interactions.

use std::time::Duration;

use super::super::{Call, Entry, HttpHead, Part, Placed, Start, What};
use super::patch;
use super::python_time;
use super::reader::{Dialect, Parts};
use super::records::Record;
use super::session::{Session, keep, message_patch, message_tree, place, server_info, with_patch};
use super::sorter::Key;
use super::tree::Tree;
use crate::exchange::{Channel, Side};
use crate::message::{Body, Message};

const NAME: &str = "mcp-recorder";

/// Reads a cassette.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    seq: u64,
    at: Duration,
    started_at: Option<jiff::Timestamp>,
    open: bool,
}

impl Dialect for Recorder {
    fn record(&mut self, record: Record, out: &mut Parts) -> Result<(), String> {
        match record {
            Record::Head(mut head) => {
                self.finish(out);
                head.remove("interactions");
                let start = start(&head);
                *self = Recorder { started_at: start.started_at, open: true, ..Recorder::default() };
                out.push_back(Part::Start(start));
            }
            Record::Item(interaction) => {
                let part = self.interaction(&interaction)?;
                out.push_back(part);
            }
            Record::End => self.finish(out),
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Parts) {
        if std::mem::take(&mut self.open) {
            let ended_at = self.started_at.and_then(|started| started.checked_add(self.at).ok());
            out.push_back(Part::Finish { ended_at, end: None });
        }
    }
}

impl Recorder {
    fn interaction(&mut self, original: &Tree) -> Result<Part, String> {
        let asked_at = self.at;
        let took = original.get("latency_ms").and_then(Tree::number).map(python_time::milliseconds).unwrap_or_default();
        self.at += took;
        let seq = self.seq;
        self.seq += 2;
        let Some(request) = original.some("request") else {
            let text = |key: &str| original.get(key).and_then(Tree::text);
            let status = original.get("response_status").and_then(Tree::number);
            let head = HttpHead {
                method: text("http_method"),
                target: text("http_path"),
                status: status.map(|status| status as u16),
                headers: Default::default(),
            };
            let what = What::Http { from: Side::Client, channel: Channel(seq + 1), head };
            return Ok(Part::Entry(Entry::new(seq, asked_at, what)));
        };
        let request = Message::parse(request.to_string());
        let response = original.some("response").map(|response| Message::parse(response.to_string()));
        let ours = plain(&request, response.as_ref(), took);
        let request = match patch::difference(&ours, original) {
            Some(patch) => with_patch(&request, NAME, &patch),
            None => request,
        };
        if request.as_request().is_some() {
            let response = response.map(|response| Placed::new(seq + 1, self.at, response));
            let request = Placed::new(seq, asked_at, request);
            return Ok(Part::Call(Box::new(Call { asker: Side::Client, request, response })));
        }
        let what = What::Message { from: Side::Client, channel: Channel::MAIN, message: request, event_id: None };
        Ok(Part::Entry(Entry::new(seq, asked_at, what)))
    }
}

fn start(head: &Tree) -> Start {
    let metadata = head.get("metadata").cloned().unwrap_or_else(Tree::null);
    let text = |key: &str| metadata.some(key).and_then(Tree::text);
    let mut start = Start {
        session_id: format!("{NAME}-{}", text("recorded_at").unwrap_or_default()),
        server_info: server_info(&metadata, "server_url", "transport_type"),
        started_at: metadata.get("recorded_at").and_then(python_time::read),
        metadata: serde_json::Map::new(),
    };
    let ours = head_of(&Session::new(start.clone()));
    keep(&mut start, NAME, &ours, head);
    start
}

fn head_of(session: &Session) -> Tree {
    let greeting = session.greeting.clone().unwrap_or_else(Tree::null);
    let info = |key: &str| session.info(key).map_or_else(Tree::null, Tree::string);
    let metadata = Tree::object([
        ("recorded_at", session.time(Duration::ZERO)),
        ("server_url", Tree::string(&session.server())),
        ("transport_type", info("transport")),
        ("protocol_version", greeting.get("protocolVersion").cloned().unwrap_or_else(Tree::null)),
        ("server_info", greeting.get("serverInfo").cloned().unwrap_or_else(Tree::null)),
    ]);
    Tree::object([("version", Tree::string("1.0")), ("metadata", metadata)])
}

fn plain(request: &Message, response: Option<&Message>, took: Duration) -> Tree {
    let asks = request.as_request().is_some();
    Tree::object([
        ("type", Tree::string(if asks { "jsonrpc_request" } else { "notification" })),
        ("request", message_tree(request)),
        ("response", response.map_or_else(Tree::null, message_tree)),
        ("response_is_sse", false.into()),
        ("response_status", Tree::from(if asks { 200 } else { 202_u64 })),
        ("latency_ms", Tree::from(u64::try_from(took.as_millis()).unwrap_or(u64::MAX))),
        ("http_method", Tree::null()),
        ("http_path", Tree::null()),
    ])
}

/// The cassette of a session without its interactions.
pub(super) fn head(session: &Session) -> Tree {
    match session.imported(NAME) {
        // As it was when it came, and so without what the greeting tells.
        Some(patch) => {
            let mut head = head_of(&Session { greeting: None, ..session.clone() });
            patch::apply(&mut head, &patch);
            head
        }
        None => head_of(session),
    }
}

/// The interaction of a part. What the server asked or told by itself has no place in a cassette.
pub(super) fn interaction(part: &Part) -> Option<(Key, Tree)> {
    match part {
        Part::Call(call) if call.asker == Side::Client => {
            let response = call.response.as_ref().map(|response| &response.message);
            let took = call.took().unwrap_or_default();
            Some((place(call.request.seq, call.request.item), patched(&call.request.message, response, took)))
        }
        Part::Entry(Entry { seq, item, what: What::Message { from: Side::Client, message, .. }, .. })
            if matches!(message.body(), Body::Notification(_)) =>
        {
            Some((place(*seq, *item), patched(message, None, Duration::ZERO)))
        }
        Part::Entry(Entry { seq, item, what: What::Http { from: Side::Client, head, .. }, .. })
            if head.method.as_deref().is_some_and(|method| method != "POST") =>
        {
            Some((place(*seq, *item), lifecycle(head)))
        }
        Part::Start(_) | Part::Call(_) | Part::Entry(_) | Part::Finish { .. } => None,
    }
}

/// A request or a notification, and what else its file said.
fn patched(request: &Message, response: Option<&Message>, took: Duration) -> Tree {
    let mut tree = plain(request, response, took);
    if let Some(patch) = message_patch(request, NAME) {
        patch::apply(&mut tree, &patch);
    }
    tree
}

/// A request of HTTP without a message.
fn lifecycle(head: &HttpHead) -> Tree {
    let text = |text: &Option<String>| text.as_deref().map_or_else(Tree::null, Tree::string);
    Tree::object([
        ("type", Tree::string("lifecycle")),
        ("request", Tree::null()),
        ("response", Tree::null()),
        ("response_is_sse", false.into()),
        ("response_status", Tree::from(u64::from(head.status.unwrap_or(200)))),
        ("latency_ms", Tree::from(0)),
        ("http_method", text(&head.method)),
        ("http_path", text(&head.target)),
    ])
}
