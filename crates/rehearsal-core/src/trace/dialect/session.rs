//! A whole session, for files whose order is not ours.

use std::time::Duration;

use jiff::Timestamp;

use super::super::{Call, End, Entry, Part, Placed, Start, What};
use super::patch::{self, IMPORTED};
use super::tree::Tree;
use crate::exchange::{Channel, Side};
use crate::message::{Body, Message};

/// The parts of one session.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Session {
    pub(super) start: Start,
    pub(super) calls: Vec<Call>,
    pub(super) entries: Vec<Entry>,
    pub(super) ended_at: Option<Timestamp>,
    pub(super) end: Option<End>,
}

/// A message and who said it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said<'s> {
    pub(super) seq: u64,
    pub(super) item: Option<u32>,
    pub(super) at: Duration,
    pub(super) from: Side,
    pub(super) channel: Channel,
    pub(super) message: &'s Message,
    /// The question, where this is the answer.
    pub(super) question: Option<&'s Message>,
}

impl Session {
    pub(super) fn new(start: Start) -> Session {
        Session { start, calls: Vec::new(), entries: Vec::new(), ended_at: None, end: None }
    }

    /// The parts again.
    pub(super) fn parts(self) -> impl Iterator<Item = Part> {
        let Session { start, calls, entries, ended_at, end } = self;
        let calls = calls.into_iter().map(|call| Part::Call(Box::new(call)));
        let parts = std::iter::once(Part::Start(start)).chain(calls).chain(entries.into_iter().map(Part::Entry));
        parts.chain(std::iter::once(Part::Finish { ended_at, end }))
    }

    /// Everything that was said, in order.
    pub(super) fn said(&self) -> Vec<Said<'_>> {
        let mut said = Vec::new();
        for Call { asker, request, response } in &self.calls {
            said.push(placed(request, *asker, None));
            said.extend(response.as_ref().map(|response| placed(response, asker.other(), Some(&request.message))));
        }
        for Entry { seq, item, at, what } in &self.entries {
            if let What::Message { from, channel, message, .. } = what {
                let (seq, item, at, from, channel) = (*seq, *item, *at, *from, *channel);
                said.push(Said { seq, item, at, from, channel, message, question: None });
            }
        }
        said.sort_by_key(|said| (said.seq, said.item));
        said
    }

    /// When something happened, in RFC 3339.
    pub(super) fn time(&self, at: Duration) -> Tree {
        let time = self.start.started_at.and_then(|started| started.checked_add(at).ok());
        time.map_or_else(Tree::null, |time| Tree::string(&time.to_string()))
    }

    /// A text of what was recorded, such as its `url`.
    pub(super) fn info(&self, key: &str) -> Option<&str> {
        self.start.server_info.get(key)?.as_str()
    }

    /// Where the server was: its URL, or its command.
    pub(super) fn server(&self) -> String {
        let command = || Some(format!("stdio:{}", self.info("command")?));
        self.info("url").map(str::to_owned).or_else(command).unwrap_or_default()
    }

    /// The answer to `initialize`, or to what came in its place.
    pub(super) fn greeting(&self) -> Option<Tree> {
        let call = self.calls.iter().find(|call| {
            let method = call.request.message.method().map(|method| method.as_str());
            matches!(method, Some("initialize" | "server/discover"))
        })?;
        message_tree(&call.response.as_ref()?.message).remove("result")
    }

    /// What the file of another tool said about its session, if this one came from there.
    pub(super) fn imported(&self, from: &str) -> Option<Tree> {
        let patch = Tree::parse(self.start.metadata.get(IMPORTED)?.as_str()?).ok()?;
        (patch.get("from")?.text()? == from).then_some(patch)
    }
}

/// Keeps, beside what is known of a session, what else its file said: `ours` is what we would have written.
pub(super) fn keep(start: &mut Start, from: &str, ours: &Tree, original: &Tree) {
    let patch = patch::difference(ours, original).unwrap_or_else(|| Tree::Object(Vec::new()));
    let kept = labelled(from, &patch);
    // As text, because a value would not keep the digits of numbers.
    start.metadata.insert(IMPORTED.to_owned(), serde_json::Value::from(kept.to_string()));
}

/// A patch with the name of the format that it belongs to.
pub(super) fn labelled(from: &str, patch: &Tree) -> Tree {
    let mut kept = Tree::object([("from", Tree::string(from))]);
    patch.members().iter().for_each(|(key, value)| kept.set(key, value.clone()));
    kept
}

fn placed<'s>(placed: &'s Placed, from: Side, question: Option<&'s Message>) -> Said<'s> {
    let Placed { seq, item, at, channel, message, event_id: _ } = placed;
    Said { seq: *seq, item: *item, at: *at, from, channel: *channel, message, question }
}

/// The text of a message as a document, without what we keep in it; a garbled one is a string.
pub(super) fn message_tree(message: &Message) -> Tree {
    let text = message.text();
    match message.body() {
        Body::Garbled(_) => Tree::parse(&text).ok().filter(Tree::is_object),
        Body::Request(_) | Body::Notification(_) | Body::Response(_) | Body::Batch(_) => Tree::parse(&text).ok(),
    }
    .map_or_else(
        || Tree::string(&text),
        |mut tree| {
            tree.remove(IMPORTED);
            tree
        },
    )
}

/// What we keep in a message of the file of another tool.
pub(super) fn message_patch(message: &Message, from: &str) -> Option<Tree> {
    // Looking for the name first saves reading every message twice.
    let raw = std::str::from_utf8(message.raw()).ok().filter(|raw| raw.contains(IMPORTED))?;
    let patch = Tree::parse(raw).ok()?.remove(IMPORTED)?;
    (patch.get("from")?.text()? == from).then_some(patch)
}

/// A message with what else its file said.
pub(super) fn with_patch(message: &Message, from: &str, patch: &Tree) -> Message {
    let mut tree = match Tree::parse(&message.text()) {
        Ok(tree @ Tree::Object(_)) => tree,
        Ok(Tree::Leaf(_) | Tree::List(_)) | Err(_) => return message.clone(),
    };
    tree.set(IMPORTED, labelled(from, patch));
    Message::parse(tree.to_string())
}
