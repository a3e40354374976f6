//! A journal of any bytes is read without a panic, and what was read is the same when it is written and read again.

#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use rehearsal_core::trace::{JournalLine, JournalReader, JournalSessions, write_entry, write_start};

fuzz_target!(|bytes: &[u8]| {
    let read = |bytes: &[u8]| -> Vec<JournalLine> {
        let lines = JournalReader::new(bytes).skip_bad(true).flatten();
        lines.map(without_session).collect()
    };
    let lines = read(bytes);
    let mut written = Vec::new();
    for line in &lines {
        match line {
            JournalLine::Start(start) => write_start(&mut written, start),
            JournalLine::Entry { entry, .. } => write_entry(&mut written, entry, None),
        }
    }
    assert_eq!(read(&written), lines);
    JournalSessions::new(JournalReader::new(Cursor::new(bytes)).skip_bad(true)).for_each(drop);
});

fn without_session(line: JournalLine) -> JournalLine {
    match line {
        JournalLine::Entry { entry, .. } => JournalLine::Entry { session_id: None, entry },
        JournalLine::Start(start) => JournalLine::Start(start),
    }
}
