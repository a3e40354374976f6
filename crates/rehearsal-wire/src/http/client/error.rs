//! Why there is no connection.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rehearsal_core::redact::shown_url;

use super::answer::refusal;
use crate::HttpHead;

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
