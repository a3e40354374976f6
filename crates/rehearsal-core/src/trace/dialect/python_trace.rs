//! Sessions as Python's interceptor writes them, one a line.

use super::super::{Part, Start};
use super::patch::{self, IMPORTED};
use super::python_call::{self, PYTHON};
use super::python_time::{self, Clock};
use super::reader::{Dialect, Parts};
use super::records::Record;
use super::session::{Session, keep};
use super::tree::Tree;
use crate::exchange::Side;
use crate::json::{DEFAULT_EXCERPT, excerpt};

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
}

impl Dialect for PythonTrace {
    fn record(&mut self, record: Record, out: &mut Parts) -> Result<(), String> {
        match record {
            Record::Head(head) => {
                self.finish(out);
                self.count += 1;
                let started = head.get("started_at").and_then(python_time::read);
                let ended_at = head.get("ended_at").and_then(python_time::read);
                self.open = Some(Open { clock: Clock::new(started), calls: 0, ended_at });
                out.push_back(Part::Start(start(&head, self.count)));
            }
            Record::Item(call) => {
                let open = self.open.as_mut().ok_or("a session")?;
                let at = open.calls;
                open.calls += 1;
                let part = match python_call::import_told(&call, at * 2, &mut open.clock) {
                    Some(told) => Part::Entry(told),
                    None => Part::Call(Box::new(python_call::import(&call, at + 1, at * 2, &mut open.clock))),
                };
                out.push_back(part);
            }
            Record::End => self.finish(out),
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Parts) {
        if let Some(open) = self.open.take() {
            out.push_back(Part::Finish { ended_at: open.ended_at, end: None });
        }
    }
}

/// What a file of Python's has in the place of the list of calls, where that is something else: such a session has none, and is
/// kept for whoever can make something of it.
pub fn odd_calls(start: &Start) -> Option<String> {
    let session = Session::new(start.clone());
    let patch = session.imported(PYTHON)?;
    let calls = patch.get("set")?.some("/calls")?;
    Some(excerpt(&calls.value(), DEFAULT_EXCERPT))
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

/// What Python calls a call.
pub(super) fn call(part: &Part, session: &Session) -> Option<Tree> {
    match part {
        Part::Call(call) if call.asker == Side::Client => Some(python_call::export(call, session.start.started_at)),
        Part::Entry(entry) => python_call::export_told(entry, session.start.started_at),
        Part::Start(_) | Part::Call(_) | Part::Finish { .. } => None,
    }
}
