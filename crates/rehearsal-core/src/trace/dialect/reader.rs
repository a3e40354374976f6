//! Reads a recording of any format as parts.

use std::collections::VecDeque;
use std::io::{BufRead, Seek};

use super::super::{Format, JournalParts, JournalReader, LINE_LIMIT, Part, ReadError, TraceReader};
use super::cassettes::{McpCassette, McpRecorder, Mcptest};
use super::mcporter::Mcporter;
use super::python_log::PythonLog;
use super::python_trace::PythonTrace;
use super::python_whole::{self, Slice, Whole};
use super::records::{Lent, Record, Records, Span};
use super::tree::Tree;

/// Parts that the caller has not taken yet.
pub(super) type Parts = VecDeque<Part>;

/// Reads the recordings of one tool.
pub(super) trait Dialect: std::fmt::Debug + Send {
    /// Takes one record of the file; `Err` describes what was expected instead.
    fn record(&mut self, record: Record, out: &mut Parts) -> Result<(), String>;

    /// Ends the last session, at the end of the file or before a bad line.
    fn finish(&mut self, out: &mut Parts);
}

/// Reads the parts of a recording in any format that can be read.
#[derive(Debug)]
pub struct Reader<R> {
    input: Input<R>,
    waiting: Parts,
    skip_bad: bool,
}

#[derive(Debug)]
enum Input<R> {
    Trace(Box<TraceReader<R>>),
    Journal(Box<JournalParts<R>>),
    Foreign {
        records: Box<Records<R>>,
        dialect: Box<dyn Dialect>,
    },
    /// Our whole session, in the metadata of Python's.
    Whole {
        reader: Box<TraceReader<Slice<R>>>,
        records: Lent,
        dialect: Box<dyn Dialect>,
    },
    Over,
}

impl<R: BufRead + Seek> Reader<R> {
    /// Reads from the position of `input`; `None` if the format can only be written.
    pub fn new(format: Format, input: R) -> Option<Reader<R>> {
        Reader::skipping(format, input, false)
    }

    /// Reads from the position of `input`. With `skip_bad` the reader returns the error of a bad line and continues
    /// after it.
    pub fn skipping(format: Format, input: R, skip_bad: bool) -> Option<Reader<R>> {
        let foreign = |input, list, dialect| {
            let records = Box::new(Records::new(input, list, LINE_LIMIT));
            Input::Foreign { records, dialect }
        };
        let input = match format {
            Format::Trace => Input::Trace(Box::new(TraceReader::new(input).skip_bad(skip_bad))),
            Format::Journal => {
                Input::Journal(Box::new(JournalParts::new(JournalReader::new(input).skip_bad(skip_bad))))
            }
            Format::PythonTrace => {
                let records = Records::new(input, Some("calls"), LINE_LIMIT).passing_over(python_whole::PLACE);
                Input::Foreign { records: Box::new(records), dialect: Box::<PythonTrace>::default() }
            }
            Format::PythonLog => foreign(input, None, Box::<PythonLog>::default()),
            Format::McpRecorder => foreign(input, Some("interactions"), Box::<McpRecorder>::default()),
            Format::McpCassette => foreign(input, Some("messages"), Box::<McpCassette>::default()),
            Format::Mcporter => foreign(input, None, Box::<Mcporter>::default()),
            Format::Mcptest => foreign(input, Some("exchanges"), Box::<Mcptest>::default()),
            Format::Har => return None,
        };
        Some(Reader { input, waiting: Parts::new(), skip_bad })
    }
}

impl<R: BufRead + Seek> Reader<R> {
    /// Takes the next record of another tool's file; `false` at the end.
    fn advance(&mut self) -> Result<bool, ReadError> {
        let Input::Foreign { records, dialect } = &mut self.input else { return Ok(false) };
        let line = records.line();
        let Some(mut record) = records.next()? else {
            dialect.finish(&mut self.waiting);
            self.input = Input::Over;
            return Ok(true);
        };
        if let Record::Head(head) = &mut record
            && let Some(span) = records.passed()
        {
            match python_whole::judge(head, span, records)? {
                Whole::Same => {
                    dialect.finish(&mut self.waiting);
                    return self.enter(span).map(|()| true);
                }
                Whole::Foreign => put_back(head, records.value_at(span)?),
                Whole::Outdated => {}
            }
        }
        let taken = dialect.record(record, &mut self.waiting);
        taken.map(|()| true).map_err(|expected| ReadError::Bad { line, column: 1, expected })
    }

    /// Continues with our whole session.
    fn enter(&mut self, span: Span) -> Result<(), ReadError> {
        if let Input::Foreign { mut records, dialect } = std::mem::replace(&mut self.input, Input::Over) {
            while !matches!(records.next()?, Some(Record::End) | None) {}
            let back = records.mark()?;
            let (input, records) = records.lend(back);
            let reader = Box::new(TraceReader::new(Slice::new(input, span)?));
            self.input = Input::Whole { reader, records, dialect };
        }
        Ok(())
    }

    /// Continues after our whole session, with what follows Python's.
    fn leave(&mut self) -> Result<(), ReadError> {
        if let Input::Whole { reader, records, dialect } = std::mem::replace(&mut self.input, Input::Over) {
            let records = Box::new(records.take_back(reader.into_inner().into_inner())?);
            self.input = Input::Foreign { records, dialect };
        }
        Ok(())
    }
}

/// Puts a foreign value back into the member in which we keep our session.
fn put_back(head: &mut Tree, value: Tree) {
    let [outer, inner] = python_whole::PLACE;
    if let Some(mut object) = head.remove(outer) {
        object.set(inner, value);
        head.set(outer, object);
    }
}

impl<R: BufRead + Seek> Iterator for Reader<R> {
    type Item = Result<Part, ReadError>;

    fn next(&mut self) -> Option<Result<Part, ReadError>> {
        loop {
            if let Some(part) = self.waiting.pop_front() {
                return Some(Ok(part));
            }
            let advanced = match &mut self.input {
                Input::Trace(reader) => return reader.next(),
                Input::Journal(parts) => return parts.next(),
                Input::Whole { reader, .. } => match reader.next() {
                    Some(part) => return Some(part),
                    None => self.leave().map(|()| true),
                },
                Input::Foreign { .. } => self.advance(),
                Input::Over => return None,
            };
            let Err(error) = advanced else { continue };
            let hopeless = matches!(error, ReadError::Io(_)) || !self.skip_bad;
            if let Input::Foreign { records, .. } = &mut self.input
                && (hopeless || records.skip_line().is_err())
            {
                records.stop();
            }
            return Some(Err(error));
        }
    }
}
