//! Sessions as Python's interceptor writes them, one a line.

use std::io::Cursor;

use super::super::{Part, Start, TraceReader, TraceWriter};
use super::patch::{self, IMPORTED};
use super::python_call::{self, PYTHON};
use super::python_time::{self, Clock};
use super::reader::{Dialect, Parts};
use super::records::Record;
use super::session::{Session, keep};
use super::tree::Tree;

/// The member of a session's metadata in which ours is kept whole, where Python's words do not say it all.
const WHOLE: &str = "rehearsal";

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
    whole: Option<Session>,
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
            if patch::difference(&document(&whole), &read).is_none() {
                return out.extend(whole.parts());
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

/// A session in Python's words.
fn document(session: &Session) -> Tree {
    let mut tree = plain(session);
    if let Some(patch) = session.imported(PYTHON) {
        patch::apply(&mut tree, &patch);
    }
    let asked = session.calls.iter().filter(|call| call.asker == crate::exchange::Side::Client);
    let calls: Vec<Tree> = asked.map(|call| python_call::export(call, session.start.started_at)).collect();
    if !calls.is_empty() {
        tree.set("calls", Tree::List(calls));
    }
    tree
}

/// The line of a session. Where Python's words do not say all that we know, ours is in its metadata.
pub(super) fn write(session: &Session) -> String {
    let mut tree = document(session);
    let asked = session.calls.iter().all(|call| call.asker == crate::exchange::Side::Client);
    let theirs = session.imported(PYTHON).is_some() && session.entries.is_empty() && session.end.is_none() && asked;
    if !theirs {
        let mut metadata = tree.remove("metadata").filter(Tree::is_object).unwrap_or_else(|| Tree::Object(Vec::new()));
        metadata.set(WHOLE, write_whole(session));
        tree.set("metadata", metadata);
    }
    tree.to_string()
}

fn collect(parts: impl IntoIterator<Item = Part>) -> Option<Session> {
    let mut session = None;
    for part in parts {
        match (part, &mut session) {
            (Part::Start(start), None) => session = Some(Session::new(start)),
            (Part::Call(call), Some(session)) => session.calls.push(*call),
            (Part::Entry(entry), Some(session)) => session.entries.push(entry),
            (Part::Finish { ended_at, end }, Some(session)) => (session.ended_at, session.end) = (ended_at, end),
            (Part::Start(_), Some(_)) | (Part::Call(_) | Part::Entry(_) | Part::Finish { .. }, None) => return None,
        }
    }
    session
}

fn write_whole(session: &Session) -> Tree {
    let mut writer = TraceWriter::new(Vec::new(), Cursor::new(Vec::new()));
    let written = session.clone().parts().try_for_each(|part| writer.part(&part)).and_then(|()| writer.finish());
    let line = written.expect("memory takes everything");
    Tree::known(std::str::from_utf8(&line).unwrap_or_default().trim_end())
}

fn read_whole(tree: &Tree) -> Option<Session> {
    let parts: Result<Vec<Part>, _> = TraceReader::new(Cursor::new(tree.to_string())).collect();
    collect(parts.ok()?)
}
