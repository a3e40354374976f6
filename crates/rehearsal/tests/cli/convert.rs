//! `rehearse trace convert`

use std::fmt::Write as _;
use std::io::Read;
use std::process::{Command, Stdio};

use crate::fixture::{Fixture, rehearse};

fn sample_trace(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/traces/");
    std::fs::read_to_string(format!("{folder}{name}")).unwrap()
}

/// Arguments in every place, explicit `null`s, fields that are absent or of another kind, unknown methods and fields, errors in
/// words and as objects, times without a zone or none at all, bytes, numbers beyond 64 bits.
#[test]
fn a_python_trace_is_restored_unchanged() {
    let fixture = Fixture::new().file("python.jsonl", &sample_trace("python-variants.jsonl"));
    rehearse!(fixture, "rehearse trace convert python.jsonl trace.jsonl && rehearse trace convert trace.jsonl back.jsonl --to python", @"exit: 0");
    let read = |name: &str| std::fs::read_to_string(fixture.path().join(name)).unwrap();
    let (before, after) = (read("python.jsonl"), read("back.jsonl"));
    assert_eq!(before.lines().count(), after.lines().count());
    for (before, after) in before.lines().zip(after.lines()) {
        let value = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
        assert_eq!(value(after), value(before));
    }
    // Every digit of those that no number type of ours holds.
    for number in ["123456789012345678901234567890", "18446744073709551616", "1e+22"] {
        assert!(before.contains(number) && after.contains(number), "{number}");
    }
    rehearse!(fixture, "rehearse trace show python.jsonl > a; rehearse trace show trace.jsonl > b; cmp a b; rehearse trace stats python.jsonl | head -1", @r"
    exit: 0
    ----- stdout -----
    21 sessions, 39 calls, 8 failed, 0 notifications, 10.5 kB
    ");
}

#[test]
fn cassettes_of_other_tools_become_traces() {
    let mut fixture = Fixture::new();
    for name in
        ["mcp-recorder-0.5.json", "mcp-cassette-0.4.json", "mcporter-0.12.ndjson", "mcptest-1.3.json", "python.log"]
    {
        fixture = fixture.file(name, &sample_trace(name));
    }
    rehearse!(fixture, "for file in mcp* python.log; do rehearse trace convert $file | rehearse trace show - | tail -1; done", @r"
    exit: 0
    ----- stdout -----
    5 calls, 2 failed, 1 other message
    5 calls, 2 failed, 1 other message
    2 calls, none failed, 1 other message
    5 calls, 2 failed, 0 other messages
    2 calls, 1 failed, 0 other messages
    ");
}

#[test]
fn members_without_a_place_in_the_target_format_are_reported() {
    let fixture = Fixture::new().file("python.jsonl", &sample_trace("python.jsonl")).file("notes.txt", "hello\n");
    rehearse!(fixture, "rehearse trace convert python.jsonl out.json --to mcptest 2>&1 | head -2", @r#"
    exit: 0
    ----- stdout -----
    error: --to <FORMAT> cannot be "mcptest"
    hint: it is one of trace, journal, python, python-log, har
    "#);
    rehearse!(fixture, "rehearse trace convert python.jsonl out.har; ls", @r"
    exit: 0
    ----- stdout -----
    notes.txt
    python.jsonl
    ----- stderr -----
    error: session 550e8400-e29b-41d4-a716-446655440000 was not recorded over HTTP, so there is nothing to put into an HTTP archive
    ");
    rehearse!(fixture, "rehearse trace convert notes.txt --from python", @r"
    exit: 2
    ----- stderr -----
    error: notes.txt, line 1, column 1: expected `{`
    hint: `--skip-bad` continues with the next line
    ");
}

/// One session of 24 MB.
fn long_session() -> String {
    let (mut text, filler) = (String::new(), "x".repeat(2000));
    text.push_str(r#"{"format":1,"session_id":"long","started_at":"2026-07-28T12:00:00Z","calls":["#);
    for id in 0..10_000 {
        let separator = if id == 0 { "" } else { "," };
        let request =
            format!(r#"{{"seq":{},"at_ms":{id},"id":{id},"method":"tools/call","params":{{"name":"t"}}}}"#, id * 2);
        let result = format!(r#"{{"content":[{{"type":"text","text":"{filler}"}}],"list":[1,2,3,4,5,6,7,8,9,10]}}"#);
        let response = format!(r#"{{"seq":{},"at_ms":{id},"success":true,"result":{result}}}"#, id * 2 + 1);
        write!(text, r#"{separator}{{"request":{request},"response":{response},"duration_ms":0}}"#).unwrap();
    }
    text.push_str("],\"messages\":[],\"ended_at\":null,\"end\":null}\n");
    text
}

#[test]
#[cfg(target_os = "linux")]
fn converting_a_long_session_uses_bounded_memory() {
    let fixture = Fixture::new().file("long.jsonl", &long_session());
    fixture.run("rehearse trace convert long.jsonl python.jsonl --to python");
    for (file, format) in [("long.jsonl", "python"), ("long.jsonl", "python-log"), ("python.jsonl", "journal")] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_rehearse"))
            .args(["trace", "convert", file, "--to", format])
            .current_dir(fixture.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = child.stdout.take().unwrap();
        // It writes when it has read everything, and waits for us then.
        out.read_exact(&mut [0; 1 << 20]).unwrap();
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
        let written = std::io::copy(&mut out, &mut std::io::sink()).unwrap();
        assert!(child.wait().unwrap().success());
        assert!(written > 18 << 20, "{format}: {written}");
        assert!(peak < 100 << 10, "{format}: {peak} kB");
    }
}

#[test]
fn a_pipe_as_output_is_written_and_not_replaced() {
    let fixture = Fixture::new().file("python.jsonl", &sample_trace("python.jsonl"));
    let through =
        |verb: &str| format!("mkfifo pipe; cat pipe > read & {verb}; wait; test -p pipe && wc -l < read; rm pipe");
    rehearse!(fixture, &through("rehearse trace convert python.jsonl pipe"), @"
    exit: 0
    ----- stdout -----
    2
    ");
    rehearse!(fixture, &through("rehearse generate python.jsonl --as mock -o pipe --force 2> stderr; grep -c wrote stderr"), @"
    exit: 0
    ----- stdout -----
    1
    30
    ");
}
