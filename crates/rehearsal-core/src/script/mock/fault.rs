//! What a mock gets wrong on purpose.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::Delay;
use crate::script::Located;

/// A fault and when it happens.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FaultRule {
    /// What goes wrong.
    pub fault: Located<FaultKind>,
    /// A matcher for the method; any request unless given.
    pub method: Option<Located<Value>>,
    /// A matcher for the number of the request, from 1.
    pub call: Option<Located<Value>>,
    /// How likely, from 0 to 1; certain unless given.
    pub probability: Option<Located<f64>>,
    /// What the chance depends on; the same seed gives the same faults.
    pub seed: Option<u64>,
}

/// What goes wrong. Where a transport has no such thing, the nearest that it has happens; the reference says which.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FaultKind {
    /// The answer is late.
    Delay(Delay),
    /// No answer ever.
    Hang,
    /// The connection ends before anything is answered.
    DisconnectBefore,
    /// The connection ends in the middle of the answer.
    DisconnectDuring,
    /// The connection ends after the answer.
    DisconnectAfter,
    /// Half of the answer, without the end of its line.
    HalfLine,
    /// The answer is not JSON.
    MalformedJson,
    /// The answer is not UTF-8.
    InvalidUtf8,
    /// The base64 of images, sounds and blobs in the answer is broken.
    InvalidBase64,
    /// The answer has the id of another request.
    WrongId,
    /// The answer comes twice.
    DuplicateAnswer,
    /// The answer comes even though the request was cancelled.
    AnswerAfterCancel,
    /// These lines come on stdout before the answer.
    NoiseOnStdout(Vec<String>),
    /// So many bytes of noise go to stderr before the answer.
    FloodOfStderr(u64),
    /// The answer is padded to so many bytes.
    Oversize(u64),
    /// The answer comes in so many pieces a second, byte by byte.
    SlowDrip {
        /// How many bytes at once.
        bytes: usize,
        /// How long between them.
        every: Delay,
    },
    /// The process ends with this status.
    Exit(i32),
    /// The HTTP request is refused.
    Http(HttpFault),
    /// The stream of the answer breaks off, and the rest is there for whoever resumes it.
    SseCut,
    /// The answer has another `Content-Type`.
    ContentType(String),
    /// The structured content does not fit the output schema.
    WrongStructuredContent,
}

/// An HTTP status instead of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpFault {
    /// 401, 404, 429, 500, 502 …
    pub status: u16,
    /// How long the client should wait, in seconds.
    pub retry_after: Option<u64>,
    /// The `WWW-Authenticate` header.
    pub www_authenticate: Option<String>,
    /// The body.
    pub body: Option<String>,
}
