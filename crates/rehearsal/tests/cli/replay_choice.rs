//! Which recording `rehearse replay` answers from, and where its index is.

use crate::fixture::{Fixture, rehearse};

/// A session of a client: its handshake and its requests.
fn conversation(client: &str, calls: &[&str]) -> String {
    let hello = format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}},"clientInfo":{{"name":"{client}","version":"1"}}}}}}"#
    );
    let calls = calls.iter().enumerate().map(|(at, city)| {
        let id = at + 1;
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"rain","arguments":{{"city":"{city}"}}}}}}"#
        )
    });
    std::iter::once(hello).chain(calls).map(|line| line + "\n").collect()
}

/// Two sessions of clients with different names, each with its own server that counts.
fn recorded() -> Fixture {
    let mut fixture = Fixture::new();
    for client in ["desktop", "phone"] {
        let mock = format!(
            "server: {{ name: weather }}\ntools: [{{ name: rain, answers: [{{ text: '{client} {{{{ call }}}}' }}] }}]\n"
        );
        fixture = fixture.file("weather.mock.yaml", &mock).file("calls", &conversation(client, &["Oslo", "Oslo"]));
        let record = format!("rehearse record -q --metadata house={client} -- rehearse mock weather.mock.yaml < calls");
        fixture.run(&record);
    }
    let trace = std::fs::read_to_string(fixture.path().join("trace.jsonl")).unwrap();
    let named = trace.lines().zip(["desktop", "phone"]).map(|(line, name)| {
        let id = line.split("\"session_id\":\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        line.replace(id, name) + "\n"
    });
    let named: String = named.collect();
    fixture.file("trace.jsonl", &named)
}

/// The id and the text of each answer, in the order of the requests: they are all made at once.
const TEXTS: &str = "sed -n 's/.*\"id\":\\([0-9]*\\).*\"text\":\"\\([^\"]*\\)\".*/\\1 \\2/p' | sort";

#[test]
fn all_sessions_are_one_pool_in_order() {
    let fixture = recorded().file("calls", &conversation("phone", &["Oslo"; 6]));
    rehearse!(fixture, &format!("rehearse replay trace.jsonl < calls | {TEXTS}"), @"
    exit: 0
    ----- stdout -----
    1 desktop 1
    2 desktop 2
    3 phone 1
    4 phone 2
    5 phone 2
    6 phone 2
    ----- stderr -----
    6 matched, 2 repeated, 0 unmatched, 0 unused
    ");
}

#[test]
fn answers_restart_from_the_first_on_request() {
    let fixture = recorded().file("calls", &conversation("phone", &["Oslo"; 6]));
    rehearse!(fixture, &format!("rehearse replay trace.jsonl --repeat cycle < calls | {TEXTS}"), @"
    exit: 0
    ----- stdout -----
    1 desktop 1
    2 desktop 2
    3 phone 1
    4 phone 2
    5 desktop 1
    6 desktop 2
    ----- stderr -----
    6 matched, 2 repeated, 0 unmatched, 0 unused
    ");
}

#[test]
fn the_index_is_stored_elsewhere_if_the_folder_is_read_only() {
    let fixture = recorded().file("calls", &conversation("phone", &["Oslo"]));
    // Not even the superuser can write a file there.
    rehearse!(fixture, &format!("rehearse replay /dev/fd/3 -q < calls 3< trace.jsonl | {TEXTS}; ls"), @"
    exit: 0
    ----- stdout -----
    1 desktop 1
    calls
    trace.jsonl
    weather.mock.yaml
    ");
    let locked = "mkdir locked; cp trace.jsonl locked; chmod 555 locked";
    rehearse!(fixture, &format!("{locked}; rehearse replay locked/trace.jsonl -q < calls | {TEXTS}; chmod 755 locked"), @"
    exit: 0
    ----- stdout -----
    1 desktop 1
    ");
}

/// Recordings of two different servers.
fn houses() -> Fixture {
    let session = |house: &str, calls: &[(&str, i32)]| {
        let hello = format!(
            r#"{{"request": {{"method": "initialize", "args": [], "kwargs": {{}}}}, "response": {{"success": true, "result": {{"protocolVersion": "2025-11-25", "capabilities": {{"tools": {{}}}}, "serverInfo": {{"name": "{house}", "version": "1"}}}}}}}}"#
        );
        let calls = calls.iter().map(|(tool, level)| {
            format!(
                r#", {{"request": {{"method": "call_tool", "args": ["{tool}", {{"room": "hall", "level": {level}}}], "kwargs": {{}}}}, "response": {{"success": true, "result": {{"content": [{{"type": "text", "text": "{house} {tool}"}}]}}}}}}"#
            )
        });
        let calls: String = calls.collect();
        format!(
            "{{\"session_id\": \"{house}\", \"metadata\": {{\"house\": \"{house}\"}}, \"calls\": [{hello}{calls}]}}\n"
        )
    };
    let trace = session("cottage", &[("heat", 1), ("light", 1)]) + &session("tower", &[("heat", 2)]);
    Fixture::new().file("houses.jsonl", &trace)
}

#[test]
fn a_matcher_is_for_requests_that_have_its_path() {
    let fixture = houses();
    let replay = r#"rehearse replay -q houses.jsonl --match '$.params.arguments.level={"gt":2}'"#;
    rehearse!(fixture, &format!("rehearse call heat room=hall level:=3 -- {replay}"), @"
    exit: 0
    ----- stdout -----
    cottage heat
    ");
    rehearse!(fixture, &format!("rehearse call heat room=hall level:=1 -- {replay}"), @r#"
    exit: 1
    ----- stderr -----
    error: -32603: tools/call heat is not matched: $.params.arguments.level: expected a number > 2, got 1
      data: {"closest":{"recording":"session cottage, call 2","mismatches":[{"path":"$.params.arguments.level","expected":"a number > 2","got":"1"}]}}
    "#);
}

#[test]
fn sessions_that_are_not_selected_print_no_warnings() {
    let fixture = houses();
    let replay = "rehearse replay -q houses.jsonl --metadata house=tower";
    rehearse!(fixture, &format!("rehearse call heat --args '{{\"room\":\"hall\",\"level\":9}}' -- {replay} --unmatched first"), @"
    exit: 0
    ----- stdout -----
    tower heat
    ");
    rehearse!(fixture, &format!("rehearse call light --args '{{\"room\":\"hall\",\"level\":1}}' -- {replay} --unmatched first"), @"
    exit: 0
    ----- stdout -----
    tower heat
    ");
    rehearse!(fixture, &format!("rehearse call heat --args '{{\"room\":\"hall\",\"level\":1}}' -- {replay}"), @r#"
    exit: 1
    ----- stderr -----
    error: -32603: no recording of tools/call heat; closest is session tower, call 2: $.params.arguments.level: expected 2, got 1
      data: {"closest":{"recording":"session tower, call 2","mismatches":[{"path":"$.params.arguments.level","expected":"2","got":"1"}]}}
    "#);
}

#[test]
fn errors_in_flags_or_recordings_have_a_hint() {
    let fixture = Fixture::new();
    fixture.run("rehearse call echo message=hello -- rehearse record -q -o trace.jsonl -- tiny-server");
    fixture.run(
        r#"sed -i 's/"session_id":"[^"]*"/"session_id":"monday"/' trace.jsonl; head -c 900 trace.jsonl > half.jsonl"#,
    );
    rehearse!(fixture, "rehearse replay trace.jsonl --session mnday", @"
    exit: 2
    ----- stderr -----
    error: trace.jsonl: no session matches the filters
    hint: did you mean `monday`?
    ");
    rehearse!(fixture, "rehearse replay trace.jsonl --metadata day=monday", @r"
    exit: 2
    ----- stderr -----
    error: trace.jsonl: no session matches the filters
    hint: `rehearse trace show` prints the metadata of each session
    ");
    rehearse!(fixture, "rehearse replay trace.jsonl --ignore now", @"
    exit: 2
    ----- stderr -----
    error: --ignore now: not a JSONPath: unexpected text, at byte 0
    hint: a path begins with `$`: $.params.arguments.now, or $..timestamp for all of them
    ");
    rehearse!(fixture, r#"rehearse replay trace.jsonl --match '$.params.arguments.now={"type":"integer"'"#, @r#"
    exit: 2
    ----- stderr -----
    error: --match $.params.arguments.now={"type":"integer": not JSON: EOF while parsing an object, at column 17 of {"type":"integer"
    hint: write it like --match '$.params.arguments.city={"matches": "^O"}'
    "#);
    rehearse!(fixture, "rehearse replay trace.jsonl -- tiny-server", @r"
    exit: 2
    ----- stderr -----
    error: a live server is used only with --unmatched forward
    hint: `--unmatched forward` sends it the requests that were not recorded
    ");
    rehearse!(fixture, "rehearse replay half.jsonl", @r"
    exit: 2
    ----- stderr -----
    error: half.jsonl, line 1, column 901: expected the rest of the session instead of the end of the file
    hint: `rehearse trace convert --skip-bad half.jsonl readable.jsonl` keeps the lines that can be read
    ");
    rehearse!(fixture, "rehearse replay none.jsonl", @"
    exit: 2
    ----- stderr -----
    error: cannot read none.jsonl: No such file or directory (os error 2)
    hint: `rehearse record -- COMMAND` writes trace.jsonl
    ");
}

#[test]
fn the_journal_of_a_killed_recorder_is_replayed() {
    let busy = include_str!("../../../../fixtures/traces/busy.journal");
    let fixture = Fixture::new().file("trace.jsonl", "").file("trace.jsonl.busy.journal", busy);
    rehearse!(fixture, "rehearse call dig deep=1 2>/dev/null -- rehearse replay -q trace.jsonl && ls", @"
    exit: 0
    ----- stdout -----
    a hole
    trace.jsonl
    trace.jsonl.index
    ");
}

#[test]
fn a_session_with_other_metadata_is_not_suggested() {
    let session = |id: &str, environment: &str| {
        format!(
            r#"{{"format":1,"session_id":"{id}","server_info":{{}},"started_at":null,"metadata":{{"env":"{environment}"}},"calls":[],"messages":[],"ended_at":null,"end":null}}"#
        )
    };
    let fixture = Fixture::new().file("trace.jsonl", &format!("{}\n{}\n", session("sa", "prod"), session("sb", "dev")));
    rehearse!(fixture, "rehearse replay trace.jsonl --session sa --metadata env=dev < /dev/null", @r"
    exit: 2
    ----- stderr -----
    error: trace.jsonl: no session matches the filters
    hint: session sa has other metadata; `rehearse trace show` prints it
    ");
}

#[test]
fn a_negative_pace_is_reported_as_such() {
    rehearse!(Fixture::new(), "rehearse replay trace.jsonl --pace -1 < /dev/null", @r#"
    exit: 2
    ----- stderr -----
    error: --pace <PACE> cannot be "-1": write `recorded`, `none`, or a factor such as 0.5
    "#);
}

#[test]
fn pretty_printed_json_gets_a_hint_to_use_lines() {
    let laid_out = "{\n  \"format\": 1,\n  \"session_id\": \"s\",\n  \"calls\": []\n}\n";
    let array = r#"[{"format":1,"session_id":"s","server_info":{},"started_at":null,"metadata":{},"calls":[]}]"#;
    let fixture = Fixture::new().file("laid-out.jsonl", laid_out).file("array.jsonl", array);
    insta::allow_duplicates! {
        for verb in ["replay", "trace show"] {
            rehearse!(fixture, &format!("rehearse {verb} laid-out.jsonl < /dev/null"), @r"
            exit: 2
            ----- stderr -----
            error: laid-out.jsonl, line 1, column 2: expected a key instead of the end of the line
            hint: each session, or message of a journal, must be one line: `jq -c .` writes it as one
            ");
            rehearse!(fixture, &format!("rehearse {verb} array.jsonl < /dev/null"), @r"
            exit: 2
            ----- stderr -----
            error: array.jsonl, line 1, column 1: expected a session instead of an array
            hint: each session must be one line: `jq -c '.[]'` writes them so
            ");
        }
    }
}
