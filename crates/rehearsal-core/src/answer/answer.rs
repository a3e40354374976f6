//! An answer: a reply, the source that supplied it, and how it is sent.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::message::{ErrorReply, Message, Reply, RequestId};
use crate::protocol::{Revision, code};
use crate::script::mock::FaultKind;

/// Maximum length of a message, in bytes.
const MESSAGE_LIMIT: usize = 16 << 20;

/// The source that supplied an answer, and so how real it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Provenance {
    /// The protocol source: handshakes, lists, refusals of invalid requests.
    Protocol,
    /// A rule of a mock file.
    Script {
        /// The target, such as `tool get_forecast`.
        target: Arc<str>,
        /// The rule that answered.
        rule: Arc<str>,
    },
    /// A queued response of the harness.
    Harness {
        /// The test case that the response belongs to.
        test_case: Arc<str>,
        /// Its number in the queue, from 1.
        response: usize,
    },
    /// A recorded response.
    Recording {
        /// Where it is recorded: `session 3f9a…, call 12`.
        place: Arc<str>,
        /// Whether it was returned before.
        again: bool,
    },
    /// A real result from an earlier run, kept in the cache.
    Cache {
        /// The key of the cache entry.
        place: Arc<str>,
        /// When the server returned it, in milliseconds since 1970.
        at_ms: u64,
    },
    /// A live server answered just now.
    Live,
    /// An example invented to fit a schema.
    Schema {
        /// What was requested.
        target: Arc<str>,
    },
    /// A made-up value without even a schema.
    Placeholder {
        /// What was requested.
        target: Arc<str>,
    },
    /// No source had an answer, so the request was refused.
    Refusal,
}

impl fmt::Display for Provenance {
    /// `script: tool get_forecast, an object with {city: "Oslo"}`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Provenance::Protocol => f.write_str("protocol"),
            Provenance::Script { target, rule } => write!(f, "script: {target}, {rule}"),
            Provenance::Harness { test_case, response } => {
                write!(f, "harness: test case {test_case:?}, response {response}")
            }
            Provenance::Recording { place, .. } => write!(f, "recording: {place}"),
            Provenance::Cache { place, .. } => write!(f, "cache: {place}"),
            Provenance::Live => f.write_str("live"),
            Provenance::Schema { target } => write!(f, "from schema: {target}"),
            Provenance::Placeholder { target } => write!(f, "placeholder: {target}"),
            Provenance::Refusal => f.write_str("no answer"),
        }
    }
}

/// The version in which a reply is written. The chain brings it into the client's version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrittenFor {
    /// The client's version: nothing is left to do.
    Client,
    /// The newest version, by an author: for older versions it is converted.
    Newest,
    /// Any version, exactly as its author wrote it. Only members that belong to every result of 2026-07-28 are added or
    /// removed.
    Verbatim,
    /// The version of a recording or of a live server; `None` if that is not known.
    Recorded(Option<Revision>),
}

/// The kind of a result: `resultType` since 2026-07-28.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultKind {
    /// The request is done.
    Complete,
    /// The client must send input responses first.
    InputRequired,
    /// A task works on the request.
    Task,
}

/// A reply, its source, and what a fault does to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The result or the error.
    pub reply: Reply,
    /// The version of the reply.
    pub written_for: WrittenFor,
    /// The kind of the result.
    pub kind: ResultKind,
    /// The server that a result of 2026-07-28 names, if it is another than that of the handshake.
    pub server: Option<Arc<serde_json::Value>>,
    /// Which source supplied it.
    pub provenance: Provenance,
    /// The delay before the answer.
    pub delay: Option<Duration>,
    /// The fault that it is sent with.
    pub fault: Option<FaultKind>,
    /// Notes for the author of the mock or for the user of the recording.
    pub remarks: Vec<String>,
    /// A recorded message that breaks the rules and is sent in place of the reply; only its id changes.
    pub verbatim: Option<Box<Message>>,
}

impl Answer {
    /// An answer in the client's version.
    pub fn new(reply: Reply, provenance: Provenance) -> Answer {
        Answer {
            reply,
            written_for: WrittenFor::Client,
            kind: ResultKind::Complete,
            server: None,
            provenance,
            delay: None,
            fault: None,
            remarks: Vec::new(),
            verbatim: None,
        }
    }

    /// An answer that the protocol decides.
    pub fn protocol(reply: Reply) -> Answer {
        Answer::new(reply, Provenance::Protocol)
    }

    /// The refusal of a request that no source answers, with a note for the author or the user.
    pub fn refusal(error: ErrorReply) -> Answer {
        let remarks = vec![error.message.clone()];
        Answer { remarks, ..Answer::new(Reply::Error(error), Provenance::Refusal) }
    }

    /// The message that the client gets. An answer that is too long for a message is an internal error.
    pub fn message(&self, id: RequestId) -> Message {
        let verbatim = self.verbatim.as_ref().and_then(|verbatim| verbatim.with_id(&id));
        let message = verbatim.unwrap_or_else(|| Message::reply(id.clone(), &self.reply));
        let length = message.raw().len();
        if length <= MESSAGE_LIMIT {
            return message;
        }
        let why = format!("{}: the answer has {length} bytes, more than the limit of {MESSAGE_LIMIT}", self.provenance);
        Message::reply(id, &Reply::Error(ErrorReply::new(code::INTERNAL_ERROR, why)))
    }
}
