//! Addresses of the one side, as the other side knows them.

use http::Uri;
use http::uri::Scheme;

/// Scheme, host and port of a server, in every way in which they can be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    /// `http://example.com:8080`, as the user wrote it.
    text: String,
    /// The same with the port that the scheme implies, or without it.
    other: Option<String>,
    /// Where the host begins in the text.
    authority: usize,
}

impl Origin {
    /// The origin of an address.
    pub(super) fn of(url: &Uri) -> Origin {
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

    /// The origin that a client means who says `Host: authority` to us.
    pub(super) fn plain(authority: &str) -> Origin {
        Origin { text: format!("http://{authority}"), other: None, authority: "http://".len() }
    }

    /// `http://example.com:8080`
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// `example.com:8080`
    pub(super) fn authority(&self) -> &str {
        &self.text[self.authority..]
    }

    /// The value with every address of this origin moved to `there`; `None` if there is none in it.
    pub(super) fn moved(&self, value: &[u8], there: &Origin) -> Option<Vec<u8>> {
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

    /// How long this origin is at the beginning of `text`, if it is there; `before` is the byte before it.
    fn length_at(&self, text: &[u8], before: Option<u8>) -> Option<usize> {
        if before.is_some_and(|byte| byte.is_ascii_alphanumeric()) {
            return None;
        }
        let ways = [Some(&self.text), self.other.as_ref()];
        ways.into_iter().flatten().map(|way| way.as_bytes()).find_map(|way| {
            let same = text.get(..way.len())?.eq_ignore_ascii_case(way);
            // `http://example.com` does not begin `http://example.com.evil`, `http://example.com:81` or `…com@evil`.
            let ends =
                !text.get(way.len()).is_some_and(|next| next.is_ascii_alphanumeric() || b".-_~:@%".contains(next));
            (same && ends).then_some(way.len())
        })
    }
}

/// Changes in a text, written in one go.
pub(super) struct Splices<'a> {
    text: &'a [u8],
    at: usize,
    out: &'a mut Vec<u8>,
}

impl<'a> Splices<'a> {
    /// Nothing is changed yet.
    pub(super) fn new(text: &'a [u8], out: &'a mut Vec<u8>) -> Splices<'a> {
        Splices { text, at: 0, out }
    }

    /// Puts something in the place of `part`, which is a part of the text after those before.
    pub(super) fn replace(&mut self, part: &[u8], by: &[u8]) {
        let start = part.as_ptr().addr().wrapping_sub(self.text.as_ptr().addr());
        if start >= self.at && start + part.len() <= self.text.len() {
            self.out.extend_from_slice(&self.text[self.at..start]);
            self.out.extend_from_slice(by);
            self.at = start + part.len();
        }
    }

    /// Writes what is left.
    pub(super) fn finish(self) {
        self.out.extend_from_slice(&self.text[self.at..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(upstream: &str, value: &str) -> Option<String> {
        let origin = Origin::of(&upstream.parse().unwrap());
        let moved = origin.moved(value.as_bytes(), &Origin::plain("127.0.0.1:9"))?;
        Some(String::from_utf8(moved).unwrap())
    }

    #[test]
    fn addresses_of_the_upstream_become_ours() {
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
    fn other_addresses_stay() {
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
    fn only_the_parts_that_are_replaced_change() {
        let text = b"a: 1\r\nb:  2\r\n";
        let mut out = Vec::new();
        let mut splices = Splices::new(text, &mut out);
        splices.replace(&text[3..4], b"one");
        splices.replace(&text[10..11], b"");
        splices.finish();
        assert_eq!(out, b"a: one\r\nb:  \r\n");
    }
}
