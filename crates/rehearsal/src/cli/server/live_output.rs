//! What is shown of the conversation while it goes on.

use rehearsal::client::{ClientBuilder, LogMessage};
use rehearsal::core::exchange::Side;
use rehearsal::core::message::{Message, Method};
use rehearsal::core::redact::Redaction;

use crate::cli::input_request::ShownInputRequest;
use crate::print::{StderrPrinter, log_line, wire_line};

/// How much is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LiveOutput {
    /// What the server logs.
    Logs,
    /// Every message, and the server's stderr.
    Wire,
}

/// Which questions of a server are answered.
#[derive(Clone, Debug)]
pub(super) enum AnsweredMethods {
    /// These.
    These(Vec<Method>),
    /// All, by somebody who tells of those that are not.
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

/// Shows what passes, without its secrets: log messages or the whole wire, and in any case the questions that nobody here can
/// answer.
pub(super) fn message_printer(
    builder: ClientBuilder,
    shown: LiveOutput,
    answered: AnsweredMethods,
    redaction: &Redaction,
    stderr: &StderrPrinter,
) -> ClientBuilder {
    let (listener, without) = (stderr.clone(), redaction.clone());
    let builder = builder.on_message(move |from, message| {
        let clean = without.message(message);
        let message = clean.as_ref().unwrap_or(message);
        match shown {
            LiveOutput::Wire => {
                let (mark, line) = wire_line(from, message);
                listener.wire(mark, line);
            }
            LiveOutput::Logs => {
                if let Some(log) = LogMessage::read(message).filter(|_| from == Side::Server) {
                    listener.server_output(log_line(&log));
                }
            }
        }
        if let Some(question) = unanswered_request(from, message, &answered) {
            listener.note(format_args!("the server requests {question}; there is no answer to it"));
            listener.hint(question.how_to_answer());
        }
    });
    match shown {
        LiveOutput::Logs => builder,
        LiveOutput::Wire => {
            let (listener, without) = (stderr.clone(), redaction.clone());
            builder.on_stderr(move |line| listener.wire("!", without.text(line)))
        }
    }
}

/// A request of the server's that there is no answer to.
fn unanswered_request(from: Side, message: &Message, answered: &AnsweredMethods) -> Option<ShownInputRequest> {
    let request = message.as_request().filter(|_| from == Side::Server)?;
    // What begins a conversation is never a question: whoever says that only repeats it.
    let begins = [Method::INITIALIZE, Method::DISCOVER].contains(&request.method);
    if begins || request.method == Method::PING || answered.covers(&request.method) {
        return None;
    }
    let params = request.params.as_ref().and_then(|params| params.value().ok()).unwrap_or_default();
    Some(ShownInputRequest { method: request.method.clone(), params })
}
