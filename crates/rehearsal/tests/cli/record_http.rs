//! `rehearse record --url`: clients connect to the recorder, which forwards to the server.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStderr};

use flate2::Compression;
use flate2::write::GzEncoder;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rehearsal::record::recover;

use crate::fixture::{Fixture, rehearse};

/// A running `rehearse record --url`.
pub(crate) struct Recorder {
    child: Child,
    stderr: BufReader<ChildStderr>,
    /// `http://127.0.0.1:1234`
    pub(crate) origin: String,
}

impl Recorder {
    fn start(fixture: &Fixture, options: &str) -> Recorder {
        Recorder::before(fixture, "http://$ADDRESS/mcp", options)
    }

    /// Starts a recorder in front of the server at this URL.
    pub(crate) fn before(fixture: &Fixture, url: &str, options: &str) -> Recorder {
        let line = format!("exec rehearse record --url \"{url}\" {options}");
        let mut child = fixture.shell(&line).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut first = String::new();
        stderr.read_line(&mut first).unwrap();
        let url = first.trim_end().strip_prefix("listening on ");
        let origin = url.and_then(|url| url.strip_suffix("/mcp")).unwrap_or_else(|| panic!("{first}")).to_owned();
        Recorder { child, stderr, origin }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
    }

    /// Waits for its end; returns the exit status and the rest of its stderr.
    pub(crate) fn ended(mut self) -> (Option<i32>, String) {
        let mut stderr = String::new();
        self.stderr.read_to_string(&mut stderr).unwrap();
        (self.child.wait().unwrap().code(), stderr)
    }
}

/// The text of the journals of running sessions.
fn journals(fixture: &Fixture) -> String {
    let files = std::fs::read_dir(fixture.path()).unwrap().map(|file| file.unwrap().path());
    let journals = files.filter(|path| path.extension().is_some_and(|extension| extension == "journal"));
    journals.map(|path| std::fs::read_to_string(path).unwrap_or_default()).collect()
}

#[test]
fn clients_of_both_eras_and_transports_are_recorded() {
    let fixture = Fixture::with_http_server();
    let recorder = Recorder::start(&fixture, "-o trace.jsonl --log trace.log");
    let origin = &recorder.origin;
    rehearse!(fixture, &format!("rehearse call echo message=modern --url {origin}/mcp --protocol modern"), @r"
    exit: 0
    ----- stdout -----
    modern
    ");
    rehearse!(fixture, &format!("rehearse call echo message=legacy --url {origin}/mcp --protocol legacy"), @r"
    exit: 0
    ----- stdout -----
    legacy
    ");
    rehearse!(fixture, &format!("rehearse call echo message=older --url {origin}/sse --transport sse --protocol 2024-11-05"), @r"
    exit: 0
    ----- stdout -----
    older
    ");
    recorder.signal(Signal::SIGINT);
    let (code, stderr) = recorder.ended();
    assert_eq!(code, Some(130));
    assert!(
        stderr.starts_with("recorded 3 sessions of ") && stderr.ends_with(" in trace.jsonl and trace.log\n"),
        "{stderr}"
    );
    let trace = std::fs::read_to_string(fixture.path().join("trace.jsonl")).unwrap();
    assert_eq!(trace.lines().count(), 3);
    for word in ["modern", "legacy", "older"] {
        assert_eq!(trace.lines().filter(|line| line.contains(&format!("\"message\":\"{word}\""))).count(), 1);
    }
}

#[test]
fn printed_urls_contain_no_secrets() {
    let fixture = Fixture::new();
    let output = fixture.run("rehearse record --url http://me:hunter2@127.0.0.1:9/mcp");
    assert!(output.contains("it holds a password") && !output.contains("hunter2"), "{output}");
    let recorder = Recorder::before(&fixture, "http://127.0.0.1:9/?key=hunter2&at=/mcp", "-o trace.jsonl");
    assert!(!recorder.origin.contains("hunter2"), "{}", recorder.origin);
    recorder.signal(Signal::SIGTERM);
    assert_eq!(recorder.ended().0, Some(143));
}

#[test]
fn a_killed_recorder_loses_no_forwarded_message() {
    let fixture = Fixture::with_http_server();
    for era in ["modern", "legacy"] {
        let trace = format!("{era}.jsonl");
        let recorder = Recorder::start(&fixture, &format!("-o {trace}"));
        let line = format!("rehearse call echo message=kept --url {}/mcp --protocol {era}", recorder.origin);
        assert!(fixture.run(&line).contains("kept"));
        // A connected client with a pending call.
        let line =
            format!("exec rehearse call slow steps=2 delay_ms=10000 --url {}/mcp --protocol {era}", recorder.origin);
        let mut waiting = fixture.shell(&line).spawn().unwrap();
        while !journals(&fixture).contains("\"delay_ms\":10000") {
            std::thread::yield_now();
        }
        recorder.signal(Signal::SIGKILL);
        assert_eq!(recorder.ended().0, None);
        waiting.kill().unwrap();
        waiting.wait().unwrap();
        let path = fixture.path().join(&trace);
        assert!(!recover(&path).unwrap().is_empty());
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("\"message\":\"kept\"") && text.contains("\"delay_ms\":10000"), "{text}");
        assert!(text.contains("\"how\":\"recovered\""), "{text}");
    }
}

#[test]
fn flag_errors_are_reported_before_the_recording_starts() {
    let fixture = Fixture::new();
    rehearse!(fixture, "rehearse record --url localhost:80/mcp", @r#"
    exit: 2
    ----- stderr -----
    error: --url: cannot use the address "localhost:80/mcp": it must begin with http:// or https://
    hint: write it like http://127.0.0.1:3000/mcp
    "#);
    rehearse!(fixture, "rehearse record --url http://localhost/mcp --listen nonsense", @r#"
    exit: 2
    ----- stderr -----
    error: --listen "nonsense": invalid socket address
    hint: write it like 127.0.0.1:8080, or 127.0.0.1:0 for a free port
    "#);
    assert!(!fixture.path().join("trace.jsonl").exists());
}

#[test]
fn a_compressed_response_is_forwarded_unchanged_and_recorded_decoded() {
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"squeezed"}]}}"#;
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(answer.as_bytes()).unwrap();
    let body = gzip.finish().unwrap();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let response = [head.as_bytes(), &body].concat();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let request = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"squeeze"}}"#;
    let headers = "accept-encoding: br;q=1.0, gzip;q=0.8, *;q=0.1\r\nMCP-Protocol-Version: 2026-07-28\r\n";
    let (length, answered) = (request.len(), response.clone());
    let server = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut received = Vec::new();
        while !received.ends_with(b"}}") {
            let mut buffer = [0; 1024];
            let count = socket.read(&mut buffer).unwrap();
            received.extend_from_slice(&buffer[..count]);
        }
        socket.write_all(&answered).unwrap();
        String::from_utf8(received).unwrap()
    });
    let fixture = Fixture::new();
    let recorder = Recorder::before(&fixture, &url, "-o trace.jsonl");
    let host = recorder.origin.strip_prefix("http://").unwrap();
    let mut socket = TcpStream::connect(host).unwrap();
    let post = format!("POST /mcp HTTP/1.1\r\nHost: {host}\r\n{headers}Content-Length: {length}\r\n\r\n{request}");
    socket.write_all(post.as_bytes()).unwrap();
    let mut received = vec![0; response.len()];
    socket.read_exact(&mut received).unwrap();
    assert_eq!(received, response);
    assert!(server.join().unwrap().contains(headers), "the headers of the client are forwarded unchanged");
    drop(socket);
    recorder.signal(Signal::SIGINT);
    assert_eq!(recorder.ended().0, Some(130));
    let trace = std::fs::read_to_string(fixture.path().join("trace.jsonl")).unwrap();
    assert!(trace.contains(r#""success":true,"result":{"content":[{"type":"text","text":"squeezed"}]}"#), "{trace}");
}
