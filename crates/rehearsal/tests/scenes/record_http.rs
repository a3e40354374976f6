//! `rehearse record --url`: clients talk to the recorder in the place of the server.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rehearsal::record::recover;

use crate::stage::{Stage, rehearse};

/// A recorder that runs beside the scene.
struct Recorder {
    child: Child,
    stderr: BufReader<ChildStderr>,
    /// `http://127.0.0.1:1234`
    origin: String,
}

impl Recorder {
    fn start(stage: &Stage, options: &str) -> Recorder {
        let line = format!("exec rehearse record --url http://$ADDRESS/mcp {options}");
        let mut child = stage.shell(&line).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut first = String::new();
        stderr.read_line(&mut first).unwrap();
        let url = first.trim_end().strip_prefix("listening on ");
        let origin = url.and_then(|url| url.strip_suffix("/mcp")).unwrap_or_else(|| panic!("{first}")).to_owned();
        Recorder { child, stderr, origin }
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
    }

    /// Its exit status, and what it said at the end.
    fn ended(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

/// What is in the journals of sessions that still run.
fn kept(stage: &Stage) -> String {
    let files = std::fs::read_dir(stage.path()).unwrap().map(|file| file.unwrap().path());
    let journals = files.filter(|path| path.extension().is_some_and(|extension| extension == "journal"));
    journals.map(|path| std::fs::read_to_string(path).unwrap_or_default()).collect()
}

#[test]
fn clients_of_both_eras_and_transports_are_recorded() {
    let stage = Stage::with_http_server();
    let recorder = Recorder::start(&stage, "-o trace.jsonl --log trace.log");
    let origin = &recorder.origin;
    rehearse!(stage, &format!("rehearse call echo message=modern --url {origin}/mcp --protocol modern"), @r"
    exit: 0
    ----- stdout -----
    modern
    ");
    rehearse!(stage, &format!("rehearse call echo message=legacy --url {origin}/mcp --protocol legacy"), @r"
    exit: 0
    ----- stdout -----
    legacy
    ");
    rehearse!(stage, &format!("rehearse call echo message=older --url {origin}/sse --transport sse --protocol 2024-11-05"), @r"
    exit: 0
    ----- stdout -----
    older
    ");
    recorder.signal(Signal::SIGINT);
    let (code, said) = recorder.ended();
    assert_eq!(code, Some(0));
    assert!(said.starts_with("recorded 3 sessions of ") && said.ends_with(" in trace.jsonl and trace.log\n"), "{said}");
    let trace = std::fs::read_to_string(stage.path().join("trace.jsonl")).unwrap();
    assert_eq!(trace.lines().count(), 3);
    for word in ["modern", "legacy", "older"] {
        assert_eq!(trace.lines().filter(|line| line.contains(&format!("\"message\":\"{word}\""))).count(), 1);
    }
}

#[test]
fn a_recorder_that_is_killed_loses_nothing_that_it_passed_on() {
    let stage = Stage::with_http_server();
    for era in ["modern", "legacy"] {
        let trace = format!("{era}.jsonl");
        let recorder = Recorder::start(&stage, &format!("-o {trace}"));
        let line = format!("rehearse call echo message=kept --url {}/mcp --protocol {era}", recorder.origin);
        assert!(stage.play(&line).contains("kept"));
        // A client that is still there, with a call that is not answered.
        let line =
            format!("exec rehearse call slow steps=2 delay_ms=10000 --url {}/mcp --protocol {era}", recorder.origin);
        let mut waiting = stage.shell(&line).spawn().unwrap();
        while !kept(&stage).contains("\"delay_ms\":10000") {
            std::thread::yield_now();
        }
        recorder.signal(Signal::SIGKILL);
        assert_eq!(recorder.ended().0, None);
        waiting.kill().unwrap();
        waiting.wait().unwrap();
        let path = stage.path().join(&trace);
        assert!(!recover(&path).unwrap().is_empty());
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("\"message\":\"kept\"") && text.contains("\"delay_ms\":10000"), "{text}");
        assert!(text.contains("\"how\":\"recovered\""), "{text}");
    }
}

#[test]
fn what_is_wrong_is_said_before_anything_is_recorded() {
    let stage = Stage::new();
    rehearse!(stage, "rehearse record --url localhost:80/mcp", @r#"
    exit: 2
    ----- stderr -----
    error: --url: cannot use the address "localhost:80/mcp": it must begin with http:// or https://
    hint: write it like http://127.0.0.1:3000/mcp
    "#);
    rehearse!(stage, "rehearse record --url http://localhost/mcp --listen nonsense", @r#"
    exit: 2
    ----- stderr -----
    error: --listen "nonsense": invalid socket address
    hint: write it like 127.0.0.1:8080, or 127.0.0.1:0 for a free port
    "#);
    assert!(!stage.path().join("trace.jsonl").exists());
}
