//! Recordings of `mcporter`: one message a line, with who said it in `_meta`; several servers may share a file.

use std::time::Duration;

use jiff::Timestamp;

use super::super::{End, Entry, Fold, Part, Start, What};
use super::patch;
use super::python_time::{self, Clock};
use super::reader::{Dialect, Parts};
use super::records::Record;
use super::session::{Session, message_patch, message_tree, with_patch};
use super::tree::Tree;
use crate::exchange::{Channel, Side};
use crate::message::Message;

const NAME: &str = "mcporter";

/// Reads a recording: a session for each server, from its `$transport/start` to its `$transport/close`.
#[derive(Debug, Default)]
pub(super) struct Mcporter {
    open: Vec<Open>,
    count: u64,
}

#[derive(Debug)]
struct Open {
    server: String,
    clock: Clock,
    fold: Fold,
    seq: u64,
    /// What is complete of it. Sessions come one after the other, though their lines may be mixed.
    parts: Vec<Part>,
}

impl Dialect for Mcporter {
    fn record(&mut self, record: Record, out: &mut Parts) -> Result<(), String> {
        let mut line = match record {
            Record::Item(line) => line,
            Record::Head(_) | Record::End => return Err("a message".to_owned()),
        };
        let meta = line.remove("_meta").ok_or("a message with `_meta`")?;
        let server = meta.get("server").and_then(Tree::text).unwrap_or_default();
        let direction = meta.get("dir").and_then(Tree::text).unwrap_or_default();
        let method = line.get("method").and_then(Tree::text).unwrap_or_default();
        let at = match self.open.iter().position(|open| open.server == server) {
            Some(at) if method != "$transport/start" => at,
            known => {
                if let Some(at) = known {
                    self.close(at, out);
                }
                self.count += 1;
                self.open.push(begin(server, &meta, self.count));
                self.open.len() - 1
            }
        };
        let open = &mut self.open[at];
        let time = open.clock.at(meta.get("ts"));
        let from = match direction.as_str() {
            "send" => Side::Client,
            "recv" => Side::Server,
            "lifecycle" if method == "$transport/close" => {
                let (seq, end) = (open.seq, What::Ended(End::ClientClosed { status: None }));
                open.fold.entry(Entry::new(seq, time, end), &mut open.parts);
                self.close(at, out);
                return Ok(());
            }
            "lifecycle" => return Ok(()),
            other => return Err(format!("`dir` that is `send`, `recv` or `lifecycle` instead of `{other}`")),
        };
        let said = Message::parse(line.to_string());
        let seq = open.seq;
        open.seq += 1;
        let mut ours = message_tree(&said);
        ours.set("_meta", meta_of(direction.as_str(), &open.server, open.clock.started, time));
        line.set("_meta", meta);
        let message = match patch::difference(&ours, &line) {
            Some(patch) => with_patch(&said, NAME, &patch),
            None => said,
        };
        let what = What::Message { from, channel: Channel::MAIN, message, event_id: None };
        open.fold.entry(Entry::new(seq, time, what), &mut open.parts);
        Ok(())
    }

    fn finish(&mut self, out: &mut Parts) {
        while !self.open.is_empty() {
            self.close(0, out);
        }
    }
}

impl Mcporter {
    fn close(&mut self, at: usize, out: &mut Parts) {
        let Open { fold, mut parts, .. } = self.open.remove(at);
        fold.finish(Some(End::Stopped), &mut parts);
        out.extend(parts);
    }
}

fn begin(server: String, meta: &Tree, count: u64) -> Open {
    let started_at = meta.get("ts").and_then(python_time::read);
    let mut server_info = serde_json::Map::new();
    server_info.insert("server".to_owned(), server.as_str().into());
    let session_id = format!("{NAME}-{count}");
    let start = Start { session_id, server_info, started_at, metadata: serde_json::Map::new() };
    Open { server, clock: Clock::new(started_at), fold: Fold::new(start), seq: 0, parts: Vec::new() }
}

fn meta_of(direction: &str, server: &str, started: Option<Timestamp>, at: Duration) -> Tree {
    let time = started.and_then(|started| started.checked_add(at).ok());
    // To the millisecond, as JavaScript has it.
    let time = time.map_or_else(Tree::null, |time| Tree::string(&format!("{time:.3}")));
    Tree::object([("dir", Tree::string(direction)), ("server", Tree::string(server)), ("ts", time)])
}

/// The lines of a session.
pub(super) fn write(session: &Session) -> Vec<String> {
    let named = session.info("server").or_else(|| session.info("name"));
    let server = named.unwrap_or(&session.start.session_id);
    let started = session.start.started_at;
    let lifecycle = |event: &str, at: Duration| {
        let meta = meta_of("lifecycle", server, started, at);
        let method = Tree::string(&format!("$transport/{event}"));
        Tree::object([("jsonrpc", Tree::string("2.0")), ("method", method), ("_meta", meta)]).to_string()
    };
    let mut lines = vec![lifecycle("start", Duration::ZERO)];
    let mut last = Duration::ZERO;
    for said in session.said() {
        last = last.max(said.at);
        let mut tree = message_tree(said.message);
        if !tree.is_object() {
            // Only messages have a place there.
            continue;
        }
        let direction = match said.from {
            Side::Client => "send",
            Side::Server => "recv",
        };
        tree.set("_meta", meta_of(direction, server, started, said.at));
        if let Some(patch) = message_patch(said.message, NAME) {
            patch::apply(&mut tree, &patch);
        }
        lines.push(tree.to_string());
    }
    let close = match (session.ended_at, started) {
        (Some(ended), Some(started)) => Duration::try_from(ended.duration_since(started)).unwrap_or(last),
        (Some(_) | None, _) => last,
    };
    lines.push(lifecycle("close", close));
    lines
}
