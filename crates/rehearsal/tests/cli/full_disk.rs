//! Recording to a full disk, or without permission to write.

use std::process::Command;

use rehearsal::core::exchange::Side;
use rehearsal::core::trace::SessionEnd;
use rehearsal::record::{RecoveryOutcome, recover};

use crate::fixture::{Fixture, rehearse};
use crate::trace_contents::sessions;

/// The number of bytes that are forwarded while the disk is full: more than fits.
const FLOOD: &str = "seq 1 50000 | rehearse record -q -o full/trace.jsonl -- cat | cksum; echo ${PIPESTATUS[1]}";

pub(crate) fn in_bash(line: &str) -> String {
    format!("bash -c '{line}'")
}

#[test]
fn a_file_size_limit_stops_the_recording_but_not_the_session() {
    let fixture = Fixture::new();
    let expected = fixture.run("seq 1 50000 | cksum");
    std::fs::create_dir(fixture.path().join("full")).unwrap();
    let shown = fixture.run(&in_bash(&format!("ulimit -f 64; {FLOOD}")));
    let sum = expected.lines().nth(2).unwrap();
    assert!(shown.contains(&format!("{sum}\n4\n")), "{shown}");
    assert!(shown.contains("error: RECORDING STOPPED: cannot write full/trace.jsonl."), "{shown}");
    assert!(shown.contains("the connection continues"), "{shown}");
    // The recording until then is complete, and is recovered when there is space again.
    let trace = fixture.path().join("full/trace.jsonl");
    let recovered = recover(&trace).unwrap();
    assert!(
        matches!(recovered[..], [ref one] if matches!(one.outcome, RecoveryOutcome::Folded { .. })),
        "{recovered:?}\n{shown}"
    );
    let kept = sessions(&trace)[0].stream(Side::Client);
    let all: String = (1..=50_000).map(|number| format!("{number}\n")).collect();
    assert!(kept.len() > 1000 && all.as_bytes().starts_with(&kept));
}

/// Runs a shell with a small file system of its own, if the kernel permits it.
pub(crate) fn mounts() -> bool {
    let mut unshare = Command::new("unshare");
    unshare.args(["-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]);
    unshare.output().is_ok_and(|output| output.status.success())
}

#[test]
fn a_full_disk_stops_the_recording_but_not_the_session() {
    if !mounts() {
        eprintln!("skipped: no file system can be mounted here");
        return;
    }
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path().join("full")).unwrap();
    let after = "cp full/trace.jsonl* .; ls";
    let script = format!("mount -t tmpfs -o size=256k tmpfs full; {FLOOD}; {after}");
    let shown = fixture.run(&format!("unshare -rm {}", in_bash(&script)));
    let expected = fixture.run("seq 1 50000 | cksum");
    assert!(shown.contains(&format!("{}\n4\n", expected.lines().nth(2).unwrap())), "{shown}");
    assert!(shown.contains("RECORDING STOPPED") && shown.contains("No space left on device"), "{shown}");
    let trace = fixture.path().join("trace.jsonl");
    recover(&trace).unwrap();
    let session = &sessions(&trace)[0];
    let all: String = (1..=50_000).map(|number| format!("{number}\n")).collect();
    let kept = session.stream(Side::Client);
    assert!(kept.len() > 1000 && all.as_bytes().starts_with(&kept));
    assert_ne!(session.end, Some(SessionEnd::Stopped));
}

#[test]
fn an_unwritable_log_is_reported_and_the_trace_continues() {
    let fixture = Fixture::new();
    rehearse!(fixture, "echo hello | rehearse record -o trace.jsonl --log /dev/full -- cat", @r"
exit: 4
----- stdout -----
hello
----- stderr -----
error: RECORDING STOPPED: cannot write /dev/full: No space left on device (os error 28); the connection continues
");
    assert_eq!(sessions(&fixture.path().join("trace.jsonl"))[0].stream(Side::Server), b"hello\n");
}

#[test]
fn a_read_only_directory_is_reported_at_once() {
    let fixture = Fixture::new();
    // Permissions do not apply to root, so the test runs as another user.
    let line = "mkdir closed; chmod 555 closed; chmod 755 .; echo hello | setpriv --reuid 65534 --clear-groups rehearse record -o closed/trace.jsonl -- cat";
    let tried = fixture.run("setpriv --reuid 65534 --clear-groups rehearse --version");
    if !tried.starts_with("exit: 0") {
        eprintln!("skipped: no other user may run this program here");
        return;
    }
    rehearse!(fixture, line, @r"
exit: 4
----- stdout -----
hello
----- stderr -----
error: RECORDING STOPPED: cannot write closed/trace.jsonl: Permission denied (os error 13); the connection continues
");
}

#[test]
fn a_path_that_is_no_regular_file_is_refused_as_trace() {
    rehearse!(Fixture::new(), "echo hello | rehearse record -o /dev/null -- cat", @r"
exit: 4
----- stdout -----
hello
----- stderr -----
error: RECORDING STOPPED: cannot write /dev/null: not a regular file; the connection continues
");
    rehearse!(Fixture::new(), "echo hello | rehearse record -o no/such/directory -- cat", @r"
exit: 4
----- stdout -----
hello
----- stderr -----
error: RECORDING STOPPED: cannot write no/such/directory: No such file or directory (os error 2); the connection continues
");
}

#[test]
fn a_recording_on_a_full_disk_is_replayed() {
    if !mounts() {
        eprintln!("skipped: no file system can be mounted here");
        return;
    }
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path().join("full")).unwrap();
    let call = r#"{"request":{"seq":0,"at_ms":0,"id":1,"method":"tools/call","params":{"name":"a"}},"response":{"seq":1,"at_ms":1,"success":true,"result":{"content":[{"type":"text","text":"it is here"}]}}}"#;
    let trace = format!(r#"{{"format":1,"session_id":"s","calls":[{call}]}}"#);
    let fixture = fixture.file("trace.jsonl", &(trace + "\n"));
    let fill = "cp trace.jsonl full; head -c 100k /dev/zero > full/rest 2>/dev/null";
    let call = "rehearse call a -- rehearse replay full/trace.jsonl; ls full";
    let script = format!("mount -t tmpfs -o size=64k tmpfs full; {fill}; {call}");
    let shown = fixture.run(&format!("unshare -rm {}", in_bash(&script)));
    assert_eq!(shown, "exit: 0\n----- stdout -----\nit is here\nrest\ntrace.jsonl\n");
}
