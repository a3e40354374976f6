//! Output of data to stdout and to files.

use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::exit::Failure;

/// Prints to stdout. A reader that closes stdout early, such as `head`, is no failure.
pub(super) fn to_stdout(print: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    stream_to_stdout(|out| print(out).map_err(Failure::stdout))
}

/// Prints to stdout while the input is read. If reading fails, the output until then is still printed.
pub(super) fn stream_to_stdout(print: impl FnOnce(&mut dyn Write) -> Result<(), Failure>) -> Result<(), Failure> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let printed = print(&mut out);
    let flushed = out.flush().map_err(Failure::stdout);
    match printed.and(flushed) {
        Err(failure) if failure.is_stdout_closed() => {
            // Drops the buffer without writing it.
            drop(out.into_parts());
            Ok(())
        }
        other => other,
    }
}

/// True if two paths lead to the same file, which need not exist.
pub(super) fn is_same_file(one: &Path, other: &Path) -> bool {
    let node = |path: &Path| path.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()));
    match (node(one), node(other)) {
        (Some(one), Some(other)) => one == other,
        (None, None) => std::path::absolute(one).ok() == std::path::absolute(other).ok(),
        (Some(_), None) | (None, Some(_)) => false,
    }
}
