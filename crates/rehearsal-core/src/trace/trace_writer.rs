//! Writes a trace as a stream, one session per line.

use std::io::{self, Read, Seek, SeekFrom, Write};

use super::fields::EndFields;
use super::format::FORMAT;
use super::journal_writer::{put_channel, put_entry, put_event_id, put_start, put_time};
use super::json_writer::{id_text, write_message, write_milliseconds, write_number, write_value};
use super::{Part, PlacedMessage, RecordedCall, SessionEnd, SessionStart};
use crate::exchange::Side;
use crate::message::{Body, Reply};

/// Writes the parts of sessions as lines of a trace, and keeps none of them in memory.
///
/// Calls are written to `W` at once. Other entries follow the calls in the line, so they wait in `S` until the session
/// is over: a temporary file, or a `Cursor` if the sessions are small.
#[derive(Debug)]
pub struct TraceWriter<W, S> {
    out: W,
    side: S,
    /// How many bytes of `side` belong to this session.
    waiting: u64,
    /// The separator before the next call, if a session is open.
    open: Option<&'static [u8]>,
    buffer: Vec<u8>,
}

impl<W: Write, S: Read + Write + Seek> TraceWriter<W, S> {
    /// Writes to `out`; entries wait in `side`.
    pub fn new(out: W, side: S) -> TraceWriter<W, S> {
        TraceWriter { out, side, waiting: 0, open: None, buffer: Vec::with_capacity(4096) }
    }

    /// Takes the next part. If the last session is still open when the next one starts, it is ended first.
    pub fn part(&mut self, part: &Part) -> io::Result<()> {
        match part {
            Part::Start(start) => {
                if self.open.is_some() {
                    self.finish_session(None, None)?;
                }
                self.buffer.clear();
                write_session_head(&mut self.buffer, start);
                self.open = Some(b"");
                self.out.write_all(&self.buffer)
            }
            Part::Call(call) => {
                let separator = self.open.replace(b",").ok_or_else(not_begun)?;
                self.buffer.clear();
                self.buffer.extend_from_slice(separator);
                write_call(&mut self.buffer, call);
                self.out.write_all(&self.buffer)
            }
            Part::Entry(entry) => {
                self.open.ok_or_else(not_begun)?;
                self.buffer.clear();
                if self.waiting > 0 {
                    self.buffer.push(b',');
                } else {
                    self.side.seek(SeekFrom::Start(0))?;
                }
                put_entry(&mut self.buffer, entry, None);
                self.side.write_all(&self.buffer)?;
                self.waiting += self.buffer.len() as u64;
                Ok(())
            }
            Part::Finish { ended_at, end } => {
                self.open.ok_or_else(not_begun)?;
                self.finish_session(*ended_at, end.as_ref())
            }
        }
    }

    fn finish_session(&mut self, ended_at: Option<jiff::Timestamp>, end: Option<&SessionEnd>) -> io::Result<()> {
        self.out.write_all(LISTS_SEPARATOR)?;
        if self.waiting > 0 {
            self.side.flush()?;
            self.side.seek(SeekFrom::Start(0))?;
            let copied = io::copy(&mut Read::by_ref(&mut self.side).take(self.waiting), &mut self.out)?;
            if copied != self.waiting {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "what was put aside is not all there"));
            }
            self.waiting = 0;
        }
        self.buffer.clear();
        write_session_tail(&mut self.buffer, ended_at, end);
        self.buffer.push(b'\n');
        self.open = None;
        self.out.write_all(&self.buffer)
    }

    /// Ends the open session, and returns `W`, flushed.
    pub fn finish(mut self) -> io::Result<W> {
        if self.open.is_some() {
            self.finish_session(None, None)?;
        }
        self.out.flush()?;
        Ok(self.out)
    }
}

fn not_begun() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "a call or an entry outside of a session")
}

/// Writes a session up to its calls.
pub(super) fn write_session_head(out: &mut Vec<u8>, start: &SessionStart) {
    out.push(b'{');
    put_start(out, start, FORMAT);
    out.extend_from_slice(b",\"calls\":[");
}

/// The text between the calls and the other messages of a session.
pub(super) const LISTS_SEPARATOR: &[u8] = b"],\"messages\":[";

/// Writes the end of a session, after its messages.
pub(super) fn write_session_tail(out: &mut Vec<u8>, ended_at: Option<jiff::Timestamp>, end: Option<&SessionEnd>) {
    out.extend_from_slice(b"],\"ended_at\":");
    put_time(out, ended_at);
    out.extend_from_slice(b",\"end\":");
    write_value(out, &end.map(EndFields::from));
    out.push(b'}');
}

/// Writes a call of a trace.
pub(super) fn write_call(out: &mut Vec<u8>, call: &RecordedCall) {
    let RecordedCall { asker, request, response } = call;
    out.extend_from_slice(b"{\"request\":{");
    put_place(out, request);
    if *asker == Side::Server {
        out.extend_from_slice(b",\"from\":\"server\"");
    }
    put_channel(out, request.channel);
    put_event_id(out, request.event_id.as_deref());
    write_message(out, &request.message, None);
    out.extend_from_slice(b"},\"response\":");
    match response {
        Some(response) => {
            out.push(b'{');
            put_place(out, response);
            if response.channel != request.channel {
                out.extend_from_slice(b",\"channel\":");
                write_number(out, response.channel.0);
            }
            put_event_id(out, response.event_id.as_deref());
            out.extend_from_slice(if succeeded(response) { b",\"success\":true" } else { b",\"success\":false" });
            write_message(out, &response.message, id_text(&request.message));
            out.extend_from_slice(b"},\"duration_ms\":");
            write_milliseconds(out, call.took().unwrap_or_default());
        }
        None => out.extend_from_slice(b"null,\"duration_ms\":null"),
    }
    out.push(b'}');
}

fn put_place(out: &mut Vec<u8>, placed: &PlacedMessage) {
    out.extend_from_slice(b"\"seq\":");
    write_number(out, placed.seq);
    if let Some(item) = placed.item {
        out.extend_from_slice(b",\"item\":");
        write_number(out, item.into());
    }
    out.extend_from_slice(b",\"at_ms\":");
    write_milliseconds(out, placed.at);
}

fn succeeded(response: &PlacedMessage) -> bool {
    match response.message.body() {
        Body::Response(response) => match response.reply {
            Reply::Result(_) => true,
            Reply::Error(_) => false,
        },
        Body::Request(_) | Body::Notification(_) | Body::Batch(_) | Body::Garbled(_) => false,
    }
}
