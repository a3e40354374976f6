//! Splits one direction of a stdio connection into entries.

use bytes::Bytes;
use rehearsal_core::exchange::{Channel, Side};
use rehearsal_core::message::{GarbledReason, Message};
use rehearsal_core::trace::EntryBody;

use super::multiline_secrets::OpenPrivateKey;
use super::partial_message::{KeptPrefix, PartialPolicy};

/// Number of bytes that are recorded of a line that is too long.
const TOO_LONG_PREFIX: usize = 64 * 1024;

/// Splits bytes into lines; memory is bounded by the limit.
#[derive(Debug)]
pub(super) struct LineSplitter {
    pub(super) from: Side,
    pub(super) limit: usize,
    pieces: PartialPolicy,
    /// The beginning of a line that has not ended.
    rest: Vec<u8>,
    /// How much of it is recorded already.
    kept: KeptPrefix,
    /// Whether the rest of a line that is too long is being skipped.
    skipping: bool,
    /// Whether the next line may be inside a private key.
    pub(super) key: OpenPrivateKey,
}

impl LineSplitter {
    pub(super) fn new(from: Side, limit: usize, pieces: PartialPolicy) -> LineSplitter {
        LineSplitter {
            from,
            limit,
            pieces,
            rest: Vec::new(),
            kept: KeptPrefix::default(),
            skipping: false,
            key: OpenPrivateKey::default(),
        }
    }

    /// Whether the next byte begins a line.
    pub(super) fn is_between(&self) -> bool {
        self.rest.is_empty() && !self.skipping
    }

    /// Adds bytes that are about to be forwarded.
    pub(super) fn split(&mut self, chunk: &[u8], entries: &mut Vec<EntryBody>) {
        // One copy for all lines that end here; the messages are slices of it.
        let (lines, rest) = match memchr::memrchr(b'\n', chunk) {
            Some(end) => (Bytes::copy_from_slice(&chunk[..=end]), &chunk[end + 1..]),
            None => (Bytes::new(), chunk),
        };
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', &lines) {
            self.line(lines.slice(start..end), entries);
            start = end + 1;
        }
        if !rest.is_empty() {
            self.more(rest, entries);
        }
    }

    /// Ends the stream.
    pub(super) fn end(&mut self, entries: &mut Vec<EntryBody>) {
        let rest = std::mem::take(&mut self.rest);
        if !rest.is_empty() {
            entries.push(self.message_entry(Message::unterminated(rest)));
        }
    }

    /// Completes a line; `end` is its last part.
    fn line(&mut self, end: Bytes, entries: &mut Vec<EntryBody>) {
        if std::mem::take(&mut self.skipping) {
            return;
        }
        self.kept = KeptPrefix::default();
        let line = match self.rest.is_empty() {
            true => end,
            false => {
                let mut line = std::mem::take(&mut self.rest);
                line.extend_from_slice(&end);
                line.into()
            }
        };
        let message = if line.len() > self.limit { too_long(&line, self.limit) } else { Message::parse(line) };
        entries.push(self.message_entry(message));
    }

    fn more(&mut self, rest: &[u8], entries: &mut Vec<EntryBody>) {
        if self.skipping {
            return;
        }
        self.rest.extend_from_slice(rest);
        if self.rest.len() > self.limit {
            let line = std::mem::take(&mut self.rest);
            (self.kept, self.skipping) = (KeptPrefix::default(), true);
            entries.push(self.message_entry(too_long(&line, self.limit)));
            return;
        }
        let so_far = &self.rest;
        let some =
            |from: usize, limit: usize| Bytes::copy_from_slice(&so_far[from..][..limit.min(so_far.len() - from)]);
        let piece = self.kept.piece(self.pieces, so_far.len(), some);
        let (from, channel) = (self.from, Channel::MAIN);
        entries.extend(piece.map(|(offset, bytes)| EntryBody::Piece { from, channel, offset, bytes }));
    }

    fn message_entry(&self, message: Message) -> EntryBody {
        EntryBody::Message { from: self.from, channel: Channel::MAIN, message, event_id: None }
    }
}

fn too_long(line: &[u8], limit: usize) -> Message {
    Message::garbled(Bytes::copy_from_slice(&line[..line.len().min(TOO_LONG_PREFIX)]), GarbledReason::TooLong { limit })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PING: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

    fn cut(chunks: &[&[u8]], limit: usize, pieces: PartialPolicy) -> Vec<String> {
        let mut lines = LineSplitter::new(Side::Client, limit, pieces);
        let mut entries = Vec::new();
        chunks.iter().for_each(|chunk| lines.split(chunk, &mut entries));
        lines.end(&mut entries);
        let shown = |what: &EntryBody| match what {
            EntryBody::Message { message, .. } => format!("{message:?}"),
            EntryBody::Piece { offset, bytes, .. } => format!("{offset}+{}", String::from_utf8_lossy(bytes)),
            other => panic!("{other:?}"),
        };
        entries.iter().map(shown).collect()
    }

    #[test]
    fn lines_do_not_depend_on_how_the_bytes_arrive() {
        let bytes = [PING, b"\r\n\nnoise\n", PING, b"\n", b"\xff\n"].concat();
        let whole = cut(&[&bytes], 1000, PartialPolicy::Raw);
        assert_eq!(whole.len(), 5);
        for size in 1..bytes.len() {
            let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
            let mut found = cut(&chunks, 1000, PartialPolicy::Raw);
            found.retain(|what| !what.starts_with(|first: char| first.is_ascii_digit()));
            assert_eq!(found, whole, "in chunks of {size}");
        }
    }

    #[test]
    fn the_forwarded_part_of_a_line_is_recorded_before_the_line_ends() {
        let found = cut(&[b"{\"a\":\"b", b"c\"", b"}\n{"], 1000, PartialPolicy::Raw);
        assert_eq!(found[..2], ["0+{\"a\":\"b", "7+c\""]);
        assert!(found[2].contains("{\"a\":\"bc\"}"), "{found:?}");
        assert!(found[4].starts_with("garbled (half a line"), "{found:?}");
        let redacted = cut(&[b"{\"a\":1,\"b\":\"secr", b"et\""], 1000, PartialPolicy::Redacted);
        assert_eq!(redacted[0], r#"0+{"a":1}"#);
        assert!(redacted[1].starts_with("garbled"), "nothing more is whole: {redacted:?}");
    }

    #[test]
    fn an_overlong_line_is_truncated_and_the_next_one_is_complete() {
        for size in [1, 7, 1000] {
            let bytes = [&[b'x'; 500][..], b"\n", PING, b"\n"].concat();
            let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
            let mut found = cut(&chunks, 100, PartialPolicy::Raw);
            found.retain(|what| !what.starts_with(|first: char| first.is_ascii_digit()));
            assert_eq!(found.len(), 2, "in chunks of {size}: {found:?}");
            assert!(found[0].starts_with("garbled (longer than the limit of 100 bytes): xxx"), "{found:?}");
        }
    }
}
