//! Reads a trace, part by part, whatever the length of its lines.

use std::io::{BufRead, Seek};

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::error::SESSION_NOT_ARRAY;
use super::fields::{EndFields, Fields, timestamp};
use super::format::{FORMAT, TracePiece, migrate};
use super::journal_reader::LINE_LIMIT;
use super::json_line_reader::{JsonLineReader, ReadPosition};
use super::json_writer::{id_text, message};
use super::{Entry, Part, PlacedMessage, ReadError, RecordedCall, SessionEnd, SessionStart};
use crate::exchange::{Channel, Side};

/// Returns the parts of a trace one at a time; even of a very long session only one call is in memory.
///
/// In the files that we write, the start of a session comes first in its line. In other files the line is read twice:
/// once to find the start, and once for the calls. So the input must be seekable.
///
/// Reading ends at a bad line, unless bad lines are [skipped](TraceReader::skip_bad). The parts before the error in the
/// line were returned by then.
#[derive(Debug)]
pub struct TraceReader<R> {
    pull: JsonLineReader<R>,
    state: State,
    head: SessionHead,
    /// Whether a comma comes before the next key or element.
    comma: bool,
    buffer: Vec<u8>,
    skip_bad: bool,
    only: Option<TracePiece>,
    span: FileSpan,
}

/// The position of a call or an entry in its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileSpan {
    /// In bytes, from where the reading began.
    pub offset: u64,
    /// In bytes.
    pub length: u32,
    /// The version of the format that it was to_text in.
    pub format: u8,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Between two sessions.
    Outside,
    /// Before a key, or the end, of a session.
    Inside,
    /// Before an element, or the end, of a list.
    In(TracePiece),
    /// After the end of a session.
    Ended,
    /// At the end of the file.
    Over,
}

/// The members of a line that describe its whole session.
#[derive(Debug, Default)]
struct SessionHead {
    format: Option<u64>,
    session_id: Option<String>,
    server_info: Option<Map<String, Value>>,
    started_at: Option<Option<Timestamp>>,
    metadata: Option<Map<String, Value>>,
    ended_at: Option<Timestamp>,
    end: Option<SessionEnd>,
    /// Whether the whole line was read already.
    complete: bool,
}

impl SessionHead {
    /// Whether all members of a start have been read.
    fn begins(&self) -> bool {
        let SessionHead { format, session_id, server_info, started_at, metadata, .. } = self;
        format.is_some() && session_id.is_some() && server_info.is_some() && started_at.is_some() && metadata.is_some()
    }
}

impl<R: BufRead + Seek> TraceReader<R> {
    /// Reads from the position of `input`, which should be the beginning of a line.
    pub fn new(input: R) -> TraceReader<R> {
        TraceReader::with_limit(input, LINE_LIMIT)
    }

    /// Reads from the position of `input`; a call may have at most `limit` bytes.
    pub fn with_limit(input: R, limit: usize) -> TraceReader<R> {
        TraceReader {
            pull: JsonLineReader::new(input, limit),
            state: State::Outside,
            head: SessionHead::default(),
            comma: false,
            buffer: Vec::with_capacity(4096),
            skip_bad: false,
            only: None,
            span: FileSpan::default(),
        }
    }

    /// Sets whether reading continues after a bad line.
    #[must_use]
    pub fn skip_bad(self, skip_bad: bool) -> TraceReader<R> {
        TraceReader { skip_bad, ..self }
    }

    /// Returns only calls.
    #[must_use]
    pub fn only_calls(self) -> TraceReader<R> {
        TraceReader { only: Some(TracePiece::Call), ..self }
    }

    /// Returns everything but calls.
    #[must_use]
    pub fn only_entries(self) -> TraceReader<R> {
        TraceReader { only: Some(TracePiece::Message), ..self }
    }

    /// Returns the input.
    pub(super) fn into_inner(self) -> R {
        self.pull.into_inner()
    }

    /// The line that is being read, from 1.
    pub fn line(&self) -> u64 {
        self.pull.line()
    }

    /// The position of the last call or entry that was returned.
    pub fn span(&self) -> FileSpan {
        self.span
    }

    fn read(&mut self) -> Result<Option<Part>, ReadError> {
        loop {
            match self.state {
                State::Over => return Ok(None),
                State::Outside => {
                    return if self.pull.next_line()? { self.begin().map(Some) } else { Ok(None) };
                }
                State::In(piece) => {
                    if let Some(part) = self.element(piece)? {
                        return Ok(Some(part));
                    }
                }
                State::Inside => match self.key()? {
                    Some(key) => match piece(&key) {
                        Some(piece) => self.enter(piece)?,
                        None if self.head.complete => self.pull.value(None)?,
                        None => self.member(&key)?,
                    },
                    None => self.state = State::Ended,
                },
                State::Ended => {
                    self.state = State::Outside;
                    let SessionHead { ended_at, end, .. } = std::mem::take(&mut self.head);
                    return Ok(Some(Part::Finish { ended_at, end }));
                }
            }
        }
    }

    /// Reads a line up to its first list, or to its end.
    fn begin(&mut self) -> Result<Part, ReadError> {
        if self.pull.peek()? == Some(b'[') {
            return Err(self.pull.expected(SESSION_NOT_ARRAY));
        }
        self.pull.take(b"{", "a session: `{`")?;
        (self.head, self.comma, self.state) = (SessionHead::default(), false, State::Inside);
        match self.first_list()? {
            Some((mark, piece)) => {
                if !self.head.begins() {
                    self.look_ahead(mark)?;
                }
                self.enter(piece)?;
            }
            None => self.state = State::Ended,
        }
        let SessionHead { session_id, server_info, started_at, metadata, .. } = &mut self.head;
        let session_id = session_id.take().ok_or_else(|| self.pull.expected("`session_id` in the session"))?;
        let (server_info, metadata) = (server_info.take(), metadata.take());
        Ok(Part::Start(SessionStart {
            session_id,
            server_info: server_info.unwrap_or_default(),
            started_at: started_at.flatten(),
            metadata: metadata.unwrap_or_default(),
        }))
    }

    /// Reads the members before the first list, and its key.
    fn first_list(&mut self) -> Result<Option<(ReadPosition, TracePiece)>, ReadError> {
        while let Some(key) = self.key()? {
            match piece(&key) {
                Some(piece) => return Ok(Some((self.pull.mark()?, piece))),
                None => self.member(&key)?,
            }
        }
        Ok(None)
    }

    /// Reads the members after the lists, and returns to `back`.
    fn look_ahead(&mut self, back: ReadPosition) -> Result<(), ReadError> {
        self.pull.value(None)?;
        while let Some(key) = self.key()? {
            match piece(&key) {
                Some(_) => self.pull.value(None)?,
                None => self.member(&key)?,
            }
        }
        self.head.complete = true;
        Ok(self.pull.go_to(back)?)
    }

    /// Reads the next key of the session; `None` at its end, which is the end of its line.
    fn key(&mut self) -> Result<Option<String>, ReadError> {
        if self.pull.peek()? == Some(b'}') {
            self.pull.take(b"}", "`}`")?;
            return match self.pull.peek()? {
                None | Some(b'\n') => Ok(None),
                Some(_) => Err(self.pull.expected("the end of the line after the session")),
            };
        }
        if self.comma {
            self.pull.take(b",", "`,` or `}`")?;
        }
        self.comma = true;
        self.pull.key(&mut self.buffer).map(Some)
    }

    fn enter(&mut self, piece: TracePiece) -> Result<(), ReadError> {
        if self.only.is_some_and(|only| only != piece) {
            (self.state, self.comma) = (State::Inside, true);
            return self.pull.value(None);
        }
        self.pull.take(b"[", "a list: `[`")?;
        (self.state, self.comma) = (State::In(piece), false);
        Ok(())
    }

    /// Reads the next element of a list; `None` at its end.
    fn element(&mut self, piece: TracePiece) -> Result<Option<Part>, ReadError> {
        if self.pull.peek()? == Some(b']') {
            self.pull.take(b"]", "`]`")?;
            (self.state, self.comma) = (State::Inside, true);
            return Ok(None);
        }
        if self.comma {
            self.pull.take(b",", "`,` or `]`")?;
        }
        self.comma = true;
        self.pull.peek()?;
        let (line, column, offset) = (self.pull.line(), self.pull.column(), self.pull.offset());
        self.pull.value(Some(&mut self.buffer))?;
        let format = u8::try_from(self.head.format.unwrap_or(FORMAT)).unwrap_or(u8::MAX);
        let length = u32::try_from(self.buffer.len()).unwrap_or(u32::MAX);
        self.span = FileSpan { offset, length, format };
        migrated(format, piece, &mut self.buffer);
        let part = match piece {
            TracePiece::Call => read_call(&self.buffer).map(|call| Part::Call(Box::new(call))),
            TracePiece::Message => read_entry(&self.buffer).map(Part::Entry),
        };
        part.map(Some).map_err(|wrong| match wrong {
            ElementError::Json(error) => ReadError::json(line, column, &error),
            ElementError::Expected(expected) => ReadError::Bad { line, column, expected },
        })
    }

    /// Reads a member that is not a list.
    fn member(&mut self, key: &str) -> Result<(), ReadError> {
        match key {
            "format" => {
                let format: u64 = self.typed()?;
                if format > FORMAT {
                    return Err(ReadError::Format { line: self.pull.line(), found: format, known: FORMAT });
                }
                self.head.format = Some(format);
            }
            "session_id" => self.head.session_id = Some(self.typed()?),
            "server_info" => self.head.server_info = Some(self.typed::<Option<_>>()?.unwrap_or_default()),
            "metadata" => self.head.metadata = Some(self.typed::<Option<_>>()?.unwrap_or_default()),
            "started_at" => self.head.started_at = Some(self.time("started_at")?),
            "ended_at" => self.head.ended_at = self.time("ended_at")?,
            "end" => self.head.end = self.typed::<Option<EndFields>>()?.map(SessionEnd::from),
            _ => self.pull.value(None)?,
        }
        Ok(())
    }

    fn typed<T: DeserializeOwned>(&mut self) -> Result<T, ReadError> {
        self.pull.peek()?;
        let (line, column) = (self.pull.line(), self.pull.column());
        self.pull.value(Some(&mut self.buffer))?;
        serde_json::from_slice(&self.buffer).map_err(|error| ReadError::json(line, column, &error))
    }

    fn time(&mut self, name: &str) -> Result<Option<Timestamp>, ReadError> {
        self.pull.peek()?;
        let (line, column) = (self.pull.line(), self.pull.column());
        let text: Option<String> = self.typed()?;
        let time = text.map(|text| timestamp(name, &text)).transpose();
        time.map_err(|expected| ReadError::Bad { line, column, expected })
    }
}

impl<R: BufRead + Seek> Iterator for TraceReader<R> {
    type Item = Result<Part, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let read = self.read();
        match &read {
            Ok(Some(_)) => {}
            Ok(None) | Err(ReadError::Io(_)) => self.state = State::Over,
            Err(_) if self.skip_bad => {
                self.state = State::Outside;
                if let Err(error) = self.pull.skip_line() {
                    self.state = State::Over;
                    return Some(Err(error.into()));
                }
            }
            Err(_) => self.state = State::Over,
        }
        read.transpose()
    }
}

fn piece(key: &str) -> Option<TracePiece> {
    match key {
        "calls" => Some(TracePiece::Call),
        "messages" => Some(TracePiece::Message),
        _ => None,
    }
}

impl FileSpan {
    /// Parses the call at this position; `text` is the file's text there. `None` if it is no call.
    pub fn call(self, mut text: Vec<u8>) -> Option<RecordedCall> {
        migrated(self.format, TracePiece::Call, &mut text);
        read_call(&text).ok()
    }

    /// Parses the entry at this position; `text` is the file's text there. `None` if it is no entry.
    pub fn entry(self, mut text: Vec<u8>) -> Option<Entry> {
        migrated(self.format, TracePiece::Message, &mut text);
        read_entry(&text).ok()
    }
}

/// Why an element of a list is invalid.
enum ElementError {
    Json(serde_json::Error),
    Expected(String),
}

fn migrated(format: u8, piece: TracePiece, text: &mut Vec<u8>) {
    if u64::from(format) < FORMAT {
        *text = migrate(format.into(), piece, std::mem::take(text));
    }
}

fn read_call(text: &[u8]) -> Result<RecordedCall, ElementError> {
    let fields: CallFields<'_> = read_object(text)?;
    fields.call().map_err(ElementError::Expected)
}

fn read_entry(text: &[u8]) -> Result<Entry, ElementError> {
    let fields: Fields<'_> = read_object(text)?;
    fields.entry().map_err(ElementError::Expected)
}

fn read_object<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<T, ElementError> {
    if !text.starts_with(b"{") {
        return Err(ElementError::Expected("an object: `{`".to_owned()));
    }
    serde_json::from_slice(text).map_err(ElementError::Json)
}

/// An element of `calls`.
#[derive(Deserialize)]
struct CallFields<'a> {
    #[serde(borrow)]
    request: Fields<'a>,
    #[serde(borrow)]
    response: Option<Fields<'a>>,
}

impl CallFields<'_> {
    fn call(self) -> Result<RecordedCall, String> {
        let asker = self.request.from.map_or(Side::Client, Side::from);
        let channel = self.request.channel();
        let request = placed(self.request, channel, None)?;
        if request.message.as_request().is_none() {
            return Err(format!("a request, not {}", request.message.text()));
        }
        let known_id = id_text(&request.message);
        let response = self.response.map(|response| {
            let channel = response.channel.map_or(channel, Channel);
            placed(response, channel, known_id)
        });
        Ok(RecordedCall { asker, response: response.transpose()?, request })
    }
}

fn placed(fields: Fields<'_>, channel: Channel, known_id: Option<&[u8]>) -> Result<PlacedMessage, String> {
    let (seq, at, message) = (fields.seq()?, fields.at()?, message(&fields, known_id)?);
    Ok(PlacedMessage { seq, item: fields.item, at, channel, message, event_id: fields.event_id })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{EntryBody, FoldLimit, JournalFold, TraceWriter, arbitrary};
    use proptest::prelude::*;
    use std::io::Cursor;

    const HEAD: &str = r#""format":1,"session_id":"a","server_info":{},"started_at":null,"metadata":{}"#;
    const PING: &str =
        r#"{"request":{"seq":0,"at_ms":1,"id":1,"method":"ping"},"response":{"seq":1,"at_ms":2.5,"result":{}}}"#;

    fn read(text: &str, skip_bad: bool) -> Vec<Result<Part, String>> {
        let reader = TraceReader::new(Cursor::new(text)).skip_bad(skip_bad);
        reader.map(|part| part.map_err(|error| error.to_string())).collect()
    }

    #[track_caller]
    fn parts(text: &str) -> Vec<Part> {
        read(text, false).into_iter().collect::<Result<_, _>>().unwrap()
    }

    fn to_text(parts: &[Part]) -> String {
        let mut writer = TraceWriter::new(Vec::new(), Cursor::new(Vec::new()));
        parts.iter().for_each(|part| writer.part(part).unwrap());
        String::from_utf8(writer.finish().unwrap()).unwrap()
    }

    #[test]
    fn the_order_of_the_members_does_not_matter() {
        let ordered = format!(
            r#"{{{HEAD},"calls":[{PING}],"messages":[],"ended_at":"2026-07-28T12:00:00Z","end":{{"how":"stopped"}}}}"#
        );
        let jumbled = format!(
            r#" {{ "end" : {{"how":"stopped"}}, "x":["]"], "messages":[ ] ,"calls":[ {PING} ],"ended_at":"2026-07-28T12:00:00Z",{HEAD}}} "#
        );
        let expected = parts(&ordered);
        assert_eq!(expected.len(), 3);
        assert_eq!(parts(&jumbled), expected);
        assert_eq!(parts(&format!("\u{feff}\n{jumbled}\r\n\n{ordered}")), [&expected[..], &expected[..]].concat());
    }

    #[test]
    fn optional_members_may_be_absent() {
        let parts = parts(r#"{"session_id":"a"}"#);
        let [Part::Start(start), Part::Finish { ended_at: None, end: None }] = &parts[..] else { panic!("{parts:?}") };
        assert_eq!((start.session_id.as_str(), start.started_at), ("a", None));
    }

    #[test]
    fn the_error_of_a_bad_line_has_its_position_and_expectation() {
        let call = |call: &str| format!(r#"{{{HEAD},"calls":[{PING},{call}]}}"#);
        let column = |text: &str| HEAD.len() + PING.len() + 13 + text.len();
        let table = [
            ("nonsense".to_owned(), "line 1, column 1: expected a session: `{`".to_owned()),
            ("\n[]".to_owned(), "line 2, column 1: expected a session instead of an array".to_owned()),
            ("{\n\"format\": 1".to_owned(), "line 1, column 2: expected a key instead of the end of the line".to_owned()),
            ("{}".to_owned(), "line 1, column 3: expected `session_id` in the session".to_owned()),
            (r#"{"session_id":"a"} x"#.to_owned(), "line 1, column 20: expected the end of the line after the session".to_owned()),
            (r#"{"session_id":5}"#.to_owned(), "line 1, column 15: invalid type: integer `5`, expected a string".to_owned()),
            (r#"{"format":3,"session_id":"a"}"#.to_owned(), "line 1: cannot read trace format 3; this rehearse reads up to 1".to_owned()),
            (r#"{"calls":[{}],"format":3}"#.to_owned(), "line 1: cannot read trace format 3; this rehearse reads up to 1".to_owned()),
            (
                r#"{"started_at":"yesterday"}"#.to_owned(),
                r#"line 1, column 15: expected a time such as 2026-07-28T12:00:00Z in `started_at` instead of "yesterday""#.to_owned(),
            ),
            (call("5"), format!("line 1, column {}: expected an object: `{{`", column(""))),
            (call("{}"), format!("line 1, column {}: missing field `request`", column("}"))),
            (call(r#"{"request":{"at_ms":1}}"#), format!("line 1, column {}: expected `seq`", column(""))),
            (
                call(r#"{"request":{"seq":-1}}"#),
                format!("line 1, column {}: invalid value: integer `-1`, expected a whole number from 0", column(r#"{"request":{"seq":-"#)),
            ),
            (
                call(r#"{"request":{"seq":1,"at_ms":1,"id":1}}"#),
                format!(r#"line 1, column {}: expected a request, not {{"jsonrpc":"2.0","id":1}}"#, column("")),
            ),
            (call("{},]"), format!("line 1, column {}: missing field `request`", column("}"))),
            (
                format!(r#"{{{HEAD},"calls":[{PING},"#),
                format!("line 1, column {}: expected a value", column("")),
            ),
            (
                format!(r#"{{{HEAD},"calls":[{PING},{{"reque"#),
                format!("line 1, column {}: expected the rest of the session instead of the end of the file", column(r#"{"reque"#)),
            ),
            (
                format!("{{{HEAD},\"calls\":[{PING},{{\"reque\n"),
                format!("line 1, column {}: expected the rest of the session instead of the end of the line", column(r#"{"reque"#)),
            ),
            (format!("{{{HEAD}\n"), format!("line 1, column {}: expected `,` or `}}` instead of the end of the line", HEAD.len() + 2)),
        ];
        for (text, expected) in table {
            let error = read(&text, false).into_iter().find_map(Result::err);
            assert_eq!(error, Some(expected), "{text}");
        }
    }

    #[test]
    fn a_bad_line_ends_the_reading_unless_bad_lines_are_skipped() {
        let good = format!(r#"{{{HEAD},"calls":[{PING}]}}"#);
        let text = format!("{good}\n{{{HEAD},\"calls\":[{PING},7\n{good}\n{{\n{good}");
        let kinds = |skip_bad| -> String {
            let mark = |part: &Result<Part, String>| match part {
                Ok(Part::Start(_)) => 's',
                Ok(Part::Call(_)) => 'c',
                Ok(Part::Entry(_)) => 'e',
                Ok(Part::Finish { .. }) => 'f',
                Err(_) => '!',
            };
            read(&text, skip_bad).iter().map(mark).collect()
        };
        assert_eq!(kinds(false), "scfsc!");
        assert_eq!(kinds(true), "scfsc!scf!scf");
    }

    #[test]
    fn a_call_that_is_too_long_is_refused() {
        let text = format!(r#"{{{HEAD},"calls":[{PING}]}}"#);
        let mut reader = TraceReader::with_limit(Cursor::new(text), 50);
        let error = reader.find_map(Result::err).unwrap();
        let column = HEAD.len() + 12;
        assert_eq!(error.to_string(), format!("line 1, column {column}: a value is longer than the limit of 50 bytes"));
    }

    /// The messages of a session in recorded order; batches are split.
    fn recorded_order(parts: &[Part]) -> Vec<(u64, u32, EntryBody)> {
        let mut all = Vec::new();
        let placed = |from, placed: &PlacedMessage| {
            let PlacedMessage { channel, message, event_id, .. } = placed.clone();
            (placed.seq, placed.item.unwrap_or(0), EntryBody::Message { from, channel, message, event_id })
        };
        for part in parts {
            match part {
                Part::Start(_) | Part::Finish { .. } => {}
                Part::Entry(entry) => all.push((entry.seq, entry.item.unwrap_or(0), entry.what.clone())),
                Part::Call(call) => {
                    all.push(placed(call.asker, &call.request));
                    all.extend(call.response.iter().map(|response| placed(call.asker.other(), response)));
                }
            }
        }
        all.sort_by_key(|(seq, item, _)| (*seq, *item));
        all
    }

    fn expected_order(entries: &[Entry]) -> Vec<(u64, u32, EntryBody)> {
        let last_end = entries.iter().rposition(|entry| matches!(entry.what, EntryBody::Ended(_)));
        let mut expected_order = Vec::new();
        for (number, Entry { seq, what, .. }) in entries.iter().enumerate() {
            match what {
                EntryBody::Message { from, channel, message, event_id } => match message.body() {
                    crate::message::Body::Batch(items) => {
                        expected_order.extend((0..).zip(items).map(|(item, message)| {
                            let (message, event_id) = (message.clone(), event_id.clone());
                            (*seq, item, EntryBody::Message { from: *from, channel: *channel, message, event_id })
                        }))
                    }
                    _ => expected_order.push((*seq, 0, what.clone())),
                },
                _ if Some(number) == last_end => {}
                _ => expected_order.push((*seq, 0, what.clone())),
            }
        }
        expected_order
    }

    proptest! {
        #[test]
        fn a_session_that_is_folded_written_and_read_is_the_same(
            start in arbitrary::start(), entries in arbitrary::entries(), otherwise in arbitrary::end(), requests in 0..4_usize,
        ) {
            let mut fold = JournalFold::with_limit(start.clone(), FoldLimit { requests, ..FoldLimit::default() });
            let mut parts = Vec::new();
            // Pieces are replaced by the whole message.
            let mut entries = entries;
            entries.retain(|entry| !matches!(entry.what, EntryBody::Piece { .. }));
            for entry in entries.clone() {
                fold.entry(entry, &mut parts);
                prop_assert!(fold.open_count() <= requests);
            }
            let end = entries.iter().rev().find_map(|entry| match &entry.what {
                EntryBody::Ended(end) => Some(end.clone()),
                _ => None,
            });
            fold.finish(Some(otherwise.clone()), &mut parts);
            prop_assert_eq!(recorded_order(&parts), expected_order(&entries));

            let text = to_text(&parts);
            prop_assert_eq!(text.matches('\n').count(), 1);
            let read: Vec<_> = TraceReader::new(Cursor::new(&text)).map(Result::unwrap).collect();
            prop_assert_eq!(recorded_order(&read), expected_order(&entries));
            prop_assert_eq!(&read[0], &parts[0]);
            let Some(Part::Finish { end: read_end, .. }) = read.last() else { panic!("not finished") };
            prop_assert_eq!(read_end, &Some(end.unwrap_or(otherwise)));
            prop_assert_eq!(to_text(&read), text, "and once more");
        }

        #[test]
        fn no_text_makes_the_reader_panic(pieces in proptest::collection::vec(piece_of_a_trace(), 0..12)) {
            let text = pieces.concat();
            TraceReader::new(Cursor::new(&text)).skip_bad(true).for_each(drop);
        }

        #[test]
        fn the_size_of_the_chunks_does_not_matter(entries in arbitrary::entries(), size in 1..40_usize) {
            let mut fold = JournalFold::new(SessionStart { session_id: "a".into(), server_info: Map::new(), started_at: None, metadata: Map::new() });
            let mut parts = Vec::new();
            entries.into_iter().for_each(|entry| fold.entry(entry, &mut parts));
            fold.finish(None, &mut parts);
            let text = to_text(&parts);
            let whole: Vec<_> = TraceReader::new(Cursor::new(&text)).map(Result::unwrap).collect();
            let chunked = std::io::BufReader::with_capacity(size, Cursor::new(&text));
            let chunked: Vec<_> = TraceReader::new(chunked).map(Result::unwrap).collect();
            prop_assert_eq!(chunked, whole);
        }
    }

    fn piece_of_a_trace() -> impl Strategy<Value = &'static str> {
        proptest::sample::select(vec![
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\n",
            " ",
            "\"",
            "\\",
            "\"session_id\":\"a\"",
            "\"calls\":[",
            "\"messages\":[",
            "\"format\":1",
            "\"end\":",
            "null",
            "5",
            PING,
            "{\"type\":\"stderr\",\"seq\":1,\"at_ms\":0,\"line\":\"x\"}",
            "\u{e9}",
        ])
    }

    #[test]
    fn a_call_can_be_read_again_at_its_span() {
        let entry = r#"{"type":"stderr","seq":2,"at_ms":3,"line":"ø"}"#;
        let text =
            format!("\n{{{HEAD},\"calls\":[{PING} , {PING}],\"messages\":[{entry}]}}\n{{{HEAD},\"calls\":[{PING}]}}\n");
        let mut reader = TraceReader::new(Cursor::new(&text));
        let mut seen = 0;
        while let Some(part) = reader.next() {
            let span = reader.span();
            let start = usize::try_from(span.offset).unwrap();
            let again = || text.as_bytes()[start..start + span.length as usize].to_vec();
            match part.unwrap() {
                Part::Call(call) => assert_eq!(span.call(again()), Some(*call)),
                Part::Entry(entry) => assert_eq!(span.entry(again()), Some(entry)),
                Part::Start(_) | Part::Finish { .. } => continue,
            }
            seen += 1;
        }
        assert_eq!(seen, 4);
    }
}
