//! How to reach a server, how to authorize there, and why there is no connection.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::uri::Scheme;
use http::{HeaderMap, HeaderValue, Uri};
use rehearsal_core::redact::shown_url;

use super::answer::refusal;
use crate::{BoxFuture, HttpHead, MESSAGE_LIMIT};

/// How to reach a server.
#[derive(Clone)]
pub struct Options {
    /// Where it is.
    pub url: Uri,
    /// Headers for every request, such as `Authorization`.
    ///
    /// They win over those of the transport, and those of a single message over both. An empty value takes away what
    /// the transport would have said, such as `Mcp-Method`.
    pub headers: HeaderMap,
    /// Who supplies `Authorization`, and logs in where a server asks for it.
    pub authorize: Option<Arc<dyn Authorize>>,
    /// The longest message in either direction.
    pub message_limit: usize,
    /// How long a connection may take to be made.
    pub connect_timeout: Duration,
    /// How long the server may take to accept a notification or an answer.
    pub accept_timeout: Duration,
    /// How long an HTTP+SSE server may take to say where messages go.
    pub endpoint_timeout: Duration,
    /// Certificates to trust beside those of the system, each as PEM or DER.
    pub root_certificates: Vec<Bytes>,
    /// How many requests may wait for their answers; one more waits in `send`.
    ///
    /// Notifications and answers are not counted: a question of the server's must be answered even then.
    pub concurrent_requests: usize,
    /// How long to wait before a broken stream is opened again, where the server does not say.
    pub retry: Duration,
    /// How often a broken stream is opened again while no event comes.
    pub tries: u32,
}

impl Options {
    /// The usual options for a server.
    pub fn new(url: &str) -> Result<Options, ConnectError> {
        let bad =
            |why: &str| ConnectError::BadUrl { url: shown_url(url).chars().take(200).collect(), why: why.to_owned() };
        if !url.contains("://") {
            return Err(bad("it must begin with http:// or https://"));
        }
        let parsed: Uri = url.parse().map_err(|error: http::uri::InvalidUri| bad(&error.to_string()))?;
        match (parsed.scheme(), parsed.authority()) {
            (Some(scheme), Some(authority)) if *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS => {
                if authority.as_str().contains('@') {
                    return Err(bad("it holds a password; put that in an Authorization header"));
                }
            }
            _ => return Err(bad("it must begin with http:// or https://")),
        }
        Ok(Options {
            url: parsed,
            headers: HeaderMap::new(),
            authorize: None,
            message_limit: MESSAGE_LIMIT,
            connect_timeout: Duration::from_secs(10),
            accept_timeout: Duration::from_secs(30),
            endpoint_timeout: Duration::from_secs(10),
            root_certificates: Vec::new(),
            concurrent_requests: 256,
            retry: Duration::from_secs(1),
            tries: 5,
        })
    }
}

impl fmt::Debug for Options {
    /// Without the values of the headers, which are often secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.keys().map(|name| name.as_str()).collect();
        f.debug_struct("Options").field("url", &self.url).field("headers", &names).finish_non_exhaustive()
    }
}

/// Why there is no connection.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address cannot be used.
    #[error("cannot use the address {:?}: {why}", shown_url(.url))]
    BadUrl {
        /// The address as it was given.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// A root certificate of the caller's cannot be read.
    #[error("cannot read root certificate {number}: {why}")]
    BadCertificate {
        /// Which, counted from one.
        number: usize,
        /// What is wrong with it.
        why: String,
    },
    /// There is nothing to check the server's certificate with.
    #[error("this system has no root certificates to check the server with{}", because(.why))]
    NoRootCertificates {
        /// What went wrong where they were looked for.
        why: Vec<String>,
    },
    /// The server answered the first request with something else than a stream of events.
    #[error("{}", refusal(.head, .body))]
    Refused {
        /// The status and headers.
        head: Arc<HttpHead>,
        /// The first 64 KiB of the body.
        body: Bytes,
    },
    /// The stream is there, but it does not say where to send messages.
    #[error("no `endpoint` event came within {waited:?}; is this an HTTP+SSE server?")]
    NoEndpoint {
        /// How long we waited.
        waited: Duration,
    },
    /// The server wants the messages to go elsewhere, and with them whatever is secret in our headers.
    #[error("the endpoint {endpoint:?} is not on {origin}, where the stream is")]
    ForeignEndpoint {
        /// The endpoint as the server wrote it.
        endpoint: String,
        /// Where it should be.
        origin: String,
    },
    /// The endpoint is no address.
    #[error("cannot use the endpoint {endpoint:?}: {why}")]
    BadEndpoint {
        /// The endpoint as the server wrote it.
        endpoint: String,
        /// What is wrong with it.
        why: String,
    },
    /// The server could not be reached, or the stream broke.
    #[error("{why}")]
    Failed {
        /// What went wrong, in words.
        why: String,
    },
}

fn because(reasons: &[String]) -> String {
    reasons.first().map_or_else(String::new, |reason| format!(": {reason}"))
}

/// How often one request may be refused for want of authorization and still be sent again.
pub(super) const CHALLENGES: usize = 3;

/// Says who we are to a server that wants to know it: supplies `Authorization` for every request, and decides what to do
/// where the server is not content with that.
///
/// A header that the caller gives wins, as everywhere; then nobody is asked.
pub trait Authorize: fmt::Debug + Send + Sync {
    /// The header for the next request; `None` sends it without one.
    fn authorization(&self) -> BoxFuture<'_, Result<Option<HeaderValue>, String>>;

    /// The server answered 401 or 403 to a request that carried `sent`. This may take as long as a person needs to log in;
    /// what else waits for an answer is not timed out meanwhile.
    fn refused<'a>(&'a self, sent: Option<&'a HeaderValue>, head: &'a HttpHead)
    -> BoxFuture<'a, Result<Again, String>>;
}

/// Whether a request that was refused is worth sending again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// There is something new to say in `Authorization`.
    Yes,
    /// The refusal stands.
    No,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_http_addresses_are_taken() {
        for url in ["localhost:8000/mcp", "/mcp", "ftp://host/", "http://me:secret@host/mcp", "http://exa mple/", ""] {
            assert!(matches!(Options::new(url), Err(ConnectError::BadUrl { .. })), "{url}");
        }
        let error = Options::new("localhost:8000/mcp").unwrap_err();
        let expected = r#"cannot use the address "localhost:8000/mcp": "#;
        assert!(error.to_string().starts_with(expected), "{error}");
        for url in ["http://localhost:8000/mcp?key=1", "https://[::1]/"] {
            assert!(Options::new(url).is_ok(), "{url}");
        }
    }

    #[test]
    fn secrets_do_not_show_in_debug_output() {
        let mut options = Options::new("http://localhost/mcp").unwrap();
        options.headers.insert("authorization", "Bearer secret".parse().unwrap());
        let shown = format!("{options:?}");
        assert!(shown.contains("authorization") && !shown.contains("secret"), "{shown}");
    }
}
