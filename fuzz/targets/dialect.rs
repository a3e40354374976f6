//! A recording of any bytes in any format is read to its end without a panic, and what was read can be written in any other.
//!
//! The first two bytes say which formats.

#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use rehearsal_core::trace::dialect::{Reader, WriteError, Writer};
use rehearsal_core::trace::{Format, Part};

fuzz_target!(|bytes: &[u8]| {
    let [from, to, bytes @ ..] = bytes else { return };
    let format = |byte: &u8| Format::ALL[usize::from(*byte) % Format::ALL.len()];
    let Some(reader) = Reader::skipping(format(from), Cursor::new(bytes), true) else { return };
    let parts: Vec<Part> = reader.flatten().collect();
    let mut writer = Writer::new(format(to), Vec::new(), Cursor::new(Vec::new()));
    // Some formats hold one session, or only what was over HTTP.
    let refused = |error: &WriteError| matches!(error, WriteError::SecondSession { .. } | WriteError::NoHttp { .. });
    for part in &parts {
        if let Err(error) = writer.part(part) {
            assert!(refused(&error), "{error}");
            return;
        }
    }
    if let Err(error) = writer.finish() {
        assert!(refused(&error), "{error}");
    }
});
