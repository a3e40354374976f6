//! A recording in its recorded order, in its printed form.

use std::io::{self, Write};
use std::time::Duration;

use jiff::Timestamp;
use rehearsal::core::exchange::Side;
use rehearsal::core::trace::dialect::IMPORTED;
use rehearsal::core::trace::{
    CallStatus, EntryBody, RecordedCall, RelatedEvent, SessionEnd, SessionStart, TimelineItem,
};
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use super::row::took;
use super::row::{Row, end_text};
use crate::print::sanitize_line;
use crate::print::terminal::Terminal;
use crate::print::terminal::cut;

/// The details that are printed with each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Detail {
    /// The arguments of each call.
    pub(crate) arguments: bool,
    /// Params and results too.
    pub(crate) values: bool,
    /// Successful HTTP requests too.
    pub(crate) http: bool,
}

/// The format of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Columns {
    /// Text for users.
    Text,
    /// One JSON object a line, for programs.
    Json,
}

/// The column of the latency of a call, on a terminal that is wide enough.
const LATENCY_COLUMN: usize = 65;
/// The width of the columns before the arrow: the numbers of the call and of its messages, and the time.
const LEAD: usize = 26;

/// Prints the items of a timeline.
pub(crate) struct TimelinePrinter<'a> {
    terminal: Terminal,
    columns: Columns,
    detail: Detail,
    out: &'a mut dyn Write,
    session: SessionTotals,
    /// True before the first session is printed.
    is_first: bool,
}

/// Numbers the sessions of a recording and the client's calls of each session, from 1. The reports of `verify`,
/// `replay` and `trace check` use the same numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Numbering {
    pub(crate) session: u64,
    calls: u64,
}

impl Numbering {
    /// Begins the next session.
    pub(crate) fn next_session(&mut self) {
        *self = Numbering { session: self.session + 1, calls: 0 };
    }

    /// The number of a call; `None` for a server request.
    pub(crate) fn call(&mut self, call: &RecordedCall) -> Option<u64> {
        let is_from_client = call.asker == Side::Client;
        self.calls += u64::from(is_from_client);
        is_from_client.then_some(self.calls)
    }
}

#[derive(Debug, Default)]
struct SessionTotals {
    number: u64,
    id: String,
    started_at: Option<Timestamp>,
    calls: u64,
    failures: u64,
    others: u64,
}

impl<'a> TimelinePrinter<'a> {
    pub(crate) fn new(terminal: &Terminal, columns: Columns, detail: Detail, out: &'a mut dyn Write) -> Self {
        TimelinePrinter { terminal: *terminal, columns, detail, out, session: SessionTotals::default(), is_first: true }
    }

    /// Prints an item:
    ///
    /// ```text
    /// session 0198c2  weather 1.2  node server.js
    /// started 2026-07-28T12:00:00Z
    ///     0.012  → tools/call get_forecast            12.1 ms  ok
    ///     0.015    ← notifications/progress                    40 % (2 of 5)
    /// ended 2026-07-28T12:00:05Z, after 5.00 s: the client closed it
    /// 1 call, none failed, 1 other message
    /// ```
    pub(crate) fn item(&mut self, item: &TimelineItem, numbering: &mut Numbering) -> io::Result<()> {
        match item {
            TimelineItem::Start(start) => self.start(numbering.session, start),
            TimelineItem::Call { call, inside } => {
                let row = Row::call(call, numbering.call(call));
                self.count(&row);
                self.row(&row, None)?;
                let http = self.detail.http;
                for event in inside.iter().filter(|event| http || !is_usual_inside(event)) {
                    let inner = inside_row(event);
                    self.count(&inner);
                    self.row(&inner, Some(row.seq))?;
                }
                Ok(())
            }
            TimelineItem::Entry(entry) => {
                if !self.detail.http && is_usual_http(&entry.what) {
                    return Ok(());
                }
                let row = Row::entry(entry);
                self.count(&row);
                self.row(&row, None)
            }
            TimelineItem::Finish { ended_at, end } => self.finish(*ended_at, end.as_ref()),
        }
    }

    fn count(&mut self, row: &Row) {
        match &row.status {
            Some(status) => {
                self.session.calls += 1;
                self.session.failures += u64::from(status.is_failure());
            }
            None if matches!(row.kind, "notification" | "garbled" | "response" | "request") => self.session.others += 1,
            None => {}
        }
    }

    /// Prints the head of a session: its number, its server, its metadata, and the names of the columns.
    pub(crate) fn start(&mut self, number: u64, start: &SessionStart) -> io::Result<()> {
        let SessionStart { session_id, server_info, started_at, metadata } = start;
        self.session =
            SessionTotals { number, id: session_id.clone(), started_at: *started_at, ..SessionTotals::default() };
        if self.columns == Columns::Json {
            return self.json(&json!({
                "type": "start", "session": number, "session_id": session_id, "server_info": server_info,
                "started_at": started_at.map(|at| at.to_string()), "metadata": metadata,
            }));
        }
        if !std::mem::take(&mut self.is_first) {
            writeln!(self.out)?;
        }
        let heading = self.terminal.palette.heading;
        let who = server_text(server_info);
        let line = [number.to_string(), sanitize_line(session_id).into_owned(), who].join("  ");
        let line = self.cut(line.trim_end(), "session ".len());
        writeln!(self.out, "{heading}session{heading:#} {line}")?;
        let mut facts: Vec<String> = started_at.iter().map(|at| format!("started {at}")).collect();
        // The metadata that an import keeps for the export is of no use to users.
        let metadata = metadata.iter().filter(|(key, _)| key.as_str() != IMPORTED);
        facts.extend(metadata.map(|(key, value)| match value {
            Value::String(text) => format!("{key}={text}"),
            other => format!("{key}={other}"),
        }));
        if !facts.is_empty() {
            let line = self.cut(&sanitize_line(&facts.join("  ")), 0);
            writeln!(self.out, "{line}")?;
        }
        writeln!(self.out, "{heading}{:>4}  {:<9} {:>8}{heading:#}", "CALL", "MESSAGES", "TIME")
    }

    /// Prints one row; a row inside a call is indented.
    pub(crate) fn row(&mut self, row: &Row, inside: Option<u64>) -> io::Result<()> {
        if self.columns == Columns::Json {
            let value = row.json(self.session.number, &self.session.id, inside, self.detail);
            return self.json(&value);
        }
        let time = format!("{}.{:03}", row.at.as_secs(), row.at.subsec_millis());
        let indent = if inside.is_some() { "  " } else { "" };
        let call = row.number.map(|number| number.to_string()).unwrap_or_default();
        let response = row.response_seq.map(|seq| format!(", {seq}")).unwrap_or_default();
        let messages = format!("{}{response}", row.seq);
        let mut line = format!("{call:>4}  {messages:<9} {time:>8}  {indent}{}", sanitize_line(&lead(row)));
        let mut width = line.width();
        if let Some(subject) = &row.subject {
            let room = self.terminal.width.map(|terminal| terminal / 2);
            let (subject, green) = (fitted(&sanitize_line(subject), room), self.terminal.palette.name);
            width += 1 + subject.width();
            line.push_str(&format!(" {green}{subject}{green:#}"));
        }
        let outcome = outcome_text(row);
        if row.status.is_some() {
            let gap = self
                .terminal
                .width
                .map_or(LATENCY_COLUMN, |terminal| LATENCY_COLUMN.min(terminal / 2))
                .saturating_sub(width);
            let took = row.took.map(took).unwrap_or_default();
            line.push_str(&format!("{:gap$}{took:>10}  ", ""));
            width += gap + 12;
        } else if !outcome.is_empty() {
            line.push_str("  ");
            width += 2;
        }
        let style = match &row.status {
            Some(status) if status.is_failure() => self.terminal.palette.error,
            Some(_) | None => anstyle::Style::new(),
        };
        let outcome = self.cut(&outcome, width);
        if outcome.is_empty() {
            writeln!(self.out, "{}", line.trim_end())?;
        } else {
            writeln!(self.out, "{line}{style}{outcome}{style:#}")?;
        }
        for (name, value) in row.json_values(self.detail) {
            let lead = format!("{:LEAD$}{indent}  {name} ", "");
            let text = self.cut(&sanitize_line(value.as_str()), lead.width());
            writeln!(self.out, "{lead}{text}")?;
        }
        Ok(())
    }

    /// Prints the end of a session and its totals.
    pub(crate) fn finish(&mut self, ended_at: Option<Timestamp>, end: Option<&SessionEnd>) -> io::Result<()> {
        let SessionTotals { calls, failures, others, .. } = self.session;
        if self.columns == Columns::Json {
            let value = json!({
                "type": "finish", "session": self.session.number, "session_id": self.session.id, "ended_at": ended_at.map(|at| at.to_string()),
                "end": end.map(end_text), "calls": calls, "failed": failures, "other_messages": others,
            });
            return self.json(&value);
        }
        let mut line = "ended".to_owned();
        if let Some(ended_at) = ended_at {
            line.push_str(&format!(" {ended_at}"));
        }
        let lasted = self.session.started_at.zip(ended_at).map(|(from, to)| to.duration_since(from));
        if let Some(lasted) = lasted.and_then(|lasted| Duration::try_from(lasted).ok()) {
            line.push_str(&format!(", after {}", took(lasted)));
        }
        let how = end.map_or("no end was recorded".to_owned(), end_text);
        let line = self.cut(&sanitize_line(&format!("{line}: {how}")), 0);
        writeln!(self.out, "{line}")?;
        let failed = match failures {
            0 => "none failed".to_owned(),
            count => format!("{count} failed"),
        };
        writeln!(self.out, "{}, {failed}, {}", plural(calls, "call"), plural(others, "other message"))
    }

    fn json(&mut self, value: &Value) -> io::Result<()> {
        serde_json::to_writer(&mut *self.out, value)?;
        writeln!(self.out)
    }

    /// Cuts a text to the width that is left.
    fn cut(&self, text: &str, used: usize) -> String {
        fitted(text, self.terminal.width.map(|width| width.saturating_sub(used).max(8)))
    }
}

/// The direction and the kind of a row: `→ tools/call`, `← garbled`, `stderr`.
fn lead(row: &Row) -> String {
    let arrow = match row.from {
        Some(Side::Client) => "→ ",
        Some(Side::Server) => "← ",
        None => "",
    };
    let kind = match row.kind {
        "call" | "notification" | "request" => "",
        "channel_ended" => "the stream ended",
        other => other,
    };
    let method = row.method.as_deref().unwrap_or_default();
    let space = if kind.is_empty() || method.is_empty() { "" } else { " " };
    format!("{arrow}{kind}{space}{method}")
}

/// The text at the end of a row.
fn outcome_text(row: &Row) -> String {
    let status = row.status.as_ref().map(ToString::to_string);
    let words = [status, row.text.clone()].into_iter().flatten().collect::<Vec<_>>().join("  ");
    sanitize_line(&words).into_owned()
}

/// The row of a related event of a call.
fn inside_row(event: &RelatedEvent) -> Row {
    match event {
        RelatedEvent::Call(call) => Row::call(call, None),
        RelatedEvent::Entry(entry) => Row::entry(entry),
    }
}

/// True for successful HTTP, which only repeats that a message was sent and received.
fn is_usual_inside(event: &RelatedEvent) -> bool {
    matches!(event, RelatedEvent::Entry(entry) if is_usual_http(&entry.what))
}

fn is_usual_http(what: &EntryBody) -> bool {
    match what {
        EntryBody::Http { head, .. } => head.status.is_none_or(|status| (200..300).contains(&status)),
        EntryBody::ChannelEnded { why, .. } => why.is_none(),
        EntryBody::Event { .. } => true,
        EntryBody::Message { .. } | EntryBody::Stderr { .. } | EntryBody::Piece { .. } | EntryBody::Ended(_) => false,
    }
}

/// `weather 1.2  node server.js`
pub(crate) fn server_text(info: &serde_json::Map<String, Value>) -> String {
    let text = |key: &str| info.get(key).and_then(Value::as_str);
    let mut words = Vec::new();
    let name: Vec<&str> = [text("name"), text("version")].into_iter().flatten().collect();
    words.push(name.join(" "));
    let arguments = info.get("arguments").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let command: Vec<&str> = text("command").into_iter().chain(arguments).collect();
    words.push(command.join(" "));
    words.extend(text("url").map(str::to_owned));
    words.retain(|word| !word.is_empty());
    sanitize_line(&words.join("  ")).into_owned()
}

/// Cuts a text to the given width; without one, returns all of it.
pub(super) fn fitted(text: &str, room: Option<usize>) -> String {
    room.map_or_else(|| text.to_owned(), |room| cut(text, room))
}

/// `1 call`, `2 calls`
pub(crate) fn plural(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// True for a failed call or a garbled message.
pub(crate) fn failed(row: &Row) -> bool {
    row.status.as_ref().is_some_and(CallStatus::is_failure) || row.kind == "garbled"
}
