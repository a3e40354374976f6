//! The version of the formats that we write, and how older ones are brought up to it.

/// The version that is written: of a journal and of a trace.
pub const FORMAT: u64 = 1;

/// A piece of a line that a migration may have to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// An element of `calls`.
    Call,
    /// An element of `messages`.
    Message,
}

/// Brings the text of one piece from one version to the next. Text, so that numbers keep their digits.
type Migration = fn(Piece, Vec<u8>) -> Vec<u8>;

/// One step for each version before this one, oldest first: the first leads from 1 to 2.
const MIGRATIONS: [Migration; FORMAT as usize - 1] = [];

/// Brings a piece that was written in an older version up to this one.
pub(super) fn migrate(format: u64, piece: Piece, text: Vec<u8>) -> Vec<u8> {
    let done = usize::try_from(format.saturating_sub(1)).unwrap_or(usize::MAX);
    MIGRATIONS.iter().skip(done).fold(text, |text, step| step(piece, text))
}

#[cfg(test)]
mod tests {
    use super::super::{TraceReader, TraceWriter};
    use super::*;
    use std::io::Cursor;

    /// A trace of each version, as it was written when that version was new. They stay forever.
    const SAMPLES: [&str; FORMAT as usize] = [include_str!("../../../../fixtures/traces/format_1.jsonl")];

    #[test]
    fn every_version_can_still_be_read() {
        for (format, sample) in (1..).zip(SAMPLES) {
            assert!(sample.contains(&format!("\"format\":{format},")));
            let parts = TraceReader::new(Cursor::new(sample)).collect::<Result<Vec<_>, _>>();
            assert_eq!(parts.unwrap().len(), 31, "format {format}");
        }
    }

    #[test]
    fn the_newest_sample_is_written_as_it_was_read() {
        let sample = SAMPLES[FORMAT as usize - 1];
        let mut writer = TraceWriter::new(Vec::new(), Cursor::new(Vec::new()));
        TraceReader::new(Cursor::new(sample)).for_each(|part| writer.part(&part.unwrap()).unwrap());
        assert_eq!(String::from_utf8(writer.finish().unwrap()).unwrap(), sample);
    }
}
