//! Clients that send more than their server can answer at once, over stdio.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;

use crate::fixture::Fixture;

/// How long the server may take until it reads or writes the next line.
const LINE_TIMEOUT: Duration = Duration::from_secs(60);
/// How long the server reads nothing before the test takes it that it has stopped.
const STOPPED_READING: Duration = Duration::from_secs(1);

/// A `rehearse mock` with a tool `short` and a tool `long`, whose text has 8,000 characters.
struct Mock {
    child: Child,
    _stage: Fixture,
}

impl Mock {
    fn start() -> Mock {
        let long = "x".repeat(8000);
        let tools = format!(
            "tools: [{{ name: short, answers: [{{ text: s }}] }}, {{ name: long, answers: [{{ text: {long} }}] }}]"
        );
        let fixture = Fixture::new().file("mock.yaml", &tools);
        let child = Command::new(env!("CARGO_BIN_EXE_rehearse"))
            .args(["mock", "mock.yaml"])
            .current_dir(fixture.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Mock { child, _stage: fixture }
    }

    /// Writes lines on a thread, which reports every line. The pipe stays open until the thread is joined.
    fn write(
        &mut self,
        lines: impl Iterator<Item = String> + Send + 'static,
    ) -> (Receiver<()>, JoinHandle<ChildStdin>) {
        let mut stdin = self.child.stdin.take().unwrap();
        let (report, written) = channel();
        let writing = std::thread::spawn(move || {
            for line in lines {
                // The test has failed if the server is gone, or if the receiver is.
                if writeln!(stdin, "{line}").is_err() {
                    break;
                }
                let _ = report.send(());
            }
            stdin
        });
        (written, writing)
    }

    /// The lines that the server sends, read on a thread.
    fn read(&mut self) -> impl FnMut() -> String + use<> {
        let stdout = BufReader::new(self.child.stdout.take().unwrap());
        let (send, lines) = channel();
        std::thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
        move || lines.recv_timeout(LINE_TIMEOUT).expect("the server should send another line")
    }

    /// The most memory that the server ever had, in KiB.
    #[cfg(target_os = "linux")]
    fn peak(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        peak.trim().trim_end_matches(" kB").parse().unwrap()
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        // An error means that it has exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A call of a tool in 2026-07-28.
fn call(id: usize, tool: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    )
}

fn assert_result(line: &str, id: usize) {
    assert!(line.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#)), "{id}: {line}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_mock_stops_reading_when_its_client_does_not_read() {
    const CALLS: usize = 20_000;
    let mut mock = Mock::start();
    let (written, writing) = mock.write((0..CALLS).map(|id| call(id, "long")));
    let blocked = loop {
        match written.recv_timeout(STOPPED_READING) {
            Ok(()) => {}
            Err(RecvTimeoutError::Timeout) => break true,
            Err(RecvTimeoutError::Disconnected) => break false,
        }
    };
    assert!(blocked, "the server should stop reading long before 160 MB of answers wait");
    assert!(mock.peak() < 100 << 10, "{} KiB while nothing is read", mock.peak());
    let mut next = mock.read();
    for id in 0..CALLS {
        assert_result(&next(), id);
    }
    assert!(mock.peak() < 100 << 10, "{} KiB", mock.peak());
    writing.join().unwrap();
}

#[test]
fn every_call_of_a_pipeline_is_answered() {
    const CALLS: usize = 50_000;
    let mut mock = Mock::start();
    let (_, writing) = mock.write((0..CALLS).map(|id| call(id, "short")));
    let mut next = mock.read();
    for id in 0..CALLS {
        assert_result(&next(), id);
    }
    writing.join().unwrap();
}

#[test]
fn a_large_batch_is_answered_by_one_array() {
    const PINGS: usize = 20_000;
    let initialize = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    let pings: Vec<_> = (0..PINGS).map(|id| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#)).collect();
    let mut mock = Mock::start();
    let (_, writing) = mock.write([initialize.to_owned(), format!("[{}]", pings.join(","))].into_iter());
    let mut next = mock.read();
    assert_result(&next(), 0);
    let responses: Vec<Value> = serde_json::from_str(&next()).unwrap();
    assert_eq!(responses.len(), PINGS);
    assert!(responses.iter().enumerate().all(|(id, response)| response["id"] == id && response["result"].is_object()));
    writing.join().unwrap();
}

#[test]
fn every_garbled_line_gets_an_error_and_the_next_call_its_result() {
    const LINES: usize = 50_000;
    let mut mock = Mock::start();
    let garbled = (0..LINES).map(|number| format!("no message {number}"));
    let (_, writing) = mock.write(garbled.chain([call(1, "short")]));
    let mut next = mock.read();
    for _ in 0..LINES {
        let line = next();
        assert!(line.contains(r#""error":{"code":-32700"#), "{line}");
    }
    assert_result(&next(), 1);
    writing.join().unwrap();
}
