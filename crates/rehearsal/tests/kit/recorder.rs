//! Recording in a program: `Recorder`.

use std::fs::File;
use std::io::BufReader;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rehearsal::core::exchange::{Channel, Side};
use rehearsal::core::message::{Message, Reply};
use rehearsal::core::trace::{EntryBody, Part, SessionEnd, TraceReader};
use rehearsal::record::{Notice, Recorder};
use serde_json::Map;

fn message(from: Side, text: &str) -> EntryBody {
    EntryBody::Message { from, channel: Channel::MAIN, message: Message::parse(text.to_owned()), event_id: None }
}

fn call() -> [EntryBody; 2] {
    let params = r#"{"name":"echo","arguments":{"message":"hello"}}"#;
    let request = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
    [message(Side::Client, &request), message(Side::Server, r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#)]
}

fn parts(trace: &Path) -> Vec<Part> {
    TraceReader::new(BufReader::new(File::open(trace).unwrap())).map(Result::unwrap).collect()
}

#[test]
fn recordings_are_readable_by_their_owner_only() {
    let directory = tempfile::tempdir().unwrap();
    let [trace, log] = ["trace.jsonl", "all.log"].map(|name| directory.path().join(name));
    let recorder = Recorder::builder().trace(&trace).log(&log).build();
    let tape = recorder.start(Map::new());
    tape.put(call());
    let modes = || -> Vec<u32> {
        let files = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().metadata().unwrap());
        files.map(|metadata| metadata.permissions().mode() & 0o777).collect()
    };
    // The trace, the log, and the journal of the running session.
    assert_eq!(modes(), [0o600; 3]);
    tape.end(SessionEnd::Stopped);
    assert_eq!(modes(), [0o600; 2]);
}

#[test]
fn hooks_get_requests_and_responses_and_a_panicking_hook_affects_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace.jsonl");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (requests, responses, notices) = (seen.clone(), seen.clone(), seen.clone());
    let recorder = Recorder::builder()
        .trace(&trace)
        .metadata("purpose", "test")
        .on_request(|_, _| panic!("on purpose"))
        .on_request(move |method, params| requests.lock().unwrap().push(format!("{method} {}", params.unwrap())))
        .on_response(move |method, reply| {
            let Reply::Result(result) = reply else { panic!("{reply:?}") };
            responses.lock().unwrap().push(format!("{method}: {result}"));
        })
        .on_notice(move |notice| notices.lock().unwrap().push(notice.to_string()))
        .build();
    let tape = recorder.start(Map::new());
    tape.put(call());
    tape.end(SessionEnd::Stopped);
    tape.end(SessionEnd::Stopped);
    let expected = [
        "a request hook panicked at tools/call; it is ignored",
        r#"tools/call {"name":"echo","arguments":{"message":"hello"}}"#,
        r#"tools/call: {"content":[]}"#,
    ];
    assert_eq!(*seen.lock().unwrap(), expected);
    let [Part::Start(start), Part::Call(call), Part::Finish { end, .. }] = &parts(&trace)[..] else { panic!() };
    assert_eq!(start.metadata["purpose"], "test");
    assert!(call.response.is_some());
    assert_eq!(*end, Some(SessionEnd::Stopped));
    let summary = recorder.summary();
    assert_eq!((summary.sessions, summary.messages, summary.failed), (1, 2, false));
}

#[test]
fn a_session_that_was_never_started_gives_one_warning_and_writes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace.jsonl");
    let notices = Arc::new(Mutex::new(Vec::new()));
    let observed = notices.clone();
    let recorder = Recorder::builder()
        .trace(&trace)
        .on_notice(move |notice| observed.lock().unwrap().push(notice.clone()))
        .build();
    let session = recorder.session();
    session.put(call());
    session.put(call());
    session.end(SessionEnd::Stopped);
    assert_eq!(*notices.lock().unwrap(), [Notice::NotStarted]);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    session.start(Map::new());
    session.put(call());
    drop(session);
    assert_eq!(parts(&trace).len(), 3, "messages before the start are not recorded");
}

#[test]
fn a_session_without_an_explicit_end_ends_when_it_is_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace.jsonl");
    let recorder = Recorder::builder().trace(&trace).build();
    let tape = recorder.start(Map::new());
    let other = tape.clone();
    other.put(call());
    drop(tape);
    assert_eq!(std::fs::read(&trace).unwrap(), b"", "another tape of the session exists");
    drop(other);
    assert!(matches!(parts(&trace)[..], [_, Part::Call(_), Part::Finish { end: Some(SessionEnd::Stopped), .. }]));
}
