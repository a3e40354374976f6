//! Encodes and decodes server-sent events, by the rules of WHATWG.
//!
//! ```text
//! id: 7 ⏎ data: {"jsonrpc": ⏎ data: "2.0", …} ⏎ ⏎   ──►  SseEvent { id: "7", data: "{\"jsonrpc\":\n\"2.0\", …}" }
//! ```

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A server-sent event.
///
/// A browser drops an event without data. Here it stays visible, because 2025-11-25 starts a stream with an empty event
/// that only carries an id, and a server may send nothing but `retry`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// The name; an event without one is a `message`.
    pub event: Option<String>,
    /// The lines of data, joined by line feeds. They are bytes, because the parser of the message checks that they are
    /// UTF-8.
    pub data: Bytes,
    /// The id that a client sends to resume after this event. An empty id resets the previous one.
    pub id: Option<String>,
    /// The time to wait before reconnecting.
    pub retry: Option<Duration>,
}

impl SseEvent {
    /// Builds an event that carries a message.
    pub fn message(data: impl Into<Bytes>) -> SseEvent {
        SseEvent { event: Some("message".to_owned()), data: data.into(), ..SseEvent::default() }
    }

    /// True if the data should be a message: the event has no name, or the name is `message`.
    pub fn is_message(&self) -> bool {
        self.event.as_deref().is_none_or(|event| event == "message")
    }
}

/// The error for an event that is longer than the limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is longer than the limit of {limit} bytes")]
pub struct EventTooLong {
    /// The limit in bytes.
    pub limit: usize,
    /// The data that was read, at most up to the limit.
    pub data: Bytes,
}

/// Decodes events from bytes, which may arrive in pieces of any size.
#[derive(Clone, Debug)]
pub struct Decoder {
    limit: usize,
    /// The incomplete line.
    line: BytesMut,
    /// True within a comment. Its bytes are neither counted nor kept.
    in_comment: bool,
    /// True if a line feed would belong to the carriage return before it.
    after_return: bool,
    /// True for the first line of a stream, which alone may begin with a byte order mark.
    first_line: bool,
    fields: Fields,
    ready: VecDeque<SseEvent>,
}

/// The fields of the incomplete event.
#[derive(Clone, Debug, Default)]
struct Fields {
    event: Option<String>,
    data: Option<BytesMut>,
    id: Option<String>,
    retry: Option<Duration>,
}

impl Decoder {
    /// Builds a decoder for one stream; `limit` is the longest event in bytes.
    pub fn new(limit: usize) -> Decoder {
        Decoder {
            limit,
            line: BytesMut::new(),
            in_comment: false,
            after_return: false,
            first_line: true,
            fields: Fields::default(),
            ready: VecDeque::new(),
        }
    }

    /// Decodes the next bytes of the stream. [`next_event`](Decoder::next_event) returns the events that they complete.
    ///
    /// After an error nothing more can be read from this stream.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), EventTooLong> {
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_return) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = memchr::memchr2(b'\r', b'\n', bytes);
            let piece = &bytes[..end.unwrap_or(bytes.len())];
            // The byte order mark makes the first line an exception: whether it is a comment is known only when it is
            // complete.
            if self.line.is_empty() && !self.first_line && piece.first() == Some(&b':') {
                self.in_comment = true;
            }
            if !self.in_comment && self.kept() + piece.len() > self.limit {
                return Err(self.too_long(piece));
            }
            match end {
                None => {
                    if !self.in_comment {
                        self.line.extend_from_slice(piece);
                    }
                    return Ok(());
                }
                Some(end) => {
                    if self.line.is_empty() {
                        self.end_line(piece);
                    } else {
                        self.line.extend_from_slice(piece);
                        let line = self.line.split();
                        self.end_line(&line);
                    }
                    self.after_return = bytes[end] == b'\r';
                    bytes = &bytes[end + 1..];
                }
            }
        }
        Ok(())
    }

    /// Returns the next complete event.
    pub fn next_event(&mut self) -> Option<SseEvent> {
        self.ready.pop_front()
    }

    /// Returns the length of the data of the incomplete event so far.
    pub fn unfinished(&self) -> usize {
        let (data, value) = self.parts();
        data.map_or(0, <[u8]>::len) + value.map_or(0, <[u8]>::len) + usize::from(data.is_some() && value.is_some())
    }

    /// Returns the data of the incomplete event, starting at byte `from`, at most `limit` bytes.
    pub fn unfinished_data(&self, from: usize, limit: usize) -> Bytes {
        let (data, value) = self.parts();
        let between: &[u8] = if data.is_some() && value.is_some() { b"\n" } else { b"" };
        let mut some = BytesMut::new();
        let mut skipped = from;
        for part in [data.unwrap_or_default(), between, value.unwrap_or_default()] {
            let skip = skipped.min(part.len());
            skipped -= skip;
            let room = (limit - some.len()).min(part.len() - skip);
            some.extend_from_slice(&part[skip..skip + room]);
        }
        some.freeze()
    }

    /// Returns the complete lines of data, and the incomplete one.
    fn parts(&self) -> (Option<&[u8]>, Option<&[u8]>) {
        let value = match split(&self.line) {
            Some((b"data", value)) if self.line.contains(&b':') => Some(value),
            _ => None,
        };
        (self.fields.data.as_deref(), value)
    }

    /// Ends the stream, and returns the event that never became complete. The rules forbid its use; the caller can
    /// report it.
    pub fn finish(mut self) -> Option<SseEvent> {
        let line = self.line.split();
        if !line.is_empty() {
            self.end_line(&line);
        }
        self.fields.take()
    }

    /// Returns the length of what is kept of the current event.
    fn kept(&self) -> usize {
        let Fields { event, data, id, retry: _ } = &self.fields;
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        self.line.len() + data.as_ref().map_or(0, BytesMut::len) + text(event) + text(id)
    }

    /// Builds the error, with the event's data up to the limit.
    fn too_long(&mut self, piece: &[u8]) -> EventTooLong {
        self.line.extend_from_slice(&piece[..piece.len().min(self.limit)]);
        let line = self.line.split();
        self.end_line(&line);
        let mut data = self.fields.data.take().unwrap_or_default();
        data.truncate(self.limit);
        EventTooLong { limit: self.limit, data: data.freeze() }
    }

    fn end_line(&mut self, line: &[u8]) {
        let first = std::mem::take(&mut self.first_line);
        let line = if first { line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line) } else { line };
        if std::mem::take(&mut self.in_comment) {
            return;
        }
        match split(line) {
            Some((name, value)) => self.fields.set(name, value),
            None => self.ready.extend(self.fields.take()),
        }
    }
}

/// Splits a line into name and value; `None` for a blank line. A comment has the empty name.
fn split(line: &[u8]) -> Option<(&[u8], &[u8])> {
    if line.is_empty() {
        return None;
    }
    Some(match memchr::memchr(b':', line) {
        Some(colon) => {
            let value = &line[colon + 1..];
            (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
        }
        None => (line, b""),
    })
}

impl Fields {
    fn set(&mut self, name: &[u8], value: &[u8]) {
        let text = || String::from_utf8_lossy(value).into_owned();
        match name {
            b"event" => self.event = Some(text()),
            b"data" => match &mut self.data {
                Some(data) => {
                    data.put_u8(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.data = Some(BytesMut::from(value)),
            },
            b"id" if !value.contains(&0) => self.id = Some(text()),
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                self.retry = text().parse().ok().map(Duration::from_millis).or(self.retry);
            }
            _ => {} // a comment or an undefined field
        }
    }

    /// Builds the event of these fields, if there are any.
    fn take(&mut self) -> Option<SseEvent> {
        let Fields { event, data, id, retry } = std::mem::take(self);
        if event.is_none() && data.is_none() && id.is_none() && retry.is_none() {
            return None;
        }
        Some(SseEvent { event, data: data.unwrap_or_default().freeze(), id, retry })
    }
}

/// Encodes an event for the wire:
///
/// ```text
/// event: message
/// id: 7
/// data: {"jsonrpc":"2.0","id":1,"result":{}}
///
/// ```
///
/// A line end inside the data starts a new `data:` line, so a carriage return between the tokens of a JSON text arrives
/// as a line feed. Line ends in the name or the id, and a NUL in the id, cannot be encoded and are omitted.
pub fn encode(event: &SseEvent) -> Bytes {
    let mut out = BytesMut::with_capacity(event.data.len() + 64);
    let mut field = |name: &[u8], value: &[u8]| {
        out.put_slice(name);
        out.put_slice(b": ");
        out.put_slice(value);
        out.put_u8(b'\n');
    };
    if let Some(name) = &event.event {
        field(b"event", name.replace(['\r', '\n'], "").as_bytes());
    }
    if let Some(id) = &event.id {
        field(b"id", id.replace(['\r', '\n', '\0'], "").as_bytes());
    }
    if let Some(retry) = event.retry {
        field(b"retry", retry.as_millis().to_string().as_bytes());
    }
    // Only an event that has nothing but `retry` is sent without data. A browser does not dispatch it, as intended.
    if !event.data.is_empty() || event.id.is_some() || event.retry.is_none() {
        let mut rest = &event.data[..];
        while let Some(end) = memchr::memchr2(b'\r', b'\n', rest) {
            field(b"data", &rest[..end]);
            let length = if rest[end..].starts_with(b"\r\n") { 2 } else { 1 };
            rest = &rest[end + length..];
        }
        field(b"data", rest);
    }
    out.put_u8(b'\n');
    out.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every event, the incomplete rest, and the error, if any.
    type Decoded = (Vec<SseEvent>, Option<SseEvent>, Option<EventTooLong>);

    fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, limit: usize) -> Decoded {
        let mut decoder = Decoder::new(limit);
        let result = pieces.into_iter().try_for_each(|piece| decoder.push(piece));
        let events = std::iter::from_fn(|| decoder.next_event()).collect();
        match result {
            Ok(()) => (events, decoder.finish(), None),
            Err(error) => (events, None, Some(error)),
        }
    }

    fn events(text: &str) -> Vec<SseEvent> {
        decode([text.as_bytes()], 1024).0
    }

    fn data(text: &str) -> Vec<String> {
        events(text).iter().map(|event| String::from_utf8_lossy(&event.data).into_owned()).collect()
    }

    #[test]
    fn unfinished_data_is_the_beginning_of_the_event_data() {
        let stream = b"id: 1\ndata: {\"a\":\ndata:1}\nevent: x\ndata: end";
        let mut decoder = Decoder::new(1000);
        let mut lengths = Vec::new();
        for byte in stream {
            decoder.push(&[*byte]).unwrap();
            let length = decoder.unfinished();
            assert_eq!(decoder.unfinished_data(0, usize::MAX).len(), length);
            assert_eq!(decoder.unfinished_data(2, 3).len(), length.saturating_sub(2).min(3));
            lengths.push(length);
        }
        assert!(lengths.is_sorted());
        assert_eq!(&decoder.unfinished_data(0, usize::MAX)[..], b"{\"a\":\n1}\nend");
        assert_eq!(&decoder.unfinished_data(4, 4)[..], b":\n1}");
        decoder.push(b"\n\n").unwrap();
        assert_eq!(decoder.unfinished(), 0);
    }

    #[test]
    fn every_line_end_ends_a_line() {
        for text in
            ["data: a\ndata: b\n\n", "data: a\rdata: b\r\r", "data: a\r\ndata: b\r\n\r\n", "data: a\r\ndata: b\n\r"]
        {
            assert_eq!(data(text), ["a\nb"], "{text:?}");
        }
    }

    #[test]
    fn a_carriage_return_ends_the_event_at_once() {
        let mut decoder = Decoder::new(1024);
        decoder.push(b"data: a\r\n\r").unwrap();
        assert_eq!(decoder.next_event().unwrap().data, "a");
        decoder.push(b"\ndata: b\n\n").unwrap();
        assert_eq!(decoder.next_event().unwrap().data, "b");
    }

    #[test]
    fn fields_are_parsed_by_the_whatwg_rules() {
        let table: &[(&str, SseEvent)] = &[
            ("\u{feff}data: x\n\n", SseEvent { data: "x".into(), ..SseEvent::default() }),
            (": hello\ndata:x\n\n", SseEvent { data: "x".into(), ..SseEvent::default() }),
            ("data:  x\n\n", SseEvent { data: " x".into(), ..SseEvent::default() }),
            ("data\ndata\n\n", SseEvent { data: "\n".into(), ..SseEvent::default() }),
            ("data:a:b\n\n", SseEvent { data: "a:b".into(), ..SseEvent::default() }),
            ("event:e\nevent: message\ndata\n\n", SseEvent { event: Some("message".into()), ..SseEvent::default() }),
            ("id: 5\ndata: \n\n", SseEvent { id: Some("5".into()), ..SseEvent::default() }),
            ("id: 5\n\n", SseEvent { id: Some("5".into()), ..SseEvent::default() }),
            ("id\ndata: x\n\n", SseEvent { id: Some(String::new()), data: "x".into(), ..SseEvent::default() }),
            ("id: a\0b\ndata: x\n\n", SseEvent { data: "x".into(), ..SseEvent::default() }),
            ("retry: 1500\n\n", SseEvent { retry: Some(Duration::from_millis(1500)), ..SseEvent::default() }),
            ("retry: 10\nretry: 1s\n\n", SseEvent { retry: Some(Duration::from_millis(10)), ..SseEvent::default() }),
            ("other: y\n data: y\ndata: x\n\n", SseEvent { data: "x".into(), ..SseEvent::default() }),
        ];
        for (text, event) in table {
            assert_eq!(events(text), std::slice::from_ref(event), "{text:?}");
        }
        assert_eq!(data("data: \u{feff}x\n\n"), ["\u{feff}x"], "a byte order mark later is data");
        assert_eq!(events("\n\n: ping\n\nretry:\n\nid: a\0b\n\n"), []);
    }

    #[test]
    fn an_event_without_its_blank_line_is_reported_and_not_used() {
        for text in ["data: {\"a\"", "data: {\"a\"\n"] {
            let (events, unfinished, _) = decode([text.as_bytes()], 1024);
            assert_eq!(events, []);
            assert_eq!(unfinished.unwrap().data, "{\"a\"");
        }
        assert_eq!(decode([&b"data: x\n\n: bye"[..]], 1024).1, None);
        assert_eq!(decode([&b"data: x\n\n\n"[..]], 1024).1, None);
    }

    #[test]
    fn an_event_beyond_the_limit_is_refused_and_a_comment_is_not() {
        let (events, _, error) = decode([&b"data: x\n\ndata: 0123\ndata: 4567890\n\n"[..]], 12);
        assert_eq!(events.len(), 1);
        let error = error.unwrap();
        assert_eq!(error.to_string(), "an event of the stream is longer than the limit of 12 bytes");
        assert_eq!(error.data, "0123\n456789");
        let comment = format!("\n:{}\n\ndata: x\n\n", "-".repeat(100));
        assert_eq!(decode([comment.as_bytes()], 12).0.len(), 1);
    }

    #[test]
    fn an_encoded_event_decodes_to_the_same_event() {
        let priming = SseEvent { id: Some("7".into()), ..SseEvent::default() };
        assert_eq!(encode(&priming), "id: 7\ndata: \n\n");
        assert_eq!(encode(&SseEvent::message("{\n}")), "event: message\ndata: {\ndata: }\n\n");
        let pause = SseEvent { retry: Some(Duration::from_millis(250)), ..SseEvent::default() };
        assert_eq!(encode(&pause), "retry: 250\n\n");
        let evil = SseEvent { event: Some("a\ndata: b".into()), id: Some("1\r\n\0".into()), ..SseEvent::default() };
        assert_eq!(encode(&evil), "event: adata: b\nid: 1\ndata: \n\n");
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_events(pieces in proptest::collection::vec(piece(), 0..40), cuts: Vec<u8>, limit in 1..60usize) {
            let bytes = pieces.concat();
            let mut chunks = Vec::new();
            let mut rest = &bytes[..];
            for cut in cuts {
                let (chunk, after) = rest.split_at(usize::from(cut % 16).min(rest.len()));
                chunks.push(chunk);
                rest = after;
            }
            chunks.push(rest);
            let (events, unfinished, error) = decode(chunks, limit);
            let (whole, left, refused) = decode([&bytes[..]], limit);
            prop_assert_eq!(events, whole);
            prop_assert_eq!(unfinished, left);
            prop_assert_eq!(error.is_some(), refused.is_some());
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes: Vec<u8>, limit in 0..64usize) {
            decode([&bytes[..]], limit);
        }

        #[test]
        fn any_event_is_the_same_after_encoding_and_decoding(
            event in proptest::option::of("[^\r\n]*"), data in "[^\r]*",
            id in proptest::option::of("[^\r\n\0]*"), retry in proptest::option::of(0..u64::MAX),
        ) {
            let event = SseEvent { event, data: data.into(), id, retry: retry.map(Duration::from_millis) };
            prop_assert_eq!(decode([&encode(&event)[..]], usize::MAX).0, [event]);
        }
    }

    fn piece() -> impl Strategy<Value = Vec<u8>> {
        let known: Vec<&[u8]> = vec![
            b"data",
            b"event",
            b"id",
            b"retry",
            b":",
            b" ",
            b"\r",
            b"\n",
            b"\r\n",
            b"\n\n",
            b"\0",
            b"10",
            b"x",
            BYTE_ORDER_MARK,
            b"\xff",
            b"{\"a\":1}",
        ];
        proptest::sample::select(known).prop_map(<[u8]>::to_vec)
    }
}
