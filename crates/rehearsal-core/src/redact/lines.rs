//! Finds the lines that may contain secrets.

use std::iter::Peekable;

use memchr::memmem;

use super::prefilter::{merged, suspicions};
use super::redaction::Redaction;

/// A run of lines that were checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineRun<'b> {
    /// Lines that redaction would not change.
    Clean(&'b [u8]),
    /// One line that may contain a secret.
    Suspect(&'b [u8]),
}

impl Redaction {
    /// Splits whole lines, each with its end, into runs. Most lines have no secrets, and one search over all of them is
    /// cheaper than one for each line.
    pub fn lines<'b>(&self, bytes: &'b [u8]) -> impl Iterator<Item = LineRun<'b>> {
        let starts = std::iter::once(0).chain(memchr::memchr_iter(b'\n', bytes).map(|end| end + 1));
        let suspicions: Places<'b> = if self.is_none() {
            Box::new(std::iter::empty())
        } else if !self.rules.places.is_empty() || !self.rules.patterns.is_empty() {
            Box::new(starts)
        } else {
            // A line that is no object may be a line of a private key.
            let noise = starts.filter(|start| bytes.get(*start).is_some_and(|first| *first != b'{'));
            Box::new(merged(noise, suspicions(bytes)))
        };
        LineRuns { bytes, at: 0, suspicions: suspicions.peekable() }
    }
}

type Places<'b> = Box<dyn Iterator<Item = usize> + 'b>;

struct LineRuns<'b> {
    bytes: &'b [u8],
    at: usize,
    suspicions: Peekable<Places<'b>>,
}

impl<'b> Iterator for LineRuns<'b> {
    type Item = LineRun<'b>;

    fn next(&mut self) -> Option<LineRun<'b>> {
        let (bytes, start) = (self.bytes, self.at);
        if start == bytes.len() {
            return None;
        }
        while self.suspicions.next_if(|place| *place < start).is_some() {}
        // The start of the suspicious line, and the end of the clean lines before it.
        let place = self.suspicions.peek().copied().filter(|place| *place < bytes.len());
        let line = place.map(|place| memchr::memrchr(b'\n', &bytes[start..place]).map_or(start, |end| start + end + 1));
        let (end, run): (usize, fn(&'b [u8]) -> LineRun<'b>) = match (line, place) {
            (Some(line), Some(place)) if line == start => {
                (memchr::memchr(b'\n', &bytes[place..]).map_or(bytes.len(), |end| place + end + 1), LineRun::Suspect)
            }
            (Some(line), _) => (line, LineRun::Clean),
            (None, _) => (bytes.len(), LineRun::Clean),
        };
        self.at = end;
        Some(run(&bytes[start..end]))
    }
}

/// The beginning of a private key of any type.
const BEGIN: &[u8] = b"-----BEGIN ";
/// The end of a private key.
const END: &[u8] = b"-----END";
const DASHES: &[u8] = b"-----";

/// The first line of a private key: the lines after it are treated as its body.
pub const PRIVATE_KEY: &str = "-----BEGIN PRIVATE KEY-----\n";

/// The first or the last line of a private key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// `-----BEGIN RSA PRIVATE KEY-----`
    Begins,
    /// `-----END RSA PRIVATE KEY-----`
    Ends,
}

/// The last edge of a private key in a text: after [`Edge::Begins`] the following lines are inside of a key.
pub fn last_edge(text: &[u8]) -> Option<Edge> {
    let begins = memmem::find_iter(text, BEGIN).filter(|start| body(text, *start).is_some()).last();
    let ends = memmem::rfind(text, END);
    match (begins, ends) {
        (Some(begins), Some(ends)) if begins < ends => Some(Edge::Ends),
        (Some(_), _) => Some(Edge::Begins),
        (None, Some(_)) => Some(Edge::Ends),
        (None, None) => None,
    }
}

/// The start of the body of the key whose first line begins at `start`, if it is a private key.
pub(super) fn body(text: &[u8], start: usize) -> Option<usize> {
    let label = text.get(start + BEGIN.len()..)?;
    let label = &label[..memmem::find(label, DASHES).unwrap_or(label.len())];
    let private = label.ends_with(b"PRIVATE KEY") || label.ends_with(b"PRIVATE KEY BLOCK");
    private.then(|| (start + BEGIN.len() + label.len() + DASHES.len()).min(text.len()))
}

/// The end of the key whose body begins at `body`.
pub(super) fn end(text: &[u8], body: usize) -> usize {
    memmem::find(&text[body..], END).map_or(text.len(), |offset| body + offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::{Channel, Side};
    use crate::message::Message;
    use crate::trace::EntryBody;
    use bytes::Bytes;
    use proptest::prelude::*;

    #[test]
    fn only_the_lines_that_may_have_something_are_looked_at() {
        let lines = b"{\"a\":1}\n{\"password\":2}\n{\"b\":3}\n{\"c\":4}\nnoise\n{\"u\":\"http://x\"}\n";
        let runs: Vec<_> = Redaction::standard().lines(lines).collect();
        let expected = [
            LineRun::Clean(b"{\"a\":1}\n"),
            LineRun::Suspect(b"{\"password\":2}\n"),
            LineRun::Clean(b"{\"b\":3}\n{\"c\":4}\n"),
            LineRun::Suspect(b"noise\n"),
            LineRun::Suspect(b"{\"u\":\"http://x\"}\n"),
        ];
        assert_eq!(runs, expected);
        assert_eq!(Redaction::none().lines(lines).collect::<Vec<_>>(), [LineRun::Clean(lines)]);
        let rule = Redaction::none().with("$.params.a".parse().unwrap());
        assert!(rule.lines(lines).all(|run| matches!(run, LineRun::Suspect(_))));
        assert_eq!(rule.lines(lines).count(), 6);
        assert_eq!(Redaction::standard().lines(b"").count(), 0);
    }

    proptest! {
        #[test]
        fn clean_runs_stay_unchanged_and_no_byte_is_lost(
            pieces in prop::collection::vec(prop::sample::select(PIECES), 0..30),
        ) {
            let mut bytes = pieces.concat().into_bytes();
            bytes.push(b'\n');
            let redaction = Redaction::standard();
            let mut all = Vec::new();
            for run in redaction.lines(&bytes) {
                let (LineRun::Clean(lines) | LineRun::Suspect(lines)) = run;
                prop_assert!(lines.ends_with(b"\n"));
                all.extend_from_slice(lines);
                if let LineRun::Clean(lines) = run {
                    for line in lines.split(|byte| *byte == b'\n') {
                        let message = Message::parse(Bytes::copy_from_slice(line));
                        let what = EntryBody::Message { from: Side::Client, channel: Channel::MAIN, message, event_id: None };
                        prop_assert_eq!(redaction.redact_entry_body(what.clone()), (what, vec![]));
                    }
                }
            }
            prop_assert_eq!(all, bytes);
        }
    }

    const PIECES: &[&str] = &[
        "\n",
        "\n",
        "{",
        "}",
        "\"",
        ":",
        ",",
        "pass",
        "word",
        "token",
        "progressToken",
        "\"progressToken\":1",
        "api",
        "key",
        "_",
        "://",
        "user:pw@host",
        "sk-proj-abcdefghijklmnop1234567890",
        "Bearer abcdefghijk",
        "\\u00",
        "73",
        "eyJ",
        "hello",
        "{\"password\":\"x\"}",
        "{\"a\":1}",
        "MIIEowIBAAKCAQEA1c7e3Nn9b8u0ZB3f2Q4w5x6y7z8A9B0C1D2E3F4G5H6I7J8K",
    ];

    #[test]
    fn the_last_edge_of_a_text_is_found() {
        let table = [
            ("key: -----BEGIN RSA PRIVATE KEY-----", Some(Edge::Begins)),
            ("-----BEGIN PGP PRIVATE KEY BLOCK-----", Some(Edge::Begins)),
            ("-----BEGIN EC PRIVATE KEY", Some(Edge::Begins)),
            ("-----BEGIN CERTIFICATE-----, not the PRIVATE KEY", None),
            ("-----BEGIN PRIVATE KEY----- x -----END PRIVATE KEY-----", Some(Edge::Ends)),
            ("-----END PRIVATE KEY----- -----BEGIN PRIVATE KEY-----", Some(Edge::Begins)),
            ("MIIEow", None),
        ];
        for (text, expected) in table {
            assert_eq!(last_edge(text.as_bytes()), expected, "{text}");
        }
    }
}
