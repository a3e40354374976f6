//! An HTTP response of the server.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::http_client::join_causes;
use crate::HttpMeta;

/// The limit for the body of a refusal that is kept, in bytes.
pub(super) const REFUSAL_LIMIT: usize = 64 * 1024;

/// The limit for the body of a refusal that is shown.
const EXCERPT_LIMIT: usize = 200;

/// An HTTP response of the server, with its body still unread.
#[derive(Debug)]
pub(super) struct HttpResponse {
    pub(super) status: StatusCode,
    pub(super) head: Arc<HttpMeta>,
    pub(super) body: Incoming,
}

/// The kind of a body, by its `Content-Type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyKind {
    /// `application/json`
    Json,
    /// `text/event-stream`
    Events,
    /// Any other type, or none.
    Other,
}

impl HttpResponse {
    pub(super) fn kind(&self) -> BodyKind {
        match content_type(&self.head) {
            Some(kind) if kind.eq_ignore_ascii_case("application/json") => BodyKind::Json,
            Some(kind) if kind.eq_ignore_ascii_case("text/event-stream") => BodyKind::Events,
            Some(_) | None => BodyKind::Other,
        }
    }

    /// True if this is the stream of events that a GET requests.
    pub(super) fn is_event_stream(&self) -> bool {
        self.status.is_success() && self.kind() == BodyKind::Events
    }

    /// Reads the body of a refusal, and returns it with the head.
    pub(super) async fn into_refusal(self) -> (Arc<HttpMeta>, Bytes) {
        (self.head, read(self.body, REFUSAL_LIMIT).await.bytes)
    }
}

/// Returns the content type without its parameters.
fn content_type(head: &HttpMeta) -> Option<&str> {
    let value = head.headers.get(CONTENT_TYPE)?.to_str().ok()?;
    value.split(';').next().map(str::trim)
}

/// A body, or the part of it that was read.
#[derive(Debug)]
pub(super) struct BodyRead {
    /// The bytes, at most up to the limit.
    pub(super) bytes: Bytes,
    pub(super) end: ReadEnd,
}

/// Why reading a body stopped.
#[derive(Debug)]
pub(super) enum ReadEnd {
    Whole,
    /// The body is longer than the limit.
    TooLong,
    Broken {
        why: String,
    },
}

/// Reads a body up to a limit.
pub(super) async fn read(mut body: Incoming, limit: usize) -> BodyRead {
    let mut bytes = BytesMut::new();
    loop {
        match body.frame().await {
            None => return BodyRead { bytes: bytes.freeze(), end: ReadEnd::Whole },
            Some(Err(error)) => {
                return BodyRead { bytes: bytes.freeze(), end: ReadEnd::Broken { why: join_causes(&error) } };
            }
            Some(Ok(frame)) => {
                let Some(data) = frame.data_ref() else { continue };
                let room = limit - bytes.len();
                bytes.extend_from_slice(&data[..data.len().min(room)]);
                if data.len() > room {
                    return BodyRead { bytes: bytes.freeze(), end: ReadEnd::TooLong };
                }
            }
        }
    }
}

/// Writes a [refusal](crate::ChannelEnd::Refused) as text:
///
/// ```text
/// the server answered 404 Not Found: session not found
/// the server answered 200 OK with text/html, which is no message: <!doctype html>
/// ```
pub fn refusal(head: &HttpMeta, body: &[u8]) -> String {
    let mut text = "the server answered".to_owned();
    if let Some(status) = head.status {
        text.push_str(&format!(" {status}"));
        if status.is_success() {
            let kind = content_type(head).unwrap_or("no content type");
            text.push_str(&format!(" with {kind}, which is no message"));
        } else if status.is_redirection() {
            let target = head.headers.get(http::header::LOCATION).and_then(|target| target.to_str().ok());
            text.push_str(&format!(" (to {}), which is not followed", target.unwrap_or("nowhere")));
        }
    }
    let line = String::from_utf8_lossy(body).split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(EXCERPT_LIMIT) {
        None if line.is_empty() => {}
        None => text.push_str(&format!(": {line}")),
        Some((end, _)) => text.push_str(&format!(": {}…", &line[..end])),
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderMap;

    fn head(status: u16, headers: &[(&'static str, &'static str)]) -> HttpMeta {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        HttpMeta { status: StatusCode::from_u16(status).ok(), headers: map }
    }

    #[test]
    fn a_refusal_contains_the_status_and_the_body() {
        let table = [
            (head(404, &[]), "session\n  not found", "the server answered 404 Not Found: session not found"),
            (head(500, &[]), "", "the server answered 500 Internal Server Error"),
            (
                head(200, &[("content-type", "text/html; charset=utf-8")]),
                "<p>",
                "the server answered 200 OK with text/html, which is no message: <p>",
            ),
            (
                head(307, &[("location", "/mcp/")]),
                "",
                "the server answered 307 Temporary Redirect (to /mcp/), which is not followed",
            ),
        ];
        for (head, body, expected) in table {
            assert_eq!(refusal(&head, body.as_bytes()), expected);
        }
        let long = refusal(&head(400, &[]), "é".repeat(300).as_bytes());
        assert_eq!(long.chars().filter(|letter| *letter == 'é').count(), EXCERPT_LIMIT);
        assert!(long.ends_with('…'));
    }
}
