//! Failures that explain themselves.

use std::fmt;
use std::process::ExitStatus;
use std::time::Duration;

use rehearsal_core::json::excerpt;
use rehearsal_core::message::{ErrorReply, GarbledReason, Method};
use rehearsal_core::protocol::Revision;
use rehearsal_wire::container::EngineError;
use rehearsal_wire::stdio::SpawnError;
use rehearsal_wire::{ConnectionEnd, SendError};

#[cfg(feature = "mock")]
use crate::config::ConfigError;

/// Why a request or a connection failed.
///
/// A server that responds with an error has responded: [`call_tool`](super::Client::call_tool) returns that as a
/// [`ServerResponse`](super::ServerResponse). These are the failures before or instead of a response.
///
/// `Debug` prints the same as `Display`, with the evidence, because `unwrap` shows it in a test.
#[derive(thiserror::Error)]
pub enum ClientError {
    /// The server's process could not be started.
    #[error("the server could not be started: {}", started(.0))]
    Start(#[source] SpawnError),
    /// The engine of the server's container did not do what it should.
    #[error("{0}")]
    Engine(#[source] EngineError),
    /// The configuration of the server is invalid.
    #[cfg(feature = "mock")]
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// The URL, a header or the container is wrong, or a call of the builder does not apply to the target.
    #[error("{what}")]
    BadTarget {
        /// What is wrong, with a hint.
        what: String,
    },
    /// The server was started, but could not be reached over HTTP.
    #[error("the server {why}{evidence}")]
    NotListening {
        /// What happened to it: a predicate.
        why: String,
        /// What else is known.
        evidence: Box<Evidence>,
    },
    /// The server ended, or became unreachable, before it answered.
    #[error("the server {ending} before it answered {method}{evidence}")]
    ServerClosed {
        /// The method of the request.
        method: Method,
        /// How it ended.
        ending: ConnectionEnd,
        /// What else is known.
        evidence: Box<Evidence>,
    },
    /// The response did not arrive in time. For a message without a response: the server did not read it in time.
    #[error("{} within {}{evidence}", waited_for(.method), seconds(.after))]
    TimedOut {
        /// The method of the request.
        method: Method,
        /// How long we waited.
        after: Duration,
        /// What else is known.
        evidence: Box<Evidence>,
    },
    /// An HTTP server answered with a status and no message.
    #[error("{method} was refused: {text}{evidence}")]
    Refused {
        /// The method of the request.
        method: Method,
        /// The status.
        status: u16,
        /// The status and the beginning of the body, as text.
        text: String,
        /// What else is known.
        evidence: Box<Evidence>,
    },
    /// The server requires authorization, and none was obtained.
    #[error("{method} needs a login: {why}")]
    NotAuthorized {
        /// The method of the request.
        method: Method,
        /// Why no authorization was obtained.
        why: String,
    },
    /// The HTTP server refused both transports.
    #[error(
        "the server supports neither Streamable HTTP nor HTTP+SSE\n  Streamable HTTP: {streamable}\n  HTTP+SSE: {sse}"
    )]
    NoTransport {
        /// How Streamable HTTP failed.
        streamable: Box<ClientError>,
        /// How HTTP+SSE failed.
        sse: Box<ClientError>,
    },
    /// The stream that the answer should have come on broke off.
    #[error("no answer to {method}: {why}{evidence}")]
    StreamBroken {
        /// The method of the request.
        method: Method,
        /// What went wrong.
        why: String,
        /// What else is known.
        evidence: Box<Evidence>,
    },
    /// The server echoed the request.
    #[error("no answer to {method}: the server echoes its input, as `cat` does{evidence}")]
    Echoed {
        /// The method of the request.
        method: Method,
        /// What else is known.
        evidence: Box<Evidence>,
    },
    /// The server sent bytes that are not a valid response.
    #[error("the answer to {method} is not a response: {reason}{}{evidence}", quoted(.found))]
    Garbled {
        /// The method of the request.
        method: Method,
        /// What is wrong with it.
        reason: GarbledReason,
        /// The beginning of those bytes.
        found: String,
        /// What else is known.
        evidence: Box<Evidence>,
    },
    /// The server responded with an error, and the caller needs a result.
    #[error("{method} was refused{}: {error}{}", http_status(*.status), data(.error))]
    ErrorReply {
        /// The method of the request.
        method: Method,
        /// The error.
        error: ErrorReply,
        /// Its HTTP status; `None` without HTTP.
        status: Option<u16>,
    },
    /// The result violates the protocol.
    #[error("the result of {method} is not usable: {what}")]
    BadResult {
        /// The method of the request.
        method: Method,
        /// What is wrong.
        what: String,
    },
    /// The server and this client have no version in common.
    #[error("the server supports {theirs:?}; this client was set to {}", ours.map_or("any version", Revision::as_str))]
    NoCommonVersion {
        /// The versions that the server supports.
        theirs: Vec<String>,
        /// The version that this client was set to, if any.
        ours: Option<Revision>,
    },
    /// The message could not be sent.
    #[error("{method} could not be sent: {cause}{evidence}")]
    NotSent {
        /// The method of the request.
        method: Method,
        /// Why not.
        #[source]
        cause: SendError,
        /// What else is known.
        evidence: Box<Evidence>,
    },
    /// The params cannot be written as JSON.
    #[error("the params of {method} cannot be written as JSON: {cause}")]
    BadParams {
        /// The method of the request.
        method: Method,
        /// Why not.
        #[source]
        cause: serde_json::Error,
    },
    /// The method does not exist in the negotiated version.
    #[error("{method} does not exist in protocol version {revision}; {hint}")]
    UnsupportedInVersion {
        /// The method of the request.
        method: Method,
        /// The version.
        revision: Revision,
        /// What to do instead.
        hint: &'static str,
    },
}

impl fmt::Debug for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl ClientError {
    /// The method that was waiting for an answer, if one was.
    pub fn method(&self) -> Option<&Method> {
        match self {
            ClientError::ServerClosed { method, .. }
            | ClientError::TimedOut { method, .. }
            | ClientError::Refused { method, .. }
            | ClientError::NotAuthorized { method, .. }
            | ClientError::StreamBroken { method, .. }
            | ClientError::Echoed { method, .. }
            | ClientError::Garbled { method, .. }
            | ClientError::ErrorReply { method, .. }
            | ClientError::BadResult { method, .. }
            | ClientError::NotSent { method, .. }
            | ClientError::BadParams { method, .. }
            | ClientError::UnsupportedInVersion { method, .. } => Some(method),
            ClientError::Start(_)
            | ClientError::Engine(_)
            | ClientError::BadTarget { .. }
            | ClientError::NoTransport { .. }
            | ClientError::NotListening { .. }
            | ClientError::NoCommonVersion { .. } => None,
            #[cfg(feature = "mock")]
            ClientError::Config(_) => None,
        }
    }

    /// The evidence, if this error has any.
    pub fn evidence(&self) -> Option<&Evidence> {
        match self {
            ClientError::NotListening { evidence, .. }
            | ClientError::ServerClosed { evidence, .. }
            | ClientError::TimedOut { evidence, .. }
            | ClientError::Refused { evidence, .. }
            | ClientError::StreamBroken { evidence, .. }
            | ClientError::Echoed { evidence, .. }
            | ClientError::Garbled { evidence, .. }
            | ClientError::NotSent { evidence, .. } => Some(evidence),
            ClientError::Start(_)
            | ClientError::Engine(_)
            | ClientError::BadTarget { .. }
            | ClientError::NotAuthorized { .. }
            | ClientError::NoTransport { .. }
            | ClientError::NoCommonVersion { .. }
            | ClientError::ErrorReply { .. }
            | ClientError::BadResult { .. }
            | ClientError::BadParams { .. }
            | ClientError::UnsupportedInVersion { .. } => None,
            #[cfg(feature = "mock")]
            ClientError::Config(_) => None,
        }
    }
}

/// Facts about a server that may explain a failure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// How its process ended, if it has.
    pub exit_status: Option<ExitStatus>,
    /// The last lines of its stderr.
    pub last_stderr: Vec<String>,
    /// Lines and bodies of the server that are no message.
    pub noise: Vec<String>,
    /// Where it wrote that.
    pub noise_on: NoiseSource,
    /// Responses without a pending request, such as one with a wrong id.
    pub strays: Vec<String>,
    /// Why the response was late when the wait for it ended, such as a stream that broke and was being resumed.
    pub trouble: Option<String>,
}

/// Where a server wrote bytes that are no message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NoiseSource {
    /// On the stdout of its process.
    #[default]
    Stdout,
    /// In a response over HTTP.
    Http,
}

/// How many lines of each kind are shown.
const MAX_SHOWN_LINES: usize = 12;

impl fmt::Display for Evidence {
    /// ```text
    ///
    ///   the server's process: exit status: 3
    ///   last lines of its stderr:
    ///     Traceback (most recent call last):
    /// ```
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(trouble) = &self.trouble {
            write!(f, "\n  at that moment: {}", sanitize(trouble))?;
        }
        if let Some(status) = self.exit_status {
            write!(f, "\n  the server's process ended: {status}")?;
        }
        let noise = match self.noise_on {
            NoiseSource::Stdout => "on its stdout, but not a message",
            NoiseSource::Http => "in an answer body or an event stream, but not a message",
        };
        let kinds = [
            ("last lines of its stderr", &self.last_stderr),
            (noise, &self.noise),
            ("responses without a request", &self.strays),
        ];
        for (title, lines) in kinds.into_iter().filter(|(_, lines)| !lines.is_empty()) {
            write!(f, "\n  {title}:")?;
            for line in &lines[lines.len().saturating_sub(MAX_SHOWN_LINES)..] {
                write!(f, "\n    {}", sanitize(line))?;
            }
        }
        Ok(())
    }
}

/// Makes a text of the server safe to print: escape sequences are removed, other control characters become `�`.
fn sanitize(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\x1b' => match letters.next() {
                Some('[') => drop(letters.find(|letter| ('@'..='~').contains(letter))),
                Some(']') => drop(letters.find(|letter| matches!(letter, '\x07' | '\\'))),
                _ => {}
            },
            '\t' => shown.push(letter),
            _ if letter.is_control() => shown.push('�'),
            _ => shown.push(letter),
        }
    }
    shown
}

/// `no answer to tools/call`; a notification has none, so what was waited for is that it is read.
fn waited_for(method: &Method) -> String {
    let wants_answer = !method.as_str().starts_with("notifications/");
    if wants_answer { format!("no answer to {method}") } else { format!("the server did not take {method}") }
}

fn started(error: &SpawnError) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("{error}{cause}")
}

fn quoted(text: &str) -> String {
    if text.trim().is_empty() { String::new() } else { format!("\n  {}", sanitize(text.trim())) }
}

/// The `data` of the error, on a separate line.
fn data(error: &ErrorReply) -> String {
    let data = error.data.as_ref().and_then(|data| data.value().ok());
    data.map(|data| format!("\n  {}", excerpt(&data, 300))).unwrap_or_default()
}

/// ` with HTTP status 404`; nothing for 200.
fn http_status(status: Option<u16>) -> String {
    status.filter(|status| *status != 200).map(|status| format!(" with HTTP status {status}")).unwrap_or_default()
}

/// `30 s`, `0.5 s`.
fn seconds(duration: &Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_words_do_not_command_the_terminal() {
        let words = "a\tb \x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b]8;;x\x1b\\ \x1bc \r\x08end \x1b[";
        assert_eq!(sanitize(words), "a\tb red    ��end ");
    }

    #[test]
    fn an_error_shows_the_method_the_status_and_the_last_stderr() {
        let evidence = Evidence {
            exit_status: None,
            last_stderr: (0..20).map(|line| format!("line {line}")).collect(),
            noise: vec!["Server listening".into()],
            noise_on: NoiseSource::Stdout,
            strays: Vec::new(),
            trouble: None,
        };
        let error = ClientError::TimedOut {
            method: Method::TOOLS_CALL,
            after: Duration::from_millis(500),
            evidence: Box::new(evidence),
        };
        let shown = format!("{error:?}");
        assert!(shown.starts_with("no answer to tools/call within 0.5 s\n  last lines of its stderr:\n    line 8\n"));
        assert!(shown.ends_with("line 19\n  on its stdout, but not a message:\n    Server listening"));
    }
}
