//! `rehearse record`

use std::io::{Read, Write};
use std::process::{Child, Output, Stdio};

use rehearsal::core::exchange::Side;
use rehearsal::core::trace::SessionEnd;
use rehearsal::record::{RecoveryOutcome, recover};

use crate::fixture::{Fixture, rehearse};
use crate::trace_contents::sessions;

#[test]
fn a_recorded_call_is_unchanged_and_complete_in_the_trace() {
    let fixture = Fixture::new();
    rehearse!(fixture, "rehearse call echo message=hello -- rehearse record --metadata who=me -- tiny-server", @r"
exit: 0
----- stdout -----
hello
");
    let sessions = sessions(&fixture.path().join("trace.jsonl"));
    assert_eq!(sessions.len(), 1);
    assert_eq!(sessions[0].calls, 3);
    assert_eq!(sessions[0].start.server_info["name"], "tiny-server");
    assert_eq!(sessions[0].start.metadata["who"], "me");
    assert_eq!(sessions[0].end, Some(SessionEnd::ClientClosed { status: Some(0) }));
    rehearse!(fixture, "ls", @r"
exit: 0
----- stdout -----
trace.jsonl
");
}

#[test]
fn record_forwards_streams_and_status_and_prints_one_line_at_the_end() {
    let fixture = Fixture::new();
    rehearse!(fixture, "rehearse record -- sh -c 'echo out; echo err >&2; pwd; exit 7'", @r"
exit: 7
----- stdout -----
out
[DIR]
----- stderr -----
err
recorded 1 session of 2 messages in trace.jsonl
");
    let session = &sessions(&fixture.path().join("trace.jsonl"))[0];
    assert_eq!(session.stderr, ["err"]);
    assert_eq!(session.stream(Side::Server), format!("out\n{}\n", fixture.path().display()).into_bytes());
    rehearse!(fixture, "rehearse record -q -- sh -c 'kill -9 $$'", @r"
exit: 137
");
    rehearse!(fixture, "VARIABLE=x rehearse record -q --log log.jsonl -- printenv VARIABLE; cut -d, -f1 log.jsonl", @r#"
exit: 0
----- stdout -----
x
{"type":"start"
{"type":"garbled"
{"type":"end"
"#);
}

#[test]
fn a_server_that_cannot_be_recorded_is_explained() {
    let fixture = Fixture::new();
    rehearse!(fixture, "rehearse record", @r"
    exit: 2
    ----- stderr -----
    error: no server to record
    hint: start a server: rehearse record -- npx -y some-server
    hint: record a URL:   rehearse record --url http://127.0.0.1:3000/mcp --listen 127.0.0.1:8080
    ");
    rehearse!(fixture, "rehearse record --redact '$.id' -- cat", @r#"
    exit: 2
    ----- stderr -----
    error: --redact <PATH|PATTERN> cannot be "$.id": `$.id` belongs to the protocol; a trace without it cannot be replayed
    "#);
}

/// Lines that are no messages, all kinds of line ends, invalid UTF-8, batches, a line above every limit and a partial line.
fn everything() -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(b"Server started\r\n\n\x00\xff\xfe\n{\"jsonrpc\": \"2.0\" ,\"id\":1.0,\"method\":\"x\"}\n");
    bytes.extend_from_slice(
        b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"},{}]\n{\"jsonrpc\":\"2.0\"}\n\xe2\x82\n",
    );
    bytes.extend(std::iter::repeat_n(b'x', 17 * 1024 * 1024));
    bytes.extend_from_slice(b"\n{\"jsonrpc\":\"2.0\",\"method\":\"odd/thing\",\"unknown\":[1,{}]}\nhalf a li");
    bytes
}

fn piped(fixture: &Fixture, line: &str, input: &[u8]) -> Output {
    let mut child = fixture.shell(line).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    output
}

#[test]
fn the_recorder_forwards_bytes_unchanged() {
    let fixture = Fixture::new();
    let input = everything();
    let output = piped(&fixture, "rehearse record -q --no-redact -- cat", &input);
    assert!(output.stdout == input, "{} bytes of {}", output.stdout.len(), input.len());
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
    let session = &sessions(&fixture.path().join("trace.jsonl"))[0];
    for side in [Side::Client, Side::Server] {
        let kept = session.stream(side);
        assert!(kept.starts_with(b"Server started\r\n\n\x00\xff\xfe\n"));
        assert!(kept.ends_with(b"\"unknown\":[1,{}]}\nhalf a li"));
        assert!(kept.len() < 100_000, "only a part of the line above the limit is kept");
    }
}

#[test]
fn a_partial_line_is_forwarded_before_its_end() {
    let fixture = Fixture::new();
    let mut child: Child = fixture.shell("rehearse record -q -- cat").stdin(Stdio::piped()).spawn().unwrap();
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    for part in [&b"{\"json"[..], b"rpc\":\"2", b".0\"}\n"] {
        stdin.write_all(part).unwrap();
        let mut echo = vec![0; part.len()];
        stdout.read_exact(&mut echo).unwrap();
        assert_eq!(echo, part);
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
    assert_eq!(sessions(&fixture.path().join("trace.jsonl"))[0].stream(Side::Server), b"{\"jsonrpc\":\"2.0\"}\n");
}

#[test]
fn a_client_that_reads_nothing_blocks_only_its_own_direction() {
    let fixture = Fixture::new();
    // The server writes more than a pipe holds while it reads; the client reads nothing until the server has received everything.
    let server = "head -c 3000000 /dev/zero & head -c 1000000 >/dev/null; echo ready >&2; wait";
    let mut child =
        fixture.shell(&format!("rehearse record -q -- sh -c '{server}'")).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&vec![b'x'; 1_000_000]).unwrap();
    let mut line = [0; 6];
    child.stderr.take().unwrap().read_exact(&mut line).unwrap();
    assert_eq!(&line, b"ready\n");
    let mut rest = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut rest).unwrap();
    assert_eq!(rest.len(), 3_000_000);
    assert!(child.wait().unwrap().success());
}

#[test]
fn secrets_reach_neither_the_trace_nor_the_log_nor_the_journal() {
    let fixture = Fixture::new();
    let secret = "sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789";
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"login","arguments":{{"password":"hunter2-hunter2","note":"{secret}"}},"_meta":{{"progressToken":"abc"}}}}}}"#
    );
    // The server kills its recorder, so the journal stays. By then a partial line with a secret has been forwarded.
    let partial = r#"{"jsonrpc":"2.0","id":2,"method":"x","params":{"a":1,"password":"open sesame"#;
    let server = "cat; kill -9 $PPID";
    let line = format!("exec rehearse record -o trace.jsonl --log log.jsonl -- sh -c '{server}'");
    let output = piped(&fixture, &line, format!("{call}\n{partial}").as_bytes());
    assert_eq!(output.status.code(), None, "the recorder was killed");
    let mut files = 0;
    for file in std::fs::read_dir(fixture.path()).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        for secret in [secret, "hunter2", "open sesame"] {
            assert!(!text.contains(secret), "{secret} is in {}", path.display());
        }
        files += usize::from(text.contains("progressToken\":\"abc"));
    }
    assert_eq!(files, 2, "the log and the journal");
    let trace = fixture.path().join("trace.jsonl");
    let recovered = recover(&trace).unwrap();
    assert!(matches!(recovered[0].outcome, RecoveryOutcome::Folded { .. }), "{recovered:?}");
    let session = &sessions(&trace)[0];
    assert_eq!(session.end, Some(SessionEnd::Recovered));
    let sent = String::from_utf8(session.stream(Side::Client)).unwrap();
    assert!(sent.contains("progressToken\":\"abc") && !sent.contains("hunter2"), "{sent}");
}

#[test]
fn ten_recorders_on_one_trace_do_not_disturb_each_other() {
    let fixture = Fixture::new();
    let line = "for i in 1 2 3 4 5 6 7 8 9 10; do (seq 1 2000 | rehearse record -q --log log.jsonl -o trace.jsonl --metadata run=$i -- cat >/dev/null) & done; wait; ls";
    rehearse!(fixture, line, @r"
exit: 0
----- stdout -----
log.jsonl
trace.jsonl
");
    let sessions = sessions(&fixture.path().join("trace.jsonl"));
    let expected: String = (1..=2000).map(|number| format!("{number}\n")).collect();
    assert_eq!(sessions.len(), 10);
    for session in &sessions {
        assert_eq!(session.stream(Side::Client), expected.as_bytes());
        assert_eq!(session.stream(Side::Server), expected.as_bytes());
    }
    let log = std::fs::read_to_string(fixture.path().join("log.jsonl")).unwrap();
    assert_eq!(log.lines().count(), 10 * 4002);
    assert!(log.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
}

#[test]
fn a_trace_and_a_log_are_not_one_file() {
    rehearse!(Fixture::new(), "rehearse record -o a.jsonl --log ./a.jsonl -- cat; ls", @r"
    exit: 0
    ----- stderr -----
    error: -o and --log both name ./a.jsonl
    hint: a trace has one session per line, a log one message per line; name two files
    ");
    let fixture = Fixture::new().file("a.jsonl", "");
    rehearse!(fixture, "ln -s a.jsonl b.jsonl; rehearse record -o a.jsonl --log b.jsonl -- cat", @r"
    exit: 2
    ----- stderr -----
    error: -o and --log both name b.jsonl
    hint: a trace has one session per line, a log one message per line; name two files
    ");
}
