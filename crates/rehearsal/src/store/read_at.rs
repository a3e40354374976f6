//! One file, read at several places at once.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::order::Order;

/// A reader with a place of its own in a file that others read too.
#[derive(Clone, Debug)]
pub(crate) struct ReadAt {
    file: Arc<File>,
    position: u64,
    /// Where it ends for this reader, if not before.
    end: u64,
    /// Its lines in another order.
    order: Option<Arc<Order>>,
}

impl ReadAt {
    pub(super) fn new(file: Arc<File>) -> ReadAt {
        ReadAt { file, position: 0, end: u64::MAX, order: None }
    }

    /// As if the file were no longer than this.
    pub(super) fn up_to(self, end: u64) -> ReadAt {
        ReadAt { end, ..self }
    }

    /// As if its lines were in this order.
    pub(super) fn ordered(self, order: Option<Arc<Order>>) -> ReadAt {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

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
