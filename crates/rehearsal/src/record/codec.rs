//! The lines of a journal, until the core writes them.

use rehearsal_core::exchange::Side;
use rehearsal_core::trace::{Entry, Start, What};
use serde_json::json;

pub(super) fn write_start(out: &mut Vec<u8>, start: &Start) {
    let started_at = start.started_at.map(|at| at.to_string());
    let line = json!({
        "type": "start", "format": 1, "session_id": start.session_id, "server_info": start.server_info,
        "started_at": started_at, "metadata": start.metadata,
    });
    out.extend_from_slice(line.to_string().as_bytes());
    out.push(b'\n');
}

pub(super) fn write_entry(out: &mut Vec<u8>, entry: &Entry) {
    let at_ms = entry.at.as_secs_f64() * 1e3;
    let side = |from: &Side| match from {
        Side::Client => "client",
        Side::Server => "server",
    };
    let what = match &entry.what {
        What::Message { from, channel, message, event_id } => json!({
            "type": "message", "from": side(from), "channel": channel.0, "text": message.text(), "event_id": event_id,
        }),
        What::Piece { from, offset, bytes } => json!({
            "type": "piece", "from": side(from), "offset": offset, "text": String::from_utf8_lossy(bytes),
        }),
        other => json!({"type": "other", "what": format!("{other:?}")}),
    };
    let line = json!({"seq": entry.seq, "at_ms": at_ms, "what": what});
    out.extend_from_slice(line.to_string().as_bytes());
    out.push(b'\n');
}
