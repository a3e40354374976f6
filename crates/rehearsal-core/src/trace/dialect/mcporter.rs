//! Recordings of `mcporter`: one message per line, with its sender in `_meta`; several servers may share a file. They
//! are only read.

use std::collections::VecDeque;

use super::super::{Entry, EntryBody, JournalFold, Part, SessionEnd, SessionStart};
use super::json_records::Record;
use super::json_tree::JsonTree;
use super::python_time::{self, PythonClock};
use super::reader::{ForeignFormat, PartQueue};
use crate::exchange::{Channel, Side};
use crate::message::Message;

/// Reads a recording: a session for each server, from its `$transport/start` to its `$transport/close`.
///
/// Sessions are returned one after the other, though their lines may be mixed. The first session is returned as it is
/// read; the complete parts of the others wait.
#[derive(Debug, Default)]
pub(super) struct Mcporter {
    sessions: VecDeque<OpenRecording>,
    count: u64,
}

#[derive(Debug)]
struct OpenRecording {
    server: String,
    clock: PythonClock,
    /// `None` if the session was closed.
    fold: Option<JournalFold>,
    seq: u64,
    parts: Vec<Part>,
}

impl ForeignFormat for Mcporter {
    fn record(&mut self, record: Record, out: &mut PartQueue) -> Result<(), String> {
        let mut line = match record {
            Record::Item(line) => line,
            Record::Head(_) | Record::End => return Err("a message".to_owned()),
        };
        let meta = line.remove("_meta").ok_or("a message with `_meta`")?;
        let server = meta.get("server").and_then(JsonTree::text).unwrap_or_default();
        let direction = meta.get("dir").and_then(JsonTree::text).unwrap_or_default();
        let method = line.get("method").and_then(JsonTree::text).unwrap_or_default();
        let known = self.sessions.iter().position(|session| session.fold.is_some() && session.server == server);
        let at = match known {
            Some(at) if method != "$transport/start" => at,
            known => {
                if let Some(session) = known.and_then(|at| self.sessions.get_mut(at)) {
                    session.close();
                }
                self.count += 1;
                self.sessions.push_back(begin(server, &meta, self.count));
                self.sessions.len() - 1
            }
        };
        let taken = self.sessions[at].line(&line, &meta, &direction, &method);
        self.emit(out);
        taken
    }

    fn finish(&mut self, out: &mut PartQueue) {
        self.sessions.iter_mut().for_each(OpenRecording::close);
        self.emit(out);
    }
}

impl Mcporter {
    /// Returns the complete parts of the first session, and those of the next one once it is closed.
    fn emit(&mut self, out: &mut PartQueue) {
        while let Some(first) = self.sessions.front_mut() {
            out.extend(first.parts.drain(..));
            if first.fold.is_some() {
                break;
            }
            self.sessions.pop_front();
        }
    }
}

impl OpenRecording {
    fn line(&mut self, line: &JsonTree, meta: &JsonTree, direction: &str, method: &str) -> Result<(), String> {
        let Some(fold) = &mut self.fold else { return Ok(()) };
        let (seq, time) = (self.seq, self.clock.at(meta.get("ts")));
        let from = match direction {
            "send" => Side::Client,
            "recv" => Side::Server,
            "lifecycle" if method == "$transport/close" => {
                let end = EntryBody::Ended(SessionEnd::ClientClosed { status: None });
                fold.entry(Entry::new(seq, time, end), &mut self.parts);
                self.close();
                return Ok(());
            }
            "lifecycle" => return Ok(()),
            other => return Err(format!("`dir` that is `send`, `recv` or `lifecycle` instead of `{other}`")),
        };
        self.seq += 1;
        let message = Message::parse(line.to_string());
        let what = EntryBody::Message { from, channel: Channel::MAIN, message, event_id: None };
        fold.entry(Entry::new(seq, time, what), &mut self.parts);
        Ok(())
    }

    fn close(&mut self) {
        if let Some(fold) = self.fold.take() {
            fold.finish(Some(SessionEnd::Stopped), &mut self.parts);
        }
    }
}

fn begin(server: String, meta: &JsonTree, count: u64) -> OpenRecording {
    let started_at = meta.get("ts").and_then(python_time::read);
    let mut server_info = serde_json::Map::new();
    server_info.insert("server".to_owned(), server.as_str().into());
    let session_id = format!("mcporter-{count}");
    let start = SessionStart { session_id, server_info, started_at, metadata: serde_json::Map::new() };
    OpenRecording {
        server,
        clock: PythonClock::new(started_at),
        fold: Some(JournalFold::new(start)),
        seq: 0,
        parts: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_with_interleaved_lines_are_read_one_by_one() {
        let line = |server: &str, direction: &str, rest: &str| {
            let text = format!(r#"{{"jsonrpc":"2.0",{rest},"_meta":{{"dir":"{direction}","server":"{server}"}}}}"#);
            Record::Item(JsonTree::known(&text))
        };
        let mut mcporter = Mcporter::default();
        let mut events = Vec::new();
        for record in [
            line("a", "lifecycle", r#""method":"$transport/start""#),
            line("b", "send", r#""id":1,"method":"ping""#),
            line("a", "send", r#""id":1,"method":"initialize""#),
            line("b", "recv", r#""id":1,"result":{}"#),
            line("a", "recv", r#""id":1,"result":{"serverInfo":{"name":"a","version":"1"}}"#),
            line("a", "send", r#""method":"notifications/initialized""#),
            line("b", "lifecycle", r#""method":"$transport/close""#),
            line("b", "send", r#""method":"notifications/again""#),
            line("a", "lifecycle", r#""method":"$transport/close""#),
        ] {
            let mut out = PartQueue::new();
            mcporter.record(record, &mut out).unwrap();
            events.push(out.iter().map(kind).collect::<Vec<_>>().join(" "));
        }
        let mut out = PartQueue::new();
        mcporter.finish(&mut out);
        events.push(out.iter().map(kind).collect::<Vec<_>>().join(" "));
        let after = "finish start b call finish";
        let expected = ["", "", "", "", "start a call", "entry", "", "", after, "start b entry finish"];
        assert_eq!(events, expected);
    }

    fn kind(part: &Part) -> String {
        match part {
            Part::Start(start) => format!("start {}", start.server_info["server"].as_str().unwrap()),
            Part::Call(_) => "call".to_owned(),
            Part::Entry(_) => "entry".to_owned(),
            Part::Finish { .. } => "finish".to_owned(),
        }
    }
}
