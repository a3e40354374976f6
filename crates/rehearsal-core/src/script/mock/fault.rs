//! Faults of a mock file.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::Delay;
use crate::matcher::Matcher;
use crate::script::{Located, Parsed};

/// A fault, and the requests that it applies to.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FaultRule {
    /// The fault.
    pub fault: Located<FaultKind>,
    /// A matcher for the method. Without this key, requests of every method match.
    pub method: Option<Located<Parsed<Matcher>>>,
    /// A matcher for the number of the request among those of the matched methods, from 1.
    pub call: Option<Located<Parsed<Matcher>>>,
    /// The probability of the fault, from 0 to 1. The default is 1.
    pub probability: Option<Located<f64>>,
    /// The seed of the random choice. The same seed selects the same requests in every run.
    pub seed: Option<u64>,
}

/// What the mock does wrong on purpose. A transport that cannot carry out a fault carries out the closest one that it
/// can; the reference of faults has a table.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FaultKind {
    /// The answer is sent after a delay.
    Delay(Delay),
    /// The request is never answered.
    Hang,
    /// The connection is closed before the answer.
    DisconnectBefore,
    /// The connection is closed in the middle of the answer.
    DisconnectDuring,
    /// The connection is closed after the answer.
    DisconnectAfter,
    /// Half of the answer is sent, without the end of its line, and the connection stays open.
    HalfLine,
    /// The answer is not valid JSON.
    MalformedJson,
    /// The answer is not valid UTF-8.
    InvalidUtf8,
    /// The base64 of images, audio and blobs in the answer is invalid.
    InvalidBase64,
    /// The answer has an id that no request has.
    WrongId,
    /// The answer is sent twice.
    DuplicateAnswer,
    /// The answer is sent only after the client has cancelled the request.
    AnswerAfterCancel,
    /// These lines are written to stdout before the answer.
    NoiseOnStdout(Vec<String>),
    /// This many bytes are written to stderr before the answer.
    FloodOfStderr(u64),
    /// The answer is padded to this many bytes.
    Oversize(u64),
    /// The answer is sent in small pieces.
    SlowDrip {
        /// The size of a piece in bytes.
        bytes: usize,
        /// The time between two pieces.
        every: Delay,
    },
    /// The server exits with this status.
    Exit(i32),
    /// The HTTP request is rejected with a status.
    Http(HttpFault),
    /// The stream is closed in the middle of the answer. A client that resumes the stream gets the rest.
    SseCut,
    /// The answer has this `Content-Type`.
    ContentType(String),
    /// The structured content does not match the output schema.
    WrongStructuredContent,
}

/// An HTTP status in place of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpFault {
    /// The status, such as 401, 404, 429, 500 or 502.
    pub status: u16,
    /// The `Retry-After` header: how long the client should wait, in seconds.
    pub retry_after: Option<u64>,
    /// The `WWW-Authenticate` header.
    pub www_authenticate: Option<String>,
    /// Further headers.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The body of the response.
    pub body: Option<String>,
}

impl FaultKind {
    /// Checks the fault; the error is a lowercase fragment.
    pub fn check(&self) -> Result<(), String> {
        match self {
            FaultKind::Http(fault) => fault.check(),
            FaultKind::Exit(status) if !(0..=255).contains(status) => {
                Err(format!("an exit status is from 0 to 255, and {status} is not"))
            }
            FaultKind::SlowDrip { bytes: 0, .. } => Err("`bytes` of `slow_drip` must be at least 1".to_owned()),
            FaultKind::Oversize(bytes) | FaultKind::FloodOfStderr(bytes) if *bytes > MAX_NOISE => {
                Err(format!("{bytes} bytes are more than the limit of {MAX_NOISE}"))
            }
            FaultKind::ContentType(text) if !is_header_value(text) => {
                Err(format!("{text:?} cannot be the value of a header"))
            }
            FaultKind::NoiseOnStdout(lines) if lines.iter().any(|line| line.contains(['\n', '\r'])) => {
                Err("a line of `noise_on_stdout` cannot contain a line break".to_owned())
            }
            FaultKind::Delay(_)
            | FaultKind::Hang
            | FaultKind::DisconnectBefore
            | FaultKind::DisconnectDuring
            | FaultKind::DisconnectAfter
            | FaultKind::HalfLine
            | FaultKind::MalformedJson
            | FaultKind::InvalidUtf8
            | FaultKind::InvalidBase64
            | FaultKind::WrongId
            | FaultKind::DuplicateAnswer
            | FaultKind::AnswerAfterCancel
            | FaultKind::NoiseOnStdout(_)
            | FaultKind::FloodOfStderr(_)
            | FaultKind::Oversize(_)
            | FaultKind::SlowDrip { .. }
            | FaultKind::Exit(_)
            | FaultKind::SseCut
            | FaultKind::ContentType(_)
            | FaultKind::WrongStructuredContent => Ok(()),
        }
    }

    /// The name in a mock file.
    pub fn name(&self) -> &'static str {
        match self {
            FaultKind::Delay(_) => "delay",
            FaultKind::Hang => "hang",
            FaultKind::DisconnectBefore => "disconnect_before",
            FaultKind::DisconnectDuring => "disconnect_during",
            FaultKind::DisconnectAfter => "disconnect_after",
            FaultKind::HalfLine => "half_line",
            FaultKind::MalformedJson => "malformed_json",
            FaultKind::InvalidUtf8 => "invalid_utf8",
            FaultKind::InvalidBase64 => "invalid_base64",
            FaultKind::WrongId => "wrong_id",
            FaultKind::DuplicateAnswer => "duplicate_answer",
            FaultKind::AnswerAfterCancel => "answer_after_cancel",
            FaultKind::NoiseOnStdout(_) => "noise_on_stdout",
            FaultKind::FloodOfStderr(_) => "flood_of_stderr",
            FaultKind::Oversize(_) => "oversize",
            FaultKind::SlowDrip { .. } => "slow_drip",
            FaultKind::Exit(_) => "exit",
            FaultKind::Http(_) => "http",
            FaultKind::SseCut => "sse_cut",
            FaultKind::ContentType(_) => "content_type",
            FaultKind::WrongStructuredContent => "wrong_structured_content",
        }
    }

    /// Whether the fault happens before the request is processed, so that the answer does not matter.
    pub fn comes_first(&self) -> bool {
        match self {
            FaultKind::Hang | FaultKind::DisconnectBefore | FaultKind::Exit(_) | FaultKind::Http(_) => true,
            FaultKind::Delay(_)
            | FaultKind::DisconnectDuring
            | FaultKind::DisconnectAfter
            | FaultKind::HalfLine
            | FaultKind::MalformedJson
            | FaultKind::InvalidUtf8
            | FaultKind::InvalidBase64
            | FaultKind::WrongId
            | FaultKind::DuplicateAnswer
            | FaultKind::AnswerAfterCancel
            | FaultKind::NoiseOnStdout(_)
            | FaultKind::FloodOfStderr(_)
            | FaultKind::Oversize(_)
            | FaultKind::SlowDrip { .. }
            | FaultKind::SseCut
            | FaultKind::ContentType(_)
            | FaultKind::WrongStructuredContent => false,
        }
    }
}

/// Maximum size of noise and padding: 1 GiB.
const MAX_NOISE: u64 = 1 << 30;

impl HttpFault {
    fn check(&self) -> Result<(), String> {
        let HttpFault { status, www_authenticate, headers, .. } = self;
        if !(200..=599).contains(status) {
            return Err(format!("an HTTP status is from 200 to 599, and {status} is not"));
        }
        if let Some(name) = headers.keys().find(|name| !is_header_name(name)) {
            return Err(format!("{name:?} cannot be the name of a header"));
        }
        match headers.values().chain(www_authenticate).find(|value| !is_header_value(value)) {
            Some(value) => Err(format!("{value:?} cannot be the value of a header")),
            None => Ok(()),
        }
    }
}

fn is_header_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

fn is_header_value(value: &str) -> bool {
    value.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}
