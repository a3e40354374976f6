//! Parses and checks the head of a request, and writes it for the upstream.

use std::mem::MaybeUninit;
use std::sync::Arc;

use http::HeaderValue;
use httparse::{Header, ParserConfig, Request, Status};
use rehearsal_core::trace::{Headers, HttpHead};
use tokio::sync::watch;

use super::body::Framing;
use super::requests::ErrorResponse;
use super::rewrite::{Origin, TextEdits};
use crate::http::origin_check::{self, RequestOrigin};
use crate::http::server::AllowedHosts;

/// The most headers in a head.
pub(super) const MAX_HEADERS: usize = 128;

/// The rules for every request.
#[derive(Debug)]
pub(super) struct ForwardRules {
    /// The allowed values of `Host`.
    pub(super) hosts: AllowedHosts,
    /// The allowed values of `Origin`.
    pub(super) origins: AllowedHosts,
    /// The origin of the upstream.
    pub(super) upstream: Origin,
    /// The `Authorization` for requests without one.
    pub(super) authorization: Option<watch::Receiver<Option<HeaderValue>>>,
    /// The longest head, in bytes.
    pub(super) head_limit: usize,
}

/// The head of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RequestHead {
    /// The unchanged head, for the observer.
    pub(super) head: HttpHead,
    /// How the end of the body is marked.
    pub(super) framing: Framing,
    /// The facts needed to parse the response.
    pub(super) facts: RequestFacts,
}

/// The facts about a request that are needed to parse its response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RequestFacts {
    /// The kind of method.
    pub(super) kind: MethodKind,
    /// True if the client proposes another protocol.
    pub(super) upgrade: bool,
    /// The proxy's origin, as the client addressed it.
    pub(super) here: Arc<Origin>,
}

/// The methods that affect the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MethodKind {
    /// HEAD: the response has no body, whatever its headers contain.
    Head,
    /// GET: the response may be the stream of HTTP+SSE.
    Get,
    /// Any other method.
    Other,
}

/// Parses the head at the start of `bytes`, which contain the end of one, and appends to `out` the head for the
/// upstream.
///
/// Returns its length; `None` if it is still incomplete. `before` is the proxy's origin in the client's previous
/// request.
pub(super) fn read(
    bytes: &[u8],
    rules: &ForwardRules,
    before: Option<&Arc<Origin>>,
    out: &mut Vec<u8>,
) -> Result<Option<(usize, RequestHead)>, ErrorResponse> {
    let mut headers = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut request = Request::new(&mut []);
    let parsed = ParserConfig::default().parse_request_with_uninit_headers(&mut request, bytes, &mut headers);
    let length = match parsed {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => {
            return Err(ErrorResponse::head_too_large(format!("more than {MAX_HEADERS} headers")));
        }
        Err(error) => return Err(ErrorResponse::bad_request(format!("this is not HTTP/1.1: {error}"))),
    };
    let (Some(method), Some(target), Some(minor)) = (request.method, request.path, request.version) else {
        return Ok(None);
    };
    let fields: &[Header] = request.headers;
    if method == "CONNECT" {
        return Err(ErrorResponse::method(method));
    }
    let (whole, authority) = address(target).unzip();
    let all = |name: &'static str| fields.iter().filter(move |field| field.name.eq_ignore_ascii_case(name));
    let texts = |name: &'static str| all(name).map(|field| std::str::from_utf8(field.value).unwrap_or_default());
    let named = RequestOrigin { hosts: texts("host"), authority, origins: texts("origin") };
    // HTTP/1.0 has no `Host`, and browsers do not use it. So no foreign page can have sent this request.
    let nameless = minor == 0 && authority.is_none() && all("host").chain(all("origin")).next().is_none();
    if !nameless {
        origin_check::check(named, &rules.hosts, &rules.origins).map_err(|what| ErrorResponse::forbidden(&what))?;
    }
    let framing = framing(fields, minor)?;
    let host = texts("host").next().or(authority);
    let here = match (before, host) {
        (Some(before), Some(host)) if before.authority() == host => before.clone(),
        (_, Some(host)) => Arc::new(Origin::from_host(host)),
        (_, None) => Arc::new(rules.upstream.clone()),
    };
    let mut edits = TextEdits::new(&bytes[..length], out);
    if let Some(whole) = whole {
        edits.replace(whole.as_bytes(), rules.upstream.text().as_bytes());
    }
    let given = all("authorization").next().is_some();
    if let (Some(authorization), Some(first)) = (rules.authorization.as_ref().filter(|_| !given), fields.first())
        && let Some(value) = &*authorization.borrow()
    {
        let line = [b"Authorization: ", value.as_bytes(), b"\r\n"].concat();
        edits.replace(&first.name.as_bytes()[..0], &line);
    }
    for field in fields {
        if field.name.eq_ignore_ascii_case("host") {
            edits.replace(field.value, rules.upstream.authority().as_bytes());
        } else if (field.name.eq_ignore_ascii_case("origin") || field.name.eq_ignore_ascii_case("referer"))
            && let Some(moved) = here.replace_in(field.value, &rules.upstream)
        {
            edits.replace(field.value, &moved);
        }
    }
    edits.finish();
    let kind = match method {
        "HEAD" => MethodKind::Head,
        "GET" => MethodKind::Get,
        _ => MethodKind::Other,
    };
    let facts = RequestFacts { kind, upgrade: is_upgrade(fields), here };
    let head = HttpHead {
        method: Some(method.to_owned()),
        target: Some(target.to_owned()),
        status: None,
        headers: copy_headers(fields),
    };
    Ok(Some((length, RequestHead { head, framing, facts })))
}

/// Copies names and values unchanged.
pub(super) fn copy_headers(fields: &[Header]) -> Headers {
    Headers::lossy(fields.iter().map(|field| (field.name, field.value)))
}

/// Returns the items of a list that may be spread over several headers.
pub(super) fn items<'a>(fields: &'a [Header], name: &'a str) -> impl Iterator<Item = &'a [u8]> {
    let values = fields.iter().filter(move |field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value);
    values.flat_map(|value| value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii))
}

/// True if the head proposes to switch the protocol.
pub(super) fn is_upgrade(fields: &[Header]) -> bool {
    fields.iter().any(|field| field.name.eq_ignore_ascii_case("upgrade"))
        && items(fields, "connection").any(|item| item.eq_ignore_ascii_case(b"upgrade"))
}

/// Parses a length, which must consist of digits only.
pub(super) fn length(value: &[u8]) -> Option<u64> {
    let digits = value.iter().all(u8::is_ascii_digit) && !value.is_empty();
    std::str::from_utf8(value).ok().filter(|_| digits)?.parse().ok()
}

/// Splits a request line with an absolute URL, as proxies receive it: returns the origin, and the host and port in it.
fn address(target: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = target.split_once("://")?;
    scheme.bytes().all(|byte| byte.is_ascii_alphabetic()).then_some(())?;
    let authority = rest.split(['/', '?', '#']).next()?;
    Some((&target[..target.len() - rest.len() + authority.len()], authority))
}

/// Returns how the end of a request body is marked. Ambiguous framing allows request smuggling, so it is refused.
fn framing(fields: &[Header], minor: u8) -> Result<Framing, ErrorResponse> {
    let of = |name: &'static str| fields.iter().filter(move |field| field.name.eq_ignore_ascii_case(name));
    let (mut lengths, encodings) = (of("content-length"), of("transfer-encoding").count());
    match (lengths.next(), lengths.next(), encodings) {
        (None, _, 0) => Ok(Framing::Length(0)),
        (Some(field), None, 0) => match length(field.value) {
            Some(length) => Ok(Framing::Length(length)),
            None => Err(ErrorResponse::bad_request("the Content-Length is not a number")),
        },
        (Some(_), Some(_), _) => Err(ErrorResponse::bad_request("more than one Content-Length")),
        (Some(_), None, _) => Err(ErrorResponse::bad_request("both Content-Length and Transfer-Encoding")),
        (None, _, _) if minor == 0 => Err(ErrorResponse::bad_request("Transfer-Encoding in HTTP/1.0")),
        (None, _, _) if is_chunked(fields) => Ok(Framing::Chunked),
        (None, _, _) => Err(ErrorResponse::bad_request("a Transfer-Encoding that does not end with chunked")),
    }
}

/// True if `chunked` is the last encoding, and appears once.
pub(super) fn is_chunked(fields: &[Header]) -> bool {
    let chunked = |item: &&[u8]| item.eq_ignore_ascii_case(b"chunked");
    items(fields, "transfer-encoding").last().as_ref().is_some_and(chunked)
        && items(fields, "transfer-encoding").filter(chunked).count() == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> ForwardRules {
        ForwardRules {
            hosts: AllowedHosts::default(),
            origins: AllowedHosts::default(),
            upstream: Origin::from_url(&"https://mcp.example:8443/mcp".parse().unwrap()),
            authorization: None,
            head_limit: 1024,
        }
    }

    fn forwarded(head: &str) -> Result<(String, RequestHead), ErrorResponse> {
        let mut out = Vec::new();
        let (length, request) = read(head.as_bytes(), &rules(), None, &mut out)?.expect("a whole head");
        assert_eq!(length, head.len());
        Ok((String::from_utf8(out).unwrap(), request))
    }

    #[test]
    fn only_urls_of_the_proxy_are_rewritten_in_a_request() {
        let head = "\r\nPOST  /mcp?a=%20 HTTP/1.1\r\nhOST:\t 127.0.0.1:9 \r\nX-Odd:  a , b \r\nx-odd:\r\n\
                    Origin: http://127.0.0.1:9\r\nReferer: http://127.0.0.1:9/page\r\ncontent-length: 3\r\n\r\n";
        let head = head.replace("POST  ", "POST ");
        let (out, request) = forwarded(&head).unwrap();
        let expected = head
            .replace("hOST:\t 127.0.0.1:9 ", "hOST:\t mcp.example:8443 ")
            .replace("http://127.0.0.1:9", "https://mcp.example:8443");
        assert_eq!(out, expected);
        assert_eq!((request.framing, request.facts.kind), (Framing::Length(3), MethodKind::Other));
        assert_eq!(request.head.headers.iter().next(), Some(("hOST", "127.0.0.1:9")));
        assert_eq!(request.head.target.as_deref(), Some("/mcp?a=%20"));
    }

    #[test]
    fn authorization_is_added_to_requests_without_one_and_hidden_from_the_observer() {
        let (_, token) = watch::channel(Some(HeaderValue::from_static("Bearer t")));
        let rules = ForwardRules { authorization: Some(token), ..rules() };
        let read = |head: &str| {
            let mut out = Vec::new();
            let (_, request) = read(head.as_bytes(), &rules, None, &mut out).unwrap().unwrap();
            (String::from_utf8(out).unwrap(), request.head.headers.iter().count())
        };
        let ours = "GET /x HTTP/1.1\r\nAuthorization: Bearer t\r\nHost: mcp.example:8443\r\n\r\n";
        assert_eq!(read("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n"), (ours.to_owned(), 1));
        let own = "GET /x HTTP/1.1\r\nHost: localhost\r\nauthorization: Basic x\r\n\r\n";
        assert_eq!(read(own), (own.replace("localhost", "mcp.example:8443"), 2));
    }

    #[test]
    fn an_http_1_0_request_needs_no_host() {
        let head = "GET /x HTTP/1.0\r\nAccept: */*\r\n\r\n";
        let (out, _) = forwarded(head).unwrap();
        assert_eq!(out, head);
    }

    #[test]
    fn another_local_origin_is_not_rewritten() {
        let head = "GET / HTTP/1.1\r\nHost: localhost:9\r\nOrigin: http://localhost:5173\r\n\r\n";
        let (out, _) = forwarded(head).unwrap();
        assert!(out.contains("Origin: http://localhost:5173\r\n"), "{out}");
    }

    #[test]
    fn an_absolute_url_in_the_request_line_is_rewritten() {
        let (out, _) = forwarded("GET http://localhost:9/x HTTP/1.1\r\nHost: localhost:9\r\n\r\n").unwrap();
        assert_eq!(out, "GET https://mcp.example:8443/x HTTP/1.1\r\nHost: mcp.example:8443\r\n\r\n");
    }

    #[test]
    fn ambiguous_and_foreign_requests_are_refused() {
        const FOREIGN_HOST: &str =
            "Forbidden: host \"evil.example\": neither localhost, nor an IP address, nor allowed by --allow-host";
        let many = "a: b\r\n".repeat(MAX_HEADERS);
        let table = [
            ("GET / HTTP/1.1\r\n\r\n", "Forbidden: no host"),
            ("GET / HTTP/1.0\r\nOrigin: http://localhost\r\n\r\n", "Forbidden: no host"),
            ("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", FOREIGN_HOST),
            ("GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", "Forbidden: more than one host"),
            ("GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n", FOREIGN_HOST),
            (
                "GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n\r\n",
                "Forbidden: origin \"http://evil.example\": neither on this machine, nor allowed by --allow-host",
            ),
            ("CONNECT localhost:1 HTTP/1.1\r\nHost: localhost\r\n\r\n", "a reverse proxy does not support CONNECT"),
            (
                "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
                "both Content-Length and Transfer-Encoding",
            ),
            (
                "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
                "more than one Content-Length",
            ),
            ("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: +1\r\n\r\n", "the Content-Length is not a number"),
            (
                "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1, 1\r\n\r\n",
                "the Content-Length is not a number",
            ),
            ("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length:\r\n\r\n", "the Content-Length is not a number"),
            (
                "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked, gzip\r\n\r\n",
                "a Transfer-Encoding that does not end with chunked",
            ),
            (
                "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
                "a Transfer-Encoding that does not end with chunked",
            ),
            (
                "POST / HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",
                "Transfer-Encoding in HTTP/1.0",
            ),
            ("POST / HTTP/1.1\r\nHost: localhost\r\nA : b\r\n\r\n", "this is not HTTP/1.1: invalid header name"),
            ("POST / HTTP/1.1\r\nHost: localhost\r\n A: b\r\n\r\n", "this is not HTTP/1.1: invalid header name"),
            ("POST / HTTP/2.0\r\nHost: localhost\r\n\r\n", "this is not HTTP/1.1: invalid HTTP version"),
            (&format!("GET / HTTP/1.1\r\nHost: localhost\r\n{many}\r\n"), "more than 128 headers"),
        ];
        for (head, why) in table {
            assert_eq!(forwarded(head).unwrap_err().why, why, "{head:.80}");
        }
    }

    #[test]
    fn chunked_bodies_and_upgrades_are_recognized() {
        let head =
            "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: Chunked\r\n\r\n";
        assert_eq!(forwarded(head).unwrap().1.framing, Framing::Chunked);
        let head = "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n\r\n";
        assert!(forwarded(head).unwrap().1.facts.upgrade);
    }
}
