//! The capability cache on the command line: time to live, principals, versions, limits, exports, several processes, and files
//! that cannot be used.

use std::process::Stdio;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::dry_run::{FILES, json_of, project};
use crate::fixture::{Fixture, rehearse};
use crate::full_disk::{in_bash, mounts};

const READ: &str = "await mcp.files.read_file({ path: '/a' })";
const HOUR: u64 = 3_600_000;

fn now_ms() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

/// A line of an export: the answer of `files:read_file` for a path, recorded some time ago.
fn answer(path: &str, text: &str, ago_ms: u64, members: &Value) -> Value {
    let mut answer = json!({
        "server": "files", "tool": "read_file", "arguments": { "path": path }, "at_ms": now_ms() - ago_ms,
        "latency_ms": 1.0, "run": format!("{path} {ago_ms}"), "sequence": 1, "principal": "local", "shared": false,
        "schema": null, "result": { "content": [{ "type": "text", "text": text }] },
    });
    for (name, value) in members.as_object().unwrap() {
        match answer["result"].as_object_mut().filter(|_| name == "ttlMs") {
            Some(result) => result.insert(name.clone(), value.clone()),
            None => answer.as_object_mut().unwrap().insert(name.clone(), value.clone()),
        };
    }
    json!({ "answer": answer })
}

fn export_of(answers: &[Value]) -> String {
    let header = json!({ "rehearse_cache": 1 });
    std::iter::once(&header).chain(answers).map(|line| format!("{line}\n")).collect()
}

/// A project whose cache has these answers.
fn with_answers(answers: &[Value]) -> Fixture {
    let fixture = project().file("plan.ts", READ).file("answers.jsonl", &export_of(answers));
    let output = fixture.shell("mkdir .rehearsal; rehearse cache import answers.jsonl").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    fixture
}

/// The source of the plan's answer, and the plan's value if the answer is a recorded one.
fn answered(fixture: &Fixture, flags: &str) -> (String, Value) {
    let (_, report) = json_of(fixture, &format!("rehearse dry-run plan.ts --json {flags}"));
    let answer = &report["tools_called"][0]["answer"];
    let source = answer["_source"].as_str().unwrap_or_else(|| panic!("{flags}: {report}")).to_owned();
    (source, answer["value"].clone())
}

#[test]
fn an_expired_answer_is_not_used_and_the_report_names_it() {
    let fixture = with_answers(&[answer("/a", "two hours old", 2 * HOUR, &json!({}))]);
    let cached = ("capability_cache".to_owned(), json!("two hours old"));
    assert_eq!(answered(&fixture, ""), cached);
    assert_eq!(answered(&fixture, "--ttl files:read_file=3h"), cached);
    assert_eq!(answered(&fixture, "--ttl files:read_file=7d"), cached);
    assert_eq!(answered(&fixture, "--ttl files:list_folder=1h"), cached);
    // The time to live counts as of the time that the run is about.
    assert_eq!(answered(&fixture, "--ttl files:read_file=1h --as-of 90m"), cached);

    let (status, report) = json_of(&fixture, "rehearse dry-run plan.ts --json --ttl files:read_file=1h");
    let answer = &report["tools_called"][0]["answer"];
    assert_eq!((status, &answer["_source"], &answer["_cached_at"]), (0, &json!("schema_mock"), &Value::Null));
    assert_ne!(answer["value"], "two hours old", "an expired value is no example either");
    let finding = &report["findings"][0];
    let message = finding["message"].as_str().unwrap();
    assert_eq!((&finding["code"], &finding["severity"]), (&json!("stale-answer"), &json!("warning")));
    assert!(message.starts_with("files:read_file: the recorded answer of 2"), "{message}");
    assert!(message.ends_with(" has expired: --ttl is 1h, so it is not used"), "{message}");
    assert_eq!((&report["validation"]["cache_hits"], &report["validation"]["cache_misses"]), (&json!(0), &json!(1)));
    let warnings = report["validation"]["warnings"].to_string();
    assert!(warnings.contains("has expired") && warnings.contains("has no usable cached result"), "{warnings}");
}

#[test]
fn ttl_ms_of_the_server_expires_an_answer_unless_the_operator_sets_another_time() {
    let fixture = with_answers(&[answer("/a", "stale", 2 * HOUR, &json!({ "ttlMs": HOUR }))]);
    let (_, report) = json_of(&fixture, "rehearse dry-run plan.ts --json");
    let message = report["findings"][0]["message"].as_str().unwrap();
    assert!(message.ends_with(" has expired: ttlMs of its server is 1h, so it is not used"), "{message}");
    assert!(report["findings"][0]["hint"].as_str().unwrap().contains("--ttl files:read_file=TIME"), "{report}");
    assert_eq!(answered(&fixture, "--ttl files:read_file=7d").0, "capability_cache");
    let listed = fixture.run("rehearse cache list");
    assert!(listed.contains("{\"path\":\"/a\"}  expired\n"), "{listed}");
    let (_, shown) = json_of(&fixture, "rehearse cache list --json");
    assert!(shown["expires_at"].is_string(), "{shown}");
}

#[test]
fn an_answer_of_another_schema_is_not_used() {
    let fixture = project().file("plan.ts", READ);
    let record =
        "rehearse call read_file path=/a -- rehearse record -q -o trace.jsonl -- rehearse mock files.mock.yaml";
    let output = fixture.shell(&format!("{record}; rehearse cache import trace.jsonl")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(answered(&fixture, "").0, "capability_cache");

    let changed =
        FILES.replace("properties: { path: { type: string } }", "properties: { path: { type: string, minLength: 1 } }");
    assert_ne!(changed, FILES);
    let fixture = fixture.file("files.mock.yaml", &changed);
    let (_, report) = json_of(&fixture, "rehearse dry-run plan.ts --json");
    assert_eq!(report["tools_called"][0]["answer"]["_source"], "placeholder");
    let message = report["findings"][0]["message"].as_str().unwrap();
    assert!(message.starts_with("files:read_file: the tool's schema has changed since its answer of 2"), "{message}");
    // The saved list of tools is the new one.
    assert_eq!(answered(&fixture, "--offline").0, "placeholder");
    assert_eq!(answered(&fixture.file("files.mock.yaml", FILES), "").0, "capability_cache");
}

#[test]
fn private_answers_are_never_those_of_another_principal() {
    let fixture = with_answers(&[
        answer("/a", "of ann", 2 * HOUR, &json!({ "principal": "ann" })),
        answer("/b", "of all", HOUR, &json!({ "principal": "ann", "shared": true })),
    ]);
    assert_eq!(answered(&fixture, "--principal ann"), ("capability_cache".to_owned(), json!("of ann")));
    for flags in ["", "--principal bob"] {
        let (source, value) = answered(&fixture, flags);
        // The shared answer for /b shows the shape of results; that of ann is no example.
        assert!(source == "schema_mock" && value != "of ann", "{flags}: {value}");
        let (_, shared) = json_of(&fixture, &format!("rehearse cache list --json {flags}"));
        assert_eq!(shared["arguments"]["path"], "/b", "{flags}");
    }
    let export = |flags: &str| fixture.run(&format!("rehearse cache export {flags} | grep -c answer"));
    assert_eq!(export("--principal bob"), "exit: 0\n----- stdout -----\n1\n");
    assert_eq!(export("--all-principals"), "exit: 0\n----- stdout -----\n2\n");
    let fixture = fixture.file("plan.ts", "await mcp.files.read_file({ path: '/b' })");
    assert_eq!(answered(&fixture, "--principal bob"), ("capability_cache".to_owned(), json!("of all")));

    let record =
        "rehearse call read_file path=/c -- rehearse record -q -o trace.jsonl -- rehearse mock files.mock.yaml";
    let import = "rehearse cache import trace.jsonl --share --principal ann";
    assert!(fixture.shell(&format!("{record} && {import}")).output().unwrap().status.success());
    let fixture = fixture.file("plan.ts", "await mcp.files.read_file({ path: '/c' })");
    assert_eq!(answered(&fixture, "--principal bob").0, "capability_cache");
}

#[test]
fn earlier_versions_of_an_answer_are_used_and_shown_as_of_their_time() {
    let fixture =
        with_answers(&[answer("/a", "first", 72 * HOUR, &json!({})), answer("/a", "second", 2 * HOUR, &json!({}))]);
    assert_eq!(answered(&fixture, "").1, "second");
    assert_eq!(answered(&fixture, "--as-of 3h").1, "first");
    assert_eq!(answered(&fixture, "--as-of '2d ago'").1, "first");
    assert_ne!(answered(&fixture, "--as-of 2020-01-01T00:00:00Z").0, "capability_cache");
    let texts = |line: &str| {
        let lines = fixture.shell(line).output().unwrap().stdout;
        let values = serde_json::Deserializer::from_slice(&lines).into_iter::<Value>();
        values.map(|value| value.unwrap()["result"]["content"][0]["text"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(texts("rehearse cache list --json"), ["second", "first"]);
    assert_eq!(texts("rehearse cache list --json --as-of 1h"), ["second"]);
    assert_eq!(texts("rehearse cache list --json --as-of 3h"), ["first"]);
    let (_, entry) = json_of(&fixture, "rehearse cache list --json --as-of 3h");
    let key = entry["key"].as_str().unwrap();
    assert_eq!(texts(&format!("rehearse cache show {key}")), ["second", "first"]);
    assert_eq!(texts(&format!("rehearse cache show {key} --as-of 3h")), ["first"]);
    rehearse!(fixture, &format!("rehearse cache show {key} --as-of 2020-01-01T00:00:00Z"), @r"
    exit: 2
    ----- stderr -----
    error: no result has the key d48ee305f0e3 as of 2020-01-01T00:00:00Z
    hint: `rehearse cache list` prints the keys
    ");
    rehearse!(fixture, "rehearse cache list --as-of yesterday 2>&1 | head -1", @r#"
    exit: 0
    ----- stdout -----
    error: --as-of <TIME> cannot be "yesterday": write it like 2h, 7d or 2026-07-28T12:00:00Z
    "#);
}

#[test]
fn an_export_is_imported_into_another_cache() {
    let fixture = with_answers(&[
        answer("/a", "first", 2 * HOUR, &json!({ "principal": "ann", "shared": true })),
        answer("/b", "other", HOUR, &json!({})),
    ]);
    let copy = "rehearse cache export --all-principals -o all.jsonl
rehearse cache import all.jsonl --cache copy.sqlite
rehearse cache export --all-principals --cache copy.sqlite | cmp - all.jsonl && echo same
rehearse cache export | rehearse cache import - --cache copy.sqlite 2>&1 | head -1";
    rehearse!(fixture, copy, @r"
    exit: 0
    ----- stdout -----
    same
    stdin: 0 new results of files, 2 imported before, 0 without a result; 0 lists of tools
    ----- stderr -----
    wrote all.jsonl: 2 results
    all.jsonl: 2 new results of files, 0 imported before, 0 without a result; 0 lists of tools
    the cache is copy.sqlite
    ");
    let fixture = fixture.file("newer.jsonl", "{\"rehearse_cache\":2}\n");
    rehearse!(fixture, "rehearse cache import newer.jsonl", @r"
    exit: 2
    ----- stderr -----
    error: newer.jsonl, line 1: this program reads exports of version 1, not 2
    ");
    rehearse!(fixture, "rehearse cache import all.jsonl --server other", @r"
    exit: 2
    ----- stderr -----
    error: all.jsonl is an export: its results have their servers and their sharing
    hint: import it without --server and --share
    ");
}

#[test]
fn the_limits_of_a_cache_hold_for_every_process_and_stats_count_what_is_left() {
    let answers: Vec<Value> =
        (0..20).map(|number| answer(&format!("/{number}"), &"x".repeat(1000), HOUR - number, &json!({}))).collect();
    let fixture = with_answers(&answers);
    let limit = |flags: &str| fixture.run(&format!("rehearse cache limit {flags}"));
    assert_eq!(limit(""), "exit: 0\n----- stdout -----\n100000 results, 256.0 MB, 10 versions of an answer\n");
    assert_eq!(limit("--entries 15"), "exit: 0\n----- stdout -----\n15 results, 256.0 MB, 10 versions of an answer\n");
    let stats = || json_of(&fixture, "rehearse cache stats --json").1;
    let before = stats();
    assert_eq!((&before["entries"], &before["limits"]["entries"]), (&json!(15), &json!(15)));
    assert_eq!(before["tools"][0]["tool"], "files:read_file");
    assert!(before["bytes"].as_u64().unwrap() > 15_000 && before["bytes_on_disk"].as_u64().unwrap() > 15_000);
    assert!(before["oldest"].as_str() < before["newest"].as_str(), "{before}");
    assert!(limit("--size 8kB").contains("15 results, 8.0 kB"), "{}", limit(""));
    assert_eq!(stats()["entries"], 7);
    // The results that were stored first are gone, and an import in another process keeps the limit.
    assert!(fixture.shell("rehearse cache import answers.jsonl").output().unwrap().status.success());
    assert_eq!(stats()["entries"], 7);
    let page = fixture.run("rehearse cache stats");
    assert!(page.contains("7 results of 1 tool, 0 saved lists of tools\nsize: 7."), "{page}");
    assert!(limit("--size 8x").starts_with("exit: 2") && limit("--entries 0").starts_with("exit: 2"));
}

#[test]
fn eight_processes_at_once_lose_no_entry_and_are_not_locked_out() {
    // They begin with a file of version 1, so that all of them migrate it.
    let fixture = project().file("plan.ts", READ);
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/caches/format_1.sqlite");
    std::fs::copy(sample, fixture.path().join("cache.sqlite")).unwrap();
    let (processes, files, each) = (8, 5, 40);
    for process in 0..processes {
        for file in 0..files {
            let path = |number: u64| format!("/{process}/{file}/{number}");
            let answers = (0..each).map(|number| answer(&path(number), "x", HOUR, &json!({ "run": path(number) })));
            let text = export_of(&answers.collect::<Vec<_>>());
            std::fs::write(fixture.path().join(format!("{process}-{file}.jsonl")), text).unwrap();
        }
    }
    let children = (0..processes).map(|process| {
        let line = format!(
            "set -e; for file in 0 1 2 3 4; do
                rehearse cache import {process}-$file.jsonl --cache cache.sqlite
                rehearse cache list --cache cache.sqlite --server files > /dev/null
                rehearse dry-run plan.ts --cache cache.sqlite --json | grep -q capability_cache
            done"
        );
        let mut command = fixture.shell(&line);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    });
    // All are started before the first one is waited for.
    for child in children.collect::<Vec<_>>() {
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{text}");
    }
    let (_, stats) = json_of(&fixture, "rehearse cache stats --json --cache cache.sqlite");
    assert_eq!(stats["entries"], processes * files * each + 2);
}

#[test]
fn a_file_that_is_not_a_cache_is_an_error_with_a_hint() {
    let fixture = project().file("plan.ts", READ).file("cache.sqlite", &"not a cache\n".repeat(400));
    let lines = "rehearse cache list --cache cache.sqlite; rehearse dry-run plan.ts --cache cache.sqlite";
    rehearse!(fixture, lines, @r"
    exit: 3
    ----- stderr -----
    error: the cache cache.sqlite: file is not a database
    hint: the file is damaged, or is not a cache: move it to another place and import the recordings again
    error: the cache cache.sqlite: file is not a database
    hint: the file is damaged, or is not a cache: move it to another place and import the recordings again
    ");
    let damaged = with_answers(&(0..200).map(|n| answer(&format!("/{n}"), "x", HOUR, &json!({}))).collect::<Vec<_>>());
    let path = damaged.path().join(".rehearsal/cache.sqlite");
    let mut bytes = std::fs::read(&path).unwrap();
    let length = bytes.len();
    bytes[8192..length].fill(0x55);
    std::fs::write(&path, bytes).unwrap();
    let shown = damaged.run("rehearse cache list");
    assert!(shown.starts_with("exit: 3") && shown.contains("malformed\nhint: the file is damaged"), "{shown}");
}

#[test]
fn a_full_disk_and_a_read_only_file_are_errors_with_a_hint() {
    if !mounts() {
        eprintln!("skipped: no file system can be mounted here");
        return;
    }
    let answers: Vec<Value> =
        (0..400).map(|number| answer(&format!("/{number}"), &"x".repeat(2000), HOUR, &json!({}))).collect();
    let fixture =
        with_answers(&[]).file("many.jsonl", &export_of(&answers)).file("one.jsonl", &export_of(&answers[..1]));
    std::fs::create_dir(fixture.path().join("disk")).unwrap();
    let import = |file: &str| format!("rehearse cache import {file} --cache disk/cache.sqlite");
    let script = format!(
        "mount -t tmpfs -o size=256k tmpfs disk; {}; {}; echo $?; mount -o remount,ro disk; {}; echo $?",
        import("one.jsonl"),
        import("many.jsonl"),
        import("one.jsonl"),
    );
    let shown = fixture.run(&format!("unshare -rm {}", in_bash(&format!("({script}) 2>&1"))));
    let full = "error: the cache disk/cache.sqlite: database or disk is full\nhint: free space on the disk";
    assert!(shown.contains(full), "{shown}");
    let read_only =
        "unable to open database file\nhint: check that the file and its folder can be written, or name another";
    assert!(shown.contains(read_only) && shown.contains("\n3\n"), "{shown}");
}

#[test]
fn a_file_without_permission_to_write_answers_and_is_not_written() {
    let fixture = with_answers(&[answer("/a", "x", HOUR, &json!({}))]);
    // Permissions do not apply to root, so the test runs as another user.
    let other = "setpriv --reuid 65534 --clear-groups rehearse";
    if !fixture.run(&format!("chmod 755 .; {other} --version")).starts_with("exit: 0") {
        eprintln!("skipped: no other user may run this program here");
        return;
    }
    let fixture = fixture.file("other.jsonl", &export_of(&[answer("/b", "x", HOUR, &json!({}))]));
    let line = format!(
        "chmod 777 .rehearsal; chmod 444 .rehearsal/cache.sqlite
{other} cache list | wc -l; {other} cache import other.jsonl --cache .rehearsal/cache.sqlite"
    );
    rehearse!(fixture, &line, @r"
    exit: 3
    ----- stdout -----
    1
    ----- stderr -----
    error: the cache .rehearsal/cache.sqlite: attempt to write a readonly database
    hint: permit writing to the file and its folder, or name another file: --cache FILE
    ");
}
