//! Reads a recording of any format as parts.

use std::collections::VecDeque;
use std::io::{BufRead, Seek};

use super::super::{Format, JournalReader, JournalSessions, LINE_LIMIT, Part, ReadError, TraceReader};
use super::cassettes::{McpCassette, McpRecorder, Mcptest};
use super::json_records::{ByteSpan, Record, Records, SuspendedRecords};
use super::json_tree::JsonTree;
use super::mcporter::Mcporter;
use super::python_embedded::{self, EmbeddedSession, FileSlice};
use super::python_log::PythonLog;
use super::python_trace::PythonTrace;

/// Parts that the caller has not taken yet.
pub(super) type PartQueue = VecDeque<Part>;

/// Reads the recordings of one tool.
pub(super) trait ForeignFormat: std::fmt::Debug + Send {
    /// Takes one record of the file; `Err` describes what was expected instead.
    fn record(&mut self, record: Record, out: &mut PartQueue) -> Result<(), String>;

    /// Ends the last session, at the end of the file or before a bad line.
    fn finish(&mut self, out: &mut PartQueue);
}

/// Reads the parts of a recording in any format that can be read.
#[derive(Debug)]
pub struct RecordingReader<R> {
    input: ReaderInput<R>,
    waiting: PartQueue,
    skip_bad: bool,
}

#[derive(Debug)]
enum ReaderInput<R> {
    Trace(Box<TraceReader<R>>),
    Journal(Box<JournalSessions<R>>),
    Foreign {
        records: Box<Records<R>>,
        dialect: Box<dyn ForeignFormat>,
    },
    /// Our whole session, in the metadata of Python's.
    Whole {
        reader: Box<TraceReader<FileSlice<R>>>,
        records: SuspendedRecords,
        dialect: Box<dyn ForeignFormat>,
    },
    Over,
}

impl<R: BufRead + Seek> RecordingReader<R> {
    /// Reads from the position of `input`; `None` if the format can only be written.
    pub fn new(format: Format, input: R) -> Option<RecordingReader<R>> {
        RecordingReader::skipping(format, input, false)
    }

    /// Reads from the position of `input`. With `skip_bad` the reader returns the error of a bad line and continues
    /// after it.
    pub fn skipping(format: Format, input: R, skip_bad: bool) -> Option<RecordingReader<R>> {
        let foreign = |input, list, dialect| {
            let records = Box::new(Records::new(input, list, LINE_LIMIT));
            ReaderInput::Foreign { records, dialect }
        };
        let input = match format {
            Format::Trace => ReaderInput::Trace(Box::new(TraceReader::new(input).skip_bad(skip_bad))),
            Format::Journal => {
                ReaderInput::Journal(Box::new(JournalSessions::new(JournalReader::new(input).skip_bad(skip_bad))))
            }
            Format::PythonTrace => {
                let records = Records::new(input, Some("calls"), LINE_LIMIT).skipping(python_embedded::PLACE);
                ReaderInput::Foreign { records: Box::new(records), dialect: Box::<PythonTrace>::default() }
            }
            Format::PythonLog => foreign(input, None, Box::<PythonLog>::default()),
            Format::McpRecorder => foreign(input, Some("interactions"), Box::<McpRecorder>::default()),
            Format::McpCassette => foreign(input, Some("messages"), Box::<McpCassette>::default()),
            Format::Mcporter => foreign(input, None, Box::<Mcporter>::default()),
            Format::Mcptest => foreign(input, Some("exchanges"), Box::<Mcptest>::default()),
            Format::Har => return None,
        };
        Some(RecordingReader { input, waiting: PartQueue::new(), skip_bad })
    }
}

impl<R: BufRead + Seek> RecordingReader<R> {
    /// Takes the next record of another tool's file; `false` at the end.
    fn advance(&mut self) -> Result<bool, ReadError> {
        let ReaderInput::Foreign { records, dialect } = &mut self.input else { return Ok(false) };
        let line = records.line();
        let Some(mut record) = records.next()? else {
            dialect.finish(&mut self.waiting);
            self.input = ReaderInput::Over;
            return Ok(true);
        };
        if let Record::Head(head) = &mut record
            && let Some(span) = records.skipped_span()
        {
            match python_embedded::compare_embedded(head, span, records)? {
                EmbeddedSession::Same => {
                    dialect.finish(&mut self.waiting);
                    return self.enter(span).map(|()| true);
                }
                EmbeddedSession::Foreign => put_back(head, records.value_at(span)?),
                EmbeddedSession::Outdated => {}
            }
        }
        let taken = dialect.record(record, &mut self.waiting);
        taken.map(|()| true).map_err(|expected| ReadError::Bad { line, column: 1, expected })
    }

    /// Continues with our whole session.
    fn enter(&mut self, span: ByteSpan) -> Result<(), ReadError> {
        if let ReaderInput::Foreign { mut records, dialect } = std::mem::replace(&mut self.input, ReaderInput::Over) {
            while !matches!(records.next()?, Some(Record::End) | None) {}
            let back = records.mark()?;
            let (input, records) = records.lend(back);
            let reader = Box::new(TraceReader::new(FileSlice::new(input, span)?));
            self.input = ReaderInput::Whole { reader, records, dialect };
        }
        Ok(())
    }

    /// Continues after our whole session, with what follows Python's.
    fn leave(&mut self) -> Result<(), ReadError> {
        if let ReaderInput::Whole { reader, records, dialect } = std::mem::replace(&mut self.input, ReaderInput::Over) {
            let records = Box::new(records.resume(reader.into_inner().into_inner())?);
            self.input = ReaderInput::Foreign { records, dialect };
        }
        Ok(())
    }
}

/// Puts a foreign value back into the member in which we keep our session.
fn put_back(head: &mut JsonTree, value: JsonTree) {
    let [outer, inner] = python_embedded::PLACE;
    if let Some(mut object) = head.remove(outer) {
        object.set(inner, value);
        head.set(outer, object);
    }
}

impl<R: BufRead + Seek> Iterator for RecordingReader<R> {
    type Item = Result<Part, ReadError>;

    fn next(&mut self) -> Option<Result<Part, ReadError>> {
        loop {
            if let Some(part) = self.waiting.pop_front() {
                return Some(Ok(part));
            }
            let advanced = match &mut self.input {
                ReaderInput::Trace(reader) => return reader.next(),
                ReaderInput::Journal(parts) => return parts.next(),
                ReaderInput::Whole { reader, .. } => match reader.next() {
                    Some(part) => return Some(part),
                    None => self.leave().map(|()| true),
                },
                ReaderInput::Foreign { .. } => self.advance(),
                ReaderInput::Over => return None,
            };
            let Err(error) = advanced else { continue };
            let hopeless = matches!(error, ReadError::Io(_)) || !self.skip_bad;
            if let ReaderInput::Foreign { records, .. } = &mut self.input
                && (hopeless || records.skip_line().is_err())
            {
                records.stop();
            }
            return Some(Err(error));
        }
    }
}
