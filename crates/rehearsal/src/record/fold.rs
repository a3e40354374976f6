//! From the journal of a session to its line in a trace.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek, SeekFrom};
use std::path::Path;

use rehearsal_core::trace::{End, Fold, JournalLine, JournalReader, Part, ReadError, TraceWriter};

use super::append::append;

/// What was in a journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Folded {
    /// How many entries.
    pub(super) entries: u64,
}

/// Reads a journal and appends its session to a trace. Memory is bounded, whatever the length.
///
/// `otherwise` is how it ended where the journal does not say so.
pub(super) fn fold(journal: &mut File, trace: &Path, otherwise: End) -> io::Result<Folded> {
    let directory = match trace.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => Path::new("."),
    };
    // Without names, so that nothing of them is left whatever happens.
    let (line, side) = (tempfile::tempfile_in(directory)?, tempfile::tempfile_in(directory)?);
    journal.seek(SeekFrom::Start(0))?;
    let mut writer = TraceWriter::new(BufWriter::new(line), side);
    let mut parts = Vec::new();
    let mut folded = Folded::default();
    let mut fold = None;
    for line in JournalReader::new(BufReader::with_capacity(64 * 1024, &mut *journal)).skip_bad(true) {
        match line {
            Ok(JournalLine::Start(start)) => fold = Some(Fold::new(start)),
            Ok(JournalLine::Entry { entry, .. }) => {
                folded.entries += 1;
                if let Some(fold) = &mut fold {
                    fold.entry(entry, &mut parts);
                }
            }
            Err(ReadError::Io(error)) => return Err(error),
            // Nobody but a recorder writes a journal, and never half a line; what somebody broke by hand is passed over.
            Err(_) => {}
        }
        write(&mut writer, &mut parts)?;
    }
    let Some(fold) = fold else {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it does not say what it is of"));
    };
    fold.finish(Some(otherwise), &mut parts);
    write(&mut writer, &mut parts)?;
    let mut line = writer.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
    append(trace, &mut line)?;
    Ok(folded)
}

fn write<S: io::Read + io::Write + Seek>(
    writer: &mut TraceWriter<BufWriter<File>, S>,
    parts: &mut Vec<Part>,
) -> io::Result<()> {
    parts.drain(..).try_for_each(|part| writer.part(&part))
}
