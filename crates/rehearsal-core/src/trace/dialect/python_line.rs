//! Writes a session as Python's interceptor does, on one line. Where Python's words do not say all that we know, ours is in
//! its metadata:
//!
//! ```text
//! {"session_id": "a", "calls": [{…}, {…}], …, "metadata": {"rehearsal": {"calls": [{…}, {…}], "messages": [{…}], …}}}
//! ```

use std::io::{self, Read, Seek, Write};

use super::super::Part;
use super::super::trace_writer::{BETWEEN, put_beginning, put_call, put_ending};
use super::super::write::put_entry;
use super::python_trace::{WHOLE, call, head};
use super::session::Session;
use super::sorter::{Sorted, Sorter};
use super::tree::Tree;

/// What a line has of each part, in its order: the call in Python's words, and in ours the call, or what is none.
const CALLS: u64 = 0;
const OUR_CALLS: u64 = 1;
const OUR_MESSAGES: u64 = 2;

/// How many pieces of each kind there are.
#[derive(Debug, Default)]
pub(super) struct PythonLine {
    counts: [u64; 3],
}

impl PythonLine {
    /// Puts the pieces of a part aside.
    pub(super) fn part<S: Read + Write + Seek>(
        &mut self,
        part: &Part,
        session: &Session,
        pieces: &mut Sorter<S>,
    ) -> io::Result<()> {
        // In our files what is no call comes after all calls; in Python's it stands where it happened.
        let place = match part {
            // Python writes a call when it is answered.
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
                put_call(&mut ours, call);
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
        session: &Session,
        mut pieces: Sorted<'_, S>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let [calls, our_calls, our_messages] = std::mem::take(&mut self.counts);
        let mut head = head(session);
        if calls > 0 {
            head.set("calls", Tree::List(Vec::new()));
        }
        let from_python = session.imported().is_some();
        let says_all = from_python && our_calls + our_messages == calls && session.end.is_none();
        let metadata = (!says_all).then(|| {
            // After the calls, because ours come after Python's.
            head.remove("metadata").filter(Tree::is_object).unwrap_or_else(|| Tree::Object(Vec::new()))
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
            for (key, value) in metadata.members().iter().filter(|(key, _)| key != WHOLE) {
                write!(out, "\"{key}\":{value},")?;
            }
            write!(out, "\"{WHOLE}\":")?;
            let mut text = Vec::new();
            put_beginning(&mut text, &session.start);
            out.write_all(&text)?;
            copy(OUR_CALLS, &mut pieces, out)?;
            out.write_all(BETWEEN)?;
            copy(OUR_MESSAGES, &mut pieces, out)?;
            text.clear();
            put_ending(&mut text, session.ended_at, session.end.as_ref());
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
