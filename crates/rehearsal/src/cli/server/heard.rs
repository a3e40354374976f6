//! What is shown of the conversation while it goes on.

use rehearsal::client::{ClientBuilder, LogMessage};
use rehearsal::core::exchange::Side;
use rehearsal::core::message::{Message, Method};
use rehearsal::core::redact::Redaction;

use crate::cli::verdict::Question;
use crate::print::{Talk, log_line, wire_line};

/// How much is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// What the server logs.
    Logs,
    /// Every message, and the server's stderr.
    Wire,
}

/// Which questions of a server are answered.
#[derive(Clone, Debug)]
pub(super) enum Answered {
    /// These.
    These(Vec<Method>),
    /// All, by somebody who tells of those that are not.
    All,
}

impl Answered {
    fn covers(&self, method: &Method) -> bool {
        match self {
            Answered::These(methods) => methods.contains(method),
            Answered::All => true,
        }
    }
}

/// Shows what passes, without its secrets: log messages or the whole wire, and in any case the questions that nobody here can
/// answer.
pub(super) fn heard(
    builder: ClientBuilder,
    shown: Shown,
    answered: Answered,
    redaction: &Redaction,
    talk: &Talk,
) -> ClientBuilder {
    let (listener, without) = (talk.clone(), redaction.clone());
    let builder = builder.on_message(move |from, message| {
        let clean = without.message(message);
        let message = clean.as_ref().unwrap_or(message);
        match shown {
            Shown::Wire => {
                let (mark, line) = wire_line(from, message);
                listener.wire(mark, line);
            }
            Shown::Logs => {
                if let Some(log) = LogMessage::read(message).filter(|_| from == Side::Server) {
                    listener.overheard(log_line(&log));
                }
            }
        }
        if let Some(question) = unanswered(from, message, &answered) {
            listener.say(format_args!("the server requests {question}; there is no answer to it"));
            listener.hint(question.how_to_answer());
        }
    });
    match shown {
        Shown::Logs => builder,
        Shown::Wire => {
            let (listener, without) = (talk.clone(), redaction.clone());
            builder.on_stderr(move |line| listener.wire("!", without.text(line)))
        }
    }
}

/// A request of the server's that there is no answer to.
fn unanswered(from: Side, message: &Message, answered: &Answered) -> Option<Question> {
    let request = message.as_request().filter(|_| from == Side::Server)?;
    // What begins a conversation is never a question: whoever says that only repeats it.
    let begins = [Method::INITIALIZE, Method::DISCOVER].contains(&request.method);
    if begins || request.method == Method::PING || answered.covers(&request.method) {
        return None;
    }
    let params = request.params.as_ref().and_then(|params| params.value().ok()).unwrap_or_default();
    Some(Question { method: request.method.clone(), params })
}
