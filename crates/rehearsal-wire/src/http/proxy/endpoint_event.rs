//! The first event of a stream, which in HTTP+SSE says where the client must post its messages.

use super::rewrite::Origin;
use crate::http::sse::Decoder;

/// How much of a stream is held back while its first event is not complete.
const HOLD_LIMIT: usize = 16 * 1024;

/// The first event of a stream while it is not complete.
#[derive(Debug, Default)]
pub(super) struct FirstEvent {
    /// As it came, with its framing.
    raw: Vec<u8>,
    /// Without.
    data: Vec<u8>,
    line: Line,
}

/// Where we are in a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Line {
    #[default]
    Start,
    AfterReturn,
    Inside,
}

/// What becomes of a piece of the stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is held back until the rest of the event comes.
    Hold,
    /// This goes on as it came, and everything after it.
    Release(Vec<u8>),
    /// An address was changed; this goes on in the place of everything so far, and is in one chunk with what is left of
    /// the current one.
    Changed(Vec<u8>),
}

impl FirstEvent {
    /// Takes the next piece: bytes of framing, and the data after it.
    pub(super) fn push(&mut self, framing: &[u8], data: &[u8], upstream: &Origin, here: &Origin) -> Verdict {
        self.raw.extend_from_slice(framing);
        let end = self.end(data);
        self.raw.extend_from_slice(data);
        self.data.extend_from_slice(data);
        match end {
            Some(end) => {
                let (event, rest) = self.data.split_at(self.data.len() - data.len() + end);
                match moved(event, upstream, here) {
                    Some(event) => Verdict::Changed([event.as_slice(), rest].concat()),
                    None => self.release(),
                }
            }
            None if self.raw.len() > HOLD_LIMIT => self.release(),
            None => Verdict::Hold,
        }
    }

    /// What is held back, as it came.
    pub(super) fn release(&mut self) -> Verdict {
        Verdict::Release(std::mem::take(&mut self.raw))
    }

    /// What is held back, because the stream is over.
    pub(super) fn into_raw(self) -> Vec<u8> {
        self.raw
    }

    /// Where in the data the event ends: after a line with nothing in it.
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

/// The event with its address moved, where it is an `endpoint` with an address of the upstream.
fn moved(event: &[u8], upstream: &Origin, here: &Origin) -> Option<Vec<u8>> {
    let mut decoder = Decoder::new(event.len());
    decoder.push(event).ok()?;
    decoder.next_event().filter(|event| event.event.as_deref() == Some("endpoint"))?;
    upstream.moved(event, here)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(first: &mut FirstEvent, framing: &str, data: &str) -> Verdict {
        let upstream = Origin::of(&"http://mcp.example:8000/sse".parse().unwrap());
        first.push(framing.as_bytes(), data.as_bytes(), &upstream, &Origin::plain("localhost:9"))
    }

    #[test]
    fn an_address_of_the_upstream_is_moved() {
        for end in ["\n", "\r\n", "\r"] {
            let event = format!("event: endpoint{end}data: http://mcp.example:8000/m?s=1{end}{end}");
            let moved = event.replace("mcp.example:8000", "localhost:9");
            let mut first = FirstEvent::default();
            assert_eq!(push(&mut first, "10\r\n", &event[..7]), Verdict::Hold);
            let rest = format!("{}: ping", &event[7..]);
            let verdict = push(&mut first, "\r\n20\r\n", &rest);
            // The line feed after the last carriage return belongs to the rest; that changes nothing.
            assert_eq!(verdict, Verdict::Changed(format!("{moved}: ping").into_bytes()), "{end:?}");
        }
    }

    #[test]
    fn everything_else_goes_on_as_it_came() {
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
            assert_eq!(push(&mut first, "a\r\n", one), Verdict::Hold);
            let verdict = push(&mut first, "\r\n1\r\n", two);
            assert_eq!(verdict, Verdict::Release(format!("a\r\n{one}\r\n1\r\n{two}").into_bytes()));
        }
    }

    #[test]
    fn only_so_much_is_held_back() {
        let mut first = FirstEvent::default();
        let long = "x".repeat(HOLD_LIMIT);
        assert_eq!(push(&mut first, "", &long), Verdict::Hold);
        assert_eq!(push(&mut first, "", "y"), Verdict::Release(format!("{long}y").into_bytes()));
    }
}
