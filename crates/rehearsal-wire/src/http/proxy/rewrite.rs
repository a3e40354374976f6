//! Translates the URLs of one side for the other, including the URL in the first event of HTTP+SSE.

use http::Uri;
use http::uri::Scheme;

use crate::http::sse::Decoder;

/// Scheme, host and port of a server, in each form in which they can be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    /// `http://example.com:8080`, as the user wrote it.
    text: String,
    /// The origin with the default port of its scheme added or removed.
    other: Option<String>,
    /// The position of the host in the text.
    authority: usize,
}

impl Origin {
    /// Returns the origin of a URL.
    pub(super) fn from_url(url: &Uri) -> Origin {
        let scheme = url.scheme_str().unwrap_or("http");
        let authority = url.authority().map_or("", |authority| authority.as_str());
        let implied = if url.scheme() == Some(&Scheme::HTTPS) { ":443" } else { ":80" };
        let text = format!("{scheme}://{authority}");
        let other = match text.strip_suffix(implied) {
            Some(short) => Some(short.to_owned()),
            None => url.port().is_none().then(|| format!("{text}{implied}")),
        };
        Origin { text, other, authority: scheme.len() + "://".len() }
    }

    /// Returns the origin of a client's request with `Host: authority`.
    pub(super) fn from_host(authority: &str) -> Origin {
        Origin { text: format!("http://{authority}"), other: None, authority: "http://".len() }
    }

    /// Returns the origin: `http://example.com:8080`.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns host and port: `example.com:8080`.
    pub(super) fn authority(&self) -> &str {
        &self.text[self.authority..]
    }

    /// Replaces this origin by `there` wherever it occurs in the value; `None` if it does not occur.
    pub(super) fn replace_in(&self, value: &[u8], there: &Origin) -> Option<Vec<u8>> {
        let mut moved = Vec::new();
        let mut rest = value;
        let mut last = None;
        while !rest.is_empty() {
            match self.length_at(rest, last) {
                Some(length) => {
                    moved.extend_from_slice(there.text.as_bytes());
                    last = rest.get(length - 1).copied();
                    rest = &rest[length..];
                }
                None => {
                    moved.push(rest[0]);
                    last = Some(rest[0]);
                    rest = &rest[1..];
                }
            }
        }
        (moved != value).then_some(moved)
    }

    /// Returns the length of this origin if `text` starts with it; `before` is the byte before `text`.
    fn length_at(&self, text: &[u8], before: Option<u8>) -> Option<usize> {
        if before.is_some_and(|byte| byte.is_ascii_alphanumeric()) {
            return None;
        }
        let ways = [Some(&self.text), self.other.as_ref()];
        ways.into_iter().flatten().map(|way| way.as_bytes()).find_map(|way| {
            let same = text.get(..way.len())?.eq_ignore_ascii_case(way);
            // `http://example.com` is no prefix match for `http://example.com.evil`, `http://example.com:81` or
            // `…com@evil`.
            let ends =
                !text.get(way.len()).is_some_and(|next| next.is_ascii_alphanumeric() || b".-_~:@%".contains(next));
            (same && ends).then_some(way.len())
        })
    }
}

/// Replacements in a text, written in one pass.
pub(super) struct TextEdits<'a> {
    text: &'a [u8],
    at: usize,
    out: &'a mut Vec<u8>,
}

impl<'a> TextEdits<'a> {
    /// Starts without replacements.
    pub(super) fn new(text: &'a [u8], out: &'a mut Vec<u8>) -> TextEdits<'a> {
        TextEdits { text, at: 0, out }
    }

    /// Replaces `part`, a part of the text after the previous replacements.
    pub(super) fn replace(&mut self, part: &[u8], by: &[u8]) {
        let start = part.as_ptr().addr().wrapping_sub(self.text.as_ptr().addr());
        if start >= self.at && start + part.len() <= self.text.len() {
            self.out.extend_from_slice(&self.text[self.at..start]);
            self.out.extend_from_slice(by);
            self.at = start + part.len();
        }
    }

    /// Writes the rest of the text.
    pub(super) fn finish(self) {
        self.out.extend_from_slice(&self.text[self.at..]);
    }
}

/// The most bytes of a stream that are held while its first event is incomplete.
const HOLD_LIMIT: usize = 16 * 1024;

/// The first event of a stream, while it is incomplete.
#[derive(Debug, Default)]
pub(super) struct FirstEvent {
    /// The bytes as received, with their framing.
    raw: Vec<u8>,
    /// The data without framing.
    data: Vec<u8>,
    line: Line,
}

/// The position within a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Line {
    #[default]
    Start,
    AfterReturn,
    Inside,
}

/// What to do with a piece of the stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HeldEvent {
    /// Hold it until the rest of the event arrives.
    Hold,
    /// Forward these bytes unchanged, and everything after them.
    Release(Vec<u8>),
    /// Forward these bytes instead of the held ones, because a URL was changed. They form one chunk with the rest of
    /// the current one.
    Changed(Vec<u8>),
}

impl FirstEvent {
    /// Adds the next piece: framing bytes, and the data after them.
    pub(super) fn push(&mut self, framing: &[u8], data: &[u8], upstream: &Origin, here: &Origin) -> HeldEvent {
        self.raw.extend_from_slice(framing);
        let end = self.end(data);
        self.raw.extend_from_slice(data);
        self.data.extend_from_slice(data);
        match end {
            Some(end) => {
                let (event, rest) = self.data.split_at(self.data.len() - data.len() + end);
                match rewrite_endpoint(event, upstream, here) {
                    Some(event) => HeldEvent::Changed([event.as_slice(), rest].concat()),
                    None => self.release(),
                }
            }
            None if self.raw.len() > HOLD_LIMIT => self.release(),
            None => HeldEvent::Hold,
        }
    }

    /// Returns the held bytes as received.
    pub(super) fn release(&mut self) -> HeldEvent {
        HeldEvent::Release(std::mem::take(&mut self.raw))
    }

    /// Returns the held bytes, because the stream ended.
    pub(super) fn into_raw(self) -> Vec<u8> {
        self.raw
    }

    /// Returns the end of the event in the data: after an empty line.
    fn end(&mut self, data: &[u8]) -> Option<usize> {
        for (at, byte) in data.iter().enumerate() {
            self.line = match (self.line, byte) {
                (Line::Start, b'\r' | b'\n') | (Line::AfterReturn, b'\r') => return Some(at + 1),
                (Line::Inside, b'\r') => Line::AfterReturn,
                (Line::Inside, b'\n') | (Line::AfterReturn, b'\n') => Line::Start,
                (Line::Start | Line::AfterReturn | Line::Inside, _) => Line::Inside,
            };
        }
        None
    }
}

/// Translates the URL of an `endpoint` event; `None` if the event is another one or its URL is not the upstream's.
fn rewrite_endpoint(event: &[u8], upstream: &Origin, here: &Origin) -> Option<Vec<u8>> {
    let mut decoder = Decoder::new(event.len());
    decoder.push(event).ok()?;
    decoder.next_event().filter(|event| event.event.as_deref() == Some("endpoint"))?;
    upstream.replace_in(event, here)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(upstream: &str, value: &str) -> Option<String> {
        let origin = Origin::from_url(&upstream.parse().unwrap());
        let moved = origin.replace_in(value.as_bytes(), &Origin::from_host("127.0.0.1:9"))?;
        Some(String::from_utf8(moved).unwrap())
    }

    #[test]
    fn urls_of_the_upstream_become_urls_of_the_proxy() {
        let table = [
            ("http://a.example:8080/mcp", "http://a.example:8080/x?y", "http://127.0.0.1:9/x?y"),
            ("http://a.example:8080/mcp", "HTTP://A.example:8080", "http://127.0.0.1:9"),
            ("https://a.example/mcp", "https://a.example:443/x", "http://127.0.0.1:9/x"),
            ("https://a.example:443/mcp", "https://a.example/x", "http://127.0.0.1:9/x"),
            ("http://[::1]:80/", "http://[::1]/x", "http://127.0.0.1:9/x"),
            (
                "https://a.example/mcp",
                r#"Bearer a="https://a.example", resource_metadata="https://a.example/.well-known/x""#,
                r#"Bearer a="http://127.0.0.1:9", resource_metadata="http://127.0.0.1:9/.well-known/x""#,
            ),
        ];
        for (upstream, value, expected) in table {
            assert_eq!(moved(upstream, value).as_deref(), Some(expected), "{value}");
        }
    }

    #[test]
    fn other_urls_are_not_rewritten() {
        for value in [
            "/relative",
            "http://a.example.evil/",
            "http://a.example@evil/",
            "http://a.example:81/",
            "https://a.example/",
            "xhttp://a.example/",
            "",
        ] {
            assert_eq!(moved("http://a.example/mcp", value), None, "{value}");
        }
    }

    #[test]
    fn text_outside_the_replaced_parts_is_unchanged() {
        let text = b"a: 1\r\nb:  2\r\n";
        let mut out = Vec::new();
        let mut edits = TextEdits::new(text, &mut out);
        edits.replace(&text[3..4], b"one");
        edits.replace(&text[10..11], b"");
        edits.finish();
        assert_eq!(out, b"a: one\r\nb:  \r\n");
    }

    fn push(first: &mut FirstEvent, framing: &str, data: &str) -> HeldEvent {
        let upstream = Origin::from_url(&"http://mcp.example:8000/sse".parse().unwrap());
        first.push(framing.as_bytes(), data.as_bytes(), &upstream, &Origin::from_host("localhost:9"))
    }

    #[test]
    fn an_endpoint_url_of_the_upstream_is_rewritten() {
        for end in ["\n", "\r\n", "\r"] {
            let event = format!("event: endpoint{end}data: http://mcp.example:8000/m?s=1{end}{end}");
            let moved = event.replace("mcp.example:8000", "localhost:9");
            let mut first = FirstEvent::default();
            assert_eq!(push(&mut first, "10\r\n", &event[..7]), HeldEvent::Hold);
            let rest = format!("{}: ping", &event[7..]);
            let verdict = push(&mut first, "\r\n20\r\n", &rest);
            // The line feed after the last carriage return belongs to the rest and has no effect.
            assert_eq!(verdict, HeldEvent::Changed(format!("{moved}: ping").into_bytes()), "{end:?}");
        }
    }

    #[test]
    fn any_other_first_event_is_forwarded_unchanged() {
        let table = [
            "event: endpoint\ndata: /messages?session=1\n\n",
            "event: endpoint\ndata: http://other.example/\n\n",
            "event: message\ndata: http://mcp.example:8000/\n\n",
            "data: http://mcp.example:8000/\n\n",
            "id: 1\ndata: \n\n",
            ": hello\n\n",
            "\n",
        ];
        for event in table {
            let mut first = FirstEvent::default();
            let (one, two) = event.split_at(event.len() - 1);
            assert_eq!(push(&mut first, "a\r\n", one), HeldEvent::Hold);
            let verdict = push(&mut first, "\r\n1\r\n", two);
            assert_eq!(verdict, HeldEvent::Release(format!("a\r\n{one}\r\n1\r\n{two}").into_bytes()));
        }
    }

    #[test]
    fn a_first_event_beyond_the_limit_is_released() {
        let mut first = FirstEvent::default();
        let long = "x".repeat(HOLD_LIMIT);
        assert_eq!(push(&mut first, "", &long), HeldEvent::Hold);
        assert_eq!(push(&mut first, "", "y"), HeldEvent::Release(format!("{long}y").into_bytes()));
    }
}
