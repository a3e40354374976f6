//! Reads JSON piece by piece, one line at a time, whatever the length of the line.

use std::io::{self, BufRead, Seek, SeekFrom};

use memchr::memchr3;

use super::ReadError;
use super::error::KEY_ON_ANOTHER_LINE;

/// Reads lines of JSON from a stream, and holds only the requested piece of a line in memory.
#[derive(Debug)]
pub(super) struct JsonLineReader<R> {
    input: R,
    line: u64,
    column: u64,
    /// The offset of the current line in the stream.
    offset: u64,
    limit: usize,
}

/// A position to return to.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadPosition {
    position: u64,
    line: u64,
    column: u64,
    offset: u64,
}

impl<R: BufRead> JsonLineReader<R> {
    pub(super) fn new(input: R, limit: usize) -> JsonLineReader<R> {
        JsonLineReader { input, line: 1, column: 1, offset: 0, limit }
    }

    pub(super) fn into_inner(self) -> R {
        self.input
    }

    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// The column, in bytes, from 1.
    pub(super) fn column(&self) -> u64 {
        self.column
    }

    /// The offset, in bytes, from where the reading began.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Builds the error for unexpected text at the current position.
    pub(super) fn expected(&self, expected: impl Into<String>) -> ReadError {
        ReadError::Bad { line: self.line, column: self.column, expected: expected.into() }
    }

    /// Goes to the next line that is not blank; `false` at the end.
    pub(super) fn next_line(&mut self) -> io::Result<bool> {
        loop {
            if self.line == 1 && self.column == 1 && self.input.fill_buf()?.starts_with(b"\xEF\xBB\xBF") {
                self.consume(3);
            }
            match self.peek()? {
                None => return Ok(false),
                Some(b'\n') => {
                    self.consume(1);
                    (self.line, self.column) = (self.line + 1, 1);
                }
                Some(_) => return Ok(true),
            }
        }
    }

    /// Goes to the end of the line, or of the file.
    pub(super) fn skip_line(&mut self) -> io::Result<()> {
        loop {
            let chunk = self.input.fill_buf()?;
            let (used, done) = match memchr::memchr(b'\n', chunk) {
                Some(end) => (end, true),
                None => (chunk.len(), chunk.is_empty()),
            };
            self.consume(used);
            if done {
                return Ok(());
            }
        }
    }

    /// The next byte that is not white space; a line end is not skipped.
    pub(super) fn peek(&mut self) -> io::Result<Option<u8>> {
        loop {
            let chunk = self.input.fill_buf()?;
            if chunk.is_empty() {
                return Ok(None);
            }
            let blank = chunk.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r')).count();
            let next = chunk.get(blank).copied();
            self.consume(blank);
            if next.is_some() {
                return Ok(next);
            }
        }
    }

    /// Consumes the next byte, which must be one of `wanted`.
    pub(super) fn take(&mut self, wanted: &[u8], expected: &str) -> Result<u8, ReadError> {
        match self.peek()? {
            Some(byte) if wanted.contains(&byte) => {
                self.consume(1);
                Ok(byte)
            }
            Some(b'\n') => Err(self.expected(format!("{expected} instead of the end of the line"))),
            None => Err(self.expected(format!("{expected} instead of the end of the file"))),
            Some(_) => Err(self.expected(expected)),
        }
    }

    /// Reads a key and the colon after it.
    pub(super) fn key(&mut self, buffer: &mut Vec<u8>) -> Result<String, ReadError> {
        match self.peek()? {
            Some(b'"') => {}
            Some(b'\n') => return Err(self.expected(KEY_ON_ANOTHER_LINE)),
            Some(_) | None => return Err(self.expected("a key")),
        }
        let (line, column) = (self.line, self.column);
        self.value(Some(buffer))?;
        let key = serde_json::from_slice(buffer).map_err(|error| ReadError::json(line, column, &error))?;
        self.take(b":", "`:`")?;
        Ok(key)
    }

    /// Reads one value into `buffer`, or skips it. Only the end of the value is found; its syntax is not checked.
    pub(super) fn value(&mut self, mut buffer: Option<&mut Vec<u8>>) -> Result<(), ReadError> {
        if let Some(buffer) = &mut buffer {
            buffer.clear();
        }
        if matches!(self.peek()?, None | Some(b'\n' | b',' | b':' | b'}' | b']')) {
            return Err(self.expected("a value"));
        }
        let column = self.column;
        let mut scan = Scan::default();
        loop {
            let chunk = self.input.fill_buf()?;
            if chunk.is_empty() {
                return if scan.is_scalar() {
                    Ok(())
                } else {
                    Err(self.expected("the rest of the session instead of the end of the file"))
                };
            }
            let (used, state) = scan.chunk(chunk);
            if let Some(buffer) = &mut buffer {
                if buffer.len() + used > self.limit {
                    return Err(ReadError::TooLong { line: self.line, column, limit: self.limit });
                }
                buffer.extend_from_slice(&chunk[..used]);
            }
            self.consume(used);
            match state {
                State::Inside => {}
                State::Over => return Ok(()),
                State::LineEnd => {
                    return Err(self.expected("the rest of the session instead of the end of the line"));
                }
            }
        }
    }

    fn consume(&mut self, count: usize) {
        self.input.consume(count);
        self.column += count as u64;
        self.offset += count as u64;
    }
}

impl<R: BufRead + Seek> JsonLineReader<R> {
    /// The current position.
    pub(super) fn mark(&mut self) -> io::Result<ReadPosition> {
        let position = self.input.stream_position()?;
        Ok(ReadPosition { position, line: self.line, column: self.column, offset: self.offset })
    }

    /// Returns to a position.
    pub(super) fn go_to(&mut self, mark: ReadPosition) -> io::Result<()> {
        self.input.seek(SeekFrom::Start(mark.position))?;
        (self.line, self.column, self.offset) = (mark.line, mark.column, mark.offset);
        Ok(())
    }
}

enum State {
    Inside,
    Over,
    LineEnd,
}

/// Finds the end of a value, chunk by chunk.
#[derive(Default)]
struct Scan {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// Whether a number or a literal has begun.
    scalar: bool,
}

impl Scan {
    /// Whether the value may end here, as a complete number or literal.
    fn is_scalar(&self) -> bool {
        self.scalar && self.depth == 0
    }

    /// How many bytes of the chunk belong to the value.
    fn chunk(&mut self, chunk: &[u8]) -> (usize, State) {
        let mut at = 0;
        while at < chunk.len() {
            if self.escaped {
                self.escaped = false;
                // A line end is never inside a string.
                if chunk[at] != b'\n' {
                    at += 1;
                    continue;
                }
            }
            if self.in_string {
                let Some(found) = memchr3(b'"', b'\\', b'\n', &chunk[at..]) else {
                    return (chunk.len(), State::Inside);
                };
                at += found;
                match chunk[at] {
                    b'\\' => self.escaped = true,
                    b'"' => {
                        self.in_string = false;
                        if self.depth == 0 {
                            return (at + 1, State::Over);
                        }
                    }
                    _ => return (at, State::LineEnd),
                }
                at += 1;
                continue;
            }
            match chunk[at] {
                b'"' if self.is_scalar() => return (at, State::Over),
                b'"' => self.in_string = true,
                b'{' | b'[' if self.is_scalar() => return (at, State::Over),
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' if self.depth == 0 => return (at, State::Over),
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return (at + 1, State::Over);
                    }
                }
                b',' | b':' | b' ' | b'\t' | b'\r' if self.is_scalar() => return (at, State::Over),
                b'\n' if self.is_scalar() => return (at, State::Over),
                b'\n' => return (at, State::LineEnd),
                _ if self.depth == 0 => self.scalar = true,
                _ => {}
            }
            at += 1;
        }
        (at, State::Inside)
    }
}
