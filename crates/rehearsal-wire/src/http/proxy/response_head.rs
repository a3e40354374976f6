//! Parses the head of a response, and writes it for the client.

use std::mem::MaybeUninit;

use httparse::{Header, ParserConfig, Response, Status};
use rehearsal_core::trace::HttpHead;

use super::body::Framing;
use super::request_head::{MAX_HEADERS, MethodKind, RequestFacts, copy_headers, is_chunked, length};
use super::rewrite::{Origin, TextEdits};

/// The head of a response.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ResponseHead {
    /// The unchanged head, for the observer.
    pub(super) head: HttpHead,
    /// What follows the head.
    pub(super) then: AfterHead,
}

/// What follows the head of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterHead {
    /// Another head, because this one had a 1xx status.
    AnotherHead,
    /// Another protocol, until the end of the connection.
    AnotherProtocol,
    /// The body.
    Body {
        /// How the end of the body is marked.
        framing: Framing,
        /// True if the body may start with the `endpoint` event of HTTP+SSE.
        endpoint: bool,
        /// True if the body is a stream of events, which may never end.
        is_stream: bool,
    },
}

impl AfterHead {
    /// An empty body.
    const NOTHING: AfterHead = AfterHead::Body { framing: Framing::Length(0), endpoint: false, is_stream: false };
}

/// The headers that contain URLs for the client.
const ADDRESSES: [&str; 4] = ["location", "content-location", "www-authenticate", "access-control-allow-origin"];

/// Parses the head at the start of `bytes`, which contain the end of one, and appends to `out` the head for the client.
///
/// Returns its length; `None` if it is still incomplete. The error is the reason why it is not HTTP.
pub(super) fn read(
    bytes: &[u8],
    upstream: &Origin,
    facts: &RequestFacts,
    out: &mut Vec<u8>,
) -> Result<Option<(usize, ResponseHead)>, String> {
    let mut headers = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut response = Response::new(&mut []);
    let mut parser = ParserConfig::default();
    // Clients accept these too.
    parser.allow_obsolete_multiline_headers_in_responses(true).allow_spaces_after_header_name_in_responses(true);
    let length = match parser.parse_response_with_uninit_headers(&mut response, bytes, &mut headers) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) => return Ok(None),
        Err(error) => return Err(format!("the response is not HTTP/1.1: {error}")),
    };
    let (Some(status), Some(minor)) = (response.code, response.version) else { return Ok(None) };
    let fields: &[Header] = response.headers;
    let mut edits = TextEdits::new(&bytes[..length], out);
    for field in fields {
        if ADDRESSES.iter().any(|name| field.name.eq_ignore_ascii_case(name))
            && let Some(moved) = upstream.replace_in(field.value, &facts.here)
        {
            edits.replace(field.value, &moved);
        }
    }
    edits.finish();
    let then = match status {
        101 if facts.upgrade => AfterHead::AnotherProtocol,
        100..=199 => AfterHead::AnotherHead,
        204 | 304 => AfterHead::NOTHING,
        _ if facts.kind == MethodKind::Head => AfterHead::NOTHING,
        _ => {
            let (framing, is_stream) = (framing(fields, minor), is_stream(fields));
            let readable = is_stream && !fields.iter().any(|field| field.name.eq_ignore_ascii_case("content-encoding"));
            let endpoint = facts.kind == MethodKind::Get && readable && may_change(framing);
            AfterHead::Body { framing, endpoint, is_stream }
        }
    };
    let head = HttpHead { method: None, target: None, status: Some(status), headers: copy_headers(fields) };
    Ok(Some((length, ResponseHead { head, then })))
}

/// Returns how the end of a response body is marked. An ambiguous body ends with the connection; the client has to
/// interpret it.
fn framing(fields: &[Header], minor: u8) -> Framing {
    let of = |name: &'static str| fields.iter().filter(move |field| field.name.eq_ignore_ascii_case(name));
    if of("transfer-encoding").next().is_some() {
        return if minor == 1 && is_chunked(fields) { Framing::Chunked } else { Framing::UntilClose };
    }
    let mut lengths = of("content-length").map(|field| length(field.value));
    match lengths.next() {
        Some(Some(length)) if lengths.all(|other| other == Some(length)) => Framing::Length(length),
        Some(_) | None => Framing::UntilClose,
    }
}

/// True if the proxy may change the length of the body.
fn may_change(framing: Framing) -> bool {
    match framing {
        Framing::Chunked | Framing::UntilClose => true,
        Framing::Length(_) => false,
    }
}

fn is_stream(fields: &[Header]) -> bool {
    let kind = fields.iter().find(|field| field.name.eq_ignore_ascii_case("content-type"));
    let kind = kind.and_then(|field| field.value.split(|byte| *byte == b';').next()).unwrap_or_default();
    kind.trim_ascii().eq_ignore_ascii_case(b"text/event-stream")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn facts(kind: MethodKind, upgrade: bool) -> RequestFacts {
        RequestFacts { kind, upgrade, here: Arc::new(Origin::from_host("localhost:9")) }
    }

    fn forwarded(head: &str, facts: &RequestFacts) -> (String, AfterHead) {
        let upstream = Origin::from_url(&"http://mcp.example/mcp".parse().unwrap());
        let mut out = Vec::new();
        let (length, answered) = read(head.as_bytes(), &upstream, facts, &mut out).unwrap().expect("a whole head");
        assert_eq!(length, head.len());
        (String::from_utf8(out).unwrap(), answered.then)
    }

    #[test]
    fn only_urls_of_the_upstream_are_rewritten_in_a_response() {
        let head = "HTTP/1.1 302  Found \r\nLocation:  http://mcp.example/x\r\nX-Url: http://mcp.example/x\r\n\
                    WWW-Authenticate: Bearer resource_metadata=\"http://mcp.example:80/y\"\r\nA:b \r\n\r\n";
        let (out, _) = forwarded(head, &facts(MethodKind::Get, false));
        let expected = head
            .replace("Location:  http://mcp.example/x", "Location:  http://localhost:9/x")
            .replace("http://mcp.example:80/y", "http://localhost:9/y");
        assert_eq!(out, expected);
    }

    #[test]
    fn the_head_determines_the_framing_of_the_body() {
        let body = |framing| AfterHead::Body { framing, endpoint: false, is_stream: false };
        let table = [
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", body(Framing::Length(5))),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", body(Framing::Length(5))),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", body(Framing::UntilClose)),
            ("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", body(Framing::UntilClose)),
            ("HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", body(Framing::Chunked)),
            ("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", body(Framing::UntilClose)),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", body(Framing::UntilClose)),
            ("HTTP/1.1 200 OK\r\n\r\n", body(Framing::UntilClose)),
            ("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", body(Framing::Length(0))),
            ("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", body(Framing::Length(0))),
            ("HTTP/1.1 100 Continue\r\n\r\n", AfterHead::AnotherHead),
            ("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", AfterHead::AnotherHead),
            ("HTTP/1.1 101 Switching Protocols\r\n\r\n", AfterHead::AnotherHead),
        ];
        for (head, then) in table {
            assert_eq!(forwarded(head, &facts(MethodKind::Other, false)).1, then, "{head}");
        }
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
        assert_eq!(forwarded(head, &facts(MethodKind::Head, false)).1, body(Framing::Length(0)));
        let head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n";
        assert_eq!(forwarded(head, &facts(MethodKind::Get, true)).1, AfterHead::AnotherProtocol);
    }

    #[test]
    fn only_an_event_stream_of_changeable_length_may_have_an_endpoint() {
        let table = [
            ("Content-Type: text/event-stream", true),
            ("content-type: Text/Event-Stream; charset=utf-8\r\nTransfer-Encoding: chunked", true),
            ("Content-Type: text/event-stream\r\nContent-Encoding: gzip", false),
            ("Content-Type: text/event-stream\r\nContent-Length: 5", false),
            ("Content-Type: application/json", false),
        ];
        for (fields, expected) in table {
            let head = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n");
            let AfterHead::Body { endpoint, .. } = forwarded(&head, &facts(MethodKind::Get, false)).1 else {
                panic!("{head}")
            };
            assert_eq!(endpoint, expected, "{head}");
        }
    }

    #[test]
    fn a_response_that_is_not_http_is_an_error() {
        let origin = Origin::from_host("a");
        let read = |text: &str| read(text.as_bytes(), &origin, &facts(MethodKind::Get, false), &mut Vec::new());
        assert!(read("SSH-2.0-OpenSSH\r\n\r\n").unwrap_err().starts_with("the response is not HTTP/1.1: "));
        assert_eq!(read("HTTP/1.1 200 OK\r\n"), Ok(None));
    }
}
