//! Parses the body of a request or a response into entries.

use bytes::Bytes;
use rehearsal_core::exchange::{Channel, Side};
use rehearsal_core::message::{GarbledReason, Message};
use rehearsal_core::redact::Redaction;
use rehearsal_core::trace::{EntryBody, Headers};
use rehearsal_wire::http::sse::{Decoder, SseEvent};

use super::encoding::{Encoding, WantsMore};
use crate::record::unfinished::{KeptPrefix, PartialPolicy};

/// How much is kept of a body that is neither JSON nor events.
const OTHER_LIMIT: usize = 64 * 1024;

/// A body that is being parsed into messages.
#[derive(Debug)]
pub(super) enum BodyReader {
    /// One message, or whatever else it is.
    Whole {
        bytes: Vec<u8>,
        /// How much of it is kept.
        limit: usize,
        /// Whether there was more.
        cut: bool,
        /// How much of it is on the tape.
        kept: KeptPrefix,
    },
    /// A stream of events, and how much of the one that is not complete is on the tape.
    Events(Decoder, KeptPrefix),
    /// Either of these, compressed.
    Compressed { encoding: Encoding, name: String, content: Box<BodyReader> },
    /// It cannot be read.
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

    /// What a body is once it is not compressed.
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

    /// How much is kept.
    pub(super) fn len(&self) -> usize {
        match self {
            BodyReader::Whole { bytes, .. } => bytes.len(),
            BodyReader::Compressed { content, .. } => content.len(),
            BodyReader::Events(..) | BodyReader::Unreadable { .. } => 0,
        }
    }

    /// Takes some of it; what it completes is appended.
    pub(super) fn push(&mut self, data: &[u8], place: BodyOrigin, whats: &mut Vec<EntryBody>) {
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
                    event_entry(event, place, whats);
                }
                if let Err(error) = pushed {
                    let why = format!("{error}; the rest of it was not read");
                    whats.push(message(
                        place,
                        Message::garbled(error.data, GarbledReason::TooLong { limit: error.limit }),
                        None,
                    ));
                    *self = BodyReader::Unreadable { why };
                }
            }
            // Of the piece before some was left out, so that the rest would look as if it were corrupt.
            BodyReader::Compressed { content, .. } if content.wants_more() == WantsMore::Unwanted => {}
            BodyReader::Compressed { encoding, name, content } => {
                let decoded = encoding.decode(data, &mut |plain| {
                    content.push(plain, place, whats);
                    content.wants_more()
                });
                if let Err(error) = decoded {
                    let why = format!("the body is not compressed as it says ({name}): {error}");
                    let content = std::mem::replace(&mut **content, BodyReader::Unreadable { why: why.clone() });
                    content.end(false, place, whats);
                    *self = BodyReader::Unreadable { why };
                }
            }
            BodyReader::Unreadable { .. } => {}
        }
    }

    /// Whether more of it would be kept.
    fn wants_more(&self) -> WantsMore {
        match self {
            BodyReader::Whole { cut: false, .. } | BodyReader::Events(..) | BodyReader::Compressed { .. } => {
                WantsMore::Wanted
            }
            BodyReader::Whole { cut: true, .. } | BodyReader::Unreadable { .. } => WantsMore::Unwanted,
        }
    }

    /// Nothing more comes. Returns what is wrong with it, where something is.
    pub(super) fn end(self, is_whole: bool, place: BodyOrigin, whats: &mut Vec<EntryBody>) -> Option<String> {
        match self {
            BodyReader::Whole { bytes, .. } if bytes.trim_ascii().is_empty() => None,
            BodyReader::Whole { bytes, limit, cut, kept: _ } => {
                let bytes = Bytes::from(bytes);
                let said = match (cut, is_whole) {
                    (true, _) => Message::garbled(bytes, GarbledReason::TooLong { limit }),
                    (false, true) => Message::parse(bytes),
                    (false, false) => Message::garbled(bytes, GarbledReason::PartialLine),
                };
                whats.push(message(place, said, None));
                None
            }
            BodyReader::Events(decoder, _) => {
                let half = decoder.finish().map(|event| event.data).filter(|data| !data.is_empty());
                whats.extend(half.map(|data| message(place, Message::garbled(data, GarbledReason::PartialLine), None)));
                None
            }
            BodyReader::Compressed { content, .. } => content.end(is_whole, place, whats),
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

    /// The whole of it so far.
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

/// An event is a message, or it is kept as it is. One that is both a message and a pause is both.
fn event_entry(event: SseEvent, place: BodyOrigin, whats: &mut Vec<EntryBody>) {
    let is_message = event.is_message() && !event.data.is_empty();
    let SseEvent { event: name, data, id, retry } = event;
    let retry = retry.map(|retry| u64::try_from(retry.as_millis()).unwrap_or(u64::MAX));
    if !is_message || retry.is_some() {
        let data = if is_message { String::new() } else { String::from_utf8_lossy(&data).into_owned() };
        let (name, id) = if is_message { (None, None) } else { (name, id.clone()) };
        whats.push(EntryBody::Event { channel: place.channel, name, id, data, retry });
    }
    if is_message {
        whats.push(message(place, Message::parse(data), id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: BodyOrigin = BodyOrigin { from: Side::Server, channel: Channel(7) };

    fn read(
        headers: &[(&str, &str)],
        pieces: &[&str],
        is_whole: bool,
        limit: usize,
    ) -> (Vec<EntryBody>, Option<String>) {
        let mut body = BodyReader::new(&headers.iter().copied().collect(), limit);
        let mut whats = Vec::new();
        pieces.iter().for_each(|piece| body.push(piece.as_bytes(), PLACE, &mut whats));
        let why = body.end(is_whole, PLACE, &mut whats);
        (whats, why)
    }

    fn one(message: Message) -> (Vec<EntryBody>, Option<String>) {
        (vec![super::message(PLACE, message, None)], None)
    }

    #[test]
    fn a_body_is_one_message_whatever_it_says() {
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
    fn a_page_is_kept_as_far_as_it_may_be() {
        let page = "x".repeat(OTHER_LIMIT + 1);
        let expected = Message::garbled(page[..OTHER_LIMIT].to_owned(), GarbledReason::TooLong { limit: OTHER_LIMIT });
        assert_eq!(read(&[("content-type", "text/html")], &[&page], true, 1 << 20), one(expected));
    }

    #[test]
    fn what_is_compressed_is_read_where_it_can_be() {
        let compressed = |kind: &str, text: &str, limit| {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            std::io::Write::write_all(&mut gzip, text.as_bytes()).unwrap();
            let headers = [("content-encoding", "gzip"), ("content-type", kind)];
            let mut body = BodyReader::new(&headers.into_iter().collect(), limit);
            let mut whats = Vec::new();
            gzip.finish().unwrap().chunks(5).for_each(|piece| body.push(piece, PLACE, &mut whats));
            let why = body.end(true, PLACE, &mut whats);
            (whats, why)
        };
        let text = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        assert_eq!(compressed("application/json", text, 100), one(Message::parse(text)));
        assert_eq!(compressed("text/event-stream", &format!("data: {text}\n\n"), 100), one(Message::parse(text)));
        let long = Message::garbled(&b"{\"js"[..], GarbledReason::TooLong { limit: 4 });
        assert_eq!(compressed("application/json", text, 4), one(long));
        let (whats, why) = read(&[("Content-Encoding", "compress")], &["\u{1f}"], true, 100);
        assert_eq!((whats, why.as_deref()), (vec![], Some("the body is compressed (compress) and was not read")));
        let (whats, why) = read(&[("Content-Encoding", "gzip")], &["no gzip at all"], true, 100);
        assert_eq!(whats, []);
        assert!(why.unwrap().starts_with("the body is not compressed as it says (gzip): "));
        assert_eq!(read(&[("Content-Encoding", "identity")], &["x"], true, 100).1, None);
    }

    #[test]
    fn what_is_compressed_and_too_long_is_called_nothing_else_when_the_rest_comes() {
        let text: String = (0..100_u32).map(|number| number.wrapping_mul(2_654_435_761).to_string()).collect();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut gzip, text.as_bytes()).unwrap();
        let data = gzip.finish().unwrap().repeat(50);
        let mut body = BodyReader::new(&[("content-encoding", "gzip")].into_iter().collect(), 100);
        let mut whats = Vec::new();
        let pieces = data.chunks(5000).map(|piece| body.push(piece, PLACE, &mut whats)).count();
        assert!(pieces > 2, "{pieces}");
        let why = body.end(true, PLACE, &mut whats);
        let long = Message::garbled(text[..100].to_owned(), GarbledReason::TooLong { limit: 100 });
        assert_eq!((whats, why), one(long));
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
            message(PLACE, Message::parse("{}"), Some("1".to_owned())),
            message(PLACE, Message::garbled(&b"{\"ha"[..], GarbledReason::PartialLine), None),
        ];
        assert_eq!(read(&events, &[stream], true, 100), (expected, None));
        let both = vec![event(None, None, "", Some(9)), message(PLACE, Message::parse("{}"), None)];
        assert_eq!(read(&events, &["retry: 9\ndata: {}\n\n"], true, 100).0, both);
    }

    #[test]
    fn an_event_beyond_the_limit_is_kept_as_far_as_it_may_be_and_ends_the_reading() {
        let events = [("content-type", "text/event-stream")];
        let (whats, why) = read(&events, &["data: 0123456789\n\n", "data: {}\n\n"], true, 12);
        assert_eq!(
            whats,
            [message(PLACE, Message::garbled(&b"012345"[..], GarbledReason::TooLong { limit: 12 }), None)]
        );
        assert!(why.unwrap().ends_with("the rest of it was not read"));
    }
}
