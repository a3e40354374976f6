//! The journal that people follow: `--log FILE`.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A journal that any number of sessions append to, of one recorder or of many.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) path: PathBuf,
    file: File,
}

impl Log {
    /// Opens it, or makes it.
    pub(super) fn open(path: &Path) -> io::Result<Log> {
        let mut file = OpenOptions::new().append(true).create(true).open(path)?;
        if is_torn(path) {
            // Somebody was killed, or the disk was full, in the middle of a line; it stays a line of its own.
            file.write_all(b"\n")?;
        }
        Ok(Log { path: path.to_owned(), file })
    }

    /// Appends whole lines in one write, which the kernel does not mix with those of others.
    pub(super) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        self.file.write_all(lines)
    }
}

/// Whether a file ends in the middle of a line.
pub(super) fn is_torn(path: &Path) -> bool {
    let last = || -> io::Result<u8> {
        // Pipes and terminals have no end to look at.
        let metadata = std::fs::metadata(path)?;
        if !metadata.is_file() || metadata.len() == 0 {
            return Ok(b'\n');
        }
        let mut file = File::open(path)?;
        file.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        file.read_exact(&mut last)?;
        Ok(last[0])
    };
    last().is_ok_and(|last| last != b'\n')
}
