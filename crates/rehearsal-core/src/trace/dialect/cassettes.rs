//! Cassettes of `mcp-cassette`, `mcp-recorder` and `mcptest`: each is one JSON document with a list. They are only read.

use std::time::Duration;

use serde_json::Map;

use super::super::{Entry, EntryBody, HttpHead, JournalFold, Part, PlacedMessage, RecordedCall, SessionStart};
use super::json_records::Record;
use super::json_tree::JsonTree;
use super::python_time;
use super::reader::{ForeignFormat, PartQueue};
use crate::exchange::{Channel, Side};
use crate::message::Message;

/// Reads a cassette of `mcp-cassette`: a list of messages.
#[derive(Debug, Default)]
pub(super) struct McpCassette {
    fold: Option<JournalFold>,
    seq: u64,
}

impl ForeignFormat for McpCassette {
    fn record(&mut self, record: Record, out: &mut PartQueue) -> Result<(), String> {
        match record {
            Record::Head(head) => {
                self.finish(out);
                let text = |key: &str| head.some(key).and_then(JsonTree::text);
                let start = SessionStart {
                    session_id: text("session_id")
                        .unwrap_or_else(|| format!("mcp-cassette-{}", text("recorded_at").unwrap_or_default())),
                    server_info: server_info(&head, "server_url", "transport"),
                    started_at: head.get("recorded_at").and_then(python_time::read),
                    metadata: Map::new(),
                };
                (self.fold, self.seq) = (Some(JournalFold::new(start)), 0);
            }
            Record::Item(item) => {
                let fold = self.fold.as_mut().ok_or("a cassette")?;
                let from = match item.get("sender").and_then(JsonTree::text).as_deref() {
                    Some("client") => Side::Client,
                    Some("server") => Side::Server,
                    Some(_) | None => return Err("a `sender` that is `client` or `server`".to_owned()),
                };
                let payload = item.get("payload").ok_or("a message with a `payload`")?;
                let message = Message::parse(payload.text().unwrap_or_else(|| payload.to_string()));
                let number = |key: &str| item.get(key).and_then(JsonTree::number);
                let seq = number("seq").map_or(self.seq, |seq| seq as u64);
                self.seq = seq + 1;
                let at = number("t_offset_ms").map(python_time::milliseconds).unwrap_or_default();
                let standing = item.get("channel").and_then(JsonTree::text).is_some_and(|channel| channel == "get");
                let exchange = number("exchange").filter(|_| !standing);
                let channel = exchange.map_or(Channel::MAIN, |exchange| Channel(exchange as u64 + 1));
                let mut parts = Vec::new();
                fold.entry(
                    Entry::new(seq, at, EntryBody::Message { from, channel, message, event_id: None }),
                    &mut parts,
                );
                out.extend(parts);
            }
            Record::End => self.finish(out),
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut PartQueue) {
        if let Some(fold) = self.fold.take() {
            let mut parts: Vec<Part> = Vec::new();
            fold.finish(None, &mut parts);
            out.extend(parts);
        }
    }
}

/// Reads a cassette of `mcp-recorder`: a list of interactions. Each begins when the one before has ended.
#[derive(Debug, Default)]
pub(super) struct McpRecorder {
    seq: u64,
    at: Duration,
    started_at: Option<jiff::Timestamp>,
    open: bool,
}

impl ForeignFormat for McpRecorder {
    fn record(&mut self, record: Record, out: &mut PartQueue) -> Result<(), String> {
        match record {
            Record::Head(head) => {
                self.finish(out);
                let about = head.get("metadata").cloned().unwrap_or_else(JsonTree::null);
                let recorded_at = about.some("recorded_at").and_then(JsonTree::text).unwrap_or_default();
                let started_at = about.get("recorded_at").and_then(python_time::read);
                *self = McpRecorder { started_at, open: true, ..McpRecorder::default() };
                out.push_back(Part::Start(SessionStart {
                    session_id: format!("mcp-recorder-{recorded_at}"),
                    server_info: server_info(&about, "server_url", "transport_type"),
                    started_at,
                    metadata: Map::new(),
                }));
            }
            Record::Item(interaction) => {
                let sent_at = self.at;
                let took = interaction.get("latency_ms").and_then(JsonTree::number);
                self.at += took.map(python_time::milliseconds).unwrap_or_default();
                let seq = self.seq;
                self.seq += 2;
                out.push_back(match interaction.some("request") {
                    Some(request) => {
                        let request = PlacedMessage::new(seq, sent_at, Message::parse(request.to_string()));
                        let response = interaction.some("response");
                        let response =
                            response.map(|it| PlacedMessage::new(seq + 1, self.at, Message::parse(it.to_string())));
                        call_or_entry(request, response)
                    }
                    None => http(&interaction, seq, sent_at),
                });
            }
            Record::End => self.finish(out),
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut PartQueue) {
        if std::mem::take(&mut self.open) {
            let ended_at = self.started_at.and_then(|started| started.checked_add(self.at).ok());
            out.push_back(Part::Finish { ended_at, end: None });
        }
    }
}

/// An HTTP request without a message.
fn http(interaction: &JsonTree, seq: u64, at: Duration) -> Part {
    let text = |key: &str| interaction.get(key).and_then(JsonTree::text);
    let status = interaction.get("response_status").and_then(JsonTree::number);
    let head = HttpHead {
        method: text("http_method"),
        target: text("http_path"),
        status: status.map(|status| status as u16),
        headers: Default::default(),
    };
    Part::Entry(Entry::new(seq, at, EntryBody::Http { from: Side::Client, channel: Channel(seq + 1), head }))
}

/// Reads a cassette of `mcptest`: a list of exchanges, without times.
#[derive(Debug, Default)]
pub(super) struct Mcptest {
    seq: u64,
    open: bool,
    count: u64,
}

impl ForeignFormat for Mcptest {
    fn record(&mut self, record: Record, out: &mut PartQueue) -> Result<(), String> {
        match record {
            Record::Head(head) => {
                self.finish(out);
                self.count += 1;
                (self.seq, self.open) = (0, true);
                let source = |key: &str| head.get("meta")?.get(key)?.text();
                let known = [("command", source("source_command")), ("url", source("source_url"))];
                let known = known.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?.into())));
                out.push_back(Part::Start(SessionStart {
                    session_id: format!("mcptest-{}", self.count),
                    server_info: known.collect(),
                    started_at: None,
                    metadata: Map::new(),
                }));
            }
            Record::Item(exchange) => {
                let seq = self.seq;
                self.seq += 2;
                let request = exchange.some("request").ok_or("an exchange with a `request`")?;
                let placed = |seq, message| {
                    PlacedMessage::new(seq, Duration::ZERO, Message::parse(enveloped(message, request).to_string()))
                };
                let response = exchange.some("response").map(|response| placed(seq + 1, response));
                let request = placed(seq, request);
                if request.message.as_request().is_some() {
                    out.push_back(call_or_entry(request, response));
                } else {
                    // Without a request there is no call, but both messages were sent.
                    out.push_back(entry(Side::Client, request));
                    out.extend(response.map(|response| entry(Side::Server, response)));
                }
            }
            Record::End => self.finish(out),
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut PartQueue) {
        if std::mem::take(&mut self.open) {
            out.push_back(Part::Finish { ended_at: None, end: None });
        }
    }
}

/// Adds the members that a cassette leaves out of every message. If the request has no `jsonrpc`, the request and its
/// response get one, and the response gets the request's id. Otherwise a missing member was missing on the wire.
fn enveloped(message: &JsonTree, request: &JsonTree) -> JsonTree {
    let mut message = message.clone();
    let Some(id) = request.some("id").filter(|_| request.get("jsonrpc").is_none()) else { return message };
    let is_message = ["method", "result", "error"].iter().any(|key| message.get(key).is_some());
    if is_message && message.get("jsonrpc").is_none() {
        message.set("jsonrpc", JsonTree::string("2.0"));
        if message.get("id").is_none() {
            message.set("id", id.clone());
        }
    }
    message
}

/// A client's message; with a response it is a call.
fn call_or_entry(request: PlacedMessage, response: Option<PlacedMessage>) -> Part {
    match request.message.as_request().is_some() {
        true => Part::Call(Box::new(RecordedCall { asker: Side::Client, request, response })),
        false => entry(Side::Client, request),
    }
}

fn entry(from: Side, placed: PlacedMessage) -> Part {
    let PlacedMessage { seq, at, channel, message, .. } = placed;
    Part::Entry(Entry::new(seq, at, EntryBody::Message { from, channel, message, event_id: None }))
}

/// The server info in the head of a cassette: its URL, name and version.
fn server_info(head: &JsonTree, url: &str, transport: &str) -> Map<String, serde_json::Value> {
    let text = |tree: &JsonTree, key: &str| tree.some(key).and_then(JsonTree::text).filter(|text| !text.is_empty());
    let known = [("url", text(head, url)), ("transport", text(head, transport))];
    let named = ["name", "version"].map(|key| (key, head.get("server_info").and_then(|info| text(info, key))));
    known.into_iter().chain(named).filter_map(|(key, value)| Some((key.to_owned(), value?.into()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(text: &str) -> PartQueue {
        let mut parts = PartQueue::default();
        Mcptest::default().record(Record::Item(JsonTree::parse(text).unwrap()), &mut parts).unwrap();
        parts
    }

    #[test]
    fn an_exchange_without_envelopes_is_a_call() {
        let read = |text: &str| match exchange(text).pop_front() {
            Some(Part::Call(call)) => call.response.unwrap().message,
            other => panic!("{other:?}"),
        };
        for answer in [r#"{"id":2,"result":{}}"#, r#"{"result":{}}"#] {
            let message = read(&format!(r#"{{"request":{{"id":2,"method":"ping"}},"response":{answer}}}"#));
            assert!(message.as_response().is_some(), "{message:?}");
        }
        // Here the server itself left out the member.
        let request_text = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
        let message = read(&format!(r#"{{"request":{request_text},"response":{{"id":2,"result":{{}}}}}}"#));
        assert!(message.as_garbled().is_some(), "{message:?}");
    }

    #[test]
    fn the_answer_to_what_is_no_request_is_kept() {
        let parts = exchange(r#"{"request":{"method":"tools/list"},"response":{"tools":[]}}"#);
        assert_eq!(parts.len(), 2, "{parts:?}");
        assert!(matches!(
            &parts[1],
            Part::Entry(Entry { seq: 1, what: EntryBody::Message { from: Side::Server, .. }, .. })
        ));
    }
}
