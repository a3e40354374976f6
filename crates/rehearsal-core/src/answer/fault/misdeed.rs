//! Transport faults: faults that the transport carries out.

use std::time::Duration;

use bytes::Bytes;

/// A fault that a transport carries out with one answer.
///
/// A transport that cannot carry out a fault carries out the closest one that it can; `docs/reference/faults.md` has
/// the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misdeed {
    /// Sends these bytes as the answer, each framed like a message, even if they are not one.
    Answer(Vec<Bytes>),
    /// Sends half of the answer and of its frame, and then nothing.
    Half(Bytes),
    /// Closes the connection.
    Disconnect {
        /// The answer.
        answer: Bytes,
        /// When the connection is closed.
        moment: Moment,
    },
    /// Sends lines that are no messages, before the answer.
    Noise(Vec<String>),
    /// Sends this many bytes of unrequested data, which the client must read, before the answer.
    Flood(u64),
    /// Sends the answer in small pieces.
    Drip {
        /// The answer.
        answer: Bytes,
        /// The length of a piece, in bytes.
        piece: usize,
        /// The time between two pieces.
        pause: Duration,
    },
    /// Sends an HTTP status instead of an answer.
    Refuse(Refused),
    /// Closes the stream in the middle of the answer; a client that resumes the stream gets the rest.
    Cut(Bytes),
    /// Sends the answer with a wrong content type.
    ContentType {
        /// The answer.
        answer: Bytes,
        /// The content type.
        content_type: String,
    },
}

impl Misdeed {
    /// The answer that the fault changes, if it has one.
    pub fn answer(&self) -> Option<&Bytes> {
        match self {
            Misdeed::Half(answer)
            | Misdeed::Cut(answer)
            | Misdeed::Disconnect { answer, .. }
            | Misdeed::Drip { answer, .. }
            | Misdeed::ContentType { answer, .. } => Some(answer),
            Misdeed::Answer(answers) => answers.first(),
            Misdeed::Noise(_) | Misdeed::Flood(_) | Misdeed::Refuse(_) => None,
        }
    }
}

/// When a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Before the answer.
    Before,
    /// In the middle of the answer.
    During,
    /// After the answer.
    After,
}

/// An HTTP status that is sent instead of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// From 100 to 999.
    pub status: u16,
    /// The names and values of the headers.
    pub headers: Vec<(String, String)>,
    /// The body, unless the transport chooses it.
    pub body: Option<Bytes>,
    /// A JSON-RPC error with the same meaning, for transports without statuses.
    pub instead: Bytes,
}

/// The state of a connection after a transport fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a connection that is over is not served any more"]
pub enum Aftermath {
    /// The connection stays open.
    GoesOn,
    /// The connection is closed: nothing more is received or sent.
    Over,
}

/// The first half of some bytes.
pub fn half(whole: &Bytes) -> Bytes {
    whole.slice(..whole.len() / 2)
}
