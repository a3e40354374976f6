//! Messages in their printed form: progress, log messages, and every message of the wire.

use rehearsal::client::{LogMessage, ProgressUpdate};
use rehearsal::core::exchange::Side;
use rehearsal::core::message::Message;
use serde_json::Value;

use super::terminal::{lines, sanitize_line};

/// A log message, with its level: `[warning] database: the disk is almost full`.
pub(crate) fn log_line(log: &LogMessage) -> String {
    let logger = log.logger.as_ref().map(|logger| format!("{}: ", sanitize_line(logger))).unwrap_or_default();
    let data = match &log.data {
        Value::String(text) => lines(text.trim_end()).replace('\n', "\n  "),
        other => lines(&other.to_string()).into_owned(),
    };
    format!("[{}] {logger}{data}", sanitize_line(&log.level))
}

/// The progress of a call: `40 % (2 of 5) reading`, or `2 reading` if the total is unknown.
pub(crate) fn progress_line(progress: &ProgressUpdate) -> String {
    let ProgressUpdate { progress, total, message } = progress;
    let message = message.as_ref().map(|message| format!(" {}", sanitize_line(message))).unwrap_or_default();
    match total.filter(|total| *total > 0.0) {
        Some(total) => {
            format!("{:.0} % ({progress} of {total}){message}", (progress / total * 100.0).clamp(0.0, 100.0))
        }
        None => format!("{progress}{message}"),
    }
}

/// The mark and the text of a message: `>` goes to the server, `<` comes from it.
pub(crate) fn wire_line(from: Side, message: &Message) -> (&'static str, String) {
    let mark = match from {
        Side::Client => ">",
        Side::Server => "<",
    };
    // Over HTTP a message may have line ends between its tokens.
    let text = message.text().trim_end().replace(['\r', '\n'], " ");
    (mark, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_log_message_is_printed_with_its_level_and_logger() {
        let log = |logger: Option<&str>, data| {
            log_line(&LogMessage { level: "warning".into(), logger: logger.map(str::to_owned), data })
        };
        assert_eq!(log(Some("db"), json!("full\nvery full\n")), "[warning] db: full\n  very full");
        assert_eq!(log(None, json!({"free": 0})), "[warning] {\"free\":0}");
        assert_eq!(log(None, json!("\u{1b}[2Jgone")), "[warning] \u{fffd}[2Jgone");
    }

    #[test]
    fn progress_is_a_percentage_if_the_total_is_known() {
        let line = |progress, total, message: Option<&str>| {
            progress_line(&ProgressUpdate { progress, total, message: message.map(str::to_owned) })
        };
        assert_eq!(line(2.0, Some(5.0), Some("reading")), "40 % (2 of 5) reading");
        assert_eq!(line(0.5, None, None), "0.5");
        assert_eq!(line(3.0, Some(0.0), None), "3");
        assert_eq!(line(9.0, Some(3.0), None), "100 % (9 of 3)");
    }

    #[test]
    fn a_message_with_line_ends_is_printed_on_one_line() {
        let message = Message::parse("{\"jsonrpc\": \"2.0\",\r\n\"method\": \"ping\", \"id\": 1}\n");
        let (mark, line) = wire_line(Side::Server, &message);
        assert_eq!((mark, line.as_str()), ("<", r#"{"jsonrpc": "2.0",  "method": "ping", "id": 1}"#));
    }
}
