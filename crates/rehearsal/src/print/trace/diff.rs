//! Differences between two recordings in their printed form.

use std::io::{self, Write};

use rehearsal::core::json::RawJson;
use rehearsal::core::matcher::Mismatch;
use rehearsal::core::trace::RecordedCall;
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use super::row::Row;
use super::timeline::{Columns, fitted};
use crate::print::sanitize_line;
use crate::print::terminal::Terminal;

/// One way in which two recordings differ.
pub(crate) enum CallDifference<'a> {
    /// A call has other params or another answer.
    Changed { before: &'a RecordedCall, after: &'a RecordedCall, mismatches: Vec<Mismatch> },
    /// A call is only in the first recording.
    Removed(&'a RecordedCall),
    /// A call is only in the second recording.
    Added(&'a RecordedCall),
}

/// Prints a difference:
///
/// ```text
/// ~ tools/call get_forecast
///     $.result.content[0].text: expected "Rain", got "Sun"
/// - tools/call get_time {"name":"get_time","arguments":{}}
/// ```
pub(crate) fn print_difference(
    change: &CallDifference<'_>,
    columns: Columns,
    terminal: &Terminal,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (mark, word, call, mismatches) = match change {
        CallDifference::Changed { before, mismatches, .. } => ("~", "changed", *before, mismatches.as_slice()),
        CallDifference::Removed(call) => ("-", "removed", *call, &[][..]),
        CallDifference::Added(call) => ("+", "added", *call, &[][..]),
    };
    let row = Row::call(call, None);
    let method = row.method.as_deref().unwrap_or_default();
    if columns == Columns::Json {
        let place =
            |call: &RecordedCall| json!({"seq": call.request.seq, "at_ms": super::row::milliseconds(call.request.at)});
        let (before, after) = match change {
            CallDifference::Changed { before, after, .. } => (place(before), place(after)),
            CallDifference::Removed(call) => (place(call), Value::Null),
            CallDifference::Added(call) => (Value::Null, place(call)),
        };
        let value = json!({
            "change": word, "from": row.from.map(|from| from.to_string()), "method": method, "subject": row.subject,
            "before": before, "after": after, "mismatches": mismatches,
        });
        serde_json::to_writer(&mut *out, &value)?;
        return writeln!(out);
    }
    let mark_style = terminal.palette.mark;
    let about = [Some(method), row.subject.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let about = sanitize_line(&about).into_owned();
    let room = |used: usize| terminal.width.map(|width| width.saturating_sub(used).max(8));
    let params = match change {
        CallDifference::Changed { .. } => String::new(),
        CallDifference::Removed(call) | CallDifference::Added(call) => {
            let params = call.request.message.params().map(RawJson::as_str).unwrap_or_default();
            fitted(&sanitize_line(params), room(about.width() + 3))
        }
    };
    let line = format!("{about} {params}");
    writeln!(out, "{mark_style}{mark}{mark_style:#} {}", fitted(line.trim_end(), room(2)))?;
    for mismatch in mismatches {
        writeln!(out, "    {}", fitted(&sanitize_line(&mismatch.to_string()), room(4)))?;
    }
    Ok(())
}
