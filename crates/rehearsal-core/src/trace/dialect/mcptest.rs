//! Cassettes of `mcptest`: one JSON document with a list of exchanges.

use super::super::{Call, Entry, Part, Placed, Start, What};
use super::patch;
use super::reader::{Dialect, Parts};
use super::records::Record;
use super::session::{Session, keep, message_tree, place};
use super::sorter::Key;
use super::tree::Tree;
use crate::exchange::{Channel, Side};
use crate::message::Message;

const NAME: &str = "mcptest";

/// Reads a cassette. It has no times.
#[derive(Debug, Default)]
pub(super) struct Mcptest {
    seq: u64,
    open: bool,
    count: u64,
}

impl Dialect for Mcptest {
    fn record(&mut self, record: Record, out: &mut Parts) -> Result<(), String> {
        match record {
            Record::Head(mut head) => {
                self.finish(out);
                head.remove("exchanges");
                self.count += 1;
                (self.seq, self.open) = (0, true);
                out.push_back(Part::Start(start(&head, self.count)));
            }
            Record::Item(exchange) => {
                let seq = self.seq;
                self.seq += 2;
                let (request, response) = (exchange.some("request"), exchange.some("response"));
                let request = request.ok_or("an exchange with a `request`")?;
                let response = response.map(|response| Message::parse(enveloped(response, request).to_string()));
                let request = Message::parse(enveloped(request, request).to_string());
                if request.as_request().is_some() {
                    let response = response.map(|response| Placed::new(seq + 1, Default::default(), response));
                    let request = Placed::new(seq, Default::default(), request);
                    out.push_back(Part::Call(Box::new(Call { asker: Side::Client, request, response })));
                } else {
                    // Without a request there is no call, but both were said.
                    out.push_back(entry(seq, Side::Client, request));
                    out.extend(response.map(|response| entry(seq + 1, Side::Server, response)));
                }
            }
            Record::End => self.finish(out),
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Parts) {
        if std::mem::take(&mut self.open) {
            out.push_back(Part::Finish { ended_at: None, end: None });
        }
    }
}

/// A message of a cassette that was written without what is the same in each: where the request has no `jsonrpc`, it and its
/// answer get one, and the answer the request's id. Otherwise what is missing was missing when it was said.
fn enveloped(message: &Tree, request: &Tree) -> Tree {
    let mut message = message.clone();
    let Some(id) = request.some("id").filter(|_| request.get("jsonrpc").is_none()) else { return message };
    let says = ["method", "result", "error"].iter().any(|key| message.get(key).is_some());
    if says && message.get("jsonrpc").is_none() {
        message.set("jsonrpc", Tree::string("2.0"));
        if message.get("id").is_none() {
            message.set("id", id.clone());
        }
    }
    message
}

fn entry(seq: u64, from: Side, message: Message) -> Part {
    let what = What::Message { from, channel: Channel::MAIN, message, event_id: None };
    Part::Entry(Entry::new(seq, Default::default(), what))
}

fn start(head: &Tree, count: u64) -> Start {
    let mut start = Start {
        session_id: format!("{NAME}-{count}"),
        server_info: serde_json::Map::new(),
        started_at: None,
        metadata: serde_json::Map::new(),
    };
    let meta = head.get("meta").cloned().unwrap_or_else(Tree::null);
    for (theirs, ours) in [("source_command", "command"), ("source_url", "url")] {
        if let Some(value) = meta.get(theirs).and_then(Tree::text) {
            start.server_info.insert(ours.to_owned(), value.into());
        }
    }
    let ours = head_of(&Session::new(start.clone()));
    keep(&mut start, NAME, &ours, head);
    start
}

fn head_of(session: &Session) -> Tree {
    let mut meta = Tree::Object(Vec::new());
    for (ours, theirs) in [("command", "source_command"), ("url", "source_url")] {
        if let Some(value) = session.info(ours) {
            meta.set(theirs, Tree::string(value));
        }
    }
    Tree::object([("version", Tree::string("1")), ("meta", meta)])
}

/// The cassette of a session without its exchanges.
pub(super) fn head(session: &Session) -> Tree {
    let mut head = head_of(session);
    if let Some(patch) = session.imported(NAME) {
        patch::apply(&mut head, &patch);
    }
    head
}

/// What the client asked and was answered; nothing else has a place in a cassette.
pub(super) fn exchange(part: &Part) -> Option<(Key, Tree)> {
    let Part::Call(call) = part else { return None };
    let response = call.response.as_ref().filter(|_| call.asker == Side::Client)?;
    let (request, response) = (message_tree(&call.request.message), message_tree(&response.message));
    let exchange = Tree::object([("request", request), ("response", response)]);
    Some((place(call.request.seq, call.request.item), exchange))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exchange_without_envelopes_is_a_call() {
        let read = |exchange: &str| {
            let mut parts = Parts::default();
            Mcptest::default().record(Record::Item(Tree::parse(exchange).unwrap()), &mut parts).unwrap();
            let Some(Part::Call(call)) = parts.pop_front() else { panic!("{parts:?}") };
            call.response.unwrap().message
        };
        for answer in [r#"{"id":2,"result":{}}"#, r#"{"result":{}}"#] {
            let message = read(&format!(r#"{{"request":{{"id":2,"method":"ping"}},"response":{answer}}}"#));
            assert!(message.as_response().is_some(), "{message:?}");
        }
        // Here it is the server who left it out.
        let asked = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
        let message = read(&format!(r#"{{"request":{asked},"response":{{"id":2,"result":{{}}}}}}"#));
        assert!(message.as_garbled().is_some(), "{message:?}");
    }

    #[test]
    fn the_answer_to_what_is_no_request_is_kept() {
        let exchange = r#"{"request":{"method":"tools/list"},"response":{"tools":[]}}"#;
        let mut parts = Parts::default();
        Mcptest::default().record(Record::Item(Tree::parse(exchange).unwrap()), &mut parts).unwrap();
        let said: Vec<_> = parts.iter().map(|part| format!("{part:?}")).collect();
        assert_eq!(parts.len(), 2, "{said:?}");
        assert!(matches!(&parts[1], Part::Entry(Entry { seq: 1, what: What::Message { from: Side::Server, .. }, .. })));
    }
}
