//! Transport faults: faults that the transport carries out.

use std::time::Duration;

use bytes::Bytes;

/// A fault that a transport carries out with one answer.
///
/// A transport that cannot carry out a fault carries out the closest one that it can; `docs/reference/faults.md` has
/// the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransportFault {
    /// Sends these bytes as the answer, each framed like a message, even if they are not one.
    RawAnswers(Vec<Bytes>),
    /// Sends half of the framed answer, and then nothing; the connection stays open.
    Truncate(Bytes),
    /// Closes the connection.
    Disconnect {
        /// The answer.
        answer: Bytes,
        /// When the connection is closed.
        at: DisconnectAt,
    },
    /// Sends lines that are not messages, before the answer.
    Noise(Vec<String>),
    /// Sends this many bytes of unrequested data, which the client must read, before the answer.
    Flood(u64),
    /// Sends the answer in small pieces.
    SlowWrite {
        /// The answer.
        answer: Bytes,
        /// The length of a piece, in bytes.
        piece: usize,
        /// The time between two pieces.
        pause: Duration,
    },
    /// Sends an HTTP status instead of an answer.
    HttpStatus(HttpRefusal),
    /// Closes the stream in the middle of the answer; a client that resumes the stream gets the rest.
    CutStream(Bytes),
    /// Sends the answer with a wrong content type.
    ContentType {
        /// The answer.
        answer: Bytes,
        /// The content type.
        content_type: String,
    },
}

impl TransportFault {
    /// The answer that the fault changes, if it has one.
    pub fn answer(&self) -> Option<&Bytes> {
        match self {
            TransportFault::Truncate(answer)
            | TransportFault::CutStream(answer)
            | TransportFault::Disconnect { answer, .. }
            | TransportFault::SlowWrite { answer, .. }
            | TransportFault::ContentType { answer, .. } => Some(answer),
            TransportFault::RawAnswers(answers) => answers.first(),
            TransportFault::Noise(_) | TransportFault::Flood(_) | TransportFault::HttpStatus(_) => None,
        }
    }
}

/// When a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisconnectAt {
    /// Before the answer.
    Before,
    /// In the middle of the answer.
    During,
    /// After the answer.
    After,
}

/// An HTTP status that is sent instead of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRefusal {
    /// The status, from 100 to 999.
    pub status: u16,
    /// The names and values of the headers.
    pub headers: Vec<(String, String)>,
    /// The body, unless the transport chooses it.
    pub body: Option<Bytes>,
    /// A JSON-RPC error with the same meaning, for transports without statuses.
    pub fallback_error: Bytes,
}

/// The state of a connection after a transport fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a closed connection must not be served any more"]
pub enum AfterFault {
    /// The connection stays open.
    Continue,
    /// The connection is closed: nothing more is received or sent.
    Closed,
}

/// The first half of these bytes.
pub fn first_half(bytes: &Bytes) -> Bytes {
    bytes.slice(..bytes.len() / 2)
}
