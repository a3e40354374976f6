//! Data on stdout.

use std::io::{self, Write};

use super::failure::Failure;

/// Prints to stdout. A reader that has seen enough, such as `head`, is no failure.
pub(super) fn to_stdout(print: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    stream_to_stdout(|out| print(out).map_err(Failure::Output))
}

/// The same for what is printed while it is read, and may come to a bad end: what was printed until then is shown.
pub(super) fn stream_to_stdout(print: impl FnOnce(&mut dyn Write) -> Result<(), Failure>) -> Result<(), Failure> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let printed = print(&mut out);
    let flushed = out.flush().map_err(Failure::Output);
    match printed.and(flushed) {
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            // What is left in the buffer has no reader either.
            drop(out.into_parts());
            Ok(())
        }
        other => other,
    }
}
