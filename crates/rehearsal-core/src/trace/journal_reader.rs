//! Reads a journal, line by line.

use std::io::{self, BufRead, Read, Seek, SeekFrom};

use std::time::Duration;

use bytes::Bytes;

use super::fields::{Fields, LineKind};
use super::format::JOURNAL_FORMAT;
use super::journal_sessions::LinePosition;
use super::{Entry, EntryBody, ReadError, SessionStart};
use crate::exchange::{Channel, Side};
use crate::message::Message;

/// The default limit of a line, in bytes.
pub const LINE_LIMIT: usize = 1 << 30;

/// One line of a journal.
#[derive(Clone, Debug, PartialEq)]
pub enum JournalLine {
    /// The start of a session.
    Start(SessionStart),
    /// An event in a session.
    Entry {
        /// The id of the session, if the line has it: several may share a file.
        session_id: Option<String>,
        /// The event.
        entry: Entry,
    },
}

/// Reads a journal line by line.
///
/// A last line without its end that cannot be parsed was torn when its writer was killed. It is skipped, and
/// [`torn`](JournalReader::torn) returns its length. Reading ends at a bad line, unless bad lines are
/// [skipped](JournalReader::skip_bad).
#[derive(Debug)]
pub struct JournalReader<R> {
    input: R,
    line: u64,
    /// How many bytes were read.
    position: u64,
    buffer: Vec<u8>,
    /// The verbatim messages at the current position, if there are any.
    verbatim: Option<VerbatimRun>,
    limit: usize,
    skip_bad: bool,
    over: bool,
    torn: Option<u64>,
}

/// Messages that are verbatim in a journal, one per line, behind one line with their common members.
#[derive(Clone, Copy, Debug)]
pub(super) struct VerbatimRun {
    from: Side,
    channel: Channel,
    at: Duration,
    /// The sequence number of the next message.
    seq: u64,
    /// How many of their bytes are left.
    left: u64,
}

/// The contents of a line.
enum LineContent {
    Line(JournalLine),
    Verbatim(VerbatimRun),
}

impl<R: BufRead> JournalReader<R> {
    /// Reads a journal from its beginning.
    pub fn new(input: R) -> JournalReader<R> {
        let buffer = Vec::with_capacity(4096);
        JournalReader {
            input,
            line: 0,
            position: 0,
            buffer,
            verbatim: None,
            limit: LINE_LIMIT,
            skip_bad: false,
            over: false,
            torn: None,
        }
    }

    /// Sets whether reading continues after a bad line.
    #[must_use]
    pub fn skip_bad(self, skip_bad: bool) -> JournalReader<R> {
        JournalReader { skip_bad, ..self }
    }

    /// Rejects lines that are longer than `limit` bytes.
    #[must_use]
    pub fn limit(self, limit: usize) -> JournalReader<R> {
        JournalReader { limit, ..self }
    }

    /// The number of the line that was read last, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// The length of the torn last line, if there was one.
    pub fn torn(&self) -> Option<u64> {
        self.torn
    }

    pub(super) fn skips_bad(&self) -> bool {
        self.skip_bad
    }

    /// The position of the next line.
    pub(super) fn mark(&self) -> LinePosition {
        LinePosition { position: self.position, line: self.line, verbatim: self.verbatim }
    }

    fn read(&mut self) -> Result<Option<JournalLine>, ReadError> {
        loop {
            if let Some(verbatim) = self.verbatim.take_if(|verbatim| verbatim.left > 0) {
                return self.read_verbatim(verbatim);
            }
            let Some(ended) = self.read_line(u64::MAX)? else { return Ok(None) };
            let text = if self.line == 1 {
                self.buffer.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&self.buffer)
            } else {
                &self.buffer
            };
            if text.trim_ascii().is_empty() {
                continue;
            }
            match line(self.line, text) {
                Ok(LineContent::Line(line)) => return Ok(Some(line)),
                Ok(LineContent::Verbatim(verbatim)) => self.verbatim = Some(verbatim),
                // After a crash of the operating system the rest may contain anything.
                Err(ReadError::NotJson { .. }) | Err(ReadError::Bad { line: 2.., .. }) if !ended => {
                    self.torn = Some(self.buffer.len() as u64);
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads the next verbatim message.
    fn read_verbatim(&mut self, verbatim: VerbatimRun) -> Result<Option<JournalLine>, ReadError> {
        let before = self.position;
        let read = self.read_line(verbatim.left);
        let VerbatimRun { from, channel, at, seq, left } = verbatim;
        let left = left.saturating_sub(self.position - before);
        self.verbatim = Some(VerbatimRun { seq: seq + 1, left, ..verbatim });
        match read? {
            None => Ok(None),
            Some(false) if left > 0 => {
                self.torn = Some(self.buffer.len() as u64);
                Ok(None)
            }
            Some(_) => {
                let line = self.buffer.strip_suffix(b"\n").unwrap_or(&self.buffer);
                let message = Message::parse(Bytes::copy_from_slice(line));
                let what = EntryBody::Message { from, channel, message, event_id: None };
                Ok(Some(JournalLine::Entry { session_id: None, entry: Entry::new(seq, at, what) }))
            }
        }
    }

    /// Reads one line of at most `most` bytes into the buffer, and returns whether it ended; `None` at the end of the
    /// file.
    fn read_line(&mut self, most: u64) -> Result<Option<bool>, ReadError> {
        self.buffer.clear();
        let limit = most.min(self.limit as u64 + 1);
        let length = self.input.by_ref().take(limit).read_until(b'\n', &mut self.buffer)?;
        if length == 0 {
            return Ok(None);
        }
        self.line += 1;
        self.position += length as u64;
        let ended = self.buffer.last() == Some(&b'\n');
        if !ended && length > self.limit {
            self.skip_line()?;
            return Err(ReadError::TooLong { line: self.line, column: 1, limit: self.limit });
        }
        Ok(Some(ended))
    }

    fn skip_line(&mut self) -> io::Result<()> {
        loop {
            let chunk = self.input.fill_buf()?;
            let (used, done) = match memchr::memchr(b'\n', chunk) {
                Some(end) => (end + 1, true),
                None => (chunk.len(), chunk.is_empty()),
            };
            self.input.consume(used);
            self.position += used as u64;
            if done {
                return Ok(());
            }
        }
    }
}

impl<R: BufRead + Seek> JournalReader<R> {
    /// Goes to the beginning of a line.
    pub(super) fn go_to(&mut self, mark: LinePosition) -> io::Result<()> {
        self.input.seek(SeekFrom::Start(mark.position))?;
        (self.position, self.line, self.over, self.torn) = (mark.position, mark.line, false, None);
        self.verbatim = mark.verbatim;
        Ok(())
    }
}

/// Parses one line.
fn line(number: u64, text: &[u8]) -> Result<LineContent, ReadError> {
    let bad = |expected| ReadError::Bad { line: number, column: 1, expected };
    if !text.trim_ascii_start().starts_with(b"{") {
        return Err(bad("an object: `{`".to_owned()));
    }
    let fields: Fields<'_> = serde_json::from_slice(text).map_err(|error| ReadError::json(number, 1, &error))?;
    match fields.kind {
        Some(LineKind::Start) => match fields.format {
            Some(found) if found > JOURNAL_FORMAT => {
                Err(ReadError::Format { line: number, found, known: JOURNAL_FORMAT })
            }
            Some(_) | None => fields.start().map(|start| LineContent::Line(JournalLine::Start(start))).map_err(bad),
        },
        Some(LineKind::Lines) => verbatim_run(&fields).map(LineContent::Verbatim).map_err(bad),
        Some(_) | None => {
            let mut fields = fields;
            let session_id = fields.session_id.take();
            fields.entry().map(|entry| LineContent::Line(JournalLine::Entry { session_id, entry })).map_err(bad)
        }
    }
}

fn verbatim_run(fields: &Fields<'_>) -> Result<VerbatimRun, String> {
    let left = fields.bytes.ok_or("`bytes`")?;
    let (from, channel) = (fields.from()?, fields.channel());
    Ok(VerbatimRun { from, channel, at: fields.at()?, seq: fields.seq()?, left })
}

impl<R: BufRead> Iterator for JournalReader<R> {
    type Item = Result<JournalLine, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let read = self.read();
        self.over = match &read {
            Ok(Some(_)) => false,
            Ok(None) | Err(ReadError::Io(_)) => true,
            Err(_) => !self.skip_bad,
        };
        read.transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::{Channel, Side};
    use crate::message::Message;
    use crate::trace::{EntryBody, SharedLog, arbitrary, write_entry, write_lines, write_start};
    use proptest::prelude::*;
    use std::time::Duration;

    fn client_message(text: &str) -> Entry {
        let what = EntryBody::Message {
            from: Side::Client,
            channel: Channel::MAIN,
            message: Message::parse(text.to_owned()),
            event_id: None,
        };
        Entry::new(4, Duration::from_micros(12_500), what)
    }

    fn to_line(entry: &Entry) -> String {
        let mut out = Vec::new();
        write_entry(&mut out, entry, None);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_line_has_the_members_of_the_message_in_their_order() {
        let table = [
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"b":1.0,"a":12345678901234567890}}"#,
                r#"{"type":"request","seq":4,"at_ms":12.5,"from":"client","id":1,"method":"tools/call","params":{"b":1.0,"a":12345678901234567890}}"#,
            ),
            (
                r#"{"result":{},"jsonrpc":"2.0","id":"a"}"#,
                r#"{"type":"response","seq":4,"at_ms":12.5,"from":"client","result":{},"id":"a","layout":"result,jsonrpc,id"}"#,
            ),
            (
                "{\n  \"jsonrpc\": \"2.0\",\n  \"method\": \"x\",\n  \"params\": {\n    \"a\": 1\n  }\n}",
                r##"{"type":"notification","seq":4,"at_ms":12.5,"from":"client","method":"x","params":{     "a": 1   },"lf":[1,11],"layout":"{\n  \"jsonrpc\": \"2.0\",\n  \"method\": #,\n  \"params\": #\n}"}"##,
            ),
            (
                "Server running",
                r#"{"type":"garbled","seq":4,"at_ms":12.5,"from":"client","reason":"not JSON: expected value at line 1 column 1","text":"Server running"}"#,
            ),
            ("[5]", r#"{"type":"batch","seq":4,"at_ms":12.5,"from":"client","batch":[5]}"#),
        ];
        for (text, line) in table {
            assert_eq!(to_line(&client_message(text)), format!("{line}\n"));
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_base64() {
        let what = EntryBody::Message {
            from: Side::Server,
            channel: Channel(3),
            message: Message::parse(&b"\xff\xfe"[..]),
            event_id: None,
        };
        let line = to_line(&Entry::new(0, Duration::ZERO, what));
        let expected = r#"{"type":"garbled","seq":0,"at_ms":0,"from":"server","channel":3,"reason":"not UTF-8 from byte 0 on","base64":"//4="}"#;
        assert_eq!(line, format!("{expected}\n"));
    }

    #[test]
    fn a_line_of_a_shared_log_has_its_session_and_time() {
        let log = SharedLog { session_id: "a", started_at: "2026-07-28T12:00:00Z".parse().unwrap() };
        let mut out = Vec::new();
        write_entry(&mut out, &client_message(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#), Some(&log));
        let expected = r#"{"type":"request","timestamp":"2026-07-28T12:00:00.0125Z","session_id":"a","seq":4,"at_ms":12.5,"from":"client","id":1,"method":"ping"}"#;
        assert_eq!(String::from_utf8(out.clone()).unwrap(), format!("{expected}\n"));
        let line = JournalReader::new(&out[..]).next().unwrap().unwrap();
        let JournalLine::Entry { session_id: Some(session_id), .. } = line else { panic!("{line:?}") };
        assert_eq!(session_id, "a");
    }

    #[test]
    fn a_torn_last_line_is_the_end() {
        let whole = to_line(&client_message(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#));
        for length in 1..whole.len() - 1 {
            let text = format!("{whole}{}", &whole[..length]);
            let mut reader = JournalReader::new(text.as_bytes());
            assert_eq!(reader.by_ref().map(Result::unwrap).count(), 1);
            assert_eq!(reader.torn(), Some(length as u64));
        }
        let without_end = format!("{whole}{}", whole.trim_end());
        let mut reader = JournalReader::new(without_end.as_bytes());
        assert_eq!((reader.by_ref().count(), reader.torn()), (2, None), "only its end is missing");
    }

    #[test]
    fn the_error_of_a_bad_line_has_its_position_and_expectation() {
        let table = [
            ("nonsense\n", "line 1, column 1: expected an object: `{`"),
            ("\n\n[1]\n", "line 3, column 1: expected an object: `{`"),
            (r#"{"seq":1,}"#, "line 1, column 10: trailing comma"),
            (r#"{"seq":1}"#, "line 1, column 1: expected `type`"),
            (
                r#"{"type":"reqest","seq":1}"#,
                "line 1, column 16: unknown variant `reqest`, expected one of `start`, `lines`, `request`, \
                 `notification`, `response`, `batch`, `garbled`, `http`, `event`, `channel_ended`, `piece`, `stderr`, `end`",
            ),
            (r#"{"type":"request","at_ms":1}"#, "line 1, column 1: expected `seq`"),
            (
                r#"{"type":"request","seq":1,"at_ms":"x"}"#,
                "line 1, column 1: expected milliseconds in `at_ms` instead of \"x\"",
            ),
            (r#"{"type":"request","seq":1,"at_ms":1}"#, "line 1, column 1: expected `from`"),
            (r#"{"type":"start","format":3}"#, "line 1: cannot read trace format 3; this rehearse reads up to 2"),
            (r#"{"type":"lines","seq":1,"at_ms":1,"from":"client"}"#, "line 1, column 1: expected `bytes`"),
            (r#"{"type":"lines","seq":1,"at_ms":1,"bytes":9}"#, "line 1, column 1: expected `from`"),
            (
                r#"{"type":"request","seq":1,"at_ms":1,"from":"client","params":{},"lf":[1]}"#,
                "line 1, column 1: expected a space at byte 1 of the value, as `lf` says",
            ),
        ];
        for (text, expected) in table {
            let error = JournalReader::new(format!("{}\n", text).as_bytes()).next().unwrap().unwrap_err();
            assert_eq!(error.to_string(), expected, "{text}");
        }
    }

    #[test]
    fn bad_lines_end_the_reading_or_are_skipped() {
        let good = to_line(&client_message(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#));
        let text = format!("{good}bad\n{good}");
        let read =
            |skip| JournalReader::new(text.as_bytes()).skip_bad(skip).map(|line| line.is_ok()).collect::<Vec<_>>();
        assert_eq!(read(false), [true, false]);
        assert_eq!(read(true), [true, false, true]);
    }

    #[test]
    fn a_too_long_line_is_refused_and_the_next_is_read() {
        let good = to_line(&client_message(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#));
        let text = format!("{}\n{good}", "x".repeat(5000));
        let mut reader = JournalReader::new(text.as_bytes()).limit(1000).skip_bad(true);
        assert_eq!(
            reader.next().unwrap().unwrap_err().to_string(),
            "line 1, column 1: a value is longer than the limit of 1000 bytes"
        );
        assert!(reader.next().unwrap().is_ok());
    }

    #[test]
    fn messages_in_verbatim_lines_are_read_like_others() {
        let mut journal = Vec::new();
        let lines = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n\r\nnoise\n";
        write_lines(&mut journal, 4, Duration::from_micros(12_500), Side::Client, Channel::MAIN, lines);
        write_entry(&mut journal, &Entry { seq: 7, ..client_message("{}") }, None);
        let read = |journal: &[u8]| {
            let mut reader = JournalReader::new(journal);
            let mut found = Vec::new();
            for line in reader.by_ref() {
                let Ok(JournalLine::Entry { session_id: None, entry }) = line else { panic!("{line:?}") };
                assert_eq!(entry.at, Duration::from_micros(12_500));
                let EntryBody::Message { from: Side::Client, channel: Channel::MAIN, message, event_id: None } =
                    entry.what
                else {
                    panic!("a message")
                };
                found.push(format!("{} {}", entry.seq, message.text()));
            }
            (found, reader.torn())
        };
        let all = ["4 {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", "5 \r", "6 noise", "7 {}"];
        assert_eq!(read(&journal), (all.map(str::to_owned).to_vec(), None));
        // Killed at any byte: whole lines are read, and a torn one is skipped.
        let header = journal.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        for cut in 0..journal.len() {
            let (found, torn) = read(&journal[..cut]);
            let whole = journal[..cut].iter().skip(header).filter(|byte| **byte == b'\n').count();
            assert_eq!(found, all[..found.len()], "cut at {cut}");
            assert!(found.len() == whole || (found.len() == whole + 1 && cut + 1 == journal.len()), "cut at {cut}");
            assert!(torn.is_none_or(|torn| torn < 200), "cut at {cut}");
        }
    }

    #[test]
    fn a_reader_can_seek_back_into_verbatim_lines() {
        let mut journal = Vec::new();
        write_lines(&mut journal, 0, Duration::ZERO, Side::Server, Channel(7), b"one\ntwo\nthree\n");
        let mut reader = JournalReader::new(std::io::Cursor::new(journal));
        let first = reader.next();
        let mark = reader.mark();
        let rest: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
        reader.go_to(mark).unwrap();
        assert_eq!(reader.by_ref().map(Result::unwrap).collect::<Vec<_>>(), rest);
        let on_channel = |line: &JournalLine| {
            matches!(
                line,
                JournalLine::Entry { entry: Entry { what: EntryBody::Message { channel: Channel(7), .. }, .. }, .. }
            )
        };
        assert!(first.is_some() && rest.len() == 2 && rest.iter().all(on_channel));
    }

    proptest! {
        #[test]
        fn written_entries_are_read_back(start in arbitrary::start(), entries in arbitrary::entries()) {
            let mut out = Vec::new();
            write_start(&mut out, &start);
            entries.iter().for_each(|entry| write_entry(&mut out, entry, None));
            prop_assert_eq!(memchr::memchr_iter(b'\n', &out).count(), entries.len() + 1, "one line each");
            prop_assert!(!out.contains(&b'\r'));
            let read: Vec<_> = JournalReader::new(&out[..]).map(Result::unwrap).collect();
            let mut expected = vec![JournalLine::Start(start)];
            expected.extend(entries.into_iter().map(|entry| JournalLine::Entry { session_id: None, entry }));
            prop_assert_eq!(read, expected);
        }

        #[test]
        fn no_bytes_make_the_reader_panic(bytes: Vec<u8>) {
            JournalReader::new(&bytes[..]).skip_bad(true).for_each(drop);
        }
    }
}
