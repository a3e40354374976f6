//! Signals, and the end of servers.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rehearsal::core::trace::SessionEnd;

use crate::fixture::Fixture;
use crate::trace_contents::sessions;

/// A run of `rehearse` with a server that keeps a pipe open until it exits.
struct Run {
    child: Child,
    server_gone: mpsc::Receiver<()>,
}

impl Run {
    /// Runs a line until a line of its stderr is as wanted. `server` is what the server does.
    fn until(fixture: &Fixture, line: &str, server: &str, wanted: impl Fn(&str) -> bool) -> Run {
        let alive = fixture.path().join("alive");
        assert!(fixture.shell("mkfifo alive").status().unwrap().success());
        std::fs::write(fixture.path().join("server"), format!("exec 3> alive; {server}")).unwrap();
        let (gone, server_gone) = mpsc::channel();
        std::thread::spawn(move || {
            // Ends when the server and everything that it started has ended.
            std::fs::read(alive).unwrap();
            gone.send(()).unwrap();
        });
        let mut child = fixture.shell(&format!("exec {line}")).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        assert!(lines.any(|line| wanted(&line)));
        std::thread::spawn(move || lines.for_each(drop));
        Run { child, server_gone }
    }

    fn kill(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
    }

    /// The exit status, once nothing is left of the server.
    fn end(mut self) -> Option<i32> {
        let status = self.child.wait().unwrap();
        self.server_gone.recv_timeout(Duration::from_secs(20)).expect("the server should be gone");
        status.code()
    }
}

#[test]
fn a_signal_during_a_call_ends_the_server_too() {
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143), (Signal::SIGHUP, 129)] {
        let fixture = Fixture::new();
        let line = "rehearse call slow steps=100 delay_ms=10000 -v -- sh server";
        let called = |line: &str| line.starts_with('>') && line.contains("tools/call");
        let run = Run::until(&fixture, line, "exec tiny-server", called);
        run.kill(signal);
        assert_eq!(run.end(), Some(code));
    }
}

#[test]
fn a_signal_while_a_server_starts_ends_the_server_too() {
    let fixture = Fixture::new();
    let server = "echo ready >&2; sleep 600";
    let run = Run::until(&fixture, "rehearse list -v -- sh server", server, |line| line == "! ready");
    run.kill(Signal::SIGINT);
    assert_eq!(run.end(), Some(130));
}

/// A server that answers nothing, and notes what ended it: `end of input`, `SIGTERM`, or neither.
const SILENT: &str = "trap 'echo SIGTERM > noted; exit' TERM; echo ready >&2; \
    while read line; do :; done; echo end of input > noted";

#[test]
fn a_signal_during_the_handshake_closes_the_stdin_of_the_server_first() {
    for line in ["rehearse list -v -- sh server", "rehearse call tool -v --protocol legacy -- sh server"] {
        let fixture = Fixture::new();
        let run = Run::until(&fixture, line, SILENT, |line| line == "! ready");
        run.kill(Signal::SIGTERM);
        assert_eq!(run.end(), Some(143));
        assert_eq!(std::fs::read_to_string(fixture.path().join("noted")).unwrap(), "end of input\n", "{line}");
    }
}

#[test]
fn a_signal_during_the_handshake_terminates_a_server_that_ignores_closed_stdin() {
    let fixture = Fixture::new();
    let server = format!("{SILENT}; while :; do sleep 0.1; done");
    let run = Run::until(&fixture, "rehearse list -v -- sh server", &server, |line| line == "! ready");
    run.kill(Signal::SIGINT);
    assert_eq!(run.end(), Some(130));
    assert_eq!(std::fs::read_to_string(fixture.path().join("noted")).unwrap(), "SIGTERM\n");
}

#[test]
fn a_handshake_timeout_closes_the_stdin_of_the_server_first() {
    let fixture = Fixture::new();
    let run = Run::until(&fixture, "rehearse list -v --timeout 300ms -- sh server", SILENT, |line| line == "! ready");
    assert_eq!(run.end(), Some(3));
    assert_eq!(std::fs::read_to_string(fixture.path().join("noted")).unwrap(), "end of input\n");
}

#[test]
fn a_signal_while_a_server_is_verified_ends_it_politely() {
    let request = r#"{"seq":0,"at_ms":0,"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;
    let result = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{}}"#;
    let response = format!(r#"{{"seq":1,"at_ms":1,"success":true,"result":{result}}}"#);
    let list = r#"{"request":{"seq":2,"at_ms":2,"id":2,"method":"tools/list"},"response":{"seq":3,"at_ms":3,"success":true,"result":{"tools":[]}}}"#;
    let trace =
        format!(r#"{{"format":1,"session_id":"a","calls":[{{"request":{request},"response":{response}}},{list}]}}"#);
    let answer = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
    let fixture = Fixture::new().file("trace.jsonl", &(trace + "\n")).file("answer", &answer);
    let server = "trap 'echo bye > on-sigterm; exit' TERM; read line; cat answer; echo; while :; do sleep 0.1; done";
    let listed = |line: &str| line.starts_with('>') && line.contains("tools/list");
    let run = Run::until(&fixture, "rehearse verify -v trace.jsonl -- sh server", server, listed);
    run.kill(Signal::SIGINT);
    assert_eq!(run.end(), Some(130));
    assert_eq!(std::fs::read_to_string(fixture.path().join("on-sigterm")).unwrap(), "bye\n");
}

#[test]
fn a_second_signal_does_not_wait_for_a_stubborn_server() {
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{}}}"#;
    let fixture = Fixture::new().file("answer", answer);
    let server = "trap '' TERM; read line; cat answer; echo; while :; do sleep 1; done";
    let line = "rehearse list -v --protocol legacy -- sh server";
    let listed = |line: &str| line.starts_with('>') && line.contains("tools/list");
    let run = Run::until(&fixture, line, server, listed);
    // The order of the two signals is not defined.
    run.kill(Signal::SIGINT);
    run.kill(Signal::SIGTERM);
    let code = run.end();
    assert!(matches!(code, Some(130 | 143)), "{code:?}");
}

#[test]
fn child_processes_of_a_server_do_not_outlive_a_killed_rehearse() {
    let fixture = Fixture::new();
    let server = "echo ready >&2; sh -c 'trap \"\" TERM HUP; sleep 600; true'; true";
    let run = Run::until(&fixture, "rehearse list -v -- sh server", server, |line| line == "! ready");
    run.kill(Signal::SIGKILL);
    assert_eq!(run.end(), None);
}

#[test]
fn a_server_that_ignores_signals_does_not_outlive_a_killed_rehearse() {
    let fixture = Fixture::new();
    let server = "trap '' TERM HUP; echo ready >&2; exec sleep 600";
    let run = Run::until(&fixture, "rehearse list -v -- sh server", server, |line| line == "! ready");
    run.kill(Signal::SIGKILL);
    assert_eq!(run.end(), None);
}

#[test]
fn a_signal_ends_a_recorded_server_and_keeps_the_session() {
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143), (Signal::SIGHUP, 129)] {
        let fixture = Fixture::new();
        let server = "echo ready >&2; sleep 600";
        let run = Run::until(&fixture, "rehearse record -- sh server", server, |line| line == "ready");
        run.kill(signal);
        assert_eq!(run.end(), Some(code));
        let session = &sessions(&fixture.path().join("trace.jsonl"))[0];
        assert_eq!((session.end.clone(), &session.stderr[..]), (Some(SessionEnd::Stopped), &["ready".to_owned()][..]));
    }
}

#[test]
fn a_recorded_server_that_ignores_everything_is_killed() {
    let fixture = Fixture::new();
    let server = "trap '' TERM INT; echo ready >&2; while :; do sleep 1; done";
    let run = Run::until(&fixture, "rehearse record -- sh server", server, |line| line == "ready");
    run.kill(Signal::SIGTERM);
    run.kill(Signal::SIGINT);
    let code = run.end();
    assert!(matches!(code, Some(130 | 143)), "{code:?}");
}

#[test]
fn a_recorded_server_does_not_outlive_a_recorder_that_is_killed() {
    let fixture = Fixture::new();
    let server = "trap '' TERM HUP; echo ready >&2; sh -c 'trap \"\" TERM HUP; sleep 600; true'; true";
    let run = Run::until(&fixture, "rehearse record -- sh server", server, |line| line == "ready");
    run.kill(Signal::SIGKILL);
    assert_eq!(run.end(), None);
}

#[test]
fn a_recorded_server_does_not_outlive_its_client() {
    let fixture = Fixture::new();
    // This server ignores the end of its stdin and all signals.
    let server = "trap '' TERM; echo ready >&2; while :; do sleep 1; done";
    let mut run = Run::until(&fixture, "rehearse record -- sh server", server, |line| line == "ready");
    drop(run.child.stdout.take());
    assert_eq!(run.end(), Some(137));
}

#[test]
fn record_stops_the_server_when_client_stdout_closes_with_stdin_open() {
    let fixture = Fixture::new();
    std::fs::write(fixture.path().join("a.mock.yaml"), "server: { name: a, version: '1' }\n").unwrap();
    let mut child = fixture.shell("exec rehearse mock a.mock.yaml").stdin(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    let (ended, end) = mpsc::channel();
    std::thread::spawn(move || ended.send(child.wait().unwrap().code()));
    stdin.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").unwrap();
    assert_eq!(end.recv_timeout(Duration::from_secs(20)).expect("it should have ended"), Some(0));
}
