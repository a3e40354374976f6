//! Our whole session in the metadata of a session that was exported for Python.
//!
//! It is valid if its export equals Python's part of the file. Neither is in memory: digests of both are compared, and
//! then one of them is read.

use std::io::{self, BufRead, Read, Seek, SeekFrom};

use sha2::{Digest, Sha256};

use super::super::{Part, ReadError, TraceReader};
use super::json_records::{ByteSpan, Record, Records};
use super::json_tree::JsonTree;
use super::python_trace::{EMBEDDED_KEY, call, head};
use super::session_info::SessionInfo;

/// The path of our session in a session of Python's.
pub(super) const PLACE: [&str; 2] = ["metadata", EMBEDDED_KEY];

/// How our session compares with Python's part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EmbeddedSession {
    /// Our session exports to Python's part.
    Same,
    /// Python's part was changed since the export, so it is read instead.
    Outdated,
    /// The value is not one of our sessions.
    Foreign,
}

/// Compares both, and leaves `records` at its place: before the calls of the session that begins with `read`.
pub(super) fn compare_embedded<R: BufRead + Seek>(
    read: &JsonTree,
    span: ByteSpan,
    records: &mut Records<R>,
) -> io::Result<EmbeddedSession> {
    let back = records.mark()?;
    let theirs = theirs(read, records);
    let ours = FileSlice::new(records.input(), span).and_then(ours);
    records.go_to(back)?;
    Ok(match (theirs, ours) {
        (_, Err(_)) => EmbeddedSession::Foreign,
        (Ok(theirs), Ok(ours)) if theirs == ours => EmbeddedSession::Same,
        (_, Ok(_)) => EmbeddedSession::Outdated,
    })
}

/// The digest of Python's part.
fn theirs<R: BufRead + Seek>(read: &JsonTree, records: &mut Records<R>) -> Result<SessionDigest, ReadError> {
    let mut seen = DigestBuilder::default();
    while let Some(Record::Item(call)) = records.next()? {
        seen.call(&call);
    }
    Ok(seen.finish(read.clone()))
}

/// The digest of our session's export.
fn ours(whole: FileSlice<impl BufRead + Seek>) -> io::Result<SessionDigest> {
    let (mut seen, mut session) = (DigestBuilder::default(), None);
    for part in TraceReader::new(whole) {
        let part = part.map_err(io::Error::other)?;
        match (&part, &mut session) {
            (Part::Start(start), None) => session = Some(SessionInfo::new(start.clone())),
            (_, Some(session)) => {
                session.learn(&part);
                if let Some(call) = call(&part, session) {
                    seen.call(&call);
                }
            }
            (Part::Call(_) | Part::Entry(_) | Part::Finish { .. }, None) => {}
        }
    }
    let session = session.ok_or(io::ErrorKind::InvalidData)?;
    Ok(seen.finish(head(&session)))
}

/// The number of calls in a session, and a digest of everything that Python reads.
type SessionDigest = (u64, Vec<u8>);

#[derive(Default)]
struct DigestBuilder {
    calls: u64,
    digest: Sha256,
}

impl DigestBuilder {
    fn call(&mut self, call: &JsonTree) {
        self.calls += 1;
        self.put(call);
    }

    fn finish(mut self, mut head: JsonTree) -> SessionDigest {
        if self.calls > 0 {
            head.remove("calls");
        }
        self.put(&head);
        (self.calls, self.digest.finalize().to_vec())
    }

    fn put(&mut self, tree: &JsonTree) {
        let mut text = String::new();
        tree.canonical(&mut text);
        text.push('\n');
        self.digest.update(text);
    }
}

/// A part of a file that is read like a file. If another program rewrote it with different white space, the white space
/// between values is dropped.
#[derive(Debug)]
pub(super) struct FileSlice<R> {
    input: R,
    /// The position in `input`.
    at: u64,
    to: u64,
    spaces: WhiteSpace,
    read: Vec<u8>,
    /// For each byte of `read` its position in the file, and then the position after the last.
    places: Vec<u64>,
    /// How much of `read` was consumed.
    used: usize,
}

/// Whether the white space in a part of a file is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WhiteSpace {
    Kept,
    Dropped { in_string: bool, escaped: bool },
}

/// The first bytes of a session that we wrote.
const BEGINNING: &[u8] = b"{\"format\":1,";

impl<R: BufRead + Seek> FileSlice<R> {
    pub(super) fn new(mut input: R, span: ByteSpan) -> io::Result<FileSlice<R>> {
        let mut first = [0; BEGINNING.len()];
        input.seek(SeekFrom::Start(span.from))?;
        let ours = input.read_exact(&mut first).is_ok() && first == BEGINNING;
        input.seek(SeekFrom::Start(span.from))?;
        let spaces = if ours { WhiteSpace::Kept } else { WhiteSpace::Dropped { in_string: false, escaped: false } };
        Ok(FileSlice { input, at: span.from, to: span.to, spaces, read: Vec::new(), places: Vec::new(), used: 0 })
    }
}

impl<R> FileSlice<R> {
    pub(super) fn into_inner(self) -> R {
        self.input
    }

    fn here(&self) -> u64 {
        self.places.get(self.used).copied().unwrap_or(self.at)
    }
}

impl WhiteSpace {
    /// Whether a byte is kept.
    fn keep(&mut self, byte: u8) -> bool {
        match self {
            WhiteSpace::Kept => true,
            WhiteSpace::Dropped { in_string: true, escaped } if *escaped => {
                *escaped = false;
                true
            }
            WhiteSpace::Dropped { in_string, escaped } => {
                *escaped = *in_string && byte == b'\\';
                *in_string ^= byte == b'"';
                *in_string || !byte.is_ascii_whitespace()
            }
        }
    }
}

impl<R: BufRead> BufRead for FileSlice<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.used == self.read.len() && self.at < self.to {
            let left = usize::try_from(self.to - self.at).unwrap_or(usize::MAX);
            let chunk = self.input.fill_buf()?;
            let count = chunk.len().min(left);
            if count == 0 {
                break;
            }
            self.read.clear();
            self.places.clear();
            self.used = 0;
            for (place, byte) in (self.at..).zip(&chunk[..count]) {
                if self.spaces.keep(*byte) {
                    self.read.push(*byte);
                    self.places.push(place);
                }
            }
            self.input.consume(count);
            self.at += count as u64;
        }
        Ok(&self.read[self.used..])
    }

    fn consume(&mut self, count: usize) {
        self.used += count;
    }
}

impl<R: BufRead> Read for FileSlice<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let chunk = self.fill_buf()?;
        let count = chunk.len().min(out.len());
        out[..count].copy_from_slice(&chunk[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl<R: BufRead + Seek> Seek for FileSlice<R> {
    /// Seeks only to positions outside of strings.
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let moved = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::Current(0) => return Ok(self.here()),
            SeekFrom::Current(by) => self.here().checked_add_signed(by),
            SeekFrom::End(by) => self.to.checked_add_signed(by),
        };
        self.at = self.input.seek(SeekFrom::Start(moved.ok_or(io::ErrorKind::InvalidInput)?))?;
        if let WhiteSpace::Dropped { in_string, escaped } = &mut self.spaces {
            (*in_string, *escaped) = (false, false);
        }
        self.read.clear();
        self.places.clear();
        self.used = 0;
        Ok(self.at)
    }
}
