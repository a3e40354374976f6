//! Requests and responses as Python's interceptor logs them, one per line, without ids.

use std::collections::{HashMap, VecDeque};

use super::super::{Entry, EntryBody, Part, PlacedMessage, RecordedCall, SessionStart};
use super::json_records::Record;
use super::json_tree::JsonTree;
use super::patch;
use super::python_call::{NegotiatedVersion, message, reply, request, request_line, response_line, timestamp};
use super::python_time::{self, PythonClock};
use super::reader::{ForeignFormat, PartQueue};
use super::session_info::{SessionMessage, message_patch, with_patch};
use crate::exchange::{Channel, Side};
use crate::message::{Body, Message, Method};

/// Reads a log: one session.
#[derive(Debug, Default)]
pub(super) struct PythonLog {
    clock: PythonClock,
    started: bool,
    seq: u64,
    id: u64,
    /// Requests without a response yet, by method. A response has no id, so the oldest request of its method gets it,
    /// unless both have one of [`NAMES`] that differs.
    open: HashMap<String, VecDeque<OpenLogRequest>>,
    agreed: NegotiatedVersion,
}

#[derive(Debug)]
struct OpenLogRequest {
    id: u64,
    request: PlacedMessage,
    line: JsonTree,
}

/// Members that identify a session or a request in the logs of some writers.
const NAMES: &[&str] = &["session_id", "id", "request_id", "call_id", "correlation_id"];

impl OpenLogRequest {
    /// Whether no member that both have differs.
    fn may_be_answered_by(&self, answer: &JsonTree) -> bool {
        NAMES.iter().all(|name| match (self.line.some(name), answer.some(name)) {
            (Some(requested), Some(answered)) => requested == answered,
            (Some(_) | None, _) => true,
        })
    }
}

impl ForeignFormat for PythonLog {
    fn record(&mut self, record: Record, out: &mut PartQueue) -> Result<(), String> {
        let line = match record {
            Record::Item(line) => line,
            Record::Head(_) | Record::End => return Err("a line of a log".to_owned()),
        };
        if !self.started {
            self.started = true;
            let started_at = line.get("timestamp").and_then(python_time::read);
            self.clock = PythonClock::new(started_at);
            let session_id = line.get("session_id").and_then(JsonTree::text).unwrap_or_else(|| "log".to_owned());
            let (server_info, metadata) = Default::default();
            out.push_back(Part::Start(SessionStart { session_id, server_info, started_at, metadata }));
        }
        let seq = self.seq;
        self.seq += 1;
        let at = self.clock.at(line.get("timestamp"));
        let method = line.get("method").and_then(JsonTree::text).unwrap_or_default();
        let kind = line.get("type").and_then(JsonTree::text).map(|kind| kind.to_ascii_lowercase());
        match kind.as_deref() {
            Some("request") => {
                self.id += 1;
                let message = message(&request(Some(&line), self.id));
                let mut placed = PlacedMessage::new(seq, at, message);
                let ours = request_of(&placed, self.clock.started);
                if let Some(patch) = patch::difference(&ours, &line) {
                    placed.message = with_patch(&placed.message, &patch);
                }
                let names = line.members().iter().filter(|(key, _)| NAMES.contains(&key.as_str())).cloned();
                let line = JsonTree::Object(names.collect());
                self.open.entry(method).or_default().push_back(OpenLogRequest { id: self.id, request: placed, line });
            }
            Some("notification") if !method.is_empty() => {
                let mut notification = request(Some(&line), 0);
                notification.remove("id");
                let mut placed = PlacedMessage::new(seq, at, message(&notification));
                if let Some(patch) = patch::difference(&notification_of(&placed, self.clock.started), &line) {
                    placed.message = with_patch(&placed.message, &patch);
                }
                let from = if CLIENTS.contains(&method.as_str()) { Side::Client } else { Side::Server };
                let what = EntryBody::Message { from, channel: Channel::MAIN, message: placed.message, event_id: None };
                out.push_back(Part::Entry(Entry::new(seq, at, what)));
            }
            Some("response" | "error") => match self.take_request(&method, &line) {
                Some(OpenLogRequest { id, request, .. }) => {
                    let mut response =
                        PlacedMessage::new(seq, at, message(&reply(&line, &method, id, &mut self.agreed)));
                    let ours = response_of(&response, &request.message, self.clock.started);
                    if let Some(patch) = patch::difference(&ours, &line) {
                        response.message = with_patch(&response.message, &patch);
                    }
                    let call = RecordedCall { asker: asker(&request), request, response: Some(response) };
                    out.push_back(Part::Call(Box::new(call)));
                }
                None => out.push_back(stray(&line, seq, at)),
            },
            Some(_) | None => out.push_back(stray(&line, seq, at)),
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut PartQueue) {
        if !std::mem::take(&mut self.started) {
            return;
        }
        let mut left: Vec<PlacedMessage> = self.open.drain().flat_map(|(_, open)| open).map(|it| it.request).collect();
        left.sort_by_key(|request| request.seq);
        for request in left {
            out.push_back(Part::Call(Box::new(RecordedCall { asker: asker(&request), request, response: None })));
        }
        let last = self.clock.at(None);
        let ended_at = self.clock.started.and_then(|started| started.checked_add(last).ok());
        out.push_back(Part::Finish { ended_at, end: None });
    }
}

impl PythonLog {
    /// The oldest request that this may be the response to.
    fn take_request(&mut self, method: &str, answer: &JsonTree) -> Option<OpenLogRequest> {
        let open = self.open.get_mut(method)?;
        let at = open.iter().position(|it| it.may_be_answered_by(answer))?;
        open.remove(at)
    }
}

/// Notifications that only a client sends.
const CLIENTS: &[&str] = &["notifications/initialized", "notifications/roots/list_changed", "notifications/cancelled"];

/// The side that sends this request.
fn asker(request: &PlacedMessage) -> Side {
    match request.message.method().map(Method::as_str) {
        Some("elicitation/create" | "sampling/createMessage" | "roots/list") => Side::Server,
        Some(_) | None => Side::Client,
    }
}

/// A line that is neither a request nor a response to one, kept as it is.
fn stray(line: &JsonTree, seq: u64, at: std::time::Duration) -> Part {
    let message = Message::parse(line.valid().to_string());
    let what = EntryBody::Message { from: Side::Server, channel: Channel::MAIN, message, event_id: None };
    Part::Entry(Entry::new(seq, at, what))
}

fn request_of(request: &PlacedMessage, started: Option<jiff::Timestamp>) -> JsonTree {
    let sent = request_line(&request.message);
    line("request", timestamp(started, request.at), sent.members().to_vec())
}

fn notification_of(notification: &PlacedMessage, started: Option<jiff::Timestamp>) -> JsonTree {
    let sent = request_line(&notification.message);
    line("notification", timestamp(started, notification.at), sent.members().to_vec())
}

fn response_of(response: &PlacedMessage, request: &Message, started: Option<jiff::Timestamp>) -> JsonTree {
    let method = request_line(request).remove("method").unwrap_or_else(JsonTree::null);
    let sent = response_line(&response.message, request);
    // A log has `result`, and `error` if the request failed.
    let members = sent.members().iter().filter(|(key, value)| key != "success" && !value.is_null()).cloned();
    let members = std::iter::once(("method".to_owned(), method)).chain(members).collect();
    line("response", timestamp(started, response.at), members)
}

fn line(kind: &str, time: JsonTree, members: Vec<(String, JsonTree)>) -> JsonTree {
    let first = [("type".to_owned(), JsonTree::string(kind)), ("timestamp".to_owned(), time)];
    JsonTree::Object(first.into_iter().chain(members).collect())
}

/// The line of a message.
pub(super) fn line_of(sent: &SessionMessage<'_>, started: Option<jiff::Timestamp>) -> Option<JsonTree> {
    let placed = PlacedMessage::new(sent.seq, sent.at, sent.message.clone());
    let mut line = match (sent.message.body(), sent.request) {
        (_, Some(request)) => response_of(&placed, request, started),
        (Body::Request(_), None) => request_of(&placed, started),
        (Body::Notification(_), None) => notification_of(&placed, started),
        // Every line of a log is an object; other JSON that the server printed is skipped.
        (Body::Response(_) | Body::Batch(_) | Body::Garbled(_), None) => {
            return JsonTree::parse(&sent.message.text()).ok().filter(|line| matches!(line, JsonTree::Object(_)));
        }
    };
    if let Some(patch) = message_patch(sent.message) {
        patch::apply(&mut line, &patch);
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_is_no_object_has_no_line() {
        for (text, expected) in [("[]", false), ("\"str\"", false), ("12", false), ("null", false), ("{\"a\":1}", true)]
        {
            let message = Message::parse(text);
            let sent = SessionMessage {
                seq: 0,
                at: Default::default(),
                message: &message,
                request: None,
                item: None,
                from: Side::Server,
                channel: Channel::MAIN,
            };
            assert_eq!(line_of(&sent, None).is_some(), expected, "{text}");
        }
    }
}
