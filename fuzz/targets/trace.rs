//! A trace of any bytes is read without a panic, and what was read is the same when it is written and read again.

#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use rehearsal_core::trace::{Part, Timeline, TraceReader, TraceWriter, detect};

fuzz_target!(|bytes: &[u8]| {
    let _ = detect(bytes);
    let read = |bytes: &[u8]| -> Vec<Part> { TraceReader::new(Cursor::new(bytes.to_vec())).skip_bad(true).flatten().collect() };
    let half = || TraceReader::new(Cursor::new(bytes.to_vec())).skip_bad(true);
    Timeline::new(half().only_calls(), half().only_entries()).for_each(drop);
    let parts = read(bytes);
    let mut writer = TraceWriter::new(Vec::new(), Cursor::new(Vec::new()));
    for part in &parts {
        writer.part(part).expect("a part of a session that has begun");
    }
    let written = writer.finish().expect("memory does not fail");
    let mut again = TraceWriter::new(Vec::new(), Cursor::new(Vec::new()));
    for part in read(&written) {
        again.part(&part).expect("a part of a session that has begun");
    }
    assert_eq!(again.finish().expect("memory does not fail"), written);
});
