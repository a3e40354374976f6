//! Prints log messages, or all messages, while a verb runs.

use rehearsal::client::{ClientBuilder, LogMessage};
use rehearsal::core::exchange::Side;
use rehearsal::core::message::{Message, Method};
use rehearsal::core::redact::Redaction;

use crate::cli::input_request::ShownInputRequest;
use crate::print::{StderrPrinter, log_line, wire_line};

/// The messages that are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LiveOutput {
    /// The log messages of the server.
    Logs,
    /// Every message, and the server's stderr.
    Wire,
}

/// The server requests that have an answer.
#[derive(Clone, Debug)]
pub(super) enum AnsweredMethods {
    /// Requests with these methods.
    These(Vec<Method>),
    /// All requests; the caller reports those without an answer.
    All,
}

impl AnsweredMethods {
    fn covers(&self, method: &Method) -> bool {
        match self {
            AnsweredMethods::These(methods) => methods.contains(method),
            AnsweredMethods::All => true,
        }
    }
}

/// Prints log messages or all messages, redacted, and always the server requests without an answer.
pub(super) fn message_printer(
    builder: ClientBuilder,
    shown: LiveOutput,
    answered: AnsweredMethods,
    redaction: &Redaction,
    stderr: &StderrPrinter,
) -> ClientBuilder {
    let (printer, redaction_rules) = (stderr.clone(), redaction.clone());
    let builder = builder.on_message(move |from, message| {
        let redacted = redaction_rules.message(message);
        let message = redacted.as_ref().unwrap_or(message);
        match shown {
            LiveOutput::Wire => {
                let (mark, line) = wire_line(from, message);
                printer.wire(mark, line);
            }
            LiveOutput::Logs => {
                if let Some(log) = LogMessage::read(message).filter(|_| from == Side::Server) {
                    printer.server_output(log_line(&log));
                }
            }
        }
        if let Some(request) = unanswered_request(from, message, &answered) {
            printer.note(format_args!("the server requests {request}; there is no answer to it"));
            printer.hint(request.how_to_answer());
        }
    });
    match shown {
        LiveOutput::Logs => builder,
        LiveOutput::Wire => {
            let (printer, redaction_rules) = (stderr.clone(), redaction.clone());
            builder.on_stderr(move |line| printer.wire("!", redaction_rules.text(line)))
        }
    }
}

/// A server request without an answer.
fn unanswered_request(from: Side, message: &Message, answered: &AnsweredMethods) -> Option<ShownInputRequest> {
    let request = message.as_request().filter(|_| from == Side::Server)?;
    // A server that sends `initialize` only echoes the request of the client.
    let is_echo = [Method::INITIALIZE, Method::DISCOVER].contains(&request.method);
    if is_echo || request.method == Method::PING || answered.covers(&request.method) {
        return None;
    }
    let params = request.params.as_ref().and_then(|params| params.value().ok()).unwrap_or_default();
    Some(ShownInputRequest { method: request.method.clone(), params })
}
