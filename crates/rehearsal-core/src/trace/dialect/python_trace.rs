//! Reads and writes sessions as Python's interceptor writes them, one per line. If Python's members cannot hold all
//! data of a session, the metadata contains our whole session:
//!
//! ```text
//! {"session_id": "a", "calls": [{…}, {…}], …, "metadata": {"rehearsal": {"calls": [{…}, {…}], "messages": [{…}], …}}}
//! ```

use std::io::{self, Read, Seek, Write};

use jiff::Timestamp;

use super::super::journal_writer::put_entry;
use super::super::trace_writer::{LISTS_SEPARATOR, write_call, write_session_head, write_session_tail};
use super::super::{Part, SessionStart};
use super::external_sort::{ExternalSorter, Sorted};
use super::json_records::Record;
use super::json_tree::JsonTree;
use super::patch::{self, IMPORTED};
use super::python_call::{self, NegotiatedVersion};
use super::python_time::{self, PythonClock};
use super::reader::{ForeignFormat, PartQueue};
use super::session_info::{SessionInfo, keep};
use crate::exchange::Side;
use crate::json::{DEFAULT_EXCERPT, excerpt};

/// The member of a session's metadata that contains our whole session, if Python's members cannot hold all of it.
pub(super) const EMBEDDED_KEY: &str = "rehearsal";

/// Reads sessions. Calls are in the order of their list.
#[derive(Debug, Default)]
pub(super) struct PythonTrace {
    open: Option<Open>,
    /// How many sessions were read.
    count: u64,
}

#[derive(Debug)]
struct Open {
    clock: PythonClock,
    calls: u64,
    agreed: NegotiatedVersion,
    ended_at: Option<Timestamp>,
}

impl ForeignFormat for PythonTrace {
    fn record(&mut self, record: Record, out: &mut PartQueue) -> Result<(), String> {
        match record {
            Record::Head(head) => {
                self.finish(out);
                self.count += 1;
                let started = head.get("started_at").and_then(python_time::read);
                let ended_at = head.get("ended_at").and_then(python_time::read);
                self.open = Some(Open {
                    clock: PythonClock::new(started),
                    calls: 0,
                    agreed: NegotiatedVersion::default(),
                    ended_at,
                });
                out.push_back(Part::Start(start(&head, self.count)));
            }
            Record::Item(call) => {
                let open = self.open.as_mut().ok_or("a session")?;
                let at = open.calls;
                open.calls += 1;
                let part = match python_call::import_notification(&call, at * 2, &mut open.clock) {
                    Some(entry) => Part::Entry(entry),
                    None => {
                        let Open { clock, agreed, .. } = open;
                        Part::Call(Box::new(python_call::import(&call, at, clock, agreed)))
                    }
                };
                out.push_back(part);
            }
            Record::End => self.finish(out),
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut PartQueue) {
        if let Some(open) = self.open.take() {
            out.push_back(Part::Finish { ended_at: open.ended_at, end: None });
        }
    }
}

/// The value in place of the list of calls, if that is no list. Such a session has no calls, and the value is kept for
/// the user.
pub fn invalid_calls(start: &SessionStart) -> Option<String> {
    let session = SessionInfo::new(start.clone());
    let patch = session.imported()?;
    let calls = patch.get("set")?.some("/calls")?;
    Some(excerpt(&calls.value(), DEFAULT_EXCERPT))
}

/// The start of a session; data that has no place in it is kept in its metadata.
fn start(head: &JsonTree, count: u64) -> SessionStart {
    let map = |key: &str| match head.some(key).map(JsonTree::value) {
        Some(serde_json::Value::Object(map)) => map,
        Some(_) | None => serde_json::Map::new(),
    };
    let session_id = head.get("session_id").and_then(JsonTree::text).unwrap_or_else(|| format!("session-{count}"));
    let started_at = head.get("started_at").and_then(python_time::read);
    let ended_at = head.get("ended_at").and_then(python_time::read);
    let mut start = SessionStart { session_id, server_info: map("server_info"), started_at, metadata: map("metadata") };
    let ours = plain(&SessionInfo { ended_at, ..SessionInfo::new(start.clone()) });
    keep(&mut start, &ours, head);
    start
}

/// A session in Python's form, without its calls and without its patch.
fn plain(session: &SessionInfo) -> JsonTree {
    let time = |time: Option<Timestamp>| time.map_or_else(JsonTree::null, python_time::write);
    let mut metadata = session.start.metadata.clone();
    metadata.shift_remove(IMPORTED);
    JsonTree::object([
        ("session_id", JsonTree::string(&session.start.session_id)),
        ("server_info", JsonTree::from_value(&serde_json::Value::Object(session.start.server_info.clone()))),
        ("calls", JsonTree::List(Vec::new())),
        ("started_at", time(session.start.started_at)),
        ("ended_at", time(session.ended_at)),
        ("metadata", JsonTree::from_value(&serde_json::Value::Object(metadata))),
    ])
}

/// A session in Python's form, without its calls.
pub(super) fn head(session: &SessionInfo) -> JsonTree {
    let mut tree = plain(session);
    if let Some(patch) = session.imported() {
        patch::apply(&mut tree, &patch);
    }
    tree
}

/// A call in Python's form.
pub(super) fn call(part: &Part, session: &SessionInfo) -> Option<JsonTree> {
    match part {
        Part::Call(call) if call.asker == Side::Client => Some(python_call::export(call, session.start.started_at)),
        Part::Entry(entry) => python_call::export_notification(entry, session.start.started_at),
        Part::Start(_) | Part::Call(_) | Part::Finish { .. } => None,
    }
}

/// The kinds of pieces of a line, in order: a call in Python's form, the call in ours, and everything else.
const CALLS: u64 = 0;
const OUR_CALLS: u64 = 1;
const OUR_MESSAGES: u64 = 2;

/// How many pieces of each kind there are.
#[derive(Debug, Default)]
pub(super) struct PythonWriter {
    counts: [u64; 3],
}

impl PythonWriter {
    /// Stores the pieces of a part.
    pub(super) fn part<S: Read + Write + Seek>(
        &mut self,
        part: &Part,
        session: &SessionInfo,
        pieces: &mut ExternalSorter<S>,
    ) -> io::Result<()> {
        // In our files everything else follows the calls; in Python's it is in recorded order.
        let place = match part {
            // Python writes a call when its response arrives.
            Part::Call(call) if session.imported().is_some() => call.response.as_ref().unwrap_or(&call.request).seq,
            Part::Entry(entry) => entry.seq,
            Part::Call(_) | Part::Start(_) | Part::Finish { .. } => 0,
        };
        let mut put = |kind: u64, text: Vec<u8>| {
            self.counts[kind as usize] += 1;
            pieces.push([kind, if kind == CALLS { place } else { 0 }, 0, 0], text)
        };
        if let Some(call) = call(part, session) {
            put(CALLS, call.to_string().into_bytes())?;
        }
        let mut ours = Vec::new();
        match part {
            Part::Call(call) => {
                write_call(&mut ours, call);
                put(OUR_CALLS, ours)
            }
            Part::Entry(entry) => {
                put_entry(&mut ours, entry, None);
                put(OUR_MESSAGES, ours)
            }
            Part::Start(_) | Part::Finish { .. } => Ok(()),
        }
    }

    /// Writes the line.
    pub(super) fn write<S: Read + Seek>(
        &mut self,
        session: &SessionInfo,
        mut pieces: Sorted<'_, S>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let [calls, our_calls, our_messages] = std::mem::take(&mut self.counts);
        let mut head = head(session);
        if calls > 0 {
            head.set("calls", JsonTree::List(Vec::new()));
        }
        let from_python = session.imported().is_some();
        let is_complete = from_python && our_calls + our_messages == calls && session.end.is_none();
        let metadata = (!is_complete).then(|| {
            // After the calls, because our calls follow Python's.
            head.remove("metadata").filter(JsonTree::is_object).unwrap_or_else(|| JsonTree::Object(Vec::new()))
        });
        let mut separator = "{";
        for (key, value) in head.members() {
            write!(out, "{separator}\"{key}\":")?;
            separator = ",";
            if key == "calls" && calls > 0 {
                out.write_all(b"[")?;
                copy(CALLS, &mut pieces, out)?;
                out.write_all(b"]")?;
            } else {
                write!(out, "{value}")?;
            }
        }
        if let Some(metadata) = metadata {
            write!(out, "{separator}\"metadata\":{{")?;
            for (key, value) in metadata.members().iter().filter(|(key, _)| key != EMBEDDED_KEY) {
                write!(out, "\"{key}\":{value},")?;
            }
            write!(out, "\"{EMBEDDED_KEY}\":")?;
            let mut text = Vec::new();
            write_session_head(&mut text, &session.start);
            out.write_all(&text)?;
            copy(OUR_CALLS, &mut pieces, out)?;
            out.write_all(LISTS_SEPARATOR)?;
            copy(OUR_MESSAGES, &mut pieces, out)?;
            text.clear();
            write_session_tail(&mut text, session.ended_at, session.end.as_ref());
            out.write_all(&text)?;
            out.write_all(b"}")?;
        }
        out.write_all(b"}\n")
    }
}

/// The pieces of one kind, with commas between them.
fn copy<S: Read + Seek>(kind: u64, pieces: &mut Sorted<'_, S>, out: &mut impl Write) -> io::Result<()> {
    let mut separator: &[u8] = b"";
    while let Some(piece) = pieces.next_if(|[next, ..]| next == kind)? {
        out.write_all(separator)?;
        out.write_all(&piece.text)?;
        separator = b",";
    }
    Ok(())
}
