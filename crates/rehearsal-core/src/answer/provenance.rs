//! Where an answer comes from.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::message::{Message, Reply, RequestId};
use crate::script::mock::FaultKind;

/// Who supplied an answer, and so how real it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Provenance {
    /// It follows from the protocol and from what is offered: handshakes, lists, refusals of what makes no sense.
    Protocol,
    /// Somebody wrote it.
    Script {
        /// What was asked for, such as `tool get_forecast`.
        target: Arc<str>,
        /// Which of its rules answered.
        rule: Arc<str>,
    },
    /// The real server said it, once.
    Recording {
        /// Where: `session 3f9a…, call 12`.
        place: Arc<str>,
    },
    /// The real server said it, just now.
    Live,
    /// Nobody wrote it: it was made up to fit a schema.
    Schema {
        /// What was asked for.
        target: Arc<str>,
    },
    /// Nobody wrote it, and nothing was made up.
    Nobody,
}

impl fmt::Display for Provenance {
    /// `script: tool get_forecast, an object with {city: "Oslo"}`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Provenance::Protocol => f.write_str("protocol"),
            Provenance::Script { target, rule } => write!(f, "script: {target}, {rule}"),
            Provenance::Recording { place } => write!(f, "recording: {place}"),
            Provenance::Live => f.write_str("live"),
            Provenance::Schema { target } => write!(f, "from schema: {target}"),
            Provenance::Nobody => f.write_str("no answer"),
        }
    }
}

/// An answer, who supplied it, and what is to go wrong with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// What is said.
    pub reply: Reply,
    /// Who says it.
    pub provenance: Provenance,
    /// How long it takes.
    pub delay: Option<Duration>,
    /// What goes wrong with it.
    pub fault: Option<FaultKind>,
    /// What the person who wrote the mock should know.
    pub remarks: Vec<String>,
    /// A message that is sent in its place, because the rules do not allow what it says; only its id is another.
    pub verbatim: Option<Box<Message>>,
}

impl Answer {
    /// An answer that follows from the protocol.
    pub fn protocol(reply: Reply) -> Answer {
        Answer {
            reply,
            provenance: Provenance::Protocol,
            delay: None,
            fault: None,
            remarks: Vec::new(),
            verbatim: None,
        }
    }

    /// What is sent to whoever asked.
    pub fn message(&self, id: RequestId) -> Message {
        let verbatim = self.verbatim.as_ref().and_then(|verbatim| verbatim.readdressed(&id));
        verbatim.unwrap_or_else(|| Message::reply(id, &self.reply))
    }
}
