//! Parses the body of a request or a response into entries.

use bytes::Bytes;
use rehearsal_core::exchange::{Channel, Side};
use rehearsal_core::message::{GarbledReason, Message};
use rehearsal_core::redact::Redaction;
use rehearsal_core::trace::{EntryBody, Headers};
use rehearsal_wire::http::sse::{Decoder, SseEvent};

use super::encoding::{Encoding, WantsMore};
use crate::record::partial_message::{KeptPrefix, PartialPolicy};

/// Maximum number of recorded bytes of a body that is neither JSON nor events.
const OTHER_LIMIT: usize = 64 * 1024;

/// A body that is being parsed into messages.
#[derive(Debug)]
pub(super) enum BodyReader {
    /// One message, or another kind of content.
    Whole {
        bytes: Vec<u8>,
        /// Maximum number of recorded bytes.
        limit: usize,
        /// Whether the body was longer.
        cut: bool,
        /// How much of it is recorded.
        kept: KeptPrefix,
    },
    /// A stream of events, and how much of the incomplete one is recorded.
    Events(Decoder, KeptPrefix),
    /// A compressed body.
    Compressed { encoding: Encoding, name: String, content: Box<BodyReader> },
    /// A body that cannot be read.
    Unreadable { why: String },
}

/// The sender of the body, and its channel.
#[derive(Clone, Copy, Debug)]
pub(super) struct BodyOrigin {
    pub(super) from: Side,
    pub(super) channel: Channel,
}

impl BodyReader {
    /// A body with these headers; `limit` is the longest message.
    pub(super) fn new(headers: &Headers, limit: usize) -> BodyReader {
        let encoding = headers.get("content-encoding").filter(|encoding| !encoding.eq_ignore_ascii_case("identity"));
        if let Some(name) = encoding {
            return match Encoding::named(name) {
                Some(encoding) => {
                    let content = Box::new(BodyReader::content(headers, limit));
                    BodyReader::Compressed { encoding, name: name.to_owned(), content }
                }
                None => BodyReader::Unreadable { why: format!("the body is compressed ({name}) and was not read") },
            };
        }
        BodyReader::content(headers, limit)
    }

    /// The reader of the uncompressed body.
    fn content(headers: &Headers, limit: usize) -> BodyReader {
        let kind = headers.get("content-type").unwrap_or_default().split(';').next().unwrap_or_default().trim();
        if kind.eq_ignore_ascii_case("text/event-stream") {
            return BodyReader::Events(Decoder::new(limit), KeptPrefix::default());
        }
        let ending = kind.len().checked_sub("json".len()).and_then(|at| kind.get(at..)).unwrap_or_default();
        let is_json = kind.is_empty() || ending.eq_ignore_ascii_case("json");
        let limit = if is_json { limit } else { limit.min(OTHER_LIMIT) };
        BodyReader::Whole { bytes: Vec::new(), limit, cut: false, kept: KeptPrefix::default() }
    }

    /// The number of buffered bytes.
    pub(super) fn len(&self) -> usize {
        match self {
            BodyReader::Whole { bytes, .. } => bytes.len(),
            BodyReader::Compressed { content, .. } => content.len(),
            BodyReader::Events(..) | BodyReader::Unreadable { .. } => 0,
        }
    }

    /// Adds bytes of the body, and appends the entries that they complete.
    pub(super) fn push(&mut self, data: &[u8], origin: BodyOrigin, entries: &mut Vec<EntryBody>) {
        match self {
            BodyReader::Whole { bytes, limit, cut, kept: _ } => {
                let room = (*limit - bytes.len()).min(data.len());
                bytes.extend_from_slice(&data[..room]);
                *cut |= room < data.len();
            }
            BodyReader::Events(decoder, kept) => {
                let pushed = decoder.push(data);
                while let Some(event) = decoder.next_event() {
                    *kept = KeptPrefix::default();
                    event_entry(event, origin, entries);
                }
                if let Err(error) = pushed {
                    let why = format!("{error}; the rest of it was not read");
                    entries.push(message(
                        origin,
                        Message::garbled(error.data, GarbledReason::TooLong { limit: error.limit }),
                        None,
                    ));
                    *self = BodyReader::Unreadable { why };
                }
            }
            // The content before this was cut, so the rest could not be decompressed.
            BodyReader::Compressed { content, .. } if content.wants_more() == WantsMore::Unwanted => {}
            BodyReader::Compressed { encoding, name, content } => {
                let decoded = encoding.decode(data, &mut |plain| {
                    content.push(plain, origin, entries);
                    content.wants_more()
                });
                if let Err(error) = decoded {
                    let why = format!("the body is not compressed as its header states ({name}): {error}");
                    let content = std::mem::replace(&mut **content, BodyReader::Unreadable { why: why.clone() });
                    content.end(false, origin, entries);
                    *self = BodyReader::Unreadable { why };
                }
            }
            BodyReader::Unreadable { .. } => {}
        }
    }

    /// Whether more of the body would be recorded.
    fn wants_more(&self) -> WantsMore {
        match self {
            BodyReader::Whole { cut: false, .. } | BodyReader::Events(..) | BodyReader::Compressed { .. } => {
                WantsMore::Wanted
            }
            BodyReader::Whole { cut: true, .. } | BodyReader::Unreadable { .. } => WantsMore::Unwanted,
        }
    }

    /// Ends the body. Returns why it could not be read, if so.
    pub(super) fn end(self, is_whole: bool, origin: BodyOrigin, entries: &mut Vec<EntryBody>) -> Option<String> {
        match self {
            BodyReader::Whole { bytes, .. } if bytes.trim_ascii().is_empty() => None,
            BodyReader::Whole { bytes, limit, cut, kept: _ } => {
                let bytes = Bytes::from(bytes);
                let content_message = match (cut, is_whole) {
                    (true, _) => Message::garbled(bytes, GarbledReason::TooLong { limit }),
                    (false, true) => Message::parse(bytes),
                    (false, false) => Message::garbled(bytes, GarbledReason::PartialLine),
                };
                entries.push(message(origin, content_message, None));
                None
            }
            BodyReader::Events(decoder, _) => {
                let partial = decoder.finish().map(|event| event.data).filter(|data| !data.is_empty());
                entries.extend(
                    partial.map(|data| message(origin, Message::garbled(data, GarbledReason::PartialLine), None)),
                );
                None
            }
            BodyReader::Compressed { content, .. } => content.end(is_whole, origin, entries),
            BodyReader::Unreadable { why } => Some(why),
        }
    }

    /// Returns a message verbatim, with a line end, if it needs no parsing: it has no secrets, and fits in a line.
    pub(super) fn line(&mut self, redaction: &Redaction) -> Option<Vec<u8>> {
        match self {
            BodyReader::Whole { bytes, cut: false, .. } => {
                let fits = bytes.starts_with(b"{") && memchr::memchr(b'\n', bytes).is_none();
                (fits && redaction.is_clean(bytes)).then(|| {
                    let mut line = std::mem::take(bytes);
                    line.push(b'\n');
                    line
                })
            }
            BodyReader::Whole { cut: true, .. }
            | BodyReader::Events(..)
            | BodyReader::Compressed { .. }
            | BodyReader::Unreadable { .. } => None,
        }
    }

    /// The new part of a partial message with its offset, if there is more of it than before.
    pub(super) fn piece(&mut self, pieces: PartialPolicy) -> Option<(usize, Bytes)> {
        match self {
            BodyReader::Whole { bytes, kept, .. } => {
                let some =
                    |from: usize, limit: usize| Bytes::copy_from_slice(&bytes[from..][..limit.min(bytes.len() - from)]);
                kept.piece(pieces, bytes.len(), some)
            }
            BodyReader::Events(decoder, kept) => {
                kept.piece(pieces, decoder.unfinished(), |from, limit| decoder.unfinished_data(from, limit))
            }
            BodyReader::Compressed { content, .. } => content.piece(pieces),
            BodyReader::Unreadable { .. } => None,
        }
    }

    /// The body so far.
    pub(super) fn so_far(&self) -> Bytes {
        match self {
            BodyReader::Whole { bytes, .. } => Bytes::copy_from_slice(bytes),
            BodyReader::Compressed { content, .. } => content.so_far(),
            BodyReader::Events(..) | BodyReader::Unreadable { .. } => Bytes::new(),
        }
    }
}

fn message(BodyOrigin { from, channel }: BodyOrigin, message: Message, event_id: Option<String>) -> EntryBody {
    EntryBody::Message { from, channel, message, event_id }
}

/// Adds a message or an SSE event; an event with a message and a `retry` is both.
fn event_entry(event: SseEvent, origin: BodyOrigin, entries: &mut Vec<EntryBody>) {
    let is_message = event.is_message() && !event.data.is_empty();
    let SseEvent { event: name, data, id, retry } = event;
    let retry = retry.map(|retry| u64::try_from(retry.as_millis()).unwrap_or(u64::MAX));
    if !is_message || retry.is_some() {
        let data = if is_message { String::new() } else { String::from_utf8_lossy(&data).into_owned() };
        let (name, id) = if is_message { (None, None) } else { (name, id.clone()) };
        entries.push(EntryBody::Event { channel: origin.channel, name, id, data, retry });
    }
    if is_message {
        entries.push(message(origin, Message::parse(data), id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGIN: BodyOrigin = BodyOrigin { from: Side::Server, channel: Channel(7) };

    fn read(
        headers: &[(&str, &str)],
        pieces: &[&str],
        is_whole: bool,
        limit: usize,
    ) -> (Vec<EntryBody>, Option<String>) {
        let mut body = BodyReader::new(&headers.iter().copied().collect(), limit);
        let mut entries = Vec::new();
        pieces.iter().for_each(|piece| body.push(piece.as_bytes(), ORIGIN, &mut entries));
        let why = body.end(is_whole, ORIGIN, &mut entries);
        (entries, why)
    }

    fn one(message: Message) -> (Vec<EntryBody>, Option<String>) {
        (vec![super::message(ORIGIN, message, None)], None)
    }

    #[test]
    fn a_body_that_is_no_stream_is_one_message() {
        let json = [("Content-Type", "application/json; charset=utf-8")];
        let text = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        assert_eq!(read(&json, &[&text[..5], &text[5..]], true, 100), one(Message::parse(text)));
        assert_eq!(
            read(&json, &[&text[..5]], false, 100),
            one(Message::garbled(&b"{\"jso"[..], GarbledReason::PartialLine))
        );
        let long = Message::garbled(&b"{\"js"[..], GarbledReason::TooLong { limit: 4 });
        assert_eq!(read(&json, &[text], true, 4), one(long));
        assert_eq!(read(&[], &["not JSON"], true, 100), one(Message::parse("not JSON")));
        assert_eq!(read(&json, &[" \n"], true, 100), (vec![], None));
        assert_eq!(read(&json, &[], false, 100), (vec![], None));
    }

    #[test]
    fn a_long_body_of_another_type_is_cut() {
        let page = "x".repeat(OTHER_LIMIT + 1);
        let expected = Message::garbled(page[..OTHER_LIMIT].to_owned(), GarbledReason::TooLong { limit: OTHER_LIMIT });
        assert_eq!(read(&[("content-type", "text/html")], &[&page], true, 1 << 20), one(expected));
    }

    #[test]
    fn a_compressed_body_is_decompressed_if_its_encoding_is_known() {
        let compressed = |kind: &str, text: &str, limit| {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            std::io::Write::write_all(&mut gzip, text.as_bytes()).unwrap();
            let headers = [("content-encoding", "gzip"), ("content-type", kind)];
            let mut body = BodyReader::new(&headers.into_iter().collect(), limit);
            let mut entries = Vec::new();
            gzip.finish().unwrap().chunks(5).for_each(|piece| body.push(piece, ORIGIN, &mut entries));
            let why = body.end(true, ORIGIN, &mut entries);
            (entries, why)
        };
        let text = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        assert_eq!(compressed("application/json", text, 100), one(Message::parse(text)));
        assert_eq!(compressed("text/event-stream", &format!("data: {text}\n\n"), 100), one(Message::parse(text)));
        let long = Message::garbled(&b"{\"js"[..], GarbledReason::TooLong { limit: 4 });
        assert_eq!(compressed("application/json", text, 4), one(long));
        let (entries, why) = read(&[("Content-Encoding", "compress")], &["\u{1f}"], true, 100);
        assert_eq!((entries, why.as_deref()), (vec![], Some("the body is compressed (compress) and was not read")));
        let (entries, why) = read(&[("Content-Encoding", "gzip")], &["no gzip at all"], true, 100);
        assert_eq!(entries, []);
        assert!(why.unwrap().starts_with("the body is not compressed as its header states (gzip): "));
        assert_eq!(read(&[("Content-Encoding", "identity")], &["x"], true, 100).1, None);
    }

    #[test]
    fn a_compressed_body_beyond_the_limit_is_reported_as_too_long() {
        let text: String = (0..100_u32).map(|number| number.wrapping_mul(2_654_435_761).to_string()).collect();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut gzip, text.as_bytes()).unwrap();
        let data = gzip.finish().unwrap().repeat(50);
        let mut body = BodyReader::new(&[("content-encoding", "gzip")].into_iter().collect(), 100);
        let mut entries = Vec::new();
        let pieces = data.chunks(5000).map(|piece| body.push(piece, ORIGIN, &mut entries)).count();
        assert!(pieces > 2, "{pieces}");
        let why = body.end(true, ORIGIN, &mut entries);
        let long = Message::garbled(text[..100].to_owned(), GarbledReason::TooLong { limit: 100 });
        assert_eq!((entries, why), one(long));
    }

    #[test]
    fn events_are_messages_or_kept_as_they_are() {
        let events = [("content-type", "text/event-stream")];
        let stream =
            "id: 0\ndata: \n\nevent: endpoint\ndata: /m\n\n: ping\n\nretry: 5\n\nid: 1\ndata: {}\n\ndata: {\"ha";
        let event = |name: Option<&str>, id: Option<&str>, data: &str, retry| EntryBody::Event {
            channel: Channel(7),
            name: name.map(str::to_owned),
            id: id.map(str::to_owned),
            data: data.to_owned(),
            retry,
        };
        let expected = vec![
            event(None, Some("0"), "", None),
            event(Some("endpoint"), None, "/m", None),
            event(None, None, "", Some(5)),
            message(ORIGIN, Message::parse("{}"), Some("1".to_owned())),
            message(ORIGIN, Message::garbled(&b"{\"ha"[..], GarbledReason::PartialLine), None),
        ];
        assert_eq!(read(&events, &[stream], true, 100), (expected, None));
        let both = vec![event(None, None, "", Some(9)), message(ORIGIN, Message::parse("{}"), None)];
        assert_eq!(read(&events, &["retry: 9\ndata: {}\n\n"], true, 100).0, both);
    }

    #[test]
    fn an_event_beyond_the_limit_is_cut_and_ends_the_stream() {
        let events = [("content-type", "text/event-stream")];
        let (entries, why) = read(&events, &["data: 0123456789\n\n", "data: {}\n\n"], true, 12);
        assert_eq!(
            entries,
            [message(ORIGIN, Message::garbled(&b"012345"[..], GarbledReason::TooLong { limit: 12 }), None)]
        );
        assert!(why.unwrap().ends_with("the rest of it was not read"));
    }
}
