//! Sorts any number of pieces of a file: those that exceed the memory limit are written to a side file.
//!
//! ```text
//! pieces ──► heap, up to a limit ──► run, run, … in the side file ──► merged, in order
//! ```
//!
//! Pieces that are nearly in order, such as the messages of a session, make one long run; so the number of runs is
//! small.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// The sort key; pieces with equal keys keep their order.
pub(super) type SortKey = [u64; 4];

/// Maximum number of bytes of pieces in memory.
const MEMORY: usize = 8 << 20;
/// Maximum number of bytes in memory of all runs together while they are merged.
const MERGED: usize = 4 << 20;
/// Memory of a piece in addition to its text, in bytes.
const OVERHEAD: usize = 64;
/// Length of the header of a text in a run, in bytes: key, arrival and length.
const FRAME: usize = 48;

/// Puts pieces in order.
#[derive(Debug)]
pub(super) struct ExternalSorter<S> {
    side: S,
    heap: BinaryHeap<Reverse<QueuedPiece>>,
    bytes: usize,
    memory: usize,
    arrivals: u64,
    /// The ends of the runs in the side file; the last run is being written.
    ends: Vec<u64>,
    /// The last piece in the run that is being written.
    last: Option<(SortKey, u64)>,
    /// Bytes to be written to the side file.
    unwritten: Vec<u8>,
}

/// A piece, and the run that it will be written to.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct QueuedPiece {
    run: usize,
    piece: SortedPiece,
}

/// A piece.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SortedPiece {
    pub(super) key: SortKey,
    arrival: u64,
    pub(super) text: Vec<u8>,
}

impl<S: Read + Write + Seek> ExternalSorter<S> {
    /// Creates a sorter that writes to `side` what does not fit into memory.
    pub(super) fn new(side: S) -> ExternalSorter<S> {
        ExternalSorter {
            side,
            heap: BinaryHeap::new(),
            bytes: 0,
            memory: MEMORY,
            arrivals: 0,
            ends: Vec::new(),
            last: None,
            unwritten: Vec::new(),
        }
    }

    /// Adds a piece.
    pub(super) fn push(&mut self, key: SortKey, text: impl Into<Vec<u8>>) -> io::Result<()> {
        let piece = SortedPiece { key, arrival: self.arrivals, text: text.into() };
        self.arrivals += 1;
        self.bytes += piece.text.len() + OVERHEAD;
        // The piece belongs before the end of this run, so it waits for the next.
        let late = self.last.is_some_and(|last| (piece.key, piece.arrival) < last);
        let run = self.ends.len().max(1) + usize::from(late);
        self.heap.push(Reverse(QueuedPiece { run, piece }));
        while self.bytes > self.memory {
            self.spill()?;
        }
        Ok(())
    }

    /// Writes the first waiting piece to its run.
    fn spill(&mut self) -> io::Result<()> {
        let Some(Reverse(QueuedPiece { run, piece })) = self.heap.pop() else {
            self.bytes = 0;
            return Ok(());
        };
        self.bytes -= piece.text.len() + OVERHEAD;
        if self.ends.is_empty() {
            self.side.seek(SeekFrom::Start(0))?;
        }
        if self.ends.len() < run {
            let end = self.ends.last().copied().unwrap_or(0);
            self.ends.push(end);
        }
        self.last = Some((piece.key, piece.arrival));
        let length = piece.text.len() as u64;
        for number in piece.key.into_iter().chain([piece.arrival, length]) {
            self.unwritten.extend_from_slice(&number.to_le_bytes());
        }
        self.unwritten.extend_from_slice(&piece.text);
        if let Some(end) = self.ends.last_mut() {
            *end += FRAME as u64 + length;
        }
        if self.unwritten.len() >= 64 << 10 {
            self.side.write_all(&self.unwritten)?;
            self.unwritten.clear();
        }
        Ok(())
    }

    /// Returns all pieces in order; pieces that are added later are sorted separately.
    pub(super) fn sorted(&mut self) -> io::Result<Sorted<'_, S>> {
        self.side.write_all(&self.unwritten)?;
        self.side.flush()?;
        self.unwritten.clear();
        let ends = std::mem::take(&mut self.ends);
        (self.bytes, self.arrivals, self.last) = (0, 0, None);
        let mut kept: Vec<SortedPiece> = self.heap.drain().map(|Reverse(waiting)| waiting.piece).collect();
        kept.sort_unstable();
        let buffer = (MERGED / ends.len().max(1)).max(4096);
        let begins = std::iter::once(0).chain(ends.iter().copied());
        let runs =
            begins.zip(ends.iter().copied()).map(|(from, to)| SortedRun { from, to, buffer, read: Vec::new(), at: 0 });
        let (side, runs, kept) = (&mut self.side, runs.collect(), kept.into_iter());
        let mut sorted = Sorted { side, runs, kept, first: BinaryHeap::new() };
        for source in 0..=sorted.runs.len() {
            sorted.refill(source)?;
        }
        Ok(sorted)
    }
}

/// All pieces, in order.
#[derive(Debug)]
pub(super) struct Sorted<'s, S> {
    side: &'s mut S,
    runs: Vec<SortedRun>,
    /// The pieces that are still in memory, in order: one more run.
    kept: std::vec::IntoIter<SortedPiece>,
    /// The first piece of each run, and the number of the run.
    first: BinaryHeap<Reverse<(SortedPiece, usize)>>,
}

/// The rest of a run.
#[derive(Debug)]
struct SortedRun {
    from: u64,
    to: u64,
    /// How many bytes are read at once.
    buffer: usize,
    read: Vec<u8>,
    /// How much of `read` was consumed.
    at: usize,
}

impl<S: Read + Seek> Sorted<'_, S> {
    /// The key of the next piece.
    pub(super) fn peek(&self) -> Option<SortKey> {
        self.first.peek().map(|Reverse((piece, _))| piece.key)
    }

    /// The next piece.
    pub(super) fn next(&mut self) -> io::Result<Option<SortedPiece>> {
        let Some(Reverse((piece, source))) = self.first.pop() else { return Ok(None) };
        self.refill(source)?;
        Ok(Some(piece))
    }

    /// The next piece, if its key satisfies the condition.
    pub(super) fn next_if(&mut self, wanted: impl FnOnce(SortKey) -> bool) -> io::Result<Option<SortedPiece>> {
        if self.peek().is_some_and(wanted) { self.next() } else { Ok(None) }
    }

    fn refill(&mut self, source: usize) -> io::Result<()> {
        let piece = match self.runs.get_mut(source) {
            Some(run) => run.piece(self.side)?,
            None => self.kept.next(),
        };
        self.first.extend(piece.map(|piece| Reverse((piece, source))));
        Ok(())
    }
}

impl SortedRun {
    fn piece(&mut self, side: &mut (impl Read + Seek)) -> io::Result<Option<SortedPiece>> {
        if self.at == self.read.len() && self.from == self.to {
            return Ok(None);
        }
        let mut numbers = [0; FRAME / 8];
        for (number, bytes) in numbers.iter_mut().zip(self.take(FRAME, side)?.as_chunks().0) {
            *number = u64::from_le_bytes(*bytes);
        }
        let [first, second, third, fourth, arrival, length] = numbers;
        let text = self.take(usize::try_from(length).map_err(io::Error::other)?, side)?.to_vec();
        Ok(Some(SortedPiece { key: [first, second, third, fourth], arrival, text }))
    }

    /// The next `count` bytes.
    fn take(&mut self, count: usize, side: &mut (impl Read + Seek)) -> io::Result<&[u8]> {
        if self.read.len() - self.at < count {
            self.read.drain(..self.at);
            self.at = 0;
            let left = usize::try_from(self.to - self.from).unwrap_or(usize::MAX);
            let wanted = (count - self.read.len()).max(self.buffer).min(left);
            let known = self.read.len();
            self.read.resize(known + wanted, 0);
            side.seek(SeekFrom::Start(self.from))?;
            side.read_exact(&mut self.read[known..])?;
            self.from += wanted as u64;
        }
        self.at += count;
        let taken = self.read.get(self.at - count..self.at);
        taken.ok_or_else(|| io::Error::new(io::ErrorKind::UnexpectedEof, "what was put aside is not all there"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;

    fn sorted(sorter: &mut ExternalSorter<Cursor<Vec<u8>>>) -> Vec<(SortKey, Vec<u8>)> {
        let (mut sorted, mut found) = (sorter.sorted().unwrap(), Vec::new());
        while let Some(key) = sorted.peek() {
            let piece = sorted.next().unwrap().unwrap();
            assert_eq!(key, piece.key);
            found.push((piece.key, piece.text));
        }
        found
    }

    proptest! {
        #[test]
        fn pieces_are_sorted_with_any_memory_limit(
            sessions in prop::collection::vec(prop::collection::vec((0_u64..20, 0_usize..300), 0..60), 1..3),
            memory in 0_usize..4000,
        ) {
            let mut sorter = ExternalSorter { memory, ..ExternalSorter::new(Cursor::new(Vec::new())) };
            for session in sessions {
                let mut expected = Vec::new();
                for (at, (number, length)) in session.into_iter().enumerate() {
                    let text = format!("{at} {}", "x".repeat(length)).into_bytes();
                    sorter.push([number, 0, 0, 0], text.clone()).unwrap();
                    expected.push(([number, 0, 0, 0], text));
                }
                // A stable sort.
                expected.sort_by_key(|(key, _)| *key);
                prop_assert_eq!(sorted(&mut sorter), expected);
            }
        }
    }

    #[test]
    fn nearly_sorted_pieces_need_one_run() {
        let mut sorter = ExternalSorter { memory: 4096, ..ExternalSorter::new(Cursor::new(Vec::new())) };
        for number in 0..10_000_u64 {
            sorter.push([number ^ 3, 0, 0, 0], number.to_string()).unwrap();
        }
        assert_eq!(sorter.ends.len(), 1);
        assert!(sorter.bytes <= 4096);
        assert_eq!(sorted(&mut sorter).len(), 10_000);
    }
}
