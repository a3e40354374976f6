//! Data on stdout.

use std::io::{self, Write};

use super::failure::Failure;

/// Prints to stdout. A reader that has seen enough, such as `head`, is no failure.
pub(super) fn to_stdout(print: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    match print(&mut out).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            // What is left in the buffer has no reader either.
            drop(out.into_parts());
            Ok(())
        }
        Err(error) => Err(Failure::Output(error)),
    }
}
