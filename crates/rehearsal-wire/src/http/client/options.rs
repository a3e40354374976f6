//! How to reach a server.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::uri::Scheme;
use http::{HeaderMap, Uri};
use rehearsal_core::redact::shown_url;

use super::{Authorize, ConnectError};
use crate::MESSAGE_LIMIT;

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
