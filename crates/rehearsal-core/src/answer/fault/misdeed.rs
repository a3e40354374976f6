//! What a transport is asked to do wrong.

use std::time::Duration;

use bytes::Bytes;

/// What a transport does wrong with one answer, on purpose.
///
/// A transport that has no such thing does the nearest that it has; `docs/reference/faults.md` is the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misdeed {
    /// These bytes as the answer, each framed like a message, whether or not they are one.
    Answer(Vec<Bytes>),
    /// Half of the answer and of its frame, and then nothing.
    Half(Bytes),
    /// The connection ends.
    Disconnect {
        /// The answer.
        answer: Bytes,
        /// When.
        moment: Moment,
    },
    /// Lines that are no messages, before the answer.
    Noise(Vec<String>),
    /// So many bytes that nobody asked for and everybody has to read, before the answer.
    Flood(u64),
    /// The answer in small pieces.
    Drip {
        /// The answer.
        answer: Bytes,
        /// How many bytes a piece has.
        piece: usize,
        /// How long it is from piece to piece.
        pause: Duration,
    },
    /// An HTTP status instead of an answer.
    Refuse(Refused),
    /// The stream breaks off in the middle of the answer, and whoever resumes it gets the rest.
    Cut(Bytes),
    /// The answer as something that it is not.
    ContentType {
        /// The answer.
        answer: Bytes,
        /// What it says it is.
        content_type: String,
    },
}

impl Misdeed {
    /// The answer that it spoils, where it knows one.
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

/// When a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Before the answer.
    Before,
    /// In the middle of it.
    During,
    /// After it.
    After,
}

/// An HTTP status instead of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// From 100 to 999.
    pub status: u16,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// The body, where it is not left to the transport.
    pub body: Option<Bytes>,
    /// A JSON-RPC error that says the same, for transports without statuses.
    pub instead: Bytes,
}

/// What is left of a connection after a misdeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a connection that is over is not served any more"]
pub enum Aftermath {
    /// It goes on.
    GoesOn,
    /// It is over: nothing more is heard or said.
    Over,
}

/// The first half of something.
pub fn half(whole: &Bytes) -> Bytes {
    whole.slice(..whole.len() / 2)
}
