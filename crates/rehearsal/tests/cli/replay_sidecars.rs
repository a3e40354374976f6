//! What `rehearse replay` keeps beside a recording, and what it does not.

use crate::fixture::{Fixture, rehearse};

const SESSION: &str = include_str!("../../../../fixtures/traces/python.jsonl");

const CALLED: &str = r#"{"format":1,"session_id":"a","server_info":{},"started_at":null,"metadata":{},"calls":[{"request":{"seq":0,"at_ms":0,"id":0,"method":"tools/call","params":{"name":"rain"}},"response":{"seq":1,"at_ms":1,"success":true,"result":{"content":[{"type":"text","text":"Rain"}]}},"duration_ms":1}],"messages":[],"ended_at":null,"end":null}
"#;

#[test]
fn a_recording_that_is_no_regular_file_gets_no_index() {
    let fixture = Fixture::new().file("trace.jsonl", CALLED);
    let line = "mkfifo pipe; cat trace.jsonl > pipe & rehearse call rain -- rehearse replay -q pipe; ls -A";
    rehearse!(fixture, line, @"
    exit: 0
    ----- stdout -----
    Rain
    pipe
    trace.jsonl
    ");
}

#[test]
fn files_of_a_killed_writer_are_removed_by_the_next() {
    // Long enough for a trace to be kept of it.
    let long = SESSION.repeat(5_000_000 / SESSION.len());
    let fixture = Fixture::new().file("long.jsonl", &long);
    let mut killed = fixture.shell("exec rehearse replay -q long.jsonl").spawn().unwrap();
    let count = || fixture.path().read_dir().unwrap().count();
    while count() == 1 && killed.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(count(), 2, "it was killed while it wrote");
    rehearse!(fixture, "rehearse replay -q long.jsonl; ls -A", @"
    exit: 0
    ----- stdout -----
    long.jsonl
    long.jsonl.trace
    long.jsonl.trace.index
    ");
}
