//! Statistics of a recording in their printed form.

use std::io::{self, Write};
use std::time::Duration;

use rehearsal::core::exchange::Side;
use rehearsal::core::trace::{CallStats, StatKey, StatKind, Stats};
use serde_json::{Value, json};

use super::row::milliseconds;
use super::row::took;
use super::timeline::{Columns, plural};
use crate::print::byte_size;
use crate::print::table::{Cell, Table};
use crate::print::terminal::Terminal;

/// Prints the statistics:
///
/// ```text
/// 1 session, 3 calls, 1 failed, 2 notifications, 1.2 KiB
///
/// METHOD        NAME          COUNT  FAILED  P50      P95      MAX      SIZE
/// → tools/call  get_forecast  2      1       12.1 ms  13.0 ms  13.0 ms  612 bytes
/// ```
pub(crate) fn print_stats(stats: &Stats, columns: Columns, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
    match columns {
        Columns::Json => {
            serde_json::to_writer(&mut *out, &json(stats))?;
            writeln!(out)
        }
        Columns::Text => text(stats, terminal, out),
    }
}

fn text(stats: &Stats, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
    let mut words = vec![plural(stats.sessions, "session"), plural(stats.calls(), "call")];
    words.push(format!("{} failed", stats.failed()));
    words.push(plural(stats.notifications(), "notification"));
    if stats.garbled > 0 {
        words.push(format!("{} garbled", stats.garbled));
    }
    if stats.stderr > 0 {
        words.push(plural(stats.stderr, "line") + " of stderr");
    }
    words.push(byte_size(usize::try_from(stats.bytes).unwrap_or(usize::MAX)));
    writeln!(out, "{}", words.join(", "))?;
    if let (Some(from), Some(to)) = (stats.started_at, stats.ended_at) {
        writeln!(out, "from {from} to {to}")?;
    }
    if stats.groups.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    let mut table = Table::new(["METHOD", "NAME", "COUNT", "FAILED", "P50", "P95", "MAX", "SIZE"]);
    for (group, counts) in &stats.groups {
        let StatKey { is_call, from, method, subject } = group;
        let arrow = match from {
            Side::Client => "→",
            Side::Server => "←",
        };
        let time = |duration: Option<Duration>| duration.map(took).unwrap_or_default();
        let failed = match is_call {
            StatKind::Call => counts.failed.to_string(),
            StatKind::Notification => String::new(),
        };
        let cells = [
            format!("{arrow} {method}"),
            subject.clone().unwrap_or_default(),
            counts.count.to_string(),
            failed,
            time(counts.latency.percentile(50)),
            time(counts.latency.percentile(95)),
            time(counts.latency.max()),
            byte_size(usize::try_from(counts.bytes).unwrap_or(usize::MAX)),
        ];
        table.row(cells.map(Cell::Name));
    }
    table.print(terminal, out)
}

fn json(stats: &Stats) -> Value {
    let group = |(group, counts): (&StatKey, &CallStats)| {
        let time = |duration: Option<Duration>| duration.map(milliseconds);
        json!({
            "type": match group.is_call { StatKind::Call => "call", StatKind::Notification => "notification" },
            "from": group.from.to_string(),
            "method": group.method,
            "subject": group.subject,
            "count": counts.count,
            "failed": counts.failed,
            "p50_ms": time(counts.latency.percentile(50)),
            "p95_ms": time(counts.latency.percentile(95)),
            "max_ms": time(counts.latency.max()),
            "bytes": counts.bytes,
        })
    };
    json!({
        "sessions": stats.sessions,
        "calls": stats.calls(),
        "failed": stats.failed(),
        "notifications": stats.notifications(),
        "garbled": stats.garbled,
        "stderr_lines": stats.stderr,
        "bytes": stats.bytes,
        "started_at": stats.started_at.map(|at| at.to_string()),
        "ended_at": stats.ended_at.map(|at| at.to_string()),
        "methods": stats.groups.iter().map(group).collect::<Vec<_>>(),
    })
}
