//! Several readers of one file, and the order of its sessions by their start. A trace has its sessions in the order of
//! their end, and a session of 2026-07-28 over HTTP ends with its recorder.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use jiff::Timestamp;
use rehearsal_core::trace::{Part, ReadError, TraceReader};

/// A reader with its own position in a shared file.
#[derive(Clone, Debug)]
pub(crate) struct ReadAt {
    file: Arc<File>,
    position: u64,
    /// The offset at which this reader ends, if the file is longer.
    end: u64,
    /// The order in which the lines are read, if it differs from the order of the file.
    order: Option<Arc<SessionOrder>>,
}

impl ReadAt {
    pub(super) fn new(file: Arc<File>) -> ReadAt {
        ReadAt { file, position: 0, end: u64::MAX, order: None }
    }

    /// Reads at most this many bytes of the file.
    pub(super) fn up_to(self, end: u64) -> ReadAt {
        ReadAt { end, ..self }
    }

    /// Reads the lines in this order.
    pub(super) fn ordered(self, order: Option<Arc<SessionOrder>>) -> ReadAt {
        ReadAt { order, ..self }
    }
}

impl Read for ReadAt {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (at, left) = match &self.order {
            None => (self.position, self.end.saturating_sub(self.position)),
            Some(order) => order.find(self.position).unwrap_or((self.position, 0)),
        };
        let wanted = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let count = self.file.read_at(&mut buffer[..wanted], at)?;
        self.position += count as u64;
        Ok(count)
    }
}

impl Seek for ReadAt {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let moved = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
            SeekFrom::End(by) => {
                let end = match &self.order {
                    None => self.file.metadata()?.len().min(self.end),
                    Some(order) => order.length(),
                };
                end.checked_add_signed(by)
            }
        };
        self.position = moved.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

/// Maximum number of bytes of a line that are searched for the start of its session.
const HEAD: usize = 64 << 10;
/// Number of bytes that are read at once.
const CHUNK: usize = 256 << 10;

/// The lines of a file by the start of their sessions.
#[derive(Debug, Default)]
pub(super) struct SessionOrder {
    lines: Vec<Line>,
    /// The position of each line in this order, from 1, by its number in the file.
    places: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Line {
    /// The offset of the line in this order.
    at: u64,
    /// The offset in the file, and the length with the line end.
    from: u64,
    length: u64,
    /// The number of the line in the file, from 1.
    number: usize,
    started: Timestamp,
}

impl SessionOrder {
    /// Reads the order of the lines of a trace up to an offset. `None` if the file has this order already, or if a start is
    /// unknown.
    pub(super) fn read_from(file: &Arc<File>, end: u64) -> io::Result<Option<SessionOrder>> {
        let mut lines = Vec::new();
        let (mut head, mut from, mut at) = (Vec::new(), 0, 0);
        let mut input = ReadAt::new(Arc::clone(file)).up_to(end);
        let mut chunk = vec![0; CHUNK];
        loop {
            let count = input.read(&mut chunk)?;
            if count == 0 {
                break;
            }
            for piece in chunk[..count].split_inclusive(|byte| *byte == b'\n') {
                let room = HEAD.saturating_sub(head.len()).min(piece.len());
                head.extend_from_slice(&piece[..room]);
                at += piece.len() as u64;
                if piece.ends_with(b"\n") {
                    let Some(started) = started(&head) else { return Ok(None) };
                    let number = lines.len() + 1;
                    lines.push(Line { at: 0, from, length: at - from, number, started });
                    (from, head) = (at, Vec::new());
                }
            }
        }
        if from != at || lines.is_sorted_by_key(|line| line.started) {
            return Ok(None);
        }
        lines.sort_by_key(|line| line.started);
        let (mut at, mut places) = (0, vec![0; lines.len()]);
        for (place, line) in (1..).zip(&mut lines) {
            line.at = at;
            at += line.length;
            places[line.number - 1] = place;
        }
        Ok(Some(SessionOrder { lines, places }))
    }

    /// The offset in the file of an offset in this order, and the number of bytes that follow in its line.
    pub(super) fn find(&self, place: u64) -> Option<(u64, u64)> {
        let line = self.lines[..self.lines.partition_point(|line| line.at <= place)].last()?;
        let within = place - line.at;
        (within < line.length).then(|| (line.from + within, line.length - within))
    }

    /// The length of all lines together.
    pub(super) fn length(&self) -> u64 {
        self.lines.last().map_or(0, |line| line.at + line.length)
    }

    /// The position in this order, from 1, of the line with this number in the file.
    pub(super) fn place_of(&self, number: usize) -> Option<usize> {
        self.places.get(number.checked_sub(1)?).copied()
    }

    /// The number in the file of each line, in this order.
    pub(super) fn numbers(&self) -> Vec<usize> {
        self.lines.iter().map(|line| line.number).collect()
    }

    /// Converts the line number of an error to that of the file.
    pub(super) fn placed(&self, error: ReadError) -> ReadError {
        let number =
            |line: u64| self.lines.get(usize::try_from(line).ok()?.checked_sub(1)?).map(|line| line.number as u64);
        error.on_line(|line| number(line).unwrap_or(line))
    }
}

/// The start of the session of a line, read from the beginning of the line.
fn started(head: &[u8]) -> Option<Timestamp> {
    match TraceReader::new(Cursor::new(head)).next()?.ok()? {
        Part::Start(start) => start.started_at,
        Part::Call(_) | Part::Entry(_) | Part::Finish { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn lines_are_in_the_order_of_their_sessions() {
        let line = |id: &str, second: u8| {
            let head = r#""format":1,"server_info":{},"metadata":{}"#;
            format!(r#"{{{head},"session_id":"{id}","started_at":"2026-07-28T12:00:0{second}Z","calls":[]}}"#) + "\n"
        };
        let ordered = |text: &str| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            let file = Arc::new(file);
            let order = SessionOrder::read_from(&file, u64::MAX).unwrap()?;
            let mut read = String::new();
            ReadAt::new(file).ordered(Some(Arc::new(order))).read_to_string(&mut read).unwrap();
            Some(read)
        };
        let [a, b, c] = [line("a", 1), line("b", 2), line("c", 3)];
        assert_eq!(ordered(&[&*c, &a, &b].concat()), Some([&*a, &b, &c].concat()));
        assert_eq!(ordered(&[&*a, &b, &c].concat()), None);
        // With a partial line, or with a line without a time, the order of the file is kept.
        assert_eq!(ordered(&[&*c, &a, b.trim_end()].concat()), None);
        assert_eq!(ordered(&[&*c, "nonsense\n", &a].concat()), None);
        assert_eq!(ordered(""), None);
    }

    #[test]
    fn two_readers_of_one_file_do_not_disturb_each_other() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"abcdef").unwrap();
        let mut first = ReadAt::new(Arc::new(file));
        let mut second = first.clone();
        let mut two = [0; 2];
        first.read_exact(&mut two).unwrap();
        assert_eq!(&two, b"ab");
        second.seek(SeekFrom::End(-2)).unwrap();
        second.read_exact(&mut two).unwrap();
        assert_eq!(&two, b"ef");
        first.seek(SeekFrom::Current(1)).unwrap();
        first.read_exact(&mut two).unwrap();
        assert_eq!(&two, b"de");
        assert!(first.seek(SeekFrom::Current(-9)).is_err());
        let mut half = String::new();
        let mut third = first.up_to(3);
        third.rewind().unwrap();
        third.read_to_string(&mut half).unwrap();
        assert_eq!((half.as_str(), third.seek(SeekFrom::End(0)).unwrap()), ("abc", 3));
    }
}
