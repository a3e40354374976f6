//! Messages that could not be understood.

use std::fmt;

use super::RequestId;

/// A message that could not be understood, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Garbled {
    /// What is wrong with it.
    pub reason: Reason,
    /// Whose request it speaks of, where that much could be read: whoever waits for that id can be told at once.
    pub id: Option<RequestId>,
}

/// What is wrong with a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Nothing but white space.
    Blank,
    /// Not UTF-8 from this byte on.
    NotUtf8 {
        /// Offset of the first bad byte.
        at: usize,
    },
    /// Text that is not JSON: a log line, a banner, a traceback.
    NotJson {
        /// What the JSON parser said, with the place.
        detail: String,
    },
    /// The stream ended in the middle of a message.
    HalfLine,
    /// More bytes than the limit; the rest was thrown away.
    TooLong {
        /// The limit in bytes.
        limit: usize,
    },
    /// JSON, but neither an object nor a batch.
    NotAnObject {
        /// What it is instead, such as `a number`.
        kind: &'static str,
    },
    /// A batch without messages.
    EmptyBatch,
    /// A key of JSON-RPC that stands twice: which one counts is anybody's guess.
    DuplicateKey {
        /// The key.
        key: &'static str,
    },
    /// `jsonrpc` is absent or not `"2.0"`.
    NotVersion2 {
        /// What stands there, if anything.
        found: Option<String>,
    },
    /// An id that is `null`, a fraction, beyond 64 bits, or no scalar.
    BadId {
        /// The id as it was written.
        found: String,
    },
    /// `method` is not a string.
    BadMethod {
        /// What stands there.
        found: String,
    },
    /// `params` is neither an object nor an array.
    BadParams {
        /// What stands there.
        found: String,
    },
    /// `error` has no integer `code` or no text `message`.
    BadError {
        /// What stands there.
        found: String,
    },
    /// A response with both `result` and `error`.
    ResultAndError,
    /// Both a question and an answer: `method` beside `result` or `error`.
    RequestAndResponse,
    /// No `method`, no `result` and no `error`.
    Purposeless,
    /// A result or error without an id: an answer to nobody.
    NoId,
}

/// How a transport cut a message: reading its bytes again does not find that out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The stream ended in the middle of it.
    HalfLine,
    /// It was longer than this many bytes.
    TooLong {
        /// The limit in bytes.
        limit: usize,
    },
}

impl Reason {
    /// How the transport cut the message, where that is what is wrong with it. Everything else is found again by whoever
    /// reads the bytes.
    pub fn cut(&self) -> Option<Cut> {
        match self {
            Reason::HalfLine => Some(Cut::HalfLine),
            Reason::TooLong { limit } => Some(Cut::TooLong { limit: *limit }),
            Reason::Blank
            | Reason::NotUtf8 { .. }
            | Reason::NotJson { .. }
            | Reason::NotAnObject { .. }
            | Reason::EmptyBatch
            | Reason::DuplicateKey { .. }
            | Reason::NotVersion2 { .. }
            | Reason::BadId { .. }
            | Reason::BadMethod { .. }
            | Reason::BadParams { .. }
            | Reason::BadError { .. }
            | Reason::ResultAndError
            | Reason::RequestAndResponse
            | Reason::Purposeless
            | Reason::NoId => None,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Blank => f.write_str("a blank line"),
            Reason::NotUtf8 { at } => write!(f, "not UTF-8 from byte {at} on"),
            Reason::NotJson { detail } => write!(f, "not JSON: {detail}"),
            Reason::HalfLine => f.write_str("half a line: the stream ended in the middle of a message"),
            Reason::TooLong { limit } => write!(f, "longer than the limit of {limit} bytes"),
            Reason::NotAnObject { kind } => write!(f, "JSON, but {kind} instead of an object"),
            Reason::EmptyBatch => f.write_str("an empty batch"),
            Reason::DuplicateKey { key } => write!(f, "`{key}` stands twice"),
            Reason::NotVersion2 { found: None } => f.write_str("no `\"jsonrpc\": \"2.0\"`"),
            Reason::NotVersion2 { found: Some(found) } => write!(f, "`jsonrpc` is {found} instead of \"2.0\""),
            Reason::BadId { found } => write!(f, "`id` is {found} instead of a string or a 64-bit integer"),
            Reason::BadMethod { found } => write!(f, "`method` is {found} instead of a string"),
            Reason::BadParams { found } => write!(f, "`params` is {found} instead of an object"),
            Reason::BadError { found } => {
                write!(f, "`error` is {found} instead of an object with `code` and `message`")
            }
            Reason::ResultAndError => f.write_str("both `result` and `error`"),
            Reason::RequestAndResponse => f.write_str("both `method` and a result or error"),
            Reason::Purposeless => f.write_str("no `method`, no `result`, no `error`"),
            Reason::NoId => f.write_str("a response without `id`"),
        }
    }
}

impl fmt::Display for Garbled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}
