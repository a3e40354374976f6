//! The versions of our formats, and the migration of older ones.

/// The version of the traces that we write.
pub const FORMAT: u64 = 1;

/// The version of the journals that we write. Version 2 adds `lines`; everything else means the same.
pub const JOURNAL_FORMAT: u64 = 2;

/// A piece of a line that a migration may have to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TracePiece {
    /// An element of `calls`.
    Call,
    /// An element of `messages`.
    Message,
}

/// Migrates the text of one piece to the next version. It is text, so that numbers keep their digits.
type Migration = fn(TracePiece, Vec<u8>) -> Vec<u8>;

/// One migration for each older version, oldest first: the first leads from 1 to 2.
const MIGRATIONS: [Migration; FORMAT as usize - 1] = [];

/// Migrates a piece of an older version to the current one.
pub(super) fn migrate(format: u64, piece: TracePiece, text: Vec<u8>) -> Vec<u8> {
    let done = usize::try_from(format.saturating_sub(1)).unwrap_or(usize::MAX);
    MIGRATIONS.iter().skip(done).fold(text, |text, step| step(piece, text))
}

#[cfg(test)]
mod tests {
    use super::super::{JournalLine, JournalReader, TraceReader, TraceWriter};
    use super::*;
    use std::io::Cursor;

    /// A trace of each version, written when that version was current. They are never changed.
    const SAMPLES: [&str; FORMAT as usize] = [include_str!("../../../../fixtures/traces/format_1.jsonl")];

    #[test]
    fn every_version_can_still_be_read() {
        for (format, sample) in (1..).zip(SAMPLES) {
            assert!(sample.contains(&format!("\"format\":{format},")));
            let parts = TraceReader::new(Cursor::new(sample)).collect::<Result<Vec<_>, _>>();
            assert_eq!(parts.unwrap().len(), 31, "format {format}");
        }
    }

    /// A journal of each version.
    const JOURNALS: [&str; JOURNAL_FORMAT as usize] = [
        include_str!("../../../../fixtures/traces/format_1.journal"),
        include_str!("../../../../fixtures/traces/format_2.journal"),
    ];

    #[test]
    fn every_version_of_a_journal_can_still_be_read() {
        let shown = |journal: &str| {
            let lines = JournalReader::new(journal.as_bytes()).map(|line| match line.unwrap() {
                JournalLine::Start(start) => start.session_id,
                JournalLine::Entry { entry, .. } => format!("{entry:?}"),
            });
            lines.collect::<Vec<_>>()
        };
        for (format, journal) in (1..).zip(JOURNALS) {
            assert!(journal.contains(&format!("\"format\":{format},")));
            assert_eq!(shown(journal), shown(JOURNALS[0]), "both contain the same session");
            assert_eq!(shown(journal).len(), 7);
        }
    }

    #[test]
    fn the_newest_sample_is_written_back_unchanged() {
        let sample = SAMPLES[FORMAT as usize - 1];
        let mut writer = TraceWriter::new(Vec::new(), Cursor::new(Vec::new()));
        TraceReader::new(Cursor::new(sample)).for_each(|part| writer.part(&part.unwrap()).unwrap());
        assert_eq!(String::from_utf8(writer.finish().unwrap()).unwrap(), sample);
    }
}
