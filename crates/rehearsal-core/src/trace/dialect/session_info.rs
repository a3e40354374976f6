//! The facts about a whole session, for formats with another order than a trace.

use std::time::Duration;

use jiff::Timestamp;

use super::super::{Entry, EntryBody, Part, PlacedMessage, RecordedCall, SessionEnd, SessionStart};
use super::external_sort::SortKey;
use super::json_tree::JsonTree;
use super::patch::{self, IMPORTED};
use crate::exchange::{Channel, Side};
use crate::message::{Body, Message};

/// The name of the format whose `_imported` members are read and written.
const PYTHON: &str = "python";

/// The facts about a whole session; their size is bounded.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SessionInfo {
    pub(super) start: SessionStart,
    /// The time of the last event.
    pub(super) last: Duration,
    pub(super) ended_at: Option<Timestamp>,
    pub(super) end: Option<SessionEnd>,
}

/// A message and its sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct SessionMessage<'s> {
    pub(super) seq: u64,
    pub(super) item: Option<u32>,
    pub(super) at: Duration,
    pub(super) from: Side,
    pub(super) channel: Channel,
    pub(super) message: &'s Message,
    /// The request, if this is its response.
    pub(super) request: Option<&'s Message>,
}

impl SessionInfo {
    pub(super) fn new(start: SessionStart) -> SessionInfo {
        SessionInfo { start, last: Duration::ZERO, ended_at: None, end: None }
    }

    /// Updates the facts with those of a part.
    pub(super) fn learn(&mut self, part: &Part) {
        match part {
            Part::Call(call) => {
                let answered = call.response.as_ref();
                self.last = self.last.max(answered.map_or(call.request.at, |answer| answer.at)).max(call.request.at);
            }
            Part::Entry(entry) => self.last = self.last.max(entry.at),
            Part::Finish { ended_at, end } => (self.ended_at, self.end) = (*ended_at, end.clone()),
            Part::Start(_) => {}
        }
    }

    /// A time in RFC 3339.
    pub(super) fn time(&self, at: Duration) -> JsonTree {
        let time = self.start.started_at.and_then(|started| started.checked_add(at).ok());
        time.map_or_else(JsonTree::null, |time| JsonTree::string(&time.to_string()))
    }

    /// Additional data of its file about the session, if it came from the Python interceptor.
    pub(super) fn imported(&self) -> Option<JsonTree> {
        patch_of_python(JsonTree::parse(self.start.metadata.get(IMPORTED)?.as_str()?).ok()?)
    }
}

/// Stores the additional data of a session's file in its metadata: `ours` is what we would have written.
pub(super) fn keep(start: &mut SessionStart, ours: &JsonTree, original: &JsonTree) {
    let patch = patch::difference(ours, original).unwrap_or_else(|| JsonTree::Object(Vec::new()));
    let kept = labelled(&patch);
    // As text, because a value would lose digits of numbers.
    start.metadata.insert(IMPORTED.to_owned(), serde_json::Value::from(kept.to_string()));
}

/// A patch with the name of its format.
fn labelled(patch: &JsonTree) -> JsonTree {
    let mut kept = JsonTree::object([("from", JsonTree::string(PYTHON))]);
    patch.members().iter().for_each(|(key, value)| kept.set(key, value.clone()));
    kept
}

/// The messages of a part, in order.
pub(super) fn messages(part: &Part) -> impl Iterator<Item = SessionMessage<'_>> {
    let (first, second) = match part {
        Part::Call(call) => {
            let RecordedCall { asker, request, response } = &**call;
            let answer = response.as_ref().map(|answer| placed(answer, asker.other(), Some(&request.message)));
            (Some(placed(request, *asker, None)), answer)
        }
        Part::Entry(Entry { seq, item, at, what: EntryBody::Message { from, channel, message, .. } }) => {
            let (seq, item, at, from, channel) = (*seq, *item, *at, *from, *channel);
            (Some(SessionMessage { seq, item, at, from, channel, message, request: None }), None)
        }
        Part::Entry(_) | Part::Start(_) | Part::Finish { .. } => (None, None),
    };
    first.into_iter().chain(second)
}

impl SessionMessage<'_> {
    /// The position in the recorded order of the session.
    pub(super) fn key(&self) -> SortKey {
        place(self.seq, self.item)
    }
}

/// The sort key of a message in the recorded order of its session.
pub(super) fn place(seq: u64, item: Option<u32>) -> SortKey {
    [seq, item.map_or(0, |item| u64::from(item) + 1), 0, 0]
}

fn placed<'s>(placed: &'s PlacedMessage, from: Side, request: Option<&'s Message>) -> SessionMessage<'s> {
    let PlacedMessage { seq, item, at, channel, message, event_id: _ } = placed;
    SessionMessage { seq: *seq, item: *item, at: *at, from, channel: *channel, message, request }
}

/// The text of a message as a document, without the patch in it; a garbled message is a string.
pub(super) fn message_tree(message: &Message) -> JsonTree {
    let text = message.text();
    match message.body() {
        Body::Garbled(_) => JsonTree::parse(&text).ok().filter(JsonTree::is_object),
        Body::Request(_) | Body::Notification(_) | Body::Response(_) | Body::Batch(_) => JsonTree::parse(&text).ok(),
    }
    .map_or_else(
        || JsonTree::string(&text),
        |mut tree| {
            tree.remove(IMPORTED);
            tree
        },
    )
}

/// The patch in a message that was read from another tool's file.
pub(super) fn message_patch(message: &Message) -> Option<JsonTree> {
    // The search for the name avoids parsing every message twice.
    let raw = std::str::from_utf8(message.raw()).ok().filter(|raw| raw.contains(IMPORTED))?;
    patch_of_python(JsonTree::parse(raw).ok()?.remove(IMPORTED)?)
}

/// A patch, unless it belongs to a format that this version only reads.
fn patch_of_python(patch: JsonTree) -> Option<JsonTree> {
    (patch.get("from")?.text()? == PYTHON).then_some(patch)
}

/// A message with a patch in it.
pub(super) fn with_patch(message: &Message, patch: &JsonTree) -> Message {
    let mut tree = match JsonTree::parse(&message.text()) {
        Ok(tree @ JsonTree::Object(_)) => tree,
        Ok(JsonTree::Leaf(_) | JsonTree::List(_)) | Err(_) => return message.clone(),
    };
    tree.set(IMPORTED, labelled(patch));
    Message::parse(tree.to_string())
}
