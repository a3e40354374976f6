//! How to reach a server, how to authorize, and why a connection failed.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::uri::Scheme;
use http::{HeaderMap, HeaderValue, Uri};
use rehearsal_core::redact::shown_url;

use super::response::refusal;
use crate::{BoxFuture, HttpMeta, MESSAGE_LIMIT};

/// How to reach a server.
#[derive(Clone)]
pub struct HttpClientOptions {
    /// The server's URL.
    pub url: Uri,
    /// Headers for every request, such as `Authorization`.
    ///
    /// They replace those of the transport; the headers of a single message replace both. An empty value removes a
    /// header of the transport, such as `Mcp-Method`.
    pub headers: HeaderMap,
    /// Supplies `Authorization`, and logs in if a server requires it.
    pub authorize: Option<Arc<dyn Authorize>>,
    /// The longest message in either direction, in bytes.
    pub message_limit: usize,
    /// The time limit for opening a connection.
    pub connect_timeout: Duration,
    /// How long the server may take to accept a notification or a response.
    pub accept_timeout: Duration,
    /// How long an HTTP+SSE server may take to send its `endpoint` event.
    pub endpoint_timeout: Duration,
    /// Certificates to trust in addition to those of the system, each as PEM or DER.
    pub root_certificates: Vec<Bytes>,
    /// The most requests that may be pending; `send` waits with the next one.
    ///
    /// Notifications and responses are not counted: a server request must be answered even at the limit.
    pub concurrent_requests: usize,
    /// How long to wait before resuming a broken stream, unless the server sends `retry`.
    pub retry: Duration,
    /// How many times a broken stream is resumed without receiving an event.
    pub tries: u32,
}

impl HttpClientOptions {
    /// Builds the default options for a server.
    pub fn new(url: &str) -> Result<HttpClientOptions, ConnectError> {
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
        Ok(HttpClientOptions {
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

impl fmt::Debug for HttpClientOptions {
    /// Omits the values of the headers, which are often secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.keys().map(|name| name.as_str()).collect();
        f.debug_struct("HttpClientOptions").field("url", &self.url).field("headers", &names).finish_non_exhaustive()
    }
}

/// Why a connection failed.
#[derive(Clone, thiserror::Error)]
pub enum ConnectError {
    /// The URL cannot be used.
    #[error("cannot use the address {:?}: {why}", shown_url(.url))]
    BadUrl {
        /// The URL that the caller passed.
        url: String,
        /// The reason.
        why: String,
    },
    /// A root certificate of the caller cannot be read.
    #[error("cannot read root certificate {number}: {why}")]
    BadCertificate {
        /// The number of the certificate, counted from one.
        number: usize,
        /// The reason.
        why: String,
    },
    /// There are no root certificates to verify the server with.
    #[error("this system has no root certificates to check the server with{}", because(.why))]
    NoRootCertificates {
        /// The errors of the search for certificates.
        why: Vec<String>,
    },
    /// The server's first response was not a stream of events.
    #[error("{}", refusal(.head, .body))]
    Refused {
        /// The status and headers.
        head: Arc<HttpMeta>,
        /// The first 64 KiB of the body.
        body: Bytes,
    },
    /// The server opened the stream, but sent no `endpoint` event.
    #[error("no `endpoint` event arrived within {waited:?}; is this an HTTP+SSE server?")]
    NoEndpoint {
        /// How long we waited.
        waited: Duration,
    },
    /// The endpoint is on another origin. Messages would go there, together with the secrets in our headers.
    #[error("the endpoint {endpoint:?} is not on {origin}, where the stream is")]
    ForeignEndpoint {
        /// The endpoint as the server sent it.
        endpoint: String,
        /// The origin of the stream.
        origin: String,
    },
    /// The endpoint is not a valid URL.
    #[error("cannot use the endpoint {endpoint:?}: {why}")]
    BadEndpoint {
        /// The endpoint as the server sent it.
        endpoint: String,
        /// The reason.
        why: String,
    },
    /// The server could not be reached, or the stream broke.
    #[error("{why}")]
    Failed {
        /// The error, as text.
        why: String,
    },
}

debug_as_display!(ConnectError);

fn because(reasons: &[String]) -> String {
    reasons.first().map_or_else(String::new, |reason| format!(": {reason}"))
}

/// How many times one request may be refused for missing authorization and sent again.
pub(super) const MAX_CHALLENGES: usize = 3;

/// Authorizes the client: supplies `Authorization` for every request, and decides what to do if the server refuses it.
///
/// If the caller sets an `Authorization` header, that one is sent and this is not called.
pub trait Authorize: fmt::Debug + Send + Sync {
    /// Returns the header for the next request; `None` sends the request without one.
    fn authorization(&self) -> BoxFuture<'_, Result<Option<HeaderValue>, String>>;

    /// Handles a 401 or 403 for a request that carried `sent`. It may take as long as the user needs to log in; other
    /// requests do not time out in that time.
    fn refused<'a>(
        &'a self,
        sent: Option<&'a HeaderValue>,
        head: &'a HttpMeta,
    ) -> BoxFuture<'a, Result<RetryDecision, String>>;
}

/// Whether a refused request is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryDecision {
    /// There is a new value for `Authorization`.
    Yes,
    /// The request stays refused.
    No,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_http_urls_without_a_password_are_accepted() {
        for url in ["localhost:8000/mcp", "/mcp", "ftp://host/", "http://me:secret@host/mcp", "http://exa mple/", ""] {
            assert!(matches!(HttpClientOptions::new(url), Err(ConnectError::BadUrl { .. })), "{url}");
        }
        let error = HttpClientOptions::new("localhost:8000/mcp").unwrap_err();
        let expected = r#"cannot use the address "localhost:8000/mcp": "#;
        assert!(error.to_string().starts_with(expected), "{error}");
        for url in ["http://localhost:8000/mcp?key=1", "https://[::1]/"] {
            assert!(HttpClientOptions::new(url).is_ok(), "{url}");
        }
    }

    #[test]
    fn secrets_do_not_show_in_debug_output() {
        let mut options = HttpClientOptions::new("http://localhost/mcp").unwrap();
        options.headers.insert("authorization", "Bearer secret".parse().unwrap());
        let shown = format!("{options:?}");
        assert!(shown.contains("authorization") && !shown.contains("secret"), "{shown}");
    }
}
