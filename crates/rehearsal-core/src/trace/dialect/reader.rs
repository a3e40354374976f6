//! Any file of recordings, read as parts.

use std::collections::VecDeque;
use std::io::{BufRead, Seek};

use super::super::{Format, JournalParts, JournalReader, LINE_LIMIT, Part, ReadError, TraceReader};
use super::cassette::Cassette;
use super::mcporter::Mcporter;
use super::mcptest::Mcptest;
use super::python_log::PythonLog;
use super::python_trace::PythonTrace;
use super::recorder::Recorder;
use super::records::{Record, Records};

/// Parts that wait to be given.
pub(super) type Parts = VecDeque<Part>;

/// How one tool writes its recordings.
pub(super) trait Dialect: std::fmt::Debug + Send {
    /// Takes a piece of the file; `Err` says what was expected instead.
    fn record(&mut self, record: Record, out: &mut Parts) -> Result<(), String>;

    /// The file is over, or what follows could not be read.
    fn finish(&mut self, out: &mut Parts);
}

/// The parts of a file of recordings in any format that can be read.
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
    Foreign { records: Box<Records<R>>, dialect: Box<dyn Dialect> },
    Over,
}

impl<R: BufRead + Seek> Reader<R> {
    /// Reads from where `input` stands; `None` where the format can only be written.
    pub fn new(format: Format, input: R) -> Option<Reader<R>> {
        Reader::skipping(format, input, false)
    }

    /// The same, going on after what cannot be read where `skip_bad` says so: the error is given, and then what follows.
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
            Format::PythonTrace => foreign(input, Some("calls"), Box::<PythonTrace>::default()),
            Format::PythonLog => foreign(input, None, Box::<PythonLog>::default()),
            Format::McpRecorder => foreign(input, Some("interactions"), Box::<Recorder>::default()),
            Format::McpCassette => foreign(input, Some("messages"), Box::<Cassette>::default()),
            Format::Mcporter => foreign(input, None, Box::<Mcporter>::default()),
            Format::Mcptest => foreign(input, Some("exchanges"), Box::<Mcptest>::default()),
            Format::Har => return None,
        };
        Some(Reader { input, waiting: Parts::new(), skip_bad })
    }
}

impl<R: BufRead + Seek> Iterator for Reader<R> {
    type Item = Result<Part, ReadError>;

    fn next(&mut self) -> Option<Result<Part, ReadError>> {
        loop {
            if let Some(part) = self.waiting.pop_front() {
                return Some(Ok(part));
            }
            let (records, dialect) = match &mut self.input {
                Input::Trace(reader) => return reader.next(),
                Input::Journal(parts) => return parts.next(),
                Input::Foreign { records, dialect } => (records, dialect),
                Input::Over => return None,
            };
            let line = records.line();
            let failed = match records.next() {
                Ok(Some(record)) => {
                    let taken = dialect.record(record, &mut self.waiting);
                    taken.err().map(|expected| ReadError::Bad { line, column: 1, expected })
                }
                Ok(None) => {
                    dialect.finish(&mut self.waiting);
                    self.input = Input::Over;
                    continue;
                }
                Err(error) => Some(error),
            };
            let Some(error) = failed else { continue };
            let hopeless = matches!(error, ReadError::Io(_)) || !self.skip_bad;
            if hopeless || records.skip_line().is_err() {
                records.stop();
            }
            return Some(Err(error));
        }
    }
}
