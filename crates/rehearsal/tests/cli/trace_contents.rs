//! Reads the sessions and messages of a trace.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use rehearsal::core::exchange::{Channel, Side};
use rehearsal::core::message::{GarbledReason, Message};
use rehearsal::core::trace::{EntryBody, Part, PlacedMessage, SessionEnd, SessionStart, TraceReader};

/// One session of a trace.
#[derive(Debug)]
pub(crate) struct SessionContents {
    pub(crate) start: SessionStart,
    pub(crate) end: Option<SessionEnd>,
    pub(crate) calls: usize,
    pub(crate) stderr: Vec<String>,
    messages: Vec<(u64, Side, Message)>,
}

/// The sessions of a trace, in order.
pub(crate) fn sessions(path: &Path) -> Vec<SessionContents> {
    let mut sessions: Vec<SessionContents> = Vec::new();
    for part in TraceReader::new(BufReader::new(File::open(path).unwrap())) {
        let part = part.unwrap();
        if let Part::Start(start) = part {
            sessions.push(SessionContents { start, end: None, calls: 0, stderr: Vec::new(), messages: Vec::new() });
            continue;
        }
        let session = sessions.last_mut().unwrap();
        match part {
            Part::Start(_) => {}
            Part::Call(call) => {
                session.calls += 1;
                let answerer = call.asker.other();
                let mut keep = |from, PlacedMessage { seq, message, .. }| session.messages.push((seq, from, message));
                keep(call.asker, call.request);
                call.response.into_iter().for_each(|response| keep(answerer, response));
            }
            Part::Entry(entry) => match entry.what {
                EntryBody::Message { from, message, channel, .. } => {
                    assert_eq!(channel, Channel::MAIN);
                    session.messages.push((entry.seq, from, message));
                }
                EntryBody::Stderr { line } => session.stderr.push(line),
                other => panic!("{other:?}"),
            },
            Part::Finish { end, .. } => session.end = end,
        }
    }
    sessions.iter_mut().for_each(|session| session.messages.sort_by_key(|(seq, ..)| *seq));
    sessions
}

impl SessionContents {
    /// The bytes that one side sent, with the line ends of the transport.
    pub(crate) fn stream(&self, side: Side) -> Vec<u8> {
        let mut stream = Vec::new();
        for (_, _, message) in self.messages.iter().filter(|(_, from, _)| *from == side) {
            stream.extend_from_slice(message.raw());
            let half = message.as_garbled().is_some_and(|garbled| garbled.reason == GarbledReason::PartialLine);
            if !half {
                stream.push(b'\n');
            }
        }
        stream
    }
}
