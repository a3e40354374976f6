//! What differs between two recordings.

use std::io::{self, Write};

use rehearsal::core::json::RawJson;
use rehearsal::core::matcher::Mismatch;
use rehearsal::core::trace::Call;
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use super::row::Row;
use super::timeline::{Columns, fitted};
use crate::print::one_line;
use crate::print::screen::Screen;

/// One way in which two recordings differ.
pub(crate) enum Change<'a> {
    /// A call is not what it was.
    Changed { before: &'a Call, after: &'a Call, mismatches: Vec<Mismatch> },
    /// A call is no longer made.
    Removed(&'a Call),
    /// A call was not made before.
    Added(&'a Call),
}

/// Prints a change:
///
/// ```text
/// ~ tools/call get_forecast
///     $.result.content[0].text: expected "Rain", got "Sun"
/// - tools/call get_time {"name":"get_time","arguments":{}}
/// ```
pub(crate) fn print_change(
    change: &Change<'_>,
    columns: Columns,
    screen: &Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (mark, word, call, mismatches) = match change {
        Change::Changed { before, mismatches, .. } => ("~", "changed", *before, mismatches.as_slice()),
        Change::Removed(call) => ("-", "removed", *call, &[][..]),
        Change::Added(call) => ("+", "added", *call, &[][..]),
    };
    let row = Row::call(call);
    let method = row.method.as_deref().unwrap_or_default();
    if columns == Columns::Json {
        let place = |call: &Call| json!({"seq": call.request.seq, "at_ms": super::row::milliseconds(call.request.at)});
        let (before, after) = match change {
            Change::Changed { before, after, .. } => (place(before), place(after)),
            Change::Removed(call) => (place(call), Value::Null),
            Change::Added(call) => (Value::Null, place(call)),
        };
        let value = json!({
            "change": word, "from": row.from.map(|from| from.to_string()), "method": method, "subject": row.subject,
            "before": before, "after": after, "mismatches": mismatches,
        });
        serde_json::to_writer(&mut *out, &value)?;
        return writeln!(out);
    }
    let mark_style = screen.palette.mark;
    let about = [Some(method), row.subject.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let about = one_line(&about).into_owned();
    let room = |used: usize| screen.width.map(|width| width.saturating_sub(used).max(8));
    let params = match change {
        Change::Changed { .. } => String::new(),
        Change::Removed(call) | Change::Added(call) => {
            let params = call.request.message.params().map(RawJson::as_str).unwrap_or_default();
            fitted(&one_line(params), room(about.width() + 3))
        }
    };
    let line = format!("{about} {params}");
    writeln!(out, "{mark_style}{mark}{mark_style:#} {}", fitted(line.trim_end(), room(2)))?;
    for mismatch in mismatches {
        writeln!(out, "    {}", fitted(&one_line(&mismatch.to_string()), room(4)))?;
    }
    Ok(())
}
