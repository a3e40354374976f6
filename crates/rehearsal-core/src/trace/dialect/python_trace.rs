//! Sessions as Python's interceptor writes them, one a line.

use std::io::Cursor;

use super::super::{Part, Start, TraceReader};
use super::patch::{self, IMPORTED};
use super::python_call::{self, PYTHON};
use super::python_time::{self, Clock};
use super::reader::{Dialect, Parts};
use super::records::Record;
use super::session::{Session, keep};
use super::tree::Tree;
use crate::exchange::Side;

/// The member of a session's metadata in which ours is kept whole, where Python's words do not say it all.
pub(super) const WHOLE: &str = "rehearsal";

/// Reads sessions.
#[derive(Debug, Default)]
pub(super) struct PythonTrace {
    open: Option<Open>,
    /// How many sessions there were.
    count: u64,
}

#[derive(Debug)]
struct Open {
    clock: Clock,
    calls: u64,
    ended_at: Option<jiff::Timestamp>,
    /// The session as we had it before it was written in Python's words.
    whole: Option<Vec<Part>>,
    /// The calls as they are, until it is known whether the file was changed since then.
    read: Vec<Tree>,
    head: Tree,
}

impl Dialect for PythonTrace {
    fn record(&mut self, record: Record, out: &mut Parts) -> Result<(), String> {
        match record {
            Record::Head(head) => {
                self.finish(out);
                self.count += 1;
                let started = head.get("started_at").and_then(python_time::read);
                let ended_at = head.get("ended_at").and_then(python_time::read);
                let whole = head.some("metadata").and_then(|metadata| metadata.get(WHOLE)).and_then(read_whole);
                let open = Open { clock: Clock::new(started), calls: 0, ended_at, whole, read: Vec::new(), head };
                if open.whole.is_none() {
                    out.push_back(Part::Start(start(&open.head, self.count)));
                }
                self.open = Some(open);
            }
            Record::Item(call) => {
                let open = self.open.as_mut().ok_or("a session")?;
                if open.whole.is_some() {
                    open.read.push(call);
                } else {
                    out.push_back(open.call(&call));
                }
            }
            Record::End => self.finish(out),
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Parts) {
        let Some(mut open) = self.open.take() else { return };
        if let Some(whole) = open.whole.take() {
            if let Some(mut metadata) = open.head.remove("metadata") {
                metadata.remove(WHOLE);
                open.head.set("metadata", metadata);
            }
            let mut read = open.head.clone();
            read.set("calls", Tree::List(open.read.clone()));
            if document(&whole).is_some_and(|ours| patch::difference(&ours, &read).is_none()) {
                return out.extend(whole);
            }
            // Somebody changed what Python sees of it, so that is what counts.
            out.push_back(Part::Start(start(&open.head, self.count)));
            for call in std::mem::take(&mut open.read) {
                let part = open.call(&call);
                out.push_back(part);
            }
        }
        out.push_back(Part::Finish { ended_at: open.ended_at, end: None });
    }
}

impl Open {
    fn call(&mut self, call: &Tree) -> Part {
        let at = self.calls;
        self.calls += 1;
        Part::Call(Box::new(python_call::import(call, at + 1, at * 2, &mut self.clock)))
    }
}

/// What a session begins with; what cannot be said with it is kept in its metadata.
fn start(head: &Tree, count: u64) -> Start {
    let map = |key: &str| match head.some(key).map(Tree::value) {
        Some(serde_json::Value::Object(map)) => map,
        Some(_) | None => serde_json::Map::new(),
    };
    let session_id = head.get("session_id").and_then(Tree::text).unwrap_or_else(|| format!("session-{count}"));
    let started_at = head.get("started_at").and_then(python_time::read);
    let ended_at = head.get("ended_at").and_then(python_time::read);
    let mut start = Start { session_id, server_info: map("server_info"), started_at, metadata: map("metadata") };
    let ours = plain(&Session { ended_at, ..Session::new(start.clone()) });
    keep(&mut start, PYTHON, &ours, head);
    start
}

/// A session in Python's words, without its calls and without what was kept apart.
fn plain(session: &Session) -> Tree {
    let time = |time: Option<jiff::Timestamp>| time.map_or_else(Tree::null, python_time::write);
    let mut metadata = session.start.metadata.clone();
    metadata.shift_remove(IMPORTED);
    Tree::object([
        ("session_id", Tree::string(&session.start.session_id)),
        ("server_info", Tree::of(&serde_json::Value::Object(session.start.server_info.clone()))),
        ("calls", Tree::List(Vec::new())),
        ("started_at", time(session.start.started_at)),
        ("ended_at", time(session.ended_at)),
        ("metadata", Tree::of(&serde_json::Value::Object(metadata))),
    ])
}

/// A session in Python's words, without its calls.
pub(super) fn head(session: &Session) -> Tree {
    let mut tree = plain(session);
    if let Some(patch) = session.imported(PYTHON) {
        patch::apply(&mut tree, &patch);
    }
    tree
}

/// A session in Python's words, if that is what these parts are.
fn document(parts: &[Part]) -> Option<Tree> {
    let Some(Part::Start(start)) = parts.first() else { return None };
    let mut session = Session::new(start.clone());
    parts.iter().for_each(|part| session.learn(part));
    let calls: Vec<Tree> = parts.iter().filter_map(|part| call(part, &session)).collect();
    let mut tree = head(&session);
    if !calls.is_empty() {
        tree.set("calls", Tree::List(calls));
    }
    Some(tree)
}

/// What Python calls a call.
pub(super) fn call(part: &Part, session: &Session) -> Option<Tree> {
    match part {
        Part::Call(call) if call.asker == Side::Client => Some(python_call::export(call, session.start.started_at)),
        Part::Start(_) | Part::Call(_) | Part::Entry(_) | Part::Finish { .. } => None,
    }
}

fn read_whole(tree: &Tree) -> Option<Vec<Part>> {
    let parts: Result<Vec<Part>, _> = TraceReader::new(Cursor::new(tree.to_string())).collect();
    let parts = parts.ok()?;
    let starts = parts.iter().filter(|part| matches!(part, Part::Start(_))).count();
    (starts == 1).then_some(parts)
}
