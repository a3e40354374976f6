//! A recording of any bytes in any format is read to its end without a panic, and what was read can be written in any format that is written.
//!
//! The first two bytes select the formats.

#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use rehearsal_core::trace::dialect::{RecordingReader, RecordingWriter, WriteError};
use rehearsal_core::trace::{Format, Part};

fuzz_target!(|bytes: &[u8]| {
    let [from, to, bytes @ ..] = bytes else { return };
    let format = |formats: &[Format], byte: &u8| formats[usize::from(*byte) % formats.len()];
    let from = format(&Format::READ, from);
    let reader = RecordingReader::skipping(from, Cursor::new(bytes), true).expect("it can be read");
    let parts: Vec<Part> = reader.flatten().collect();
    let to = format(&Format::WRITTEN, to);
    let mut writer = RecordingWriter::new(to, Vec::new(), Cursor::new(Vec::new())).expect("it can be written");
    // An HTTP archive holds only what was over HTTP.
    let refused = |error: &WriteError| matches!(error, WriteError::NoHttp { .. });
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
