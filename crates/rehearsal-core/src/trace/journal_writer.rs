//! One line of a journal, written as it happens.

use std::time::Duration;

use jiff::Timestamp;

use super::fields::{EndFields, EventFields};
use super::format::JOURNAL_FORMAT;
use super::json_writer::{
    is_plain, put_whole, write_message, write_milliseconds, write_number, write_plain_string, write_string, write_value,
};
use super::{Entry, EntryBody, HttpHead, SessionStart};
use crate::exchange::{Channel, Side};
use crate::message::Body;

/// Additional members of each line of a file with several sessions, such as a log. A journal of one session has none of
/// them.
#[derive(Clone, Copy, Debug)]
pub struct SharedLog<'a> {
    /// The id of the session.
    pub session_id: &'a str,
    /// When the session began; the time of each line is computed from it.
    pub started_at: Timestamp,
}

/// Appends the first line of a session to `out`, with its line end.
///
/// ```text
/// {"type":"start","format":2,"session_id":"…","server_info":{…},"started_at":"2026-07-28T12:00:00.25Z","metadata":{}}
/// ```
pub fn write_start(out: &mut Vec<u8>, start: &SessionStart) {
    out.extend_from_slice(b"{\"type\":\"start\",");
    put_start(out, start, JOURNAL_FORMAT);
    out.extend_from_slice(b"}\n");
}

/// Writes the members of a session's start, for a journal and for a trace.
pub(super) fn put_start(out: &mut Vec<u8>, start: &SessionStart, format: u64) {
    let SessionStart { session_id, server_info, started_at, metadata } = start;
    out.extend_from_slice(b"\"format\":");
    write_number(out, format);
    out.extend_from_slice(b",\"session_id\":");
    write_string(out, session_id);
    out.extend_from_slice(b",\"server_info\":");
    write_value(out, server_info);
    out.extend_from_slice(b",\"started_at\":");
    put_time(out, *started_at);
    out.extend_from_slice(b",\"metadata\":");
    write_value(out, metadata);
}

pub(super) fn put_time(out: &mut Vec<u8>, time: Option<Timestamp>) {
    match time {
        Some(time) => {
            out.push(b'"');
            out.extend_from_slice(time.to_string().as_bytes());
            out.push(b'"');
        }
        None => out.extend_from_slice(b"null"),
    }
}

/// Appends one line to `out`, with its line end. `params`, `result` and `error` are copied from the message.
///
/// ```text
/// {"type":"request","seq":4,"at_ms":12.5,"from":"client","id":1,"method":"ping"}
/// ```
pub fn write_entry(out: &mut Vec<u8>, entry: &Entry, log: Option<&SharedLog<'_>>) {
    put_entry(out, entry, log);
    out.push(b'\n');
}

/// Appends an entry without the line end.
pub(super) fn put_entry(out: &mut Vec<u8>, entry: &Entry, log: Option<&SharedLog<'_>>) {
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(kind(&entry.what).as_bytes());
    out.push(b'"');
    if let Some(SharedLog { session_id, started_at }) = log {
        out.extend_from_slice(b",\"timestamp\":");
        put_time(out, started_at.checked_add(entry.at).ok());
        out.extend_from_slice(b",\"session_id\":");
        write_string(out, session_id);
    }
    out.extend_from_slice(b",\"seq\":");
    write_number(out, entry.seq);
    if let Some(item) = entry.item {
        out.extend_from_slice(b",\"item\":");
        write_number(out, item.into());
    }
    out.extend_from_slice(b",\"at_ms\":");
    write_milliseconds(out, entry.at);
    match &entry.what {
        EntryBody::Message { from, channel, message, event_id } => {
            put_from(out, *from);
            put_channel(out, *channel);
            put_event_id(out, event_id.as_deref());
            write_message(out, message, None);
        }
        EntryBody::Http { from, channel, head } => {
            put_from(out, *from);
            put_channel(out, *channel);
            out.extend_from_slice(b",\"http\":");
            put_head(out, head);
        }
        EntryBody::Event { channel, name, id, data, retry } => {
            put_channel(out, *channel);
            out.extend_from_slice(b",\"event\":");
            write_value(out, &EventFields::new(name, id, data, *retry));
        }
        EntryBody::ChannelEnded { channel, why } => {
            put_channel(out, *channel);
            if let Some(why) = why {
                out.extend_from_slice(b",\"why\":");
                write_string(out, why);
            }
        }
        EntryBody::Piece { from, channel, offset, bytes } => {
            put_from(out, *from);
            put_channel(out, *channel);
            out.extend_from_slice(b",\"offset\":");
            write_number(out, *offset as u64);
            put_whole(out, bytes);
        }
        EntryBody::Stderr { line } => {
            out.extend_from_slice(b",\"line\":");
            write_string(out, line);
        }
        EntryBody::Ended(end) => {
            out.extend_from_slice(b",\"end\":");
            write_value(out, &EndFields::from(end));
        }
    }
    out.push(b'}');
}

/// Appends verbatim messages, each a line with its end, behind one line with their common members.
///
/// ```text
/// {"type":"lines","seq":4,"at_ms":12.5,"from":"client","bytes":41}
/// {"jsonrpc":"2.0","id":1,"method":"ping"}
/// ```
pub fn write_lines(out: &mut Vec<u8>, seq: u64, at: Duration, from: Side, channel: Channel, lines: &[u8]) {
    out.extend_from_slice(b"{\"type\":\"lines\",\"seq\":");
    write_number(out, seq);
    out.extend_from_slice(b",\"at_ms\":");
    write_milliseconds(out, at);
    put_from(out, from);
    put_channel(out, channel);
    out.extend_from_slice(b",\"bytes\":");
    write_number(out, lines.len() as u64);
    out.extend_from_slice(b"}\n");
    out.extend_from_slice(lines);
}

fn kind(what: &EntryBody) -> &'static str {
    match what {
        EntryBody::Message { message, .. } => match message.body() {
            Body::Request(_) => "request",
            Body::Notification(_) => "notification",
            Body::Response(_) => "response",
            Body::Batch(_) => "batch",
            Body::Garbled(_) => "garbled",
        },
        EntryBody::Http { .. } => "http",
        EntryBody::Event { .. } => "event",
        EntryBody::ChannelEnded { .. } => "channel_ended",
        EntryBody::Piece { .. } => "piece",
        EntryBody::Stderr { .. } => "stderr",
        EntryBody::Ended(_) => "end",
    }
}

/// Writes the first line and the headers without serde, because each call over HTTP has two heads.
fn put_head(out: &mut Vec<u8>, HttpHead { method, target, status, headers }: &HttpHead) {
    out.push(b'{');
    for (name, text) in [("\"method\":", method), ("\"target\":", target)] {
        if let Some(text) = text {
            out.extend_from_slice(name.as_bytes());
            write_string(out, text);
            out.push(b',');
        }
    }
    if let Some(status) = status {
        out.extend_from_slice(b"\"status\":");
        write_number(out, u64::from(*status));
        out.push(b',');
    }
    out.extend_from_slice(b"\"headers\":[");
    // All headers are checked at once, because there are many and each is short.
    let put = if is_plain(headers.text().as_bytes()) { write_plain_string } else { write_string };
    for (number, (name, value)) in headers.iter().enumerate() {
        out.extend_from_slice(if number == 0 { b"[" } else { b",[" });
        put(out, name);
        out.push(b',');
        put(out, value);
        out.push(b']');
    }
    out.extend_from_slice(b"]}");
}

fn put_from(out: &mut Vec<u8>, from: Side) {
    out.extend_from_slice(match from {
        Side::Client => b",\"from\":\"client\"",
        Side::Server => b",\"from\":\"server\"",
    });
}

pub(super) fn put_channel(out: &mut Vec<u8>, channel: Channel) {
    if channel != Channel::MAIN {
        out.extend_from_slice(b",\"channel\":");
        write_number(out, channel.0);
    }
}

pub(super) fn put_event_id(out: &mut Vec<u8>, event_id: Option<&str>) {
    if let Some(event_id) = event_id {
        out.extend_from_slice(b",\"event_id\":");
        write_string(out, event_id);
    }
}
